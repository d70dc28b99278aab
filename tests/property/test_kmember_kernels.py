"""Measure, trie, greedy and refinement of `kmember` against slow twins that look at everything."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_measures import classes, measured_loss, measured_problems, qi_loss, random_measured

from kanon_spark.kernels.annealing import BRIEF, PATIENT, Schedule, anneal
from kanon_spark.kernels.attaching import attach
from kanon_spark.kernels.box import begin, enter, loss_of, rise, tabulate
from kanon_spark.kernels.kmember import FREE, cheapest_first, neighbours, paper_order, reach
from kanon_spark.kernels.measure import Measured
from kanon_spark.kernels.nearest import furthest, gather, nearest, new_search
from kanon_spark.kernels.problem import Problem
from kanon_spark.kernels.trie import plant, put_back, remove, replant

EXAMPLES = settings(max_examples=120, deadline=None)  # the first example compiles
EVERYTHING = np.iinfo(np.int64).max


def all_of(problem: Problem) -> np.ndarray:
    return np.arange(problem.size, dtype=np.int32)


def added(problem: Problem, members: list[int], s: int) -> float:
    """What s adds to the loss per row of a class, the slow way; infinite where it may not enter."""
    width = problem.forest.width
    new = sum(qi_loss(problem, j, [*members, s]) for j in range(width))
    return new - sum(qi_loss(problem, j, members) for j in range(width)) if np.isfinite(new) else np.inf


def some_box(problem: Problem, measured: Measured, rng: np.random.Generator):  # type: ignore[no-untyped-def]
    """A class of up to five random signatures that may stand together, and its box."""
    members = [int(rng.integers(problem.size))]
    box = measured.box()
    begin(measured.rules, box, measured.codes, members[0])
    tabulate(measured.rules, box, True)
    for s in rng.integers(problem.size, size=int(rng.integers(5))).tolist():
        if s not in members and np.isfinite(added(problem, members, s)):
            members.append(s)
            enter(measured.rules, box, measured.codes, s)
            tabulate(measured.rules, box, False)
    return members, box


@EXAMPLES
@given(measured_problems(forbid_root=True), st.integers(0, 10**6))
def test_rises_are_those_of_measuring_again(problem: Problem, seed: int) -> None:
    measured = Measured.of(problem)
    members, box = some_box(problem, measured, np.random.default_rng(seed))
    rows = int(problem.rows[members].sum())
    assert loss_of(measured.rules, box, rows) == pytest.approx(measured_loss(problem, members))
    for j in range(problem.forest.width):
        assert box.cost[j] == pytest.approx(qi_loss(problem, j, members))
        for s in range(problem.size):
            more = qi_loss(problem, j, [*members, s]) - qi_loss(problem, j, members)
            x = int(problem.codes[s, j])
            assert rise(measured.rules, box, j, x) == pytest.approx(more)
            assert box.table[measured.rules.base[j] + x] == pytest.approx(more)


@EXAMPLES
@given(measured_problems(largest=40, forbid_root=True), st.integers(0, 10**6))
def test_searches_find_what_a_scan_finds(problem: Problem, seed: int) -> None:
    rng = np.random.default_rng(seed)
    measured = Measured.of(problem)
    if rng.random() < 0.5:  # as if every QI had too many values for a table
        measured = Measured(measured.codes, measured.rules._replace(narrow=np.zeros(problem.forest.width, np.bool_)))
    members, box = some_box(problem, measured, rng)
    trie = plant(measured, all_of(problem))
    search = new_search(trie, problem.size + 1)
    gone = rng.random(problem.size) < 0.4
    gone[members] = True
    for s in np.flatnonzero(gone):
        remove(trie, s)
    if gone.any() and not gone.all():
        put_back(trie, int(np.flatnonzero(gone)[0]))
        gone[np.flatnonzero(gone)[0]] = False
    if rng.random() < 0.5:
        trie = replant(trie)
        search = new_search(trie, problem.size + 1)
    free = np.flatnonzero(~gone).tolist()
    adds = {s: added(problem, members, s) for s in free}
    finite = {s: more for s, more in adds.items() if np.isfinite(more)}
    found, more = nearest(measured.rules, trie, box, problem.persons, EVERYTHING, search)
    assert (found >= 0) == bool(finite)
    if finite:
        least = min(finite.values())
        assert more == pytest.approx(least)
        ties = [s for s in finite if finite[s] <= least + 1e-9]
        assert found == min(ties, key=lambda s: (-problem.persons[s], s))
    far = furthest(measured.rules, trie, box, search)
    assert (far >= 0) == bool(free)
    if free:
        assert adds[int(far)] == pytest.approx(max(adds.values()))
    count = int(rng.integers(1, 6))
    gather(measured.rules, trie, box, problem.persons, 0, count, search)
    near = sorted(finite[int(s)] for s in search.heap[: search.size[0]])
    assert near == pytest.approx(sorted(finite.values())[:count])


@EXAMPLES
@given(measured_problems(largest=30))
def test_reach_is_where_neighbours_hold_k_persons(problem: Problem) -> None:
    found = reach(problem, Measured.of(problem))
    for s in range(problem.size):
        own = sum(qi_loss(problem, j, [s]) for j in range(problem.forest.width))
        near = sorted((added(problem, [s], t), int(problem.persons[t])) for t in range(problem.size))
        held, wanted = 0, np.inf
        for distance, persons in near:
            held += persons
            if held >= problem.k:
                wanted = distance
                break
        if problem.persons[s] < problem.k:
            assert found[s] == pytest.approx(wanted + own)


@EXAMPLES
@given(measured_problems(largest=20, forbid_root=True), st.integers(0, 10**6))
def test_no_class_costs_less_than_its_members_reach(problem: Problem, seed: int) -> None:
    """What makes `reach` a lower bound: a class of k persons or more, whichever it is, costs that to every member."""
    found = reach(problem, Measured.of(problem))
    order = np.random.default_rng(seed).permutation(problem.size).tolist()
    while order:
        members = [order.pop()]
        while order and problem.persons[members].sum() < problem.k:
            members.append(order.pop())
        if problem.persons[members].sum() >= problem.k:
            per_row = measured_loss(problem, members) / problem.rows[members].sum()
            assert (found[members] <= per_row + 1e-9).all()


def assert_sound(problem: Problem, class_of: np.ndarray) -> None:
    """Every class holds k persons and may be published; only what fits nowhere is free."""
    for members in classes(class_of):
        assert problem.persons[members].sum() >= problem.k
        assert np.isfinite(measured_loss(problem, members))


@EXAMPLES
@given(measured_problems(largest=40, forbid_root=True, most_k=30), st.sampled_from(["cheapest", "paper"]))
def test_classes_hold_k_and_everything_is_placed(problem: Problem, order: str) -> None:
    """With k up to 30: from 20 on classes grow by boxes."""
    measured = Measured.of(problem)
    class_of = cheapest_first(problem, measured) if order == "cheapest" else paper_order(problem, measured, seed=3)
    assert_sound(problem, class_of)
    may_all_meet = np.isfinite(measured_loss(problem, list(range(problem.size))))
    if may_all_meet:
        assert problem.persons[class_of == FREE].sum() < problem.k
    attached = attach(problem, measured, class_of.copy())
    assert_sound(problem, attached)
    if may_all_meet and problem.persons.sum() >= problem.k:
        assert (attached != FREE).all()
    again = attach(problem, measured, cheapest_first(problem, measured))
    if order == "cheapest":
        assert (attached == again).all()


@EXAMPLES
@given(measured_problems(largest=30), st.floats(0.01, 2.0))
def test_no_class_reaches_the_stop(problem: Problem, stop: float) -> None:
    class_of = cheapest_first(problem, Measured.of(problem), stop=stop)
    assert_sound(problem, class_of)
    for members in classes(class_of):
        assert measured_loss(problem, members) / max(1, problem.rows[members].sum()) < stop


@EXAMPLES
@given(measured_problems(largest=30))
def test_the_last_join_where_the_loss_rises_least(problem: Problem) -> None:
    measured = Measured.of(problem)
    class_of = cheapest_first(problem, measured)
    rest = np.flatnonzero(class_of == FREE)
    if len(rest) == 0 or class_of.max(initial=-1) < 0:
        return
    rest = rest[np.lexsort((rest, -problem.rows[rest]))]
    twin = class_of.copy()
    for s in rest.tolist():
        rises = [measured_loss(problem, [*members, s]) - measured_loss(problem, members) for members in classes(twin)]
        twin[s] = int(np.argmin(np.round(rises, 7)))
    found = attach(problem, measured, class_of.copy())
    assert measured.total(found, problem.rows, suppressed=9.0) == pytest.approx(
        sum(measured_loss(problem, members) for members in classes(found))
    )
    assert (
        measured.total(found, problem.rows, suppressed=9.0) <= measured.total(twin, problem.rows, suppressed=9.0) + 1e-6
    )


@EXAMPLES
@given(
    measured_problems(largest=40, forbid_root=True, labels=3),
    st.integers(0, 100),
    st.sampled_from([0.0, 0.5]),
    st.sampled_from([BRIEF, PATIENT]),
)
def test_refinement_never_makes_it_worse(problem: Problem, seed: int, penalty: float, schedule: Schedule) -> None:
    measured = Measured.of(problem, penalty=penalty)
    class_of = attach(problem, measured, cheapest_first(problem, measured))
    refined = anneal(problem, measured, class_of, work=20_000.0, seed=seed, schedule=schedule)
    assert_sound(problem, refined)
    assert ((refined == FREE) == (class_of == FREE)).all()
    before = sum(measured_loss(problem, members, penalty=penalty) for members in classes(class_of))
    after = sum(measured_loss(problem, members, penalty=penalty) for members in classes(refined))
    assert after <= before + 1e-9
    assert after == pytest.approx(measured.total(refined, problem.rows, suppressed=0.0))
    again = anneal(problem, measured, class_of, work=20_000.0, seed=seed, schedule=schedule)
    assert (again == refined).all()


@EXAMPLES
@given(measured_problems(largest=25))
def test_crossing_losses_bound_every_pair_across(problem: Problem) -> None:
    """Whatever has members under two children of a node costs at least the node's crossing loss."""
    forest, measure = problem.forest, problem.measure
    assert measure is not None
    crossing = measure.crossing(forest)
    for j in range(forest.width):
        for a in range(problem.size):
            for b in range(a):
                x, y = int(problem.codes[a, j]), int(problem.codes[b, j])
                if x == y:
                    continue
                v = int(forest.start[j] + x)
                while not forest.lo[v] <= y < forest.hi[v]:
                    v = int(forest.parent[v])
                assert qi_loss(problem, j, [a, b]) >= crossing[v] - 1e-9


