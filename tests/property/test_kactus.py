"""`kactus` against slow, obvious twins: the choice of cuts, the pruning, and single-dimension suppression."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_kactus import RandomTree, World, found_by_prune, literal_prune, random_trees, worlds
from random_measures import classes

from kanon_spark.kernels.kactus import SAME, Criterion, best_cuts
from kanon_spark.kernels.kactus_cells import lost_values
from kanon_spark.kernels.kactus_pruning import Asked, Holding, Loan, lendable, prune
from kanon_spark.kernels.lattice import class_table
from kanon_spark.kernels.problem import OWN, Problem
from kanon_spark.kernels.regions import Marginals, Regions, count_marginals, grow, grow_here
from kanon_spark.methods.kactus import Kactus

CRITERIA = st.sampled_from(["gain_ratio", "gini"])


# The choice of cuts


def impurity(labels: Counter[int], criterion: Criterion) -> float:
    rows = labels.total()
    shares = [count / rows for count in labels.values() if count]
    return -sum(p * log2(p) for p in shares) if criterion == "gain_ratio" else 1 - sum(p * p for p in shares)


def literal_cut(world: World, members: Sequence[int], criterion: Criterion) -> tuple[int, set[frozenset[int]]] | None:
    """The QI and the groups of its values, from the rows of each value alone."""
    problem = world.problem
    assert problem.labels is not None and problem.measure is not None
    if problem.persons[list(members)].sum() < problem.k:
        return None

    def labels_of(j: int, values: frozenset[int]) -> Counter[int]:
        found: Counter[int] = Counter()
        for s in members:
            if int(problem.codes[s, j]) in values:
                found.update({c: int(n) for c, n in enumerate(problem.labels[s]) if n})
        return found

    def gain_and_split(j: int, groups: list[frozenset[int]]) -> tuple[float, float]:
        parts = [labels_of(j, group) for group in groups]
        whole = sum(parts, Counter[int]())
        shares = [part.total() / whole.total() for part in parts]
        inside = sum(share * impurity(part, criterion) for share, part in zip(shares, parts, strict=True))
        return impurity(whole, criterion) - inside, -sum(share * log2(share) for share in shares)

    found: list[tuple[int, list[frozenset[int]], float, float]] = []
    for j in range(len(world.trees)):
        held = sorted({int(problem.codes[s, j]) for s in members})
        if len(held) < 2:
            continue
        placed = [] if world.categorical(j) else [v for v in held if not np.isnan(problem.measure.positions[j][v])]
        others = [frozenset({v}) for v in held if v not in placed]
        if placed and not others:
            candidates = [[frozenset(held[:n]), frozenset(held[n:])] for n in range(1, len(held))]
        else:
            candidates = [[*([frozenset(placed)] if placed else []), *others]]
        best: tuple[list[frozenset[int]], float, float] | None = None
        for groups in candidates:
            gain, split = gain_and_split(j, groups)
            if gain > (best[1] if best else 0.0) + SAME:
                best = groups, gain, split
        if best is not None:
            found.append((j, *best))
    if not found:
        return None
    scores = [gain / split if criterion == "gain_ratio" else gain for _, _, gain, split in found]
    place = next(i for i, score in enumerate(scores) if score >= max(scores) - SAME)
    return found[place][0], set(found[place][1])


@settings(max_examples=120, deadline=None)
@given(worlds(), CRITERIA)
def test_the_tree_is_cut_where_the_twin_cuts_it(world: World, criterion: Criterion) -> None:
    problem = world.problem
    choose = best_cuts(problem, criterion)
    regions, leaf_of = grow_here(problem, choose)
    members: dict[int, list[int]] = {}
    for s, leaf in enumerate(leaf_of.tolist()):
        while leaf >= 0:
            members.setdefault(leaf, []).append(s)
            leaf = regions[leaf].parent
    for region, held in members.items():
        expected = literal_cut(world, held, criterion)
        cut = choose(count_marginals(problem, np.array(held)), ())
        if expected is None:
            assert cut is None and regions[region].cut is None
            continue
        assert cut is not None and cut.qi == expected[0]
        codes = problem.codes[held, cut.qi]
        side = cut.side(codes)
        assert {frozenset(codes[side == n].tolist()) for n in range(cut.children)} == expected[1]
        assert cut.ordered != world.categorical(cut.qi) or len(codes[np.isnan(position(problem, cut.qi)[codes])]) > 0


def position(problem: Problem, j: int) -> np.ndarray:
    assert problem.measure is not None
    return problem.measure.positions[j]


# The pruning


@settings(max_examples=200, deadline=None)
@given(random_trees())
def test_pruning_follows_the_rules(tree: RandomTree) -> None:
    released, left = found_by_prune(tree, tree.children, tree.members, range(len(tree.children)))
    assert (released, left) == literal_prune(tree)
    everything = sorted([s for _, held in released for s in held] + list(left))
    assert everything == list(range(len(tree.persons)))
    assert all(sum(tree.persons[s] for s in held) >= tree.k for _, held in released)


@settings(max_examples=200, deadline=None)
@given(random_trees(), st.integers(0, 10**6))
def test_parts_pruned_elsewhere_change_nothing(tree: RandomTree, seed: int) -> None:
    """Some inner nodes are pruned by themselves; above, they are leaves that hold what they were left with."""
    rng = np.random.default_rng(seed)
    above, members = [list(each) for each in tree.children], dict(tree.members)
    released: set[tuple[int, frozenset[int]]] = set()
    for top in range(len(above)):
        if not above[top] or rng.random() < 0.6:
            continue
        names = [node for node in tree.below(top) if node == top or node in reachable(above, top)]
        number = {node: place for place, node in enumerate(names)}
        part = [[number[child] for child in above[node]] for node in names]
        inside = {number[node]: members[node] for node in names if not above[node]}
        done, left = found_by_prune(tree, part, inside, names)
        released |= done
        above[top] = []
        members[top] = sorted(left)
    kept = [0, *sorted(reachable(above, 0))]
    number = {node: place for place, node in enumerate(kept)}
    rest = {number[node]: members[node] for node in kept if not above[node]}
    done, left = found_by_prune(tree, [[number[child] for child in above[node]] for node in kept], rest, kept)
    assert (released | done, left) == literal_prune(tree)


def reachable(children: list[list[int]], top: int) -> set[int]:
    found = list(children[top])
    for each in found:
        found += children[each]
    return set(found)


# Whole solutions


@settings(max_examples=120, deadline=None)
@given(worlds(largest=80), CRITERIA, st.sampled_from(["multi", "single"]), st.sampled_from(["join", "suppress"]))
def test_k_holds_nothing_is_lost_and_every_cell_is_true(
    world: World, criterion: Criterion, dimension: str, leftover: str
) -> None:
    problem = world.problem
    assert problem.measure is not None
    method = Kactus(criterion=criterion, dimension=dimension, leftover=leftover)  # type: ignore[arg-type]
    solution = world.solve(method)
    class_of, nodes = solution.class_of, solution.nodes
    assert nodes is not None
    for held in classes(class_of):
        assert problem.persons[held].sum() >= problem.k
        assert (nodes[held] == nodes[held[0]]).all()
    left = class_of < 0
    assert problem.persons[left].sum() < problem.k
    if leftover == "join" and problem.persons.sum() >= problem.k:
        assert not left.any()
    table, _, _ = class_table(problem, class_of)
    for number, held in enumerate(classes(class_of)):
        for j in range(len(world.trees)):
            published = nodes[held[0], j]
            assert published in {OWN, world.roots[j]}
            if published == OWN:
                values = set(problem.codes[held, j].tolist())
                places = np.isnan(position(problem, j)[sorted(values)])
                assert len(values) == 1 or not (world.categorical(j) or places.any())
                if problem.measure.kinds[j] == "node":
                    assert np.isfinite(problem.forest.loss[table[number, j]])
                    assert problem.forest.original[table[number, j]] != world.roots[j]
    again = world.solve(method)
    assert (again.class_of == class_of).all() and (again.nodes == nodes).all()


@settings(max_examples=60, deadline=None)
@given(worlds(largest=80), CRITERIA, st.integers(1, 30))
def test_regions_solved_elsewhere_give_the_same_classes(world: World, criterion: Criterion, block_size: int) -> None:
    """Some cuts are made above, each region is solved by itself, and what it leaves open is pruned above."""
    problem = world.problem
    method = Kactus(criterion=criterion, leftover="suppress")

    def count(regions: Regions, wanted: Sequence[int]) -> dict[int, Marginals]:
        leaf_of = regions.assign(problem.codes)
        return {region: count_marginals(problem, np.flatnonzero(leaf_of == region)) for region in wanted}

    regions = grow(count, method.chooser(problem), signatures=problem.size, block_size=block_size)
    region_of = regions.assign(problem.codes)
    found: list[frozenset[int]] = []
    carried: dict[int, Holding] = {}
    for region in regions.leaves:
        members = np.flatnonzero(region_of == region)
        part = world.part(members).solve(replace(method, below=True), path=regions[region].path).class_of
        found += [frozenset(members[held].tolist()) for held in classes(part)]
        left = members[part < 0]
        region_of[members[part >= 0]] = -1
        loans = [Loan(int(problem.persons[s]), int(s)) for s in left]
        persons = int(problem.persons[left].sum())
        carried[region] = Holding(len(left), persons, (region,), (), lendable(loans, problem.k))
    pruned = prune([node.children for node in regions.nodes], carried, Asked(problem.k))
    above = [held for _, held in pruned.released] + ([pruned.left] if pruned.left.persons >= problem.k else [])
    lent = {s for held in above for s in held.borrowed}
    for held in above:
        own = np.flatnonzero(np.isin(region_of, held.leaves)).tolist()
        found.append(frozenset(set(own) - lent | set(held.borrowed)))
    assert set(found) == {frozenset(held) for held in classes(world.solve(method).class_of)}


@settings(max_examples=60, deadline=None)
@given(worlds(largest=80))
def test_single_dimension_suppresses_values_everywhere(world: World) -> None:
    problem = world.problem
    multi, single = world.solve(Kactus()), world.solve(Kactus(dimension="single"))
    assert multi.nodes is not None and single.nodes is not None
    assert (multi.class_of == single.class_of).all()
    for j, root in enumerate(world.roots):
        before, after = multi.nodes[:, j] == root, single.nodes[:, j] == root
        assert (after >= before).all()
        gone = set(problem.codes[before, j].tolist())
        held = [problem.codes[members, j] for members in classes(multi.class_of)]
        spans = [set(range(int(codes.min()), int(codes.max()) + 1)) for codes in held]
        shown = [not before[members[0]] for members in classes(multi.class_of)]
        for _ in spans:
            gone |= {v for span, named in zip(spans, shown, strict=True) if named and span & gone for v in span}
        for members, span, named in zip(classes(multi.class_of), spans, shown, strict=True):
            assert after[members].all() == (not named or bool(span & gone))


@pytest.mark.parametrize(
    ("suppressed", "top", "lost"),
    [
        ([], [-1, -1, -1], []),
        ([1], [0, 1, 2], [1]),
        ([1], [2, -1, -1, 3], [0, 1, 2]),
        ([0], [1, 2, 3, -1, 4], [0, 1, 2, 3]),
        ([4], [1, 2, 3, -1, 4], [4]),
    ],
)
def test_values_that_ranges_link_are_lost_together(suppressed: list[int], top: list[int], lost: list[int]) -> None:
    marked = np.isin(np.arange(len(top)), suppressed)
    assert np.flatnonzero(lost_values(marked, np.array(top, np.int32))).tolist() == lost
