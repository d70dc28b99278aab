"""Make classes cheaper: free a neighbourhood, solve it again in many orders, keep the best.

Idea: the worst placed of a few random signatures names a neighbourhood, the classes nearest to it; their
members are freed, the closed groups among them listed, and closed in several jittered orders of loss. Whatever is not
dearer is kept, so that equal solutions drift and open new ways. With much work to spend, slightly dearer ones are kept
too, by an allowance that cools to nothing (simulated annealing): so it leaves valleys that have no level way out.
Whatever a guard asks of classes, it is asked of every new one.

Cost: one round is a listing over a few hundred signatures. The work is counted in steps of the inner loops and limited
by the caller as a function of the size, never by the clock, and the random numbers are seeded: the same input gives
the same classes.
"""

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.kernels.lattice import _class_table, _close, joined_cost, total_loss
from kanon_spark.kernels.listing import _list_groups, search_order
from kanon_spark.kernels.problem import Problem
from kanon_spark.kernels.settling import settle
from kanon_spark.kernels.stealing import box_nodes

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]

# Classes per neighbourhood (least, most) and jittered orders per round. Large k has few, large classes: smaller bites.
_SMALL_K = (8, 40, 14)
_LARGE_K = (8, 30, 8)


def polish(problem: Problem, class_of: Ints, *, target: Floats, work: float, seed: int, heat: float = 0.0) -> Ints:
    """Improve the classes with a fixed amount of work; classes never fall under k, the loss never rises.

    Args:
        problem: Signatures and trees.
        class_of: Class of each signature (FREE ones stay out).
        target: A lower bound of each signature's loss: those far above theirs are looked at first.
        work: Steps of the inner loops to spend; a core does some 10^8 of them a second.
        heat: Mean allowance at the start, in rows times loss. It pays only where `work` is plenty.
        seed: Seed of the random choices.
    """
    if work <= 0 or class_of.max(initial=-1) < 1:
        return class_of
    forest = problem.forest
    near_low, near_high, tries = _SMALL_K if problem.k < 30 else _LARGE_K
    polished: Ints = _polish(
        class_of.copy(),
        problem.codes,
        problem.rows,
        problem.persons,
        problem.k,
        problem.guard.compiled,
        target,
        work,
        heat,
        seed,
        near_low,
        near_high,
        tries,
        search_order(forest),
        forest.start,
        forest.parent,
        forest.lo,
        forest.hi,
        forest.loss,
    )
    if heat > 0 and total_loss(problem, polished, suppressed=0.0) > total_loss(problem, class_of, suppressed=0.0):
        return class_of
    return polished


