"""The forms that `output` offers: ranges on a grid, bounds and means beside a label, sets as arrays."""

import json
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from run_world import WITH_REPORT, World, in_range, published_by_row, untrue_cells

from kanon_spark.cli.main import app
from kanon_spark.engine.verification import verify_with_config
from kanon_spark.errors import GuaranteeError, KanonError
from kanon_spark.hierarchy.bounds import bounds_of
from kanon_spark.recoding import publish
from kanon_spark.verify import cells, forms
from kanon_spark.verify.steps import on_grid
from kanon_spark.verify.table import verify_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kanon_spark.engine.release import Release

K = 3
ROWS = 60
SCHEMA = "n int, age int, dose decimal(12,3), since date, seen timestamp, job string, big bigint, note string"
JOBS = ["nurse", "judge", 'say "x"', "a, b", "", "[z]", None]
BLOCKS = {"local_limit": 0, "block_size": 8}
NUMERIC = ["age", "dose", "big"]


def make_row(n: int) -> tuple[Any, ...]:
    near = n // 4
    return (
        n,
        None if n % 17 == 0 else 18 + 3 * near + n % 4,
        None if near == 2 else Decimal(near) + Decimal(n % 4) / 1000,
        date(1960, 1, 5) + timedelta(days=near * 700 + n % 3 * 11),
        f"2024-01-{1 + near:02d} 10:{n % 4:02d}:00.5",
        JOBS[(near + n % 2) % len(JOBS)],
        2**60 + n,
        f"note {n}",
    )


@pytest.fixture(scope="module")
def source(spark: "SparkSession") -> "DataFrame":
    columns = SCHEMA.replace("seen timestamp", "seen string")
    rows = spark.createDataFrame([make_row(n) for n in range(ROWS)], columns)
    return rows.withColumn("seen", rows["seen"].cast("timestamp")).localCheckpoint()


@pytest.fixture
def world(spark: "SparkSession", tmp_path: Path, source: "DataFrame") -> World:
    world = World(spark, tmp_path)
    world.save(source)
    return world


def passed(release: "Release") -> set[str]:
    assert all(check["passed"] for check in release.manifest["checks"])
    return {check["name"] for check in release.manifest["checks"]}


QIS = ["age", "dose", "since", "seen", "job"]


@pytest.mark.parametrize("execution", [{}, BLOCKS], ids=["one process", "blocks"])
def test_ranges_on_a_grid(world: World, source: "DataFrame", execution: dict[str, Any]) -> None:
    qis = QIS[:4]
    release = world.run(world.job(qis, k=K, output={"ranges": "grid"}, execution=execution))
    assert "ranges" in passed(release)
    raw, found = published_by_row(source, "n"), published_by_row(release.table, "n")
    assert untrue_cells(raw, found, {**dict.fromkeys(qis, in_range), "age": in_range}) == []
    kinds = {"age": "integer", "dose": "real", "since": "date", "seen": "timestamp"}
    labels = {name: {row[name] for row in found.values()} for name in qis}
    ranges = {name: [label for label in labels[name] if label and label.startswith("[")] for name in qis}
    assert all(ranges.values())
    assert all(on_grid(label, kinds[name]) for name in qis for label in ranges[name])
    if execution:
        return
    # What is widened is charged.
    tight = world.run(world.job(qis, k=K, name="tight", sink=None))
    assert release.metrics["gcp"] > tight.metrics["gcp"]
    assert all(1 >= release.metrics["per_qi"][name]["ncp"] >= tight.metrics["per_qi"][name]["ncp"] > 0 for name in qis)


def test_the_loss_of_a_grid_is_its_real_width_and_at_most_one(spark: "SparkSession", tmp_path: Path) -> None:
    world = World(spark, tmp_path)
    rows = [("a", 61, 61), ("a", 68, 68), ("b", 80, 61), ("b", 81, 68), ("c", 121, 61), ("c", 121, 68)]
    table = spark.createDataFrame(rows, "part string, age int, pay int")
    qis = {"part": {"hierarchy": "flat", "weight": 9}, "age": {}, "pay": {}}
    release = world.run(world.job(qis, k=2, source=None, output={"ranges": "grid"}), table)
    assert {row["age"] for row in release.table.collect()} == {"[60, 70]", "[80, 81]", "121"}
    assert release.metrics["per_qi"]["age"]["ncp"] == pytest.approx((2 * 10 / 60 + 2 * 1 / 60 + 0) / 6)
    assert {row["pay"] for row in release.table.collect()} == {"[60, 70]"}, "wider than the domain"
    assert release.metrics["per_qi"]["pay"]["ncp"] == 1.0


