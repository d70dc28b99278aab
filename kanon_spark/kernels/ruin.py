"""Make classes of sets, ranges and hierarchy nodes cheaper: ruin a few neighbouring classes and build them again.

Idea: a badly placed signature names its own class and those of one to three of its neighbours. Their members are
pooled and grown again from random seeds by cheapest insertion; whatever lies inside a box enters it at once. The new
classes are kept if they cost less than the old ones plus a random allowance, which shrinks as the work is spent
(simulated annealing) and is nothing in the end (descent). The allowance is drawn before the building, so that a
hopeless attempt stops early. In between, single signatures that make their class dear move to a neighbour's class, or
change places with one of its members.

Cost: a round looks at the members of two to four classes. The work is counted in evaluations of a value against a box
and limited by the caller as a function of the size, never by the clock; the random numbers are seeded.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kanon_spark.kernels.kmember import FREE, neighbours
from kanon_spark.kernels.measure import EPSILON, LABEL, Measured, begin, enter, loss_of, new_box, rise
from kanon_spark.kernels.problem import Problem
from kanon_spark.kernels.trie import plant

Ints = NDArray[np.int32]

NEIGHBOURS = 24
_HOT, _COLD = 0.6, 0.04  # allowance, in mean losses of a row, at the beginning and before the descent
_DESCENT = 0.15  # share of the work that allows nothing
_MOVES = 0.3  # share of the rounds that try single moves


def ruin_and_recreate(problem: Problem, measured: Measured, class_of: Ints, *, work: float, seed: int) -> Ints:
    """Improve the classes with a fixed amount of work; none falls under k, what is FREE stays so, the loss never rises.

    Args:
        problem: What is being solved.
        measured: Its measure.
        class_of: Class of each signature.
        work: Evaluations to spend; a core does some 10^8 of them a second.
        seed: Seed of the random choices.
    """
    placed = np.flatnonzero(class_of != FREE).astype(np.int32)
    if work <= 0 or class_of.max(initial=FREE) < 1:
        return class_of
    before = measured.total(class_of, problem.rows, suppressed=0.0)
    if before <= EPSILON:
        return class_of
    near = np.full((problem.size, NEIGHBOURS), -1, np.int32)
    near[placed] = neighbours(measured, plant(measured, placed), placed, problem.persons, NEIGHBOURS)
    mean = before / max(1, int(problem.rows[placed].sum()))
    refined: Ints = _anneal(
        measured.rules,
        measured.codes,
        problem.rows,
        problem.persons,
        problem.k,
        class_of.copy(),
        placed,
        near,
        work,
        mean * _HOT,
        mean * _COLD,
        seed,
    )
    return refined if measured.total(refined, problem.rows, suppressed=0.0) < before else class_of


@njit(cache=True)
def _anneal(rules, codes, rows, persons, k, class_of, placed, near, work, hot, cold, seed):  # type: ignore[no-untyped-def]
    np.random.seed(seed)
    count, width = codes.shape
    most = 0
    for s in range(count):
        most = max(most, class_of[s] + 1)
    # Classes as chained members. A class that is ruined gives its number back.
    head = np.full(count + 1, -1, np.int32)
    after = np.full(count, -1, np.int32)
    held = np.zeros(count + 1, np.int64)
    size = np.zeros(count + 1, np.int64)
    people = np.zeros(count + 1, np.int64)
    loss = np.zeros(count + 1)
    unused = np.empty(count + 1, np.int32)
    spare = 0
    for c in range(count, most - 1, -1):
        unused[spare] = c
        spare += 1
    for s in range(count - 1, -1, -1):
        c = class_of[s]
        if c >= 0:
            after[s] = head[c]
            head[c] = s
            held[c] += rows[s]
            size[c] += 1
            people[c] += persons[s]
    box = new_box(rules)
    for c in range(most):
        if head[c] < 0:
            unused[spare] = c
            spare += 1
            continue
        s = head[c]
        begin(rules, box, codes, s)
        s = after[s]
        while s >= 0:
            enter(rules, box, codes, s)
            s = after[s]
        loss[c] = loss_of(rules, box, held[c])
    pool = np.empty(count, np.int32)
    new_class = np.empty(count, np.int32)  # per place in the pool: number of its new class
    adds = np.empty((0, width))
    total = np.empty(count)
    new_loss = np.empty(count)
    new_rows = np.empty(count, np.int64)
    chosen = np.empty(4, np.int32)
    turned = np.empty(width, np.bool_)
    done = 0.0
    while done < work:
        done += 10.0
        share = done / work
        temperature = 0.0
        if share < 1.0 - _DESCENT:
            temperature = hot * (cold / hot) ** (share / (1.0 - _DESCENT))
        s = placed[np.random.randint(len(placed))]
        other = placed[np.random.randint(len(placed))]
        c, d = class_of[s], class_of[other]
        if loss[d] * max(1, held[c]) > loss[c] * max(1, held[d]):
            s, c = other, d
        if loss[c] <= EPSILON:
            continue
        # The pool: its class and one to three of its neighbours'.
        chosen[0] = c
        classes = 1
        wanted = 2 + np.random.randint(3)
        for _ in range(8):
            t = near[s, np.random.randint(near.shape[1])]
            if t < 0:
                continue
            d = class_of[t]
            known = False
            for i in range(classes):
                known = known or chosen[i] == d
            if not known:
                chosen[classes] = d
                classes += 1
                if classes == wanted:
                    break
        if classes == 1:
            continue
        old = 0.0
        n = 0
        free_people = 0
        for i in range(classes):
            old += loss[chosen[i]]
            free_people += people[chosen[i]]
            t = head[chosen[i]]
            while t >= 0:
                pool[n] = t
                new_class[n] = -1
                n += 1
                t = after[t]
        allowed = old - temperature * np.log(1.0 - np.random.random())
        if n > len(adds):
            adds = np.empty((2 * n, width))
        made = 0
        reached = 0.0
        left = n
        while free_people >= k:
            # A random seed among those left.
            skip = np.random.randint(left)
            first = 0
            while new_class[first] >= 0 or skip > 0:
                if new_class[first] < 0:
                    skip -= 1
                first += 1
            begin(rules, box, codes, pool[first])
            new_class[first] = made
            left -= 1
            weight = rows[pool[first]]
            inside = persons[pool[first]]
            turned[:] = True
            fresh = True
            while True:
                best = -1
                for i in range(n):
                    if new_class[i] >= 0:
                        continue
                    y = pool[i]
                    if fresh:
                        sum_ = 0.0
                        for j in range(width):
                            adds[i, j] = rise(rules, box, j, codes[y, j])
                            sum_ += adds[i, j]
                        total[i] = sum_
                        done += width
                    else:
                        for j in range(width):
                            if turned[j] and (adds[i, j] > 0 or rules.kind[j] == LABEL):
                                more = rise(rules, box, j, codes[y, j])
                                total[i] += more - adds[i, j]
                                adds[i, j] = more
                                done += 1.0
                    if total[i] <= EPSILON:  # inside
                        enter(rules, box, codes, y)
                        new_class[i] = made
                        left -= 1
                        weight += rows[y]
                        inside += persons[y]
                        continue
                    slack = EPSILON if best >= 0 and persons[y] > persons[pool[best]] else -EPSILON  # more persons
                    if best < 0 or total[i] < total[best] + slack:
                        best = i
                done += 0.2 * n
                fresh = False
                if inside >= k or best < 0 or not np.isfinite(total[best]):
                    break
                y = pool[best]
                enter(rules, box, codes, y)
                turned[:] = box.changed
                new_class[best] = made
                left -= 1
                weight += rows[y]
                inside += persons[y]
            if inside < k:
                reached = np.inf
                break
            free_people -= inside
            new_loss[made] = loss_of(rules, box, weight)
            new_rows[made] = weight
            reached += new_loss[made]
            made += 1
            if reached >= allowed:
                break
        if reached >= allowed or made == 0:
            continue
        # What is left joins the new class whose loss rises least.
        for i in range(n):
            if new_class[i] >= 0:
                continue
            least, into = np.inf, -1
            for m in range(made):
                begun = False
                for p in range(n):
                    if new_class[p] == m:
                        if begun:
                            enter(rules, box, codes, pool[p])
                        else:
                            begin(rules, box, codes, pool[p])
                            begun = True
                done += 0.3 * n
                enter(rules, box, codes, pool[i])
                more = loss_of(rules, box, new_rows[m] + rows[pool[i]]) - new_loss[m]
                if more < least - EPSILON:
                    least, into = more, m
            if into < 0:
                reached = np.inf
                break
            new_class[i] = into
            new_loss[into] += least
            new_rows[into] += rows[pool[i]]
            reached += least
            if reached >= allowed:
                break
        if reached >= allowed:
            continue
        # Keep it.
        for i in range(classes):
            c = chosen[i]
            head[c] = -1
            held[c] = 0
            people[c] = 0
            loss[c] = 0.0
            unused[spare] = c
            spare += 1
        for m in range(made):
            spare -= 1
            c = unused[spare]
            loss[c] = new_loss[m]
            held[c] = new_rows[m]
            for i in range(n):
                if new_class[i] == m:
                    y = pool[i]
                    class_of[y] = c
                    after[y] = head[c]
                    head[c] = y
                    people[c] += persons[y]
    return class_of
