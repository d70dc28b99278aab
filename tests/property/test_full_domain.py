"""Full-domain methods against literal twins: counts, choices, and what becomes of them."""

from decimal import Decimal
from itertools import combinations, product
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from random_full_domain import (
    Levels,
    all_vectors,
    cost,
    counts_of,
    groups,
    large,
    leaf,
    pieces,
    released_loss,
    rows_of,
    tops,
)

from kanon_spark.hierarchy.tree import Tree
from kanon_spark.kernels import level_counts
from kanon_spark.kernels.ladders import Ladders
from kanon_spark.kernels.level_counts import ArrayCounts, Scope
from kanon_spark.kernels.problem import OWN
from kanon_spark.methods.base import Piece, Solution
from kanon_spark.methods.datafly import Datafly
from kanon_spark.methods.full_domain import Choice, FullDomain, LevelCounts
from kanon_spark.methods.incognito import Incognito
from kanon_spark.methods.prgain import PrGain

SHARES = st.sampled_from([0.0, 0.1, 0.29, 0.5])


def everybody(piece: Piece) -> list[int]:
    return list(range(piece.problem.size))


def in_units(loss: float, unit: float) -> int:
    return round(loss / unit)


@settings(max_examples=100, deadline=None)
@given(pieces(), st.booleans())
def test_counts_are_those_of_the_groups(piece: Piece, sharing: bool) -> None:
    counts = counts_of(piece)
    vectors = all_vectors(piece)
    before = level_counts._SHARED, level_counts._SMALL
    level_counts._SHARED, level_counts._SMALL = (2, 1) if sharing else before  # roll up even the smallest tables
    try:
        tallies = counts.tally(vectors)
    finally:
        level_counts._SHARED, level_counts._SMALL = before
    for levels, tally in zip(vectors, tallies, strict=True):
        found = large(piece, levels, everybody(piece))
        assert tally.groups == len(groups(piece, levels, everybody(piece)))
        assert (tally.rows, tally.persons) == (
            rows_of(piece, found),
            sum(int(piece.problem.persons[held].sum()) for held in found.values()),
        )
        assert tally.loss == in_units(released_loss(piece, found), counts.scope.ladders.unit)
        assert counts.scope.sizes(levels) == [
            len({int(tree.levels[levels[j], leaf(piece, s, j)]) for s in everybody(piece)})
            for j, tree in enumerate(piece.trees)
        ]


@settings(max_examples=80, deadline=None)
@given(pieces(), st.data())
def test_rolled_up_counts_are_those_of_the_groups(piece: Piece, data: st.DataObject) -> None:
    """Over a subset of the QIs, and over what is left, whatever was rolled up before."""
    counts = counts_of(piece)
    floor = data.draw(st.sampled_from(all_vectors(piece)))
    qis = tuple(data.draw(st.sets(st.integers(0, len(floor) - 1), min_size=1).map(sorted)))
    above = [levels for levels in all_vectors(piece) if all(a >= b for a, b in zip(levels, floor, strict=True))]
    some = data.draw(st.sampled_from(above))
    (rolled,) = counts.roll_up([(qis, tuple(floor[j] for j in qis))])
    tally = rolled.tally([tuple(some[j] for j in qis)])[0]
    held: dict[tuple[int, ...], list[int]] = {}
    for nodes, members in groups(piece, some, everybody(piece)).items():
        held.setdefault(tuple(nodes[j] for j in qis), []).extend(members)
    full = [members for members in held.values() if piece.problem.persons[members].sum() >= piece.problem.k]
    assert tally.groups == len(held)
    assert tally.rows == sum(int(piece.problem.rows[members].sum()) for members in full)

    gone = {s for members in large(piece, floor, everybody(piece)).values() for s in members}
    rest = [s for s in everybody(piece) if s not in gone]
    left = counts.without(floor)
    found = large(piece, some, rest)
    assert left.persons == int(piece.problem.persons[rest].sum())
    assert left.tally([some])[0].rows == rows_of(piece, found)
    assert left.tally([some])[0].loss == in_units(released_loss(piece, found), counts.scope.ladders.unit)


def raised(levels: Levels, j: int) -> Levels:
    return (*levels[:j], levels[j] + 1, *levels[j + 1 :])


