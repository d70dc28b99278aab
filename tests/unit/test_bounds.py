"""Bounds on tables small enough to work out by hand."""

import logging
from dataclasses import replace

import numpy as np
import pytest

from kanon_spark.hierarchy.tree import Tree
from kanon_spark.kernels import dual
from kanon_spark.kernels.bounds import Bound, project, simple_bound
from kanon_spark.kernels.certificate import is_certificate
from kanon_spark.kernels.dual import dual_bound
from kanon_spark.kernels.problem import Forest, Problem


def pairs_tree() -> Tree:
    """Leaves 0 to 3; 4 = {0, 1} and 5 = {2, 3} cost 1/2; 6 = all of them costs 1."""
    return Tree(
        labels=("a", "b", "c", "d", "ab", "cd", "*"),
        parent=np.array([4, 4, 5, 5, 6, 6, -1], np.int32),
        lo=np.array([0, 1, 2, 3, 0, 2, 0], np.int32),
        hi=np.array([1, 2, 3, 4, 2, 4, 4], np.int32),
        loss=np.array([0, 0, 0, 0, 0.5, 0.5, 1.0]),
        levels=np.array([[0, 1, 2, 3], [4, 4, 5, 5], [6, 6, 6, 6]], np.int32),
    )


def problem_of(trees: list[Tree], codes: list[list[int]], rows: list[int], k: int) -> Problem:
    table = np.array(codes, np.int32).reshape(len(codes), len(trees))
    present = [np.isin(np.arange(tree.leaves), table[:, i]) for i, tree in enumerate(trees)]
    forest = Forest.of(trees, np.ones(len(trees)), present)
    weights = np.array(rows, np.int64)
    return Problem(forest, forest.encode(table), weights, weights, k)


def test_a_signature_of_k_rows_costs_nothing_and_others_their_cheapest_group() -> None:
    problem = problem_of([pairs_tree()], [[0], [1], [2], [3]], rows=[3, 1, 1, 1], k=3)
    assert simple_bound(problem, ceiling=1.0).tolist() == [0.0, 0.5, 1.0, 1.0]


def test_a_base_that_is_already_general_costs_its_own_loss() -> None:
    tree = pairs_tree()
    coarse = replace(tree, loss=np.array([0.25, 0, 0, 0, 0.5, 0.5, 1.0]))
    problem = problem_of([coarse], [[0], [1]], rows=[5, 1], k=3)
    assert simple_bound(problem, ceiling=1.0).tolist() == [0.25, 0.5]
    assert dual_bound(problem, ceiling=1.0).values[0] == 0.25


def test_fewer_rows_than_k_must_be_suppressed() -> None:
    problem = problem_of([pairs_tree(), pairs_tree()], [[0, 0], [1, 1]], rows=[1, 1], k=3)
    assert simple_bound(problem, ceiling=2.0).tolist() == [2.0, 2.0]
    bound = dual_bound(problem, ceiling=2.0)
    assert (bound.kind, bound.total) == ("dual", 4.0)


def test_a_forbidden_node_is_no_way_out() -> None:
    tree = replace(pairs_tree(), loss=np.array([0, 0, 0, 0, 0.5, 0.5, np.inf]))
    problem = problem_of([tree], [[0], [1], [2]], rows=[2, 1, 1], k=3)
    assert simple_bound(problem, ceiling=1.0).tolist() == [0.5, 0.5, 1.0]
    assert dual_bound(problem, ceiling=1.0).values.tolist() == [0.5, 0.5, 1.0]


def test_the_dual_sees_that_a_cheap_neighbour_serves_only_once() -> None:
    # k = 2. b can join a, or join c: either way, one of the two pairs has to do without it.
    problem = problem_of([pairs_tree(), Tree.flat(["x", "y"])], [[0, 0], [1, 0], [0, 1]], rows=[1, 1, 1], k=2)
    simple = simple_bound(problem, ceiling=2.0)
    assert simple.tolist() == [0.5, 0.5, 1.0]
    # ab is tight at 1/2; c rises on with a at 1/2, until their pair (loss 1) is tight: 1/2 + 3/2 = 2·1.
    bound = dual_bound(problem, ceiling=2.0)
    assert bound.values.tolist() == [0.5, 0.5, 1.5]
    assert bound.total == 2.5


@pytest.mark.parametrize("cap", [0.0, 0.25, 0.5, 0.75])
def test_nothing_is_above_the_cap(cap: float) -> None:
    problem = problem_of([pairs_tree()], [[0], [1], [2], [3]], rows=[3, 1, 1, 1], k=3)
    whole = simple_bound(problem, ceiling=1.0)
    assert simple_bound(problem, ceiling=1.0, cap=cap).tolist() == np.minimum(whole, cap).tolist()
    bound = dual_bound(problem, ceiling=1.0, cap=cap)
    assert bound.kind == "dual"
    assert bound.values.max() <= cap


def test_an_empty_problem_has_an_empty_bound() -> None:
    full = problem_of([pairs_tree()], [[0], [1]], rows=[1, 1], k=2)
    nothing = Problem(full.forest, full.codes[:0], full.rows[:0], full.persons[:0], 2)
    assert simple_bound(nothing, ceiling=1.0).tolist() == []
    assert dual_bound(nothing, ceiling=1.0).total == 0.0


def test_an_unproven_dual_gives_way_to_the_simple_bound(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    problem = problem_of([pairs_tree(), Tree.flat(["x", "y"])], [[0, 0], [1, 0], [0, 1]], rows=[1, 1, 1], k=2)
    too_high = np.array([0.5, 0.6, 1.5])
    monkeypatch.setattr(dual, "rise", lambda *_, **__: (too_high, True))
    with caplog.at_level(logging.WARNING, logger="kanon_spark"):
        bound = dual_bound(problem, ceiling=2.0)
    assert bound.kind == "simple"
    assert bound.values.tolist() == [0.5, 0.5, 1.0]
    assert "could not be proven" in caplog.text


def test_a_certificate_keeps_within_zero_and_the_ceiling() -> None:
    problem = problem_of([pairs_tree()], [[0]], rows=[1], k=2)  # no group constrains it
    assert is_certificate(problem, np.array([1.0]), ceiling=1.0)
    assert not is_certificate(problem, np.array([1.1]), ceiling=1.0)
    assert not is_certificate(problem, np.array([-0.1]), ceiling=1.0)
    assert not is_certificate(problem, np.array([np.nan]), ceiling=1.0)


def test_a_check_that_ran_out_of_work_proves_nothing() -> None:
    problem = problem_of([pairs_tree()], [[0], [1]], rows=[1, 1], k=2)
    values = np.array([0.5, 0.5])
    assert is_certificate(problem, values, ceiling=1.0, work_limit=2)
    assert not is_certificate(problem, values, ceiling=1.0, work_limit=1)


def test_projection_merges_signatures_and_keeps_rows() -> None:
    problem = problem_of([pairs_tree(), Tree.flat(["x", "y"])], [[0, 0], [0, 1], [1, 1]], rows=[1, 2, 4], k=2)
    smaller, index = project(problem, np.array([True, False]))
    assert smaller.rows.tolist() == [3, 4]
    assert index.tolist() == [0, 0, 1]
    assert smaller.forest.width == 1
    assert simple_bound(smaller, ceiling=2.0)[index].tolist() == [0.0, 0.0, 0.0]


def test_total_counts_rows() -> None:
    problem = problem_of([pairs_tree()], [[0], [1]], rows=[3, 2], k=2)
    assert Bound.of(problem, np.array([0.5, 1.0]), "simple").total == 3.5
