"""The store behind Hadoop's client, tried on local files."""

import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kanon_spark.engine.hadoop import HadoopStore, default_scheme
from kanon_spark.errors import LockedError, PlatformError
from kanon_spark.io.files import LocalStore, store_for
from kanon_spark.releases.lock import TargetLock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def root(tmp_path: Path) -> str:
    return f"file://{tmp_path}"


@pytest.fixture
def store(spark: "SparkSession", root: str) -> HadoopStore:
    return HadoopStore(spark, root)


def test_files_and_folders(store: HadoopStore, root: str, tmp_path: Path) -> None:
    assert not store.exists(f"{root}/a") and store.list(f"{root}/a") == []
    store.mkdirs(f"{root}/a/b c", mode=0o700)
    assert stat.S_IMODE((tmp_path / "a" / "b c").stat().st_mode) == 0o700
    assert store.is_dir(f"{root}/a/b c")
    store.write_text(f"{root}/a/x", "ü\n")
    store.write_text(f"{root}/a/x", "replaced ü\n", private=True)
    assert store.read_text(f"{root}/a/x") == "replaced ü\n"
    assert stat.S_IMODE((tmp_path / "a" / "x").stat().st_mode) == 0o600
    assert not store.is_dir(f"{root}/a/x")
    assert abs(store.modified_time(f"{root}/a/x") - time.time()) < 60
    assert store.list(f"{root}/a") == ["b c", "x"]
    assert store.delete(f"{root}/a") and not store.delete(f"{root}/a")


def test_rename_never_replaces_and_never_moves_inside(store: HadoopStore, root: str) -> None:
    store.mkdirs(f"{root}/a")
    store.mkdirs(f"{root}/b")
    with pytest.raises(FileExistsError):
        store.rename(f"{root}/a", f"{root}/b")
    store.rename(f"{root}/a", f"{root}/c")
    assert store.list(root) == ["b", "c"]
    with pytest.raises(OSError, match=r"renamed|refused"):
        store.rename(f"{root}/none", f"{root}/d")


def test_exclusive_creation_and_missing_files(store: HadoopStore, root: str) -> None:
    assert store.create_exclusive(f"{root}/deep/lock", "one")
    assert not store.create_exclusive(f"{root}/deep/lock", "two")
    assert store.read_text(f"{root}/deep/lock") == "one"
    with pytest.raises(FileNotFoundError):
        store.read_text(f"{root}/none")
    with pytest.raises(FileNotFoundError):
        store.modified_time(f"{root}/none")


def test_it_can_carry_the_lock(store: HadoopStore, root: str) -> None:
    path = f"{root}/.x._kanon_lock"
    with TargetLock(store, path, run_id="a", lease=0.6) as lock:
        time.sleep(0.5)
        lock.assert_held()
        with pytest.raises(LockedError):
            TargetLock(store, path, run_id="b", lease=5).acquire()
    with TargetLock(store, path, run_id="b", lease=5):
        pass
    assert store.list(root) == []


def test_stores_are_chosen_by_scheme(spark: "SparkSession", root: str) -> None:
    assert default_scheme(spark) == "file"
    assert isinstance(store_for(spark, root), LocalStore)
    with pytest.raises(PlatformError, match="nosuchstore"):
        store_for(spark, "nosuchstore://host/x")
