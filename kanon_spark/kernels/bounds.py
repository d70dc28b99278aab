"""Lower bounds on the loss of any release, part one: the walk over groups and the simple bound.

Idea: a row's loss is at least that of the cheapest group (tuple of tree nodes) that contains it and holds at least k
rows of the table. Only closed groups need be looked at (same members, least loss), walked depth first as in `listing`.
The walk deepens: first the groups that cost little, which settle most signatures; a branch without an unsettled
signature, or that costs as much as the best of all its members so far, is cut.

Rows count towards k here, also where persons do in the release: persons are never more than rows, so the bound holds.

Cost: about the groups no dearer than the dearest signature's own bound. Adult, 8 QIs, 18,109 signatures: 0.3 s.
Source: our own; see `dual` for the stronger bound.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.kernels.listing import sort_segment, spans
from kanon_spark.kernels.problem import Floats, Forest, Ints, Longs, Problem

DEEPEN_SHARE = 0.04  # each pass goes this share of the ceiling deeper …
DEEPEN_FACTOR = 1.5  # … than this multiple of the last one


@dataclass(frozen=True)
class Bound:
    """A lower bound on Σ_i w_i·NCP_i, for each row of each signature.

    Attributes:
        values: One per signature.
        kind: Which bound it is.
        total: Σ rows · value; no release of this problem can lose less.
    """

    values: Floats
    kind: Literal["simple", "dual"]
    total: float

    @classmethod
    def of(cls, problem: Problem, values: Floats, kind: Literal["simple", "dual"]) -> "Bound":
        """Sum the values over the problem's rows."""
        return cls(values, kind, float(np.dot(values, problem.rows)))


def simple_bound(
    problem: Problem, *, ceiling: float, cap: float | None = None, reached: Floats | None = None
) -> Floats:
    """Least loss of a group that contains the signature and holds at least k rows, for each signature.

    Args:
        problem: Signatures and trees; losses are weighted.
        ceiling: What a suppressed row costs (the sum of the QI weights); no bound is above it.
        cap: No bound is above it either. For a block: the loss at which groups begin to cross the cut.
        reached: What some solution reaches for each signature (infinite: nothing). Its classes are groups of at least
            k rows, so that no bound is above it, and the walk only looks for cheaper groups.
    """
    top = ceiling if cap is None else min(ceiling, cap)
    best = np.full(problem.size, top) if reached is None else np.minimum(reached, top)
    if problem.size == 0:
        return best
    level = -1.0
    while level < top:
        upto = next_level(level, ceiling, top)
        marked = np.where(best > level, problem.rows, 0)
        _settle(open_walk(problem, marked, np.zeros(0)), upto, best)
        level = upto
        if best.max() <= level:
            break
    return best


