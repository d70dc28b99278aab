"""Greedy, refinement, merging and mending where classes must satisfy more than k, judged from the definitions."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_guards import SEEDS, TRIVIAL, Guarded, guarded
from random_problems import class_loss, problems, random_problem

from kanon_spark.hierarchy.tree import Tree
from kanon_spark.kernels.balance import enter, most_that_may_leave, new_balance
from kanon_spark.kernels.lattice import FREE, attach_rest, close_cheapest_first
from kanon_spark.kernels.levels import Levels
from kanon_spark.kernels.listing import Groups, list_groups
from kanon_spark.kernels.mending import mend
from kanon_spark.kernels.merging import cut_longest, grow_balanced, merge_by_loss, split_along_trees
from kanon_spark.kernels.polish import polish
from kanon_spark.kernels.pouring import pour
from kanon_spark.kernels.problem import Problem
from kanon_spark.kernels.spanning import spanning_tree
from kanon_spark.kernels.stealing import steal
from kanon_spark.methods import lattice
from kanon_spark.methods.base import Piece
from kanon_spark.methods.lattice import Lattice

EXAMPLES = settings(max_examples=150, deadline=None)  # the first example compiles
PROBLEMS = problems(largest=24, forbid_root=True)
SUPPRESSED = 10.0


def classes(class_of: np.ndarray) -> list[list[int]]:
    return [np.flatnonzero(class_of == c).tolist() for c in np.unique(class_of[class_of != FREE])]


def assert_good(world: Guarded, class_of: np.ndarray) -> None:
    for members in classes(class_of):
        assert world.good(members)
        assert np.isfinite(class_loss(world.problem, members))


def loss_of(problem: Problem, class_of: np.ndarray, *, suppressed: float = SUPPRESSED) -> float:
    placed = sum(class_loss(problem, members) * int(problem.rows[members].sum()) for members in classes(class_of))
    return placed + suppressed * int(problem.rows[class_of == FREE].sum())


def mended(world: Guarded) -> np.ndarray:
    return mend(world.problem, close_cheapest_first(world.problem), suppressible=0)


@EXAMPLES
@given(PROBLEMS, SEEDS, st.floats(0, 3))
def test_the_greedy_closes_good_classes_below_its_stop(problem: Problem, seed: int, stop: float) -> None:
    world = guarded(problem, seed)
    for limit in (stop, np.inf):
        found = close_cheapest_first(world.problem, stop=limit)
        assert_good(world, found)
        assert all(class_loss(problem, members) < limit for members in classes(found))
    assert_good(world, attach_rest(world.problem, found.copy()))


@EXAMPLES
@given(problems(largest=7), SEEDS)
def test_what_no_class_could_satisfy_is_seen_at_once(problem: Problem, seed: int) -> None:
    world = guarded(problem, seed)
    members = np.arange(problem.size)
    some = [world.good([s for s in members if chosen >> s & 1]) for chosen in range(1, 2**problem.size)]
    assert world.problem.guard.may_accept(members) or not any(some)
    assert not world.problem.guard.scratch.marked.any()


@EXAMPLES
@given(PROBLEMS, SEEDS, st.floats(0, 3))
def test_groups_without_a_good_part_are_not_listed(problem: Problem, seed: int, upto: float) -> None:
    world = guarded(problem, seed)
    everybody = np.arange(problem.size, dtype=np.int32)

    def listed(groups: Groups) -> list[tuple[float, list[int]]]:
        found = [groups.members[groups.offset[g] : groups.offset[g + 1]].tolist() for g in range(groups.count)]
        return list(zip(groups.cost.tolist(), found, strict=True))

    plain = listed(list_groups(problem, everybody, above=-1.0, upto=upto))
    kept = [(cost, group) for cost, group in plain if world.problem.guard.may_accept(np.array(group))]
    assert listed(list_groups(world.problem, everybody, above=-1.0, upto=upto)) == kept


@EXAMPLES
@given(PROBLEMS, SEEDS)
def test_what_is_free_joins_the_cheapest_class_that_stays_good(problem: Problem, seed: int) -> None:
    world = guarded(problem, seed)
    class_of = close_cheapest_first(world.problem, stop=1.0)
    expected = class_of.copy()
    rest = np.flatnonzero(class_of == FREE)
    for s in sorted(rest, key=lambda s: (-problem.rows[s], s)):
        options = []
        for c, members in enumerate(classes(expected)):
            rows, joined = int(problem.rows[members].sum()), [*members, int(s)]
            cost = class_loss(problem, joined)
            rise = rows * (cost - class_loss(problem, members)) + int(problem.rows[s]) * cost
            if np.isfinite(rise) and world.good(joined):
                options.append((rise, c))
        if options:
            least = min(options)[0]
            found = attach_one(world.problem, expected, int(s))
            assert found in [c for rise, c in options if rise <= least + 1e-9]  # rounding decides among equals
            expected[s] = found
    assert attach_rest(world.problem, class_of.copy()).tolist() == expected.tolist()


def attach_one(problem: Problem, class_of: np.ndarray, s: int) -> int:
    """Where one free signature goes, the other free ones left out."""
    others = np.flatnonzero((class_of != FREE) | (np.arange(problem.size) == s))
    small = replace(problem, codes=np.asfortranarray(problem.codes[others]), rows=problem.rows[others],
                    persons=problem.persons[others], guard=problem.guard.take(others))  # fmt: skip
    return int(attach_rest(small, class_of[others].copy())[np.flatnonzero(others == s)[0]])


@EXAMPLES
@given(PROBLEMS, SEEDS)
def test_a_guard_that_is_always_true_changes_nothing(problem: Problem, seed: int) -> None:
    world = guarded(problem, seed, TRIVIAL, nulls=False)
    target = np.zeros(problem.size)
    for ties in range(4):
        closed = close_cheapest_first(world.problem, ties=ties)
        assert closed.tolist() == close_cheapest_first(problem, ties=ties).tolist()
    attached = attach_rest(world.problem, closed.copy())
    assert attached.tolist() == attach_rest(problem, closed.copy()).tolist()
    one, other = (polish(each, attached, target=target, work=20_000.0, seed=1) for each in (world.problem, problem))
    assert one.tolist() == other.tolist()
    assert steal(world.problem, attached, upto=2.0).tolist() == steal(problem, attached, upto=2.0).tolist()
    assert merge_by_loss(world.problem).tolist() == merge_by_loss(problem).tolist()


@EXAMPLES
@given(PROBLEMS, SEEDS)
def test_refinement_keeps_classes_good_and_never_costs_more(problem: Problem, seed: int) -> None:
    world = guarded(problem, seed)
    start = mended(world)
    for found in (
        polish(world.problem, start, target=np.zeros(problem.size), work=20_000.0, seed=seed),
        polish(world.problem, start, target=np.zeros(problem.size), work=20_000.0, seed=seed, heat=1.0),
        steal(world.problem, start, upto=2.0),
        pour(world.problem, start, work=20_000.0, seed=seed),
    ):
        assert_good(world, found)
        assert ((found == FREE) == (start == FREE)).all()
        assert loss_of(problem, found) <= loss_of(problem, start) + 1e-9


@EXAMPLES
@given(PROBLEMS, SEEDS, st.floats(0, 3))
def test_open_signatures_are_poured_only_into_what_is_cheaper(problem: Problem, seed: int, stop: float) -> None:
    world = guarded(problem, seed)
    start = close_cheapest_first(world.problem, stop=stop)
    found = pour(world.problem, start, work=50_000.0, seed=seed, open_cost=stop)
    assert_good(world, found)
    assert all(class_loss(problem, members) < stop for members in classes(found))
    assert (start[found == FREE] == FREE).all()
    assert loss_of(problem, found, suppressed=stop) <= loss_of(problem, start, suppressed=stop) + 1e-9
    assert found.tolist() == pour(world.problem, start, work=50_000.0, seed=seed, open_cost=stop).tolist()


@EXAMPLES
@given(problems(largest=24), SEEDS)
def test_pouring_splits_what_two_good_classes_of_one_box_would_hold(problem: Problem, seed: int) -> None:
    """From one class of everything it finds some cheaper class, if a single group and its rest are both good."""
    world = guarded(problem, seed)
    everyone = list(range(problem.size))
    one = np.zeros(problem.size, np.int32)
    if not world.good(everyone):
        return
    possible = False
    for j in range(problem.forest.width):
        for v in range(problem.forest.start[j], problem.forest.start[j + 1]):
            low, high = problem.forest.lo[v], problem.forest.hi[v]
            inside = [s for s in everyone if low <= problem.codes[s, j] < high]
            rest = [s for s in everyone if s not in inside]
            cheaper = inside and class_loss(problem, inside) < class_loss(problem, everyone) - 1e-6
            possible = possible or (cheaper and rest and world.good(inside) and world.good(rest))
    found = pour(world.problem, one, work=300_000.0, seed=seed)
    assert_good(world, found)
    if possible:
        assert loss_of(problem, found) < loss_of(problem, one) - 1e-9


@EXAMPLES
@given(problems(largest=24), SEEDS, SEEDS)
def test_who_may_leave_leaves_every_class_good(problem: Problem, seed: int, drawn: int) -> None:
    """Of the candidates as many as can be: none of those put back could leave as well."""
    world = guarded(problem, seed)
    rng = np.random.default_rng(drawn)
    taker = 2
    home = rng.integers(0, 3, problem.size)
    wants = (home != taker) & (rng.random(problem.size) < 0.5)
    guard, persons = world.problem.guard, problem.persons
    balance = new_balance(guard, np.arange(problem.size), 3)
    for s in range(problem.size):
        enter(balance, s, taker if wants[s] else home[s], persons[s], 1)
    candidate = np.flatnonzero(wants).astype(np.int32)
    chosen = np.zeros(len(candidate), np.bool_)
    always = np.array([False, bool(rng.integers(2)), False])
    fits, steps = most_that_may_leave(
        guard.demands, balance, max(1, problem.k), candidate, persons[candidate], home[candidate].astype(np.int32),
        np.array([1.0, 0.5, 0.0]), always, 0.02, chosen,
    )  # fmt: skip
    assert steps >= 0

    def good(where: np.ndarray) -> bool:
        held = [np.flatnonzero(where == c).tolist() for c in range(3)]
        return all(world.good(held[c]) for c in range(3) if c == taker or (held[c] and not always[c]))

    if not fits:
        return
    where = home.copy()
    where[candidate[chosen]] = taker
    assert good(where)
    for c in range(3):
        members = where == c
        for j, dense in enumerate(world.dense):
            own = slice(balance.column[j], balance.column[j + 1])
            assert balance.tally[c, own].tolist() == dense[members].sum(axis=0)[balance.value[own]].tolist()
        assert (balance.persons[c], balance.size[c]) == (persons[members].sum(), members.sum())
    everyone = home.copy()
    everyone[candidate] = taker
    if good(everyone):
        assert chosen.all()


@EXAMPLES
@given(PROBLEMS, SEEDS, st.integers(0, 20), st.integers(0, 10**6))
def test_mending_places_all_that_can_be_placed(problem: Problem, seed: int, suppressible: int, drawn: int) -> None:
    world = guarded(problem, seed)
    rng = np.random.default_rng(drawn)
    start = rng.integers(-1, 5, problem.size).astype(np.int32)
    found = mend(world.problem, start, suppressible=suppressible)
    assert len(found) == problem.size
    assert_good(world, found)
    everyone = list(range(problem.size))
    if problem.rows[found == FREE].sum() > suppressible:
        assert not world.good(everyone) or not np.isfinite(class_loss(problem, everyone))
    for members in classes(start):  # what was good stays together
        if world.good(members) and np.isfinite(class_loss(problem, members)):
            assert len(set(found[members].tolist())) == 1 and found[members[0]] != FREE


@EXAMPLES
@given(problems(largest=24), SEEDS)
def test_merging_and_cuts_give_good_classes(problem: Problem, seed: int) -> None:
    world = guarded(problem, seed)
    levels = flat_levels(problem)
    tree = spanning_tree(levels, problem.codes)
    for found in (
        merge_by_loss(world.problem),
        merge_by_loss(world.problem, stop=1.0),
        grow_balanced(world.problem, tree),
        cut_longest(world.problem, tree),
    ):
        assert_good(world, found)
        split = split_along_trees(world.problem, found, levels)
        assert_good(world, split)
        assert loss_of(problem, split) <= loss_of(problem, found) + 1e-9


def flat_levels(problem: Problem) -> Levels:
    """Each QI with one level above its values."""
    trees = [Tree.flat([str(x) for x in range(leaves)]) for leaves in problem.forest.leaves]
    return Levels.of(trees, [np.arange(leaves, dtype=np.int32) for leaves in problem.forest.leaves])


@EXAMPLES
@given(PROBLEMS, SEEDS)
def test_only_groups_that_no_class_could_serve_stay_open(problem: Problem, seed: int) -> None:
    """What lies under the highest nodes that may be published never meets anything else."""
    world = guarded(problem, seed)
    found = mended(world)
    assert_good(world, found)
    forest = problem.forest
    tops = forest.highest[forest.start[:-1] + problem.codes]
    _, group = np.unique(tops, axis=0, return_inverse=True)
    for number in np.unique(group.ravel()[found == FREE]):
        assert not world.good(np.flatnonzero(group.ravel() == number).tolist())


@EXAMPLES
@given(PROBLEMS, SEEDS, st.sampled_from(["fast", "normal"]), st.floats(0.1, 3))
def test_lattice_gives_good_classes(problem: Problem, seed: int, effort: str, stop: float) -> None:
    world = guarded(problem, seed)
    method = Lattice(effort=effort)  # type: ignore[arg-type]
    for limit in (stop, np.inf):
        piece = Piece(world.problem, limit, problem.size, SUPPRESSED, seed=seed)
        found = method.solve(piece)
        assert_good(world, found.class_of)
        # Where nothing is refined, what a hard guard keeps open may join a class beyond the stop, but none that is no
        # better than being suppressed.
        most = limit if effort == "normal" else max(limit, SUPPRESSED)
        assert all(class_loss(problem, members) < most + 1e-9 for members in classes(found.class_of))
        assert found.class_of.tolist() == method.solve(piece).class_of.tolist()
    everyone = list(range(problem.size))
    if (found.class_of == FREE).any():
        assert not world.good(everyone) or not np.isfinite(class_loss(problem, everyone))


@EXAMPLES
@given(PROBLEMS, SEEDS, st.sampled_from([1.0, np.inf]))
def test_large_pieces_have_good_classes(problem: Problem, seed: int, stop: float) -> None:
    world = guarded(problem, seed)
    piece = Piece(world.problem, stop, problem.size, SUPPRESSED, seed=seed, suppressible=10**9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lattice, "_ALONE", 0)
        found = Lattice().solve(piece)
        assert found.class_of.tolist() == Lattice().solve(piece).class_of.tolist()
    assert_good(world, found.class_of)


def test_nothing_is_poured_where_nothing_is_asked_or_spent() -> None:
    problem = random_problem(3, size=20, width=2, k=2)
    world = guarded(problem, 1)
    start = attach_rest(problem, close_cheapest_first(problem))
    free = np.full(problem.size, FREE, np.int32)
    assert pour(problem, start, work=1e6, seed=0) is start
    assert pour(world.problem, start, work=0.0, seed=0) is start
    assert pour(world.problem, free, work=1e6, seed=0) is free
