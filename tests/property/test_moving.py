"""Moves to the classes of neighbours, against the same moves by the definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_guards import SEEDS, Guarded, guarded
from random_problems import class_loss, problems, random_problem

from kanon_spark.kernels import moving
from kanon_spark.kernels.annealing import near_each
from kanon_spark.kernels.lattice import FREE, close_cheapest_first
from kanon_spark.kernels.measure import Measured
from kanon_spark.kernels.moving import join_placed, move_to_neighbours
from kanon_spark.kernels.problem import Problem

EXAMPLES = settings(max_examples=150, deadline=None)  # the first example compiles
PROBLEMS = problems(largest=24, forbid_root=True)


def random_neighbours(problem: Problem, seed: int, *, most: int = 6) -> np.ndarray:
    """Any others, some of them missing: what is near is for the caller to say."""
    return np.random.default_rng(seed).integers(-1, problem.size, (problem.size, most)).astype(np.int32)


def members_of(class_of: np.ndarray, c: int) -> list[int]:
    return np.flatnonzero(class_of == c).tolist()


def loss_of(problem: Problem, members: list[int]) -> float:
    return class_loss(problem, members) * int(problem.rows[members].sum()) if members else 0.0


def best_move(world: Guarded, class_of: np.ndarray, near: np.ndarray, s: int, open_cost: float = np.inf) -> int:
    """The class of a neighbour where s is to go, by the definitions; FREE if it stays where it is."""
    problem, own = world.problem, int(class_of[s])
    least = open_cost * int(problem.rows[s])
    if own >= 0:
        stay = members_of(class_of, own)
        left = [x for x in stay if x != s]
        if not left or not world.good(left):
            return FREE
        least = loss_of(problem, stay) - loss_of(problem, left) - 1e-9
    chosen = FREE
    for t in near[s]:
        c = int(class_of[t]) if t >= 0 else FREE
        if c in (FREE, own, chosen):
            continue
        there = members_of(class_of, c)
        more = loss_of(problem, [*there, s]) - loss_of(problem, there)
        if more < least and world.good([*there, s]):
            least, chosen = more, c
    return chosen


@EXAMPLES
@given(PROBLEMS, SEEDS, st.floats(0, 3), st.sampled_from([0.37, 1.21, np.inf]))
def test_every_move_is_the_best_one(problem: Problem, seed: int, stop: float, open_cost: float) -> None:
    world = guarded(problem, seed)
    near = random_neighbours(problem, seed)
    class_of = close_cheapest_first(world.problem, stop=stop)
    expected = class_of.copy()
    for _ in range(moving._SWEEPS):
        own_loss = [np.inf if c < 0 else class_loss(problem, members_of(expected, c)) for c in expected]
        for s in sorted(range(problem.size), key=lambda s: (-own_loss[s], -problem.rows[s])):
            chosen = best_move(world, expected, near, s, open_cost)
            expected[s] = chosen if chosen >= 0 else expected[s]
    found = move_to_neighbours(world.problem, class_of, near, open_cost=open_cost)
    assert found.tolist() == expected.tolist()


@EXAMPLES
@given(PROBLEMS, SEEDS)
def test_in_the_end_no_move_is_left(problem: Problem, seed: int) -> None:
    world = guarded(problem, seed)
    near = near_each(world.problem, Measured.of(world.problem), np.arange(problem.size, dtype=np.int32))
    before = close_cheapest_first(world.problem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moving, "_SWEEPS", 100)
        found = move_to_neighbours(world.problem, before, near)
    assert ((found >= 0) | (before < 0)).all()
    assert all(world.good(members_of(found, c)) for c in np.unique(found[found >= 0]))
    assert [best_move(world, found, near, s) for s in range(problem.size)] == [FREE] * problem.size


@EXAMPLES
@given(PROBLEMS, SEEDS)
def test_classes_that_are_not_measured_again_stay_good_and_get_no_dearer(problem: Problem, seed: int) -> None:
    world = guarded(problem, seed)
    near = random_neighbours(problem, seed)
    before = close_cheapest_first(world.problem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moving, "_LARGE", 2)
        found = move_to_neighbours(world.problem, before, near)
    placed = np.where(before >= 0, found, FREE)  # what was free costs something once it has joined
    both = [sum(loss_of(problem, members_of(each, c)) for c in np.unique(each[each >= 0])) for each in (before, placed)]
    assert all(world.good(members_of(found, c)) for c in np.unique(found[found >= 0]))
    assert both[1] <= both[0] + 1e-6 or (before < 0).any()


@EXAMPLES
@given(PROBLEMS, SEEDS, st.floats(0, 3), st.floats(0.1, 4))
def test_the_free_join_whoever_is_placed(problem: Problem, seed: int, stop: float, open_cost: float) -> None:
    """All are neighbours here: in the end who is free would be taken by no class for less than staying open costs."""
    world = guarded(problem, seed)
    before = close_cheapest_first(world.problem, stop=stop)
    found = join_placed(world.problem, before, open_cost=open_cost)
    assert (found[before >= 0] == before[before >= 0]).all()
    assert all(world.good(members_of(found, c)) for c in np.unique(found[found >= 0]))
    placed = [
        sum(loss_of(problem, members_of(each, c)) for c in np.unique(each[each >= 0])) for each in (before, found)
    ]
    joined = (before < 0) & (found >= 0)
    assert placed[1] <= placed[0] + open_cost * problem.rows[joined].sum() + 1e-6
    everybody = np.tile(np.arange(problem.size), (problem.size, 1))
    if joined.any():
        return  # the last to join have changed their classes; who was refused before may fit now
    assert [best_move(world, found, everybody, s, open_cost) for s in np.flatnonzero(found < 0)] == [FREE] * (
        found < 0
    ).sum()


def test_looks_are_limited() -> None:
    problem = random_problem(3, size=24, width=2, k=2)
    near = random_neighbours(problem, 3)
    before = close_cheapest_first(problem, stop=0.2)
    assert (before < 0).any() and (before >= 0).any()
    assert move_to_neighbours(problem, before, near).tolist() != before.tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moving, "_LOOKS", -1)
        assert move_to_neighbours(problem, before, near).tolist() == before.tolist()
