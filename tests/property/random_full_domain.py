"""Random small tables for full-domain methods, and slow, obvious ways to look at their groups."""

from dataclasses import replace
from itertools import product

import numpy as np
from hypothesis import strategies as st
from random_problems import random_tree

from kanon_spark.hierarchy.tree import Tree
from kanon_spark.kernels.ladders import Ladders
from kanon_spark.kernels.level_counts import ArrayCounts
from kanon_spark.kernels.measure import Kind, Measure
from kanon_spark.kernels.problem import Forest, Problem
from kanon_spark.methods.base import Piece

Levels = tuple[int, ...]
KINDS: tuple[Kind, ...] = ("node", "node", "range", "set")


def random_piece(seed: int, *, size: int, width: int, k: int) -> Piece:
    """A table with its trees: some with a `max_level`, some only there to guide the search, some leaves absent."""
    rng = np.random.default_rng(seed)
    kinds: list[Kind] = [KINDS[int(rng.integers(len(KINDS)))] for _ in range(width)]
    trees = [_tree(rng, capped=kind == "node") for kind in kinds]
    codes = np.unique(np.stack([rng.integers(0, tree.leaves, size) for tree in trees], axis=1).astype(np.int32), axis=0)
    present = [np.isin(np.arange(tree.leaves), codes[:, j]) for j, tree in enumerate(trees)]
    weights = np.array([1.0, 2.0, 0.5, 1.0][:width])
    forest = Forest.of(trees, weights, present)
    leaves = [int(count) for count in forest.leaves]
    measure = Measure(
        kinds=tuple(kinds),
        weights=weights,
        positions=tuple(np.arange(count, dtype=np.float64) for count in leaves),
        spans=tuple(float(max(1, count - 1)) for count in leaves),
        domains=tuple(leaves),
        nulls=(-1,) * width,
    )
    rows = rng.integers(1, 4, len(codes)).astype(np.int64)
    persons = np.minimum(rows, rng.integers(0, 4, len(codes))).astype(np.int64)
    problem = Problem(forest, np.asfortranarray(forest.encode(codes)), rows, persons, k, measure)
    names = tuple(f"q{j}" for j in range(width))
    return Piece(problem, np.inf, problem.size, float(weights.sum()), 0, trees=tuple(trees), names=names)


def _tree(rng: np.random.Generator, *, capped: bool) -> Tree:
    tree = random_tree(rng, int(rng.integers(1, 7)))
    if not capped or tree.height == 0 or rng.random() < 0.6:
        return tree
    top = int(rng.integers(0, tree.height))
    loss = np.where(tree.lowest_levels() > top, np.inf, tree.loss)
    return replace(tree, max_level=top, loss=loss)


@st.composite
def pieces(draw: st.DrawFn, *, largest: int = 24, widest: int = 3) -> Piece:
    """Tables of one to three QIs."""
    return random_piece(
        draw(st.integers(0, 10**6)),
        size=draw(st.integers(1, largest)),
        width=draw(st.integers(1, widest)),
        k=draw(st.integers(1, 5)),
    )


def counts_of(piece: Piece) -> ArrayCounts:
    """The counts that a method is given."""
    problem = piece.problem
    assert problem.measure is not None
    rows = int(problem.rows.sum())
    ladders = Ladders.of(piece.trees, problem.forest.present, problem.measure.weights, rows=rows, names=piece.names)
    return ArrayCounts.of(ladders, problem)


def tops(piece: Piece) -> Levels:
    """The highest level of each QI that may be published."""
    return tuple(tree.height if tree.max_level is None else tree.max_level for tree in piece.trees)


def all_vectors(piece: Piece) -> list[Levels]:
    """Every level vector."""
    return list(product(*[range(top + 1) for top in tops(piece)]))


def leaf(piece: Piece, s: int, j: int) -> int:
    """The full leaf code of a signature."""
    return int(piece.problem.forest.present[j][piece.problem.codes[s, j]])


def groups(piece: Piece, levels: Levels, members: list[int]) -> dict[tuple[int, ...], list[int]]:
    """Members by their nodes at these levels."""
    found: dict[tuple[int, ...], list[int]] = {}
    for s in members:
        nodes = tuple(int(tree.levels[levels[j], leaf(piece, s, j)]) for j, tree in enumerate(piece.trees))
        found.setdefault(nodes, []).append(s)
    return found


def large(piece: Piece, levels: Levels, members: list[int]) -> dict[tuple[int, ...], list[int]]:
    """Those of at least k persons."""
    persons, k = piece.problem.persons, piece.problem.k
    return {nodes: held for nodes, held in groups(piece, levels, members).items() if persons[held].sum() >= k}


def cost(piece: Piece, nodes: tuple[int, ...]) -> float:
    """Loss per row of a tuple of nodes."""
    assert piece.problem.measure is not None
    weights = piece.problem.measure.weights
    return float(sum(weights[j] * tree.loss[nodes[j]] for j, tree in enumerate(piece.trees)))


def released_loss(piece: Piece, found: dict[tuple[int, ...], list[int]]) -> float:
    """Loss of all rows of some groups."""
    return sum(cost(piece, nodes) * int(piece.problem.rows[held].sum()) for nodes, held in found.items())


def rows_of(piece: Piece, found: dict[tuple[int, ...], list[int]]) -> int:
    """Rows of some groups."""
    return sum(int(piece.problem.rows[held].sum()) for held in found.values())
