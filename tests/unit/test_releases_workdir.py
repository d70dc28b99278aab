"""The work directory, its owner files, and what `gc` removes and keeps."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from io_fakes import FakeSpark, folder_of, job

from kanon_spark.config.loader import LoadedConfig
from kanon_spark.config.models import Config
from kanon_spark.engine.stages import new_run_id
from kanon_spark.errors import ConfigError, TargetError
from kanon_spark.io.files import LocalStore
from kanon_spark.io.sinks import publisher_for
from kanon_spark.releases.gc import collect_garbage
from kanon_spark.releases.lock import TargetLock
from kanon_spark.releases.owner import Owner
from kanon_spark.releases.workdir import RUN_ID, WorkDir, split_entry, work_dir_path

A, B, C = "20250101T000000_aaaaaaaa", "20250102T000000_bbbbbbbb", "20250103T000000_cccccccc"


def open_work(loaded: LoadedConfig, run_id: str = A) -> WorkDir:
    return WorkDir.open(FakeSpark(), loaded.config, loaded.base_dir, run_id)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def put(work: WorkDir, *what: str) -> None:
    for entry in what:
        folder_of(work.path(entry), part="raw")


def dead(folder: Path, run_id: str, *what: str, target: str | None, done: bool = False, **changes: object) -> None:
    """Entries of a run whose process is gone."""
    folder.mkdir(mode=0o700, exist_ok=True)
    owner = json.loads(Owner.me(run_id, 5.0).to_text())
    owner.update({"pid": 2**22 + 1, "birth": "1", "target": target, "done": done, **changes})
    (folder / f"_kanon_{run_id}_owner.json").write_text(json.dumps(owner))
    for entry in what:
        folder_of(folder / f"_kanon_{run_id}_{entry}", part="raw")


def publish(loaded: LoadedConfig, run_id: str) -> None:
    assert loaded.config.sink is not None
    root = work_dir_path(FakeSpark(), loaded.config, loaded.base_dir)
    made = publisher_for(FakeSpark(), loaded.config.sink, base_dir=loaded.base_dir, run_id=run_id, work_root=root)
    folder_of(made.staged_path, rows=run_id)
    made.publish()


def gc(loaded: LoadedConfig, lock: TargetLock | None = None) -> list[str]:
    return collect_garbage(FakeSpark(), loaded, lock=lock)


def test_run_ids_and_entries_agree() -> None:
    run_id = new_run_id()
    assert split_entry(f"_kanon_{run_id}_recoding") == (run_id, "recoding")
    assert split_entry("notes.txt") is None and split_entry("_kanon_x_y") is None
    assert RUN_ID


def test_entries_are_private_and_named_after_the_run(tmp_path: Path) -> None:
    with open_work(job(tmp_path)) as work:
        assert work.path("signatures") == str(tmp_path / "work" / f"_kanon_{A}_signatures")
        assert stat.S_IMODE((tmp_path / "work").stat().st_mode) == 0o700
        assert names(tmp_path / "work") == {f"_kanon_{A}_owner.json"}
    assert names(tmp_path / "work") == set()


def test_default_place_is_beside_the_configuration(tmp_path: Path) -> None:
    loaded = job(tmp_path, execution={})
    assert work_dir_path(FakeSpark(), loaded.config, tmp_path) == str(tmp_path / ".kanon")


def test_a_cluster_needs_a_shared_place(tmp_path: Path) -> None:
    loaded = job(tmp_path, execution={})
    with pytest.raises(ConfigError, match="share") as caught:
        work_dir_path(FakeSpark("spark://host:7077"), loaded.config, tmp_path)
    assert caught.value.exit_code == 2 and "name a shared path" in str(caught.value)


@pytest.mark.parametrize("work_dir", ["out", "out/people", "out/people/work", "."])
def test_raw_data_stays_away_from_the_release(tmp_path: Path, work_dir: str) -> None:
    # The loader refuses some of these by their text alone; here links and relative parts are followed.
    (tmp_path / "alias").symlink_to(tmp_path)
    config = Config.model_validate(
        {
            "columns": {"quasi_identifiers": ["age"]},
            "sink": {"path": "out/people"},
            "execution": {"work_dir": f"alias/{work_dir}"},
        }
    )
    with pytest.raises(ConfigError, match="work directory"):
        work_dir_path(FakeSpark(), config, tmp_path)


def test_patterns_and_unwritable_places_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="pattern"):
        open_work(job(tmp_path, execution={"work_dir": "w*"}))
    (tmp_path / "file").write_text("")
    with pytest.raises(TargetError, match="cannot be used"):
        open_work(job(tmp_path, execution={"work_dir": str(tmp_path / "file" / "work")}))


def test_an_open_folder_is_closed_unless_others_use_it(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    folder.chmod(0o755)
    open_work(job(tmp_path)).forget(keep=())
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o755)
    (folder / "thesis.tex").write_text("")
    with pytest.raises(ConfigError, match="open to others"):
        open_work(job(tmp_path))


def test_success_keeps_the_recoding_and_retires_the_one_before(tmp_path: Path) -> None:
    loaded = job(tmp_path)
    for run_id in (A, B):
        with open_work(loaded, run_id) as work:
            put(work, "signatures", "recoding", "recoding_texts", "source")
            publish(loaded, run_id)
    assert names(tmp_path / "work") == {f"_kanon_{B}_{what}" for what in ("owner.json", "recoding", "recoding_texts")}
    assert gc(loaded) == []


def test_failure_keeps_nothing(tmp_path: Path) -> None:
    loaded = job(tmp_path)
    with open_work(loaded, A) as work:
        put(work, "recoding")
        publish(loaded, A)
    with pytest.raises(ValueError, match="boom"), open_work(loaded, B) as work:
        put(work, "signatures", "recoding")
        raise ValueError("boom")
    assert names(tmp_path / "work") == {f"_kanon_{A}_owner.json", f"_kanon_{A}_recoding"}


def test_jobs_that_share_a_work_directory_do_not_retire_each_other(tmp_path: Path) -> None:
    one, two = job(tmp_path), job(tmp_path, sink={"path": str(tmp_path / "out" / "others")})
    for loaded, run_id in ((one, A), (two, B)):
        with open_work(loaded, run_id) as work:
            put(work, "recoding")
            publish(loaded, run_id)
    assert gc(one) == [] and gc(two) == []
    assert {f"_kanon_{A}_recoding", f"_kanon_{B}_recoding"} <= names(tmp_path / "work")


def test_gc_removes_what_a_killed_run_left_everywhere(tmp_path: Path) -> None:
    loaded = job(tmp_path)
    publish(loaded, A)
    dead(tmp_path / "work", B, "signatures", "domains", "recoding", target=str(tmp_path / "out" / "people"))
    folder_of(tmp_path / "out" / f".people._kanon_{B}_staged", rows="unverified")
    (tmp_path / "out" / ".people._kanon_lock").write_text((tmp_path / "work" / f"_kanon_{B}_owner.json").read_text())
    removed = gc(loaded)
    assert set(removed) >= {f"_kanon_{B}_signatures", f"_kanon_{B}_recoding", f".people._kanon_{B}_staged"}
    assert names(tmp_path / "work") == set()
    assert names(tmp_path / "out") == {"people"}
    assert gc(loaded) == []


def test_gc_keeps_the_recoding_of_a_run_killed_after_its_swap(tmp_path: Path) -> None:
    loaded = job(tmp_path)
    publish(loaded, B)
    dead(tmp_path / "work", B, "signatures", "recoding", target=str(tmp_path / "out" / "people"))
    assert gc(loaded) == [f"_kanon_{B}_signatures"]
    assert names(tmp_path / "work") == {f"_kanon_{B}_owner.json", f"_kanon_{B}_recoding"}


def test_gc_removes_the_recoding_of_a_release_that_is_gone(tmp_path: Path) -> None:
    loaded = job(tmp_path)
    target = str(tmp_path / "out" / "people")
    dead(tmp_path / "work", A, "recoding", target=target, done=True)
    other = job(tmp_path, sink={"path": str(tmp_path / "out" / "others")})
    assert gc(other) == []  # it cannot know whether that target is just being swapped
    assert f"_kanon_{A}_recoding" in gc(loaded)


def test_gc_touches_no_live_run(tmp_path: Path) -> None:
    loaded = job(tmp_path)
    publish(loaded, A)
    work = open_work(loaded, B)
    put(work, "signatures", "recoding")
    staged = folder_of(tmp_path / "out" / f".people._kanon_{B}_staged")
    with TargetLock(LocalStore(), str(tmp_path / "out" / ".people._kanon_lock"), run_id=B, lease=5) as lock:
        assert gc(loaded) == []
        assert staged.exists()
        assert gc(loaded, lock) == []  # the run itself, at its start
        lock.assert_held()
    work.forget(keep=())


def test_gc_judges_other_machines_by_their_heartbeat(tmp_path: Path) -> None:
    loaded = job(tmp_path)
    dead(tmp_path / "work", A, "signatures", target=None, machine="elsewhere")
    dead(tmp_path / "work", B, "signatures", target=None, machine="elsewhere", beat=time.time() - 60)
    assert set(gc(loaded)) == {f"_kanon_{B}_signatures", f"_kanon_{B}_owner.json"}


def test_a_recoding_without_target_lives_as_long_as_its_process(tmp_path: Path) -> None:
    loaded = job(tmp_path, sink=None)
    with open_work(loaded, A) as work:
        put(work, "recoding")
    dead(tmp_path / "work", B, "recoding", target=None, done=True)
    assert set(gc(loaded)) == {f"_kanon_{B}_recoding", f"_kanon_{B}_owner.json"}
    assert f"_kanon_{A}_recoding" in names(tmp_path / "work")


def test_entries_without_owner_go_when_they_are_old(tmp_path: Path) -> None:
    loaded = job(tmp_path)
    folder = folder_of(tmp_path / "work" / f"_kanon_{C}_signatures")
    (tmp_path / "work" / "notes.txt").write_text("not ours")
    assert gc(loaded) == []
    os.utime(folder, (time.time() - 600, time.time() - 600))
    assert gc(loaded) == [f"_kanon_{C}_signatures"]
    assert names(tmp_path / "work") == {"notes.txt"}


def test_gc_of_nothing_makes_nothing(tmp_path: Path) -> None:
    assert gc(job(tmp_path)) == []
    assert list(tmp_path.iterdir()) == []


def test_a_process_killed_with_its_raw_files_is_cleaned_up_after(tmp_path: Path) -> None:
    program = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from test_releases_workdir import A, job, open_work, put
work = open_work(job(Path({str(tmp_path)!r})), A)
put(work, "signatures", "recoding")
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -signal.SIGKILL
    assert f"_kanon_{A}_signatures" in names(tmp_path / "work")
    gc(job(tmp_path))
    assert names(tmp_path / "work") == set()


def test_the_owner_file_gives_signs_of_life(tmp_path: Path) -> None:
    work = open_work(job(tmp_path, execution={"work_dir": str(tmp_path / "work"), "lease": 0.3}))
    path = Path(work.path("owner.json"))
    first = json.loads(path.read_text())["beat"]
    time.sleep(0.4)
    assert json.loads(path.read_text())["beat"] > first
    work.forget(keep=())
    assert names(tmp_path / "work") == set()
