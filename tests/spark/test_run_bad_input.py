"""What a new user gets wrong: each a short message with the fix and the documented exit code, and never a raw value."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from own_processes import run_kanon
from run_world import KEPT, World

from kanon_spark.cli.main import invoke
from kanon_spark.engine.stages import new_run_id
from kanon_spark.io.files import LocalStore
from kanon_spark.releases.lock import TargetLock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CANARY = "Zoltán-Canary"
SCHEMA = "age int, job string, tags array<string>, note string"
SCREEN = 25


@pytest.fixture(scope="module")
def world(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> World:
    """A table with a value that must never be shown, and files to get wrong."""
    world = World(spark, tmp_path_factory.mktemp("bad"))
    rows = [(30 + n % 4, "nurse", ["x"], CANARY) for n in range(12)] + [(77, CANARY, [CANARY], CANARY)]
    world.save(spark.createDataFrame(rows, SCHEMA))
    world.save(spark.createDataFrame([], SCHEMA), "empty")
    world.save(spark.createDataFrame(rows[:1], SCHEMA), "one")
    world.save(spark.createDataFrame(rows[:1] * 7, SCHEMA), "equal")
    world.write("data/garbage.parquet", CANARY)
    world.write("jobs.csv", "nurse;medical;*", "clerk;office;*")
    world.write("loop.csv", "nurse;medical;care;*", "doctor;medical;cure;*")
    world.write("ragged.csv", "nurse;medical;*", "doctor;*")
    world.write("out/a_file", "of somebody else's")
    world.write("out/strange/notes.txt", "mine")
    return world


def job(**options: Any) -> Callable[[World], Path]:
    qis = options.pop("qis", {"age": None, "job": None})
    return lambda world: world.config_file(qis, **options)


def hierarchy(name: str, **more: Any) -> dict[str, Any]:
    return {"age": None, "job": {"hierarchy": {"csv": {"path": name, **more}}}}


BAD: dict[str, tuple[Callable[[World], Path], int, list[str]]] = {
    "no such configuration": (lambda world: world.folder / "jobb.yaml", 2, ["jobb.yaml"]),
    "no such source": (job(source={"path": "data/tabel"}), 2, ["data/tabel", "table"]),
    "not a parquet file": (job(source={"path": "data/garbage.parquet"}), 2, ["garbage.parquet"]),
    "empty table": (job(source={"path": "data/empty"}), 3, ["no row"]),
    "one row": (job(source={"path": "data/one"}), 3, ["1 rows", "k = 3", "lower k"]),
    "k above n": (job(k=14), 3, ["13 rows", "k = 14"]),
    "unknown key": (job(privcy={"k": 3}), 2, ["privcy", "privacy"]),
    "misspelt column": (job(qis=["agge", "job"]), 2, ["agge", "age"]),
    "column without a role": (job(columns={"other": "error"}), 3, ["tags", "note", "columns.other"]),
    "hierarchy misses values": (job(qis=hierarchy("jobs.csv")), 3, ["job", "1", "unknown: root"]),
    "not a tree": (job(qis=hierarchy("loop.csv")), 2, ["loop.csv:2", "medical"]),
    "ragged": (job(qis=hierarchy("ragged.csv")), 2, ["ragged.csv:2"]),
    "no such hierarchy": (job(qis=hierarchy("job.csv")), 2, ["job.csv"]),
    "a hierarchy of another type": (
        job(qis={"job": {"hierarchy": {"interval": {"widths": [5]}}}}),
        2,
        ["columns.quasi_identifiers.job"],
    ),
    "nested quasi-identifier": (job(qis=["age", "tags"]), 3, ["tags", "array<string>"]),
    "unwritable target": (job(sink={"path": "out/a_file/release"}), 2, ["sink.path", "a_file"]),
    "target is a file": (job(sink={"path": "out/a_file"}), 2, ["sink.path", "a file"]),
    "target is somebody's folder": (job(sink={"path": "out/strange"}), 2, ["sink.path", "not overwritten"]),
    "target is the source": (job(sink={"path": "data/table"}), 2, ["sink.path", "source"]),
    "a condition that is none": (job(source={"path": "data/table", "where": "age <"}), 2, ["source.where", "age"]),
    "another database": (
        job(sink={"jdbc": {"url": "jdbc:mysql://localhost/db", "table": "t"}}),
        2,
        ["sink.jdbc.url", "only PostgreSQL"],
    ),
    "too much suppression": (
        job(qis={"age": {"hierarchy": {"interval": {"widths": [10]}}, "max_level": 1}}),
        4,
        ["1 of 13 rows", "max_suppression", "nothing was published"],
    ),
}


def check_message(text: str, *, words: list[str]) -> None:
    assert len(text.splitlines()) <= SCREEN
    assert "Traceback" not in text
    assert "\tat " not in text
    assert CANARY not in text
    assert "Zolt" not in text
    for word in words:
        assert word in text, f"{word!r} is missing in: {text}"


@pytest.mark.parametrize("case", BAD)
def test_bad_input(world: World, capsys: pytest.CaptureFixture[str], case: str) -> None:
    make, code, words = BAD[case]
    path = make(world)
    found = invoke(["run", str(path), "--quiet"])
    told = capsys.readouterr()
    assert (found, told.out) == (code, ""), told.err
    check_message(told.err, words=words)
    assert any(way_out in told.err for way_out in ("fix: ", "did you mean", "another", "only PostgreSQL")), told.err
    assert not world.sink.exists()
    assert world.left_in_work() == []
    assert [name for name in world.left_beside() if name not in {"a_file", "strange"}] == []
    assert (world.folder / "out" / "a_file").read_text(encoding="utf-8").startswith("of somebody")


def test_a_locked_target_says_who_holds_it(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    lock = world.sink.parent / f".{world.sink.name}._kanon_lock"
    holder = new_run_id()
    with TargetLock(LocalStore(), str(lock), run_id=holder, lease=60):
        assert invoke(["run", str(job()(world)), "--quiet"]) == 5
    told = capsys.readouterr().err
    check_message(told, words=[holder, "fix: wait"])
    assert world.left_in_work() == []
    assert not world.sink.exists()


def test_what_looks_bad_but_is_not(spark: "SparkSession", world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """All rows equal, and a hierarchy that misses values but says what to do with them."""
    equal = job(name="equal", source={"path": "data/equal"}, sink={"path": "fine/equal"}, k=7)(world)
    assert invoke(["run", str(equal), "--quiet"]) == 0
    assert spark.read.parquet(str(world.folder / "fine" / "equal")).count() == 7
    told = capsys.readouterr()
    assert told.out == told.err == ""

    qis = hierarchy("jobs.csv", unknown="root")
    fine = job(
        name="fine", qis=qis, sink={"path": "fine/root"}, columns={"identifiers": ["note", "tags"], "other": "drop"}
    )(world)
    assert invoke(["run", str(fine)]) == 0
    rows = spark.read.parquet(str(world.folder / "fine" / "root")).collect()
    assert {row["job"] for row in rows} <= {"nurse", "*"}
    assert sum(row["job"] == "*" for row in rows) >= 3
    told = capsys.readouterr()
    assert "Traceback" not in told.err
    assert CANARY not in told.err
    assert world.left_in_work() == sorted(KEPT * 2), "one recoding for each target"


def test_no_java(world: World, repo: Path, tmp_path: Path) -> None:
    """In a process of its own, in which no Java is to be found."""
    env = {"PATH": str(tmp_path), "PYTHONPATH": str(repo), "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    start = "from kanon_spark.cli.main import main; main()"
    command = [sys.executable, "-c", start, "run", str(job()(world)), "--quiet"]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 2, ended.stderr
    check_message(ended.stderr, words=["Java", "JAVA_HOME", "fix"])


def test_the_whole_process_stays_quiet(world: World, repo: Path) -> None:
    """Spark's own log included: a message and nothing else, in a process of its own as a user starts it."""
    path = job(name="alone", qis=hierarchy("jobs.csv"))(world)
    ended = run_kanon(repo, path)
    assert (ended.returncode, ended.stdout) == (3, ""), ended.stderr
    check_message(ended.stderr, words=["job", "unknown: root"])