def test_neighbours_are_the_nearest_others() -> None:
    problem = random_measured(5, size=60, width=3, k=2)
    measured = Measured.of(problem)
    found = neighbours(measured, plant(measured, all_of(problem)), all_of(problem), problem.persons, 4)
    for s in range(problem.size):
        wanted = sorted(added(problem, [s], t) for t in range(problem.size) if t != s)[:4]
        got = sorted(added(problem, [s], int(t)) for t in found[s])
        # The signature itself may be left out of a tie, never another that is nearer.
        assert s not in found[s]
        assert got == pytest.approx(wanted)


def test_many_leftovers_look_at_their_neighbours_classes() -> None:
    """Signatures without a person of their own can be many: each still finds a class."""
    drawn = (random_measured(seed, size=600, width=4, k=3) for seed in range(100))
    problem = next(one for one in drawn if one.size > 200)
    persons = problem.persons.copy()
    persons[::2] = 0
    problem = Problem(problem.forest, problem.codes, problem.rows, persons, 3, problem.measure)
    measured = Measured.of(problem)
    class_of = np.full(problem.size, FREE, np.int32)
    held = np.flatnonzero(persons >= 3)
    class_of[held] = np.arange(len(held))
    assert (class_of == FREE).sum() > 64
    attached = attach(problem, measured, class_of)
    assert (attached != FREE).all()
    assert_sound(problem, attached)


