"""Lower bounds on the loss of any release, part two: the dual bound.

Idea: the best release solves a set-partition problem; the dual of its linear relaxation gives each row a value a >= 0,
at most what suppressing it costs, such that in every group of at least k rows the k largest values sum to at most k
times the group's loss. Any such values are a certificate: a class loses at least the values of its rows (its k largest
average no more than the loss, hence all of them), so Σ a is a lower bound on the loss of every release.

Construction: all values rise together from 0. When a group becomes tight, its rows that still rise stop for good. All
rising rows are at the same level and none is above it, which makes everything cheap:
  * a group with at least k rising rows is tight when the level is its loss: no row stops below its simple bound;
  * a group with fewer, say r, is tight at level (k·loss - sum of the k-r largest stopped values)/r, which only moves up
    as more of its rows stop: a lazy heap holds these levels;
  * groups dearer than the level cannot be tight yet, so they are listed in bands of growing loss, and only those that
    hold a rising row and could still become tight. Stopping early, at any level, leaves a valid certificate.

Cost: almost all of it is the listing. Adult, k=10, 5 QIs: 0.1 s; 8 QIs: 2 s; the check as much again. Memory: of the
groups not yet tight, the rising rows only; bounded by `member_limit`.
Source: dual ascent for facility location (Erlenkotter 1978; Jain and Vazirani 2001), with a "k largest" rule.
"""

import heapq
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.kernels.bounds import Bound, next_level, open_walk, simple_bound, step
from kanon_spark.kernels.certificate import is_certificate
from kanon_spark.kernels.problem import Floats, Ints, Longs, Problem
from kanon_spark.logs import logger

MEMBER_LIMIT = 20_000_000
WORK_LIMIT = 5_000_000_000  # members looked at while listing; about 80 s of one core
NARROWEST = 1e-3  # share of the ceiling: if not even so narrow a band of groups fits, rising ends

LISTED, FULL, TIRED = 0, 1, 2  # how listing a band ended


class _Pool(NamedTuple):
    """Groups that are not tight yet: group g's rising rows are among members[first[g]:first[g]+length[g]]."""

    loss: Floats
    first: Longs
    length: Ints  # 0: the group is done with
    few: NDArray[np.bool_]  # fewer than k of its rows rise: members are the rising ones, and …
    stopped: Floats  # … this is the sum of the largest stopped values that fill them up to k
    members: Ints
    fill: Longs  # groups, members, work left

    @classmethod
    def empty(cls, members: int, work: int) -> "_Pool":
        """Room is reserved, not touched: memory is taken as the pool fills."""
        groups = members // 4 + 1
        return cls(
            loss=np.empty(groups),
            first=np.empty(groups, np.int64),
            length=np.empty(groups, np.int32),
            few=np.empty(groups, np.bool_),
            stopped=np.empty(groups),
            members=np.empty(members, np.int32),
            fill=np.array([0, 0, work], np.int64),
        )


def dual_bound(
    problem: Problem,
    *,
    ceiling: float,
    cap: float | None = None,
    member_limit: int = MEMBER_LIMIT,
    work_limit: int = WORK_LIMIT,
) -> Bound:
    """The dual bound, proven on a fresh listing; the simple one where the dual is not better, or not proven.

    Args:
        problem: Signatures and trees; losses are weighted.
        ceiling: What a suppressed row costs (the sum of the QI weights); no value is above it.
        cap: No value is above it either. For a block: the loss at which groups begin to cross the cut.
        member_limit: Memory bound, in members of groups held at once; values stop rising where it would be passed.
        work_limit: The same for time, in members looked at, so that the result does not depend on the machine.
    """
    top = ceiling if cap is None else min(ceiling, cap)
    values, finished = rise(problem, ceiling=ceiling, top=top, member_limit=member_limit, work_limit=work_limit)
    dual = Bound.of(problem, values, "dual")
    if finished and is_certificate(problem, values, ceiling=ceiling, work_limit=work_limit):
        return dual
    simple = Bound.of(problem, simple_bound(problem, ceiling=ceiling, cap=cap), "simple")
    if finished:
        logger.warning("the dual bound could not be proven; the simple bound is reported")
        return simple
    # Rows that had to stop where the limits ended may be below their simple bound.
    if dual.total > simple.total and is_certificate(problem, values, ceiling=ceiling, work_limit=work_limit):
        return dual
    return simple


