"""The spanning tree across blocks: exactly as light as scipy's, by one process and by GraphFrames."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from solve_world import Signatures, codebook

from kanon_spark.config.loader import load_config
from kanon_spark.engine.runner import run
from kanon_spark.kernels.spanning import components
from kanon_spark.methods.mst import Mst
from kanon_spark.stitch import tree as tree_module
from kanon_spark.stitch.cross import NodesByWeight, group_keys
from kanon_spark.stitch.graph import Graphs, missing_graphframes
from kanon_spark.stitch.tree import Tree, tree_across_blocks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Grow = Callable[..., tuple[pd.DataFrame, Tree, Graphs]]


@pytest.fixture
def grow(spark: "SparkSession", tmp_path: Path) -> Grow:
    calls: list[int] = []

    def over_blocks(
        given: Signatures, *, block_size: int, by_graphs: bool = False
    ) -> tuple[pd.DataFrame, Tree, Graphs]:
        calls.append(block_size)
        number = len(calls)

        def folder(what: str) -> str:
            return str(tmp_path / f"{number}_{what}")

        graphs = Graphs(spark, folder)
        tree = tree_across_blocks(
            replace(given.solver, method=Mst()),
            spark.createDataFrame(given.frame.sample(frac=1.0, random_state=1)),
            count=len(given.frame),
            block_size=block_size,
            folder=folder,
            graphs=graphs,
            by_graphs=by_graphs,
            may_call=True,
            tell=lambda text: None,
        )
        return tree.edges.toPandas(), tree, graphs

    return over_blocks


def distances(given: Signatures) -> np.ndarray:
    """All weights, by the definition: levels climbed until two leaves have the same ancestor."""
    solver, levels = given.solver, given.solver.levels
    frame = given.frame.sort_values("h")
    full = solver.codebook.layout.unpack(frame[solver.codebook.layout.names()].to_numpy(np.int64))
    total = np.zeros((len(frame), len(frame)), np.int64)
    for j, column in enumerate(solver.codebook.columns):
        for level in range(column.tree.height):
            at = column.tree.levels[level, full[:, j]]
            total += (at[:, None] != at[None, :]) * levels.unit[j]
    return total


def check(given: Signatures, edges: pd.DataFrame) -> None:
    """A spanning tree with true weights, as light as scipy's on the whole matrix (`h` counts from 0 here)."""
    expected = distances(given)
    assert len(edges) == len(given.frame) - 1
    assert (expected[edges["a"], edges["b"]] == edges["w"]).all()
    assert edges["w"].sum() == int(minimum_spanning_tree(expected).sum())
    assert (components(edges["a"].to_numpy(np.int32), edges["b"].to_numpy(np.int32), len(given.frame)) == 0).all()


