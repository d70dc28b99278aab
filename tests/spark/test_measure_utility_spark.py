"""Classifier utility of Spark tables: the cut, the sample, and the same answer as without Spark."""

from typing import TYPE_CHECKING

import pandas as pd
import pytest

from kanon_spark.config.loader import load_config
from kanon_spark.errors import MissingInputError
from kanon_spark.measure.attributes import attribute_of
from kanon_spark.measure.utility import classifier_utility, hold_out, utility

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONFIG = load_config({"columns": {"quasi_identifiers": {"age": {}, "job": {}}, "other": "keep"}})


@pytest.fixture(scope="module")
def people(spark: "SparkSession") -> "DataFrame":
    rows = [(n % 41 + 20, "abcd"[n * 7 % 4], n, "yes" if n % 41 + (n % 5) > 22 else "no") for n in range(600)]
    return spark.createDataFrame(rows, "age int, job string, number int, ill string")


def test_the_cut_is_a_function_of_the_rows(people: "DataFrame") -> None:
    train, test = hold_out(people, share=0.25, seed=1)
    mixed = hold_out(people.repartition(3), share=0.25, seed=1)[1]
    numbers = {row["number"] for row in test.collect()}
    assert numbers == {row["number"] for row in mixed.collect()}
    assert numbers.isdisjoint(row["number"] for row in train.collect())
    assert 100 < len(numbers) < 200
    assert train.count() + len(numbers) == 600


def test_samples_of_spark_tables_give_what_the_same_rows_give_in_pandas(people: "DataFrame") -> None:
    from pyspark.sql import functions as F

    train, test = hold_out(people, seed=1)
    coarse = F.when(F.col("age") > 40, F.lit("[41, 60]")).otherwise(F.lit("[20, 40]"))
    pair = F.when(F.col("job").isin("a", "b"), F.array(F.lit("a"), F.lit("b"))).otherwise(F.array("job"))
    released = train.withColumn("age", coarse).withColumn("job", pair)
    found = utility(released.repartition(2), train, test, config=CONFIG, target="ill", others=["number"])
    texts = {name: table.toPandas() for name, table in (("original", train), ("released", released), ("test", test))}
    for frame in texts.values():
        for name in ("age", "number"):
            frame[name] = frame[name].astype(str)
    attributes = [
        attribute_of(name, texts["original"][name], kind)
        for name, kind in (("age", "integer"), ("job", "text"), ("number", "integer"))
    ]
    assert found == classifier_utility(
        texts["original"], texts["released"], texts["test"], attributes=attributes, target="ill"
    )
    assert found["naive_bayes"]["release"]["accuracy"] > found["majority"]


def test_samples_are_bounded_and_columns_must_be_there(people: "DataFrame") -> None:
    found = utility(people, people, people, config=CONFIG, target="ill", train_rows=50, test_rows=20)
    assert found["rows"] == {"original": 50, "release": 50, "test": 20}
    again = utility(
        people.repartition(3), people, people.orderBy("age"), config=CONFIG, target="ill", train_rows=50, test_rows=20
    )
    assert pd.json_normalize(found).equals(pd.json_normalize(again))
    with pytest.raises(MissingInputError, match="job"):
        utility(people.drop("job"), people, people, config=CONFIG, target="ill")