def project(problem: Problem, counted: NDArray[np.bool_]) -> tuple[Problem, Longs]:
    """The problem on some of its QIs only, and which of its signatures each one becomes.

    A QI published as a tight range or set costs less than any node of its search tree, so it counts 0 in the bounds:
    leave it out here, and bound[index] is the bound of the whole problem's signatures. At least one QI must be counted.
    """
    forest = problem.forest
    kept = [int(q) for q in np.flatnonzero(counted)]
    codes = problem.codes[:, kept]
    order = np.lexsort(codes.T[::-1])
    ordered = codes[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    index = np.empty(len(order), np.int64)
    index[order] = np.cumsum(fresh) - 1
    nodes = [np.arange(forest.start[q], forest.start[q + 1]) for q in kept]
    start = np.concatenate([[0], np.cumsum([len(x) for x in nodes])]).astype(np.int32)
    taken = np.concatenate(nodes)
    shift = np.concatenate([np.full(len(x), start[i] - x[0]) for i, x in enumerate(nodes)])
    smaller = Forest(
        start=start,
        leaves=forest.leaves[kept],
        parent=np.where(forest.parent[taken] < 0, -1, forest.parent[taken] + shift).astype(np.int32),
        lo=forest.lo[taken],
        hi=forest.hi[taken],
        loss=forest.loss[taken],
        original=forest.original[taken],
        compact=tuple(forest.compact[q] for q in kept),
        present=tuple(forest.present[q] for q in kept),
    )
    count = int(fresh.sum())
    weights = [np.bincount(index, weights=x, minlength=count).astype(np.int64) for x in (problem.rows, problem.persons)]
    merged = Problem(smaller, np.asfortranarray(ordered[fresh]), weights[0], weights[1], problem.k)
    return merged, index


def next_level(level: float, ceiling: float, top: float) -> float:
    """How deep the next pass goes: slowly at first, where most signatures settle."""
    return min(top, max(level, 0.0) * DEEPEN_FACTOR + DEEPEN_SHARE * ceiling)


@njit(cache=True)
def monotone(loss, parent):  # type: ignore[no-untyped-def]
    """The least loss of each node and its ancestors, so that no loss falls on the way up.

    Pruned trees promise that already; the walk would cut too much without it, so it is made sure of here.
    """
    least = loss.copy()
    for node in range(len(loss) - 1, -1, -1):
        if parent[node] >= 0:
            least[node] = min(least[node], least[parent[node]])
    return least


class Walk(NamedTuple):
    """Where a depth-first walk over closed groups stands: a stack with one frame (array row) per QI.

    Frame f holds the segment that the frames above it left, sorted by its QI's leaf; its current node spans
    segment[f, begin[f]:end[f]]. A signature is marked by its weight: branches without marked weight are skipped.
    """

    k: int
    order: Ints
    start: Ints
    parent: Ints
    lo: Ints
    hi: Ints
    loss: Floats
    codes: Ints
    rows: Longs
    marked: Longs
    value: Floats  # whatever the caller wants summed over members; may be empty
    segment: NDArray[np.int32]
    leaf: NDArray[np.int32]
    sum_rows: NDArray[np.int64]
    sum_marked: NDArray[np.int64]
    sum_value: NDArray[np.float64]
    size: Longs
    begin: Longs
    end: Longs
    node: Ints  # -1: the next run of equal leaves is due
    spent: Floats  # spent[f+1]: loss of the nodes of frames 0 … f
    depth: Longs  # one element: the current frame, -1 before the start
    counts: Longs


def open_walk(problem: Problem, marked: Longs, value: Floats) -> Walk:
    """A walk over all groups of at least k rows that hold marked weight."""
    forest = problem.forest
    width, size = forest.width, problem.size
    return Walk(
        k=problem.k,
        # Fewest leaves first (listings do the opposite): there generalizing is dear, and branches are cut early.
        order=np.argsort(forest.leaves, kind="stable").astype(np.int32),
        start=forest.start,
        parent=forest.parent,
        lo=forest.lo,
        hi=forest.hi,
        loss=monotone(forest.loss, forest.parent),
        codes=problem.codes,
        rows=problem.rows,
        marked=marked,
        value=value,
        segment=np.empty((width, size), np.int32),
        leaf=np.empty((width, size), np.int32),
        sum_rows=np.zeros((width, size + 1), np.int64),
        sum_marked=np.zeros((width, size + 1), np.int64),
        sum_value=np.zeros((width, size + 1 if len(value) else 0)),
        size=np.zeros(width, np.int64),
        begin=np.zeros(width, np.int64),
        end=np.zeros(width, np.int64),
        node=np.full(width, -1, np.int32),
        spent=np.zeros(width + 1),
        depth=np.full(1, -1, np.int64),
        counts=np.zeros(int(np.diff(forest.start).max()) + 2, np.int64),
    )


@njit(cache=True)
def step(walk, refine, upto):  # type: ignore[no-untyped-def]
    """Go to the next candidate: a node no dearer than upto, of at least k rows and marked weight, closed so far.

    Args:
        walk: The stack; the candidate is at frame `depth`, members segment[depth, begin:end], loss spent[depth+1].
        refine: Go into the current candidate by the next QI (the caller wants it); else climb past it.
        upto: Dearest loss.

    Returns:
        The candidate's frame; it is a whole group in the last one. -1 when the walk is over.
    """
    depth = walk.depth[0]
    if depth < 0:
        for i in range(len(walk.rows)):
            walk.segment[0, i] = i
        walk.size[0] = len(walk.rows)
        depth = 0
        _enter(walk, depth)
    elif refine:
        a, b = walk.begin[depth], walk.end[depth]
        for i in range(a, b):
            walk.segment[depth + 1, i - a] = walk.segment[depth, i]
        walk.size[depth + 1] = b - a
        depth += 1
        _enter(walk, depth)
    else:
        walk.node[depth] = walk.parent[walk.node[depth]]
    while True:
        n = walk.size[depth]
        leaf = walk.leaf[depth]
        a, b = walk.begin[depth], walk.end[depth]
        v = walk.node[depth]
        # Climb from the run's leaf, or from where the last candidate left off.
        while v >= 0:
            loss = walk.spent[depth] + walk.loss[v]
            if loss > upto or (a > 0 and leaf[a - 1] >= walk.lo[v]):
                break  # too dear, or it was tried from an earlier run
            before = b
            high = walk.hi[v]
            while b < n and leaf[b] < high:
                b += 1
            if (
                b > before
                and walk.sum_rows[depth, b] - walk.sum_rows[depth, a] >= walk.k
                and walk.sum_marked[depth, b] > walk.sum_marked[depth, a]
            ):
                closed = True
                if b - a < n:  # the whole segment was found closed in the frame above
                    for e in range(depth):
                        q = walk.order[e]
                        if not spans(
                            walk.codes, q, walk.node[e], walk.start[q], walk.parent, walk.lo, walk.hi,
                            walk.segment[depth], a, b,
                        ):  # fmt: skip
                            closed = False
                            break
                if closed:
                    walk.end[depth] = b
                    walk.node[depth] = v
                    walk.spent[depth + 1] = loss
                    walk.depth[0] = depth
                    return depth
            v = walk.parent[v]
        # The next run, or back to the frame above and up from its node.
        x = leaf[a]
        while a < n and leaf[a] == x:
            a += 1
        if a < n:
            walk.begin[depth] = a
            walk.end[depth] = a
            walk.node[depth] = walk.start[walk.order[depth]] + leaf[a]
        else:
            depth -= 1
            if depth < 0:
                walk.depth[0] = -1
                return -1
            walk.node[depth] = walk.parent[walk.node[depth]]


@njit(cache=True)
def _enter(walk, depth):  # type: ignore[no-untyped-def]
    """Sort a new frame's segment by its QI's leaf, sum up its weights, start at its first run."""
    q = walk.order[depth]
    n = walk.size[depth]
    segment, leaf = walk.segment[depth], walk.leaf[depth]
    for i in range(n):
        leaf[i] = walk.codes[segment[i], q]
    sort_segment(segment, leaf, n, walk.counts, walk.start[q + 1] - walk.start[q])
    for i in range(n):
        s = segment[i]
        walk.sum_rows[depth, i + 1] = walk.sum_rows[depth, i] + walk.rows[s]
        walk.sum_marked[depth, i + 1] = walk.sum_marked[depth, i] + walk.marked[s]
    if len(walk.value):
        for i in range(n):
            walk.sum_value[depth, i + 1] = walk.sum_value[depth, i] + walk.value[segment[i]]
    walk.begin[depth] = 0
    walk.end[depth] = 0
    walk.node[depth] = walk.start[q] + leaf[0]


@njit(cache=True, nogil=True)
def _settle(walk, upto, best):  # type: ignore[no-untyped-def]
    """Lower best to the loss of every group up to `upto` that contains the signature."""
    last = len(walk.order) - 1
    depth = step(walk, False, upto)
    while depth >= 0:
        loss = walk.spent[depth + 1]
        refine = False
        for i in range(walk.begin[depth], walk.end[depth]):
            s = walk.segment[depth, i]
            if best[s] > loss:
                if depth < last:
                    refine = True
                    break
                best[s] = loss
        depth = step(walk, refine, upto)