@njit(cache=True, nogil=True)
def _polish(  # type: ignore[no-untyped-def]
    class_of,
    codes,
    rows,
    persons,
    k,
    guard,
    target,
    work,
    heat,
    seed,
    near_low,
    near_high,
    tries,
    order,
    start,
    parent,
    lo,
    hi,
    loss,
):
    np.random.seed(seed)
    m, width = codes.shape
    count = 0
    for s in range(m):
        count = max(count, class_of[s] + 1)
    spare = count  # class slots: a neighbourhood may come back in more classes than it had
    capacity = 2 * count + m // max(1, k) + 64
    nodes = np.zeros((capacity, width), np.int32)
    held_rows = np.zeros(capacity, np.int64)
    held_persons = np.zeros(capacity, np.int64)
    first_nodes, first_rows, first_persons = _class_table(class_of, count, codes, rows, persons, start, parent, hi)
    cost = np.zeros(capacity)
    nodes[:count] = first_nodes
    held_rows[:count] = first_rows
    held_persons[:count] = first_persons
    head = np.full(capacity, -1, np.int32)
    link = np.full(m, -1, np.int32)
    for c in range(count):
        for j in range(width):
            cost[c] += loss[nodes[c, j]]
    placed = np.empty(m, np.int32)  # signatures that might be better placed: neighbourhoods start there
    n_placed = 0
    for s in range(m):
        c = class_of[s]
        if c >= 0:
            link[s] = head[c]
            head[c] = s
            if cost[c] > target[s] + 1e-9:
                placed[n_placed] = s
                n_placed += 1
    if n_placed == 0:
        return class_of  # every signature already costs the least it can
    free_slots = np.empty(capacity, np.int32)
    n_free = 0
    for c in range(capacity - 1, spare - 1, -1):
        free_slots[n_free] = c
        n_free += 1
    live = np.empty(capacity, np.int32)
    where = np.full(capacity, -1, np.int32)
    n_live = 0
    for c in range(count):
        if held_rows[c] > 0:
            live[n_live] = c
            where[c] = n_live
            n_live += 1
    score = np.empty(capacity)
    local = np.full(m, -1, np.int32)

    reach = np.inf  # how far the neighbourhoods of late have reached: classes far beyond are not even measured
    spent = 0.0
    while spent < work:
        # 1. The worst placed of four random signatures.
        s = placed[np.random.randint(n_placed)]
        for _draw in range(3):
            other = placed[np.random.randint(n_placed)]
            if cost[class_of[other]] - target[other] > cost[class_of[s]] - target[s]:
                s = other
        # 2. Its class and the classes nearest to it, distances blurred so that neighbourhoods differ.
        wanted = min(n_live, np.random.randint(near_low, near_high + 1))
        near = 0
        for i in range(n_live):
            c = live[i]
            score[i] = joined_cost(nodes[c], codes, s, parent, lo, hi, loss, reach)
            if score[i] < np.inf:
                score[i] *= 0.7 + 0.6 * np.random.random()
                near += 1
        spent += n_live * 4 + 200
        if near < wanted and reach < np.inf:
            reach = np.inf
            continue
        score[where[class_of[s]]] = -1.0
        cut = np.inf
        if wanted < n_live:
            cut = np.partition(score[:n_live], wanted - 1)[wanted - 1]
            reach = 2.0 * cut
        chosen = np.empty(n_live, np.int32)
        n_chosen = 0
        size = 0
        before = 0.0
        dearest = 0.0
        for i in range(n_live):
            if score[i] <= cut and n_chosen < wanted:
                c = live[i]
                chosen[n_chosen] = c
                n_chosen += 1
                before += held_rows[c] * cost[c]
                dearest = max(dearest, cost[c])
                x = head[c]
                while x >= 0:
                    size += 1
                    x = link[x]
        if n_chosen < 1 or before <= 0.0:
            continue
        sig = np.empty(size, np.int32)
        i = 0
        for t in range(n_chosen):
            x = head[chosen[t]]
            while x >= 0:
                sig[i] = x
                i += 1
                x = link[x]
        # 3. Every closed group among the freed signatures that is not dearer than the dearest class was.
        group_cost, offset, members, complete = _list_groups(
            order, start, parent, lo, hi, loss, codes, persons, sig, k, guard, -1.0, dearest + 1e-9, 4_000_000
        )
        spent += 40 * size + (4 + tries) * len(members) + 12 * tries * len(group_cost)
        if not complete or len(group_cost) == 0:
            continue
        for i in range(size):
            local[sig[i]] = i
        for i in range(len(members)):
            members[i] = local[members[i]]
        own_persons = np.empty(size, np.int64)
        for i in range(size):
            own_persons[i] = persons[sig[i]]
        # 4. Close them in jittered orders, attach and move; keep the best.
        allowance = -np.log(1.0 - np.random.random()) * heat * (1.0 - spent / work)
        best = before + max(allowance, 1e-9)
        found = False
        best_trial = np.empty(size, np.int32)
        best_count = 0
        for _try in range(tries):
            blur = np.random.random()
            ranked = np.argsort(group_cost * (1.0 + blur * np.random.random(len(group_cost))))
            trial = np.full(size, -1, np.int32)
            made = _close(ranked, offset, members, sig, own_persons, k, guard, trial, np.int64(0))
            if made == 0:
                continue
            t_nodes = np.zeros((made, width), np.int32)
            least = np.full((made, width), 2147483647, np.int32)
            most = np.full((made, width), -1, np.int32)
            t_rows = np.zeros(made, np.int64)
            t_persons = np.zeros(made, np.int64)
            for i in range(size):
                c = trial[i]
                if c < 0:
                    continue
                t_rows[c] += rows[sig[i]]
                t_persons[c] += persons[sig[i]]
                for j in range(width):
                    x = codes[sig[i], j]
                    if x < least[c, j]:
                        least[c, j] = x
                    if x > most[c, j]:
                        most[c, j] = x
            t_cost = np.zeros(made)
            for c in range(made):
                for j in range(width):
                    v = start[j] + least[c, j]
                    while hi[v] <= most[c, j]:
                        v = parent[v]
                    t_nodes[c, j] = v
                    t_cost[c] += loss[v]
            total = settle(
                trial,
                t_nodes,
                t_rows,
                t_persons,
                codes,
                sig,
                k,
                guard,
                start,
                parent,
                lo,
                hi,
                loss,
                rows,
                persons,
                t_cost,
            )
            if total <= best:
                best = total
                found = True
                best_trial[:] = trial
                best_count = made
        if not found or best_count > n_chosen + n_free:
            continue
        # 5. Put the new classes in place of the old ones.
        for t in range(n_chosen):
            c = chosen[t]
            last = live[n_live - 1]
            live[where[c]] = last
            where[last] = where[c]
            where[c] = -1
            n_live -= 1
            head[c] = -1
            held_rows[c] = 0
            held_persons[c] = 0
            free_slots[n_free] = c
            n_free += 1
        slot = np.full(best_count, -1, np.int32)
        for i in range(size):
            t = best_trial[i]
            if slot[t] < 0:
                n_free -= 1
                c = free_slots[n_free]
                slot[t] = c
                live[n_live] = c
                where[c] = n_live
                n_live += 1
            c = slot[t]
            x = sig[i]
            class_of[x] = c
            link[x] = head[c]
            head[c] = x
            held_rows[c] += rows[x]
            held_persons[c] += persons[x]
        for t in range(best_count):
            c = slot[t]
            if c < 0:
                continue
            inside = 0
            x = head[c]
            while x >= 0:
                sig[inside] = x
                inside += 1
                x = link[x]
            box_nodes(sig, inside, codes, start, parent, hi, nodes[c])
            cost[c] = 0.0
            for j in range(width):
                cost[c] += loss[nodes[c, j]]
    # Slots are numbered as they came: renumber without gaps, by first member.
    renumber = np.full(capacity, -1, np.int32)
    made = 0
    for s in range(m):
        c = class_of[s]
        if c >= 0:
            if renumber[c] < 0:
                renumber[c] = made
                made += 1
            class_of[s] = renumber[c]
    return class_of
