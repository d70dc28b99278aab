"""List the closed groups of the lattice, each exactly once, cheapest branches only.

Idea: a group is all signatures under one tuple of tree nodes; it is closed if that tuple is the lowest common ancestor
of its members. Visiting every lattice node would cost signatures times nodes; instead the groups are listed depth
first, QI by QI, like an iceberg cube: sort the segment by the leaf of the next QI, and for every run of equal leaves
climb from the leaf towards the root. A branch ends when it holds fewer than k persons or so few sensitive values that
the guard would accept no part of it, when it costs more than the ceiling, or when some earlier QI is no longer at the
lowest common ancestor of what is left (then the same members are listed elsewhere).

Cost: about the number of groups listed times their size; one buffer row per QI. The stack is explicit, because numba
cannot cache a self-recursive function that others call.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.kernels.guard import asks, may_accept
from kanon_spark.kernels.problem import Forest, Problem

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

MEMBER_LIMIT = 400_000_000  # members in one listing: beyond, the caller must ask for a narrower window


@dataclass(frozen=True)
class Groups:
    """Listed groups: group g costs cost[g] per row and holds members[offset[g]:offset[g+1]]."""

    cost: Floats
    offset: Longs
    members: Ints
    complete: bool

    @property
    def count(self) -> int:
        """Number of groups."""
        return len(self.cost)


def search_order(forest: Forest) -> Ints:
    """QIs in the order they are refined: fewest leaves first; ties by position.

    A step up costs most where there are few leaves, so that the ceiling ends branches early. A QI of many leaves has
    many cheap nodes on the way up: early on, all that follows would be listed under each of them.
    """
    return np.argsort(forest.leaves, kind="stable").astype(np.int32)


def list_groups(problem: Problem, candidates: Ints, *, above: float, upto: float, limit: int = MEMBER_LIMIT) -> Groups:
    """Closed groups among the candidate signatures with at least k persons and above < cost <= upto.

    Groups that the guard is certain to refuse, whatever part of them, are left out as well.

    Args:
        problem: Signatures, trees and the guard.
        candidates: Indices of the signatures to look at.
        above: Groups of this cost or less are left out.
        upto: Groups dearer than this are left out.
        limit: Stop when this many members have been listed; `complete` is then False.
    """
    forest = problem.forest
    cost, offset, members, complete = _list_groups(
        search_order(forest),
        forest.start,
        forest.parent,
        forest.lo,
        forest.hi,
        forest.loss,
        problem.codes,
        problem.persons,
        candidates,
        problem.k,
        problem.guard.compiled,
        above,
        upto,
        limit,
    )
    return Groups(cost, offset, members, complete)


@njit(cache=True)
def sort_segment(members, leaf, size, counts, top):  # type: ignore[no-untyped-def]
    """Sort members[:size] by leaf[:size] in place, stably: insertion if short, counting if dense, else packed."""
    if size <= 24:
        for i in range(1, size):
            x, y = leaf[i], members[i]
            j = i - 1
            while j >= 0 and leaf[j] > x:
                leaf[j + 1], members[j + 1] = leaf[j], members[j]
                j -= 1
            leaf[j + 1], members[j + 1] = x, y
    elif size * 8 >= top:
        counts[: top + 1] = 0
        for i in range(size):
            counts[leaf[i] + 1] += 1
        for i in range(1, top + 1):
            counts[i] += counts[i - 1]
        old = members[:size].copy()
        old_leaf = leaf[:size].copy()
        for i in range(size):
            x = old_leaf[i]
            members[counts[x]] = old[i]
            leaf[counts[x]] = x
            counts[x] += 1
    else:
        packed = np.empty(size, np.int64)
        for i in range(size):
            packed[i] = (np.int64(leaf[i]) << 32) | i
        packed.sort()
        old = members[:size].copy()
        for i in range(size):
            members[i] = old[packed[i] & 0xFFFFFFFF]
            leaf[i] = packed[i] >> 32


@njit(cache=True)
def spans(codes, column, node, first_node, parent, lo, hi, segment, begin, end):  # type: ignore[no-untyped-def]
    """Is `node` (of the QI in `column`) the lowest common ancestor of segment[begin:end]? Two or three looks decide."""
    child = first_node + codes[segment[begin], column]
    if child == node:
        return True
    while parent[child] != node:
        child = parent[child]
    low, high = lo[child], hi[child]
    for i in range(begin + 1, end):
        x = codes[segment[i], column]
        if x < low or x >= high:
            return True
    return False


@njit(cache=True, nogil=True)
def _list_groups(  # type: ignore[no-untyped-def]
    order, start, parent, lo, hi, loss, codes, persons, candidates, k, guard, above, upto, limit
):
    width = len(order)
    total = len(candidates)
    segment = np.empty((width, total), np.int32)
    leaf = np.empty((width, total), np.int32)
    weight = np.zeros((width, total + 1), np.int64)
    size = np.zeros(width, np.int64)
    begin = np.zeros(width, np.int64)  # start of the current run
    run_end = np.zeros(width, np.int64)
    end = np.zeros(width, np.int64)  # end of the current node's members
    node = np.full(width, -1, np.int32)  # current node; -1: take the next run
    accepted = np.zeros(width, np.bool_)  # whether the guard may accept what the current node holds
    spent = np.zeros(width + 1)
    top = 0
    for q in range(width):
        top = max(top, start[q + 1] - start[q])
    counts = np.zeros(top + 2, np.int64)

    cost = np.empty(1024, np.float64)
    offset = np.zeros(1025, np.int64)
    members = np.empty(max(4096, total), np.int32)
    groups = 0
    used = 0
    complete = True

    depth = 0
    size[0] = total
    for i in range(total):
        segment[0, i] = candidates[i]
    entering = True
    while depth >= 0:
        q = order[depth]
        base = start[q]
        if entering:
            # 1. A new segment: sort it by this QI's leaf, prefix its weights, start at the first run.
            n = size[depth]
            for i in range(n):
                leaf[depth, i] = codes[segment[depth, i], q]
            sort_segment(segment[depth], leaf[depth], n, counts, start[q + 1] - base)
            for i in range(n):
                weight[depth, i + 1] = weight[depth, i] + persons[segment[depth, i]]
            run_end[depth] = 0
            node[depth] = -1
            entering = False
        n = size[depth]
        v = node[depth]
        if v < 0:
            # 2. The next run of equal leaves, or back to the QI before.
            a = run_end[depth]
            if a >= n or weight[depth, n] < k:
                depth -= 1
                if depth >= 0:
                    node[depth] = parent[node[depth]]
                continue
            x = leaf[depth, a]
            b = a + 1
            while b < n and leaf[depth, b] == x:
                b += 1
            begin[depth] = a
            run_end[depth] = b
            end[depth] = b
            v = base + x
            node[depth] = v
            accepted[depth] = False
            fresh = True
        else:
            # 3. One step up from the child: more members, or the node is no lowest common ancestor.
            a = begin[depth]
            if a > 0 and leaf[depth, a - 1] >= lo[v]:
                node[depth] = -1
                continue
            b = end[depth]
            top_leaf = hi[v]
            while b < n and leaf[depth, b] < top_leaf:
                b += 1
            fresh = b != end[depth]
            end[depth] = b
        spend = spent[depth] + loss[v]
        if spend > upto:
            node[depth] = -1
            continue
        good = fresh and weight[depth, b] - weight[depth, a] >= k
        if good:
            for e in range(depth):
                p = order[e]
                if not spans(codes, p, node[e], start[p], parent, lo, hi, segment[depth], a, b):
                    good = False
                    break
        if good and asks(guard):
            # Further up the same path there are the same members and more: what may be accepted stays so.
            if not accepted[depth]:
                accepted[depth] = may_accept(guard, segment[depth, a:b])
            good = accepted[depth]
        if not good:
            node[depth] = parent[v]
            continue
        if depth == width - 1:
            # 4. A closed group: keep it if it lies in the window.
            if spend > above:
                if used + b - a > limit:
                    complete = False
                    break
                if groups + 1 >= len(cost):
                    cost = _grown(cost, 2 * len(cost))
                    offset = _grown(offset, 2 * len(cost) + 1)
                if used + b - a > len(members):
                    members = _grown(members, 2 * (used + b - a))
                cost[groups] = spend
                for i in range(a, b):
                    members[used] = segment[depth, i]
                    used += 1
                groups += 1
                offset[groups] = used
            node[depth] = parent[v]
        else:
            # 5. Refine the members by the next QI; climbing goes on here afterwards.
            spent[depth + 1] = spend
            size[depth + 1] = b - a
            for i in range(a, b):
                segment[depth + 1, i - a] = segment[depth, i]
            depth += 1
            entering = True
    return cost[:groups].copy(), offset[: groups + 1].copy(), members[:used].copy(), complete


@njit(cache=True)
def _grown(array, size):  # type: ignore[no-untyped-def]
    out = np.empty(size, array.dtype)
    out[: len(array)] = array
    return out
