"""The same rows give the same release, however they are cut into partitions and in whatever order they come."""

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from run_world import World, multiset

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QIS = {
    "age": {"hierarchy": {"interval": {"widths": [5, 10, 20]}}},
    "zip": {"hierarchy": {"prefix": {"keep": [3, 2]}}},
    "job": None,
    "height": None,
}


def people(count: int) -> list[tuple[Any, ...]]:
    draw = random.Random(3)
    return [
        (
            row,
            row // 2,
            draw.randrange(20, 60),
            f"{draw.choice(['100', '101', '20', '30'])}{draw.randrange(30):02d}",
            draw.choice([None, "nurse", "clerk", "judge"]),
            draw.choice([1.5, 1.6, 1.7, 1.8, float("nan")]),
        )
        for row in range(count)
    ]


@pytest.mark.parametrize("way", ["one process", "blocks"])
def test_partitions_do_not_matter(spark: "SparkSession", tmp_path: Path, way: str) -> None:
    world = World(spark, tmp_path)
    execution = {} if way == "one process" else {"local_limit": 0, "block_size": 20}
    job = world.job(QIS, k=4, source=None, sink=None, report=None, privacy={"unit": "person"}, execution=execution)
    rows = people(120)
    releases: list[tuple[Counter[Any], dict[str, Any], str]] = []
    for partitions in (1, 7, 20):
        random.Random(partitions).shuffle(rows)
        schema = "row int, person int, age int, zip string, job string, height double"
        table = spark.createDataFrame(rows, schema).repartition(partitions).localCheckpoint()
        release = world.run(job, table)
        manifest = release.manifest
        assert (manifest["blocks"] > 1) == (way == "blocks")
        releases.append((multiset(release.table), manifest["metrics"], manifest["content_hash"]))
    assert releases[1] == releases[0]
    assert releases[2] == releases[0]
