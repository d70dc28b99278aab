"""Make classes of sets, ranges and hierarchy nodes cheaper: swap signatures, ruin a few classes and build them again.

Idea: a badly placed signature either moves into a neighbour's class or changes places with one of its members (see
`swapping.py`), or it names its own class and those of one to three of its neighbours. Their members are pooled and
grown again from random seeds by cheapest insertion (or nearly cheapest, where there is work to try that); whatever lies
inside a box enters it at once. New classes are kept if they cost less than the old ones plus a random allowance, which
shrinks as the work is spent (simulated annealing) and is nothing in the end (descent). The allowance is drawn before
the building, so that a hopeless attempt stops early. Nothing is done that would leave a class whose guard refuses it.

Cost: a round looks at the members of two to four classes. The work is counted in evaluations of a value against a box
and limited by the caller as a function of the size, never by the clock; the random numbers are seeded.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.kernels.box import EPSILON, begin, enter, loss_of, new_box
from kanon_spark.kernels.kmember import FREE, neighbours
from kanon_spark.kernels.measure import Measured
from kanon_spark.kernels.problem import Problem
from kanon_spark.kernels.regrowing import regrow
from kanon_spark.kernels.shortfall import new_tally
from kanon_spark.kernels.swapping import best_swap, new_scales
from kanon_spark.kernels.trie import plant

Ints = NDArray[np.int32]

NEIGHBOURS = 24
_MOST_CLASSES = 4  # that are ruined together, in any schedule


class Schedule(NamedTuple):
    """How the work is spent.

    Attributes:
        hot, cold: Mean allowance, in mean losses of a row, at the beginning and before the descent.
        descent: Share of the work that allows nothing.
        swaps: Share of the work that goes into swaps.
        classes: The most classes that are ruined together.
        blur: How much, at the most, a class that is grown again prefers at random what adds more.
    """

    hot: float
    cold: float
    descent: float
    swaps: float
    classes: int
    blur: float


# Little work must not be wasted on detours; much work finds its way out of wider valleys, if it begins hot enough.
BRIEF = Schedule(hot=0.6, cold=0.04, descent=0.15, swaps=0.75, classes=3, blur=0.0)
PATIENT = Schedule(hot=1.5, cold=0.1, descent=0.1, swaps=0.5, classes=4, blur=1.0)


def anneal(
    problem: Problem,
    measured: Measured,
    class_of: Ints,
    *,
    work: float,
    seed: int,
    schedule: Schedule = BRIEF,
    near: Ints | None = None,
) -> Ints:
    """Improve the classes with a fixed amount of work; none falls under k, what is FREE stays so, the loss never rises.

    Classes that the problem's guard accepts are such afterwards, too.

    Args:
        problem: What is being solved.
        measured: Its measure.
        class_of: Class of each signature.
        work: Evaluations to spend; a core does some 10^8 of them a second.
        seed: Seed of the random choices.
        schedule: How the work is spent.
        near: What `near_each` says of the placed signatures, where that is known already.
    """
    placed = np.flatnonzero(class_of != FREE).astype(np.int32)
    if work <= 0 or class_of.max(initial=FREE) < 1:
        return class_of
    before = measured.total(class_of, problem.rows, suppressed=0.0)
    if before <= EPSILON:
        return class_of
    if near is None:
        near = near_each(problem, measured, placed)
    mean = before / max(1, int(problem.rows[placed].sum()))
    refined: Ints = _refine(
        measured.rules,
        measured.codes,
        problem.rows,
        problem.persons,
        problem.k,
        problem.guard.compiled,
        class_of.copy(),
        placed,
        near,
        work,
        mean,
        schedule,
        seed,
    )
    return refined if measured.total(refined, problem.rows, suppressed=0.0) < before else class_of


def near_each(problem: Problem, measured: Measured, placed: Ints) -> Ints:
    """The placed signatures that are nearest to each placed one; -1 where there are fewer, and for all others."""
    near = np.full((problem.size, NEIGHBOURS), -1, np.int32)
    near[placed] = neighbours(measured, plant(measured, placed), placed, problem.persons, NEIGHBOURS)
    return near


@njit(cache=True, nogil=True)
def _refine(rules, codes, rows, persons, k, guard, class_of, placed, near, work, mean, schedule, seed):  # type: ignore[no-untyped-def]
    np.random.seed(seed)
    hot, cold = mean * schedule.hot, mean * schedule.cold
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
    tally = new_tally(guard)
    early = False
    swapped = 0.0
    done = 0.0
    while done < work:
        done += 10.0
        share = done / work
        temperature = 0.0
        if share < 1.0 - schedule.descent:
            temperature = hot * (cold / hot) ** (share / (1.0 - schedule.descent))
        # The worse placed of two signatures.
        s = placed[np.random.randint(len(placed))]
        other = placed[np.random.randint(len(placed))]
        c, d = class_of[s], class_of[other]
        if loss[d] * max(1, held[c]) > loss[c] * max(1, held[d]):
            s, c = other, d
        if loss[c] <= EPSILON:
            continue
        if swapped <= schedule.swaps * done:
            d = class_of[max(0, near[s, np.random.randint(near.shape[1])])]
            steps = 10.0
            if d >= 0 and d != c:
                allowed = loss[c] + loss[d] - temperature * np.log(1.0 - np.random.random())
                u, first, second, looked = best_swap(
                    rules, scales, codes, rows, persons, k, guard, head, after, held, people, s, c, d, allowed, pool
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
        # The pool: its class and a few of its neighbours'.
        chosen[0] = c
        classes = 1
        wanted = 2 + np.random.randint(schedule.classes - 1)
        for _ in range(2 * schedule.classes):
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
        n = np.int64(0)  # a bare 0 would be a type of its own, for which `regrow` is compiled, too
        free_people = np.int64(0)
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
        early = not early
        allowed = old - temperature * np.log(1.0 - np.random.random())
        made, reached, steps = regrow(
            rules,
            codes,
            rows,
            persons,
            k,
            guard,
            tally,
            early,
            box,
            pool,
            n,
            free_people,
            allowed,
            schedule.blur,
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
