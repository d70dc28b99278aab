"""Close the cheapest group first, over all groups of the lattice.

Idea: list the closed groups in windows of rising cost; take them in the order (cost, size, codes); a group whose still
free members hold at least k persons, and are accepted by the guard, becomes one class. That equals one big sort of all
groups by their own loss. What is left, fewer than k persons unless `max_level` or the guard forbids more, joins the
class whose total loss rises least and which stays acceptable.

Cost: the listing's. Stopping strictly below the loss at which groups cross a block's border closes exactly the classes
that the whole table would, which is what makes blocks free of charge.
"""

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.kernels.guard import Guard, accepts, asks
from kanon_spark.kernels.listing import Groups, list_groups
from kanon_spark.kernels.problem import Forest, Problem

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

FREE = -1
TIE_ORDERS = range(4)
ASKED_CLASSES = 256  # cheapest classes that are asked whether they may take a signature


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
    free = free_ids = np.arange(problem.size, dtype=np.int32)
    while problem.persons[free].sum() >= max(1, problem.k) and below < last and problem.guard.may_accept(free):
        ceiling = min(upto, last)
        groups = list_groups(problem, free, above=below, upto=ceiling)
        while not groups.complete:
            ceiling = (max(below, 0.0) + ceiling) / 2
            groups = list_groups(problem, free, above=below, upto=ceiling)
        order = closing_order(groups, ties=ties)
        classes = _close(
            order,
            groups.offset,
            groups.members,
            free_ids,
            problem.persons,
            problem.k,
            problem.guard.compiled,
            class_of,
            classes,
        )
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
    loss = np.where(np.isfinite(forest.loss), forest.loss, 0.0)
    return float(sum(loss[forest.start[j] : forest.start[j + 1]].max(initial=0.0) for j in range(forest.width)))


def attach_rest(problem: Problem, class_of: Ints) -> Ints:
    """Let each free signature join the class whose total loss rises least; in place, and returned.

    A signature that no class may take (infinite loss, no class at all, none that the guard would still accept) stays
    FREE: it has to be suppressed.
    """
    rest = np.flatnonzero(class_of == FREE).astype(np.int32)
    if len(rest) and class_of.max(initial=FREE) >= 0:
        nodes, rows, _ = class_table(problem, class_of)
        boxes = (problem.codes + problem.forest.start[:-1]).astype(np.int32)
        attach_boxes(problem.forest, boxes, problem.rows, problem.guard, class_of, nodes, rows)
    return class_of


def attach_boxes(
    forest: Forest, boxes: Ints, rows: Longs, guard: Guard, class_of: Ints, nodes: Ints, class_rows: Longs
) -> None:
    """The same for boxes (one tree node per QI each) that join classes; all but the first three change in place.

    Args:
        forest: The trees.
        boxes: Boxes by QIs.
        rows: Rows of each box.
        guard: What classes must satisfy; its units are the boxes.
        class_of: Class of each box, FREE where it looks for one.
        nodes: Box of each class.
        class_rows: Rows of each class.
    """
    rest = np.flatnonzero(class_of == FREE).astype(np.int32)
    # Largest first: what many rows share should choose before the classes grow.
    rest = rest[np.lexsort((rest, -rows[rest]))]
    _attach(
        rest, boxes, rows, guard.compiled, class_of, nodes, class_rows, forest.parent, forest.lo, forest.hi, forest.loss
    )  # fmt: skip


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
def _close(order, offset, members, ids, persons, k, guard, class_of, classes):  # type: ignore[no-untyped-def]
    """Close groups in turn; `ids` gives the guard's number of each member."""
    asked = asks(guard)
    held_ids = np.empty(len(ids) if asked else 0, np.int32)
    for g in order:
        held = 0
        for i in range(offset[g], offset[g + 1]):
            if class_of[members[i]] < 0:
                held += persons[members[i]]
        if held < k:
            continue
        if asked:
            size = 0
            for i in range(offset[g], offset[g + 1]):
                if class_of[members[i]] < 0:
                    held_ids[size] = ids[members[i]]
                    size += 1
            if not accepts(guard, held_ids[:size]):
                continue
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


@njit(cache=True)
def joined_node(u, v, parent, lo, hi):  # type: ignore[no-untyped-def]
    """Lowest common ancestor of two nodes of one QI."""
    while lo[u] > lo[v] or hi[u] < hi[v]:
        u = parent[u]
    return u


@njit(cache=True)
def united_cost(nodes, box, parent, lo, hi, loss, limit):  # type: ignore[no-untyped-def]
    """Loss per row of a class (its nodes) once a box has joined; gives up beyond `limit`."""
    total = 0.0
    for j in range(len(nodes)):
        total += loss[joined_node(nodes[j], box[j], parent, lo, hi)]
        if total > limit:
            return np.inf
    return total


@njit(cache=True)
def _takes(guard, s, first, link, room):  # type: ignore[no-untyped-def]
    """Whether the class that begins with `first` stays acceptable with s."""
    size = 1
    room[0] = s
    while first >= 0:
        room[size] = first
        size += 1
        first = link[first]
    return accepts(guard, room[:size])


@njit(cache=True, nogil=True)
def _attach(rest, boxes, rows, guard, class_of, nodes, class_rows, parent, lo, hi, loss):  # type: ignore[no-untyped-def]
    count, width = nodes.shape
    asked = asks(guard)
    cost = np.zeros(count)
    for c in range(count):
        for j in range(width):
            cost[c] += loss[nodes[c, j]]
    rises = np.empty(count if asked else 0)
    head = np.full(count if asked else 0, -1, np.int32)
    link = np.full(len(class_of) if asked else 0, -1, np.int32)
    held_ids = np.empty(len(class_of) if asked else 0, np.int32)
    if asked:
        for s in range(len(class_of)):
            if class_of[s] >= 0:
                link[s] = head[class_of[s]]
                head[class_of[s]] = s
    for s in rest:
        best = np.inf
        chosen = -1
        for c in range(count):
            if class_rows[c] > 0:
                # class_rows·(new - old) + rows·new < best  ⇒  new < (best + class_rows·old) / (class_rows + rows)
                limit = (best + class_rows[c] * cost[c]) / (class_rows[c] + rows[s])
                new = united_cost(nodes[c], boxes[s], parent, lo, hi, loss, limit)
                rise = class_rows[c] * (new - cost[c]) + rows[s] * new
                if rise < best:
                    best = rise
                    chosen = c
        if asked and chosen >= 0 and not _takes(guard, s, head[chosen], link, held_ids):
            # The cheapest class may not take it: only now all are put in order.
            for c in range(count):
                rises[c] = np.inf
                if class_rows[c] > 0:
                    new = united_cost(nodes[c], boxes[s], parent, lo, hi, loss, np.inf)
                    rises[c] = class_rows[c] * (new - cost[c]) + rows[s] * new
            refused = chosen
            chosen = -1
            for c in np.argsort(rises, kind="mergesort")[:ASKED_CLASSES]:
                if not np.isfinite(rises[c]):
                    break
                if c != refused and _takes(guard, s, head[c], link, held_ids):
                    chosen = c
                    break
        if chosen < 0:
            continue
        if asked:
            link[s] = head[chosen]
            head[chosen] = s
        class_of[s] = chosen
        class_rows[chosen] += rows[s]
        cost[chosen] = 0.0
        for j in range(width):
            v = joined_node(nodes[chosen, j], boxes[s, j], parent, lo, hi)
            nodes[chosen, j] = v
            cost[chosen] += loss[v]
