"""`gc` over catalog tables: what a killed run staged goes, what is published stays, with its recoding."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kanon_spark.config.loader import LoadedConfig, load_config
from kanon_spark.io.sinks import publisher_for
from kanon_spark.releases.gc import collect_garbage
from kanon_spark.releases.lock import TargetLock
from kanon_spark.releases.workdir import WorkDir

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

A, B = "20250101T000000_aaaaaaaa", "20250102T000000_bbbbbbbb"


@pytest.fixture
def loaded(spark: "SparkSession", tmp_path: Path) -> Iterator[LoadedConfig]:
    spark.sql("CREATE DATABASE IF NOT EXISTS kanon_gc")
    yield load_config(
        {
            "source": {"path": str(tmp_path / "people.parquet")},
            "columns": {"quasi_identifiers": ["age"]},
            "sink": {"table": "kanon_gc.release"},
            "execution": {"work_dir": str(tmp_path / "work"), "lease": 30},
        }
    )
    spark.sql("DROP DATABASE kanon_gc CASCADE")


def test_gc_over_tables(spark: "SparkSession", tmp_path: Path, loaded: LoadedConfig) -> None:
    assert loaded.config.sink is not None
    with WorkDir.open(spark, loaded.config, loaded.base_dir, A) as work:
        spark.range(3).write.parquet(work.path("recoding"))
        first = publisher_for(spark, loaded.config.sink, base_dir=tmp_path, run_id=A, work_root=work.root)
        with TargetLock(first.lock_store, first.lock_path, run_id=A, lease=30) as lock:
            assert collect_garbage(spark, loaded, lock=lock) == []
            first.write(spark.range(5).toDF("age"))
            lock.assert_held()
            first.publish({"k": 2})
    # A second run is killed after staging: its process is gone, its files are not.
    killed = WorkDir.open(spark, loaded.config, loaded.base_dir, B)
    spark.range(3).write.parquet(killed.path("signatures"))
    second = publisher_for(spark, loaded.config.sink, base_dir=tmp_path, run_id=B, work_root=killed.root)
    second.write(spark.range(7).toDF("age"))
    assert killed._heartbeat is not None
    killed._heartbeat.stop()
    owner = Path(killed.path("owner.json"))
    owner.write_text(json.dumps({**json.loads(owner.read_text()), "pid": 2**22 + 1, "birth": "1"}))
    Path(second.lock_path).write_text(owner.read_text())

    removed = collect_garbage(spark, loaded)

    assert set(removed) == {
        f"kanon_gc.release__kanon_{B}_staged".lower(),
        f"_kanon_{B}_signatures",
        f"_kanon_{B}_owner.json",
    }
    assert {path.name for path in (tmp_path / "work").iterdir()} == {f"_kanon_{A}_owner.json", f"_kanon_{A}_recoding"}
    assert spark.table("kanon_gc.release").count() == 5
    assert collect_garbage(spark, loaded) == []
