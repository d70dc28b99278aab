"""Classes from merges and trees: the rules written out slowly, and what must always hold."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import lowest_common, problems, random_tree

from kanon_spark.hierarchy.tree import Tree
from kanon_spark.kernels.lattice import class_table, total_loss
from kanon_spark.kernels.levels import Levels
from kanon_spark.kernels.merging import cut_longest, grow_balanced, merge_by_loss, split_along_trees
from kanon_spark.kernels.problem import Forest, Problem
from kanon_spark.kernels.spanning import Edges, spanning_tree


def with_levels(seed: int, size: int, k: int) -> tuple[Problem, Levels]:
    """A random problem together with the levels of its trees."""
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, int(rng.integers(1, 7))) for _ in range(int(rng.integers(1, 4)))]
    codes = np.unique(np.stack([rng.integers(0, tree.leaves, size) for tree in trees], axis=1), axis=0).astype(np.int32)
    present = [np.isin(np.arange(tree.leaves), codes[:, j]) for j, tree in enumerate(trees)]
    forest = Forest.of(trees, np.ones(len(trees)), present)
    rows = rng.integers(1, 4, len(codes)).astype(np.int64)
    persons = np.minimum(rows, rng.integers(0, 4, len(codes))).astype(np.int64)
    problem = Problem(forest, np.asfortranarray(forest.encode(codes)), rows, persons, k)
    return problem, Levels.of(trees, forest.present)


def members(class_of: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(class_of == c).tolist()) for c in np.unique(class_of[class_of >= 0])}


def box_loss(problem: Problem, inside: frozenset[int]) -> float:
    forest = problem.forest
    nodes = [lowest_common(forest, j, problem.codes[sorted(inside), j].tolist()) for j in range(forest.width)]
    return float(forest.loss[nodes].sum())


def slow_merge(problem: Problem, stop: float) -> set[frozenset[int]]:
    """All pairs of components, every round; components are told apart by their least member."""
    parts = [frozenset([s]) for s in range(problem.size)]
    while True:
        rows = [int(problem.rows[sorted(p)].sum()) for p in parts]
        persons = [int(problem.persons[sorted(p)].sum()) for p in parts]
        cost = [box_loss(problem, p) for p in parts]
        choice: dict[int, int] = {}
        added: dict[int, float] = {}
        for a in range(len(parts)):
            if persons[a] >= problem.k:
                continue
            options = [
                (round((rows[a] + rows[b]) * box_loss(problem, parts[a] | parts[b])
                       - rows[a] * cost[a] - rows[b] * cost[b], 9), b)
                for b in range(len(parts)) if b != a
            ]  # fmt: skip
            options = [option for option in options if np.isfinite(option[0])]
            if options and min(options)[0] <= (stop - cost[a]) * rows[a] + 1e-9:
                added[a], choice[a] = min(options)
        for b in range(len(parts)):
            suitors = sorted((added[a], a) for a in added if choice[a] == b)
            if persons[b] >= problem.k and suitors:
                choice[b] = suitors[0][1]
        pairs = [(a, b) for a, b in choice.items() if a < b and choice.get(b) == a]
        if not pairs:
            return {p for p, held in zip(parts, persons, strict=True) if held >= problem.k}
        gone = {b for _, b in pairs}
        united = {a: parts[a] | parts[b] for a, b in pairs}
        parts = [united.get(i, p) for i, p in enumerate(parts) if i not in gone]


@settings(max_examples=60, deadline=None)
@given(problem=problems(largest=16, forbid_root=True), stop=st.sampled_from([np.inf, 0.5, 1.0]))
def test_merging_by_loss_follows_its_rule(problem: Problem, stop: float) -> None:
    assert members(merge_by_loss(problem, stop=stop)) == slow_merge(problem, stop)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(2, 30), k=st.integers(1, 5))
def test_growing_along_the_tree(seed: int, size: int, k: int) -> None:
    problem, levels = with_levels(seed, size, k)
    tree = spanning_tree(levels, problem.codes)
    parts = [frozenset([s]) for s in range(problem.size)]
    for a, b in zip(tree.a.tolist(), tree.b.tolist(), strict=True):
        one, other = (next(p for p in parts if x in p) for x in (a, b))
        if min(problem.persons[sorted(one)].sum(), problem.persons[sorted(other)].sum()) < k:
            parts = [p for p in parts if p not in (one, other)] + [one | other]
    expected = {p for p in parts if problem.persons[sorted(p)].sum() >= k}
    assert members(grow_balanced(problem, tree)) == expected


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(2, 30), k=st.integers(1, 5), cut=st.sampled_from(["paper", "loss"]))
def test_classes_hold_k_and_splitting_only_helps(seed: int, size: int, k: int, cut: str) -> None:
    problem, levels = with_levels(seed, size, k)
    tree = spanning_tree(levels, problem.codes)
    class_of = cut_longest(problem, tree) if cut == "paper" else merge_by_loss(problem)
    if problem.persons.sum() >= k:
        assert (class_of >= 0).all()
    _, _, persons = class_table(problem, class_of)
    assert (persons >= k).all()
    split = split_along_trees(problem, class_of, levels)
    assert ((split >= 0) == (class_of >= 0)).all()
    _, _, persons = class_table(problem, split)
    assert (persons >= k).all() and len(members(split)) == len(persons)
    worth = float(problem.forest.width)
    assert total_loss(problem, split, suppressed=worth) <= total_loss(problem, class_of, suppressed=worth) + 1e-9
    for part in members(split):
        assert any(part <= whole for whole in members(class_of))


def test_the_paper_removes_the_longest_edges() -> None:
    """Six rows in three pairs on one line: k = 2 removes two edges, the two long ones."""
    tree = Tree.flat([str(x) for x in range(6)])
    forest = Forest.of([tree], np.ones(1), [np.ones(6, np.bool_)])
    ones = np.ones(6, np.int64)
    problem = Problem(forest, np.arange(6, dtype=np.int32).reshape(-1, 1), ones, ones, 2)
    line = Edges.ordered(np.arange(5), np.arange(1, 6), np.array([1, 9, 1, 9, 1]))
    assert members(cut_longest(problem, line)) == {frozenset([0, 1]), frozenset([2, 3]), frozenset([4, 5])}
