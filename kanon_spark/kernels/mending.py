"""The net under every method: classes that break a demand are mended, at the least loss.

A method asks its guard where it closes classes, and what it cannot place it leaves free. Here everything that stands
outside a good class looks for one, in this order:

1. Each bad class, and each free signature, joins the class whose total loss rises least and which stays good.
2. What is left merges among itself by loss, two at a time, until it is good (`merge_boxes`).
3. What is still left may be suppressed, if it is no more than the rows that may be.
4. Else it is put together, and takes in class after class, those first that cost least for the rows they bring, until
   the union is good. All models are union safe, so that in the end everything is one class; where not even that is
   good, it stays free. Where a QI may not be published at its root, this is done for all that lies under one tuple of
   the highest nodes that may be, by itself: nothing else can ever stand in one class.

Cost: outside components times classes; the last step at most classes squared.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.kernels.guard import Guard, accepts
from kanon_spark.kernels.lattice import FREE, attach_boxes, class_table, joined_node, loss_of_each, united_cost
from kanon_spark.kernels.merging import good_components, merge_boxes
from kanon_spark.kernels.partners import cheapest_partners
from kanon_spark.kernels.problem import Forest, Problem
from kanon_spark.kernels.spanning import components

_ELSEWHERE = -2  # free, but not among those that are put together now

Bools = NDArray[np.bool_]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


def mend(problem: Problem, class_of: Ints, *, suppressible: int) -> Ints:
    """Classes that all are good; FREE is what has to be suppressed.

    Args:
        problem: Signatures, trees, k and the guard.
        class_of: Class of each signature, good or not; FREE for none.
        suppressible: Rows that may be suppressed. More stay free only where nothing else is left.
    """
    free = (class_of == FREE) | ~np.isfinite(loss_of_each(problem, class_of))  # what must not be published falls apart
    class_of = np.where(free, FREE, class_of).astype(np.int32)
    _, inverse = np.unique(class_of, return_inverse=True)
    component = (inverse - int(free.any())).astype(np.int32)
    count = int(component.max(initial=-1)) + 1
    component[free] = count + np.arange(free.sum(), dtype=np.int32)  # every free signature by itself
    nodes, rows, persons = class_table(problem, component)
    guard = problem.guard.merged(component, len(rows))
    good = good_components(problem.k, guard, persons)
    good[count:] = False  # what a method has left open may stand alone, but that is for the steps below to say
    parts = _Parts(problem.forest, problem.k, nodes, rows, persons, guard)
    into = np.where(good, np.cumsum(good) - 1, FREE).astype(np.int32)
    into = parts.merge_outside(parts.attach(into))
    if rows[into == FREE].sum() > suppressible:
        into = parts.take_in(into)
    return into[component]


def good_classes(problem: Problem, class_of: Ints) -> Bools:
    """Which classes have k persons, may be published, and are accepted by the guard."""
    nodes, _, persons = class_table(problem, class_of)
    good = good_components(problem.k, problem.guard.merged(class_of, len(persons)), persons)
    return good & np.isfinite(problem.forest.loss[nodes].sum(axis=1))  # type: ignore[no-any-return]


def united_classes(forest: Forest, nodes: Ints, rows: Longs, failing: Longs, *, steps: int | None) -> Longs:
    """Let classes take in others: what each class becomes, named by its least member; -1 where nothing may join it.

    Args:
        forest: The trees.
        nodes: Box of each class.
        rows: Rows of each class.
        failing: The classes that need more.
        steps: How many times each of them takes in the class with which it loses least; None: everything is united.
    """
    found = np.arange(len(nodes))
    if steps is None:
        whole = _boxes(np.zeros(len(nodes), np.int32), 1, nodes, forest.parent, forest.lo, forest.hi)
        if np.isfinite(forest.loss[whole]).all():
            return np.zeros_like(found)
        steps = len(nodes)
    for _ in range(steps):
        names, number = np.unique(found, return_inverse=True)
        boxes = _boxes(number.astype(np.int32), len(names), nodes, forest.parent, forest.lo, forest.hi)
        held = np.bincount(number, rows, minlength=len(names)).astype(np.int64)
        asking = np.unique(number[failing]).astype(np.int32)
        partner, _ = cheapest_partners(forest, boxes, held, asking)
        able = partner >= 0
        if not able.any():
            break
        found = names[components(asking[able], partner[able], len(names))[number]]
    alone = np.bincount(found)[found[failing]] == 1
    found[failing[alone]] = -1
    return found


@dataclass(frozen=True)
class _Parts:
    """Components: what stands in one class, good or not, or is free; the guard's units."""

    forest: Forest
    k: int
    nodes: Ints
    rows: Longs
    persons: Longs
    guard: Guard

    def attach(self, into: Ints) -> Ints:
        """Each component outside joins the cheapest class that stays good."""
        if into.max(initial=FREE) >= 0:
            nodes, rows = self._classes(into)
            attach_boxes(self.forest, self.nodes, self.rows, self.guard, into, nodes, rows)
        return into

    def merge_outside(self, into: Ints) -> Ints:
        """What is outside merges among itself; good unions become classes."""
        outside = np.flatnonzero(into == FREE)
        found = merge_boxes(
            self.forest,
            self.k,
            self.nodes[outside],
            self.rows[outside],
            self.persons[outside],
            self.guard.take(outside),
        )
        into[outside] = np.where(found >= 0, found + into.max(initial=FREE) + 1, FREE)
        return into

    def take_in(self, into: Ints) -> Ints:
        """Everything outside becomes one class, which takes in others until it is good; else it stays outside."""
        forest = self.forest
        outside = np.flatnonzero(into == FREE)
        _, group = np.unique(forest.highest[self.nodes[outside]], axis=0, return_inverse=True)
        for number in range(int(group.max(initial=-1)) + 1):
            elsewhere = outside[group.ravel() != number]
            elsewhere = elsewhere[into[elsewhere] == FREE]
            into[elsewhere] = _ELSEWHERE
            nodes, rows = self._classes(into)
            into = _take_in(
                into, self.nodes, self.rows, self.persons, self.k, self.guard.compiled, nodes, rows,
                forest.parent, forest.lo, forest.hi, forest.loss,
            )  # fmt: skip
            into[elsewhere] = FREE
        return into

    def _classes(self, into: Ints) -> tuple[Ints, Longs]:
        """Box and rows of each class."""
        forest = self.forest
        count = int(into.max(initial=FREE)) + 1
        rows = np.bincount(into[into >= 0], self.rows[into >= 0], minlength=count).astype(np.int64)
        return _boxes(into, count, self.nodes, forest.parent, forest.lo, forest.hi), rows


