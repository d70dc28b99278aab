"""Full-domain methods where groups must satisfy more than k: counts, choices and classes against slow twins."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from random_full_domain import (
    Levels,
    all_vectors,
    cost,
    counts_of,
    groups,
    leaf,
    pieces,
    released_loss,
    rows_of,
    tops,
)
from random_guards import SEEDS, TRIVIAL, Guarded, guarded

from kanon_spark.kernels import level_counts
from kanon_spark.kernels.admission import ROUNDS
from kanon_spark.methods.base import Piece
from kanon_spark.methods.datafly import Datafly
from kanon_spark.methods.full_domain import Choice, FullDomain, LevelCounts
from kanon_spark.methods.incognito import Incognito
from kanon_spark.methods.prgain import PrGain

EXAMPLES = settings(max_examples=120, deadline=None)  # the first example compiles
SHARES = st.sampled_from([0.0, 0.1, 0.29, 0.5])
METHODS = st.sampled_from([PrGain("suppress"), PrGain("join"), Datafly(0.3), Incognito(0.3)])


def with_guard(piece: Piece, world: Guarded) -> Piece:
    return replace(piece, problem=world.problem)


def good_groups(world: Guarded, piece: Piece, levels: Levels, members: list[int]) -> dict[tuple[int, ...], list[int]]:
    return {nodes: held for nodes, held in groups(piece, levels, members).items() if world.good(held)}


@EXAMPLES
@given(pieces(), SEEDS, st.booleans(), st.data())
def test_only_good_groups_count(piece: Piece, seed: int, sharing: bool, data: st.DataObject) -> None:
    """In the table, in what was rolled up, and in what is left when good groups have left."""
    world = guarded(piece.problem, seed)
    counts = counts_of(with_guard(piece, world))
    everybody, unit = list(range(piece.problem.size)), counts.scope.ladders.unit
    floor = data.draw(st.sampled_from(all_vectors(piece)))
    above = [levels for levels in all_vectors(piece) if all(a >= b for a, b in zip(levels, floor, strict=True))]
    gone = {s for held in good_groups(world, piece, floor, everybody).values() for s in held}
    left = [s for s in everybody if s not in gone]
    (rolled,) = counts.roll_up([(tuple(range(len(floor))), floor)])
    before = level_counts._SHARED, level_counts._SMALL
    level_counts._SHARED, level_counts._SMALL = (2, 1) if sharing else before  # roll up even the smallest tables
    try:
        asked = [(counts, everybody), (rolled, everybody), (counts.without(floor), left)]
        tallies = [(members, each.tally(above)) for each, members in asked]
    finally:
        level_counts._SHARED, level_counts._SMALL = before
    for members, found in tallies:
        for levels, tally in zip(above, found, strict=True):
            expected = good_groups(world, piece, levels, members)
            persons = sum(int(piece.problem.persons[held].sum()) for held in expected.values())
            assert (tally.rows, tally.persons) == (rows_of(piece, expected), persons)
            assert tally.groups == len(groups(piece, levels, members))
            assert tally.loss == round(released_loss(piece, expected) / unit)
    assert counts.by_k_alone().tally(above) == counts_of(piece).tally(above)


def rows_left(world: Guarded, piece: Piece, levels: Levels) -> int:
    found = good_groups(world, piece, levels, list(range(piece.problem.size)))
    return int(piece.problem.rows.sum()) - rows_of(piece, found)


@EXAMPLES
@given(pieces(), SEEDS, SHARES)
def test_incognito_finds_what_an_exhaustive_search_finds(piece: Piece, seed: int, share: float) -> None:
    world = guarded(piece.problem, seed)
    everybody, rows = list(range(piece.problem.size)), int(piece.problem.rows.sum())
    left = {levels: rows_left(world, piece, levels) for levels in all_vectors(piece)}
    holds = [levels for levels in all_vectors(piece) if left[levels] <= Decimal(repr(share)) * rows]

    def lower(one: Levels, other: Levels) -> bool:
        return one != other and all(a <= b for a, b in zip(one, other, strict=True))

    minimal = [levels for levels in holds if not any(lower(other, levels) for other in holds)]
    choice = Incognito(share).choose(counts_of(with_guard(piece, world)))
    assert choice.trace[-1]["minimal"] == len(minimal)
    if not minimal:
        assert choice.released == (tops(piece),)
        return

    def total(levels: Levels) -> float:
        found = good_groups(world, piece, levels, everybody)
        return released_loss(piece, found) + piece.suppressed * left[levels]

    assert choice.released == (min(minimal, key=lambda levels: (total(levels), sum(levels), levels)),)
    assert {tuple(one["levels"].values()) for one in choice.trace[-1]["cheapest"]} == set(minimal)


@EXAMPLES
@given(pieces(), SEEDS, SHARES)
def test_datafly_goes_on_until_few_enough_rows_are_outside_good_groups(piece: Piece, seed: int, share: float) -> None:
    world = guarded(piece.problem, seed)
    allowed = Decimal(repr(share)) * int(piece.problem.rows.sum())
    choice = Datafly(share).choose(counts_of(with_guard(piece, world)))
    ways = [tuple(step["levels"].values()) for step in choice.trace]
    assert [step["rows_left"] for step in choice.trace] == [rows_left(world, piece, levels) for levels in ways]
    assert all(step["rows_left"] > allowed for step in choice.trace[:-1])
    assert choice.trace[-1]["rows_left"] <= allowed or ways[-1] == tops(piece)
    assert choice.released == (ways[-1],)


@EXAMPLES
@given(pieces(), SEEDS)
def test_prgain_banks_good_groups_alone(piece: Piece, seed: int) -> None:
    world = guarded(piece.problem, seed)
    choice = PrGain().choose(counts_of(with_guard(piece, world)))
    left, banked = list(range(piece.problem.size)), 0
    for step in choice.trace:
        found = good_groups(world, piece, tuple(step["levels"].values()), left)
        gone = {s for held in found.values() for s in held}
        left = [s for s in left if s not in gone]
        banked += rows_of(piece, found)
        assert round(step["prgain"] * int(piece.problem.rows.sum())) == banked
    assert piece.problem.persons[left].sum() < piece.problem.k or tuple(choice.trace[-1]["levels"].values()) == tops(
        piece
    )


@EXAMPLES
@given(pieces(), SEEDS, METHODS)
def test_every_class_is_good(piece: Piece, seed: int, method: FullDomain) -> None:
    world = guarded(piece.problem, seed)
    solution = method.solve(with_guard(piece, world))
    assert solution.nodes is not None
    for number in sorted(set(solution.class_of.tolist()) - {-1}):
        members = np.flatnonzero(solution.class_of == number)
        assert world.good(members)
        assert (solution.nodes[members] == solution.nodes[members[0]]).all()


@EXAMPLES
@given(pieces(), SEEDS, METHODS)
def test_nothing_changes_where_all_classes_satisfy(piece: Piece, seed: int, method: FullDomain) -> None:
    world = guarded(piece.problem, seed, TRIVIAL, nulls=False)
    mine, plain = method.solve(with_guard(piece, world)), method.solve(piece)
    assert mine.class_of.tolist() == plain.class_of.tolist()
    assert mine.nodes is not None and plain.nodes is not None
    assert mine.nodes.tolist() == plain.nodes.tolist()
    assert mine.trace == plain.trace


def covering(piece: Piece, j: int, node: int, code: int) -> int:
    tree = piece.trees[j]
    while not tree.lo[node] <= code < tree.hi[node]:
        node = int(tree.parent[node])
    return node


def literal_join(world: Guarded, piece: Piece, vectors: list[Levels]) -> set[frozenset[int]]:
    """Classes of these vectors once all have joined who may."""
    rows, left = piece.problem.rows, list(range(piece.problem.size))
    made: list[tuple[tuple[int, ...], list[int]]] = []
    for levels in vectors:
        found = good_groups(world, piece, levels, left)
        made += sorted(found.items())
        gone = {s for held in found.values() for s in held}
        left = [s for s in left if s not in gone]

    def rise(number: int, s: int) -> float:
        nodes, held = made[number]
        new = cost(piece, tuple(covering(piece, j, node, leaf(piece, s, j)) for j, node in enumerate(nodes)))
        return int(rows[held].sum()) * (new - cost(piece, nodes)) + int(rows[s]) * new

    joined: dict[int, list[int]] = {number: list(held) for number, (_, held) in enumerate(made)}
    taking = set(joined)
    for _ in range(ROUNDS):
        wants: dict[int, list[tuple[float, int]]] = {}
        for s in left:
            offers = [(rise(number, s), number) for number in sorted(taking)]
            if offers and min(offers)[0] < np.inf:
                wants.setdefault(min(offers)[1], []).append((min(offers)[0], s))
        left = []
        for number, asking in wants.items():
            everybody = [*joined[number], *(s for _, s in asking)]
            if world.good(everybody):
                joined[number] = everybody
                continue
            for _, s in sorted(asking):
                if world.good([*joined[number], s]):
                    joined[number].append(s)
                else:
                    taking.discard(number)
                    left.append(s)
    return {frozenset(held) for held in joined.values()}


@EXAMPLES
@given(pieces(), SEEDS, st.integers(0, 10**6))
def test_those_left_join_only_where_the_class_stays_good(piece: Piece, seed: int, chosen: int) -> None:
    """A choice of random vectors leaves more than a method would."""
    world = guarded(piece.problem, seed)
    rng = np.random.default_rng(chosen)
    vectors = [all_vectors(piece)[i] for i in rng.integers(0, len(all_vectors(piece)), 2)]

    class Given(PrGain):
        def choose(self, counts: LevelCounts) -> Choice:
            return Choice(tuple(vectors))

    found = Given("join").solve(with_guard(piece, world)).class_of
    classes = {frozenset(np.flatnonzero(found == number).tolist()) for number in set(found.tolist()) - {-1}}
    assert classes == literal_join(world, piece, vectors)