def test_the_paper_makes_clusters_of_k_to_twice_k() -> None:
    for seed, k in ((1, 3), (2, 5), (3, 7)):
        given_ = random_measured(seed, size=300, width=4, k=k)
        ones = np.ones(given_.size, np.int64)
        problem = Problem(given_.forest, given_.codes, ones, ones, k, given_.measure)
        measured = Measured.of(problem)
        grown = paper_order(problem, measured, seed=seed)
        sizes = np.bincount(grown[grown >= 0])
        assert (sizes == k).all() and (grown == FREE).sum() == problem.size % k
        whole = np.bincount(attach(problem, measured, grown))
        assert whole.min() >= k and whole.max() <= 2 * k - 1


def test_labels_keep_classes_pure() -> None:
    """Two labels that nothing else tells apart: with a charge, classes of one label each."""
    given_ = random_measured(4, size=200, width=3, k=4)
    ones = np.ones(given_.size, np.int64)
    labels = np.eye(2, dtype=np.int64)[np.arange(given_.size) % 2]
    problem = Problem(given_.forest, given_.codes, ones, ones, 4, given_.measure, labels)

    def outside(penalty: float) -> int:
        measured = Measured.of(problem, penalty=penalty)
        class_of = attach(problem, measured, cheapest_first(problem, measured))
        class_of = anneal(problem, measured, class_of, work=200_000.0, seed=1)
        tallies = np.array([labels[members].sum(axis=0) for members in classes(class_of)])
        return int((tallies.sum(axis=1) - tallies.max(axis=1)).sum())

    assert outside(5.0) <= 3 < 20 < outside(0.0)
