"""Persons against a Python twin: each counts once, whatever his rows, and rows without a person count each."""

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from kanon_spark.config.loader import load_config
from kanon_spark.engine.stages import RunContext
from kanon_spark.signatures.aggregate import Signatures, aggregate
from kanon_spark.signatures.encoding import prepare_encoding


def signatures_of(
    spark: SparkSession, rows: list[tuple[object, ...]], folder: Path, *, partitions: int = 2
) -> Signatures:
    source = spark.createDataFrame(rows, "age int, town string, who string").repartition(partitions)
    loaded = load_config({"columns": {"quasi_identifiers": ["age", "town"]}, "privacy": {"unit": "who"}})
    ctx = RunContext(spark)
    encoding = prepare_encoding(ctx, source, loaded.config, base_dir=folder, folder=str(folder / "domains"))
    return aggregate(ctx, source, encoding, unit="who", kept=[], path=str(folder / f"signatures{partitions}"))


def random_rows() -> list[tuple[object, ...]]:
    random = np.random.default_rng(3)
    return [
        (
            int(random.integers(5)),
            [None, "a", "b"][int(random.integers(3))],
            None if random.random() < 0.1 else f"p{int(random.integers(60))}",
        )
        for _ in range(300)
    ]


@pytest.fixture(scope="module")
def mixed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Signatures:
    """Signatures of the random rows, from two partitions."""
    return signatures_of(spark, random_rows(), tmp_path_factory.mktemp("persons"))


def test_ten_rows_of_one_patient_are_one_person(spark: SparkSession, tmp_path: Path) -> None:
    found = signatures_of(spark, [(30, "a", "ann")] * 10 + [(30, "a", "bob"), (40, "b", "ann")], tmp_path)
    assert (found.rows, found.persons, found.count) == (12, 2, 2)
    weights = {row["rows"]: row["persons"] for row in found.table.collect()}
    assert weights in ({11: 2, 1: 0}, {11: 1, 1: 1})


def test_rows_without_a_person_are_persons_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    found = signatures_of(spark, [(30, "a", None)] * 4 + [(30, "a", "bob")] * 3, tmp_path)
    assert [(row["rows"], row["persons"]) for row in found.table.collect()] == [(7, 5)]


def test_persons_add_up_and_never_exceed_those_who_are_there(mixed: Signatures) -> None:
    rows, found = random_rows(), mixed
    known = {who for _, _, who in rows if who is not None}
    nobody = sum(who is None for _, _, who in rows)
    assert found.persons == len(known) + nobody

    people: dict[tuple[object, object], set[object]] = defaultdict(set)
    rows_without: dict[tuple[object, object], int] = defaultdict(int)
    for age, town, who in rows:
        if who is None:
            rows_without[age, town] += 1
        else:
            people[age, town].add(who)
    layout, columns = found.codebook.layout, found.codebook.columns
    for row in found.table.collect():
        code = layout.unpack(np.array([[row[name] for name in layout.names()]]))[0]
        age, town = (column.texts[c] for column, c in zip(columns, code, strict=True))
        key = (None if age is None else int(age), town)
        assert rows_without[key] <= row["persons"] <= rows_without[key] + len(people[key])


def test_the_choice_does_not_depend_on_the_partitioning(spark: SparkSession, mixed: Signatures, tmp_path: Path) -> None:
    seven = signatures_of(spark, random_rows(), tmp_path, partitions=7)
    assert sorted(map(tuple, mixed.table.collect())) == sorted(map(tuple, seven.table.collect()))


def test_pairs_are_every_signature_of_every_person(spark: SparkSession, mixed: Signatures) -> None:
    rows, found = random_rows(), mixed
    source = spark.createDataFrame(rows, "age int, town string, who string")
    pairs = found.encoding.pairs(source, "who").collect()
    assert len(pairs) == len({(h, who) for h, who, _ in pairs}) == len(set(rows))
    assert sum(row["rows"] for row in pairs) == len(rows)
    assert {row["h"] for row in pairs} == {row["h"] for row in found.table.collect()}
