"""Demands that are hard to meet: what blocks leave open must not be suppressed where one process would place it."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from run_world import World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BLOCKS = {"block_size": 150, "local_limit": 0, "stitch": "local"}
QIS = {"age": {"hierarchy": {"interval": {"widths": [5, 10, 20]}}}, "zip": {"hierarchy": {"prefix": {"keep": [1]}}}}


def leaning(seed: int = 2) -> pd.DataFrame:
    """Half of the older ones have one and the same illness: what is left of them needs company from far away."""
    rng = np.random.default_rng(seed)
    tuples = [(age, zip_) for age in range(20, 60) for zip_ in range(10, 34) if rng.random() < 0.9]
    rows = np.repeat(np.arange(len(tuples)), rng.integers(1, 6, len(tuples)))
    age = np.array([tuples[row][0] for row in rows])
    ill = np.where((age > 40) & (rng.random(len(rows)) < 0.5), 0, rng.integers(0, 4, len(rows)))
    return pd.DataFrame({"age": age, "zip": [str(tuples[row][1]) for row in rows], "ill": [f"ill{x}" for x in ill]})


def ask(world: World, model: dict[str, Any], method: str, execution: dict[str, Any], most: float = 0.0) -> Any:
    columns = {"sensitive": {"ill": model}, "other": "error"}
    how = {"name": method, **({} if method in ("sbca", "prgain", "mondrian") else {"effort": "fast"})}
    return world.job(QIS, k=5, columns=columns, privacy={"max_suppression": most}, method=how, execution=execution)


@pytest.fixture
def world(spark: "SparkSession", tmp_path: Any) -> World:
    made = World(spark, tmp_path)
    made.save(spark.createDataFrame(leaning()))
    return made


SLOW = [pytest.param(method, marks=pytest.mark.slow) for method in ("mst", "prgain", "kmember", "sbca", "mondrian")]


@pytest.mark.parametrize("method", ["lattice", *SLOW])
def test_nothing_is_suppressed_over_blocks(world: World, method: str) -> None:
    model = {"l_diversity": {"l": 2, "kind": "recursive", "c": 1.2}}
    release = world.run(ask(world, model, method, BLOCKS))
    assert release.manifest["rows"]["suppressed"] == 0
    assert release.manifest["stitch"]["way"] != "one process"
    assert "rejudge" in world.stages


@pytest.mark.parametrize("method", ["mst", "mondrian"])
def test_one_bad_class_does_not_swallow_the_good_ones(world: World, method: str) -> None:
    rows = leaning()
    largest = rows["ill"].value_counts(normalize=True).max()
    release = world.run(ask(world, {"alpha": round(float(largest) - 0.01, 3)}, method, {}, most=0.1))
    assert 0 < release.manifest["rows"]["suppressed"] <= 0.1 * len(rows)
