"""No raw value in plans or logs, and nothing raw that others may read."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from run_world import World

from kanon_spark.engine import runner

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CANARY = "Quixotic-Canary"
NUMBER = 987654321


def test_neither_plans_nor_logs_hold_values(
    spark: "SparkSession",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World(spark, tmp_path)
    names = ["Ann", "Bob", CANARY]
    rows = [(names[n % 3], f"{CANARY}{n % 2}", NUMBER if n % 5 else 5, n % 4, CANARY) for n in range(60)]
    world.save(spark.createDataFrame(rows, "city string, code string, pay int, age int, note string"))
    world.write("age.csv", "0;low;*", "1;low;*", "2;high;*", "3;high;*")
    plans: dict[str, str] = {}

    def explained(table: "DataFrame") -> str:
        capsys.readouterr()
        table.explain(mode="extended")
        return capsys.readouterr().out

    real_recode = runner.recode

    def recode(*args: Any, **kwargs: Any) -> "DataFrame":
        table = real_recode(*args, **kwargs)
        plans["write"] = explained(table)
        return table

    monkeypatch.setattr(runner, "recode", recode)
    from kanon_spark.signatures.encoding import Encoding

    real_coded = Encoding.coded

    def coded(self: Encoding, *args: Any, **kwargs: Any) -> "DataFrame":
        table = real_coded(self, *args, **kwargs)
        plans["aggregate"] = explained(table)
        return table

    monkeypatch.setattr(Encoding, "coded", coded)
    qis = {
        "city": None,
        "code": {"hierarchy": {"prefix": {"keep": [8, 3]}}},
        "pay": None,
        "age": {"hierarchy": "age.csv"},
    }
    with caplog.at_level(logging.DEBUG):
        release = world.run(world.job(qis, k=3))
    plans["release"] = explained(release.table)
    assert set(plans) == {"write", "aggregate", "release"}
    for name, plan in plans.items():
        assert "Plan ==" in plan, name
        assert "Canary" not in plan, name
        assert str(NUMBER) not in plan, name
    assert "high" in plans["write"], "labels of hierarchy files may stand in a plan: this looks where it should"
    ours = [record for record in caplog.records if record.name.startswith("kanon")]
    assert ours
    assert not any("Canary" in record.getMessage() for record in caplog.records)
    assert not any(str(NUMBER) in record.getMessage() for record in ours)


def test_our_logger_is_never_root(spark: "SparkSession", tmp_path: Path) -> None:
    before = list(logging.getLogger().handlers), logging.getLogger().level
    world = World(spark, tmp_path)
    table = spark.createDataFrame([(1,), (1,)], "age int")
    world.run(world.job(["age"], k=2, sink=None, report=None), table)
    assert (list(logging.getLogger().handlers), logging.getLogger().level) == before


def test_what_is_raw_is_closed_to_others(spark: "SparkSession", tmp_path: Path) -> None:
    world = World(spark, tmp_path)
    world.save(spark.createDataFrame([(1, 1), (1, 2)], "age int, n int"))
    world.run(world.job(["age"], k=2))
    assert world.work.stat().st_mode & 0o077 == 0
    # Manifest and report hold sample rows.
    for name in ("manifest.json", "report.html"):
        assert (world.manifest.parent / name).stat().st_mode & 0o077 == 0, name
