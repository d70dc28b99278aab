"""`privacy.unit`: k counts persons, not rows."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from run_world import World, multiset, published_by_row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

K = 3


def admissions(spark: "SparkSession") -> "DataFrame":
    """Patient 0 comes ten times at an age of his own; patients 1 to 12 come once or twice, at three ages."""
    rows = [(0, 99, f"visit {n}") for n in range(10)]
    rows += [(patient, 20 + patient % 3, f"first of {patient}") for patient in range(1, 13)]
    rows += [(patient, 20 + patient % 3, f"second of {patient}") for patient in range(1, 5)]
    rows += [(None, 21, "nobody knows"), (None, 22, "who that was")]
    return spark.createDataFrame(rows, "patient int, age int, note string")


def test_ten_rows_of_one_patient_are_no_class_of_ten(spark: "SparkSession", tmp_path: Path) -> None:
    source = admissions(spark)
    world = World(spark, tmp_path)
    world.save(source)
    by_rows = world.run(world.job({"age": None}, k=K, columns={"identifiers": ["patient"]}))
    assert {row["age"] for row in by_rows.table.collect()} == {"20", "21", "22", "99"}

    release = world.run(world.job({"age": None}, k=K, privacy={"unit": "patient"}))
    assert release.table.columns == ["age", "note"]
    assert multiset(release.table.select("note")) == multiset(source.select("note"))
    raw, released = published_by_row(source, "note"), published_by_row(release.table, "note")
    groups: dict[str, set[object]] = {}
    for note, row in released.items():
        patient = raw[note]["patient"]
        groups.setdefault(row["age"], set()).add(f"unknown: {note}" if patient is None else patient)
    assert all(len(persons) >= K for persons in groups.values())
    assert "99" not in groups
    manifest = release.manifest
    assert manifest["persons"] == 15  # twelve and one known, two rows without a person
    assert manifest["rows"]["input"] == 28
    assert manifest["privacy"]["k"]["achieved"] == min(len(persons) for persons in groups.values())
    assert manifest["columns"]["dropped"] == ["patient"]


def test_more_rows_than_k_but_too_few_persons(spark: "SparkSession", tmp_path: Path) -> None:
    from kanon_spark.errors import TooFewPersonsError

    world = World(spark, tmp_path)
    two = admissions(spark).where("patient in (0, 1)")
    with pytest.raises(TooFewPersonsError, match="2 persons, fewer than k = 3"):
        world.run(world.job({"age": None}, k=K, privacy={"unit": "patient"}, source=None), two)
    assert world.left_in_work() == []