@pytest.mark.parametrize(
    ("seed", "with_sets", "block_size", "outside", "scan"),
    [(1, False, 60, 0, 0), (2, True, 25, 1000, 0), (3, True, 120, 1000, 1000), (4, False, 1, 1000, 0)],
)
def test_blocks_and_one_process_give_a_minimum_tree(
    grow: Grow, seed: int, with_sets: bool, block_size: int, outside: int, scan: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By all groups, by those with something outside the largest component, and ended by a scan."""
    monkeypatch.setattr(tree_module, "OUTSIDE_SIGNATURES", outside)
    monkeypatch.setattr(tree_module, "SCAN_SIGNATURES", scan)
    monkeypatch.setattr(tree_module, "SCAN_PAIRS", 0)
    given = Signatures.random(seed, size=250, k=3, with_sets=with_sets)
    edges, tree, graphs = grow(given, block_size=block_size)
    check(given, edges)
    assert tree.facts["blocks"] > 1 and tree.facts["components_after_blocks"] > 1
    assert graphs.calls == 0


@pytest.mark.parametrize(("seed", "with_sets", "block_size"), [(6, True, 20), (8, False, 90)])
def test_boruvka_rounds_with_graphframes_give_a_minimum_tree(
    grow: Grow, spark: "SparkSession", seed: int, with_sets: bool, block_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing_graphframes(spark):
        pytest.skip("no GraphFrames jar here")
    monkeypatch.setattr(tree_module, "SCAN_SIGNATURES", 0)
    monkeypatch.setattr(tree_module, "SCAN_PAIRS", 0)
    given = Signatures.random(seed, size=250, k=3, with_sets=with_sets)
    edges, tree, graphs = grow(given, block_size=block_size, by_graphs=True)
    check(given, edges)
    assert graphs.calls == tree.facts["rounds"] > 0


def test_one_block_and_one_signature(grow: Grow) -> None:
    given = Signatures.random(1, size=50, k=3)
    edges, tree, _ = grow(given, block_size=1000)
    check(given, edges)
    assert tree.facts["batches"] == 0
    one = np.ones(1, np.int64)
    alone, _, _ = grow(Signatures.of(np.array([[3, 5, 1]]), one, one, codebook(), k=1), block_size=10)
    assert alone.empty


def test_graphframes_agrees_with_scipy(spark: "SparkSession", tmp_path: Path) -> None:
    if missing_graphframes(spark):
        pytest.skip("no GraphFrames jar here")
    rng = np.random.default_rng(3)
    size = 400
    src, dst = rng.integers(0, size, (2, 300))
    ids = rng.permutation(10**12 + np.arange(size))  # long ids, far apart from their places
    graphs = Graphs(spark, lambda what: str(tmp_path / what))
    found = graphs.components(
        spark.createDataFrame(pd.DataFrame({"id": ids})),
        spark.createDataFrame(pd.DataFrame({"src": ids[src], "dst": ids[dst]})),
    ).toPandas()
    _, expected = connected_components(coo_matrix((np.ones(300), (src, dst)), shape=(size, size)), directed=False)
    by_scipy = pd.Series(ids).groupby(expected).min()
    wanted = dict(zip(ids.tolist(), by_scipy[expected].tolist(), strict=True))
    assert dict(zip(found["id"], found["component"], strict=True)) == wanted
    assert graphs.calls == 1


def test_nodes_come_by_weight_and_never_half_a_weight() -> None:
    levels = Signatures.random(1, size=50, k=3).solver.levels
    nodes = NodesByWeight(levels, start=3)
    taken: list[tuple[int, tuple[int, ...]]] = []
    while batch := nodes.take(2):
        if taken:
            assert batch[0][0] > taken[-1][0]
        taken += batch
    weights = [weight for weight, _ in taken]
    assert weights == sorted(weights)
    everything = np.array(np.meshgrid(*[range(h + 1) for h in levels.height])).reshape(len(levels.height), -1).T
    heavy = everything[everything @ levels.unit >= 3]
    assert {node for _, node in taken} == {tuple(node) for node in heavy.tolist()}


def test_group_keys_tell_groups_apart() -> None:
    given = Signatures.random(1, size=200, k=3)
    solver = given.solver
    codes, levels = solver.codes(given.frame), solver.levels
    node = tuple(int(h) // 2 for h in levels.height)
    keys = group_keys(codes, node, levels, 1)[:, 0]
    ancestors = np.stack([levels.up[levels.begin[j, level] + codes[:, j]] for j, level in enumerate(node)], axis=1)
    assert len(np.unique(keys)) == len(np.unique(ancestors, axis=0))
    assert len(np.unique(np.column_stack([keys, ancestors]), axis=0)) == len(np.unique(keys))


@pytest.mark.parametrize(
    "execution",
    [
        {},
        {"local_limit": 0, "block_size": 400, "stitch": "local"},
        {"local_limit": 0, "block_size": 1000, "stitch": "graphframes"},
    ],
    ids=["one process", "blocks of 400", "blocks of 1000 and GraphFrames"],
)
def test_adult_through_a_whole_run(
    spark: "SparkSession", shared: Path, repo: Path, tmp_path: Path, execution: dict[str, object]
) -> None:
    """3,000 signatures of Adult on 8 QIs; the matrix is made from the hierarchy files alone."""
    if execution.get("stitch") == "graphframes" and missing_graphframes(spark):
        pytest.skip("no GraphFrames jar here")
    names = ["age", "workclass", "education", "marital-status", "occupation", "sex", "race", "native-country"]
    rows = pd.read_csv(shared / "data" / "adult.csv", dtype=str)[names]
    rows = rows[~(rows == "?").any(axis=1)].drop_duplicates().head(3000)
    files = {name: repo / "hierarchies" / "adult" / f"{name}.csv" for name in names}
    matrix = np.zeros((len(rows), len(rows)))
    for name, file in files.items():
        levels = pd.read_csv(file, sep=";", header=None, dtype=str).set_index(0, drop=False)
        height = levels.shape[1] - 1
        own = levels.loc[rows[name]]
        for level in range(height):
            at = pd.factorize(own[level])[0]
            matrix += (at[:, None] != at[None, :]) * (2.0 / height)
    job = {
        "name": "adult",
        "columns": {"quasi_identifiers": {name: {"hierarchy": str(file)} for name, file in files.items()}},
        "privacy": {"k": 5},
        "method": {"name": "mst", "effort": "fast"},
        "execution": {"work_dir": str(tmp_path), **execution},
    }
    release = run(load_config(job), spark=spark, table=spark.createDataFrame(rows))
    assert release.tree is not None
    found = release.tree.agg({"distance": "sum", "*": "count"}).collect()[0].asDict()
    assert found["count(1)"] == len(rows) - 1
    assert found["sum(distance)"] == pytest.approx(minimum_spanning_tree(matrix).sum())