@njit(cache=True)
def _boxes(into, count, nodes, parent, lo, hi):  # type: ignore[no-untyped-def]
    found = np.full((count, nodes.shape[1]), -1, np.int32)
    for i in range(len(into)):
        c = into[i]
        if c < 0:
            continue
        for j in range(nodes.shape[1]):
            found[c, j] = nodes[i, j] if found[c, j] < 0 else joined_node(found[c, j], nodes[i, j], parent, lo, hi)
    return found


@njit(cache=True, nogil=True)
def _take_in(into, nodes, rows, persons, k, guard, class_nodes, class_rows, parent, lo, hi, loss):  # type: ignore[no-untyped-def]
    count, width = class_nodes.shape
    pool = np.empty(len(into), np.int32)
    size = 0
    held = 0
    weight = 0
    box = np.full(width, -1, np.int32)
    for i in range(len(into)):
        if into[i] == FREE:
            pool[size] = i
            size += 1
            held += persons[i]
            weight += rows[i]
            for j in range(width):
                box[j] = nodes[i, j] if box[j] < 0 else joined_node(box[j], nodes[i, j], parent, lo, hi)
    cost = np.zeros(count)
    taken = np.zeros(count, np.bool_)
    for c in range(count):
        taken[c] = class_nodes[c, 0] < 0  # it has been taken in before
        for j in range(width):
            cost[c] += loss[class_nodes[c, j]]
    own = 0.0
    for j in range(width):
        own += loss[box[j]]
    while held < k or not np.isfinite(own) or not accepts(guard, pool[:size]):
        best = np.inf
        chosen = -1
        for c in range(count):
            if taken[c] or not np.isfinite(own):
                continue
            union = united_cost(class_nodes[c], box, parent, lo, hi, loss, np.inf)
            added = (class_rows[c] * (union - cost[c]) + weight * (union - own)) / max(1, class_rows[c])
            if added < best:
                best = added
                chosen = c
        if chosen < 0:
            return into
        taken[chosen] = True
        own = 0.0
        for j in range(width):
            box[j] = joined_node(box[j], class_nodes[chosen, j], parent, lo, hi)
            own += loss[box[j]]
        for i in range(len(into)):
            if into[i] == chosen:
                pool[size] = i
                size += 1
                held += persons[i]
                weight += rows[i]
    for i in pool[:size]:
        into[i] = count
    return into