def literal_prgain(piece: Piece, beam: int) -> tuple[list[Levels], list[int]]:
    """The branch that wins, as vectors that bank something and the rows banked after each round."""
    top = tops(piece)

    def bank(branch: dict[str, Any], levels: Levels) -> dict[str, Any]:
        found = large(piece, levels, branch["left"])
        gone = {s for held in found.values() for s in held}
        return {
            "levels": levels,
            "left": [s for s in branch["left"] if s not in gone],
            "released": [*branch["released"], *([levels] if found else [])],
            "rounds": [*branch["rounds"], branch["rounds"][-1] + rows_of(piece, found)],
            "loss": branch["loss"] + released_loss(piece, found),
        }

    zero = (0,) * len(top)
    branches = [bank({"left": everybody(piece), "released": [], "rounds": [0], "loss": 0.0}, zero)]

    def over(branch: dict[str, Any]) -> bool:
        return piece.problem.persons[branch["left"]].sum() < piece.problem.k or branch["levels"] == top

    while not all(over(branch) for branch in branches):
        after = []
        for branch in branches:
            if over(branch):
                after.append(branch)
                continue
            after += [
                bank(branch, raised(branch["levels"], j)) for j in range(len(top)) if branch["levels"][j] < top[j]
            ]
        most = max(branch["rounds"][-1] for branch in after)
        best: list[dict[str, Any]] = []
        for branch in after:
            same = any((b["released"], b["levels"]) == (branch["released"], branch["levels"]) for b in best)
            if branch["rounds"][-1] == most and not same:
                best.append(branch)
        branches = best[:beam]
    kept = min(branches, key=lambda branch: float(branch["loss"]))
    return kept["released"], kept["rounds"][1:]


@settings(max_examples=100, deadline=None)
@given(pieces(), st.integers(1, 3))
def test_prgain_chooses_as_its_literal_twin(piece: Piece, beam: int) -> None:
    choice = PrGain(beam=beam).choose(counts_of(piece))
    released, rounds = literal_prgain(piece, beam)
    assert list(choice.released) == released
    rows = int(piece.problem.rows.sum())
    assert [round(step["prgain"] * rows) for step in choice.trace] == rounds


def test_prgain_keeps_the_cheapest_of_equal_branches() -> None:
    """Either column makes pairs of the four rows; the second costs half as much."""
    flat = Tree.flat(["a", "b"])
    codes = np.array(list(product(range(2), repeat=2)), np.int32)
    once = np.ones(4, np.int64)
    for weights, best in (([2.0, 1.0], (0, 1)), ([1.0, 2.0], (1, 0)), ([1.0, 1.0], (1, 0))):
        present = [np.arange(2, dtype=np.int32)] * 2
        ladders = Ladders.of([flat, flat], present, np.array(weights), rows=4)
        counts = ArrayCounts(Scope.whole(ladders, k=2, rows=4), codes, once, once)
        assert PrGain().choose(counts).released == (best,)
        assert PrGain(beam=1).choose(counts).released == ((1, 0),)


def rows_left(piece: Piece, levels: Levels) -> int:
    return int(piece.problem.rows.sum()) - rows_of(piece, large(piece, levels, everybody(piece)))


def too_many(piece: Piece, levels: Levels, share: float) -> bool:
    return rows_left(piece, levels) > Decimal(repr(share)) * int(piece.problem.rows.sum())


@settings(max_examples=100, deadline=None)
@given(pieces(), SHARES)
def test_datafly_chooses_as_its_literal_twin(piece: Piece, share: float) -> None:
    top = tops(piece)
    levels: Levels = (0,) * len(top)
    while too_many(piece, levels, share) and levels != top:
        values = [
            {int(t.levels[levels[j], leaf(piece, s, j)]) for s in everybody(piece)} for j, t in enumerate(piece.trees)
        ]
        distinct = [len(found) if levels[j] < top[j] else 0 for j, found in enumerate(values)]
        levels = raised(levels, distinct.index(max(distinct)))
    choice = Datafly(share).choose(counts_of(piece))
    assert choice.released == (levels,)
    assert choice.trace[-1]["levels"] == dict(zip(piece.names, levels, strict=True))
    assert choice.trace[-1]["rows_left"] == rows_left(piece, levels)


def literal_pruned(piece: Piece, share: float) -> list[int]:
    """For subsets of one, two, … QIs: vectors that fail already where one of the QIs is left out."""
    rows, top = int(piece.problem.rows.sum()), tops(piece)

    def holds(qis: tuple[int, ...], levels: Levels) -> bool:
        held: dict[tuple[int, ...], list[int]] = {}
        for s in everybody(piece):
            nodes = tuple(int(piece.trees[j].levels[at, leaf(piece, s, j)]) for j, at in zip(qis, levels, strict=True))
            held.setdefault(nodes, []).append(s)
        small = [group for group in held.values() if piece.problem.persons[group].sum() < piece.problem.k]
        return sum(int(piece.problem.rows[group].sum()) for group in small) <= Decimal(repr(share)) * rows

    pruned = []
    for size in range(1, len(top) + 1):
        fail = 0
        for qis in combinations(range(len(top)), size):
            for levels in product(*[range(top[j] + 1) for j in qis]):
                smaller = [(qis[:i] + qis[i + 1 :], levels[:i] + levels[i + 1 :]) for i in range(size)]
                fail += size > 1 and not all(holds(*one) for one in smaller)
        pruned.append(fail)
    return pruned


