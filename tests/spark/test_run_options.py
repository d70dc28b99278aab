"""What a configuration may ask of a run: levels, suppression, weights, formats, targets, order, snapshots, filters."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from run_world import KEPT, World, multiset, published_by_row, smallest_class

from kanon_spark.errors import SourceChangedError, SuppressionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

INTERVALS = {"interval": {"widths": [10, 20]}}


@pytest.fixture
def world(spark: "SparkSession", tmp_path: Path) -> World:
    return World(spark, tmp_path)


def ages(spark: "SparkSession", values: list[int | None], **more: str) -> "DataFrame":
    rows = [(value, f"n{index}") for index, value in enumerate(values)]
    return spark.createDataFrame(rows, "age int, note string").selectExpr(
        "age", "note", *[f"{expression} AS {name}" for name, expression in more.items()]
    )


# Ten people in their twenties, three loners elsewhere: with max_level 1 no decade but the twenties can hold k = 3.
LONERS = [21, 22, 23, 24, 25, 26, 27, 28, 29, 20, 41, 61, 81]


def test_max_level_drops_what_would_need_more(spark: "SparkSession", world: World) -> None:
    world.save(ages(spark, LONERS))
    qis = {"age": {"hierarchy": INTERVALS, "max_level": 1}}
    release = world.run(world.job(qis, privacy={"max_suppression": 0.25}))
    assert release.table.count() == 10
    assert {row["age"] for row in release.table.collect()} == {"[20, 29]"}
    assert release.manifest["rows"] == {"input": 13, "released": 10, "suppressed": 3, "published": 10}
    assert release.metrics["gcp"] > 3 / 13, "what is left out costs its whole loss"
    before = world.released()

    # The same over blocks: the loners find no class to join either.
    blocks = {"local_limit": 0, "block_size": 2}
    other = world.run(world.job(qis, name="blocks", sink=None, privacy={"max_suppression": 0.25}, execution=blocks))
    assert multiset(other.table) == multiset(release.table)

    starred = world.run(
        world.job(
            qis,
            name="star",
            sink={"path": "out/star"},
            privacy={"max_suppression": 0.25},
            output={"suppressed_rows": "star"},
        )
    )
    counts = Counter(row["age"] for row in starred.table.collect())
    assert counts == {"[20, 29]": 10, "*": 3}
    assert starred.manifest["rows"] == {"input": 13, "released": 10, "suppressed": 3, "published": 13}

    # Fewer than k rows of * would stand out, so they are dropped after all.
    few = world.job(
        qis,
        name="few",
        sink={"path": "out/star"},
        privacy={"max_suppression": 0.25},
        output={"suppressed_rows": "star"},
    )
    assert world.run(few, ages(spark, LONERS[:-1])).table.count() == 10

    with pytest.raises(SuppressionError, match="3 of 13 rows") as refused:
        world.run(world.job(qis, privacy={"max_suppression": 0.2}))
    assert refused.value.exit_code == 4
    assert world.released() == before
    assert world.left_beside() == ["star"]


def test_the_share_of_suppressed_rows_is_exact(spark: "SparkSession", world: World) -> None:
    """0.29 of 100 rows are 29, though 0.29 * 100 is less in binary."""
    values = [20 + n % 10 for n in range(71)] + [1000 + 100 * n for n in range(29)]
    qis = {"age": {"hierarchy": INTERVALS, "max_level": 1}}
    job = world.job(qis, sink=None, privacy={"max_suppression": 0.29})
    assert world.run(job, ages(spark, values)).manifest["rows"]["suppressed"] == 29


def test_levels_and_weights(spark: "SparkSession", world: World) -> None:
    world.write("jobs.csv", "nurse;medical;*", "doctor;medical;*", "clerk;office;*", "judge;office;*")
    jobs = ["nurse", "doctor", "clerk", "judge"]
    rows = [(20 + 10 * (n % 2), jobs[n // 2 % 4], f"1{n % 3}00", n) for n in range(48)]
    table = spark.createDataFrame(rows, "age int, job string, zip string, n int")
    qis = {
        "age": {"hierarchy": INTERVALS, "min_level": 1},
        "job": {"hierarchy": "jobs.csv", "min_level": 1},
        "zip": {"hierarchy": {"prefix": {"keep": [2, 1]}}, "min_level": 1},
    }
    release = world.run(world.job(qis, k=2, sink=None), table)
    found = published_by_row(release.table, "n")
    # Everything would be 2-anonymous as it is, but nothing below the level asked for is published.
    assert {row["age"] for row in found.values()} == {"[20, 29]", "[30, 39]"}
    assert {row["job"] for row in found.values()} == {"medical", "office"}
    assert all(
        row["zip"].startswith(zip_[:2]) and zip_ != row["zip"]
        for row, (_, _, zip_, _) in zip((found[n] for n in range(48)), rows, strict=True)
    )

    # Two ages by two jobs, one row each: one QI must give. The weight says which.
    four = spark.createDataFrame([(a, b) for a in (20, 90) for b in ("x", "y")], "age int, job string")
    for heavy, light in (("age", "job"), ("job", "age")):
        weighted = {heavy: {"hierarchy": "flat", "weight": 5}, light: {"hierarchy": "flat"}}
        release = world.run(world.job(weighted, k=2, sink=None, columns={"other": "drop"}), four)
        values = {name: {row[name] for row in release.table.collect()} for name in ("age", "job")}
        assert values[light] == {"*"}
        assert "*" not in values[heavy]


AWKWARD = ["plain", "", None, "line\nbreak", 'quote " and, comma', " spaces ", "\\back\\slash", "ünï"]


@pytest.mark.parametrize("file_format", ["csv", "json", "orc"])
def test_formats_keep_every_value(spark: "SparkSession", world: World, file_format: str) -> None:
    rows = [(n % 3, AWKWARD[n % len(AWKWARD)], AWKWARD[n % 3], n / 3) for n in range(48)]
    source = spark.createDataFrame(rows, "age int, note string, job string, pay double")
    world.save(source)
    release = world.run(world.job({"age": None, "job": "flat"}, sink={"path": "out/release", "format": file_format}))
    assert multiset(release.table.select("note", "pay")) == multiset(source.select("note", "pay"))
    assert smallest_class(release.table, ["age", "job"]) >= 3
    assert {row["job"] for row in release.table.collect()} == {"plain", "", None}
    assert any(name.endswith(file_format) for name in world.released())
    assert release.verify().passed
    assert world.left_in_work() == KEPT


def test_a_catalog_table_is_replaced(spark: "SparkSession", world: World) -> None:
    spark.sql("CREATE DATABASE IF NOT EXISTS run_options")
    world.save(ages(spark, [20, 20, 21, 21, 22, 22], city="if(age < 22, 'here', 'there')"))
    sink = {"table": "run_options.people", "partition_by": ["city"]}
    job = world.job({"age": None}, k=2, sink=sink)
    try:
        for k in (2, 3):
            release = world.run(world.job({"age": None}, k=k, sink=sink) if k > 2 else job)
            assert smallest_class(spark.table("run_options.people"), ["age"]) >= k
            assert release.table.columns == ["age", "note", "city"]
            assert release.manifest["files"]["release"] == "run_options.people"
            names = [row["tableName"] for row in spark.sql("SHOW TABLES IN run_options").collect()]
            assert names == ["people"]
        assert spark.catalog.listColumns("run_options.people")[-1].isPartition
        assert world.left_in_work() == KEPT
    finally:
        spark.sql("DROP DATABASE run_options CASCADE")


def test_partitioned_files_and_the_source_order(spark: "SparkSession", world: World) -> None:
    table = ages(spark, [20 + n % 4 for n in range(40)], city="if(age < 22, 'here', 'there')").coalesce(1)
    world.save(table)
    sink = {"path": "out/release", "partition_by": ["city"], "order": "source"}
    release = world.run(world.job({"age": None}, sink=sink))
    assert release.table.columns == ["age", "note", "city"]
    assert {path.name for path in world.sink.iterdir() if path.is_dir()} == {"city=here", "city=there"}
    assert release.verify().passed

    in_order = world.run(world.job({"age": None}, sink={"path": "out/release", "order": "source"}))
    notes = [row["note"] for row in in_order.table.collect()]
    assert notes == [row["note"] for row in table.collect()]
    shuffled = world.run(world.job({"age": None}))
    assert [row["note"] for row in shuffled.table.collect()] != notes


def test_snapshot_and_filter(spark: "SparkSession", world: World) -> None:
    world.save(ages(spark, [20, 20, 21, 21, 90, 91, None]))
    source = {"path": "data/table", "where": "age < 50", "snapshot": "copy"}
    seen: list[list[str]] = []
    job = world.job({"age": None}, k=2, source=source)

    from kanon_spark.engine.runner import run

    release = run(job, spark=spark, listeners=[lambda event: seen.append(world.left_in_work())])
    assert sorted(row["age"] for row in release.table.collect()) == ["20", "20", "21", "21"]
    assert release.manifest["rows"]["input"] == 4
    assert release.manifest["source"]["snapshot"] == "copy"
    assert any("source" in names for names in seen), "the copy is made in the work directory"
    assert world.left_in_work() == KEPT, "and does not stay"


@pytest.mark.parametrize("changed", ["values", "rows"])
def test_a_source_that_changes_under_way(
    spark: "SparkSession", world: World, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    """Between aggregation and write another process replaces the source: nothing is published, exit code 3."""
    world.save(ages(spark, [20, 20, 21, 21, 22, 22]))
    job = world.job({"age": None}, k=2)
    world.run(job)
    before = world.released()

    from kanon_spark.engine import runner

    def late(rows: "DataFrame", *args: Any, **kwargs: Any) -> "DataFrame":
        world.save(ages(spark, [20, 20, 21, 21, 22, 20] if changed == "values" else [20, 20, 21, 21, 22, 22, 22]))
        spark.catalog.refreshByPath(str(world.folder / "data" / "table"))
        return recode(rows, *args, **kwargs)

    recode = runner.recode
    monkeypatch.setattr(runner, "recode", late)
    with pytest.raises(SourceChangedError) as refused:
        world.run(job)
    assert refused.value.exit_code == 3
    assert "snapshot: copy" in refused.value.fix
    assert world.released() == before
    assert world.left_beside() == []
    assert world.left_in_work() == KEPT
