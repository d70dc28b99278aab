"""Full-domain methods on Spark: the counts, choices and classes of one process; and whole runs."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from random_seeds import seeds
from run_world import World, in_interval, in_range, in_set, published_by_row, smallest_class, untrue_cells
from solve_world import Signatures, classes_of, codebook

from kanon_spark.engine import full_domain, level_counts
from kanon_spark.engine.full_domain import solve_full_domain
from kanon_spark.engine.level_counts import Shelf, SparkCounts
from kanon_spark.engine.solving import Solved
from kanon_spark.engine.stages import RunContext
from kanon_spark.errors import RequestError, SuppressionError
from kanon_spark.kernels.ladders import Ladders
from kanon_spark.kernels.level_counts import ArrayCounts, LevelVector, Scope
from kanon_spark.methods.base import FullDomainMethod
from kanon_spark.methods.datafly import Datafly
from kanon_spark.methods.incognito import Incognito
from kanon_spark.methods.prgain import PrGain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Solve = Callable[..., tuple[pd.DataFrame, Solved]]


@pytest.fixture
def folder(tmp_path: Path) -> Callable[[str], str]:
    return lambda name: str(tmp_path / name)


def both_counts(
    spark: "SparkSession", given: Signatures, folder: Callable[[str], str]
) -> tuple[ArrayCounts, SparkCounts]:
    """The same table counted here and there."""
    solver = given.solver
    problem = solver.problem(given.frame)
    columns, rows = solver.codebook.columns, int(problem.rows.sum())
    ladders = Ladders.of([column.tree for column in columns], solver.forest.present, solver.codebook.weights, rows=rows)
    here = ArrayCounts.of(ladders, problem)
    names = solver.codebook.layout.names()
    table = spark.createDataFrame(given.frame.sample(frac=1.0, random_state=2)).repartition(2)
    scope = Scope.whole(ladders, k=solver.k, rows=rows)
    return here, SparkCounts(scope, table, tuple(names), solver.codes, here.persons, Shelf(folder))


@pytest.mark.parametrize("seed", seeds(20, always=5))
def test_counts_agree(
    spark: "SparkSession", folder: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(level_counts, "HELD_GROUPS", 0 if seed % 4 else 10)
    monkeypatch.setattr(level_counts, "VECTORS", 64 if seed % 3 else 2)
    monkeypatch.setattr(level_counts, "ROLLS", 16 if seed % 5 else 1)
    rng = np.random.default_rng(seed)
    given = Signatures.random(seed, size=60, k=int(rng.integers(2, 6)), with_sets=bool(seed % 2))
    here, there = both_counts(spark, given, folder)
    heights = here.scope.heights

    def vectors(number: int, floor: LevelVector) -> list[LevelVector]:
        tops = [heights[j] for j in range(len(floor))]
        return [
            tuple(int(rng.integers(low, top + 1)) for low, top in zip(floor, tops, strict=True)) for _ in range(number)
        ]

    asked = vectors(5, (0,) * len(heights))
    assert there.tally(asked) == here.tally(asked)
    if seed % 5 == 0:
        wanted = [((1,), (1,)), ((0, 1), asked[0][:2])]
        for mine, theirs, (qis, floor) in zip(here.roll_up(wanted), there.roll_up(wanted), wanted, strict=True):
            assert theirs.persons == mine.persons
            above = [floor, tuple(heights[j] for j in qis)]
            assert theirs.tally(above) == mine.tally(above)
    elif seed % 5 == 1:
        mine, theirs = here.without(asked[0]), there.without(asked[0])
        assert theirs.persons == mine.persons
        above = vectors(3, asked[0])
        assert theirs.tally(above) == mine.tally(above)


def test_incognito_chooses_alike(
    spark: "SparkSession", folder: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Subsets of one QI are fetched, that of both is counted on Spark, layer by layer."""
    monkeypatch.setattr(level_counts, "HELD_GROUPS", 40)
    here, there = both_counts(spark, Signatures.random(4, size=120, k=4, with_sets=False), folder)
    assert Incognito(0.1).choose(there) == Incognito(0.1).choose(here)


