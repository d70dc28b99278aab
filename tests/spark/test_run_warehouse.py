"""Whole runs into Delta, Iceberg and PostgreSQL tables: failures, kill -9, a second run, and a reader all the while.

The sources are tables of the same kind. Each world goes through one life, in the order of the tests' text.
"""

import json
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from own_processes import run_kanon
from run_world import KEPT, World, smallest_class
from warehouse import Backend, backend

from kanon_spark.engine.stages import StageEvent
from kanon_spark.errors import InternalError
from kanon_spark.releases.gc import collect_garbage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QIS = {"age": {"hierarchy": {"interval": {"widths": [5, 10]}}}, "sex": {"hierarchy": "flat"}}
PASSWORD = "KANON_TEST_PASSWORD"
PAUSE = 1.0  # seconds between two looks of the reader


class Reader(threading.Thread):
    """Somebody who reads the target over and over, and remembers every table that was seen."""

    def __init__(self, read: Callable[[], list[tuple[Any, ...]]]) -> None:
        super().__init__(daemon=True)
        self._read, self._stop_it = read, threading.Event()
        self.seen: set[tuple[str, ...]] = set()
        self.looks = 0
        self.errors: list[str] = []

    def run(self) -> None:
        while not self._stop_it.is_set():
            try:
                self.seen.add(form(self._read()))
                self.looks += 1
            except Exception as error:
                self.errors.append(f"{type(error).__name__}: {error}"[:300])
            self._stop_it.wait(PAUSE)

    def stop(self) -> None:
        self._stop_it.set()
        self.join()


def form(rows: list[tuple[Any, ...]]) -> tuple[str, ...]:
    return tuple(sorted(map(repr, rows)))


def source_of(kind: str, place: Backend, world: World, table: "DataFrame") -> dict[str, Any]:
    """The raw table, as a table of the same kind."""
    if kind == "postgres":
        jdbc = {**place.sink["jdbc"], "table": f"{place.sink['jdbc']['table']}_raw"}
        connection = {"url": jdbc["url"], "user": jdbc["user"], "password": jdbc["password"]}
        table.write.format("jdbc").options(**connection, dbtable=jdbc["table"]).save()
        return {"jdbc": {**jdbc, "password": f"${{{PASSWORD}}}"}}
    if kind == "iceberg":
        name = f"{place.sink['table']}_raw"
        table.writeTo(name).using("iceberg").create()
        return {"table": name, "format": "iceberg"}
    table.write.format("delta").save(str(world.folder / "data" / "raw"))
    return {"path": "data/raw"}


def grow(kind: str, source: dict[str, Any], world: World, table: "DataFrame") -> None:
    """Somebody adds rows to the raw table while it is being anonymized."""
    if kind == "iceberg":
        table.writeTo(source["table"]).append()
    elif kind == "delta path":
        table.write.format("delta").mode("append").save(str(world.folder / "data" / "raw"))