@pytest.mark.parametrize(("execution", "ranges"), [({}, "tight"), (BLOCKS, "grid")], ids=["one process", "blocks"])
def test_bounds_say_what_the_label_says(
    world: World, source: "DataFrame", execution: dict[str, Any], ranges: str
) -> None:
    output = {"numeric": "bounds", "ranges": ranges}
    job = world.job(["age", "since", "dose", "big"], k=K, output=output, execution=execution)
    release = world.run(job)
    assert "numbers" in passed(release)
    wanted = ["n", "age", "age_lo", "age_hi", "dose", "dose_lo", "dose_hi", "since", "seen", "job"]
    assert release.table.columns == [*wanted, "big", "big_lo", "big_hi", "note"]
    assert dict(release.table.dtypes)["dose_lo"] == "double"
    for row in release.table.collect():
        for name in NUMERIC:
            label, low, high = row[name], row[f"{name}_lo"], row[f"{name}_hi"]
            if label is None or label == "*":
                assert (low, high) == (None, None)
                continue
            ends = label[1:-1].split(", ") if label.startswith("[") else [label, label]
            # Longs beyond 2^53 are no doubles: the next ones outward.
            assert low <= int(float(ends[0])) + 1 and Decimal(low) <= Decimal(float(ends[0]))
            assert (low, high) == pytest.approx(tuple(float(end) for end in ends), rel=1e-15)
            assert Decimal(repr(low)) <= Decimal(ends[0]) and Decimal(repr(high)) >= Decimal(ends[1])
    tuples = ["age", "age_lo", "age_hi", "dose", "dose_lo", "dose_hi", "since", "big", "big_lo", "big_hi"]
    assert release.manifest["columns"]["added"] == ["age_lo", "age_hi", "dose_lo", "dose_hi", "big_lo", "big_hi"]
    assert verify_table(release.table, qi=tuples, k=K).passed
    assert release.verify().passed
    assert verify_with_config(job, table=release.table, spark=world.spark).passed
    if execution:
        return
    # Bounds are a function of the label, so they cost nothing and change nothing.
    labels = world.run(world.job(["age", "since", "dose", "big"], k=K, name="labels", sink=None))
    assert labels.metrics["gcp"] == release.metrics["gcp"]
    assert labels.manifest["classes"] == release.manifest["classes"]


def test_bounds_with_hierarchies_are_those_of_the_label(spark: "SparkSession", tmp_path: Path) -> None:
    """Never of the values in the class: they would undo the generalization."""
    world = World(spark, tmp_path)
    world.write("ages.csv", *(f"{age};{'young' if age < 40 else '40-99'};*" for age in range(20, 100)))
    rows = [(age, age, age, age / 2, str(age), "x", age) for age in [21, 22, 23, 44, 47, 48, 95, 96, 97]]
    table = spark.createDataFrame(rows, "coded int, file int, flat int, `real` double, zip string, part string, n int")
    table = table.withColumn("zip", table["zip"].cast("int"))
    interval = {"interval": {"widths": [10, 30], "bottom": 10, "top": 90}}
    qis = {
        "coded": {"hierarchy": interval, "min_level": 1},
        "file": {"hierarchy": "ages.csv"},
        "flat": "flat",
        "real": {"hierarchy": {"interval": {"widths": [5, 15]}}},
        "zip": {"hierarchy": {"prefix": {"keep": [1]}}},
    }
    release = world.run(world.job(qis, k=3, source=None, output={"numeric": "bounds"}), table)
    assert "numbers" in passed(release)
    assert "zip_lo" not in release.table.columns, "numbers under a prefix are codes"
    found = published_by_row(release.table, "n")
    names = ["coded", "coded_lo", "coded_hi", "file", "file_lo", "file_hi", "flat", "flat_lo", "flat_hi"]
    assert [found[21][name] for name in names] == ["[20, 29]", 20, 29, "young", 20, 39, "*", None, None]
    assert [found[44][name] for name in names[:6]] == ["[40, 49]", 40, 49, "40-99", 40, 99]
    assert [found[95][name] for name in names[:6]] == [">= 90", 90, None, "40-99", 40, 99]
    assert [found[21][name] for name in ("real", "real_lo", "real_hi")] == ["[10, 15)", 10, 15]


