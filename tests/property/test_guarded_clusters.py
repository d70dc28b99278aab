"""Clusters by ranges, sets and nodes under a guard: every class is good by a judge that knows the definitions alone."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_guards import SEEDS, TRIVIAL, Guarded, guarded
from random_measures import classes, measured_loss, measured_problems, random_measured
from test_sbca import Twin
from test_swapping import chained

from kanon_spark.kernels.annealing import BRIEF, PATIENT, Schedule, anneal
from kanon_spark.kernels.attaching import attach
from kanon_spark.kernels.guard import Guard
from kanon_spark.kernels.kmember import FREE, cheapest_first, paper_order
from kanon_spark.kernels.measure import Measured
from kanon_spark.kernels.problem import Problem
from kanon_spark.kernels.sbca import similarity_classes
from kanon_spark.kernels.shortfall import count, gain_of, new_tally, recount, shortfall, shortfall_with, weigh_values
from kanon_spark.kernels.swapping import best_swap, new_scales
from kanon_spark.methods.base import LocalMethod, Piece
from kanon_spark.methods.kmember import KMember
from kanon_spark.methods.sbca import Sbca
from kanon_spark.privacy.alpha import Alpha
from kanon_spark.privacy.base import Model
from kanon_spark.privacy.beta_likeness import BetaLikeness
from kanon_spark.privacy.columns import Column
from kanon_spark.privacy.demands import Demands
from kanon_spark.privacy.histograms import Histograms, histograms_of
from kanon_spark.privacy.l_diversity import Distinct, Entropy, Recursive
from kanon_spark.privacy.personal_k import PersonalK
from kanon_spark.privacy.t_closeness import TCloseness

EXAMPLES = settings(max_examples=100, deadline=None)  # the first example compiles
METHODS: list[LocalMethod] = [KMember(), KMember(order="paper"), Sbca()]


@st.composite
def worlds(draw: st.DrawFn, *, largest: int = 30) -> Guarded:
    """Problems of all kinds of QIs, under one or two models out of all; from k = 20 on classes grow by boxes."""
    problem = draw(measured_problems(largest=largest, forbid_root=True, most_k=draw(st.sampled_from([4, 30]))))
    return guarded(problem, draw(SEEDS))


def assert_good(world: Guarded, class_of: np.ndarray) -> None:
    for members in classes(class_of):
        assert world.good(members)
        assert np.isfinite(measured_loss(world.problem, members))


@EXAMPLES
@given(worlds(), st.sampled_from(METHODS), st.booleans())
def test_every_class_of_a_method_is_good(world: Guarded, method: LocalMethod, whole: bool) -> None:
    problem = world.problem
    piece = Piece(problem, np.inf if whole else 0.7, problem.size, 9.0, seed=3)
    found = method.solve(piece).class_of
    assert_good(world, found)
    assert (method.solve(piece).class_of == found).all()


@EXAMPLES
@given(worlds(), st.sampled_from(["cheapest", "paper"]), st.sampled_from([np.inf, 0.4]))
def test_greedy_classes_are_good_and_the_rest_joins_the_cheapest_that_stays_so(
    world: Guarded, order: str, stop: float
) -> None:
    problem, measured = world.problem, Measured.of(world.problem)
    by_cost = order == "cheapest"
    class_of = cheapest_first(problem, measured, stop=stop) if by_cost else paper_order(problem, measured, seed=3)
    assert_good(world, class_of)
    for members in classes(class_of) if by_cost else ():
        assert measured_loss(problem, members) < stop * problem.rows[members].sum()
    attached = attach(problem, measured, class_of.copy())
    assert_good(world, attached)
    assert (attached == class_of)[class_of != FREE].all()
    for s in np.flatnonzero(attached == FREE).tolist():
        for members in classes(attached):
            assert not (np.isfinite(measured_loss(problem, [*members, s])) and world.good([*members, s]))


@EXAMPLES
@given(worlds(largest=40), st.integers(0, 100), st.sampled_from([BRIEF, PATIENT]))
def test_refinement_keeps_classes_good(world: Guarded, seed: int, schedule: Schedule) -> None:
    problem, measured = world.problem, Measured.of(world.problem)
    class_of = attach(problem, measured, cheapest_first(problem, measured))
    refined = anneal(problem, measured, class_of, work=20_000.0, seed=seed, schedule=schedule)
    assert_good(world, refined)
    assert ((refined == FREE) == (class_of == FREE)).all()
    before = sum(measured_loss(problem, members) for members in classes(class_of))
    assert sum(measured_loss(problem, members) for members in classes(refined)) <= before + 1e-9


@EXAMPLES
@given(measured_problems(largest=40, forbid_root=True, labels=3, most_k=30), SEEDS, st.sampled_from([BRIEF, PATIENT]))
def test_a_guard_that_is_always_content_changes_nothing(problem: Problem, seed: int, schedule: Schedule) -> None:
    asked = guarded(problem, seed, TRIVIAL, nulls=False).problem
    measured = Measured.of(problem, penalty=0.5)

    def by_cost(problem: Problem) -> np.ndarray:
        class_of = attach(problem, measured, cheapest_first(problem, measured))
        return anneal(problem, measured, class_of, work=20_000.0, seed=seed, schedule=schedule)

    def by_paper(problem: Problem) -> np.ndarray:
        return attach(problem, measured, paper_order(problem, measured, seed=seed))

    assert by_cost(asked).tolist() == by_cost(problem).tolist()
    assert by_paper(asked).tolist() == by_paper(problem).tolist()
    for join in (True, False):
        assert similarity_classes(asked, join=join).tolist() == similarity_classes(problem, join=join).tolist()


@EXAMPLES
@given(worlds(), st.booleans())
def test_similarity_classes_are_those_of_the_literal_rule(world: Guarded, join: bool) -> None:
    twin = Twin(world.plain, world.good)
    assert similarity_classes(world.problem, join=join).tolist() == twin.solve(join=join).tolist()


@EXAMPLES
@given(worlds(largest=12), SEEDS, st.floats(0.5, 2.0))
def test_the_best_swap_is_that_of_trying_all(world: Guarded, seed: int, share: float) -> None:
    problem = world.problem
    class_of = np.random.default_rng(seed).integers(2, size=problem.size)
    if set(class_of.tolist()) != {0, 1}:
        return
    measured = Measured.of(problem)
    chains, scales = chained(problem, class_of), new_scales(measured.rules)
    one, other = (np.flatnonzero(class_of == c).tolist() for c in (0, 1))
    allowed = share * (measured_loss(problem, one) + measured_loss(problem, other))
    if not np.isfinite(allowed):
        return
    room = np.empty(problem.size, np.int32)
    arrays = (measured.codes, problem.rows, problem.persons, problem.k, problem.guard)
    for s in one:
        partner, giver_loss, taker_loss, _ = best_swap(measured.rules, scales, *arrays, *chains, s, 0, 1, allowed, room)
        least = np.inf
        for u in [-1, *other]:
            given_ = [x for x in one if x != s] + ([u] if u >= 0 else [])
            taken = [x for x in [*other, s] if x != u]
            if len(one) > 1 and world.good(given_) and world.good(taken):
                total = measured_loss(problem, given_) + measured_loss(problem, taken)
                least = min(least, total)
                if u == partner and np.isfinite(giver_loss):
                    assert total == pytest.approx(giver_loss + taker_loss)
        if least < allowed - 1e-9:
            assert giver_loss + taker_loss == pytest.approx(least)
        elif np.isfinite(giver_loss):
            assert giver_loss + taker_loss < allowed


@EXAMPLES
@given(worlds(largest=12), SEEDS)
def test_nothing_is_lacking_exactly_where_a_class_is_accepted(world: Guarded, seed: int) -> None:
    problem = replace(world.problem, k=1)
    world = replace(world, problem=problem)
    order = np.random.default_rng(seed).permutation(problem.size).astype(np.int32)
    tally = new_tally(problem.guard)
    recount(problem.guard, tally, order[:0])
    for size in range(1, problem.size + 1):
        ahead = shortfall_with(problem.guard, tally, order[size - 1])
        count(problem.guard, tally, order[size - 1])
        assert shortfall(problem.guard, tally) == ahead
        if problem.persons[order[:size]].sum():
            assert (ahead == 0.0) == world.good(order[:size])


@EXAMPLES
@given(worlds(largest=8), SEEDS)
def test_gains_of_values_are_those_of_trying_them(world: Guarded, seed: int) -> None:
    """A class and one person more, who is a signature of its own."""
    problem = world.problem
    members = np.random.default_rng(seed).permutation(problem.size)[: problem.size // 2 + 1].astype(np.int32)
    if not problem.persons[members].sum():
        return
    for j, column in enumerate(world.columns):
        asked = {column.name: world.models.get(column.name, ())}
        guard = Guard.of(Demands.of([column], asked), with_one_of_each(world, j))
        tally, gain = new_tally(guard), np.zeros(column.size)
        recount(guard, tally, members)
        most = weigh_values(guard, tally, gain)
        wanted = np.zeros(column.size)
        held = world.dense[j][members].sum(axis=0) > 0
        lacks = shortfall(guard, tally)
        for v in range(column.size) if lacks else ():
            if column.counts[v] or held[v]:
                wanted[v] = lacks - shortfall_with(guard, tally, problem.size + v)
            assert gain_of(guard, gain, problem.size + v) == gain[v]
        assert gain == pytest.approx(wanted)
        assert most == max(0.0, gain.max())


def with_one_of_each(world: Guarded, j: int) -> Histograms:
    """Histograms of the signatures in column j, and of one person more for each of its values."""
    dense = np.concatenate([world.dense[j], np.eye(world.columns[j].size, dtype=np.int64)])
    unit, code = np.nonzero(dense)
    return histograms_of(unit, code[:, None].astype(np.int32), dense[unit, code], units=len(dense))


def large(seed: int, *, size: int = 600, **models: Model) -> Guarded:
    """Hundreds of signatures of up to three persons each; a model per column."""
    drawn = (random_measured(1000 * seed + i, size=size, width=4, k=3) for i in range(200))
    problem = next(one for one in drawn if one.size > size // 3)
    return guarded(problem, seed, {name: [model] for name, model in models.items()})


@pytest.mark.parametrize(
    "asked",
    [
        {"ill": Distinct(2)},
        {"ill": Entropy(1.7), "cost": Recursive(2, 2)},
        {"ill": TCloseness(0.15)},
        {"cost": TCloseness(0.1, "ordered")},
        {"cost": Alpha(0.6), "ill": BetaLikeness(0.5)},
    ],
    ids=lambda asked: " ".join(type(model).__name__ for model in asked.values()),
)
def test_hundreds_of_signatures(asked: dict[str, Model]) -> None:
    """Tries that are built again, many that are left over and classes that have to grow far beyond k."""
    for seed in (1, 2):
        world = large(seed, **asked)
        problem = world.problem
        if not problem.guard.satisfied(np.zeros(problem.size, np.int32), 1)[0]:
            continue  # what all together do not satisfy is refused before the work starts
        for method in METHODS:
            found = method.solve(Piece(problem, np.inf, problem.size, 9.0, seed=1)).class_of
            assert_good(world, found)
            assert found.max() > 3
            if method.name == "kmember":
                assert problem.rows[found == FREE].sum() < 0.1 * problem.rows.sum()


def test_what_is_refused_nearby_looks_further_away() -> None:
    """Leftovers carry one value and so do the classes around them; only those far away have room for it."""
    problem = large(5, size=1200).plain
    size, quarter = problem.size, problem.size // 4
    ones = np.ones(size, np.int64)
    code = np.zeros(size, np.int32)
    code[3 * quarter :] = 1  # signatures stand in the order of their codes: these are far from the first ones
    column = Column("ill", np.bincount(code).astype(np.int64))
    histograms = histograms_of(np.arange(size), code[:, None], ones, units=size)
    guard = Guard.of(Demands.of([column], {"ill": [Alpha(0.8, (0,))]}), histograms)
    problem = replace(problem, rows=ones, persons=ones, guard=guard)
    class_of = np.full(size, FREE, np.int32)
    class_of[quarter:] = np.arange(size - quarter) // 5
    full = int(class_of[3 * quarter])  # classes before this one are of value 0 alone
    attached = attach(problem, Measured.of(problem), class_of.copy())
    assert quarter > 64
    assert (attached[:quarter] >= full).all()
    assert guard.satisfied(attached, int(attached.max()) + 1)[full:].all()


def test_each_person_may_ask_for_a_k_of_its_own() -> None:
    """One in ten asks for eight, the others for three."""
    plain = large(7).plain
    rng = np.random.default_rng(0)
    owner = np.repeat(np.arange(plain.size), plain.persons)
    wish = (rng.random(len(owner)) < 0.1).astype(np.int32)
    column = Column.personal("k", np.array([3, 8]), np.bincount(wish, minlength=2).astype(np.int64))
    histograms = histograms_of(owner, wish[:, None], np.ones(len(owner), np.int64), units=plain.size)
    problem = replace(plain, guard=Guard.of(Demands.of([column], {"k": [PersonalK()]}), histograms))
    for method in METHODS:
        found = method.solve(Piece(problem, np.inf, problem.size, 9.0, seed=1)).class_of
        assert (found == FREE).sum() == 0
        sizes = set()
        for members in classes(found):
            asks_for_eight = wish[np.isin(owner, members)].any()
            sizes.add(bool(asks_for_eight))
            assert problem.persons[members].sum() >= (8 if asks_for_eight else 3)
        assert sizes == {True, False}
