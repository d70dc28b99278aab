"""The free signatures closest to one that starts a class, under distances that stay fixed while the class is filled.

Idea: distances add up over the QIs, so a trie (`trie.py`) is searched depth first, near children first, and cut at the
furthest signature that is still needed. Categories are looked up in a table. Children of a number stand in the order of
their values: the search goes outward from the starter's own value on both sides, and stops where a side is too far.

Cost: not bounded by theory (in high dimensions nothing is). One search finds all signatures of a class. All classes of
Adult (18,109 signatures, 8 QIs, k = 10) take 0.03 s. Numbers alone are the dear case, where a search sees the slice of
the first number within the radius of the class: 100,000 signatures of four unrelated numbers take 1 to 7 s.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

GRID = 2.0**32  # distances are multiples of 1/GRID, so that sums are exact and ties do not depend on the order of terms
_NEVER = 1e300  # below infinity: what must not be published together is never found
_UNSEEN = -1


class Axes(NamedTuple):
    """The QIs, categories first; slots are the values of all of them, one QI after the other."""

    base: Ints  # slots of QI j: base[j] … base[j+1]-1
    place: Floats  # per slot: where a number lies, in ranges of the table; never falls within a QI
    zone: Longs  # per slot: values of one QI in different zones must not meet
    weight: Floats  # per QI
    cardinality: Longs  # per QI: values that the whole table holds
    categoricals: int  # so many QIs, the first ones, are no numbers


class Search(NamedTuple):
    """Buffers: nodes still to be looked at, and the closest signatures so far, nearest first."""

    node: Ints
    cost: Floats
    left: Ints  # of a number: the next child on either side
    right: Ints
    near: Ints
    away: Floats


@njit(cache=True)
def new_search(trie):  # type: ignore[no-untyped-def]
    """Buffers for a trie and whatever is built again from it."""
    nodes, count = len(trie.first), len(trie.member)
    return Search(
        np.zeros(nodes + 1, np.int32),
        np.zeros(nodes + 1),
        np.zeros(nodes + 1, np.int32),
        np.zeros(nodes + 1, np.int32),
        np.zeros(count + 1, np.int32),
        np.zeros(count + 1),
    )


@njit(cache=True)
def on_grid(distance):  # type: ignore[no-untyped-def]
    """The nearest multiple of 1/GRID."""
    return np.rint(distance * GRID) / GRID


@njit(cache=True)
def apart(axes, j, one, other):  # type: ignore[no-untyped-def]
    """Distance of two slots of a number; at most the QI's weight."""
    return on_grid(min(1.0, abs(axes.place[one] - axes.place[other])) * axes.weight[j])


@njit(cache=True)
def find_closest(axes, trie, distance, persons, own, need, search):  # type: ignore[no-untyped-def]
    """How many of the closest free signatures hold `need` persons; they stand in `search.near`, ties by number.

    Args:
        axes: The QIs, in the order of the trie.
        trie: Knows who is free.
        distance: Per slot of the categories, its distance from the starter; infinite: must not meet.
        persons: Of each signature.
        own: Slots of the starter.
        need: Persons that are wanted, at least 1.
        search: Buffers.
    """
    child, child_end, depth = trie.child, trie.child_end, trie.depth
    value, free, zone = trie.value, trie.free, axes.zone
    node, price, left, right = search.node, search.cost, search.left, search.right
    size = 0
    held = 0
    limit = _NEVER
    node[0] = 0
    price[0] = 0.0
    left[0] = _UNSEEN
    top = 1
    while top:
        v = node[top - 1]
        cost = price[top - 1]
        level = depth[v]
        if cost > limit or child[v] == child_end[v] or level < axes.categoricals:
            top -= 1
            if cost > limit:
                continue
            if child[v] == child_end[v]:
                size, held, limit = _scan(axes, trie, distance, persons, own, need, search, v, cost, size, held, limit)
                continue
            begin = top
            for c in range(child[v], child_end[v]):
                more = cost + distance[value[c]]
                if free[c] == 0 or more > limit:
                    continue
                node[top] = c
                price[top] = more
                left[top] = _UNSEEN
                if top > begin and price[top - 1] < more:  # the nearest stays on top
                    node[top], node[top - 1] = node[top - 1], c
                    price[top], price[top - 1] = price[top - 1], more
                top += 1
            continue
        # A number: one child at a time, the nearer of the next ones to the left and right of the starter's value.
        at = top - 1
        if left[at] == _UNSEEN:
            right[at] = child[v] + np.searchsorted(value[child[v] : child_end[v]], own[level])
            left[at] = right[at] - 1
        while left[at] >= child[v] and free[left[at]] == 0:
            left[at] -= 1
        while right[at] < child_end[v] and free[right[at]] == 0:
            right[at] += 1
        below = apart(axes, level, value[left[at]], own[level]) if left[at] >= child[v] else np.inf
        above = apart(axes, level, value[right[at]], own[level]) if right[at] < child_end[v] else np.inf
        if cost + min(below, above) > limit:
            top -= 1
            continue
        if below < above:
            c = left[at]
            left[at] -= 1
        else:
            c = right[at]
            right[at] += 1
        if zone[value[c]] == zone[own[level]]:
            node[top] = c
            price[top] = cost + min(below, above)
            left[top] = _UNSEEN
            top += 1
    return size


@njit(cache=True)
def _scan(axes, trie, distance, persons, own, need, search, v, cost, size, held, limit):  # type: ignore[no-untyped-def]
    """Look at every free signature below node v, and keep the closest that are needed."""
    near, away, slot = search.near, search.away, trie.slot
    for i in range(trie.first[v], trie.last[v]):
        s = trie.member[i]
        if not trie.here[s]:
            continue
        total = cost
        for level in range(trie.depth[v], len(axes.weight)):
            x = slot[i, level]
            if level < axes.categoricals:
                total += distance[x]
            elif axes.zone[x] == axes.zone[own[level]]:
                total += apart(axes, level, x, own[level])
            else:
                total = np.inf
            if total > limit:
                break
        if total > limit or (held >= need and total == limit and s > near[size - 1]):
            continue
        at = size
        while at > 0 and (away[at - 1] > total or (away[at - 1] == total and near[at - 1] > s)):
            near[at] = near[at - 1]
            away[at] = away[at - 1]
            at -= 1
        near[at] = s
        away[at] = total
        size += 1
        held += persons[s]
        while held - persons[near[size - 1]] >= need:
            size -= 1
            held -= persons[near[size]]
        if held >= need:
            limit = away[size - 1]
    return size, held, limit
