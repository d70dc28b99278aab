"""The swap of a path: at whatever point it stops, a release stands at the target or the next run puts one there."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from io_fakes import FakeSpark, folder_of, job

from kanon_spark.config.models import SinkSpec, SourceSpec
from kanon_spark.errors import InternalError, TargetError
from kanon_spark.io.path_sink import PathPublisher
from kanon_spark.io.sinks import published_run_id, publisher_for

OLD, NEW, NEXT = "20250101T000000_aaaaaaaa", "20250102T000000_bbbbbbbb", "20250103T000000_cccccccc"


def publisher(folder: Path, run_id: str = NEW, **sink: object) -> PathPublisher:
    made = publisher_for(
        FakeSpark(),
        SinkSpec.model_validate({"path": "out/people", **sink}),
        base_dir=folder,
        run_id=run_id,
        work_root=str(folder / "work"),
    )
    assert isinstance(made, PathPublisher)
    return made


def stage(made: PathPublisher, text: str) -> None:
    folder_of(made.staged_path, rows=text)


def content(folder: Path) -> str:
    return (folder / "out" / "people" / "rows").read_text()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder in which a run has published the text `old`."""
    made = publisher(tmp_path, OLD)
    stage(made, "old")
    made.publish({"k": 5, "rows": 10})
    return tmp_path


def beside(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "out").iterdir() if path.name != "people")


def test_publishing_replaces_and_leaves_nothing_beside(home: Path) -> None:
    made = publisher(home)
    stage(made, "new")
    made.publish({"k": 7})
    assert content(home) == "new"
    assert beside(home) == []
    facts = made.published()
    assert facts is not None and (facts["run_id"], facts["k"], facts["format"]) == (NEW, 7, "parquet")
    assert published_run_id(FakeSpark(), str(home / "out" / "people")) == NEW


def test_a_failure_between_the_renames_is_undone_at_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = publisher(home)
    stage(made, "new")
    monkeypatch.setenv("KANON_FAIL_AT", "publish:between")
    with pytest.raises(InternalError):
        made.publish()
    assert content(home) == "old"
    made.discard()
    assert beside(home) == []


def test_a_failed_second_rename_is_undone_at_once(home: Path) -> None:
    made = publisher(home)
    stage(made, "new")
    rename = made._store.rename

    def second_fails(source: str, target: str) -> None:
        if source == made.staged_path:
            raise OSError("no space left")
        rename(source, target)

    made._store.rename = second_fails  # type: ignore[method-assign]
    with pytest.raises(OSError, match="no space"):
        made.publish()
    assert content(home) == "old"


@pytest.mark.parametrize("had_old", [True, False])
@pytest.mark.parametrize(
    ("point", "after_recovery"), [("publish:between", "old"), ("publish:after", "new"), ("before", "old")]
)
def test_a_killed_swap_is_settled_by_the_next_run(
    tmp_path: Path, had_old: bool, point: str, after_recovery: str
) -> None:
    if had_old:
        first = publisher(tmp_path, OLD)
        stage(first, "old")
        first.publish()
    _kill_at(tmp_path, point)
    following = publisher(tmp_path, NEXT)
    assert following.has_leftovers() == (had_old or point != "publish:after")
    following.recover()
    if had_old or after_recovery == "new":
        assert content(tmp_path) == after_recovery
    else:
        assert not following.exists()
    assert beside(tmp_path) == []
    assert not following.has_leftovers()
    # and the target can be published to again
    stage(following, "next")
    following.publish()
    assert content(tmp_path) == "next"


def _kill_at(folder: Path, point: str) -> None:
    """Publish in another process that is killed with signal 9 on the way."""
    program = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from test_io_swap import NEW, publisher, stage