@pytest.mark.parametrize("execution", [{}, BLOCKS], ids=["one process", "blocks"])
def test_means_are_those_of_the_rows_of_the_class(world: World, source: "DataFrame", execution: dict[str, Any]) -> None:
    qis = {"age": {"hierarchy": {"interval": {"widths": [10, 40]}}}, "dose": {}, "since": {}}
    job = world.job(qis, k=K, output={"numeric": "mean"}, execution=execution)
    release = world.run(job)
    assert "numbers" in passed(release)
    assert release.table.columns[:6] == ["n", "age", "age_mean", "dose", "dose_mean", "since"]
    raw = published_by_row(source, "n")
    classes: dict[tuple[Any, ...], list[int]] = {}
    for n, row in published_by_row(release.table, "n").items():
        classes.setdefault(tuple(row[name] for name in release.table.columns[1:6]), []).append(n)
    assert min(map(len, classes.values())) >= K
    for (age, age_mean, dose, dose_mean, _), members in classes.items():
        for name, label, mean in (("age", age, age_mean), ("dose", dose, dose_mean)):
            values = [raw[n][name] for n in members]
            if label is None or label == "*":
                assert mean is None
            else:
                assert mean == pytest.approx(float(sum(values)) / len(values))
    assert any(row["age_mean"] is not None for row in release.table.collect())
    assert release.verify().passed
    assert verify_with_config(job, table=release.table, spark=world.spark).passed


@pytest.mark.parametrize(
    ("file_format", "numeric", "execution"),
    [("parquet", "bounds", BLOCKS), ("orc", "mean", {}), ("json", "bounds", {})],
)
def test_sets_as_arrays_in_every_format(
    world: World, source: "DataFrame", file_format: str, numeric: str, execution: dict[str, Any]
) -> None:
    sink = {"path": "out/release", "format": file_format}
    qis = {"age": {"hierarchy": {"interval": {"widths": [10, 40]}}}, "job": {}}
    output = {"sets": "array", "numeric": numeric}
    release = world.run(world.job(qis, k=K, sink=sink, output=output, execution=execution))
    passed(release)
    types = dict(release.table.dtypes)
    assert types["job"] == "array<string>"
    assert types["age"] == "string"
    raw, found = published_by_row(source, "n"), published_by_row(release.table, "n")
    for n, row in found.items():
        if row["job"] != ["*"]:
            assert row["job"] == (None if raw[n]["job"] is None else sorted(row["job"]))
            assert raw[n]["job"] is None or raw[n]["job"] in row["job"]
    assert any(row["job"] is not None and len(row["job"]) > 1 for row in found.values())
    assert {row["job"][0] for row in found.values() if row["job"] is not None and len(row["job"]) == 1}
    assert release.verify().passed


def test_numbers_survive_in_csv(world: World) -> None:
    sink = {"path": "out/release", "format": "csv"}
    release = world.run(world.job(["age", "dose", "big"], k=K, sink=sink, output={"numeric": "mean"}))
    assert "numbers" in passed(release)
    assert release.verify().passed


def test_a_catalog_table_holds_them_too(spark: "SparkSession", world: World) -> None:
    spark.sql("CREATE DATABASE IF NOT EXISTS run_forms")
    output = {"sets": "array", "numeric": "mean"}
    try:
        release = world.run(world.job({"age": {}, "job": {}}, k=K, sink={"table": "run_forms.people"}, output=output))
        assert "numbers" in passed(release)
        types = dict(spark.table("run_forms.people").dtypes)
        assert (types["job"], types["age_mean"]) == ("array<string>", "double")
    finally:
        spark.sql("DROP DATABASE run_forms CASCADE")


def test_arrays_cannot_go_to_csv(world: World) -> None:
    job = world.job({"job": {}}, k=K, sink={"path": "out/release", "format": "csv"}, output={"sets": "array"})
    with pytest.raises(KanonError, match="csv cannot hold these columns"):
        world.run(job)
    assert not world.sink.exists()


