"""A job on a real cluster loses a machine in the middle, and publishes the same rows as a job left alone."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from standalone import Cluster

from kanon_spark import Anonymizer
from kanon_spark.demo.table import write_admissions
from kanon_spark.engine.session import cached_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL, BIG = 400, 20_000  # rows


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    if not cached_jars():
        pytest.skip("no GraphFrames jar here (scripts/setup --jars)")
    with Cluster(tmp_path) as running:
        yield running


def job(folder: Path, rows: int, *, k: int, block_size: int, stitch: str = "graphframes") -> Path:
    """A table, and a job that needs blocks and a stitch across them."""
    write_admissions(folder / "admissions.parquet", rows=rows)
    config: dict[str, Any] = {
        "name": "admissions",
        "source": {"path": "admissions.parquet"},
        "columns": {
            "identifiers": ["patient_id", "name"],
            "quasi_identifiers": {
                "age": {"hierarchy": {"interval": {"widths": [5, 10, 20, 40]}}},
                "sex": "flat",
                "zip": {"hierarchy": {"prefix": {"keep": [4, 3, 2, 1]}}},
            },
            "sensitive": ["diagnosis"],
            "other": "drop",
        },
        "privacy": {"k": k},
        "execution": {"block_size": block_size, "local_limit": 0, "stitch": stitch, "work_dir": "work"},
        "sink": {"path": "alone"},
    }
    path = folder / "job.yaml"
    path.write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    return path


def rows_of(folder: Path) -> Counter[tuple[Any, ...]]:
    """The rows of a release, each with how often it occurs."""
    import pyarrow.parquet as pq

    table = pq.read_table([str(path) for path in folder.glob("*.parquet")])
    return Counter(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))


def run_with_a_loss(cluster: Cluster, config: Path, stage: str, *, after: float = 0.0) -> dict[str, Any]:
    """Kill a worker and its executors so many seconds after a stage has begun; the manifest of the run."""
    worker = cluster.worker(1)
    outcome = cluster.submit(
        config, "--set", "sink.path=killed", jars=cached_jars(), at=stage, after=after, then=worker.kill
    )
    assert outcome.manifest["privacy"]["k"]["achieved"] >= outcome.manifest["privacy"]["k"]["asked"]
    assert "Lost executor" in outcome.log, "the driver must have noticed, or nothing was tested"
    return outcome.manifest


def same_release(folder: Path, alone: dict[str, Any], killed: dict[str, Any]) -> None:
    """The same rows, found the same way: over blocks and by GraphFrames."""
    assert alone["blocks"] == killed["blocks"] > 1
    assert alone["stitch"] == killed["stitch"]
    assert alone["stitch"]["graphframes_calls"] > 0
    assert killed["metrics"] == alone["metrics"]
    assert rows_of(folder / "killed") == rows_of(folder / "alone")
    left = {path.name.rsplit("_", 1)[-1] for path in (folder / "work").iterdir()}
    assert left == {"owner.json", "recoding"}, "what was raw is gone"


def test_a_worker_dies_while_blocks_are_solved(cluster: Cluster, spark: "SparkSession", tmp_path: Path) -> None:
    """The run left alone is a local one here, in the session of the suite: fewer processes, and the same rows."""
    config = job(tmp_path, SMALL, k=2, block_size=60)
    killed = run_with_a_loss(cluster, config, "solve")
    alone = Anonymizer.from_yaml(config).run(spark=spark).manifest
    same_release(tmp_path, alone, killed)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bigger run that loses nobody: the folder with its job and its release."""
    if not cached_jars():
        pytest.skip("no GraphFrames jar here (scripts/setup --jars)")
    folder = tmp_path_factory.mktemp("alone")
    config = job(folder, BIG, k=5, block_size=1_000)
    with Cluster(folder) as running:
        manifest = running.submit(config, jars=cached_jars()).manifest
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "after"), [("signatures", 1.0), ("solve", 2.0), ("stitch", 10.0), ("write", 1.0)])
def test_a_worker_dies_in_a_bigger_run(alone: Path, cluster: Cluster, stage: str, after: float) -> None:
    killed = run_with_a_loss(cluster, alone / "job.yaml", stage, after=after)
    same_release(alone, json.loads((alone / "manifest.json").read_text(encoding="utf-8")), killed)
