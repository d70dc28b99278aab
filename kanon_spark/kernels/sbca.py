"""Similarity-based clustering on weighted signatures: each class is its first signature and those most similar to it.

The rule, where the paper leaves room:

    order       categorical QIs by cardinality (values that the table holds, null among them), then numbers by
                cardinality, ties in declared order. Signatures are sorted by their values in that order (categories by
                code, numbers by size, null last), and the first free one starts the next class.
    category    index / (cardinality - 1), in the order of similarity to the starter's value (`contingency.py`). The
                rows that are looked at are the free ones that share the starter's values in all categorical QIs before
                this one. Where they are fewer than k, the last of these QIs is dropped, then the one before it, and so
                on: its rows are merged over all its values. Numbers are never conditioned on.
    number      difference / range of the table; 1 between null or an infinite value and any other.
    distance    sum over the QIs, each times its weight. Hierarchies play no part in it, but values that may not be
                published together (`max_level`) never meet.
    class       a starter of k persons is alone; else the closest free signatures join until there are k persons, ties
                in the order of the signatures. Where a guard refuses the class, more of them join until it does not.
    left over   what holds fewer than k persons together, or starts with a signature for which no number of the closest
                is accepted: free, or put into the class closed last (of those which a guard then still accepts).

Idea: the distances from a starter do not change while its class is filled, and they add up over the QIs. So one search
of a trie (`closest.py`) finds the whole class, where the paper measures every tuple for each class.

Cost: per class, one search and one pass over the values of the categorical QIs; each time a guard refuses all that was
found, a search for twice as many persons.

Source: similarity-based clustering algorithm (SBCA); the paper's own is quadratic.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.kernels.closest import Axes, find_closest, new_search, on_grid
from kanon_spark.kernels.contingency import arrive, leave, longest_prefix, new_contingency, rank_by_similarity
from kanon_spark.kernels.guard import accepts, asks
from kanon_spark.kernels.problem import Forest, Problem
from kanon_spark.kernels.shortfall import count, new_tally, recount, shortfall
from kanon_spark.kernels.trie import build, remove, replant

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

FREE = -1
_REPLANT = 64  # tries smaller than this are not built again
_LOOK_BACK = 100  # so many classes are asked, the last ones first, to take in what is left over
_BELOW, _ABOVE, _NOWHERE = -1.0, 2.0, 4.0  # numbers lie in 0 … 1; these are at least 1 away from them and each other


class Arranged(NamedTuple):
    """The signatures in the order in which they start classes, with the QIs in theirs."""

    signature: Longs  # which signature stands at each place
    slot: Ints  # places by QIs
    axes: Axes
    code: Longs  # per slot: the value's code in the whole table
    zone_of: Longs  # per place: signatures of different zones must not meet


def similarity_classes(problem: Problem, *, join: bool) -> Ints:
    """Class of each signature, numbered in the order in which classes are closed.

    Args:
        problem: What to solve.
        join: Whether what is left over joins the class that was closed last (of those it may stand in, and which then
            stay good); else, or if there is no such class, it is FREE.
    """
    class_of = np.full(problem.size, FREE, dtype=np.int32)
    if problem.size:
        table = arrange(problem)
        rows, persons = problem.rows[table.signature], problem.persons[table.signature]
        guard = problem.guard.take(table.signature)
        class_of[table.signature] = _cluster(table, rows, persons, problem.k, guard.compiled, join)
    return class_of


def arrange(problem: Problem) -> Arranged:
    """Sort the QIs and the signatures, and number the values that occur in the problem."""
    forest, measure = problem.forest, problem.measure
    numbers = [_places(problem, j) for j in range(forest.width)]
    order = sorted(range(forest.width), key=lambda j: (numbers[j] is not None, int(forest.leaves[j]), j))
    slots, codes, places, zones = [], [], [], []
    zone_of = np.zeros(problem.size, np.int64)
    made = 0
    for j in order:
        place = numbers[j]
        place = np.zeros(int(forest.leaves[j])) if place is None else place
        zone = _zones(forest, j) if measure is None or measure.kinds[j] == "node" else np.zeros(len(place), np.int64)
        held = np.unique(problem.codes[:, j])
        held = held[np.argsort(place[held], kind="stable")]
        slot_of = np.full(len(place), -1, np.int32)
        slot_of[held] = np.arange(made, made + len(held))
        made += len(held)
        slots.append(slot_of[problem.codes[:, j]])
        codes.append(held)
        places.append(place[held])
        zones.append(zone[held])
        _, zone_of = np.unique(zone_of * int(forest.start[-1]) + zone[problem.codes[:, j]], return_inverse=True)
    signature = np.lexsort(slots[::-1])
    axes = Axes(
        base=np.concatenate([[0], np.cumsum([len(held) for held in codes])]).astype(np.int32),
        place=np.concatenate(places),
        zone=np.concatenate(zones),
        weight=np.ones(forest.width) if measure is None else measure.weights[order].astype(np.float64),
        cardinality=forest.leaves[order].astype(np.int64),
        categoricals=sum(place is None for place in numbers),
    )
    slot = np.ascontiguousarray(np.column_stack(slots)[signature])
    return Arranged(signature, slot, axes, np.concatenate(codes).astype(np.int64), zone_of[signature].astype(np.int64))


def distances_from(table: Arranged, rows: Longs, k: int, *, starter: int = 0) -> Floats:
    """Distance of each category (slot) from the signature at a place, if all from there on are free."""
    return _distances_from(table, rows[table.signature], k, starter)  # type: ignore[no-any-return]


def _places(problem: Problem, j: int) -> Floats | None:
    """Where each value of a number lies, in ranges of the table; None for a category.

    A hierarchy over numbers leaves them numbers.
    """
    measure = problem.measure
    if measure is None or measure.kinds[j] == "set":
        return None
    position = measure.positions[j]
    if measure.kinds[j] == "node" and np.isnan(position).all():
        return None
    known = np.isfinite(position)
    low, span = (position[known].min(), np.ptp(position[known])) if known.any() else (0.0, 0.0)
    place = np.where(position > 0, _ABOVE, _BELOW)
    place[known] = (position[known] - low) / (span or 1.0)
    nowhere = np.isnan(position)  # null, or what a hierarchy does not know
    place[nowhere] = _NOWHERE + np.arange(nowhere.sum())
    return place


def _zones(forest: Forest, j: int) -> Longs:
    """The highest node above each value that may be published."""
    top = np.arange(forest.start[j], forest.start[j] + forest.leaves[j], dtype=np.int64)
    while True:
        above = forest.parent[top]
        climbs = (above >= 0) & np.isfinite(forest.loss[above])
        if not climbs.any():
            return top
        top[climbs] = above[climbs]


@njit(cache=True, nogil=True)
def _cluster(table, rows, persons, k, guard, join):  # type: ignore[no-untyped-def]
    axes, slot, zone_of = table.axes, table.slot, table.zone_of
    size = len(rows)
    class_of = np.full(size, FREE, np.int32)
    trie = build(np.arange(slot.shape[1]).astype(np.int32), slot, np.arange(size).astype(np.int32), size)
    tables = new_contingency(axes.categoricals, axes.base[axes.categoricals])
    distance = np.zeros(axes.base[axes.categoricals])
    search = new_search(trie)
    free = np.zeros(zone_of.max() + 1, np.int64)  # persons of each zone
    for s in range(size):
        free[zone_of[s]] += persons[s]
    last = np.full(len(free), FREE, np.int32)  # the class closed last in each zone
    before = np.full(size, FREE, np.int32)  # per class: the one closed before it in its zone
    asked = asks(guard)
    tally = new_tally(guard)
    classes = 0
    for first in range(size):
        if not trie.here[first]:
            continue
        zone = zone_of[first]
        if free[zone] < k:
            remove(trie, first)
            leave(tables, slot, rows, first)
            continue
        if trie.free[0] * 2 < len(trie.member) and len(trie.member) > _REPLANT:
            trie = replant(trie)
        arrive(tables, slot, rows, trie.here, first)
        near = 0
        remove(trie, first)
        need = k - persons[first]
        if need > 0 or asked:
            _measure(table, tables, k, first, distance)
        if need > 0:
            near = find_closest(axes, trie, distance, persons, slot[first], need, search)
        if asked:
            least, found = near, near
            near = _accepted(guard, tally, first, search.near, least, found)
            # Refused, with all that was found: look for twice as many persons, as long as there are more.
            while near < 0 and need < free[zone] - persons[first]:
                need = max(1, 2 * need)
                found = find_closest(axes, trie, distance, persons, slot[first], need, search)
                near = _accepted(guard, tally, first, search.near, least, found)
            if near < 0:
                # All that is free here is left over, and leaves the tables at once, as a class would.
                free[zone] = 0
                leave(tables, slot, rows, first)
                for s in range(first + 1, size):
                    if trie.here[s] and zone_of[s] == zone:
                        remove(trie, s)
                        leave(tables, slot, rows, s)
                continue
        for i in range(near + 1):
            s = search.near[i] if i < near else first
            class_of[s] = classes
            free[zone] -= persons[s]
            leave(tables, slot, rows, s)
            if s != first:
                remove(trie, s)
        before[classes] = last[zone]
        last[zone] = classes
        classes += 1
    if join:
        _join_last(guard, zone_of, last, before, class_of)
    return class_of


@njit(cache=True)
def _accepted(guard, tally, first, near, least, found):  # type: ignore[no-untyped-def]
    """The smallest number, `least` or more, of the `found` nearest that make a class with the starter; -1: none."""
    recount(guard, tally, near[:least])
    count(guard, tally, first)
    for n in range(least, found + 1):
        if shortfall(guard, tally) == 0.0:
            return n
        if n < found:
            count(guard, tally, near[n])
    return -1


@njit(cache=True)
def _join_last(guard, zone_of, last, before, class_of):  # type: ignore[no-untyped-def]
    """What is left over joins the class of its zone that was closed last, of the last few that the guard accepts so."""
    asked = asks(guard)
    size = len(class_of)
    head = np.full(size, -1, np.int32)
    after = np.full(size, -1, np.int32)
    members = np.empty(size, np.int32)
    for s in range(size if asked else 0):
        if class_of[s] != FREE:
            after[s] = head[class_of[s]]
            head[class_of[s]] = s
    for s in range(size):
        if class_of[s] != FREE:
            continue
        c = last[zone_of[s]]
        if not asked:
            class_of[s] = c
            continue
        for _ in range(_LOOK_BACK):
            if c == FREE:
                break
            members[0] = s
            n = 1
            t = head[c]
            while t >= 0:
                members[n] = t
                n += 1
                t = after[t]
            if accepts(guard, members[:n]):
                class_of[s] = c
                after[s] = head[c]
                head[c] = s
                break
            c = before[c]


@njit(cache=True)
def _distances_from(table, rows, k, first):  # type: ignore[no-untyped-def]
    categories = table.axes.base[table.axes.categoricals]
    tables = new_contingency(table.axes.categoricals, categories)
    arrive(tables, table.slot, rows, np.ones(len(rows), np.bool_), first)
    distance = np.zeros(categories)
    _measure(table, tables, k, first, distance)
    return distance


@njit(cache=True)
def _measure(table, tables, k, first, distance):  # type: ignore[no-untyped-def]
    """Distance of every category from that of the starter."""
    axes = table.axes
    longest = longest_prefix(tables, k)
    rank = np.zeros(len(distance), np.int64)
    for j in range(axes.categoricals):
        begin, end, own = axes.base[j], axes.base[j + 1], table.slot[first, j]
        count = tables.counts[min(j, longest), begin:end]
        rank_by_similarity(count, table.code[begin:end], own - begin, axes.cardinality[j], rank[begin:end])
        step = axes.weight[j] / max(1, axes.cardinality[j] - 1)
        for v in range(begin, end):
            distance[v] = on_grid(rank[v] * step) if axes.zone[v] == axes.zone[own] else np.inf
