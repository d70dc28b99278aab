"""The cheapest partner of every component, without looking at all pairs.

A component is a box (one tree node per QI) with rows; uniting two boxes costs what the rows of both lose by it. The
components are sorted by their codes and put under a binary tree of bounding boxes. In a QI where two boxes are apart,
the lowest common ancestor of one with anything inside the other is known from the boxes alone, so that whole branches
are ruled out once their least possible cost is above the best partner found so far.

Cost: near n log n on clustered data, never above all pairs. Rising costs are compared exactly, ties go to the component
of the lesser number: the answer is that of the scan over all pairs.
"""

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.kernels.lattice import joined_node
from kanon_spark.kernels.problem import Forest

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

_LEAF = 8  # components under one lowest box


def cheapest_partners(
    forest: Forest, nodes: Ints, rows: Longs, asking: Ints, *, by_union: bool = False
) -> tuple[Ints, Floats]:
    """For each asking component, the one whose union with it adds the least row-weighted loss, and that loss.

    Args:
        forest: The trees.
        nodes: Box of each component, as node ids of the forest.
        rows: Rows of each component.
        asking: Which components ask.
        by_union: Compare the loss of the unions themselves, whatever the components hold and cost by themselves.

    Returns:
        Partner (-1 if there is none that may be published) and added loss (infinite there), one per asking component.
    """
    if len(nodes) < 2:
        return np.full(len(asking), -1, np.int32), np.full(len(asking), np.inf)
    # The QIs with the fewest, dearest branches first: near in this order is near in loss.
    by_leaves = np.argsort(forest.leaves, kind="stable")
    order = np.lexsort([forest.lo[nodes[:, j]] for j in by_leaves[::-1]]).astype(np.int32)
    cost = np.zeros(len(nodes)) if by_union else forest.loss[nodes].sum(axis=1)
    rows = np.ones(len(nodes), np.int64) if by_union else rows
    box, least_rows, most_cost = _build(order, nodes, rows, cost, forest.parent, forest.lo, forest.hi)
    return _ask(  # type: ignore[no-any-return]
        asking, order, nodes, rows, cost, box, least_rows, most_cost, forest.parent, forest.lo, forest.hi, forest.loss
    )


@njit(cache=True)
def added_loss(a, b, nodes, rows, cost, parent, lo, hi, loss, limit):  # type: ignore[no-untyped-def]
    """What the rows of two components lose by their union; infinite as soon as it is above `limit`."""
    first, second = min(a, b), max(a, b)  # the same sum in the same order, whoever asks
    held = rows[first] + rows[second]
    had = rows[first] * cost[first] + rows[second] * cost[second]
    union = 0.0
    for j in range(nodes.shape[1]):
        union += loss[joined_node(nodes[first, j], nodes[second, j], parent, lo, hi)]
        if held * union - had > limit + 1e-9:
            return np.inf
    return held * union - had


@njit(cache=True)
def _widen(box, by, parent, lo, hi):  # type: ignore[no-untyped-def]
    """Let a box (-1: empty) cover another one, too."""
    for j in range(len(box)):
        box[j] = by[j] if box[j] < 0 else joined_node(box[j], by[j], parent, lo, hi)


@njit(cache=True, nogil=True)
def _build(order, nodes, rows, cost, parent, lo, hi):  # type: ignore[no-untyped-def]
    """Bounding boxes as a heap: children of t are 2t+1 and 2t+2; the last `leaves` ones hold _LEAF components each."""
    count, width = nodes.shape
    leaves = 1
    while leaves * _LEAF < count:
        leaves *= 2
    total = 2 * leaves - 1
    box = np.full((total, width), -1, np.int32)
    least_rows = np.full(total, np.int64(1) << 62, np.int64)
    most_cost = np.zeros(total)
    for t in range(total - 1, -1, -1):
        if t >= leaves - 1:
            first = (t - leaves + 1) * _LEAF
            for i in range(first, min(first + _LEAF, count)):
                c = order[i]
                _widen(box[t], nodes[c], parent, lo, hi)
                least_rows[t] = min(least_rows[t], rows[c])
                most_cost[t] = max(most_cost[t], cost[c])
        else:
            for child in (2 * t + 1, 2 * t + 2):
                if box[child, 0] >= 0:
                    _widen(box[t], box[child], parent, lo, hi)
                    least_rows[t] = min(least_rows[t], least_rows[child])
                    most_cost[t] = max(most_cost[t], most_cost[child])
    return box, least_rows, most_cost


@njit(cache=True)
def _least(c, t, nodes, rows, cost, box, least_rows, most_cost, parent, lo, hi, loss):  # type: ignore[no-untyped-def]
    """No union of component c with anything under box t adds less than this."""
    union = 0.0
    for j in range(nodes.shape[1]):
        u, v = nodes[c, j], box[t, j]
        if hi[v] <= lo[u] or hi[u] <= lo[v]:
            union += loss[joined_node(u, v, parent, lo, hi)]
        else:
            union += loss[u]
    found = rows[c] * (union - cost[c])
    if union > most_cost[t]:
        found += least_rows[t] * (union - most_cost[t])
    return found


@njit(cache=True, nogil=True)
def _ask(asking, order, nodes, rows, cost, box, least_rows, most_cost, parent, lo, hi, loss):  # type: ignore[no-untyped-def]
    count = len(order)
    leaves = (len(box) + 1) // 2
    place = np.empty(count, np.int32)
    for i in range(count):
        place[order[i]] = i
    partner = np.full(len(asking), -1, np.int32)
    added = np.full(len(asking), np.inf)
    stack = np.empty(128, np.int32)
    bound = np.empty(128)
    for at in range(len(asking)):
        c = asking[at]
        best = np.inf
        chosen = -1
        # A first guess from the neighbours in the order makes the limit tight from the start.
        for i in range(max(0, place[c] - 4), min(count, place[c] + 5)):
            d = order[i]
            if d != c:
                new = added_loss(c, d, nodes, rows, cost, parent, lo, hi, loss, best)
                if new < best or (new == best and d < chosen):
                    best = new
                    chosen = d
        top = 0
        stack[0] = 0
        bound[0] = 0.0
        while top >= 0:
            t = stack[top]
            limit = bound[top]
            top -= 1
            if limit > best + 1e-9:
                continue
            if t >= leaves - 1:
                first = (t - leaves + 1) * _LEAF
                for i in range(first, min(first + _LEAF, count)):
                    d = order[i]
                    if d != c:
                        new = added_loss(c, d, nodes, rows, cost, parent, lo, hi, loss, best)
                        if new < best or (new == best and d < chosen):
                            best = new
                            chosen = d
                continue
            left, right = 2 * t + 1, 2 * t + 2
            if box[right, 0] < 0:
                top += 1
                stack[top], bound[top] = left, limit
                continue
            low_left = _least(c, left, nodes, rows, cost, box, least_rows, most_cost, parent, lo, hi, loss)
            low_right = _least(c, right, nodes, rows, cost, box, least_rows, most_cost, parent, lo, hi, loss)
            if low_left > low_right:  # the nearer one is looked at first, so it goes on the stack last
                left, right = right, left
                low_left, low_right = low_right, low_left
            if low_right <= best + 1e-9:
                top += 1
                stack[top], bound[top] = right, low_right
            if low_left <= best + 1e-9:
                top += 1
                stack[top], bound[top] = left, low_left
        if chosen >= 0 and best < np.inf:
            partner[at] = chosen
            added[at] = best
    return partner, added
