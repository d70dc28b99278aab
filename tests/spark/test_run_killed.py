"""kill -9 at any stage: the next run finds a release, cleans up and succeeds. Each kill needs a process of its own."""

import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from own_processes import run_kanon
from run_world import KEPT, World, smallest_class

from kanon_spark.engine.stages import STAGES
from kanon_spark.releases.gc import collect_garbage
from kanon_spark.stitch.graph import missing_graphframes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QIS = {"age": {"hierarchy": {"interval": {"widths": [5, 10]}}}, "sex": None}
QUICK = ["signatures", "publish:between"]
# Arrivals are told from what is published only where a release continues another: test_run_incremental.py.
POINTS = [*(stage for stage in STAGES if stage not in {"arrivals", "match"}), "publish:between", "publish:after"]
SWAPPED = {"publish", "report", "publish:after"}  # the new release stands already


@pytest.mark.parametrize(
    "point", [pytest.param(point, marks=() if point in QUICK else pytest.mark.slow) for point in POINTS]
)
def test_killed(spark: "SparkSession", tmp_path: Path, repo: Path, point: str) -> None:
    world = World(spark, tmp_path)
    rows = [(20 + n * 7 % 13, "mf"[n % 2], n) for n in range(40)]
    world.save(spark.createDataFrame(rows, "age int, sex string, n int"))
    more: dict[str, Any] = {"method": {"name": "mst"}} if point == "tree" else {}
    if point == "rejudge":
        more["privacy"] = {"k_map": {"k": 2, "path": "data/table"}}
    if point in {"blocks", "stitch", "rest", "refine"}:
        more["execution"] = {"local_limit": 0, "block_size": 4, "stitch": "local"}
    if point == "stitch":
        if missing_graphframes(spark):
            pytest.skip("no GraphFrames jar here")
        more["execution"]["stitch"] = "graphframes"
    world.run(world.job(QIS, k=2))
    before = world.released()
    new = world.config_file(QIS, name="new", k=3, **more)

    killed = run_kanon(repo, new, KANON_KILL_AT=point)
    assert killed.returncode == -signal.SIGKILL, killed.stderr

    if point in SWAPPED:
        assert json.loads((world.sink / "_kanon.json").read_text(encoding="utf-8"))["k"] == 3
    elif point == "publish:between":
        assert not world.sink.exists(), "the documented gap"
    else:
        assert world.released() == before
    collect_garbage(spark, world.job(QIS, k=2))
    if point not in SWAPPED:
        assert world.released() == before
    assert world.left_beside() == []
    assert world.left_in_work() == KEPT, "what is raw went, the recoding of the release that stands stays"

    release = world.run(world.job(QIS, k=3))
    assert smallest_class(release.table, ["age", "sex"]) >= 3
    assert world.left_beside() == []
    assert world.left_in_work() == KEPT
