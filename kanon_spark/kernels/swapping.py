"""Two classes, one signature between them: would they cost less if it moved, or changed places with another?

Idea: per QI, a class's loss follows from its least and largest code and, for sets, from how many values it holds. With
the second least and second largest beside them, and a count per value, the loss of the class *without* any one member
follows at once, too. So one look at the members of both classes prices the move and every swap.

Cost: members of both classes times QIs; a hundredth of building the two classes anew.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.kernels.box import LABEL, NODE, RANGE
from kanon_spark.kernels.guard import accepts, asks

_LARGEST = np.iinfo(np.int32).max
_REFUSAL = 400  # evaluations that take as long as to ask a guard about two classes


class Scales(NamedTuple):
    """Where the classes of a swap are weighed: per QI what the one holds without its signature, the other with it."""

    least: NDArray[np.int32]  # rows: giver without it; taker with it; the taker's second least
    most: NDArray[np.int32]
    values: NDArray[np.int32]
    holders: NDArray[np.int32]  # rows: giver, taker; how many members hold each value
    tally: NDArray[np.float64]  # rows: giver, taker, trial; rows of each label


@njit(cache=True)
def new_scales(rules):  # type: ignore[no-untyped-def]
    """Empty scales."""
    width = len(rules.kind)
    return Scales(
        np.zeros((3, width), np.int32),
        np.zeros((3, width), np.int32),
        np.zeros((2, width), np.int32),
        np.zeros((2, rules.base[width]), np.int32),
        np.zeros((3, rules.shares.shape[1])),
    )


@njit(cache=True)
def best_swap(  # type: ignore[no-untyped-def]
    rules, scales, codes, rows, persons, k, guard, head, after, held, people, s, giver, taker, allowed, members
):
    """What signature s of the giver should change places with in the taker.

    A guard is asked only about what costs less than is allowed and than the best so far.

    Returns:
        The partner (-1: none, s just moves), the loss of the giver and of the taker after it (infinite: no way), and
        how many values were looked at; what the guard has refused counts as many as take the same time.
    """
    asked = asks(guard)
    refused = 0
    kind, null, bases, steps = rules.kind, rules.null, rules.base, rules.step
    weights, places = rules.weight, rules.place
    start, parent, hi, loss = rules.start, rules.parent, rules.hi, rules.loss
    shares, penalty = rules.shares, rules.penalty
    least, most, values, holders, tally = scales.least, scales.most, scales.values, scales.holders, scales.tally
    width = len(kind)
    labels = shares.shape[1]
    weighed = _weigh(kind, bases, codes, shares, head[giver], after, s, -1, 0, scales)
    if weighed == 0:
        _clear(kind, bases, codes, head[giver], after, s, holders[0])
        return -1, np.inf, np.inf, 0
    weighed += _weigh(kind, bases, codes, shares, head[taker], after, -1, s, 1, scales)

    best = np.inf
    partner = -1
    best_giver = np.inf
    best_taker = np.inf
    own_rows, own_persons = rows[s], persons[s]
    u = -1  # first the plain move, then each member of the taker as a partner
    while True:
        more_rows = rows[u] if u >= 0 else 0
        more_persons = persons[u] if u >= 0 else 0
        if people[giver] - own_persons + more_persons >= k and people[taker] + own_persons - more_persons >= k:
            giver_cost = 0.0
            taker_cost = 0.0
            for j in range(width):
                if kind[j] == LABEL:
                    continue
                low, high, number = least[0, j], most[0, j], values[0, j]
                low2, high2, number2 = least[1, j], most[1, j], values[1, j]
                base = bases[j]
                if u >= 0:
                    x = codes[u, j]
                    low = min(low, x)
                    high = max(high, x)
                    if holders[0, base + x] == 0:
                        number += 1
                    if x == low2:
                        low2 = least[2, j]
                    if x == high2:
                        high2 = most[2, j]
                    if holders[1, base + x] == 1:
                        number2 -= 1
                if kind[j] == NODE:
                    v = start[j] + low
                    while hi[v] <= high:
                        v = parent[v]
                    giver_cost += loss[v]
                    v = start[j] + low2
                    while hi[v] <= high2:
                        v = parent[v]
                    taker_cost += loss[v]
                elif kind[j] == RANGE:
                    if low < high:
                        giver_cost += weights[j] if high == null[j] else places[base + high] - places[base + low]
                    if low2 < high2:
                        taker_cost += weights[j] if high2 == null[j] else places[base + high2] - places[base + low2]
                else:
                    if low < high:
                        giver_cost += weights[j] if high == null[j] else steps[j] * number
                    if low2 < high2:
                        taker_cost += weights[j] if high2 == null[j] else steps[j] * number2
            giver_rows = held[giver] - own_rows + more_rows
            taker_rows = held[taker] + own_rows - more_rows
            giver_loss = giver_cost * giver_rows
            taker_loss = taker_cost * taker_rows
            if labels:
                giver_loss += penalty * _minority(tally[0], shares, u, 1.0, tally[2])
                taker_loss += penalty * _minority(tally[1], shares, u, -1.0, tally[2])
            better = giver_loss + taker_loss < best
            if better and asked:
                better = giver_loss + taker_loss < allowed
                if better and not (
                    _accepted(guard, head[giver], after, s, u, members)
                    and _accepted(guard, head[taker], after, u, s, members)
                ):
                    refused += 1
                    better = False
            if better:
                best = giver_loss + taker_loss
                best_giver, best_taker = giver_loss, taker_loss
                partner = u
        u = head[taker] if u < 0 else after[u]
        if u < 0:
            break
    _clear(kind, bases, codes, head[giver], after, s, holders[0])
    _clear(kind, bases, codes, head[taker], after, s, holders[1])
    return partner, best_giver, best_taker, 2 * weighed * width + _REFUSAL * refused


@njit(cache=True)
def _accepted(guard, first, after, goes, comes, members):  # type: ignore[no-untyped-def]
    """Whether a class is accepted once one member has gone and another come (-1: none)."""
    size = 0
    y = first
    while y >= 0:
        if y != goes:
            members[size] = y
            size += 1
        y = after[y]
    if comes >= 0:
        members[size] = comes
        size += 1
    return accepts(guard, members[:size])


@njit(cache=True)
def _weigh(kind, bases, codes, shares, first, after, without, extra, side, scales):  # type: ignore[no-untyped-def]
    """Put a class on its side of the scales: its members but one, and one more; how many they are."""
    width = len(kind)
    least, most, values, holders, tally = scales.least, scales.most, scales.values, scales.holders, scales.tally
    for j in range(width):
        least[side, j] = _LARGEST
        most[side, j] = -1
        values[side, j] = 0
        if side == 1:
            least[2, j] = _LARGEST
            most[2, j] = -1
    tally[side, :] = 0.0
    members = 0
    y = extra if extra >= 0 else first
    while y >= 0:
        if y != without:
            members += 1
            for j in range(width):
                x = codes[y, j]
                if side == 1:
                    if x <= least[1, j]:
                        least[2, j] = least[1, j]
                    elif x < least[2, j]:
                        least[2, j] = x
                    if x >= most[1, j]:
                        most[2, j] = most[1, j]
                    elif x > most[2, j]:
                        most[2, j] = x
                least[side, j] = min(least[side, j], x)
                most[side, j] = max(most[side, j], x)
                at = bases[j] + x
                if holders[side, at] == 0:
                    values[side, j] += 1
                holders[side, at] += 1
            for label in range(shares.shape[1]):
                tally[side, label] += shares[y, label]
        y = first if y == extra else after[y]
    return members


@njit(cache=True)
def _clear(kind, bases, codes, first, after, s, holders):  # type: ignore[no-untyped-def]
    """Take the counts of a class, and of s, off the scales."""
    for j in range(len(kind)):
        holders[bases[j] + codes[s, j]] = 0
        y = first
        while y >= 0:
            holders[bases[j] + codes[y, j]] = 0
            y = after[y]


@njit(cache=True)
def _minority(tally, shares, u, sign, trial):  # type: ignore[no-untyped-def]
    """Rows outside the majority once u has come (sign 1) or gone (-1)."""
    held = 0.0
    top = 0.0
    for label in range(len(tally)):
        trial[label] = tally[label] + (sign * shares[u, label] if u >= 0 else 0.0)
        held += trial[label]
        top = max(top, trial[label])
    return held - top