def test_suppressed_rows_are_stars_without_numbers(spark: "SparkSession", tmp_path: Path) -> None:
    world = World(spark, tmp_path)
    ages = [21, 22, 23, 24, 25, 41, 61, 81]
    table = spark.createDataFrame(
        [(age, age, "a", n) for n, age in enumerate(ages)], "age int, pay int, job string, n int"
    )
    qis = {"age": {"hierarchy": {"interval": {"widths": [10]}}, "max_level": 1}, "pay": {}, "job": {}}
    for numeric, names in (("bounds", ["pay_lo", "pay_hi", "age_lo", "age_hi"]), ("mean", ["pay_mean", "age_mean"])):
        output = {"numeric": numeric, "sets": "array", "ranges": "grid", "suppressed_rows": "star"}
        job = world.job(qis, k=3, name=numeric, source=None, privacy={"max_suppression": 0.5}, output=output)
        release = world.run(job, table)
        passed(release)
        found = published_by_row(release.table, "n")
        gone = [row for row in found.values() if row["age"] == "*"]
        assert len(gone) == 3
        assert all(row["job"] == ["*"] and row["pay"] == "*" for row in gone)
        assert {row[name] for row in gone for name in names} == {None}
        assert found[0]["job"] == ["a"] and found[0][names[0]] is not None
        assert release.manifest["rows"] == {"input": 8, "released": 5, "suppressed": 3, "published": 8}
        assert release.manifest["classes"] == 1


def test_a_column_of_that_name_is_refused(world: World, source: "DataFrame") -> None:
    for numeric, clash in (("bounds", "Age_LO"), ("mean", "age_mean")):
        table = source.withColumnRenamed("note", clash)
        job = world.job(["age"], k=K, sink=None, output={"numeric": numeric})
        with pytest.raises(KanonError, match="two columns called 'age_") as refused:
            world.run(job, table)
        assert refused.value.exit_code == 2
    # Dropped, it is in nobody's way.
    dropped = world.job(["age"], k=K, sink=None, output={"numeric": "mean"}, columns={"other": "drop"})
    assert world.run(dropped, table).table.columns == ["age", "age_mean"]


def test_no_mean_of_values_that_min_level_hides(world: World) -> None:
    qis = {"age": {"hierarchy": {"interval": {"widths": [10, 40]}}, "min_level": 1}}
    with pytest.raises(KanonError, match="a mean would tell what min_level hides") as refused:
        world.run(world.job(qis, k=K, output={"numeric": "mean"}))
    assert refused.value.exit_code == 2


def test_reports_show_what_is_published(world: World) -> None:
    output = {"numeric": "bounds", "sets": "array"}
    release = world.run(
        world.job({"age": {}, "job": {}}, k=K, output=output, columns={"other": "drop"}, report=WITH_REPORT)
    )
    after = release.manifest["samples"]["after"]
    assert list(after[0]) == ["age", "age_lo", "age_hi", "job"]
    arrays = [json.loads(row["job"]) for row in after if row["job"] is not None]
    assert arrays and all(isinstance(each, list) for each in arrays)
    html = (world.folder / "reports" / "report.html").read_text(encoding="utf-8")
    assert "age_lo" in html


def test_verify_by_manifest_groups_by_the_numbers(world: World) -> None:
    from typer.testing import CliRunner

    release = world.run(world.job(["age", "since"], k=K, output={"numeric": "mean"}))
    assert release.manifest["columns"]["added"] == ["age_mean"]
    command = ["verify", str(world.sink), "--manifest", str(world.manifest)]
    assert CliRunner().invoke(app, command).exit_code == 0
    # One person's mean, changed: labels alone would still hold k.
    from pyspark.sql import functions as F

    spoilt = release.table.withColumn("age_mean", F.when(F.col("n") == 5, F.lit(1.25)).otherwise(F.col("age_mean")))
    place = world.folder / "spoilt"
    spoilt.write.parquet(str(place))
    answer = CliRunner().invoke(app, ["verify", str(place), "--manifest", str(world.manifest), "--json"])
    assert answer.exit_code == 4
    checks = {check["name"]: check["passed"] for check in json.loads(answer.stdout.splitlines()[-1])["checks"]}
    assert checks == {"k": False, "manifest rows": True, "manifest content": False}


