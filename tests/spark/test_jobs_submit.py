"""`spark-submit jobs/anonymize.py`, really started: schedulers must be given the exit codes that are documented."""

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from own_processes import environment
from run_world import World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SLOW = pytest.mark.slow  # each starts a JVM of its own
AGES = {"age": {"hierarchy": {"interval": {"widths": [5, 10]}}}}
CASES = [
    pytest.param({}, 0, "published", id="published", marks=SLOW),
    pytest.param({"k": 0}, 2, "privacy.k", id="a wrong key", marks=SLOW),
    pytest.param({"k": 1000}, 3, "fewer than k", id="too few persons"),
    pytest.param({"columns": {"quasi_identifiers": {"age": {"hierarchy": "flat", "max_level": 0}}}}, 4, "suppress",
                 id="no release may be published", marks=SLOW),
    pytest.param({"schedule": {"time_budget": 1}}, 5, "time", id="out of time", marks=SLOW),
]  # fmt: skip


@pytest.mark.parametrize(("sections", "code", "told"), CASES)
def test_exit_codes(
    spark: "SparkSession", tmp_path: Path, repo: Path, sections: dict[str, Any], code: int, told: str
) -> None:
    world = World(spark, tmp_path)
    world.save(spark.createDataFrame([(20 + n % 30, n) for n in range(60)], "age int, n int"))
    config = world.config_file(AGES, **sections)
    found = submit(repo, config)
    assert found.returncode == code, found.stderr
    events = [json.loads(line) for line in found.stdout.splitlines() if line.startswith("{")]
    assert told in json.dumps(events) + found.stderr
    assert world.sink.exists() == (code == 0)


def submit(repo: Path, config: Path) -> "subprocess.CompletedProcess[str]":
    import pyspark

    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-submit"), "--master", "local[1]", "--conf", "spark.ui.enabled=false"]
    command += ["--conf", "spark.sql.shuffle.partitions=2", "--driver-memory", "1g"]
    command += [str(repo / "jobs" / "anonymize.py"), "--config", str(config), "--json"]
    return subprocess.run(
        command, env=environment(SPARK_HOME=str(home)), capture_output=True, text=True, timeout=600, check=False
    )
