"""`verify_table` on any table, held against a second opinion: pycanon's."""

import random

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kanon_spark.errors import GuaranteeError, MissingInputError, RequestError, UnsupportedTypeError
from kanon_spark.verify.table import verify_table

NAMES = ["age", "sex", "zip"]


def draw_table(seed: int) -> list[tuple[str, str, str, str]]:
    draw = random.Random(seed)
    size = draw.choice([1, 5, 40, 150])
    return [
        (draw.choice(["20s", "30s"]), draw.choice("mf"), draw.choice(["1*", "2*", "*"][: 1 + seed % 3]), str(place % 7))
        for place in range(size)
    ]


@pytest.mark.parametrize("seed", range(6))
def test_pycanon_agrees(spark: SparkSession, seed: int) -> None:
    anonymity = pytest.importorskip("pycanon.anonymity")
    rows = draw_table(seed)
    table = spark.createDataFrame(rows, [*NAMES, "sick"])
    achieved = anonymity.k_anonymity(table.toPandas(), NAMES)
    verdict = verify_table(table, qi=NAMES, k=achieved)
    assert verdict.passed
    assert verdict.facts.achieved == verdict.facts.smallest == achieved
    assert verdict.rows == len(rows)
    assert verdict.facts.classes == len({row[:3] for row in rows})


def test_a_group_smaller_than_k_fails(spark: SparkSession) -> None:
    table = spark.createDataFrame([("a", 1), ("a", 2), ("b", 3)], "q string, s int")
    verdict = verify_table(table, qi=["q"], k=2)
    assert not verdict.passed
    assert verdict.facts.histogram == {"<k": 1, "k..2k-1": 1}
    with pytest.raises(GuaranteeError, match="1 groups have fewer than 2 rows; the smallest has 1"):
        verdict.require()


def test_null_is_a_value_of_its_own(spark: SparkSession) -> None:
    rows = [(None, "a"), (None, "a"), ("a", None), ("a", None), ("", "a"), ("", "a")]
    verdict = verify_table(spark.createDataFrame(rows, "`q.1` string, `q``2` string"), qi=["q.1", "q`2"], k=2)
    assert verdict.passed
    assert verdict.facts.classes == 3


def test_persons_are_counted_where_a_unit_is_named(spark: SparkSession) -> None:
    rows = [("a", "p1"), ("a", "p1"), ("a", "p2"), ("b", None), ("b", None), ("b", "p1")]
    table = spark.createDataFrame(rows, "q string, pid string")
    assert verify_table(table, qi=["q"], k=3).passed
    by_person = verify_table(table, qi=["q"], k=3, unit="pid")
    assert not by_person.passed  # `a` has two persons; `b` has three, for a row without a unit is a person of its own
    assert by_person.facts.achieved == 2
    assert "1 groups have fewer than 3 persons" in by_person.checks[0].detail
    assert verify_table(table, qi=["q"], k=2, unit="pid").passed


def test_the_content_hash_is_of_the_rows_as_a_multiset(spark: SparkSession) -> None:
    table = spark.range(60).select(
        (F.col("id") % 3).cast("string").alias("q"),
        "id",
        F.map_from_arrays(F.array(F.col("id")), F.array(F.lit("x"))).alias("m"),
    )
    whole = verify_table(table, qi=["q"], k=5).content_hash
    assert verify_table(table.orderBy(F.col("id").desc()).repartition(5), qi=["q"], k=9).content_hash == whole
    assert verify_table(table.where("id <> 7"), qi=["q"], k=5).content_hash != whole
    swapped = table.withColumn("id", F.when(F.col("id") < 2, 1 - F.col("id")).otherwise(F.col("id")))
    assert verify_table(swapped, qi=["q"], k=5).content_hash != whole
    assert verify_table(table.union(table.limit(1)), qi=["q"], k=5).content_hash != whole


def test_an_empty_table_breaks_no_promise(spark: SparkSession) -> None:
    verdict = verify_table(spark.createDataFrame([], "q string"), qi=["q"], k=5)
    assert verdict.passed
    assert (verdict.rows, verdict.facts.classes, verdict.facts.achieved) == (0, 0, 0)


def test_requests_that_cannot_be_served(spark: SparkSession) -> None:
    table = spark.createDataFrame([("a", {"x": 1})], "age string, tags map<string,int>")
    with pytest.raises(MissingInputError, match="aeg") as missing:
        verify_table(table, qi=["aeg"], k=2)
    assert "did you mean age?" in str(missing.value)
    assert missing.value.exit_code == 2
    with pytest.raises(MissingInputError, match="pid"):
        verify_table(table, qi=["age"], k=2, unit="pid")
    with pytest.raises(RequestError, match="k is 0"):
        verify_table(table, qi=["age"], k=0)
    with pytest.raises(RequestError, match="no quasi-identifier"):
        verify_table(table, qi=[], k=2)
    with pytest.raises(RequestError, match="twice"):
        verify_table(table, qi=["age", "age"], k=2)
    with pytest.raises(UnsupportedTypeError, match="map"):
        verify_table(table, qi=["tags"], k=2)
