"""Runs on every type a quasi-identifier may have, under every awkward name, with and without hierarchies."""

import random
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from run_world import (
    World,
    has_prefix,
    in_interval,
    in_period,
    in_range,
    in_set,
    multiset,
    published_by_row,
    smallest_class,
    under,
    untrue_cells,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kanon_spark.engine.release import Release

K = 4
ROWS = 150
SCHEMA = (
    "row int, `a.b` string, `zip-code` string, `with space` double, `größe` int, `tick``et` decimal(10,2), "
    "`日付` date, seen timestamp, flag boolean, tiny tinyint, small smallint, big bigint, `real` float, "
    "none string, extra map<string,int>, `kept.too` array<double>"
)
NAMES = [
    "a.b", "zip-code", "with space", "größe", "tick`et", "日付", "seen", "flag", "tiny", "small", "big", "real", "none",
]  # fmt: skip
JOBS = {
    "nurse": ("medical", "*"),
    "doctor": ("medical", "*"),
    "clerk": ("office", "*"),
    "judge": ("office", "*"),
}


def make_row(row: int, draw: random.Random) -> tuple[Any, ...]:
    def maybe(value: Any) -> Any:
        return None if draw.random() < 0.1 else value

    # Few values each, or so many QIs would leave nothing but stars.
    return (
        row,
        maybe(draw.choice(list(JOBS))),
        maybe(f"{draw.choice(['10', '20'])}{draw.randrange(3)}{draw.randrange(2)}"),
        maybe(draw.choice([0.0, -0.0, float("nan"), 1.5, -2.25])),
        maybe(draw.randrange(150, 200)),
        maybe(Decimal(draw.randrange(-300, 300)) / 100),
        maybe(date(1969, 12, 30) + timedelta(days=draw.randrange(400))),
        maybe(datetime(2024, 2, 28, 23, 59, 59, 999999) + timedelta(seconds=draw.randrange(3) * 86_400)),
        maybe(draw.random() < 0.5),
        maybe(draw.choice([-128, 127])),
        maybe(draw.choice([-32768, 5])),
        maybe(draw.choice([-(2**62), 2**53 + 1, 7])),
        maybe(draw.choice([0.5, -0.0, float("nan")])),
        None,
        {"x": row, "y": 1} if row % 3 else None,
        [1.0, float(row % 5)],
    )


@pytest.fixture(scope="module")
def source(spark: "SparkSession") -> "DataFrame":
    draw = random.Random(1)
    table = spark.createDataFrame([make_row(row, draw) for row in range(ROWS)], SCHEMA)
    return table.localCheckpoint()


@pytest.fixture(scope="module")
def world(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory, source: "DataFrame") -> World:
    world = World(spark, tmp_path_factory.mktemp("types"))
    world.save(source)
    return world


@pytest.fixture(scope="module")
def plain(world: World) -> "Iterator[Release]":
    """Without any hierarchy. With thirteen QIs and 150 rows most cells become wide, which is what is wanted here."""
    yield world.run(world.job(NAMES, k=K, name="plain", sink={"path": "out/plain"}, method={"effort": "fast"}))


@pytest.fixture(scope="module")
def with_hierarchies(world: World) -> "Iterator[Release]":
    jobs = world.write("jobs.csv", *(";".join((job, *path)) for job, path in JOBS.items()))
    numbers = world.write("tiny.csv", "-128;low;*", "127;high;*")
    qis = {
        "a.b": {"hierarchy": jobs},
        "zip-code": {"hierarchy": {"prefix": {"keep": [3, 2]}}},
        "with space": {"hierarchy": {"interval": {"widths": [1, 2], "origin": -4}}},
        "größe": {"hierarchy": {"interval": {"widths": [5, 10, 20]}}, "weight": 2},
        "tick`et": {"hierarchy": {"interval": {"widths": [0.5, 1], "bottom": -2, "top": 2}}},
        "日付": {"hierarchy": {"date": {"levels": ["month", "quarter", "year", "decade"]}}},
        "seen": {"hierarchy": {"date": {"levels": ["day", "month"]}}},
        "flag": "flat",
        "tiny": {"hierarchy": numbers},
    }
    columns = {"identifiers": ["small", "big", "real", "none"]}
    yield world.run(world.job(qis, k=K, name="trees", sink={"path": "out/trees"}, columns=columns))


KEPT_COLUMNS = ["row", "extra", "kept.too"]


def check_frame(release: "Release", source: "DataFrame", qis: list[str]) -> None:
    """What holds for every release: columns, types, order, kept values, k."""
    table = release.table
    wanted = [name for name in source.columns if name in {*qis, *KEPT_COLUMNS}]
    assert table.columns == wanted
    types = {field.name: field.dataType.simpleString() for field in table.schema.fields}
    before = {field.name: field.dataType.simpleString() for field in source.schema.fields}
    assert types == {name: "string" if name in qis else before[name] for name in wanted}
    kept = [f"`{name}`" for name in ("row", "kept.too")]
    assert multiset(_plain(table.select(*kept, "extra"))) == multiset(_plain(source.select(*kept, "extra")))
    assert smallest_class(table, qis) >= K
    manifest = release.manifest
    assert manifest["privacy"]["k"]["achieved"] == smallest_class(table, qis)
    assert manifest["rows"] == {"input": ROWS, "released": ROWS, "suppressed": 0, "published": ROWS}
    assert all(check["passed"] for check in manifest["checks"])
    assert release.verify().passed


def _plain(table: "DataFrame") -> "DataFrame":
    """Nested values as text, so that rows can be counted."""
    return table.selectExpr("row", "to_json(struct(`kept.too`))", "to_json(struct(extra))")


def test_without_hierarchies(plain: "Release", source: "DataFrame") -> None:
    check_frame(plain, source, NAMES)
    sets = dict.fromkeys(["a.b", "zip-code", "flag", "none"], in_set)
    truths = {**dict.fromkeys(NAMES, in_range), **sets}
    raw, released = published_by_row(source, "row"), published_by_row(plain.table, "row")
    assert untrue_cells(raw, released, truths) == []
    # The column that holds nothing publishes nothing.
    assert {row["none"] for row in released.values()} == {None}


def test_with_hierarchies(with_hierarchies: "Release", source: "DataFrame") -> None:
    truths = {
        "a.b": under(JOBS),
        "zip-code": has_prefix,
        "with space": in_interval,
        "größe": in_interval,
        "tick`et": lambda raw, label: label in {"< -2", ">= 2"} or in_interval(raw, label),
        "日付": in_period,
        "seen": in_period,
        "flag": in_set,
        "tiny": under({-128: ("low",), 127: ("high",)}),
    }
    check_frame(with_hierarchies, source, list(truths))
    raw, released = published_by_row(source, "row"), published_by_row(with_hierarchies.table, "row")
    assert untrue_cells(raw, released, truths) == []
    ends = {row["tick`et"]: raw[key]["tick`et"] for key, row in released.items() if row["tick`et"] is not None}
    assert all(value < -2 for label, value in ends.items() if label == "< -2")
    assert all(value >= 2 for label, value in ends.items() if label == ">= 2")
    # Something is generalized and something is not: the hierarchies are used, not only their roots.
    labels = {row[name] for row in released.values() for name in truths}
    assert {"medical", "office"} & labels and "*" in labels


def test_null_is_a_leaf_of_its_own_and_zero_has_no_sign(spark: "SparkSession", tmp_path: Any) -> None:
    """Nulls (NaN among them) alone publish null, mixed with values they publish `*`."""
    from pyspark.sql import Row

    rows = [Row(part="nulls", x=None, y=1), Row(part="nulls", x=float("nan"), y=1)]
    rows += [Row(part="zeros", x=-0.0, y=1), Row(part="zeros", x=0.0, y=1)]
    rows += [Row(part="mixed", x=None, y=1), Row(part="mixed", x=7.0, y=1)]
    rows += [Row(part="range", x=1.0, y=1), Row(part="range", x=2.5, y=1)]
    world = World(spark, tmp_path)
    job = world.job({"part": "flat", "x": {"weight": 0.1}}, k=2, source=None)
    release = world.run(job, spark.createDataFrame(rows, "part string, x double, y int"))
    found = {(row["part"], row["x"]) for row in release.table.collect()}
    assert found == {("nulls", None), ("zeros", "0.0"), ("mixed", "*"), ("range", "[1.0, 2.5]")}


def test_longs_beyond_doubles_keep_their_order(spark: "SparkSession", tmp_path: Any) -> None:
    """Above 2^53 neighbours are one double; ranges must still be true, on both sides of zero."""
    big = 2**53
    rows = [(sign * (big + step), 1) for sign in (1, -1) for step in range(4)]
    world = World(spark, tmp_path)
    release = world.run(world.job(["x"], k=4, source=None), spark.createDataFrame(rows, "x bigint, y int"))
    assert {row["x"] for row in release.table.collect()} == {f"[{big}, {big + 3}]", f"[{-big - 3}, {-big}]"}