def rise(problem: Problem, *, ceiling: float, top: float, member_limit: int, work_limit: int) -> tuple[Floats, bool]:
    """Let all values rise to at most `top`; returns them, and whether the limits let them rise all the way."""
    values = np.zeros(problem.size)
    rising = np.ones(problem.size, np.bool_)
    reach = np.full(problem.size, top)  # no value can end above it
    pool = _Pool.empty(member_limit, work_limit)
    listed = -1.0  # groups up to this loss were listed, and values risen to this level
    width = np.inf
    while listed < top and rising.any():
        level = max(listed, 0.0)
        upto = min(next_level(listed, ceiling, top), level + width)
        walk = open_walk(problem, np.where(rising, problem.rows, 0), value=np.where(rising, problem.rows * reach, 0.0))
        ended = _list_band(walk, listed, upto, rising, values, pool)
        if ended == FULL and upto - level > NARROWEST * ceiling:
            width = (upto - level) / 2
            continue
        if ended != LISTED:
            values[rising] = level
            return values, False
        _rise_to(level, upto, problem.k, problem.rows, rising, values, pool)
        _tidy(upto, top, problem.k, problem.rows, rising, values, reach, pool)
        listed = upto
    values[rising] = top
    return values, True


@njit(cache=True, nogil=True)
def _list_band(walk, above, upto, rising, values, pool):  # type: ignore[no-untyped-def]
    """Put into the pool all groups of loss above … upto that hold a rising row and may become tight."""
    k, rows = walk.k, walk.rows
    last = len(walk.order) - 1
    level = max(above, 0.0)
    groups, used, work = pool.fill
    stopped_values = np.empty(len(rows))
    stopped_rows = np.empty(len(rows), np.int64)
    depth = step(walk, False, upto)
    while depth >= 0:
        a, b, loss = walk.begin[depth], walk.end[depth], walk.spent[depth + 1]
        work -= b - a
        if work < 0:
            return TIRED
        # Rising rows at their reach, the others at most at the level: can the k largest fill the group?
        count = walk.sum_marked[depth, b] - walk.sum_marked[depth, a]
        most = walk.sum_value[depth, b] - walk.sum_value[depth, a]
        wanted = most + max(0, k - count) * level > k * max(loss, above)
        if wanted and depth == last and loss > above:
            if groups >= len(pool.loss) or used + b - a > len(pool.members):
                pool.fill[2] = work
                return FULL
            length = 0
            others = 0
            for i in range(a, b):
                s = walk.segment[depth, i]
                if rising[s]:
                    pool.members[used + length] = s
                    length += 1
                else:
                    stopped_values[others] = values[s]
                    stopped_rows[others] = rows[s]
                    others += 1
            stopped = 0.0
            if count < k:
                stopped = _sum_largest(stopped_values, stopped_rows, others, k - count)
            if count >= k or most + stopped > k * loss:
                pool.loss[groups] = loss
                pool.first[groups] = used
                pool.length[groups] = length
                pool.few[groups] = count < k
                pool.stopped[groups] = stopped
                groups += 1
                used += length
        depth = step(walk, wanted and depth < last, upto)
    pool.fill[0], pool.fill[1], pool.fill[2] = groups, used, work
    return LISTED


