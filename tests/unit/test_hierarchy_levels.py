"""Levels of nodes: the lowest at which each stands."""

import numpy as np

from kanon_spark.hierarchy.tree import Tree


def test_a_node_that_stands_at_several_levels_counts_at_the_lowest() -> None:
    # Leaves a, b under g; c is its own group at level 1, and all are under the root.
    tree = Tree(
        labels=("a", "b", "c", "g", "*"),
        parent=np.array([3, 3, 4, 4, -1], np.int32),
        lo=np.array([0, 1, 2, 0, 0], np.int32),
        hi=np.array([1, 2, 3, 2, 3], np.int32),
        loss=np.array([0, 0, 0, 2 / 3, 1]),
        levels=np.array([[0, 1, 2], [3, 3, 2], [4, 4, 4]], np.int32),
    )
    assert tree.lowest_levels().tolist() == [0, 0, 0, 1, 2]


def test_a_flat_tree_has_two_levels() -> None:
    assert Tree.flat(["x", None]).lowest_levels().tolist() == [0, 0, 1]