@settings(max_examples=100, deadline=None)
@given(pieces(), SHARES)
def test_incognito_finds_the_minimal_vectors_and_the_cheapest(piece: Piece, share: float) -> None:
    holds = {levels for levels in all_vectors(piece) if not too_many(piece, levels, share)}

    def lower(one: Levels, other: Levels) -> bool:
        return one != other and all(a <= b for a, b in zip(one, other, strict=True))

    minimal = [levels for levels in holds if not any(lower(other, levels) for other in holds)]
    choice = Incognito(share).choose(counts_of(piece))
    assert [step["pruned"] for step in choice.trace[:-1]] == literal_pruned(piece, share)
    last = choice.trace[-1]
    assert last["minimal"] == len(minimal)
    if not minimal:
        assert choice.released == (tops(piece),)
        return

    def total(levels: Levels) -> float:
        return released_loss(piece, large(piece, levels, everybody(piece))) + piece.suppressed * rows_left(
            piece, levels
        )

    assert choice.released == (min(minimal, key=lambda levels: (total(levels), sum(levels), levels)),)
    assert {tuple(one["levels"].values()) for one in last["cheapest"]} == set(minimal)
    whole = piece.suppressed * int(piece.problem.rows.sum())
    for one in last["cheapest"]:
        assert abs(one["gcp"] - total(tuple(one["levels"].values())) / whole) < 1e-12


METHODS = st.sampled_from([PrGain("suppress"), PrGain("join"), Datafly(0.3), Incognito(0.3)])


@settings(max_examples=150, deadline=None)
@given(pieces(), METHODS)
def test_what_is_released_is_true_and_large_enough(piece: Piece, method: FullDomain) -> None:
    problem = piece.problem
    assert problem.measure is not None
    solution = method.solve(piece)
    again = method.solve(piece)
    assert solution.nodes is not None and again.nodes is not None
    assert (solution.class_of == again.class_of).all() and (solution.nodes == again.nodes).all()
    for number in sorted(set(solution.class_of.tolist()) - {-1}):
        members = np.flatnonzero(solution.class_of == number)
        assert problem.persons[members].sum() >= problem.k
        assert (solution.nodes[members] == solution.nodes[members[0]]).all()
        for j, tree in enumerate(piece.trees):
            node = int(solution.nodes[members[0], j])
            if problem.measure.kinds[j] == "node":
                assert np.isfinite(tree.loss[node])
                assert all(tree.lo[node] <= leaf(piece, int(s), j) < tree.hi[node] for s in members)
            else:
                assert node in {OWN, tree.root}


def as_chosen(piece: Piece, vectors: tuple[Levels, ...]) -> tuple[list[tuple[tuple[int, ...], list[int]]], list[int]]:
    """The classes of a choice in the order of vectors and nodes, and what is left."""
    left = everybody(piece)
    made: list[tuple[tuple[int, ...], list[int]]] = []
    for levels in vectors:
        found = large(piece, levels, left)
        made += sorted(found.items())
        gone = {s for held in found.values() for s in held}
        left = [s for s in left if s not in gone]
    return made, left


def covering(piece: Piece, j: int, nodes: list[int]) -> int:
    """The lowest node that is an ancestor of all these, by climbing."""
    tree = piece.trees[j]

    def path(node: int) -> list[int]:
        found = [node]
        while tree.parent[found[-1]] >= 0:
            found.append(int(tree.parent[found[-1]]))
        return found

    return min(set.intersection(*[set(path(node)) for node in nodes]))


def shown(piece: Piece, solution: Solution, s: int, j: int, node: int, released: int) -> bool:
    assert solution.nodes is not None and piece.problem.measure is not None
    found = int(solution.nodes[s, j])
    if piece.problem.measure.kinds[j] == "node":
        return found == node
    return found == (piece.trees[j].root if released == piece.trees[j].root else OWN)


@settings(max_examples=150, deadline=None)
@given(pieces(), st.integers(0, 10**6))
def test_the_left_join_the_class_where_the_loss_rises_least(piece: Piece, seed: int) -> None:
    """A choice of random vectors leaves more than a method would."""
    rng = np.random.default_rng(seed)
    vectors = [all_vectors(piece)[i] for i in rng.integers(0, len(all_vectors(piece)), 2)]

    class Given(PrGain):
        def choose(self, counts: LevelCounts) -> Choice:
            return Choice(tuple(vectors))

    solution = Given("join").solve(piece)
    made, left = as_chosen(piece, tuple(vectors))
    rows = piece.problem.rows
    joined: dict[int, list[int]] = {}
    for s in left:
        best, least = -1, np.inf
        for number, (nodes, held) in enumerate(made):
            new = cost(piece, tuple(covering(piece, j, [node, leaf(piece, s, j)]) for j, node in enumerate(nodes)))
            rise = int(rows[held].sum()) * (new - cost(piece, nodes)) + int(rows[s]) * new
            if rise < least:
                best, least = number, rise
        if best < 0:
            assert solution.class_of[s] == -1
        else:
            joined.setdefault(best, []).append(s)
    for number, (nodes, held) in enumerate(made):
        members = [*held, *joined.get(number, [])]
        assert set(np.flatnonzero(solution.class_of == solution.class_of[held[0]]).tolist()) == set(members)
        for j, node in enumerate(nodes):
            wide = covering(piece, j, [node, *[leaf(piece, s, j) for s in joined.get(number, [])]])
            assert all(shown(piece, solution, s, j, wide, node) for s in members)
