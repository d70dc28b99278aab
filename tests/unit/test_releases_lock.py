"""The lock: one holder, a heartbeat, staleness, and races between processes."""

import json
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kanon_spark.errors import LockedError
from kanon_spark.io.files import LocalStore
from kanon_spark.releases.lock import TargetLock
from kanon_spark.releases.owner import Owner, birth_of, process_lives


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "out" / ".people._kanon_lock")


def lock_of(path: str, run_id: str, lease: float = 5.0) -> TargetLock:
    return TargetLock(LocalStore(), path, run_id=run_id, lease=lease)


def text_of(run_id: str, **changes: object) -> str:
    return json.dumps({**json.loads(Owner.me(run_id, 5.0).to_text()), **changes})


@pytest.fixture
def dead_pid() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    yield process.pid


def test_a_second_run_is_refused_and_told_why(path: str) -> None:
    with lock_of(path, "first", lease=60):
        with pytest.raises(LockedError) as caught:
            lock_of(path, "second").acquire()
        text = str(caught.value)
        assert caught.value.exit_code == 5
        assert "first" in text and "sign of life" in text and "goes stale in" in text
    with lock_of(path, "second"):
        assert json.loads(Path(path).read_text())["run_id"] == "second"
    assert not Path(path).exists()


def test_the_heartbeat_keeps_a_short_lease_alive(path: str) -> None:
    with lock_of(path, "first", lease=1.2) as lock:
        for _ in range(4):
            time.sleep(0.4)
            with pytest.raises(LockedError):
                lock_of(path, "second").acquire()
        lock.assert_held()


def test_a_silent_holder_loses_the_lock_and_notices(path: str) -> None:
    first = lock_of(path, "first", lease=0.3)
    first.acquire()
    assert first._heartbeat is not None
    first._heartbeat.stop()  # as a driver that hangs
    time.sleep(0.5)
    with lock_of(path, "second"):
        with pytest.raises(LockedError, match="lost the lock"):
            first.assert_held()
        first.release()  # must not take the new holder's lock away
        assert json.loads(Path(path).read_text())["run_id"] == "second"


def test_a_dead_process_of_this_machine_is_stale_at_once(path: str, dead_pid: int) -> None:
    LocalStore().write_text(path, text_of("killed", pid=dead_pid, birth="1"))
    with lock_of(path, "next") as lock:
        lock.assert_held()


def test_a_reused_process_id_is_not_taken_for_the_holder(path: str) -> None:
    LocalStore().write_text(path, text_of("killed", pid=os.getpid(), birth="1"))
    if not birth_of(os.getpid()):
        pytest.skip("this system does not tell when processes began")
    with lock_of(path, "next") as lock:
        lock.assert_held()


def test_another_machine_is_judged_by_its_heartbeat_only(path: str, dead_pid: int) -> None:
    store = LocalStore()
    store.write_text(path, text_of("far", machine="elsewhere", pid=dead_pid))
    with pytest.raises(LockedError):
        lock_of(path, "next").acquire()
    store.write_text(path, text_of("far", machine="elsewhere", pid=dead_pid, beat=time.time() - 6))
    lock_of(path, "next").acquire()


def test_the_holder_s_own_lease_counts(path: str) -> None:
    LocalStore().write_text(path, text_of("far", machine="elsewhere", beat=time.time() - 6, lease=60.0))
    with pytest.raises(LockedError):
        lock_of(path, "next", lease=1.0).acquire()


def test_a_lock_that_makes_no_sense_goes_stale_by_age(path: str) -> None:
    store = LocalStore()
    store.write_text(path, "")
    with pytest.raises(LockedError):
        lock_of(path, "next").acquire()
    os.utime(path, (time.time() - 10, time.time() - 10))
    with lock_of(path, "next"):
        pass


