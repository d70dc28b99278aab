"""`mondrian` against a literal, recursive twin in plain Python."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from mondrian_twin import enough, twin
from random_measures import classes, measured_problems, qi_loss, random_measured
from random_problems import ancestors

from kanon_spark.kernels.problem import Problem
from kanon_spark.methods.base import Piece, Solution
from kanon_spark.methods.mondrian import Mondrian

EXAMPLES = settings(max_examples=120, deadline=None)  # the first example compiles


def solve(problem: Problem) -> Solution:
    return Mondrian().solve(Piece(problem, np.inf, problem.size, suppressed=4.0, seed=0))


@EXAMPLES
@given(measured_problems(largest=40, forbid_root=True))
def test_classes_are_those_of_the_twin(problem: Problem) -> None:
    found = solve(problem).class_of
    assert {frozenset(members) for members in classes(found)} == twin(
        problem, list(range(problem.size)), enough(problem)
    )


@EXAMPLES
@given(measured_problems(largest=60, forbid_root=True))
def test_classes_hold_k_and_nothing_is_left_that_could_be_published(problem: Problem) -> None:
    solution = solve(problem)
    found = solution.class_of
    for members in classes(found):
        assert problem.persons[members].sum() >= problem.k
        assert all(np.isfinite(qi_loss(problem, j, members)) for j in range(problem.forest.width))
    assert sorted(set(found.tolist()) - {-1}) == list(range(found.max() + 1))
    assert solution.nodes is None
    forbidden = any(np.isinf(problem.forest.loss[problem.forest.start[1:] - 1]))
    if not forbidden and problem.persons.sum() >= problem.k:
        assert (found >= 0).all()
    if forbidden:
        # Only what has fewer than k persons under one child of the forbidden root is lost.
        root = int(problem.forest.start[1]) - 1
        assert problem.forest.loss[root] == np.inf
        below = np.array([child_below(problem, root, int(code)) for code in problem.codes[:, 0]])
        for child in set(below.tolist()):
            inside = below == child
            assert (found[inside] < 0).all() == (problem.persons[inside].sum() < problem.k)


def child_below(problem: Problem, node: int, code: int) -> int:
    """The child of a node of the first QI that holds a code; -1 where there is just one value."""
    return next((v for v in ancestors(problem.forest, 0, code) if problem.forest.parent[v] == node), -1)


@EXAMPLES
@given(measured_problems(largest=40))
def test_cutting_never_makes_it_dearer(problem: Problem) -> None:
    """A region's parts lose at most what it would have lost, so no class loses more per row than the table."""
    whole = [qi_loss(problem, j, list(range(problem.size))) for j in range(problem.forest.width)]
    for members in classes(solve(problem).class_of):
        for j in range(problem.forest.width):
            assert qi_loss(problem, j, members) <= whole[j] + 1e-12


def test_ranges_are_cut_until_two_halves_would_not_hold_k() -> None:
    """Distinct ones in a single range: sizes between k and 2k - 1, in stretches that do not overlap."""
    drawn = (random_measured(seed, size=60, width=1, k=1) for seed in range(200))
    given_ = next(one for one in drawn if one.measure is not None and one.measure.kinds == ("range",) and one.size >= 5)
    ones = np.ones(given_.size, np.int64)
    found = solve(Problem(given_.forest, given_.codes, ones, ones, 2, given_.measure)).class_of
    sizes = np.bincount(found)
    assert sizes.min() >= 2 and sizes.max() <= 3
    stretches = sorted((min(members), max(members)) for members in classes(found))
    assert all(one[1] < two[0] for one, two in pairwise(stretches))
