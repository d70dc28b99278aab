"""What whoever runs a job sees of it: what is coming, before it comes; stages in Spark's UI; counts along the way."""

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from run_world import World

from kanon_spark.engine.observing import ObservedRows
from kanon_spark.engine.runner import run
from kanon_spark.engine.stages import STAGES, StageEvent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QIS = {"age": {"hierarchy": {"interval": {"widths": [5, 10]}}}, "sex": None}


def jobs(spark: "SparkSession") -> dict[int, str | None]:
    """The jobs that Spark's UI would list, with their descriptions."""
    context: Any = spark.sparkContext._jsc.sc()  # type: ignore[attr-defined]
    context.listenerBus().waitUntilEmpty(10_000)
    listed = context.statusStore().jobsList(None)
    found = [listed.apply(number) for number in range(listed.size())]
    return {job.jobId(): job.description().get() if job.description().isDefined() else None for job in found}


def test_a_run_can_be_followed(spark: "SparkSession", tmp_path: Path) -> None:
    world = World(spark, tmp_path)
    rows = [(20 + n * 7 % 13, "mf"[n % 2], n) for n in range(60)]
    world.save(spark.createDataFrame(rows, "age int, sex string, n int"))
    job = world.job(QIS, execution={"local_limit": 0, "block_size": 8, "stitch": "local"})
    before, heard = set(jobs(spark)), list[StageEvent]()
    release = run(job, spark=spark, listeners=[heard.append])

    order = [(event.stage, event.state) for event in heard]
    coming = re.compile(r"60 rows, 26 signatures, 4 blocks: about \d+ s in all")
    told = [number for number, event in enumerate(heard) if coming.fullmatch(event.text)]
    assert len(told) == 1
    assert told[0] < order.index(("blocks", "start")), "before the dear part"
    assert any(event.text == "60 rows written" and event.stage == "write" for event in heard), "by observe"

    run_id = release.manifest["run_id"]
    named = [text for number, text in jobs(spark).items() if number not in before]
    assert None not in named, "threads carry the name of their stage, too"
    seen = {text.removeprefix(f"kanon {run_id}: ") for text in named if text}
    assert seen <= set(STAGES.values())
    assert seen >= {STAGES[name] for name in ("signatures", "blocks", "solve", "recode", "write", "verify", "measure")}


def test_an_observation_that_never_comes_is_no_hang(spark: "SparkSession") -> None:
    watched = ObservedRows()
    begin = time.monotonic()
    watched.watch(spark.range(3))  # nobody writes it
    assert watched.seen() is None
    assert time.monotonic() - begin < 30