@pytest.fixture
def solve(spark: "SparkSession", tmp_path: Path) -> Solve:
    """On Spark, after checks that hold for every table."""
    ctx = RunContext(spark)

    def on_spark(given: Signatures, method: FullDomainMethod, *, bound: str = "none") -> tuple[pd.DataFrame, Solved]:
        solved = solve_full_domain(
            ctx,
            replace(given.solver, method=method),
            method,
            spark.createDataFrame(given.frame.sample(frac=1.0, random_state=1)),
            count=len(given.frame),
            folder=lambda name: str(tmp_path / name),
            bound=bound,
        )
        entries = solved.entries.toPandas()
        assert sorted(entries["h"]) == sorted(given.frame["h"])
        assert (entries["open"] == (entries["class_id"] < 0)).all()
        return entries, solved

    return on_spark


def assert_alike(given: Signatures, method: FullDomainMethod, entries: pd.DataFrame, solved: Solved) -> None:
    """The classes, what they publish and the trace of one process."""
    here, trace = replace(given.solver, method=method).solve_whole(given.frame)
    assert solved.trace == trace
    assert set(classes_of(entries).values()) == set(classes_of(here).values())
    told = [name for name in here.columns if name not in {"class_id", "bound"}]
    pd.testing.assert_frame_equal(
        entries[told].sort_values("h").reset_index(drop=True), here[told].sort_values("h").reset_index(drop=True)
    )


METHODS: list[FullDomainMethod] = [PrGain("join"), Datafly(0.2), PrGain("suppress", 1), Incognito(0.2)]


