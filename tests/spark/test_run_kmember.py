"""Whole runs of `kmember`: ranges, sets, nulls and hierarchies, in one process and over blocks."""

from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from run_world import World, in_interval, in_range, in_set, published_by_row, smallest_class, untrue_cells

from kanon_spark.errors import RequestError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QIS = ["age", "job", "born", "town"]
TRUTHS = {"age": in_range, "job": in_set, "born": in_range, "town": in_set}
SCHEMA = "id int, age int, job string, born date, town string, income string"


def people(spark: "SparkSession", count: int = 400) -> "DataFrame":
    """Numbers, dates and words, some of them null."""
    rng = np.random.default_rng(7)
    rows = []
    for n in range(count):
        age = int(rng.integers(18, 70))
        born = date(2020, 1, 1) - timedelta(days=365 * age)
        rows.append(
            (
                n,
                None if rng.random() < 0.03 else age,
                f"job{int(rng.geometric(0.4))}",
                None if rng.random() < 0.03 else born,
                f"town{int(rng.integers(12))}",
                "high" if age > 40 and rng.random() < 0.8 else "low",
            )
        )
    return spark.createDataFrame(rows, SCHEMA)


def raw(table: "DataFrame") -> dict[Any, dict[str, Any]]:
    return published_by_row(table, "id")


@pytest.mark.parametrize("blocks", [False, True], ids=["one process", "blocks"])
@pytest.mark.parametrize("order", ["cheapest", "paper"])
def test_ranges_sets_and_nulls(spark: "SparkSession", tmp_path: Path, blocks: bool, order: str) -> None:
    world = World(spark, tmp_path)
    table = people(spark)
    execution = {"block_size": 60, "local_limit": 0} if blocks else {}
    job = world.job(QIS, k=5, sink=None, execution=execution, method={"name": "kmember", "order": order})
    release = world.run(job, table)
    assert smallest_class(release.table, QIS) >= 5
    assert release.manifest["method"] == "kmember"
    assert (release.manifest["blocks"] > 1) == blocks
    assert (release.manifest["rows"]["released"], release.manifest["rows"]["suppressed"]) == (400, 0)
    assert not untrue_cells(raw(table), raw(release.table), TRUTHS)
    if blocks:
        assert release.metrics["gcp_bound"] in {None, 0.0}
    else:
        assert release.metrics["bound_kind"] == "neighbours"
        assert 0 < release.metrics["gcp_bound"] <= release.metrics["gcp"]
    assert 0 < release.metrics["gcp"] < 0.5


def test_cheapest_first_beats_the_paper_and_blocks_cost_little(spark: "SparkSession", tmp_path: Path) -> None:
    world = World(spark, tmp_path)
    table = people(spark)

    def gcp(**sections: Any) -> float:
        return float(world.run(world.job(QIS, k=5, sink=None, **sections), table).metrics["gcp"])

    auto = gcp()
    assert auto < gcp(method={"name": "kmember", "order": "paper"})
    assert auto <= gcp(method={"name": "kmember", "effort": "fast"})
    assert gcp(execution={"block_size": 120, "local_limit": 0}) <= auto * 1.1


def test_hierarchies_and_sets_mixed_with_a_bound(spark: "SparkSession", tmp_path: Path) -> None:
    world = World(spark, tmp_path)
    table = people(spark)
    qis = {"age": {"hierarchy": {"interval": {"widths": [5, 10, 20]}}}, "job": {}, "town": {"weight": 2}}
    for execution in ({}, {"block_size": 50, "local_limit": 0}):
        job = world.job(qis, k=4, sink=None, execution=execution, method="kmember")
        release = world.run(job, table)
        assert smallest_class(release.table, list(qis)) >= 4
        truths = {"age": in_interval, "job": in_set, "town": in_set}
        assert not untrue_cells(raw(table), raw(release.table), truths)
        assert 0 <= release.metrics["gcp_bound"] <= release.metrics["gcp"]


