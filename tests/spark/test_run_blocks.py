"""Solving over blocks: the classes of one process, whatever the block size and the skew."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd
import pytest
from run_world import World, smallest_class
from solve_world import AGES, Signatures, classes_of, codebook, turn_of

from kanon_spark.blocks.cuts import CellRequest, Cells, Cuts, count_cells, cut_blocks
from kanon_spark.engine import cutting, refining, reopen
from kanon_spark.engine.solving import FACTORS, REST_LIMIT, Solved, Way, solve_over_blocks
from kanon_spark.engine.stages import RunContext
from kanon_spark.errors import PlatformError
from kanon_spark.methods.base import LocalMethod
from kanon_spark.methods.lattice import Lattice
from kanon_spark.methods.mst import Mst
from kanon_spark.stitch import graph
from kanon_spark.stitch.graph import Graphs, missing_graphframes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Stitch = Literal["auto", "local", "graphframes"]
Solve = Callable[..., tuple[pd.DataFrame, Solved]]


@pytest.fixture
def solve(spark: "SparkSession", tmp_path: Path) -> Solve:
    """Over blocks: the entries, after checks that hold for every table."""
    ctx = RunContext(spark)
    calls: list[int] = []

    def over_blocks(
        given: Signatures, *, block_size: int, rest_limit: int = REST_LIMIT, stitch: Stitch = "local"
    ) -> tuple[pd.DataFrame, Solved]:
        calls.append(block_size)
        number = len(calls)

        def folder(what: str) -> str:
            return str(tmp_path / f"{number}_{what}")

        solved = solve_over_blocks(
            ctx,
            given.solver,
            spark.createDataFrame(given.frame.sample(frac=1.0, random_state=1)),
            count=len(given.frame),
            way=Way(block_size, stitch, rest_limit),
            folder=folder,
            graphs=Graphs(spark, folder),
            bound="auto",
        )
        entries = solved.entries.toPandas()
        kept = ["h", "rows", "persons", "g_hi", "g_lo", *given.solver.codebook.layout.names()]
        pd.testing.assert_frame_equal(
            entries[kept].sort_values("h").reset_index(drop=True), given.frame[kept].sort_values("h"), check_like=True
        )
        persons = entries[entries["class_id"] >= 0].groupby("class_id")["persons"].sum()
        assert (persons >= given.solver.k).all()
        assert solved.cuts[0]["largest"] <= block_size
        return entries, solved

    return over_blocks


@pytest.mark.parametrize(("seed", "block_size"), [(1, 60), (13, 13), (3, 1)])
def test_blocks_give_the_classes_of_one_process(solve: Solve, seed: int, block_size: int) -> None:
    given = Signatures.random(seed, size=300, k=4)
    whole, losses, rest = given.greedy()
    assert not rest, "tables are chosen so that one process closes everything; the next test has a rest"
    entries, solved = solve(given, block_size=block_size)
    assert solved.blocks > 1
    found = classes_of(entries)
    assert set(found.values()) == whole
    assert given.loss(entries) == pytest.approx(given.loss(given.solver.solve(given.frame)))
    # Whatever is cheaper than every cut was closed in the first round, inside its block.
    below = min(float(loss) for loss in solved.cuts[0]["crossing"]) - 1e-6
    first = {members for key, members in found.items() if turn_of(key) == 0}
    assert {members for members in whole if losses[members] < below} <= first
    assert {turn_of(key) for key in found} <= {0, 1}


def test_cuts_by_a_sample_give_the_classes_of_one_process(solve: Solve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Signatures that the sample has missed fall into some block, and the crossing loss holds for them, too."""
    given = Signatures.random(1, size=300, k=4)
    whole, losses, _ = given.greedy()
    monkeypatch.setattr(cutting, "SAMPLE", len(given.frame) // 5)
    entries, solved = solve(given, block_size=60)
    assert solved.blocks > 1
    assert set(classes_of(entries).values()) == whole
    below = min(float(loss) for loss in solved.cuts[0]["crossing"]) - 1e-6
    first = {members for key, members in classes_of(entries).items() if turn_of(key) == 0}
    assert {members for members in whole if losses[members] < below} <= first


def test_a_rest_costs_little(solve: Solve) -> None:
    """The last few signatures, among them many without a person of their own, find a class among fewer."""
    given = Signatures.random(2, size=300, k=4)
    whole, _, rest = given.greedy()
    assert rest
    entries, _ = solve(given, block_size=13)
    first = {members for key, members in classes_of(entries).items() if turn_of(key) == 0}
    assert first <= whole
    assert (entries["class_id"] >= 0).all()
    assert given.loss(entries) <= given.loss(given.solver.solve(given.frame)) * 1.06


def test_the_rest_may_need_several_rounds(solve: Solve) -> None:
    given = Signatures.random(5, size=300, k=6)
    entries, solved = solve(given, block_size=20, rest_limit=5)
    assert 1 < len(solved.cuts) <= len(FACTORS)
    assert solved.stitch == {"way": "local", "rounds": 0, "block_rounds": len(solved.cuts), "graphframes_calls": 0}
    assert (entries["class_id"] >= 0).all()
    assert {turn_of(key) for key in classes_of(entries)} >= {0, 1}
    assert given.loss(entries) <= given.loss(given.solver.solve(given.frame)) * 1.15
    whole, _, _ = given.greedy()
    assert {members for key, members in classes_of(entries).items() if turn_of(key) == 0} <= whole


@pytest.mark.parametrize(("seed", "with_sets"), [(1, False), (7, True)])
def test_refinement_reaches_across_blocks(
    solve: Solve, seed: int, with_sets: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = Signatures.random(seed, size=300, k=4, with_sets=with_sets).with_effort("normal")
    across, solved = solve(given, block_size=100)
    monkeypatch.setattr(refining, "ROUNDS", 0)
    inside, _ = solve(given, block_size=100)
    assert given.loss(across) < given.loss(inside)
    assert {turn_of(key) for key in classes_of(across)} == {len(solved.cuts) + 3}
    pd.testing.assert_series_equal(
        across.sort_values("h")["bound"], inside.sort_values("h")["bound"], check_index=False, rtol=1e-12
    )


def test_refinement_leaves_suppressed_signatures_alone(solve: Solve) -> None:
    """Two signatures of one person each, k = 3, no third: nothing can be closed, nothing may be refined."""
    one = np.ones(2, np.int64)
    given = Signatures.of(np.array([[3, 5, 1], [4, 2, 0]]), one, one, codebook(), k=3).with_effort("normal")
    entries, _ = solve(given, block_size=1)
    assert entries["open"].all() and (entries["class_id"] == -1).all()


@pytest.mark.parametrize(("seed", "with_sets"), [(5, False), (7, True)])
def test_regions_gathered_by_graphframes(solve: Solve, spark: "SparkSession", seed: int, with_sets: bool) -> None:
    if missing_graphframes(spark):
        pytest.skip("no GraphFrames jar here")
    given = Signatures.random(seed, size=300, k=6, with_sets=with_sets)
    local, _ = solve(given, block_size=20)
    entries, solved = solve(given, block_size=20, stitch="graphframes")
    assert solved.stitch["way"] == "graphframes"
    assert solved.stitch["graphframes_calls"] == solved.stitch["rounds"] > 0
    assert (entries["class_id"] >= 0).all()
    assert given.loss(entries) <= 1.1 * given.loss(local)
    # What the blocks closed is not touched by the way the rest is solved.
    assert {m for key, m in classes_of(local).items() if turn_of(key) == 0} >= {
        m for key, m in classes_of(entries).items() if turn_of(key) == 0
    }


def test_auto_calls_graphframes_only_beyond_one_process(
    solve: Solve, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    given = Signatures.random(5, size=300, k=6)
    _, solved = solve(given, block_size=20, stitch="auto")
    assert solved.stitch["graphframes_calls"] == 0
    monkeypatch.setattr(graph, "missing_graphframes", lambda spark: "this test took it away")
    with pytest.raises(PlatformError, match="this test took it away") as error:
        solve(given, block_size=20, stitch="auto", rest_limit=5)
    assert "io.graphframes:graphframes-spark4_2.13" in str(error.value.fix)


def skewed(share: float) -> Signatures:
    """One signature holds almost all rows."""
    book = codebook()
    rng = np.random.default_rng(9)
    codes = np.unique(np.stack([rng.integers(0, c.tree.leaves, 60) for c in book.columns], axis=1), axis=0)
    rows = np.ones(len(codes), np.int64)
    rows[7] = int(len(codes) * share / (1 - share))
    return Signatures.of(codes, rows, rows, book, k=3)


def one_value(size: int) -> Signatures:
    """All signatures share one age: it cannot be cut there."""
    book = codebook()
    rng = np.random.default_rng(4)
    codes = np.unique(np.stack([rng.integers(0, c.tree.leaves, size) for c in book.columns], axis=1), axis=0)
    codes[: int(0.9 * len(codes)), 0] = 7
    codes = np.unique(codes, axis=0)
    ones = np.ones(len(codes), np.int64)
    return Signatures.of(codes, ones, ones, book, k=3)


def one_signature() -> Signatures:
    ten = np.array([10])
    return Signatures.of(np.array([[3, 5, 1]]), ten, ten, codebook(), k=3)


def undersized() -> Signatures:
    """Every signature is one row; k is almost all of them: no block can close anything."""
    book = codebook()
    codes = np.unique(np.stack([np.arange(12) * 3, np.arange(12) * 2, np.arange(12) % 6], axis=1), axis=0)
    ones = np.ones(len(codes), np.int64)
    return Signatures.of(codes, ones, ones, book, k=11)


@pytest.mark.parametrize(
    ("given", "block_size"),
    [(skewed(0.9), 10), (one_value(80), 4), (one_signature(), 1), (undersized(), 2)],
    ids=["one signature with nine of ten rows", "one value in nine of ten", "one signature", "all undersized"],
)
@pytest.mark.parametrize("method", [Lattice("fast"), Mst("fast")], ids=["lattice", "mst"])
def test_any_skew(solve: Solve, given: Signatures, block_size: int, method: LocalMethod) -> None:
    given = Signatures(given.frame, replace(given.solver, method=method))
    entries, _ = solve(given, block_size=block_size)
    assert (entries["class_id"] >= 0).all()
    slack = 1.02 if method.name == "lattice" else 1.1
    assert given.loss(entries) <= given.loss(given.solver.solve(given.frame)) * slack + 1e-9


def test_regions_of_any_skew(solve: Solve, spark: "SparkSession") -> None:
    """K larger than every block, and nothing that any block could close."""
    if missing_graphframes(spark):
        pytest.skip("no GraphFrames jar here")
    entries, solved = solve(undersized(), block_size=2, stitch="graphframes")
    assert (entries["class_id"] >= 0).all()
    assert solved.stitch["graphframes_calls"] > 0


def leftover(*, max_level: int | None = None) -> Signatures:
    """Two far corners, each a block with a class of its own, and two signatures left over near the second.

    One of them holds one person, the other none (its person counts elsewhere).
    """
    book = codebook(max_level=max_level)
    far = AGES - 1
    codes = np.array([[0, 0, 0], [1, 0, 0], [far, 20, 5], [far - 1, 20, 5], [far - 11, 20, 5], [far - 12, 20, 5]])
    counts = np.array([2, 2, 2, 2, 1, 1])
    return Signatures.of(codes, counts, counts - (np.arange(6) == 5), book, k=4)


@pytest.mark.parametrize("limit", [2_000, 1])
def test_the_last_few_join_a_closed_class(solve: Solve, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    """Also where only some of them may look for one: the others join what these have found."""
    monkeypatch.setattr(reopen, "REOPEN_LIMIT", limit)
    given = leftover()
    entries, _ = solve(given, block_size=2)
    assert sorted(map(sorted, classes_of(entries).values())) == [[0, 1], [2, 3, 4, 5]]
    assert given.loss(entries) == pytest.approx(given.loss(given.solver.solve(given.frame)))


def test_the_last_few_stay_out_where_no_class_may_take_them(solve: Solve) -> None:
    """The hierarchy forbids the only label that they could share with others: nothing else changes."""
    entries, _ = solve(leftover(max_level=1), block_size=2)
    assert sorted(map(sorted, classes_of(entries).values())) == [[0, 1], [2, 3]]
    assert set(entries[entries["class_id"] < 0]["h"]) == {4, 5}


def test_all_rows_equal_through_a_whole_run(spark: "SparkSession", tmp_path: Path) -> None:
    table = spark.createDataFrame([(33, "nurse", n) for n in range(30)], "age int, job string, n int")
    world = World(spark, tmp_path)
    for local_limit in (None, 0):
        execution = {"local_limit": local_limit, "block_size": 1}
        release = world.run(world.job(["age", "job"], k=30, sink=None, execution=execution), table)
        assert {(row["age"], row["job"]) for row in release.table.collect()} == {("33", "nurse")}
        assert smallest_class(release.table, ["age", "job"]) == 30
        assert release.metrics["gcp"] == 0


@pytest.mark.parametrize("with_sets", [False, True])
def test_workers_close_what_one_process_closes(with_sets: bool) -> None:
    """The same without Spark, over many tables and block sizes: what a worker does with a bin of blocks."""
    closed_anything = 0
    for seed in range(25):
        given = Signatures.random(seed, size=150, k=3, with_sets=with_sets)
        solver = given.solver
        codes = solver.codes(given.frame)

        def count(cuts: Cuts, request: CellRequest, codes: np.ndarray = codes) -> Cells:
            return count_cells(codes, cuts.assign(codes), request, cuts.forest)

        cuts = cut_blocks(solver.forest, signatures=len(codes), block_size=1 + seed * 3, count=count)
        entries = solver.solve_bin(given.frame, cuts, factor=1.0, turn=0)
        assert sorted(entries["h"]) == sorted(given.frame["h"])
        assert (entries["open"] == (entries["class_id"] < 0)).all()
        whole, losses, _ = given.greedy()
        found = set(classes_of(entries).values())
        block_of = dict(zip(given.frame["h"], cuts.assign(codes), strict=True))
        cheap = {
            members for members in whole if losses[members] < cuts.blocks[block_of[next(iter(members))]].crossing - 1e-9
        }
        assert found == cheap
        closed_anything += len(found)
    assert closed_anything > 100