@njit(cache=True)
def _sum_largest(values, weights, size, need):  # type: ignore[no-untyped-def]
    """Sum of the `need` largest of values[:size], each counted weight times. Reorders both (quickselect)."""
    total = 0.0
    low, high = 0, size
    while need > 0 and low < high:
        pivot = values[(low + high) // 2]
        larger, i, smaller = low, low, high
        weight_larger = weight_equal = 0
        sum_larger = 0.0
        while i < smaller:
            x, w = values[i], weights[i]
            if x > pivot:
                weight_larger += w
                sum_larger += w * x
                values[i], weights[i] = values[larger], weights[larger]
                values[larger], weights[larger] = x, w
                larger += 1
                i += 1
            elif x < pivot:
                smaller -= 1
                values[i], weights[i] = values[smaller], weights[smaller]
                values[smaller], weights[smaller] = x, w
            else:
                weight_equal += w
                i += 1
        if weight_larger >= need:
            high = larger
            continue
        take = min(need - weight_larger, weight_equal)
        total += sum_larger + take * pivot
        need -= weight_larger + take
        low = smaller
    return total


@njit(cache=True, nogil=True)
def _rise_to(level, upto, k, rows, rising, values, pool):  # type: ignore[no-untyped-def]
    """Raise the level from group to group that becomes tight, and stop their rising rows."""
    heap = [(0.0, 0) for _ in range(0)]
    for g in range(pool.fill[0]):
        tight = _tight_at(g, k, rows, rising, values, pool)
        if tight <= upto:
            heap.append((tight, g))
    heapq.heapify(heap)
    while len(heap) > 0:
        due, g = heapq.heappop(heap)
        tight = _tight_at(g, k, rows, rising, values, pool)
        if tight > due:  # some of its rows stopped meanwhile
            if tight <= upto:
                heapq.heappush(heap, (tight, g))
            continue
        level = max(level, due)
        for i in range(pool.first[g], pool.first[g] + pool.length[g]):
            s = pool.members[i]
            if rising[s]:
                rising[s] = False
                values[s] = level
        pool.length[g] = 0


@njit(cache=True)
def _tight_at(g, k, rows, rising, values, pool):  # type: ignore[no-untyped-def]
    """Level at which the group is tight if no more of its rows stop before; infinite if none rises."""
    first, length = pool.first[g], pool.length[g]
    count = 0
    for i in range(first, first + length):
        s = pool.members[i]
        if rising[s]:
            count += rows[s]
    if count == 0:
        pool.length[g] = 0
        return np.inf
    if count >= k:
        return pool.loss[g]
    # Rows that stopped since the group was listed stopped above all that had stopped before: they come first.
    if not pool.few[g]:
        stopped_values = np.empty(length)
        stopped_rows = np.empty(length, np.int64)
        others = 0
        for i in range(first, first + length):
            s = pool.members[i]
            if not rising[s]:
                stopped_values[others] = values[s]
                stopped_rows[others] = rows[s]
                others += 1
        pool.stopped[g] = _sum_largest(stopped_values, stopped_rows, others, k - count)
    kept = 0
    for i in range(first, first + length):
        s = pool.members[i]
        if rising[s]:
            pool.members[first + kept] = s
            kept += 1
        elif pool.few[g]:
            pool.stopped[g] += rows[s] * values[s]
    pool.few[g] = True
    pool.length[g] = kept
    return (k * pool.loss[g] - pool.stopped[g]) / count


@njit(cache=True, nogil=True)
def _tidy(level, top, k, rows, rising, values, reach, pool):  # type: ignore[no-untyped-def]
    """Drop groups that are done with or never tight below top; lower each rising row's reach by those that stay."""
    groups = 0
    used = 0
    for g in range(pool.fill[0]):
        if pool.length[g] == 0:
            continue
        tight = _tight_at(g, k, rows, rising, values, pool)
        if tight >= top:
            continue
        first, length = pool.first[g], pool.length[g]
        pool.loss[groups] = pool.loss[g]
        pool.first[groups] = used
        pool.length[groups] = length
        pool.few[groups] = pool.few[g]
        pool.stopped[groups] = pool.stopped[g]
        count = 0
        for i in range(length):
            s = pool.members[first + i]
            pool.members[used + i] = s
            count += rows[s]
        room = k * pool.loss[groups] - pool.stopped[groups]
        for i in range(length):
            s = pool.members[used + i]
            # The others end at this level at least; what they leave is the most that s can get.
            reach[s] = min(reach[s], (room - (count - rows[s]) * level) / rows[s])
        groups += 1
        used += length
    pool.fill[0], pool.fill[1] = groups, used