def test_a_lock_that_changed_hands_while_it_was_broken_is_given_back(path: str) -> None:
    store = LocalStore()
    stale = Owner.from_text(text_of("dead", beat=time.time() - 100))
    assert stale is not None
    live = text_of("live")
    store.write_text(path, live)
    lock_of(path, "breaker")._break(stale)
    assert store.read_text(path) == live
    assert store.list(str(Path(path).parent)) == [Path(path).name]


def test_who_comes_second_to_a_stale_lock_waits_for_the_first(path: str, dead_pid: int) -> None:
    store, turn = LocalStore(), path + ".breaking"
    stale = text_of("killed", pid=dead_pid, birth="1")
    store.write_text(path, stale)
    store.write_text(turn, "")
    with pytest.raises(LockedError, match="all the time"):
        lock_of(path, "second").acquire()
    assert store.read_text(path) == stale and store.exists(turn)
    os.utime(turn, (time.time() - 10, time.time() - 10))  # the first has died over it
    with lock_of(path, "second"):
        assert not store.exists(turn)


def test_leftovers_of_dead_lockers_are_swept(path: str) -> None:
    old, young = Path(path + ".abc.tmp"), Path(path + ".run.stale")
    with lock_of(path, "first", lease=5):
        old.write_text("")
        young.write_text("")
        os.utime(old, (time.time() - 60, time.time() - 60))
    assert not old.exists() and young.exists()


def _compete(path: str, name: str, start: float, rounds: int, report: "multiprocessing.Queue[tuple[str, int]]") -> None:
    """Take the lock again and again; hold a file that must never be there twice."""
    inside, won = Path(path).parent / "inside", 0
    time.sleep(max(0.0, start - time.time()))
    for turn in range(rounds):
        lock = TargetLock(LocalStore(), path, run_id=f"{name}-{turn}", lease=5.0)
        try:
            lock.acquire()
        except LockedError:
            continue
        inside.open("x").close()  # fails if another process is inside
        lock.assert_held()
        inside.unlink()
        lock.release()
        won += 1
    report.put((name, won))


def test_processes_that_race_never_hold_it_together(path: str, dead_pid: int) -> None:
    LocalStore().write_text(path, text_of("killed", pid=dead_pid, birth="1"))  # they race to break it, too
    context = multiprocessing.get_context("fork")
    report: multiprocessing.Queue[tuple[str, int]] = context.Queue()
    start = time.time() + 0.3
    racers = [context.Process(target=_compete, args=(path, f"p{n}", start, 150, report)) for n in range(3)]
    for racer in racers:
        racer.start()
    wins = [report.get(timeout=60) for _ in racers]
    for racer in racers:
        racer.join()
    assert all(racer.exitcode == 0 for racer in racers)
    assert sum(won for _, won in wins) > 0
    assert LocalStore().list(str(Path(path).parent)) == []


def test_breaking_a_stale_lock_is_won_by_one(path: str, dead_pid: int) -> None:
    for turn in range(5):
        LocalStore().write_text(path, text_of("killed", pid=dead_pid, birth="1"))
        context = multiprocessing.get_context("fork")
        with context.Pool(3) as pool:
            outcome = pool.starmap(_try_once, [(path, f"t{turn}-{n}") for n in range(3)])
        assert outcome.count("held") == 1, outcome
        Path(path).unlink()


def _try_once(path: str, name: str) -> str:
    lock = TargetLock(LocalStore(), path, run_id=name, lease=60.0)
    try:
        lock.acquire()
    except LockedError:
        return "locked"
    time.sleep(0.3)  # long enough for the others to have looked
    lock.assert_held()
    return "held"


def test_liveness_of_processes(dead_pid: int) -> None:
    me = os.getpid()
    assert process_lives(me, birth_of(me))
    assert not process_lives(dead_pid, "")
    zombie = subprocess.Popen([sys.executable, "-c", "pass"])
    time.sleep(0.5)
    alive = process_lives(zombie.pid, "")
    zombie.wait()
    assert not alive or not Path("/proc").exists()
