"""Levels that nest: ragged files, closed nodes, leaves that may not be published."""

from pathlib import Path

import numpy as np
import pytest

from kanon_spark.config.models import CsvSpec
from kanon_spark.errors import RequestError
from kanon_spark.hierarchy.build import load_static
from kanon_spark.hierarchy.tree import Tree
from kanon_spark.kernels.ladders import Ladder, Ladders
from kanon_spark.kernels.level_counts import ArrayCounts, Scope
from kanon_spark.kernels.problem import Forest, Problem
from kanon_spark.methods.base import Piece
from kanon_spark.methods.incognito import Incognito
from kanon_spark.methods.prgain import PrGain


def tree_of(folder: Path, *lines: str, max_level: int | None = None, unknown: str = "error") -> Tree:
    (folder / "file.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    spec = CsvSpec(path="file.csv", unknown=unknown)
    return load_static(spec, qi="x", base_dir=folder, numeric=False, min_level=0, max_level=max_level).tree


def ladder_of(tree: Tree) -> Ladder:
    return Ladder.of(tree, np.arange(tree.leaves, dtype=np.int32), weight=1.0, unit=2.0**-40)


def labels(tree: Tree, ladder: Ladder, level: int) -> list[str | None]:
    return [tree.labels[node] for node in ladder.nodes[level]]


def test_leaves_that_share_a_node_climb_together(tmp_path: Path) -> None:
    """`v` stands at one level for y and at two for x: at the second, x goes with y."""
    tree = tree_of(tmp_path, "x;v;v;w;*", "y;v;w;w;*", "z;z;z;z;*")
    ladder = ladder_of(tree)
    assert labels(tree, ladder, 1)[:2] == ["v", "v"]
    assert labels(tree, ladder, 2)[:2] == ["w", "w"]
    for low in range(ladder.height + 1):
        for high in range(low, ladder.height + 1):
            assert (ladder.climb(low, high)[ladder.place[low]] == ladder.place[high]).all()


def test_a_closed_node_is_not_climbed_to(tmp_path: Path) -> None:
    """Node w is at the first level for y, but above the highest one for x: y stays where it is."""
    tree = tree_of(tmp_path, "x;u;v;w;*", "y;w;w;w;*", "z;z;z;z;*", max_level=1)
    ladder = ladder_of(tree)
    assert ladder.height == 1
    assert labels(tree, ladder, 1)[:2] == ["u", "y"]
    assert all(np.isfinite(tree.loss[node]) for node in ladder.nodes[1][:3])


def test_unknown_values_under_a_max_level_are_left_out(tmp_path: Path) -> None:
    """What the hierarchy misses could only be published as its root, and that is closed."""
    tree = tree_of(tmp_path, "x;u;*", "y;u;*", max_level=1, unknown="root")
    present = [np.ones(tree.leaves, bool)]
    codes = np.arange(tree.leaves, dtype=np.int32).reshape(-1, 1)
    forest = Forest.of([tree], np.ones(1), present)
    counts = np.full(tree.leaves, 3, np.int64)
    problem = Problem(forest, np.asfortranarray(codes), counts, counts, 5)
    solution = PrGain("join").solve(Piece(problem, np.inf, tree.leaves, 1.0, 0, trees=(tree,)))
    assert solution.class_of[tree.unknown_leaf] == -1
    assert (solution.class_of[:2] == 0).all()
    assert solution.trace[-1]["levels"] == {"0": 1}  # numbered, where columns have no names


def test_losses_are_whole_numbers_that_fit() -> None:
    flat = Tree.flat(["a", "b", "c"])
    present = [np.arange(3, dtype=np.int32)] * 2
    for rows in (1, 30_162, 10**9):
        ladders = Ladders.of([flat, flat], present, np.array([1.0, 3.0]), rows=rows)
        assert 2**60 < ladders.suppressed * rows <= 2**62
        scope = Scope.whole(ladders, k=2, rows=rows)
        assert scope.gcp(0, 0) == 1.0


def test_a_lattice_beyond_the_limit_is_refused() -> None:
    flat = Tree.flat(["a", "b"])
    width = 15
    ladders = Ladders.of([flat] * width, [np.arange(2, dtype=np.int32)] * width, np.ones(width), rows=1)
    nothing = np.zeros(0, np.int64)
    counts = ArrayCounts(Scope.whole(ladders, k=2, rows=1), np.zeros((0, width), np.int32), nothing, nothing)
    with pytest.raises(RequestError, match="14,348,906 level vectors"):
        Incognito().choose(counts)
