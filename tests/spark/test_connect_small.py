"""A small version of the Connect lane: a whole run over blocks gives the same rows on Spark Connect.

All of the Spark lane runs against a Connect server by `scripts/test --connect`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from own_processes import environment
from run_world import World, multiset, smallest_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

K = 3
RUN = """
import json, sys
from conftest import connect_session
from kanon_spark.config.loader import load_config
from kanon_spark.engine.runner import run
from kanon_spark.engine.session import get_spark, is_connect

connect_session({"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"})
spark = get_spark()
assert is_connect(spark)
release = run(load_config(sys.argv[1]), spark=spark)
assert release.verify().passed
print(json.dumps([release.manifest["metrics"]["gcp"], release.manifest["blocks"], release.manifest["stitch"]]))
"""


@pytest.fixture
def world(spark: "SparkSession", tmp_path: Path) -> World:
    world = World(spark, tmp_path)
    rows = [(20 + n * 7 % 13, "mf"[n % 2], n) for n in range(40)]
    world.save(spark.createDataFrame(rows, "age int, sex string, n int"))
    return world


def test_blocks_give_the_same_rows(world: World, repo: Path) -> None:
    qis = {"age": {"hierarchy": {"interval": {"widths": [5, 10]}}}, "sex": None}
    file = world.config_file(qis, k=K, method={"effort": "fast"}, execution={"local_limit": 0, "block_size": 6})
    own = environment(PYTHONPATH=os.pathsep.join([str(repo), str(repo / "tests")]))
    done = subprocess.run([sys.executable, "-c", RUN, str(file)], env=own, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]
    gcp, blocks, stitch = json.loads(done.stdout.splitlines()[-1])
    there = world.spark.read.parquet(str(world.sink))
    assert smallest_class(there, ["age", "sex"]) >= K
    rows = multiset(there)
    here = world.run(world.job(qis, k=K, method={"effort": "fast"}, execution={"local_limit": 0, "block_size": 6}))
    assert multiset(here.table) == rows
    assert here.metrics["gcp"] == gcp
    assert (here.manifest["blocks"], here.manifest["stitch"]) == (blocks, stitch)
