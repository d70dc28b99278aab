"""Scheduled runs: keys, partitions, the ledger, time budgets; also when a run is killed between its steps."""

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from own_processes import run_kanon
from run_world import KEPT, World, smallest_class

from kanon_spark.config.loader import load_config
from kanon_spark.engine import runner
from kanon_spark.engine.stages import RunContext
from kanon_spark.errors import EmptyTableError, MissingInputError, RequestError, TargetError, TimeBudgetError
from kanon_spark.releases.ledger import Ledger, LedgerRow

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

QIS = {"age": {"hierarchy": {"interval": {"widths": [5, 10]}}}, "sex": None}


def table(spark: "SparkSession", days: int) -> "DataFrame":
    """Twenty rows for each day."""
    rows = [(20 + n * 7 % 13, "mf"[n % 2], n, f"2026-01-{1 + n // 20:02d}") for n in range(20 * days)]
    return spark.createDataFrame(rows, "age int, sex string, n int, day string").selectExpr(
        "age", "sex", "n", "cast(day as date) day"
    )


def job_file(world: World, **schedule: Any) -> Path:
    spec = {"run_key": "${NIGHT}", "ledger": "./ledger", **schedule}
    return world.config_file(QIS, schedule={key: value for key, value in spec.items() if value is not None})


def ledger_of(world: World) -> "pd.DataFrame":
    ledger = Ledger.of(world.spark, "./ledger", base_dir=world.folder, lock_root=str(world.work))
    return ledger.rows().toPandas().sort_values("run_id").reset_index(drop=True)


@pytest.fixture
def world(spark: "SparkSession", tmp_path: Path) -> World:
    return World(spark, tmp_path)


@pytest.mark.parametrize("nights", [4, pytest.param(10, marks=pytest.mark.slow)])
def test_nights_on_a_growing_table(world: World, repo: Path, nights: int) -> None:
    """Nights, the second one repeated, the third killed after its swap and then repeated."""
    spark, file = world.spark, job_file(world)

    def night(number: int) -> Any:
        return world.run(load_config(file, env={"NIGHT": f"night {number}"}))

    world.save(table(spark, 1))
    first = night(1)
    world.save(table(spark, 2))
    night(2)
    published = world.released()

    again = night(2)
    assert again.manifest["outcome"] == "repeated" and again.manifest["repeated_by"] != again.manifest["run_id"]
    assert world.released() == published, "nothing is published twice"
    assert again.table.count() == 40 and again.metrics["gcp"] == again.manifest["metrics"]["gcp"]
    assert again.verify().passed
    older = night(1)
    assert older.manifest["outcome"] == "repeated" and older.manifest["run_id"] == first.manifest["run_id"]
    assert world.released() == published, "an older key does not undo a newer one"

    world.save(table(spark, 3))
    killed = run_kanon(repo, file, NIGHT="night 3", KANON_KILL_AT="publish")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert list(ledger_of(world)["run_key"]).count("night 3") == 0
    third = night(3)
    assert third.manifest["outcome"] == "repeated", "the killed run had published"

    for number in range(4, nights + 1):
        world.save(table(spark, number))
        later = night(number)
        assert later.manifest["seconds"]["predicted"] > 0
        assert smallest_class(later.table, ["age", "sex"]) >= 3
    assert world.left_beside() == [] and world.left_in_work() == KEPT

    rows = ledger_of(world)
    assert list(zip(rows["run_key"], rows["outcome"], strict=True)) == [
        ("night 1", "published"),
        ("night 2", "published"),
        ("night 2", "repeated"),
        ("night 1", "repeated"),
        ("night 3", "published"),
        ("night 3", "repeated"),
        *((f"night {number}", "published") for number in range(4, nights + 1)),
    ]
    done = rows[rows["outcome"] == "published"]
    assert done["rows_input"].tolist() == [20 * number for number in range(1, nights + 1)]
    assert (done["rows_released"] == done["rows_input"]).all() and (done["k_achieved"] >= 3).all()
    assert done["gcp"].notna().all() and (done["exit_code"] == 0).all() and done["config_sha256"].nunique() == 1
    assert done["run_id"].is_unique