from kanon_spark.engine.stages import failpoint
made = publisher(Path({str(folder)!r}))
stage(made, "new")
failpoint("before")
made.publish()
"""
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "KANON_KILL_AT": point}, check=False)
    assert done.returncode == -signal.SIGKILL


def test_undo_brings_the_previous_release_back(home: Path) -> None:
    made = publisher(home)
    stage(made, "new")
    made.swap()
    assert content(home) == "new"
    made.undo()
    assert content(home) == "old"
    made.discard()
    assert beside(home) == []
    made.undo()  # nothing of this run is published: nothing happens
    assert content(home) == "old"


def test_a_release_that_stands_aside_without_reason_is_never_deleted(home: Path) -> None:
    folder_of(home / "out" / f".people._kanon_{NEW}_previous", rows="precious")
    assert publisher(home, NEXT).recover() == []
    assert content(home) == "old"
    assert beside(home) == [f".people._kanon_{NEW}_previous"]


def test_only_leftovers_of_this_target_are_touched(home: Path) -> None:
    folder_of(home / "out" / f".people2._kanon_{NEW}_staged")
    folder_of(home / "out" / ".people._kanon_lock.d")
    folder_of(home / "out" / f".people._kanon_{NEW}_staged")
    assert publisher(home, NEXT).recover() == [f".people._kanon_{NEW}_staged"]
    assert beside(home) == [".people._kanon_lock.d", f".people2._kanon_{NEW}_staged"]


@pytest.mark.parametrize("name", ["_SUCCESS", "_kanon.json"])
def test_what_spark_wrote_may_be_replaced(tmp_path: Path, name: str) -> None:
    (tmp_path / "out" / "people").mkdir(parents=True)
    (tmp_path / "out" / "people" / name).write_text("")
    publisher(tmp_path).check()


def test_an_empty_folder_may_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "out" / "people").mkdir(parents=True)
    made = publisher(tmp_path)
    made.check()
    stage(made, "new")
    made.publish()
    assert content(tmp_path) == "new"


def test_strangers_are_not_overwritten(tmp_path: Path) -> None:
    target = tmp_path / "out" / "people"
    target.mkdir(parents=True)
    (target / "thesis.tex").write_text("years of work")
    with pytest.raises(TargetError, match="neither a release"):
        publisher(tmp_path).check()
    (target / "thesis.tex").unlink()
    target.rmdir()
    target.write_text("a file")
    with pytest.raises(TargetError, match="is a file"):
        publisher(tmp_path).check()
    target.unlink()
    (tmp_path / "elsewhere").mkdir()
    target.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TargetError, match="symbolic link"):
        publisher(tmp_path).check()


def test_a_stranger_that_appears_during_the_run_is_not_overwritten(tmp_path: Path) -> None:
    made = publisher(tmp_path)
    made.check()
    stage(made, "new")
    folder_of(made.target, thesis="years of work").joinpath("_SUCCESS").unlink()
    with pytest.raises(TargetError, match="neither a release"):
        made.publish()
    assert (Path(made.target) / "thesis").exists()


@pytest.mark.parametrize("sink", ["file.txt/below/people", "/proc/nowhere/people"])
def test_unwritable_targets_are_refused_before_the_work(tmp_path: Path, sink: str) -> None:
    (tmp_path / "file.txt").write_text("")
    with pytest.raises(TargetError, match="cannot be written") as caught:
        publisher(tmp_path, path=sink).check()
    assert caught.value.exit_code == 2 and "fix:" in str(caught.value)


def test_checking_leaves_no_trace(tmp_path: Path) -> None:
    publisher(tmp_path, path="deep/down/people").check()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("source", ["out/people", "out", "out/people/part.parquet", "out/*"])
def test_source_and_release_must_lie_apart(tmp_path: Path, source: str) -> None:
    spec = SourceSpec.model_validate({"path": source})
    with pytest.raises(TargetError, match="must not be the source"):
        publisher(tmp_path).check(spec)
    publisher(tmp_path).check(SourceSpec.model_validate({"path": "out/people.csv"}))


@pytest.mark.parametrize("sink", ["work", "work/people", "."])
def test_work_directory_and_release_must_lie_apart(tmp_path: Path, sink: str) -> None:
    with pytest.raises(TargetError, match="must lie apart"):
        publisher(tmp_path, path=sink).check()


@pytest.mark.parametrize("sink", ["/", "out/peo*ple"])
def test_impossible_folders(tmp_path: Path, sink: str) -> None:
    with pytest.raises(TargetError, match="cannot be the folder"):
        publisher(tmp_path, path=sink)


def test_facts_are_json_and_cannot_be_faked_by_the_caller(tmp_path: Path) -> None:
    made = publisher(tmp_path, format="csv")
    stage(made, "new")
    made.publish({"run_id": "other", "rows": 3})
    facts = json.loads((Path(made.target) / "_kanon.json").read_text())
    assert facts["run_id"] == NEW and facts["rows"] == 3 and facts["read_options"]["multiLine"] == "true"


def test_configurations_lead_to_a_publisher(tmp_path: Path) -> None:
    loaded = job(tmp_path)
    assert loaded.config.sink is not None
    made = publisher_for(
        FakeSpark(), loaded.config.sink, base_dir=loaded.base_dir, run_id=NEW, work_root=str(tmp_path / "work")
    )
    assert made.target == str(tmp_path / "out" / "people")
    assert made.lock_path == str(tmp_path / "out" / ".people._kanon_lock")
    assert made.description()["format"] == "parquet"
