"""Paths and the local store."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from io_fakes import FakeSpark

from kanon_spark.errors import PlatformError
from kanon_spark.io.files import LocalStore, store_for
from kanon_spark.io.paths import is_same_or_inside, name_of, overlaps, parent_of, resolve


@pytest.mark.parametrize(
    ("path", "name", "parent"),
    [
        ("/a/b", "b", "/a"),
        ("/a", "a", "/"),
        ("/", "", "/"),
        ("s3a://bucket/x/y", "y", "s3a://bucket/x"),
        ("s3a://bucket", "", "s3a://bucket"),
        ("file:///a", "a", "file://"),
    ],
)
def test_names_and_parents(path: str, name: str, parent: str) -> None:
    assert (name_of(path), parent_of(path)) == (name, parent)


def test_relative_paths_start_at_the_configuration(tmp_path: Path) -> None:
    assert resolve("out/x/", tmp_path) == str(tmp_path / "out" / "x")
    assert resolve("/abs/x", tmp_path) == "/abs/x"
    assert resolve("file:/abs//x", tmp_path) == "file:///abs/x"
    assert resolve("S3A://b/x/", tmp_path) == "S3A://b/x"


def test_links_do_not_hide_that_one_path_lies_inside_another(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert is_same_or_inside(str(tmp_path / "link" / "x"), f"file://{tmp_path}/real")
    assert not is_same_or_inside(str(tmp_path / "really"), str(tmp_path / "real"))


@pytest.mark.parametrize(
    ("sink", "source", "expected"),
    [
        ("/d/out", "/d/in.csv", False),
        ("/d/in.csv", "/d/in.csv", True),
        ("/d", "/d/in.csv", True),
        ("/d/in/out", "/d/in", True),
        ("/d/out", "/d/*.csv", False),
        ("/d/out", "/d/*", True),
        ("/d/x/out", "/d/*", True),
        ("/d", "/d/x/*.csv", True),
        ("s3a://b/out", "s3a://b/out/in", True),
        ("s3a://b/out", "s3a://c/out", False),
    ],
)
def test_overlap_of_sink_and_source(sink: str, source: str, expected: bool) -> None:
    assert overlaps(sink, source) is expected


def test_rename_never_replaces(tmp_path: Path) -> None:
    store = LocalStore()
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()  # os.rename would silently replace an empty folder
    with pytest.raises(FileExistsError):
        store.rename(str(tmp_path / "a"), str(tmp_path / "b"))
    store.rename(str(tmp_path / "a"), f"file://{tmp_path}/c")
    assert store.list(str(tmp_path)) == ["b", "c"]


def test_delete_removes_a_link_and_not_what_it_leads_to(tmp_path: Path) -> None:
    store = LocalStore()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "data")
    assert store.delete(str(tmp_path / "link"))
    assert (tmp_path / "data" / "x").exists()
    assert store.delete(str(tmp_path / "data"))
    assert not store.delete(str(tmp_path / "data"))


def test_one_of_many_creates_a_file(tmp_path: Path) -> None:
    store, path = LocalStore(), str(tmp_path / "new" / "lock")
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda n: store.create_exclusive(path, f"text of {n}"), range(40)))
    assert won.count(True) == 1
    assert store.read_text(path) == f"text of {won.index(True)}"
    assert store.list(str(tmp_path / "new")) == ["lock"]


def test_exclusive_creation_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("this file system has no links")

    monkeypatch.setattr(os, "link", refuse)
    store, path = LocalStore(), str(tmp_path / "lock")
    assert store.create_exclusive(path, "a")
    assert not store.create_exclusive(path, "b")
    assert store.read_text(path) == "a"


def test_writing_replaces_at_once_and_can_be_private(tmp_path: Path) -> None:
    store, path = LocalStore(), tmp_path / "x"
    store.write_text(str(path), "one")
    store.write_text(str(path), "zwei ü\n", private=True)
    assert store.read_text(str(path)) == "zwei ü\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert store.list(str(tmp_path)) == ["x"]


def test_mode_is_given_to_a_new_folder_only(tmp_path: Path) -> None:
    store = LocalStore()
    store.mkdirs(str(tmp_path / "a" / "b"), mode=0o700)
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    store.mkdirs(str(tmp_path / "a"), mode=0o700)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) != 0o700


def test_store_for_local_paths(tmp_path: Path) -> None:
    assert isinstance(store_for(FakeSpark(), str(tmp_path)), LocalStore)
    assert isinstance(store_for(FakeSpark("spark://host:7077"), "file:///x"), LocalStore)


def test_connect_without_files_is_told_clearly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kanon_spark.engine.hadoop.is_connect", lambda spark: True)
    with pytest.raises(PlatformError, match="Spark Connect"):
        store_for(FakeSpark("sc://host"), "/data/x")
    assert isinstance(store_for(FakeSpark("local[2]"), "/data/x"), LocalStore)


def test_volumes_of_databricks_are_files_even_over_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "17.3")
    assert isinstance(store_for(None, "/Volumes/main/internal/kanon"), LocalStore)  # type: ignore[arg-type]
    monkeypatch.delenv("DATABRICKS_RUNTIME_VERSION")
    with pytest.raises(AttributeError):  # elsewhere the session is asked
        store_for(None, "/Volumes/main/internal/kanon")  # type: ignore[arg-type]
