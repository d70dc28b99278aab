"""Check that values form a lower bound, on a listing of its own.

Idea: refuse unless in every group of at least k rows the k largest values sum to at most k times the group's loss.
Plain on purpose, and apart from the code that made the values: it knows nothing of closed groups, levels or bands.
Groups are refined QI by QI from a stack of segments; a segment whose k largest values are fine at the loss spent so far
is fine whatever the other QIs are generalized to, and is dropped.

Cost: near that of making the dual bound, which it guards. Adult, 8 QIs, k=10: 2 s.
Source: our own.
"""

import numpy as np

from kanon_spark.compiling import njit
from kanon_spark.kernels.problem import Floats, Problem

TOLERANCE = 1e-9


def is_certificate(
    problem: Problem, values: Floats, *, ceiling: float, tolerance: float = TOLERANCE, work_limit: int = 2**62
) -> bool:
    """Are the values proven to be a lower bound on every release's loss, row by row summed?

    Args:
        problem: Signatures and trees; losses are weighted.
        values: One per signature, for each of its rows.
        ceiling: What a suppressed row costs.
        tolerance: How much the average of the k largest may exceed a group's loss.
        work_limit: Give up, unproven, after looking at this many members.
    """
    if problem.size == 0:
        return True
    if not np.isfinite(values).all() or values.min() < 0.0 or values.max() > ceiling + tolerance:
        return False
    forest = problem.forest
    return bool(
        _all_groups_fine(
            np.argsort(forest.leaves, kind="stable"),
            forest.start,
            forest.parent,
            forest.lo,
            forest.hi,
            forest.loss,
            problem.codes,
            problem.rows,
            values,
            problem.k,
            tolerance,
            work_limit,
        )
    )


@njit(cache=True, nogil=True)
def _all_groups_fine(  # type: ignore[no-untyped-def]
    order, start, parent, lo, hi, loss, codes, rows, values, k, tolerance, work_limit
):
    width = len(order)
    # A stack of segments: how many QIs are fixed, the loss spent on them, and the members at the end of one buffer.
    fixed, spent, first = [0], [0.0], [0]
    stack = np.arange(len(rows)).astype(np.int32)
    used = len(rows)
    work = 0
    while len(fixed) > 0:
        done, cost, begin = fixed.pop(), spent.pop(), first.pop()
        members = stack[begin:used].copy()
        used = begin
        if done == width:
            return False  # only segments in doubt are pushed, and this one is a whole group
        q = order[done]
        column = codes[:, q]
        leaf = column[members]
        by_leaf = np.argsort(leaf, kind="mergesort")
        members, leaf = members[by_leaf], leaf[by_leaf]
        size = len(members)
        work += size
        if work > work_limit:
            return False
        a = 0
        while a < size:
            v = start[q] + leaf[a]
            b = a
            weight = 0
            while v >= 0 and (a == 0 or leaf[a - 1] < lo[v]):
                before = b
                while b < size and leaf[b] < hi[v]:
                    weight += rows[members[b]]
                    b += 1
                if b > before and weight >= k and _in_doubt(members[a:b], values, rows, k, cost + loss[v] + tolerance):
                    if used + b - a > len(stack):
                        larger = np.empty(2 * (used + b - a), np.int32)
                        larger[:used] = stack[:used]
                        stack = larger
                    stack[used : used + b - a] = members[a:b]
                    fixed.append(done + 1)
                    spent.append(cost + loss[v])
                    first.append(used)
                    used += b - a
                v = parent[v]
            run = leaf[a]
            while a < size and leaf[a] == run:
                a += 1
    return True


@njit(cache=True)
def _in_doubt(members, values, rows, k, loss):  # type: ignore[no-untyped-def]
    """Do the k largest values average more than loss?"""
    # 1. Values above the loss push the average up, the largest of the others pull it down least.
    push = 0.0
    above = 0
    nearest = 0.0
    for s in members:
        if values[s] > loss:
            push += rows[s] * (values[s] - loss)
            above += rows[s]
        elif values[s] > nearest:
            nearest = values[s]
    if above == 0:
        return False
    if above < k and push <= (k - above) * (loss - nearest):
        return False
    # 2. Exactly.
    largest = np.argsort(-values[members], kind="mergesort")
    total = 0.0
    left = k
    for i in largest:
        s = members[i]
        take = min(left, rows[s])
        total += take * values[s]
        left -= take
        if left == 0:
            break
    return total > k * loss
