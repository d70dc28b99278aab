"""Content hashes see every difference and no order."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kanon_spark.io.content import content_hash, hash_sums


def hashes(spark: SparkSession, rows: list[tuple[object, ...]], schema: str) -> list[int]:
    table = spark.createDataFrame([(*row, n) for n, row in enumerate(rows)], f"{schema}, n int")
    names = [name for name in table.columns if name != "n"]
    found = table.select("n", content_hash(table, names).alias("g")).collect()
    return [row["g"] for row in sorted(found)]


@pytest.mark.parametrize(
    ("schema", "rows"),
    [
        ("a string, b string", [("x", None), (None, "x"), (None, None), ("", "x"), ("x", "")]),
        ("a array<int>", [([1, None],), ([None, 1],), ([1],), ([],), (None,)]),
        ("a struct<x: string, y: string>", [(("p", None),), ((None, "p"),), ((None, None),), (None,)]),
        ("a map<string, int>", [({"p": 1},), ({"p": None},), ({},), (None,), ({"q": 1},)]),
        (
            "a array<map<string, array<int>>>",
            [([{"p": [1, None]}],), ([{"p": [None, 1]}],), ([{"p": []}],), ([{}],), ([None],)],
        ),
        ("a binary", [(b"",), (b"\0",), (None,)]),
        ("a double", [(1.0,), (float("nan"),), (None,), (0.0,)]),
    ],
)
def test_different_rows_have_different_hashes(spark: SparkSession, schema: str, rows: list[tuple[object, ...]]) -> None:
    found = hashes(spark, rows, schema)
    assert len(set(found)) == len(rows)


def test_maps_have_no_order(spark: SparkSession) -> None:
    first, second = hashes(spark, [({"p": 1, "q": 2},), ({"q": 2, "p": 1},)], "a map<string, int>")
    assert first == second


def test_collations_do_not_make_texts_equal(spark: SparkSession) -> None:
    table = spark.sql("SELECT s COLLATE UTF8_LCASE AS s FROM VALUES ('a'), ('A') AS v(s)")
    assert table.select(content_hash(table, ["s"]).alias("g")).distinct().count() == 2


def test_odd_names_and_more_than_31_columns(spark: SparkSession) -> None:
    names = ["a.b", "c`d", "e f", "é", *[f"n{i}" for i in range(30)]]
    rows = [(*([None] * i), 1, *([None] * (len(names) - i - 1))) for i in range(len(names))]
    table = spark.createDataFrame(rows, ", ".join(f"`{name.replace('`', '``')}` int" for name in names))
    assert table.select(content_hash(table, names).alias("g")).distinct().count() == len(names)


def test_no_columns_have_one_hash(spark: SparkSession) -> None:
    table = spark.range(3)
    assert table.select(content_hash(table, []).alias("g")).distinct().count() == 1


def test_sums_do_not_depend_on_order_and_do_not_overflow(spark: SparkSession) -> None:
    table = spark.range(1000).select(F.lit(-(1 << 63)).alias("g"))
    high, low = table.agg(*hash_sums(F.col("g"))).collect()[0]
    assert (high << 32) + low == 1000 * -(1 << 63)