# With --slow only; `test_io_warehouse.py` publishes, fails and undoes on each of them.
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["delta path", "iceberg", "postgres"])
def test_the_life_of_a_table(
    spark: "SparkSession",
    tmp_path: Path,
    repo: Path,
    server: Any,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    world, place = World(spark, tmp_path), backend(kind, spark, tmp_path, server)
    secret = str(place.sink.get("jdbc", {}).get("password", "no secret here"))
    monkeypatch.setenv(PASSWORD, secret)
    sink = {"jdbc": {**place.sink["jdbc"], "password": f"${{{PASSWORD}}}"}} if kind == "postgres" else place.sink
    raw = spark.createDataFrame([(20 + n * 7 % 13, "mf"[n % 2], n) for n in range(40)], "age int, sex string, n int")
    source = source_of(kind, place, world, raw)
    common: dict[str, Any] = {"source": source, "sink": sink, "method": {"name": "datafly"}}

    def late(event: StageEvent) -> None:
        if (event.stage, event.state) == ("signatures", "end"):
            grow(kind, source, world, raw)

    world._hear = late  # type: ignore[method-assign]
    first = world.run(world.job(QIS, k=2, **common))
    world._hear = lambda event: None  # type: ignore[method-assign]
    assert first.manifest["rows"]["released"] == 40, "every pass has read the pinned version"
    assert smallest_class(first.table, ["age", "sex"]) >= 2
    if kind != "postgres":
        assert isinstance(first.manifest["source"]["version"], int)
    first.table.explain(True)  # printed, and looked through below
    old = form(place.read())
    reader = Reader(place.read)
    reader.start()
    try:
        # Restoring a Delta table takes its time: test_io_warehouse.py does that.
        point = "publish:between" if kind == "delta path" else "publish:committed"
        monkeypatch.setenv("KANON_FAIL_AT", point)
        with pytest.raises(InternalError, match=f"failpoint '{point}'"):
            world.run(world.job(QIS, k=3, **common))
        assert form(place.read()) == old
        assert world.left_in_work() == KEPT
        monkeypatch.delenv("KANON_FAIL_AT")

        config = world.config_file(QIS, name="killed", k=3, **common)
        killed = run_killed(spark, repo, config, "publish:between")
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert form(place.read()) == old
        removed = collect_garbage(spark, world.job(QIS, k=3, **common))
        assert any("staged" in name or "branch_kanon" in name for name in removed)
        assert form(place.read()) == old
        assert world.left_in_work() == KEPT
        assert collect_garbage(spark, world.job(QIS, k=3, **common)) == []

        second = world.run(world.job(QIS, k=4, **common))
        new = form(place.read())
    finally:
        reader.stop()
    assert smallest_class(second.table, ["age", "sex"]) >= 4
    assert second.verify().passed
    assert new != old
    assert reader.errors == []
    assert reader.looks > 3
    # Exactly: a run that failed after its commit was in sight for a moment, whole and verified. The same configuration
    # on the same rows gives the same release, so that it can be made once more to compare.
    undone = world.run(world.job(QIS, k=3, **{**common, "sink": None})).table
    assert reader.seen <= {old, new, form([tuple(row) for row in undone.collect()])}
    assert old in reader.seen
    told = capfd.readouterr()
    texts = told.out + told.err + killed.stdout + killed.stderr + world.manifest.read_text(encoding="utf-8")
    assert secret not in texts


def run_killed(spark: "SparkSession", repo: Path, config: Path, point: str) -> "subprocess.CompletedProcess[str]":
    """The command in a process of its own, which dies at the point."""
    lake = spark.conf.get("spark.sql.catalog.ice.warehouse")
    settings = {
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": lake,
        "spark.driver.memory": "1g",
    }
    arguments = " ".join(f"--conf {key}={value}" for key, value in settings.items())
    return run_kanon(repo, config, KANON_KILL_AT=point, PYSPARK_SUBMIT_ARGS=f"{arguments} pyspark-shell")


def test_a_pointer_leads_to_whole_releases(spark: "SparkSession", tmp_path: Path) -> None:
    world, place = World(spark, tmp_path), backend("pointer", spark, tmp_path, pytest.fail)
    world.save(spark.createDataFrame([(20 + n % 5, "mf"[n % 2], n) for n in range(30)], "age int, sex string, n int"))
    common: dict[str, Any] = {"sink": place.sink, "method": {"name": "datafly"}}
    world.run(world.job(QIS, k=2, **common))
    old = form(place.read())
    assert len(old) == 30
    release = world.run(world.job(QIS, k=3, **common))
    assert form([tuple(row) for row in release.table.collect()]) == form(place.read())
    facts = json.loads((world.sink / "_current").read_text(encoding="utf-8"))
    assert facts["k"] == 3
    assert len(list((world.sink / "_releases").iterdir())) == 2, "who still reads the one before can finish"
    world.run(world.job(QIS, k=4, **common))
    assert len(list((world.sink / "_releases").iterdir())) == 2
    assert world.left_beside() == []
