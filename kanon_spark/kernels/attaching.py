"""What greedy clustering has left over joins the class whose total loss rises least, of those that stay good.

Idea: a class that takes in somebody keeps its k persons, but its guard may refuse: then the next cheapest class is
asked. Many leftovers look at the classes of their neighbours alone, at those of more neighbours where all of these
refuse, and at every class where that is affordable or nothing nearby may be published with them.

Cost: per leftover and class that is looked at, one pass over the members; a guard is asked only about what is cheaper
than the best so far.
"""

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.kernels.box import EPSILON, begin, enter, loss_of, new_box
from kanon_spark.kernels.guard import accepts, asks
from kanon_spark.kernels.kmember import FREE, neighbours
from kanon_spark.kernels.measure import Measured
from kanon_spark.kernels.problem import Problem
from kanon_spark.kernels.trie import plant

Ints = NDArray[np.int32]

_SCAN_ALL = 64  # so many leftovers look at every class; more of them only at the classes of their neighbours
_NEIGHBOURS = (24, 192, 1536)  # of those; the more where a guard has refused the classes of fewer
_AFFORDABLE = 2_000_000  # leftovers times classes that are looked at in the end


def attach(problem: Problem, measured: Measured, class_of: Ints) -> Ints:
    """Let each free signature join the class whose total loss rises least; in place, and returned.

    A signature that no class may take (infinite loss, no class at all, or all of them refused by the guard) stays FREE:
    it has to be suppressed.
    """
    rest = np.flatnonzero(class_of == FREE).astype(np.int32)
    if not len(rest) or class_of.max(initial=FREE) < 0:
        return class_of
    # Largest first: what many rows share should choose before the classes grow.
    rest = rest[np.lexsort((rest, -problem.rows[rest]))]
    for count in _NEIGHBOURS if len(rest) > _SCAN_ALL else ():
        placed = plant(measured, np.flatnonzero(class_of != FREE).astype(np.int32))
        near = neighbours(measured, placed, rest, problem.persons, count)
        _join(problem, measured, rest, near, class_of)
        rest = rest[class_of[rest] == FREE]
        if not problem.guard.asks or not len(rest):
            return class_of
    if len(rest) * int(class_of.max() + 1) <= _AFFORDABLE:
        # Who has been refused may fit once others have joined.
        while _join(problem, measured, rest, np.zeros((len(rest), 0), np.int32), class_of):
            rest = rest[class_of[rest] == FREE]
    return class_of


def _join(problem: Problem, measured: Measured, rest: Ints, near: Ints, class_of: Ints) -> bool:
    """Whether somebody has joined after the guard had refused another."""
    return _attach(  # type: ignore[no-any-return]
        measured.rules, measured.codes, problem.rows, problem.guard.compiled, rest, near, class_of
    )


@njit(cache=True, nogil=True)
def _attach(rules, codes, rows, guard, rest, near, class_of):  # type: ignore[no-untyped-def]
    asked = asks(guard)
    members = np.empty(len(class_of), np.int32)
    count = 0
    for s in range(len(class_of)):
        count = max(count, class_of[s] + 1)
    head = np.full(count, -1, np.int32)
    after = np.full(len(class_of), -1, np.int32)
    held = np.zeros(count, np.int64)
    loss = np.zeros(count)
    for s in range(len(class_of) - 1, -1, -1):
        c = class_of[s]
        if c >= 0:
            after[s] = head[c]
            head[c] = s
            held[c] += rows[s]
    box = new_box(rules)
    for c in range(count):
        if head[c] >= 0:
            _fill(rules, box, codes, head, after, c)
            loss[c] = loss_of(rules, box, held[c])
    seen = np.full(count, -1, np.int32)
    refused = False
    worth_another = False
    for i in range(len(rest)):
        s = rest[i]
        best, chosen = np.inf, -1
        everyone = near.shape[1] == 0
        refused_here = False
        for _ in range(2):
            for n in range(count if everyone else near.shape[1]):
                c = n if everyone else (class_of[near[i, n]] if near[i, n] >= 0 else -1)
                if c < 0 or head[c] < 0 or (not everyone and seen[c] == i):
                    continue
                seen[c] = i
                _fill(rules, box, codes, head, after, c)
                enter(rules, box, codes, s)
                more = loss_of(rules, box, held[c] + rows[s]) - loss[c]
                if more < best - EPSILON:
                    if asked and not _stays_good(guard, head, after, c, s, members):
                        refused_here = True
                    else:
                        best, chosen = more, c
            if chosen >= 0 or everyone or refused_here:
                break
            everyone = True  # nothing nearby may take it
        if chosen >= 0:
            class_of[s] = chosen
            after[s] = head[chosen]
            head[chosen] = s
            held[chosen] += rows[s]
            loss[chosen] += best
            worth_another = worth_another or refused
        elif refused_here:
            refused = True
    return worth_another


@njit(cache=True)
def _stays_good(guard, head, after, c, s, members):  # type: ignore[no-untyped-def]
    """Whether class c is still accepted once signature s has joined it."""
    members[0] = s
    size = 1
    y = head[c]
    while y >= 0:
        members[size] = y
        size += 1
        y = after[y]
    return accepts(guard, members[:size])


@njit(cache=True)
def _fill(rules, box, codes, head, after, c):  # type: ignore[no-untyped-def]
    s = head[c]
    begin(rules, box, codes, s)
    s = after[s]
    while s >= 0:
        enter(rules, box, codes, s)
        s = after[s]
