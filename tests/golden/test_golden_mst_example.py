"""The ten rows of the paper behind `mst`: distances, tree, classes and published table."""

import json
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kanon_spark.config.loader import load_config
from kanon_spark.engine.runner import run
from kanon_spark.stitch.graph import missing_graphframes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = [
    (1, "Male", 21, "535280"),
    (2, "Male", 24, "535280"),
    (3, "Male", 25, "535280"),
    (4, "Female", 26, "535280"),
    (5, "Female", 26, "535285"),
    (6, "Female", 32, "535288"),
    (7, "Female", 32, "535292"),
    (8, "Male", 36, "535292"),
    (9, "Male", 36, "535296"),
    (10, "Male", 38, "535296"),
]
# Removing the two longest edges leaves {1,2,3} {4,5,6,7} {8,9,10}.
PUBLISHED = {
    **dict.fromkeys((1, 2, 3), ("Male", "[20-25]", "535280")),
    **dict.fromkeys((4, 5, 6, 7), ("Female", "[20-40]", "5352**")),
    **dict.fromkeys((8, 9, 10), ("Male", "[36-40]", "53529*")),
}
WEIGHTS = [Fraction(10, 3), Fraction(10, 3), Fraction(3), Fraction(2), Fraction(1), Fraction(1)] + [Fraction(2, 3)] * 3
LOCAL: dict[str, Any] = {}
BLOCKS = {"local_limit": 0, "block_size": 4, "stitch": "local"}
GRAPHS = {"local_limit": 0, "block_size": 4, "stitch": "graphframes"}


def hierarchies(folder: Path) -> dict[str, Any]:
    def band(age: int) -> str:
        low = {0: 20, 1: 26, 2: 31, 3: 36}[(age > 25) + (age > 30) + (age > 35)]
        return f"{age};[{low}-{25 if low == 20 else low + 4}];{'[20-30]' if age <= 30 else '[31-40]'};[20-40]"

    (folder / "age.csv").write_text("\n".join(band(age) for age in range(20, 41)) + "\n", encoding="utf-8")
    (folder / "gender.csv").write_text("Male;Person\nFemale;Person\n", encoding="utf-8")
    zips = sorted({row[3] for row in ROWS})
    (folder / "zip.csv").write_text("\n".join(f"{z};{z[:5]}*;{z[:4]}**" for z in zips) + "\n", encoding="utf-8")
    return {name: {"hierarchy": f"{name}.csv"} for name in ("gender", "age", "zip")}


@pytest.mark.parametrize("execution", [LOCAL, BLOCKS, GRAPHS], ids=["local", "blocks", "graphframes"])
def test_the_papers_example(spark: "SparkSession", tmp_path: Path, execution: dict[str, Any]) -> None:
    if execution is GRAPHS and missing_graphframes(spark):
        pytest.skip("no GraphFrames jar here")
    job = {
        "name": "ten rows",
        "columns": {"quasi_identifiers": hierarchies(tmp_path), "other": "keep"},
        "privacy": {"k": 3},
        "method": {"name": "mst", "cut": "paper"},
        "execution": {"work_dir": str(tmp_path / "work"), **execution},
    }
    table = spark.createDataFrame(ROWS, "number int, gender string, age int, zip string")
    file = tmp_path / "job.yaml"
    file.write_text(json.dumps(job), encoding="utf-8")
    release = run(load_config(file), spark=spark, table=table)

    found = {row["number"]: (row["gender"], row["age"], row["zip"]) for row in release.table.collect()}
    assert found == PUBLISHED
    assert release.tree is not None
    edges = release.tree.collect()
    lengths = sorted((Fraction(edge["distance"]).limit_denominator(100) for edge in edges), reverse=True)
    assert lengths == WEIGHTS
    assert release.manifest["stitch"]["graphframes_calls"] == (release.manifest["tree"]["rounds"])
    assert (release.manifest["tree"]["rounds"] > 0) == (execution is GRAPHS)
    assert (release.manifest["tree"]["blocks"] > 1) == (execution is not LOCAL)
