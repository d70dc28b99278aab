"""Make classes cheaper where a guard is hard to satisfy: pour signatures from dear classes into a cheaper box.

Idea: closing cheap groups first uses up the rows that would balance others, and what is left needs dear company. So
classes are changed afterwards, many times: a random signature names a cheaper box that covers it, and a few classes
that are dearer and reach into that box. Of their members inside, as many are poured as leave all classes concerned good
(`balance.py`); they join the class of that box, or become a class of their own. Every pouring lowers the loss, and
neither k nor the guard is ever broken on the way. Signatures that are still open may be poured like those of a class
of which nothing is asked.

The box is that of a cheaper class that covers the signature, or its own class's with one or two QIs lowered, or one
with a few QIs raised and lowered at random.

Cost: one attempt looks at the boxes of all classes and the members of a few. The work is counted in steps of the inner
loops and limited by the caller, never by the clock; the random numbers are seeded.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.kernels.balance import enter, most_that_may_leave, new_balance
from kanon_spark.kernels.lattice import FREE
from kanon_spark.kernels.problem import Problem
from kanon_spark.kernels.stealing import box_nodes

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

_GIVERS = 3  # classes that are poured from at once
_CANDIDATES = 1_000  # signatures beyond which no further giver is asked
_JOIN, _LOWER = 0.4, 0.4  # shares of the attempts, by where the box comes from; the others draw it
_BLUR = 0.02
_LEAST = 1e-9  # gain per row that is worth a change


class _Given(NamedTuple):
    """The problem, as compiled code takes it."""

    codes: Ints
    rows: Longs
    persons: Longs
    k: int
    start: Ints
    parent: Ints
    lo: Ints
    hi: Ints
    loss: Floats


class _Classes(NamedTuple):
    """Classes as chained members; the last number is that of the open signatures.

    Attributes:
        head: First member of each class, -1 where it has none.
        after: The member after each signature.
        size: Signatures of each class.
        cost: Loss per row of each class.
        nodes: Box of each class.
        live: Numbers of the classes that have members.
        where: Place of each class in `live`.
        unused: Numbers that are not in use.
        counts: How many of `live` and `unused` there are.
    """

    head: Ints
    after: Ints
    size: Longs
    cost: Floats
    nodes: Ints
    live: Ints
    where: Ints
    unused: Ints
    counts: Longs


def pour(problem: Problem, class_of: Ints, *, work: float, seed: int, open_cost: float | None = None) -> Ints:
    """Make good classes cheaper with a fixed amount of work; all stay good, and the loss never rises.

    Args:
        problem: Signatures, trees, k and a guard that asks something.
        class_of: Class of each signature, all of them good; FREE for none.
        work: Steps of the inner loops to spend; a core does some 10^8 of them a second.
        seed: Seed of the random choices.
        open_cost: What a free row costs: only classes cheaper than that are formed of them. None: they stay free.
    """
    movable = problem.size if open_cost is not None else int((class_of >= 0).sum())
    if work <= 0 or not movable or not problem.guard.asks:
        return class_of
    forest = problem.forest
    given = _Given(
        problem.codes, problem.rows, problem.persons, max(1, problem.k),
        forest.start, forest.parent, forest.lo, forest.hi, forest.loss,
    )  # fmt: skip
    return _pour(given, problem.guard, class_of.copy(), -1.0 if open_cost is None else open_cost, work, seed)  # type: ignore[no-any-return]


@njit(cache=True, nogil=True)
def _pour(given, guard, class_of, open_cost, work, seed):  # type: ignore[no-untyped-def]
    np.random.seed(seed)
    count, width = given.codes.shape
    opened = count
    if open_cost >= 0:
        for s in range(count):
            if class_of[s] < 0:
                class_of[s] = opened
    buffer = np.empty(count, np.int32)
    pool = np.empty(count, np.int32)
    classes = _gathered(given, class_of, open_cost, pool)
    box = np.empty(width, np.int32)
    givers = np.empty(_GIVERS, np.int32)
    giver = np.empty(count, np.int32)
    chosen = np.empty(count, np.bool_)
    spent = 0.0
    while spent < work:
        s = np.random.randint(count)
        own = class_of[s]
        spent += 10
        if own < 0:
            continue
        taker, steps = _choose_box(given, classes, s, own, box)
        spent += steps
        cost = 0.0
        for j in range(width):
            cost += given.loss[box[j]]
        if not cost < classes.cost[own] - _LEAST:
            continue
        n, asked, steps = _find_candidates(given, classes, own, taker, box, cost, pool, giver, givers)
        spent += steps
        # The members of all classes concerned; candidates already stand with the taker.
        size = 0
        for i in range(asked + 1):
            c = givers[i] if i < asked else taker
            if c >= 0:
                x = classes.head[c]
                while x >= 0:
                    buffer[size] = x
                    size += 1
                    x = classes.after[x]
        balance = new_balance(guard, buffer[:size], asked + 1)
        candidate = np.empty(n, np.int32)
        people = np.empty(n, np.int64)
        gain = np.zeros(asked + 1)
        always = np.zeros(asked + 1, np.bool_)
        at = 0
        found = 0
        for i in range(asked + 1):
            c = givers[i] if i < asked else taker
            if i < asked:
                gain[i] = classes.cost[c] - cost
                always[i] = c == opened
            for _ in range(classes.size[c] if c >= 0 else 0):
                into = i
                if found < n and buffer[at] == pool[found]:
                    candidate[found] = at
                    people[found] = given.persons[buffer[at]]
                    found += 1
                    into = asked
                enter(balance, at, into, given.persons[buffer[at]], 1)
                at += 1
        spent += 6 * size
        fits, steps = most_that_may_leave(
            guard.demands, balance, given.k, candidate, people, giver, gain, always, _BLUR, chosen
        )
        spent += steps
        if not fits:
            continue
        if taker < 0:
            classes.counts[1] -= 1
            taker = classes.unused[classes.counts[1]]
        for i in range(n):
            if chosen[i]:
                class_of[pool[i]] = taker
        for i in range(asked + 1):
            c = givers[i] if i < asked else taker
            classes.head[c] = -1
            classes.size[c] = 0
        for x in buffer[:size]:
            _chain(classes, class_of[x], x)
        for i in range(asked + 1):
            _measure(given, classes, givers[i] if i < asked else taker, pool)
        spent += 6 * size
    # Numbers without gaps, by first member.
    name = np.full(count + 1, -1, np.int32)
    made = 0
    for s in range(count):
        c = class_of[s]
        if c == opened or c < 0:
            class_of[s] = FREE
            continue
        if name[c] < 0:
            name[c] = made
            made += 1
        class_of[s] = name[c]
    return class_of


@njit(cache=True)
def _gathered(given, class_of, open_cost, room):  # type: ignore[no-untyped-def]
    """The classes as they are."""
    count, width = given.codes.shape
    numbers = count + 1
    classes = _Classes(
        np.full(numbers, -1, np.int32), np.full(count, -1, np.int32), np.zeros(numbers, np.int64),
        np.zeros(numbers), np.zeros((numbers, width), np.int32),
        np.empty(numbers, np.int32), np.full(numbers, -1, np.int32), np.empty(numbers, np.int32), np.zeros(2, np.int64),
    )  # fmt: skip
    classes.cost[count] = open_cost
    for j in range(width):
        classes.nodes[count, j] = given.start[j + 1] - 1
    for s in range(count):
        if class_of[s] >= 0:
            _chain(classes, class_of[s], s)
    for c in range(numbers - 1, -1, -1):
        if classes.size[c] > 0:
            _measure(given, classes, c, room)
        elif c < count:
            classes.unused[classes.counts[1]] = c
            classes.counts[1] += 1
    return classes


@njit(cache=True)
def _chain(classes, c, s):  # type: ignore[no-untyped-def]
    classes.after[s] = classes.head[c]
    classes.head[c] = s
    classes.size[c] += 1


@njit(cache=True)
def _measure(given, classes, c, room):  # type: ignore[no-untyped-def]
    """Box and cost of a class whose members have changed, and whether it still is one."""
    counts, live, where = classes.counts, classes.live, classes.where
    opened = len(classes.head) - 1
    if classes.size[c] == 0:
        counts[0] -= 1
        last = live[counts[0]]
        live[where[c]] = last
        where[last] = where[c]
        where[c] = -1
        if c != opened:
            classes.unused[counts[1]] = c
            counts[1] += 1
        return
    if where[c] < 0:
        live[counts[0]] = c
        where[c] = counts[0]
        counts[0] += 1
    if c == opened:
        return
    size = 0
    x = classes.head[c]
    while x >= 0:
        room[size] = x
        size += 1
        x = classes.after[x]
    box_nodes(room, size, given.codes, given.start, given.parent, given.hi, classes.nodes[c])
    classes.cost[c] = 0.0
    for j in range(given.codes.shape[1]):
        classes.cost[c] += given.loss[classes.nodes[c, j]]


@njit(cache=True)
def _choose_box(given, classes, s, own, box):  # type: ignore[no-untyped-def]
    """A box that covers signature s, perhaps a cheaper one than its class's, into `box`.

    Returns:
        The class whose box it is, -1 for a new class; and the steps it took.
    """
    width = given.codes.shape[1]
    box[:] = classes.nodes[own]
    kind = np.random.random()
    if kind < _JOIN:
        taker = -1
        seen = 0
        for i in range(classes.counts[0]):
            c = classes.live[i]
            cheaper = c != len(classes.head) - 1 and classes.cost[c] < classes.cost[own] - _LEAST
            if cheaper and _covers(given, classes.nodes[c], s):
                seen += 1
                if np.random.random() * seen < 1.0:
                    taker = c
        if taker >= 0:
            box[:] = classes.nodes[taker]
        return taker, 3 * classes.counts[0]
    lowers = kind < _JOIN + _LOWER
    changes = 1 + np.random.randint(2) if lowers else 2 + np.random.randint(3)
    for _ in range(changes):
        j = np.random.randint(width)
        leaf = given.start[j] + given.codes[s, j]
        top = box[j] if lowers else given.start[j + 1] - 1
        height = 0
        v = leaf
        while v != top:
            v = given.parent[v]
            height += 1
        if not lowers:
            height += 1  # the top is one of the choices
        if height > 0:
            v = leaf
            for _up in range(np.random.randint(height)):
                v = given.parent[v]
            box[j] = v
    return -1, 40


@njit(cache=True)
def _covers(given, nodes, s):  # type: ignore[no-untyped-def]
    for j in range(len(nodes)):
        x = given.codes[s, j]
        if x < given.lo[nodes[j]] or x >= given.hi[nodes[j]]:
            return False
    return True


@njit(cache=True)
def _find_candidates(given, classes, own, taker, box, cost, pool, giver, givers):  # type: ignore[no-untyped-def]
    """Members inside the box, of class `own` and some others that are dearer than it.

    Returns:
        How many candidates there are (in `pool`, their class's place in `giver`), of how many classes (in `givers`),
        and the steps it took.
    """
    live = classes.counts[0]
    first = np.random.randint(live)
    n = 0
    asked = 0
    steps = 0
    for i in range(-1, live):
        c = own if i < 0 else classes.live[(first + i) % live]
        if (i >= 0 and c == own) or c == taker or classes.cost[c] <= cost + _LEAST:
            continue
        steps += 3
        if not _meet(given, classes.nodes[c], box):
            continue
        if asked == _GIVERS or n >= _CANDIDATES:
            break
        before = n
        x = classes.head[c]
        while x >= 0:
            if _covers(given, box, x):
                pool[n] = x
                giver[n] = asked
                n += 1
            x = classes.after[x]
        steps += 3 * classes.size[c]
        if n > before:
            givers[asked] = c
            asked += 1
    return n, asked, steps


@njit(cache=True)
def _meet(given, one, other):  # type: ignore[no-untyped-def]
    """Whether two boxes have something in common: of two nodes of a tree one then covers the other."""
    for j in range(len(one)):
        if given.lo[one[j]] >= given.hi[other[j]] or given.hi[one[j]] <= given.lo[other[j]]:
            return False
    return True
