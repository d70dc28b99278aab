"""`mondrian` and `kactus` where classes must satisfy more than k: histograms of regions, cuts and classes."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from mondrian_twin import twin
from random_guards import SEEDS, TRIVIAL, guarded
from random_measures import classes, measured_problems

from kanon_spark.kernels.problem import Problem
from kanon_spark.kernels.regions import count_marginals
from kanon_spark.methods.base import Piece, Solution
from kanon_spark.methods.mondrian import Mondrian

EXAMPLES = settings(max_examples=150, deadline=None)  # the first example compiles


def cut_up(problem: Problem) -> Solution:
    return Mondrian().solve(Piece(problem, np.inf, problem.size, suppressed=4.0, seed=0))


@EXAMPLES
@given(measured_problems(largest=30), SEEDS, st.integers(0, 10**6))
def test_histograms_of_values_are_those_of_their_holders(problem: Problem, seed: int, chosen: int) -> None:
    world = guarded(problem, seed)
    members = np.flatnonzero(np.random.default_rng(chosen).random(problem.size) < 0.6)
    found = count_marginals(world.problem, members)
    assert found.sensitive is not None and count_marginals(problem, members).sensitive is None
    own = world.problem.guard.histograms
    for qi in range(problem.forest.width):
        histograms = found.sensitive(qi)
        assert histograms.units == len(found.present(qi))
        assert histograms.persons.tolist() == found.persons[found.entries(qi)].tolist()
        for unit, code in enumerate(found.present(qi)):
            holders = members[problem.codes[members, qi] == code]
            for j, dense in enumerate(world.dense):
                here = slice(histograms.start[2 * unit + j], histograms.start[2 * unit + j + 1])
                values = [own.values[own.start[2 * s + j] : own.start[2 * s + j + 1]] for s in holders]
                assert histograms.values[here].tolist() == np.unique(np.concatenate(values)).tolist()
                counts = dense[holders].sum(axis=0)
                assert histograms.counts[here].tolist() == counts[histograms.values[here]].tolist()


@EXAMPLES
@given(measured_problems(largest=40, forbid_root=True, most_k=3), SEEDS)
def test_mondrian_cuts_where_the_twin_cuts(problem: Problem, seed: int) -> None:
    """Never into a bad child, and where there is an allowable cut, the one that the rules name."""
    world = guarded(problem, seed)
    found = cut_up(world.problem).class_of
    assert {frozenset(members) for members in classes(found)} == twin(problem, list(range(problem.size)), world.good)
    assert all(world.good(members) for members in classes(found))


@EXAMPLES
@given(measured_problems(largest=40, forbid_root=True), SEEDS)
def test_mondrian_does_not_change_where_all_classes_satisfy(problem: Problem, seed: int) -> None:
    world = guarded(problem, seed, TRIVIAL, nulls=False)
    assert cut_up(world.problem).class_of.tolist() == cut_up(problem).class_of.tolist()
