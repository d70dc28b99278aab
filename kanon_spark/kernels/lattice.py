"""Close the cheapest group first, over all groups of the lattice.

Idea: list the closed groups in windows of rising cost; take them in the order (cost, size, codes); a group whose still
free members hold at least k persons becomes one class. That equals one big sort of all groups by their own loss. What
is left, fewer than k persons unless `max_level` forbids more, joins the class whose total loss rises least.

Cost: the listing's. Stopping strictly below the loss at which groups cross a block's border closes exactly the classes
that the whole table would, which is what makes blocks free of charge.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kanon_spark.kernels.listing import Groups, list_groups
from kanon_spark.kernels.problem import Forest, Problem

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

FREE = -1
TIE_ORDERS = range(4)


def close_cheapest_first(problem: Problem, *, stop: float = np.inf, ties: int = 0) -> Ints:
    """Class of each signature, FREE for those that no group of cost below `stop` could take.

    Args:
        problem: What to solve.
        stop: Only groups of cost strictly below it are closed.
        ties: Which of the `TIE_ORDERS` decides among equally dear groups.
    """
    forest = problem.forest
    class_of = np.full(problem.size, FREE, dtype=np.int32)
    classes = 0
    # Windows start at fixed costs, so that a block and the whole table list the same groups at the same time.
    step = 0.4 if forest.width <= 10 else 1.0
    last = min(dearest_cost(forest) + 1e-9, float(np.nextafter(stop, -np.inf)))
    below = -1.0
    upto = step
    free = np.arange(problem.size, dtype=np.int32)
    while len(free) and problem.persons[free].sum() >= problem.k and below < last:
        ceiling = min(upto, last)
        groups = list_groups(problem, free, above=below, upto=ceiling)
        while not groups.complete:
            ceiling = (max(below, 0.0) + ceiling) / 2
            groups = list_groups(problem, free, above=below, upto=ceiling)
        order = closing_order(groups, ties=ties)
        classes = _close(order, groups.offset, groups.members, problem.persons, problem.k, class_of, classes)
        free = free[class_of[free] == FREE]
        below = ceiling
        upto = upto + step if ceiling >= upto else upto
    return class_of


def closing_order(groups: Groups, *, ties: int = 0) -> Longs:
    """The rule that decides ties, the same everywhere: cost, then members, then the order of codes (as listed).

    Orders 1 and 3 take the larger group first, orders 2 and 3 go through the codes backwards.
    """
    size = np.diff(groups.offset)
    listed = np.arange(groups.count)
    by_size = -size if ties & 1 else size
    by_code = -listed if ties & 2 else listed
    return np.lexsort((by_code, by_size, np.round(groups.cost, 9))).astype(np.int64)


def dearest_cost(forest: Forest) -> float:
    """The largest cost a publishable group can have: each QI at its dearest finite node."""
    return float(
        sum(
            max((x for x in forest.loss[forest.start[j] : forest.start[j + 1]] if np.isfinite(x)), default=0.0)
            for j in range(forest.width)
        )
    )


def attach_rest(problem: Problem, class_of: Ints) -> Ints:
    """Let each free signature join the class whose total loss rises least; in place, and returned.

    A signature that no class may take (infinite loss, or no class at all) stays FREE: it has to be suppressed.
    """
    forest = problem.forest
    rest = np.flatnonzero(class_of == FREE).astype(np.int32)
    if len(rest) and class_of.max(initial=FREE) >= 0:
        nodes, rows, _ = class_table(problem, class_of)
        # Largest first: what many rows share should choose before the classes grow.
        rest = rest[np.lexsort((rest, -problem.rows[rest]))]
        _attach(
            rest,
            problem.codes,
            problem.rows,
            class_of,
            nodes,
            rows,
            forest.start,
            forest.parent,
            forest.lo,
            forest.hi,
            forest.loss,
        )
    return class_of


def class_table(problem: Problem, class_of: Ints) -> tuple[Ints, Longs, Longs]:
    """Per class: the lowest common ancestor in each QI (global node ids), rows and persons."""
    forest = problem.forest
    count = int(class_of.max(initial=FREE)) + 1
    return _class_table(  # type: ignore[no-any-return]
        class_of, count, problem.codes, problem.rows, problem.persons, forest.start, forest.parent, forest.hi
    )


def class_cost(forest: Forest, nodes: Ints) -> Floats:
    """Loss per row of each class."""
    return forest.loss[nodes].sum(axis=1)  # type: ignore[no-any-return]


def total_loss(problem: Problem, class_of: Ints, *, suppressed: float) -> float:
    """Row-weighted loss of all signatures; a suppressed row costs `suppressed`."""
    nodes, rows, _ = class_table(problem, class_of)
    left = problem.rows[class_of == FREE].sum()
    return float((class_cost(problem.forest, nodes) * rows)[rows > 0].sum() + left * suppressed)


def loss_of_each(problem: Problem, class_of: Ints) -> Floats:
    """Loss per row of each signature's class; infinite for those without one."""
    nodes, _, _ = class_table(problem, class_of)
    loss = np.full(problem.size, np.inf)
    placed = class_of >= 0
    loss[placed] = class_cost(problem.forest, nodes)[class_of[placed]]
    return loss


