"""Similarity-based clustering on weighted signatures: each class is its first signature and those most similar to it.

The rule, where the paper leaves room:

    order       categorical QIs by cardinality (values that the table holds, null among them), then numbers by
                cardinality, ties in declared order. Signatures are sorted by their codes in that order, and the first
                free one starts the next class.
    category    index / (cardinality - 1), in the order of similarity to the starter's value (`contingency.py`). The
                rows that are looked at are the free ones that share the starter's values in all categorical QIs before
                this one. Where they are fewer than k, the last of these QIs is dropped, then the one before it, and so
                on: its rows are merged over all its values. Numbers are never conditioned on.
    number      difference / range of the table. Null is as far from every number as the range is wide, an infinite
                value one range outside.
    distance    sum of both, times the QI's weight. Hierarchies play no part in it, but values that may not be published
                together (`max_level`) never meet.
    class       a starter of k persons is alone; else the nearest free signatures join until there are k persons. Among
                equals the one of most persons that fits into k, else the one of fewest, then the first in the order.
    left over   what holds fewer than k persons together: free, or put into the class closed last.

Idea: the distances from a starter do not change while its class is filled, and they add up over the QIs. So they are
the table of a trie search (`nearest.py`), and the paper's scan of all tuples for each class becomes some dozens of
nodes.

Cost: one search per signature, one pass over the values of the QIs per class.

Source: similarity-based clustering algorithm (SBCA); the paper's own is quadratic.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kanon_spark.kernels.box import RANGE, SET, begin, new_box
from kanon_spark.kernels.contingency import arrive, leave, longest_prefix, new_contingency, rank_by_similarity
from kanon_spark.kernels.measure import Measured, Rules
from kanon_spark.kernels.nearest import buffers, nearest
from kanon_spark.kernels.problem import Forest, Problem
from kanon_spark.kernels.trie import Trie, build, remove, replant

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

FREE = -1
_REPLANT = 64  # tries smaller than this are not built again
_WIDE = 4096  # values of a range; above, distances are computed where a search asks for them


class Arranged(NamedTuple):
    """The signatures in the order in which they start classes; QIs in their order, codes numbered within the piece."""

    signature: Longs  # which signature stands at each place
    codes: Ints  # places by QIs
    slot: Ints  # places by QIs: where the value stands in tables over all values
    rules: Rules  # what searches need to know
    code: Longs  # per slot: the value's code in the whole table
    zone: Longs  # per slot: values of one QI in different zones must not meet
    zone_of: Longs  # per place: the same for whole signatures
    cardinality: Longs  # per QI, in the whole table
    categoricals: int  # so many QIs, the first ones, are no numbers


def similarity_classes(problem: Problem, *, join: bool) -> Ints:
    """Class of each signature, in the order in which classes are closed.

    Args:
        problem: What to solve.
        join: Whether what is left over joins the class that was closed last (of those it may stand in); else, or if
            there is no class, it is FREE.
    """
    class_of = np.full(problem.size, FREE, dtype=np.int32)
    if problem.size:
        table = arrange(problem)
        rows, persons = problem.rows[table.signature], problem.persons[table.signature]
        class_of[table.signature] = _cluster(table, _plant(table), rows, persons, problem.k, join)
    return class_of


def distances_from(problem: Problem, place: int) -> tuple[Arranged, Floats]:
    """The distance of every value (slot) from the signature at a place, while all from that place on are free."""
    table = arrange(problem)
    distance = np.zeros(len(table.code))
    _distances_from(table, _plant(table).here, problem.rows[table.signature], problem.k, place, distance)
    return table, distance


def arrange(problem: Problem) -> Arranged:
    """Sort the QIs and the signatures, and number the values of each QI that occur."""
    forest, measure = problem.forest, problem.measure
    places = [_places(problem, j) for j in range(forest.width)]
    order = sorted(range(forest.width), key=lambda j: (places[j] is not None, int(forest.leaves[j]), j))
    held = [np.unique(problem.codes[:, j], return_inverse=True) for j in order]
    by_code = np.column_stack([codes for _, codes in held]).astype(np.int32)
    signature = np.lexsort(by_code.T[::-1])
    codes = np.ascontiguousarray(by_code[signature])
    base = np.concatenate([[0], np.cumsum([len(values) for values, _ in held])]).astype(np.int32)
    weight = np.ones(forest.width) if measure is None else measure.weights[order]
    place, zones, null, narrow = [], [], [], []
    zone_of = np.zeros(problem.size, np.int64)
    for at, (j, (values, _)) in enumerate(zip(order, held, strict=True)):
        where = places[j]
        place.append(np.zeros(len(values)) if where is None else where[values] * weight[at])
        of_tree = measure is None or measure.kinds[j] == "node"
        zones.append(_zones(forest, j)[values] if of_tree else np.zeros(len(values), np.int64))
        _, zone_of = np.unique(zone_of * forest.start[-1] + zones[-1][codes[:, at]], return_inverse=True)
        missing = -1 if measure is None else measure.nulls[j]
        null.append(len(values) - 1 if missing >= 0 and values[-1] == missing else -1)
        narrow.append(of_tree or where is None or len(values) <= _WIDE)
    rules = Measured.of(problem).rules._replace(
        kind=np.array([SET if places[j] is None else RANGE for j in order], np.int8),
        weight=weight,
        null=np.array(null, np.int32),
        base=base,
        place=np.concatenate(place),
        narrow=np.array(narrow),
    )
    return Arranged(
        signature=signature,
        codes=codes,
        slot=codes + base[:-1],
        rules=rules,
        code=np.concatenate([values for values, _ in held]).astype(np.int64),
        zone=np.concatenate(zones),
        zone_of=zone_of.astype(np.int64),
        cardinality=forest.leaves[order].astype(np.int64),
        categoricals=sum(where is None for where in places),
    )


def _places(problem: Problem, j: int) -> Floats | None:
    """Where each value of a number lies, in ranges of the table; NaN for null and unknown. None for categories.

    A hierarchy over numbers leaves them numbers.
    """
    measure = problem.measure
    if measure is None or np.isnan(measure.positions[j]).all():
        return np.full(int(problem.forest.leaves[j]), np.nan) if measure and measure.kinds[j] == "range" else None
    position = measure.positions[j]
    known = position[np.isfinite(position)]
    low, span = (float(known.min()), float(np.ptp(known))) if len(known) else (0.0, 0.0)
    place = (position - low) / (span or 1.0)
    return np.clip(place, -1.0, 2.0)  # NaN stays what it is


def _zones(forest: Forest, j: int) -> Longs:
    """The highest node above each value that may be published."""
    top = np.arange(forest.start[j], forest.start[j] + forest.leaves[j])
    while True:
        above = forest.parent[top]
        climbs = (above >= 0) & np.isfinite(forest.loss[above])
        if not climbs.any():
            return top.astype(np.int64)
        top = np.where(climbs, above, top)


def _plant(table: Arranged) -> Trie:
    """The trie of all places, its levels the QIs in their order."""
    count, width = table.codes.shape
    order, member = np.arange(width, dtype=np.int32), np.arange(count, dtype=np.int32)
    return build(order, table.slot, member, count)  # type: ignore[no-any-return]


@njit(cache=True, nogil=True)
def _cluster(table, trie, rows, persons, k, join):  # type: ignore[no-untyped-def]
    rules, codes, slot, zone_of = table.rules, table.codes, table.slot, table.zone_of
    class_of = np.full(len(rows), FREE, np.int32)
    tables = new_contingency(table.categoricals, rules.base[table.categoricals])
    box = new_box(rules)
    search = buffers(trie, 0)
    free = np.zeros(zone_of.max() + 1, np.int64)  # persons of each zone
    for s in range(len(rows)):
        free[zone_of[s]] += persons[s]
    last = np.full(len(free), FREE, np.int32)  # the class closed last in each zone
    classes = 0
    for first in range(len(rows)):
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
        begin(rules, box, codes, first)
        _fill(table, tables, k, first, box.table)
        x = first
        held = 0
        while x >= 0:  # a zone of k persons always fills the class
            class_of[x] = classes
            held += persons[x]
            free[zone] -= persons[x]
            remove(trie, x)
            leave(tables, slot, rows, x)
            if held >= k:
                break
            x, _ = nearest(rules, trie, box, persons, k - held, search)
        last[zone] = classes
        classes += 1
    if join:
        for s in range(len(rows)):
            if class_of[s] == FREE:
                class_of[s] = last[zone_of[s]]
    return class_of


@njit(cache=True)
def _distances_from(table, here, rows, k, first, distance):  # type: ignore[no-untyped-def]
    tables = new_contingency(table.categoricals, table.rules.base[table.categoricals])
    arrive(tables, table.slot, rows, here, first)
    _fill(table, tables, k, first, distance)


@njit(cache=True)
def _fill(table, tables, k, first, distance):  # type: ignore[no-untyped-def]
    """Distances of all values (of wide ranges: none) from those of the starter."""
    rules, slot, zone = table.rules, table.slot, table.zone
    base, place, weight = rules.base, rules.place, rules.weight
    longest = longest_prefix(tables, k)
    rank = np.zeros(len(distance), np.int64)
    for j in range(len(weight)):
        begins, ends, own = base[j], base[j + 1], slot[first, j]
        if j < table.categoricals:
            count = tables.count[min(j, longest), begins:ends]
            ranks = rank[begins:ends]
            rank_by_similarity(count, table.code[begins:ends], own - begins, table.cardinality[j], ranks)
            step = weight[j] / max(1, table.cardinality[j] - 1)
            for v in range(begins, ends):
                distance[v] = ranks[v - begins] * step
        elif rules.narrow[j]:
            for v in range(begins, ends):
                apart = abs(place[v] - place[own])
                distance[v] = weight[j] if np.isnan(apart) and v != own else apart
            distance[own] = 0.0
        for v in range(begins, ends):
            if zone[v] != zone[own]:
                distance[v] = np.inf
