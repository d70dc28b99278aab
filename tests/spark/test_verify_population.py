"""k-map on a table alone: labels in every form that a run may publish, held against a population as it is found."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kanon_spark.config.loader import load_config
from kanon_spark.engine.stages import RunContext
from kanon_spark.engine.verification import verify_published
from kanon_spark.verify.asked import Asked, Found, Population
from kanon_spark.verify.models import find_models

PEOPLE = [("30", "red", "2024-01-05"), ("39", "blue", "2024-01-20"), ("39", "blue", "2024-02-01"), (None, "07", None)]
SCHEMA = "age string, colour string, day string"
FORMS = "age string, colour array<string>, day string"


def fitting(table: DataFrame, people: DataFrame, k: int = 1) -> Found:
    (found,) = find_models(table, qi=table.columns, k=1, asked=Asked(population=Population(people, k)))
    return found


@pytest.mark.parametrize(
    ("row", "persons"),
    [
        (("[30, 39]", ["red", "blue"], "*"), 3),
        (("[30.5, 40)", ["*"], "[2024-01-20, 2024-03-01]"), 2),
        (("?", ["?"], ">= 2024-01-20"), 2),
        (("?", ["?"], "*"), 4),
        ((None, ["07"], None), 1),
        (("*", ["7"], "*"), 0),  # a code is a text
        (("*", ["blue", "*"], "*"), 2),
    ],
)
def test_arrays_stars_and_ranges_of_texts(spark: SparkSession, row: tuple[Any, ...], persons: int) -> None:
    found = fitting(spark.createDataFrame([row], FORMS), spark.createDataFrame(PEOPLE, SCHEMA))
    assert found.worst == persons


def test_a_question_mark_that_people_have_is_a_value(spark: SparkSession) -> None:
    people = spark.createDataFrame([("a", "?"), ("b", "x"), ("7", "x")], "town string, job string")
    assert fitting(spark.createDataFrame([("{a, b}", "?")], people.schema), people).worst == 1
    assert fitting(spark.createDataFrame([("?", "x")], people.schema), people).worst == 2
    assert fitting(spark.createDataFrame([("07", "x")], people.schema), people).worst == 0


@pytest.mark.parametrize(
    ("row", "persons"),
    [
        (("104**", "2024-01", 31), 2),
        (("1****", "2024", 31), 3),
        (("10412", "2020s", 31), 1),
        (("10*", "2024-Q2", 31), 0),
        (("2****", "*", 31), 0),
    ],
)
def test_prefixes_and_stretches_of_days(spark: SparkSession, row: tuple[Any, ...], persons: int) -> None:
    values = [("10412", "2024-01-05", 31), ("10499", "2024-01-20", 31), ("11000", "2024-02-01", 31)]
    people = spark.createDataFrame(values, "zip string, day string, age int")
    table = spark.createDataFrame([row], people.schema)
    for found in (fitting(table, people), fitting(table, people.selectExpr("zip", "cast(day as date) day", "age"))):
        assert found.worst == persons
    whole = people.selectExpr("cast(zip as int) zip", "day", "age")
    assert fitting(table, whole).worst == persons


def test_stars_that_values_end_with_are_values(spark: SparkSession) -> None:
    people = spark.createDataFrame([("a*",), ("ab",)], "code string")
    assert fitting(spark.createDataFrame([("a*",)], people.schema), people).worst == 1


@pytest.mark.parametrize(
    ("method", "numeric", "rows"),
    [
        ({"name": "kmember"}, "bounds", [("[30, 39]", 30.0, 39.0, ["red", "blue"])] * 2),
        ({"name": "kactus", "target": "ill"}, "label", [("?", ["red", "blue"]), ("[30, 39]", ["?"])] * 2),
    ],
)
def test_a_release_is_verified_in_its_own_form(
    spark: SparkSession, tmp_path: Path, method: dict[str, str], numeric: str, rows: list[tuple[Any, ...]]
) -> None:
    """Arrays, numbers beside labels, the star of kactus: what a run has verified, `verify()` does too."""
    place = str(tmp_path / "people")
    spark.createDataFrame(PEOPLE, SCHEMA).select("age", "colour").coalesce(1).write.parquet(place)
    job = {
        "columns": {"quasi_identifiers": ["age", "colour"], "sensitive": ["ill"]},
        "privacy": {"k": 2, "k_map": {"k": 3, "path": place}},
        "method": method,
        "output": {"sets": "array", "numeric": numeric},
    }
    added = ["age_lo", "age_hi"] if numeric == "bounds" else []
    schema = ["age string", *(f"{name} double" for name in added), "colour array<string>"]
    table = spark.createDataFrame(rows, ", ".join(schema))
    verdict = verify_published(RunContext(spark), load_config(job), table, qi=["age", *added, "colour"])
    assert verdict.passed, verdict.checks
    assert [(model.name, model.worst) for model in verdict.models] == [("k_map", 3)]
