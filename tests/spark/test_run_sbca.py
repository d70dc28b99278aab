"""Whole runs of `sbca`: ranges, sets, nulls and a hierarchy, in one process and over blocks."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from run_world import World, in_interval, in_range, in_set, published_by_row, smallest_class, untrue_cells
from solve_world import Signatures, classes_of

from kanon_spark.methods.sbca import Sbca

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QIS: dict[str, Any] = {
    "age": {},
    "job": {},
    "town": {"weight": 2},
    "income": {"hierarchy": {"interval": {"widths": [10, 50]}}},
}
TRUTHS = {"age": in_range, "job": in_set, "town": in_set, "income": in_interval}
COUNT = 401


def people(spark: "SparkSession") -> "DataFrame":
    """Numbers and words, some of them null; no two rows are alike in all."""
    rng = np.random.default_rng(11)
    rows = [
        (
            n,
            None if rng.random() < 0.03 else int(rng.integers(18, 70)),
            None if rng.random() < 0.03 else f"job{int(rng.geometric(0.4))}",
            f"town{int(rng.integers(12))}",
            int(rng.integers(10, 200)),
        )
        for n in range(COUNT)
    ]
    return spark.createDataFrame(rows, "id int, age int, job string, town string, income int")


@pytest.mark.parametrize("blocks", [False, True], ids=["one process", "blocks"])
def test_ranges_sets_nulls_and_a_hierarchy(spark: "SparkSession", tmp_path: Path, blocks: bool) -> None:
    world = World(spark, tmp_path)
    table = people(spark)
    execution = {"block_size": 60, "local_limit": 0} if blocks else {}
    release = world.run(world.job(QIS, k=5, sink=None, execution=execution, method="sbca"), table)
    assert smallest_class(release.table, list(QIS)) >= 5
    assert release.manifest["method"] == "sbca"
    assert all(check["passed"] for check in release.manifest["checks"])
    assert (release.manifest["blocks"] > 1) == blocks
    assert release.manifest["rows"]["released"] == COUNT
    assert not untrue_cells(published_by_row(table, "id"), published_by_row(release.table, "id"), TRUTHS)
    assert 0 <= release.metrics["gcp_bound"] <= release.metrics["gcp"] < 0.6


def test_what_is_left_over_is_suppressed_if_asked(spark: "SparkSession", tmp_path: Path) -> None:
    """401 persons in classes of exactly 4: one is left over."""
    world = World(spark, tmp_path)
    privacy = {"max_suppression": 0.01}
    method = {"name": "sbca", "leftover": "suppress"}
    release = world.run(world.job(QIS, k=4, sink=None, privacy=privacy, method=method), people(spark))
    assert (release.manifest["rows"]["released"], release.manifest["rows"]["suppressed"]) == (400, 1)
    assert release.manifest["class_sizes"]["smallest"] == 4


def test_a_region_above_the_block_size_is_cut_where_sets_are_cut() -> None:
    """Whoever measures sets as sets cuts them value by value, and must count them so."""
    signatures = Signatures.random(3, size=400, k=4)
    solver = replace(signatures.solver, method=Sbca())
    gathered = signatures.frame.assign(bound=0.0, region=0, bin=0)
    cut, whole = (solver.solve_regions(gathered, block_size=size, turn=1) for size in (10, 1000))
    assert sorted(cut["h"]) == sorted(whole["h"]) == sorted(gathered["h"])
    assert cut[~cut["open"]].groupby("class_id")["persons"].sum().min() >= 4
    assert classes_of(cut) != classes_of(whole)
