"""The signature that is cheapest to add, without looking at all of them: a trie searched depth first.

Idea: what a value adds to a class (`measure.rise`) adds up along a path of the trie, so a depth-first search that tries
the class's own values first and cuts at the best so far sees a few dozen nodes instead of all signatures. The same
search finds the nearest neighbours of a signature, and with upper bounds the furthest one.

Cost: not bounded by theory (in high dimensions nothing is); a search sees some dozens of nodes on tables of a million
signatures.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.kernels.box import EPSILON, LABEL, NODE, SET, rise
from kanon_spark.kernels.trie import Trie

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]

_NEVER = 1e300  # below infinity: what must not be published is never found


class Search(NamedTuple):
    """Buffers of a search, and the heap of the nearest signatures that it found."""

    node: Ints
    cost: Floats
    own: Ints
    heap: Ints
    away: Floats
    size: NDArray[np.int64]


def new_search(trie: Trie, capacity: int) -> Search:
    """Buffers for a trie and for up to `capacity` nearest signatures."""
    return buffers(trie, capacity)  # type: ignore[no-any-return]


@njit(cache=True)
def buffers(trie, capacity):  # type: ignore[no-untyped-def]
    """Buffers for a trie and for up to `capacity` nearest signatures."""
    nodes = len(trie.first)
    return Search(
        np.zeros(nodes + 1, np.int32),
        np.zeros(nodes + 1),
        np.zeros(nodes + 1, np.int32),
        np.zeros(capacity + 1, np.int32),
        np.zeros(capacity + 1),
        np.zeros(1, np.int64),
    )


@njit(cache=True)
def nearest(rules, trie, box, persons, room, search):  # type: ignore[no-untyped-def]
    """The free signature that adds least to the (tabulated) box, and what it adds; -1: none may enter.

    Among equals the one of most persons that does not exceed `room`, else the one of fewest, then the first by code.
    """
    # Everything that the loop reads is a local array: reading a member of a tuple counts references, each time.
    order, narrow, base, table = trie.order, rules.narrow, rules.base, box.table
    first, last, child, child_end, depth = trie.first, trie.last, trie.child, trie.child_end, trie.depth
    value, free, member, slot, here = trie.value, trie.free, trie.member, trie.slot, trie.here
    node, price, own_child = search.node, search.cost, search.own
    width = len(order)
    best = np.inf
    found = -1
    node[0] = 0
    price[0] = 0.0
    top = 1 if free[0] > 0 else 0
    limit = _NEVER
    while top:
        top -= 1
        v = node[top]
        cost = price[top]
        if cost > limit:
            continue
        level = depth[v]
        if child[v] < child_end[v]:
            # Children inside the box are pushed last and so looked at first.
            j = order[level]
            own = 0
            for c in range(child[v], child_end[v]):
                if free[c] == 0:
                    continue
                more = table[value[c]] if narrow[j] else rise(rules, box, j, value[c] - base[j])
                if more <= 0.0:
                    own_child[own] = c
                    own += 1
                elif cost + more <= limit:
                    node[top] = c
                    price[top] = cost + more
                    top += 1
            for i in range(own):
                node[top] = own_child[i]
                price[top] = cost
                top += 1
            continue
        for i in range(first[v], last[v]):
            s = member[i]
            if not here[s]:
                continue
            total = cost
            for below in range(level, width):
                j = order[below]
                total += table[slot[i, below]] if narrow[j] else rise(rules, box, j, slot[i, below] - base[j])
                if total > limit:
                    break
            if total > limit:
                continue
            if found < 0 or total < best - EPSILON or fits_better(persons, s, found, room):
                best = total
                found = s
                limit = best + EPSILON
    return found, best


@njit(cache=True)
def fits_better(persons, s, other, room):  # type: ignore[no-untyped-def]
    """Whether s is rather taken than an equally cheap one: the largest that fits, else the smallest, then the first."""
    fits, other_fits = persons[s] <= room, persons[other] <= room
    if fits != other_fits:
        return fits
    if persons[s] != persons[other]:
        return (persons[s] > persons[other]) == fits
    return s < other


@njit(cache=True)
def gather(rules, trie, box, persons, need, least, search):  # type: ignore[no-untyped-def]
    """The signatures nearest to the (tabulated) box: `least` of them, or, if that is 0, until they hold `need` persons.

    They stand in the search's heap (size[0] of them), the furthest on top. Their persons are returned.
    """
    order, narrow, base, table = trie.order, rules.narrow, rules.base, box.table
    first, last, child, child_end, depth = trie.first, trie.last, trie.child, trie.child_end, trie.depth
    value, free, member, slot, here = trie.value, trie.free, trie.member, trie.slot, trie.here
    node, price, own_child, heap, away = search.node, search.cost, search.own, search.heap, search.away
    width = len(order)
    size = 0
    held = 0
    limit = _NEVER
    node[0] = 0
    price[0] = 0.0
    top = 1 if free[0] > 0 else 0
    while top:
        top -= 1
        v = node[top]
        cost = price[top]
        if cost >= limit:
            continue
        level = depth[v]
        if child[v] < child_end[v]:
            j = order[level]
            own = 0
            for c in range(child[v], child_end[v]):
                if free[c] == 0:
                    continue
                more = table[value[c]] if narrow[j] else rise(rules, box, j, value[c] - base[j])
                if more <= 0.0:
                    own_child[own] = c
                    own += 1
                elif cost + more < limit:
                    node[top] = c
                    price[top] = cost + more
                    top += 1
            for i in range(own):
                node[top] = own_child[i]
                price[top] = cost
                top += 1
            continue
        for i in range(first[v], last[v]):
            s = member[i]
            if not here[s] or (least == 0 and persons[s] == 0):
                continue
            total = cost
            for below in range(level, width):
                j = order[below]
                total += table[slot[i, below]] if narrow[j] else rise(rules, box, j, slot[i, below] - base[j])
                if total >= limit:
                    break
            if total >= limit:
                continue
            _sift_up(heap, away, size, s, total)
            size += 1
            held += persons[s]
            while size > 1 and size > least and held - persons[heap[0]] >= need:
                held -= persons[heap[0]]
                size -= 1
                _sift_down(heap, away, size, heap[size], away[size])
            if size >= least and held >= need:
                limit = away[0]
    search.size[0] = size
    return held


@njit(cache=True)
def _sift_up(heap, away, at, s, distance):  # type: ignore[no-untyped-def]
    while at > 0:
        parent = (at - 1) >> 1
        if away[parent] >= distance:
            break
        heap[at] = heap[parent]
        away[at] = away[parent]
        at = parent
    heap[at] = s
    away[at] = distance


@njit(cache=True)
def _sift_down(heap, away, size, s, distance):  # type: ignore[no-untyped-def]
    at = 0
    while True:
        c = 2 * at + 1
        if c >= size:
            break
        if c + 1 < size and away[c + 1] > away[c]:
            c += 1
        if away[c] <= distance:
            break
        heap[at] = heap[c]
        away[at] = away[c]
        at = c
    heap[at] = s
    away[at] = distance


@njit(cache=True)
def furthest(rules, trie, box, search):  # type: ignore[no-untyped-def]
    """The free signature that would add most to the box, the first in the trie among equals; -1 if none is free."""
    width = len(trie.order)
    beyond = np.zeros(width + 1)  # the most that the levels from here down can add
    for depth in range(width - 1, -1, -1):
        beyond[depth] = beyond[depth + 1] + _most(rules, box, trie.order[depth])
    best = -1.0
    found = -1
    search.node[0] = 0
    search.cost[0] = 0.0
    top = 1 if trie.free[0] > 0 else 0
    while top:
        top -= 1
        v = search.node[top]
        cost = search.cost[top]
        if cost + beyond[trie.depth[v]] <= best + EPSILON:
            continue
        if trie.child[v] < trie.child_end[v]:
            j = trie.order[trie.depth[v]]
            start = top
            for c in range(trie.child_end[v] - 1, trie.child[v] - 1, -1):
                if trie.free[c] == 0:
                    continue
                more = cost + rise(rules, box, j, trie.value[c] - rules.base[j])
                # Keep the furthest child on top; the others need no order.
                search.node[top] = c
                search.cost[top] = more
                if top > start and search.cost[top - 1] > more:
                    search.node[top], search.node[top - 1] = search.node[top - 1], c
                    search.cost[top], search.cost[top - 1] = search.cost[top - 1], more
                top += 1
            continue
        for i in range(trie.first[v], trie.last[v]):
            s = trie.member[i]
            if not trie.here[s]:
                continue
            total = cost
            for level in range(trie.depth[v], width):
                j = trie.order[level]
                total += rise(rules, box, j, trie.slot[i, level] - rules.base[j])
            if total > best + EPSILON:
                best = total
                found = s
    return found


@njit(cache=True)
def _most(rules, box, j):  # type: ignore[no-untyped-def]
    """The most that any value can add to the box in QI j."""
    kind = rules.kind[j]
    if kind == NODE:
        v = box.node[j]
        while rules.parent[v] >= 0:
            v = rules.parent[v]
        return rules.loss[v] - box.cost[j]
    if kind == LABEL:
        return rules.penalty
    base, end = rules.base[j], rules.base[j + 1]
    if rules.null[j] >= 0:
        return rules.weight[j] - box.cost[j]
    if kind == SET:
        return 0.0 if end - base <= box.values[j] else (rules.step[j] if box.values[j] > 1 else 2 * rules.step[j])
    below = rules.place[base + box.low[j]] - rules.place[base]
    return max(below, rules.place[end - 1] - rules.place[base + box.high[j]])
