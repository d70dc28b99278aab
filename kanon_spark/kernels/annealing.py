"""Make classes of sets, ranges and hierarchy nodes cheaper: swap signatures, ruin a few classes and build them again.

Idea: a badly placed signature either moves into a neighbour's class or changes places with one of its members (see
`swapping.py`), or it names its own class and those of one or two of its neighbours. Their members are
pooled and grown again from random seeds by cheapest insertion; whatever lies inside a box enters it at once. New
classes are kept if they cost less than the old ones plus a random allowance, which shrinks as the work is spent
(simulated annealing) and is nothing in the end (descent). The allowance is drawn before the building, so that a
hopeless attempt stops early.

Cost: a round looks at the members of two or three classes. The work is counted in evaluations of a value against a box
and limited by the caller as a function of the size, never by the clock; the random numbers are seeded.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kanon_spark.kernels.box import EPSILON, begin, enter, loss_of, new_box, price
from kanon_spark.kernels.kmember import FREE, neighbours
from kanon_spark.kernels.measure import Measured
from kanon_spark.kernels.problem import Problem
from kanon_spark.kernels.swapping import best_swap, new_scales
from kanon_spark.kernels.trie import plant

Ints = NDArray[np.int32]

NEIGHBOURS = 24
_HOT, _COLD = 0.6, 0.04  # allowance, in mean losses of a row, at the beginning and before the descent
_DESCENT = 0.15  # share of the work that allows nothing
_SWAPS = 0.75  # share of the work that goes into swaps
_MOST_CLASSES = 3  # that are ruined together


def anneal(problem: Problem, measured: Measured, class_of: Ints, *, work: float, seed: int) -> Ints:
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
    refined: Ints = _refine(
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


@njit(cache=True, nogil=True)
def _refine(rules, codes, rows, persons, k, class_of, placed, near, work, hot, cold, seed):  # type: ignore[no-untyped-def]
    np.random.seed(seed)
    count, width = codes.shape
    most = 0
    for s in range(count):
        most = max(most, class_of[s] + 1)
    # Classes as chained members. A class that is ruined gives its number back.
    head = np.full(count + 1, -1, np.int32)
    after = np.full(count, -1, np.int32)
    held = np.zeros(count + 1, np.int64)
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
    new_loss = np.empty(count)
    new_rows = np.empty(count, np.int64)
    waiting = np.empty(count, np.int32)
    total = np.empty(count)
    adds = np.empty((256, width))
    chosen = np.empty(_MOST_CLASSES, np.int32)
    scales = new_scales(rules)
    swapped = 0.0
    done = 0.0
    while done < work:
        done += 10.0
        share = done / work
        temperature = 0.0
        if share < 1.0 - _DESCENT:
            temperature = hot * (cold / hot) ** (share / (1.0 - _DESCENT))
        # The worse placed of two signatures.
        s = placed[np.random.randint(len(placed))]
        other = placed[np.random.randint(len(placed))]
        c, d = class_of[s], class_of[other]
        if loss[d] * max(1, held[c]) > loss[c] * max(1, held[d]):
            s, c = other, d
        if loss[c] <= EPSILON:
            continue
        if swapped <= _SWAPS * done:
            d = class_of[max(0, near[s, np.random.randint(near.shape[1])])]
            steps = 10.0
            if d >= 0 and d != c:
                allowed = loss[c] + loss[d] - temperature * np.log(1.0 - np.random.random())
                u, first, second, looked = best_swap(
                    rules, scales, codes, rows, persons, k, head, after, held, people, s, c, d
                )
                steps += 30.0 + looked
                if first + second < allowed:
                    _transfer(s, c, d, class_of, head, after, rows, persons, held, people)
                    if u >= 0:
                        _transfer(u, d, c, class_of, head, after, rows, persons, held, people)
                    loss[c] = first
                    loss[d] = second
            done += steps
            swapped += steps
            continue
        # The pool: its class and one to three of its neighbours'.
        chosen[0] = c
        classes = 1
        wanted = 2 + np.random.randint(_MOST_CLASSES - 1)
        for _ in range(2 * _MOST_CLASSES):
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
        if n > len(adds):
            adds = np.empty((2 * n, width))
        allowed = old - temperature * np.log(1.0 - np.random.random())
        made, reached, steps = _regrow(
            rules,
            codes,
            rows,
            persons,
            k,
            box,
            pool,
            n,
            free_people,
            allowed,
            waiting,
            adds,
            total,
            new_class,
            new_loss,
            new_rows,
        )
        done += steps
        if not reached < allowed:
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
            c = unused[spare - 1 - m]
            loss[c] = new_loss[m]
            held[c] = new_rows[m]
        for i in range(n):
            c = unused[spare - 1 - new_class[i]]
            s = pool[i]
            class_of[s] = c
            after[s] = head[c]
            head[c] = s
            people[c] += persons[s]
        spare -= made
    return class_of


@njit(cache=True)
def _transfer(s, giver, taker, class_of, head, after, rows, persons, held, people):  # type: ignore[no-untyped-def]
    """Signature s changes its class."""
    if head[giver] == s:
        head[giver] = after[s]
    else:
        x = head[giver]
        while after[x] != s:
            x = after[x]
        after[x] = after[s]
    after[s] = head[taker]
    head[taker] = s
    class_of[s] = taker
    held[giver] -= rows[s]
    held[taker] += rows[s]
    people[giver] -= persons[s]
    people[taker] += persons[s]


@njit(cache=True)
def _regrow(  # type: ignore[no-untyped-def]
    rules, codes, rows, persons, k, box, pool, n, free, allowed, waiting, adds, total, new_class, new_loss, new_rows
):
    """Grow new classes from random seeds of the pool; what cannot fill one joins where the loss rises least.

    What each of the pool would add is kept per QI: a signature that enters changes the box in one or two of them.

    Returns:
        How many classes were made, their loss (infinite, or at least `allowed`: given up), and the steps it took.
    """
    width = codes.shape[1]
    guarded = len(box.tally) > 0
    made = 0
    reached = 0.0
    steps = 0.0
    left = n
    for i in range(n):
        waiting[i] = i
    while free >= k:
        at = np.random.randint(left)
        entering = waiting[at]
        left -= 1
        waiting[at] = waiting[left]
        begin(rules, box, codes, pool[entering])
        box.changed[:] = True
        for i in range(left):
            total[waiting[i]] = 0.0
            for j in range(width):
                adds[waiting[i], j] = 0.0
        weight = 0
        inside = 0
        while True:
            new_class[entering] = made
            weight += rows[pool[entering]]
            inside += persons[pool[entering]]
            steps += price(rules, box, codes, pool, waiting, left, adds, total)
            # Whatever lies inside enters, too: it costs nothing more.
            best = -1
            least = np.inf
            keep = 0
            for i in range(left):
                w = waiting[i]
                y = pool[w]
                if total[w] <= EPSILON:
                    if guarded:
                        enter(rules, box, codes, y)
                    new_class[w] = made
                    weight += rows[y]
                    inside += persons[y]
                    continue
                if total[w] < least - EPSILON or (total[w] < least + EPSILON and persons[y] > persons[pool[best]]):
                    best = w
                    least = total[w]
                waiting[keep] = w
                keep += 1
            steps += left + 30.0
            left = keep
            if inside >= k or best < 0:
                break
            entering = best
            enter(rules, box, codes, pool[best])
            if guarded:
                box.changed[width - 1] = True
            for i in range(left):
                if waiting[i] == best:
                    left -= 1
                    waiting[i] = waiting[left]
                    break
        if inside < k:
            return made, np.inf, steps
        free -= inside
        new_loss[made] = loss_of(rules, box, weight)
        new_rows[made] = weight
        reached += new_loss[made]
        made += 1
        if reached >= allowed:
            return made, reached, steps
    if made == 0:
        return made, np.inf, steps
    if left:
        reached = _place_rest(
            rules, codes, rows, box, pool, n, waiting, left, made, adds, total, new_class, new_loss, new_rows
        )
        steps += (width + 10.0) * (n + left * made)
    return made, reached, steps


@njit(cache=True)
def _place_rest(rules, codes, rows, box, pool, n, rest, size, made, adds, total, new_class, new_loss, new_rows):  # type: ignore[no-untyped-def]
    """Let what is left join the new classes, each where the loss rises least as they stand; the loss of all of them."""
    into = np.full(size, -1, np.int32)
    least = np.full(size, np.inf)
    for m in range(made):
        _fill(rules, codes, box, pool, n, new_class, m)
        box.changed[:] = True
        for r in range(size):
            total[rest[r]] = 0.0
            for j in range(codes.shape[1]):
                adds[rest[r], j] = 0.0
        price(rules, box, codes, pool, rest, size, adds, total)
        for r in range(size):
            own = rows[pool[rest[r]]]
            more = total[rest[r]] * (new_rows[m] + own) + own * new_loss[m] / max(1, new_rows[m])
            if more < least[r]:
                least[r] = more
                into[r] = m
    for r in range(size):
        if into[r] < 0:
            return np.inf
        new_class[rest[r]] = into[r]
        new_rows[into[r]] += rows[pool[rest[r]]]
    total = 0.0
    for m in range(made):
        grew = False
        for r in range(size):
            grew = grew or into[r] == m
        if grew:
            _fill(rules, codes, box, pool, n, new_class, m)
            new_loss[m] = loss_of(rules, box, new_rows[m])
        total += new_loss[m]
    return total


@njit(cache=True)
def _fill(rules, codes, box, pool, n, new_class, m):  # type: ignore[no-untyped-def]
    """The box of new class m."""
    begun = False
    for i in range(n):
        if new_class[i] == m:
            if begun:
                enter(rules, box, codes, pool[i])
            else:
                begin(rules, box, codes, pool[i])
                begun = True
