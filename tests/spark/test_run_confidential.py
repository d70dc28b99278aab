"""No raw value in plans or logs, and nothing raw that others may read."""

import contextlib
import io
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from run_world import WITH_REPORT, World

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CANARY = "Quixotic-Canary"
NUMBER = 31415926


@pytest.fixture
def plans(spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All plans, from parsed to physical, of everything that is written or collected."""
    some = spark.range(1)  # the classes of a session over Spark Connect are others
    seen: list[str] = []

    def watch(owner: type, name: str, table_of: Callable[[Any], Any]) -> None:
        real = getattr(owner, name)

        def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
            with contextlib.redirect_stdout(io.StringIO()) as said:
                table_of(self).explain(mode="extended")
            seen.append(said.getvalue())
            return real(self, *args, **kwargs)

        monkeypatch.setattr(owner, name, watched)

    for name in ("collect", "toPandas", "toArrow"):
        watch(type(some), name, lambda table: table)
    for name in ("parquet", "save", "saveAsTable"):
        watch(type(some.write), name, lambda writer: _table(writer._df, some))
    return seen


def _table(written: Any, some: "DataFrame") -> Any:
    """What a writer writes; over Spark Connect that is a plan."""
    return written if hasattr(written, "explain") else type(some)(written, some.sparkSession)


@pytest.mark.parametrize("execution", [{}, {"local_limit": 0, "block_size": 5}], ids=["one process", "blocks"])
def test_neither_plans_nor_logs_hold_values(
    spark: "SparkSession",
    tmp_path: Path,
    plans: list[str],
    caplog: pytest.LogCaptureFixture,
    execution: dict[str, int],
) -> None:
    world = World(spark, tmp_path)
    names = ["Ann", "Bob", CANARY]
    rows = [(names[n % 3], f"{CANARY}{n % 2}", NUMBER if n % 5 else 5, n % 4, CANARY) for n in range(60)]
    world.save(spark.createDataFrame(rows, "city string, code string, pay int, age int, note string"))
    world.write("age.csv", "0;low;*", "1;low;*", "2;high;*", "3;high;*")
    qis = {
        "city": None,
        "code": {"hierarchy": {"prefix": {"keep": [16, 3]}}},
        "pay": None,
        "age": {"hierarchy": "age.csv"},
    }
    plans.clear()
    with caplog.at_level(logging.DEBUG):
        release = world.run(world.job(qis, k=3, execution=execution, report=WITH_REPORT))
    release.table.collect()
    assert len(plans) > 8
    assert any("high" in plan for plan in plans), (
        "labels of hierarchy files may stand in a plan, so we would see others"
    )
    found = [line for plan in plans for line in plan.splitlines() if "Canary" in line or str(NUMBER) in line]
    assert [line[:300] for line in found] == []
    ours = [record for record in caplog.records if record.name.startswith("kanon")]
    assert ours
    assert not any("Canary" in record.getMessage() for record in ours)
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
    world.run(world.job(["age"], k=2, report=WITH_REPORT))
    assert world.work.stat().st_mode & 0o077 == 0
    # Manifest and report hold sample rows.
    for name in ("manifest.json", "report.html"):
        assert (world.manifest.parent / name).stat().st_mode & 0o077 == 0, name