def test_verify_by_config_notices_what_was_tampered_with(world: World) -> None:
    from pyspark.sql import functions as F

    output = {"numeric": "bounds", "sets": "array"}
    job = world.job({"age": {}, "job": {}}, k=K, output=output)
    release = world.run(job)
    changes = {
        "age_hi": F.when(F.col("n") == 5, F.lit(1.25)).otherwise(F.col("age_hi")),
        "job": F.when(F.col("job").isNotNull(), F.array_append("job", F.lit(None).cast("string"))),
    }
    for name, change in changes.items():
        verdict = verify_with_config(job, table=release.table.withColumn(name, change), spark=world.spark)
        assert "multiset" in {check.name for check in verdict.checks if not check.passed}, name
    missing = verify_with_config(job, table=release.table.drop("age_lo"), spark=world.spark)
    assert {check.name for check in missing.checks if not check.passed} == {"columns"}


def tight(low: str, high: str, kind: str) -> tuple[str, str, float]:
    return low, high, 1.0


def one_too_narrow(label: str) -> tuple[float, float]:
    low, high = bounds_of(label)
    return (low + 1, high) if high > low else (low, high)


@pytest.mark.parametrize(
    ("wrong", "replacement", "output", "check"),
    [
        ("widen", tight, {"ranges": "grid"}, "ranges: labels whose ends are not on the grid: age"),
        ("bounds_of", one_too_narrow, {"numeric": "bounds"}, "numbers: bounds that are not what the label"),
        ("_means", None, {"numeric": "mean"}, "numbers: classes with another mean: age"),
    ],
)
def test_a_mistake_of_the_recoding_is_noticed(
    world: World, monkeypatch: pytest.MonkeyPatch, wrong: str, replacement: Any, output: dict[str, str], check: str
) -> None:
    """Table and recoding agree with each other, but not with what was asked for: nothing is published."""
    means = publish._means
    monkeypatch.setattr(publish, wrong, replacement or (lambda *given: means(*given) + 1))
    with pytest.raises(GuaranteeError, match=check):
        # `lattice`, whose search tree makes ranges wide enough to have a grid of their own.
        world.run(world.job(["age"], k=K, output=output, method={"name": "lattice"}))
    assert not world.sink.exists()


def test_forms_are_judged_in_the_workers_where_they_are_many(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    output = {"numeric": "bounds", "sets": "array", "ranges": "grid"}
    monkeypatch.setattr(forms, "DRIVER_LABELS", 0)
    monkeypatch.setattr(cells, "TEXT_PAIRS", 0)
    assert {"ranges", "numbers"} <= passed(world.run(world.job({"age": {}, "job": {}}, k=K, output=output)))
    monkeypatch.setattr(publish, "widen", tight)
    with pytest.raises(GuaranteeError, match="ends are not on the grid: age"):
        world.run(world.job({"age": {}, "job": {}}, k=K, output=output))


def test_forms_go_with_persons_pseudonyms_and_unknown_values(
    world: World, source: "DataFrame", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KANON_KEY", "0123456789abcdef0123456789abcdef")
    world.write("ages.csv", *(f"{age};{'young' if age < 40 else 'old'};*" for age in range(18, 60)))  # up to 62 occur
    qis = {"age": {"hierarchy": {"csv": {"path": "ages.csv", "unknown": "root"}}}, "dose": {}, "job": {}}
    job = world.job(
        qis,
        k=K,
        columns={"identifiers": {"note": {"pseudonym": {"key": "${KANON_KEY}"}}}},
        privacy={"unit": "n"},
        output={"numeric": "mean", "sets": "array", "ranges": "grid"},
        method={"effort": "fast"},
    )
    release = world.run(job)
    assert {"ranges", "numbers", "pseudonyms"} <= passed(release)
    means = {(row["age"], row["age_mean"] is None) for row in release.table.collect()}
    assert means <= {(None, True), ("*", True), ("young", False), ("old", False)} | {
        (str(age), False) for age in range(18, 60)
    }
    assert {("*", True), ("young", False)} <= means
    assert verify_with_config(job, table=release.table, spark=world.spark).passed