def test_a_dead_run_is_entered_by_the_next_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is gone is what a kill leaves; whether it had swapped decides what it was."""
    world.save(table(world.spark, 1))
    file = job_file(world)
    forgotten: list[Any] = []
    from kanon_spark.releases import workdir

    monkeypatch.setattr(workdir.WorkDir, "forget", lambda self, **_: forgotten.append(self) or [])
    monkeypatch.setenv("KANON_FAIL_AT", "verify")
    monkeypatch.setattr(Ledger, "enter", lambda self, row: None)
    with pytest.raises(Exception, match="verify"):
        world.run(load_config(file, env={"NIGHT": "1"}))
    monkeypatch.undo()
    # A record of a process that never was: as after a reboot.
    owner = next(world.work.glob("*owner.json"))
    forgotten[0]._heartbeat.stop()
    owner.write_text(owner.read_text(encoding="utf-8").replace(f'"pid": {os.getpid()}', '"pid": 999999999'))
    world.run(load_config(file, env={"NIGHT": "1"}))
    assert ledger_of(world)["outcome"].tolist() == ["killed", "published"]
    assert world.left_in_work() == KEPT


def test_failures_are_entered_with_their_code(world: World) -> None:
    world.save(table(world.spark, 1))
    with pytest.raises(Exception, match="fewer than k"):
        world.run(load_config(job_file(world, run_key=None), overrides=["privacy.k=50"]))
    row = ledger_of(world).iloc[0]
    assert (row["outcome"], row["exit_code"], row["error"]) == ("failed", 3, "K303")
    assert not world.sink.exists()


def test_one_partition_is_taken(world: World) -> None:
    world.save(table(world.spark, 3))
    part = {"column": "day", "value": "2026-01-02"}
    release = world.run(load_config(job_file(world, run_key=None, partition=part)))
    assert sorted(row["n"] for row in release.table.select("n").collect()) == list(range(20, 40))
    assert ledger_of(world).iloc[0]["partition"] == "day=2026-01-02"
    with pytest.raises(EmptyTableError, match="no rows"):
        world.run(load_config(job_file(world, run_key=None, partition={**part, "value": "soon"})))
    with pytest.raises(MissingInputError, match="no column dya"):
        world.run(load_config(job_file(world, run_key=None, partition={**part, "column": "dya"})))


def test_a_time_budget_ends_a_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job of Spark's that would go on well beyond it is cancelled; the previous release stays as it was."""
    world.save(table(world.spark, 1))
    world.run(load_config(job_file(world, run_key=None)))
    before = world.released()
    real = runner.recode

    def never_ending(rows: "DataFrame", *args: Any, **kwargs: Any) -> "DataFrame":
        # Tasks that were cancelled still sleep to their end, and what is looked at afterwards waits for them.
        slow = "java_method('java.lang.Thread', 'sleep', 800L)"
        return real(rows, *args, **kwargs).where(f"{slow} is null or {slow} is not null")

    monkeypatch.setattr(runner, "recode", never_ending)
    with pytest.raises(TimeBudgetError, match="ran out") as caught:
        world.run(load_config(job_file(world, run_key=None, time_budget=8)))
    assert caught.value.exit_code == 5
    assert world.released() == before
    assert world.left_beside() == []
    assert ledger_of(world)["outcome"].tolist() == ["published", "failed"]
    assert ledger_of(world)["exit_code"].tolist() == [0, 5]


def test_budgets_are_checked_between_stages(spark: "SparkSession") -> None:
    ctx = RunContext(spark, time_budget=0.01)
    while not ctx.deadline.passed:
        pass
    with pytest.raises(TimeBudgetError), ctx.stage("prepare"):
        raise AssertionError("the stage must not begin")
    ctx.deadline.disarm()


def test_a_table_as_ledger(world: World) -> None:
    spark = world.spark
    spark.sql("CREATE DATABASE IF NOT EXISTS scheduled")
    try:
        ledger = Ledger.of(spark, "scheduled.runs", base_dir=world.folder, lock_root=str(world.folder))
        ledger.check()
        assert ledger.rows().count() == 0 and ledger.pace("job", "lattice") is None
        row = LedgerRow("r1", "job", method="lattice", outcome="published", rows_input=100, seconds_taken=50.0)
        ledger.enter(row)
        ledger.enter(row)
        ledger.enter(LedgerRow("r2", "job", run_key="a", config_sha256="x", target="t", outcome="released"))
        assert sorted(found["run_id"] for found in ledger.rows().collect()) == ["r1", "r2"]
        assert ledger.pace("job", "lattice") == 0.5
        found = ledger.published(run_key="a", config_sha256="x", target="t")
        assert found is not None and found.run_id == "r2"
        assert ledger.published(run_key="a", config_sha256="y", target="t") is None
        spark.sql("CREATE TABLE scheduled.other (x int) USING parquet")
        with pytest.raises(TargetError, match="no ledger"):
            Ledger.of(spark, "scheduled.other", base_dir=world.folder, lock_root="").check()
    finally:
        spark.sql("DROP DATABASE scheduled CASCADE")
    with pytest.raises(TargetError, match="not the name of a table"):
        Ledger.of(spark, "a b", base_dir=world.folder, lock_root="").check()


def test_rules_of_the_schedule() -> None:
    columns = {"quasi_identifiers": ["age"]}
    with pytest.raises(RequestError, match="name a sink"):
        load_config({"columns": columns, "schedule": {"run_key": "x"}})
    with pytest.raises(RequestError, match="must not be under the release"):
        load_config({"columns": columns, "source": "a", "sink": {"path": "out"}, "schedule": {"ledger": "out/l"}})
    with pytest.raises(RequestError, match="no source to take a partition of"):
        load_config({"columns": columns, "schedule": {"partition": {"column": "d", "value": "1"}}})
