"""The bounds against enumeration: no tiny table has a release below its bound, and the simple bound is exact."""

from collections.abc import Iterator
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kanon_spark.hierarchy.tree import Tree
from kanon_spark.kernels.bounds import project, simple_bound
from kanon_spark.kernels.certificate import is_certificate
from kanon_spark.kernels.dual import dual_bound, rise
from kanon_spark.kernels.problem import Forest, Problem

EXAMPLES = settings(max_examples=250, deadline=None)  # compiling takes its time in the first example
EPSILON = 1e-9


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Two to five leaves, merged in up to three levels; losses in 64ths, so that sums are exact in any order."""
    leaves = draw(st.integers(2, 5))
    levels = [np.arange(leaves)]
    nodes = [(x, x + 1) for x in range(leaves)]
    loss = [draw(st.sampled_from([0.0, 0.0, 0.0, 0.125])) for _ in range(leaves)]
    parent = [-1] * leaves
    for level in range(draw(st.integers(0, 2)) + 1):
        below = levels[-1]
        last = level == 2 or len(set(below)) == 1
        cuts = [False if last else draw(st.booleans()) for _ in range(leaves - 1)]
        # Only cut where the level below is cut too, or the levels would not nest.
        joined = np.cumsum([0] + [int(cut and below[i] != below[i + 1]) for i, cut in enumerate(cuts)])
        levels.append(_add_level(joined, below, nodes, parent, loss, draw))
    if len(set(levels[-1])) > 1:
        levels.append(_add_level(np.zeros(leaves, int), levels[-1], nodes, parent, loss, draw))
    closed_above = draw(st.sampled_from([None, None, len(levels) - 2]))
    if closed_above is not None:
        for level in range(closed_above + 1, len(levels)):
            for node in set(levels[level].tolist()):
                loss[node] = np.inf
    return Tree(
        labels=tuple(map(str, range(len(nodes)))),
        parent=np.array(parent, np.int32),
        lo=np.array([low for low, _ in nodes], np.int32),
        hi=np.array([high for _, high in nodes], np.int32),
        loss=np.array(loss),
        levels=np.vstack(levels).astype(np.int32),
        max_level=closed_above,
    )


def _add_level(
    joined: np.ndarray,
    below: np.ndarray,
    nodes: list[tuple[int, int]],
    parent: list[int],
    loss: list[float],
    draw: st.DrawFn,
) -> np.ndarray:
    """Append one node for each run of `joined`, no cheaper than its children."""
    level = np.empty(len(joined), int)
    for group in range(int(joined[-1]) + 1):
        members = np.flatnonzero(joined == group)
        children = set(below[members].tolist())
        for child in children:
            parent[child] = len(nodes)
        level[members] = len(nodes)
        nodes.append((int(members[0]), int(members[-1]) + 1))
        parent.append(-1)
        loss.append(min(1.0, max(loss[child] for child in children) + draw(st.integers(0, 40)) / 64))
    return level


@st.composite
def problems(draw: st.DrawFn, most_rows: int = 7) -> Problem:
    """A few rows over two or three random trees, duplicates likely."""
    forest_trees = draw(st.lists(trees(), min_size=2, max_size=3))
    weights = np.array([draw(st.sampled_from([1.0, 1.0, 0.5, 2.0])) for _ in forest_trees])
    row = st.tuples(*(st.integers(0, tree.leaves - 1) for tree in forest_trees))
    table = np.array(draw(st.lists(row, min_size=1, max_size=most_rows)))
    codes, rows = np.unique(table, axis=0, return_counts=True)
    present = [np.bincount(codes[:, i], minlength=tree.leaves) > 0 for i, tree in enumerate(forest_trees)]
    forest = Forest.of(forest_trees, weights, present)
    counts = rows.astype(np.int64)
    return Problem(forest, forest.encode(codes.astype(np.int32)), counts, counts, draw(st.integers(2, 3)))


@st.composite
def larger_problems(draw: st.DrawFn) -> Problem:
    """Tens of rows over three trees: enough for groups to lose their rising rows one after another."""
    forest_trees = draw(st.lists(trees(), min_size=3, max_size=3))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    size = draw(st.integers(20, 60))
    table = np.column_stack([(tree.leaves * random.random(size) ** 2).astype(int) for tree in forest_trees])
    codes, rows = np.unique(table, axis=0, return_counts=True)
    present = [np.bincount(codes[:, i], minlength=tree.leaves) > 0 for i, tree in enumerate(forest_trees)]
    forest = Forest.of(forest_trees, np.ones(3), present)
    counts = rows.astype(np.int64)
    return Problem(forest, forest.encode(codes.astype(np.int32)), counts, counts, draw(st.integers(3, 9)))


def ceiling_of(problem: Problem) -> float:
    """A stand-in for the sum of weights: the dearest finite root loss per QI, at least 1 each."""
    forest = problem.forest
    roots = [float(forest.loss[forest.start[q + 1] - 1]) for q in range(forest.width)]
    return sum(max(1.0, loss) if np.isfinite(loss) else 1.0 for loss in roots)


def groups_of(problem: Problem) -> Iterator[tuple[np.ndarray, float]]:
    """Members (as a mask) and loss of every tuple of nodes."""
    forest = problem.forest
    for nodes in product(*(range(forest.start[q], forest.start[q + 1]) for q in range(forest.width))):
        inside = np.ones(problem.size, bool)
        for q, node in enumerate(nodes):
            inside &= (forest.lo[node] <= problem.codes[:, q]) & (problem.codes[:, q] < forest.hi[node])
        yield inside, float(forest.loss[list(nodes)].sum())


def simple_by_hand(problem: Problem, ceiling: float) -> np.ndarray:
    best = np.full(problem.size, ceiling)
    for inside, loss in groups_of(problem):
        if problem.rows[inside].sum() >= problem.k:
            best[inside] = np.minimum(best[inside], loss)
    return best


def class_loss(problem: Problem, members: frozenset[int]) -> float:
    """Loss per row of a class of signatures: the lowest node per QI that covers them."""
    forest = problem.forest
    total = 0.0
    for q in range(forest.width):
        codes = problem.codes[sorted(members), q]
        covering = [
            node
            for node in range(forest.start[q], forest.start[q + 1])
            if forest.lo[node] <= codes.min() and codes.max() < forest.hi[node]
        ]
        total += float(forest.loss[min(covering, key=lambda node: forest.hi[node] - forest.lo[node])])
    return total


def best_release(problem: Problem, ceiling: float) -> float:
    """Least total loss over all partitions of the single rows into classes of at least k, and suppressed rows."""
    signature_of = np.repeat(np.arange(problem.size), problem.rows)
    count = len(signature_of)
    class_cost = np.full(2**count, np.inf)
    for rows in range(1, 2**count):
        members = [i for i in range(count) if rows >> i & 1]
        if len(members) >= problem.k:
            class_cost[rows] = len(members) * class_loss(problem, frozenset(signature_of[members].tolist()))
        elif len(members) == 1:
            class_cost[rows] = ceiling
    best = np.full(2**count, np.inf)
    best[0] = 0.0
    for rows in range(1, 2**count):
        first = rows & -rows
        part = rest = rows ^ first  # every subset of the others may be in the first row's class
        while True:
            best[rows] = min(best[rows], class_cost[part | first] + best[rest ^ part])
            if part == 0:
                break
            part = (part - 1) & rest
    return float(best[-1])


def rise_by_hand(problem: Problem, ceiling: float) -> np.ndarray:
    """The rule alone: all values rise together; a tight group stops its rising rows."""
    groups = [(inside, loss) for inside, loss in groups_of(problem) if problem.rows[inside].sum() >= problem.k]
    groups = [(inside, loss) for inside, loss in groups if np.isfinite(loss)]
    values = np.zeros(problem.size)
    rising = np.ones(problem.size, bool)
    while rising.any():
        level, stop = ceiling, rising
        for inside, loss in groups:
            count = int(problem.rows[inside & rising].sum())
            if count:
                stopped = inside & ~rising
                largest = np.sort(np.repeat(values[stopped], problem.rows[stopped]))[::-1][: max(0, problem.k - count)]
                tight = (problem.k * loss - largest.sum()) / min(count, problem.k)
                if tight < level:
                    level, stop = tight, inside & rising
        values[stop] = level
        rising &= ~stop
    return values


@EXAMPLES
@given(problems(most_rows=12))
def test_simple_bound_is_the_cheapest_group(problem: Problem) -> None:
    ceiling = ceiling_of(problem)
    assert simple_bound(problem, ceiling=ceiling).tolist() == simple_by_hand(problem, ceiling).tolist()


@EXAMPLES
@given(problems())
def test_simple_below_dual_below_the_best_release(problem: Problem) -> None:
    ceiling = ceiling_of(problem)
    simple = simple_bound(problem, ceiling=ceiling)
    dual = dual_bound(problem, ceiling=ceiling)
    assert dual.kind == "dual"
    assert (simple <= dual.values + EPSILON).all()
    assert dual.total <= best_release(problem, ceiling) + EPSILON


@settings(max_examples=60, deadline=None)
@given(larger_problems())
def test_values_rise_as_by_hand(problem: Problem) -> None:
    ceiling = ceiling_of(problem)
    bound = dual_bound(problem, ceiling=ceiling)
    assert bound.kind == "dual"
    np.testing.assert_allclose(bound.values, rise_by_hand(problem, ceiling), rtol=0, atol=EPSILON)


@EXAMPLES
@given(problems(most_rows=12), st.floats(0.0, 3.0))
def test_dual_values_are_feasible_in_every_group_and_cannot_be_raised(problem: Problem, cap: float) -> None:
    ceiling = ceiling_of(problem)
    bound = dual_bound(problem, ceiling=ceiling, cap=cap)
    top = min(ceiling, cap)
    raisable = bound.values < top - EPSILON
    assert bound.values.max() <= top
    for inside, loss in groups_of(problem):
        if problem.rows[inside].sum() < problem.k:
            continue
        largest = np.sort(np.repeat(bound.values[inside], problem.rows[inside]))[::-1][: problem.k]
        assert largest.sum() <= problem.k * loss + EPSILON
        if largest.sum() >= problem.k * loss - EPSILON:
            raisable &= ~(inside & (bound.values >= largest[-1] - EPSILON))
    assert not raisable.any()


@EXAMPLES
@given(problems(most_rows=12), st.data())
def test_certificate_agrees_with_enumeration(problem: Problem, data: st.DataObject) -> None:
    ceiling = ceiling_of(problem)
    base = rise(problem, ceiling=ceiling, top=ceiling, member_limit=10_000, work_limit=10**9)[0]
    nudge = data.draw(st.lists(st.sampled_from([-0.1, 0.0, 1e-4]), min_size=problem.size, max_size=problem.size))
    values = np.clip(base + np.array(nudge), 0.0, ceiling)
    feasible = True
    for inside, loss in groups_of(problem):
        if problem.rows[inside].sum() >= problem.k:
            largest = np.sort(np.repeat(values[inside], problem.rows[inside]))[::-1][: problem.k]
            feasible &= bool(largest.sum() <= problem.k * (loss + EPSILON))
    assert is_certificate(problem, values, ceiling=ceiling) == feasible


@EXAMPLES
@given(problems(most_rows=12), st.integers(1, 60), st.integers(1, 60))
def test_limits_only_weaken_the_bound(problem: Problem, member_limit: int, work_limit: int) -> None:
    ceiling = ceiling_of(problem)
    full = dual_bound(problem, ceiling=ceiling)
    simple = simple_bound(problem, ceiling=ceiling)
    for limits in ({"member_limit": member_limit}, {"work_limit": work_limit}):
        tight = dual_bound(problem, ceiling=ceiling, **limits)
        assert is_certificate(problem, tight.values, ceiling=ceiling)
        assert np.dot(simple, problem.rows) - EPSILON <= tight.total <= full.total + EPSILON


@EXAMPLES
@given(problems(most_rows=12), st.integers(0, 2))
def test_projected_bound_is_valid_for_the_whole(problem: Problem, left_out: int) -> None:
    counted = np.ones(problem.forest.width, bool)
    counted[min(left_out, len(counted) - 1)] = False
    ceiling = ceiling_of(problem)
    smaller, index = project(problem, counted)
    assert smaller.rows.sum() == problem.rows.sum()
    assert (smaller.codes[index] == problem.codes[:, counted]).all()
    values = simple_by_hand(smaller, ceiling)
    assert values.tolist() == simple_bound(smaller, ceiling=ceiling).tolist()
    assert (values[index] <= simple_bound(problem, ceiling=ceiling)).all()
