"""The spanning tree without a matrix against scipy's on the full matrix."""

from math import lcm

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import random_tree
from scipy.sparse.csgraph import minimum_spanning_tree

from kanon_spark.hierarchy.tree import Tree
from kanon_spark.kernels.levels import Levels
from kanon_spark.kernels.spanning import Edges, components, kruskal, spanning_tree


def matrix(trees: list[Tree], codes: np.ndarray) -> np.ndarray:
    """All distances by the definition, one level at a time."""
    scale = lcm(*[tree.height for tree in trees if tree.height])
    total = np.zeros((len(codes), len(codes)), np.int64)
    for j, tree in enumerate(trees):
        for level in range(tree.height):
            at = tree.levels[level, codes[:, j]]
            total += (at[:, None] != at[None, :]) * (scale // tree.height)
    return total


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 60), way=st.sampled_from(["prim", "lattice", "scan"]))
def test_the_tree_weighs_what_scipy_says(seed: int, size: int, way: str) -> None:
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, int(rng.integers(1, 9))) for _ in range(int(rng.integers(1, 5)))]
    codes = np.unique(np.stack([rng.integers(0, tree.leaves, size) for tree in trees], axis=1), axis=0)
    present = [np.unique(codes[:, j]).astype(np.int32) for j in range(len(trees))]
    compact = np.stack([np.searchsorted(present[j], codes[:, j]) for j in range(len(trees))], axis=1).astype(np.int32)
    small, scan = {"prim": (1000, 0.0), "lattice": (0, 0.0), "scan": (0, 1e6)}[way]
    edges = spanning_tree(Levels.of(trees, present), compact, small=small, scan=scan)
    expected = matrix(trees, codes)
    # Distinct signatures are never 0 apart, so that scipy takes no pair for a missing edge.
    assert edges.count == len(codes) - 1
    assert edges.total == int(minimum_spanning_tree(expected).sum())
    assert (edges.w == expected[edges.a, edges.b]).all()
    assert (components(edges.a, edges.b, len(codes)) == 0).all()
    assert (np.diff(edges.w) >= 0).all() and (edges.a < edges.b).all()


def test_kruskal_keeps_a_minimum_forest() -> None:
    edges = Edges.ordered(np.array([0, 1, 0, 3]), np.array([1, 2, 2, 4]), np.array([3, 1, 2, 5]))
    kept = kruskal(edges, 6)
    assert list(zip(kept.a.tolist(), kept.b.tolist(), kept.w.tolist(), strict=True)) == [
        (1, 2, 1),
        (0, 2, 2),
        (3, 4, 5),
    ]
    assert components(edges.a, edges.b, 6).tolist() == [0, 0, 0, 3, 3, 5]


@pytest.mark.parametrize("size", [0, 1])
def test_nothing_to_span(size: int) -> None:
    tree = Tree.flat(["a", "b"])
    levels = Levels.of([tree], [np.array([0, 1], np.int32)])
    assert spanning_tree(levels, np.zeros((size, 1), np.int32)).count == 0