@pytest.mark.parametrize("seed", seeds(20, always=5))
def test_classes_are_those_of_one_process(solve: Solve, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Random tables; bins and passes of few signatures; some are also counted on Spark to the end."""
    monkeypatch.setattr(full_domain, "BLOCK_SIZE", 40)
    monkeypatch.setattr(full_domain, "JOIN_LIMIT", 2)
    method = METHODS[seed % len(METHODS)]
    if seed in {0, 1}:
        monkeypatch.setattr(level_counts, "HELD_GROUPS", 0)
    given = Signatures.random(seed, size=150, k=3 + seed % 4, with_sets=bool(seed % 3))
    entries, solved = solve(given, method)
    assert_alike(given, method, entries, solved)


def capped(seed: int, *, size: int, k: int) -> Signatures:
    """Ages above their second level may not be published: much is left at the top, and only some of it may join."""
    rng = np.random.default_rng(seed)
    book = codebook(with_sets=False, max_level=2)
    codes = np.unique(np.stack([rng.integers(0, column.tree.leaves, size) for column in book.columns], axis=1), axis=0)
    # Zips of the second half, and the youngest, are rare.
    codes = codes[(codes[:, 1] < 12) | (codes[:, 0] % 9 == 0)]
    codes = codes[(codes[:, 0] >= 10) | (codes[:, 0] == 3)]
    rows = np.ones(len(codes), np.int64)
    return Signatures.of(codes, rows, rows, book, k=k)


def test_what_is_left_under_a_max_level_joins_where_it_may(solve: Solve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full_domain, "JOIN_LIMIT", 3)
    given = capped(3, size=200, k=12)
    left = []
    for method in (PrGain("join"), PrGain("suppress")):
        entries, solved = solve(given, method)
        assert_alike(given, method, entries, solved)
        persons = entries[entries["class_id"] >= 0].groupby("class_id")["persons"].sum()
        assert len(persons) and (persons >= 12).all()
        left.append(int(entries["open"].sum()))
    # The youngest are too few, and no class may take them; others join.
    assert 0 < left[0] < left[1]


def test_a_class_beyond_a_bin_is_split_where_nodes_are_all_it_publishes(
    solve: Solve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(full_domain, "BLOCK_SIZE", 10)
    given = Signatures.random(5, size=60, k=40, with_sets=False)
    entries, solved = solve(given, Datafly(0.0), bound="auto")
    assert solved.bound_kind == "simple per block"
    assert (entries["bound"] >= 0).all() and entries["bound"].any()
    outs = given.solver.codebook.node_layout.names("out")
    here = given.solver.in_order(replace(given.solver, method=Datafly(0.0)).solve(given.frame))
    there = given.solver.in_order(entries)
    assert (there[outs].to_numpy() == here[outs].to_numpy()).all()
    assert there["class_id"].nunique() > here["class_id"].nunique()


QIS = {"age": {"hierarchy": {"interval": {"widths": [5, 10, 20]}}}, "size": {}, "job": {"weight": 2}}
TRUTHS = {"age": in_interval, "size": in_range, "job": in_set}


def people(spark: "SparkSession", count: int = 240) -> "DataFrame":
    """A hierarchy, a range and a set, some values null; four rows per person."""
    rng = np.random.default_rng(11)
    rows = [
        (
            n,
            n // 4,
            None if rng.random() < 0.03 else int(rng.integers(18, 70)),
            None if rng.random() < 0.03 else float(rng.integers(0, 12)),
            None if rng.random() < 0.03 else f"job{int(rng.geometric(0.4))}",
        )
        for n in range(count)
    ]
    return spark.createDataFrame(rows, "id int, person int, age int, size double, job string")


SHARED: dict[str, Any] = {"k": 5, "sink": None}


@pytest.mark.parametrize("method", ["prgain", "datafly", "incognito"])
def test_whole_runs_in_one_process_and_on_spark(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """The same release both ways, true, large enough, by rows for `prgain` and by persons for the others."""
    if method == "datafly":  # the others are counted on Spark in tests of their own, on fewer vectors
        monkeypatch.setattr(level_counts, "HELD_GROUPS", 20)
    world = World(spark, tmp_path)
    table = people(spark)
    by_person = method != "prgain"
    columns = {"identifiers": ["person"]}
    privacy = {"max_suppression": 0.2, **({"unit": "person"} if by_person else {})}
    found = []
    for execution in ({}, {"local_limit": 0}):
        job = world.job(QIS, columns=columns, privacy=privacy, execution=execution, method=method, **SHARED)
        release = world.run(job, table)
        manifest = release.manifest
        assert manifest["method"] == method
        assert smallest_class(release.table, list(QIS)) >= 5
        assert manifest["privacy"]["k"]["achieved"] >= 5
        assert (manifest["rows"]["suppressed"] == 0) == (method == "prgain")
        assert not untrue_cells(published_by_row(table, "id"), published_by_row(release.table, "id"), TRUTHS)
        assert 0 <= release.metrics["gcp_bound"] <= release.metrics["gcp"] <= 1
        found.append((published_by_row(release.table, "id"), manifest["trace"]))
    assert found[0] == found[1]
    assert found[0][1]


def test_what_cannot_be_served_is_refused(spark: "SparkSession", tmp_path: Path) -> None:
    world = World(spark, tmp_path)
    table = people(spark, 60)
    age = {"hierarchy": {"interval": {"widths": [5, 10]}}, "max_level": 1}
    job = world.job({"age": age, "job": {}}, k=20, sink=None, columns={"other": "drop"}, method="datafly")
    with pytest.raises(SuppressionError):
        world.run(job, table)
    wide = spark.createDataFrame([tuple(f"v{n}" for _ in range(16)) for n in range(9)], [f"q{n}" for n in range(16)])
    with pytest.raises(RequestError, match="level vectors"):
        world.run(world.job([f"q{n}" for n in range(16)], k=3, sink=None, method="incognito"), wide)