def count_misplaced(problem: Problem, class_of: Ints, bound: Floats) -> int:
    """Signatures whose class costs more than their bound: only they can be placed better."""
    placed = class_of >= 0
    return int((loss_of_each(problem, class_of)[placed] > bound[placed] + 1e-9).sum())


@njit(cache=True, nogil=True)
def _close(order, offset, members, persons, k, class_of, classes):  # type: ignore[no-untyped-def]
    for g in order:
        held = 0
        for i in range(offset[g], offset[g + 1]):
            if class_of[members[i]] < 0:
                held += persons[members[i]]
        if held >= k:
            for i in range(offset[g], offset[g + 1]):
                if class_of[members[i]] < 0:
                    class_of[members[i]] = classes
            classes += 1
    return classes


@njit(cache=True, nogil=True)
def _class_table(class_of, count, codes, rows, persons, start, parent, hi):  # type: ignore[no-untyped-def]
    width = codes.shape[1]
    least = np.full((count, width), 2147483647, np.int32)
    most = np.full((count, width), -1, np.int32)
    held_rows = np.zeros(count, np.int64)
    held_persons = np.zeros(count, np.int64)
    for s in range(len(class_of)):
        c = class_of[s]
        if c < 0:
            continue
        held_rows[c] += rows[s]
        held_persons[c] += persons[s]
        for j in range(width):
            x = codes[s, j]
            if x < least[c, j]:
                least[c, j] = x
            if x > most[c, j]:
                most[c, j] = x
    nodes = np.zeros((count, width), np.int32)
    for c in range(count):
        if most[c, 0] < 0:
            continue
        for j in range(width):
            v = start[j] + least[c, j]
            while hi[v] <= most[c, j]:
                v = parent[v]
            nodes[c, j] = v
    return nodes, held_rows, held_persons


@njit(cache=True)
def joined_cost(nodes, codes, s, parent, lo, hi, loss, limit):  # type: ignore[no-untyped-def]
    """Loss per row of a class (its nodes) once signature s has joined; gives up beyond `limit`."""
    total = 0.0
    for j in range(len(nodes)):
        v = nodes[j]
        x = codes[s, j]
        while x < lo[v] or x >= hi[v]:
            v = parent[v]
        total += loss[v]
        if total > limit:
            return np.inf
    return total


@njit(cache=True, nogil=True)
def _attach(rest, codes, rows, class_of, nodes, class_rows, start, parent, lo, hi, loss):  # type: ignore[no-untyped-def]
    count, width = nodes.shape
    cost = np.zeros(count)
    for c in range(count):
        for j in range(width):
            cost[c] += loss[nodes[c, j]]
    for s in rest:
        best = np.inf
        chosen = -1
        for c in range(count):
            if class_rows[c] == 0:
                continue
            # rise = class_rows·(new - old) + rows·new < best  ⇒  new < (best + class_rows·old) / (class_rows + rows)
            limit = (best + class_rows[c] * cost[c]) / (class_rows[c] + rows[s])
            new = joined_cost(nodes[c], codes, s, parent, lo, hi, loss, limit)
            rise = class_rows[c] * (new - cost[c]) + rows[s] * new
            if rise < best:
                best = rise
                chosen = c
        if chosen < 0:
            continue
        class_of[s] = chosen
        class_rows[chosen] += rows[s]
        cost[chosen] = 0.0
        for j in range(width):
            v = nodes[chosen, j]
            x = codes[s, j]
            while x < lo[v] or x >= hi[v]:
                v = parent[v]
            nodes[chosen, j] = v
            cost[chosen] += loss[v]