def test_persons_count_and_rows_weigh(spark: "SparkSession", tmp_path: Path) -> None:
    """Each person has four rows; a class needs k persons."""
    world = World(spark, tmp_path)
    table = people(spark).selectExpr("*", "cast(id / 4 as int) as person")
    columns = {"identifiers": ["person"]}
    for execution in ({}, {"block_size": 60, "local_limit": 0}):
        job = world.job(QIS, k=5, sink=None, columns=columns, privacy={"unit": "person"}, execution=execution)
        release = world.run(job, table)
        assert release.manifest["privacy"]["k"]["achieved"] >= 5
        assert release.manifest["rows"]["released"] == 400


@pytest.mark.parametrize(
    ("rows", "k", "block_size"),
    [
        ([(n, 33, "a", date(2000, 1, 1), "x", "low") for n in range(12)], 12, 1),
        ([(n, 20 + n, "a", date(2000, 1, 1), "x", "low") for n in range(12)], 11, 2),
        ([(n, 20 + n, f"j{n}", date(2000, 1, 1) + timedelta(n), f"t{n}", "low") for n in range(30)], 7, 4),
        ([(n, None, None, None, None, "low") for n in range(5)], 5, 1),
    ],
    ids=["one signature", "one value but in one QI", "k larger than every block", "only nulls"],
)
def test_edges(spark: "SparkSession", tmp_path: Path, rows: list[Any], k: int, block_size: int) -> None:
    world = World(spark, tmp_path)
    table = spark.createDataFrame(rows, SCHEMA)
    for execution in ({}, {"block_size": block_size, "local_limit": 0}):
        release = world.run(world.job(QIS, k=k, sink=None, execution=execution), table)
        assert smallest_class(release.table, QIS) >= k
        assert release.table.count() == len(rows)
        assert not untrue_cells(raw(table), raw(release.table), TRUTHS)


def majority_share(table: "DataFrame") -> float:
    """Share of the rows whose label is that of most rows of their class."""
    groups: dict[Any, list[str]] = {}
    for row in table.collect():
        groups.setdefault(tuple(row[name] for name in QIS), []).append(row["income"])
    return sum(max(labels.count(value) for value in set(labels)) for labels in groups.values()) / table.count()


@pytest.mark.parametrize("blocks", [False, True], ids=["one process", "blocks"])
def test_a_class_label_is_guarded(spark: "SparkSession", tmp_path: Path, blocks: bool) -> None:
    world = World(spark, tmp_path)
    table = people(spark)
    execution = {"block_size": 120, "local_limit": 0} if blocks else {}

    def share(**method: Any) -> float:
        release = world.run(
            world.job(QIS, k=5, sink=None, execution=execution, method={"name": "kmember", **method}), table
        )
        assert smallest_class(release.table, QIS) >= 5
        return majority_share(release.table)

    assert share(label="income", penalty=2) > share() + 0.05


def test_a_label_of_many_values_is_refused(spark: "SparkSession", tmp_path: Path) -> None:
    world = World(spark, tmp_path)
    with pytest.raises(RequestError, match="more than 64 different values"):
        world.run(world.job(QIS, sink=None, method={"name": "kmember", "label": "id"}), people(spark))


def test_infinite_values_have_no_bound_by_distances(spark: "SparkSession", tmp_path: Path) -> None:
    """Published, `[0, Infinity]` costs 1, however far away the kernels place it."""
    table = spark.createDataFrame([(0.0, "a"), (1.0, "a"), (float("inf"), "a")], "x double, y string")
    world = World(spark, tmp_path)
    release = world.run(world.job(["x", "y"], k=3, sink=None, method={"name": "kmember"}), table)
    assert release.metrics["gcp"] == pytest.approx(0.5)
    assert (release.metrics["gcp_bound"], release.metrics["bound_kind"]) == (None, "none")
