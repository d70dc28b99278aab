"""`mondrian` and `kactus` where classes must satisfy more than k: histograms of regions, cuts and classes."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mondrian_twin import twin
from random_guards import SEEDS, TRIVIAL, Guarded, guarded
from random_kactus import RandomTree, World, found_by_prune, literal_prune, random_trees, worlds
from random_measures import classes, measured_problems

from kanon_spark.kernels.kactus_pruning import Asked, Holding, Loan, lendable, prune
from kanon_spark.kernels.problem import Problem
from kanon_spark.kernels.regions import Marginals, Regions, count_marginals, grow
from kanon_spark.kernels.value_sums import ValueSums
from kanon_spark.methods.base import Piece, Solution
from kanon_spark.methods.kactus import Kactus
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


@EXAMPLES
@given(random_trees(), SEEDS)
def test_pruning_follows_the_rules(tree: RandomTree, seed: int) -> None:
    """Borrowing makes the taker good and leaves the giver good; siblings are pruned only where that helps."""
    assume(tree.persons)
    asking = tree.guarded(seed)
    released, left = found_by_prune(asking, tree.children, tree.members, range(len(tree.children)))
    assert (released, left) == literal_prune(asking)
    assert sorted([s for _, held in released for s in held] + list(left)) == list(range(len(tree.persons)))
    assert all(asking.good(held) for _, held in released)


def with_guard(world: World, seed: int) -> tuple[World, Guarded]:
    asking = guarded(world.problem, seed)
    return World(asking.problem, world.trees), asking


OPTIONS = st.builds(
    Kactus, leftover=st.sampled_from(["join", "suppress"]), dimension=st.sampled_from(["multi", "single"])
)


@EXAMPLES
@given(worlds(largest=60), SEEDS, OPTIONS)
def test_every_class_of_kactus_is_good(world: World, seed: int, method: Kactus) -> None:
    asking, judge = with_guard(world, seed)
    solution = asking.solve(method)
    assert solution.nodes is not None
    for members in classes(solution.class_of):
        assert judge.good(members)
        assert (solution.nodes[members] == solution.nodes[members[0]]).all()
    left = np.flatnonzero(solution.class_of < 0)
    if len(left) and method.leftover == "join":  # no class could have taken it, and it is none itself
        assert not judge.good(left)
        assert not any(judge.good([*members, *left]) for members in classes(solution.class_of))


@EXAMPLES
@given(worlds(largest=60), SEEDS, OPTIONS)
def test_kactus_does_not_change_where_all_classes_satisfy(world: World, seed: int, method: Kactus) -> None:
    trivial = guarded(world.problem, seed, TRIVIAL, nulls=False)
    mine, plain = World(trivial.problem, world.trees).solve(method), world.solve(method)
    assert mine.class_of.tolist() == plain.class_of.tolist()
    assert mine.nodes is not None and plain.nodes is not None
    assert mine.nodes.tolist() == plain.nodes.tolist()


@EXAMPLES
@given(worlds(largest=60), SEEDS, st.integers(1, 30))
def test_regions_solved_elsewhere_give_the_same_classes(world: World, seed: int, block_size: int) -> None:
    """Some cuts are made above, each region is solved by itself, and what it leaves open is pruned above."""
    asking, _ = with_guard(world, seed)
    problem, guard = asking.problem, asking.problem.guard
    method, asked = Kactus(leftover="suppress"), Asked(problem.k, guard.demands)

    def count(regions: Regions, wanted: Sequence[int]) -> dict[int, Marginals]:
        leaf_of = regions.assign(problem.codes)
        return {region: count_marginals(problem, np.flatnonzero(leaf_of == region)) for region in wanted}

    def values(members: np.ndarray) -> ValueSums:
        return ValueSums.of_members(guard.histograms, guard.demands, members)

    regions = grow(count, method.chooser(problem), signatures=problem.size, block_size=block_size)
    region_of = regions.assign(problem.codes)
    found: list[frozenset[int]] = []
    carried: dict[int, Holding] = {}
    for region in regions.leaves:
        members = np.flatnonzero(region_of == region)
        part = asking.part(members).solve(replace(method, below=True), path=regions[region].path).class_of
        found += [frozenset(members[held].tolist()) for held in classes(part)]
        left = members[part < 0]
        region_of[members[part >= 0]] = -1
        loans = [Loan(int(problem.persons[s]), int(s), values(np.array([s]))) for s in left]
        persons = int(problem.persons[left].sum())
        carried[region] = Holding(len(left), persons, (region,), (), lendable(loans, problem.k), values(left))
    pruned = prune([node.children for node in regions.nodes], carried, asked)
    above = [held for _, held in pruned.released] + ([pruned.left] if asked.good(pruned.left) else [])
    lent = {s for held in [*above, pruned.left] for s in held.borrowed}
    for held in above:
        own = np.flatnonzero(np.isin(region_of, held.leaves)).tolist()
        found.append(frozenset(set(own) - lent | set(held.borrowed)))
    assert set(found) == {frozenset(held) for held in classes(asking.solve(method).class_of)}
