"""A run that fails at any stage: the old release stands as it was, nothing raw is left, and the next run succeeds."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from run_world import KEPT, WITH_REPORT, World, smallest_class

from kanon_spark.engine.stages import STAGES
from kanon_spark.errors import InternalError
from kanon_spark.stitch.graph import missing_graphframes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QIS = {"age": {"hierarchy": {"interval": {"widths": [5, 10]}}}, "sex": None}
BLOCKS = {"local_limit": 0, "block_size": 4}
WAYS: dict[str, dict[str, Any]] = {
    "one process": {},
    "blocks": {"execution": BLOCKS},
    "tree": {"method": {"name": "mst"}},
    "population": {"privacy": {"k_map": {"k": 2, "path": "data/table"}}},
    "graphframes": {"execution": {**BLOCKS, "stitch": "graphframes"}},
}
# Every stage, in the way of working that has it; those that several have are done once.
WAY_OF = {
    "blocks": "blocks",
    "rest": "blocks",
    "refine": "blocks",
    "tree": "tree",
    "stitch": "graphframes",
    "rejudge": "population",
}
# Only where a release continues another (test_run_incremental.py), or a recoding is applied (test_recoding_levels.py).
INCREMENTAL = {"arrivals", "match"}
POINTS = [(name, WAY_OF.get(name, "one process")) for name in STAGES if name not in INCREMENTAL]
POINTS += [("solve", "blocks"), ("recode", "blocks"), ("publish:between", "one process")]


@pytest.fixture(scope="module")
def world(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> "Iterator[World]":
    world = World(spark, tmp_path_factory.mktemp("failpoints"))
    rows = [(20 + n * 7 % 13, "mf"[n % 2], n) for n in range(40)]
    world.save(spark.createDataFrame(rows, "age int, sex string, n int"))
    world.run(world.job(QIS, k=2, name="old", report=WITH_REPORT))
    yield world


LAST = {"measure", "publish", "report"}  # stages that have to do with the report, which takes seconds


def reports(world: World) -> dict[str, bytes]:
    """Manifest and report of the release that stands."""
    return {path.name: path.read_bytes() for path in world.manifest.parent.iterdir() if "failed" not in path.name}


def test_every_stage_occurs(spark: "SparkSession", world: World, tmp_path: Path) -> None:
    """The list of failpoints below is complete: one way of working or another goes through every stage."""
    found = set()
    table = spark.read.parquet(str(world.folder / "data" / "table"))
    world = World(spark, tmp_path)  # runs without a target keep their recoding while the process lives
    world.save(table)
    ways = {way: more for way, more in WAYS.items() if way != "graphframes" or not missing_graphframes(spark)}
    for way, more in ways.items():
        world.run(world.job(QIS, k=2, name=way, sink=None, report=None, **more), table)
        found |= set(world.stages)
        assert way != "one process" or not set(WAY_OF) & set(world.stages)
    assert found == set(STAGES) - INCREMENTAL - ({"stitch"} if "graphframes" not in ways else set())


@pytest.mark.parametrize(("point", "way"), POINTS)
def test_a_failure_leaves_the_old_release(
    spark: "SparkSession", world: World, monkeypatch: pytest.MonkeyPatch, point: str, way: str
) -> None:
    if way == "graphframes" and missing_graphframes(spark):
        pytest.skip("no GraphFrames jar here")
    before, told = world.released(), reports(world)
    monkeypatch.setenv("KANON_FAIL_AT", point)
    with pytest.raises(InternalError, match=f"failpoint '{point}'"):
        world.run(world.job(QIS, k=3, **WAYS[way], **({"report": WITH_REPORT} if point in LAST else {})))
    assert world.released() == before
    assert reports(world) == told
    assert world.left_beside() == []
    assert world.left_in_work() == KEPT, "the recoding of the release that stands, and nothing else"
    failure = json.loads(world.manifest.with_name("manifest.failed.json").read_text(encoding="utf-8"))
    assert failure["outcome"] == "failed"
    assert failure["stage"] == point.split(":")[0]


def test_a_failure_after_the_swap_leaves_the_new_release(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the release is swapped in and reported, only the removal of the previous one can fail."""
    monkeypatch.setenv("KANON_FAIL_AT", "publish:after")
    with pytest.raises(InternalError):
        world.run(world.job(QIS, k=4))
    facts = json.loads((world.sink / "_kanon.json").read_text(encoding="utf-8"))
    assert facts["k"] == 4
    assert [name.split("_")[-1] for name in world.left_beside()] == ["previous"]


def test_the_next_run_succeeds(world: World) -> None:
    """After all of the above."""
    release = world.run(world.job(QIS, k=3))
    assert smallest_class(release.table, ["age", "sex"]) >= 3
    assert release.manifest["outcome"] == "published"
    assert world.left_beside() == []
    assert world.left_in_work() == KEPT
    assert not world.manifest.with_name("manifest.failed.json").exists()
