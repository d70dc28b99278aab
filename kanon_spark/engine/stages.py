"""The stages of a run: their names, order, timings, progress, and the points where a test may make them fail.

Every Spark action of a run happens inside `RunContext.stage(...)`, so that the Spark UI, the progress line, the log,
the manifest and the failpoints all speak of the same steps.
"""

import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kanon_spark.engine.deadline import Deadline
from kanon_spark.errors import InternalError
from kanon_spark.logs import logger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STAGES: dict[str, str] = {
    "prepare": "open the source and lock the target",
    "arrivals": "tell arrivals from what is published",
    "domains": "read the values of QIs without a hierarchy file",
    "signatures": "aggregate rows to signatures",
    "tree": "build the spanning tree",
    "blocks": "cut blocks",
    "solve": "form classes inside the blocks",
    "stitch": "gather what blocks left open",
    "rest": "form classes of what is left across blocks",
    "refine": "polish classes across blocks",
    "rejudge": "judge the classes of the whole release",
    "match": "find the class of each signature in a saved recoding",
    "bound": "bound the best possible loss",
    "recode": "write the recoding",
    "write": "write the staged release",
    "verify": "verify what was written",
    "measure": "measure loss",
    "publish": "swap the release in",
    "report": "write manifest and report",
}


def failpoint(name: str) -> None:
    """Fail here if a test asks for it: `KANON_FAIL_AT=name` raises, `KANON_KILL_AT=name` kills the process."""
    if os.environ.get("KANON_KILL_AT") == name:
        os.kill(os.getpid(), signal.SIGKILL)
    if os.environ.get("KANON_FAIL_AT") == name:
        raise InternalError(f"failpoint '{name}' was asked for by KANON_FAIL_AT", fix="unset KANON_FAIL_AT")


@dataclass(frozen=True)
class StageEvent:
    """What a progress listener hears: a stage began, moved on, or ended."""

    stage: str
    state: str  # "start" | "note" | "end"
    text: str
    seconds: float = 0.0


Listener = Callable[[StageEvent], None]


def new_run_id() -> str:
    """A unique run id that is a safe file and table name, and sorts by when it was made, within a second too.

    >>> first = new_run_id()
    >>> time.sleep(0.001)
    >>> first < new_run_id()
    True
    """
    now = time.time()
    # Four digits of the second (steps of 15 microseconds), then four that tell runs of the same instant apart.
    return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime(now))}_{int(now % 1 * 0x10000):04x}{uuid.uuid4().hex[:4]}"


@dataclass
class RunContext:
    """What a run carries from stage to stage."""

    spark: "SparkSession"
    run_id: str = field(default_factory=new_run_id)
    listeners: list[Listener] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    current: str = ""
    time_budget: float | None = None  # seconds
    deadline: Deadline = field(init=False)

    def __post_init__(self) -> None:
        self.deadline = Deadline(self.spark, self.time_budget, tag=f"kanon_{self.run_id}")

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Run the body as the named stage; its name must stand in `STAGES`."""
        text = STAGES[name]
        self.deadline.check()
        self.current = name
        begin = time.perf_counter()
        self._tell(StageEvent(name, "start", text))
        describe_jobs(self.spark, f"kanon {self.run_id}: {text}")
        try:
            yield
            failpoint(name)
            self.deadline.check()
        finally:
            took = time.perf_counter() - begin
            self.seconds[name] = self.seconds.get(name, 0.0) + took
            describe_jobs(self.spark, "")
        self._tell(StageEvent(name, "end", text, took))

    def note(self, text: str) -> None:
        """Say what the current stage is doing (counts only, never values)."""
        self._tell(StageEvent(self.current, "note", text))

    def _tell(self, event: StageEvent) -> None:
        logger.info("[%s] %s %s %s", self.run_id, event.stage, event.state, event.text)
        for listener in self.listeners:
            listener(event)


def describe_jobs(spark: "SparkSession", text: str) -> None:
    """Name the jobs that follow in the Spark UI; Spark Connect has no such call and goes without."""
    from kanon_spark.engine.session import set_job_description

    set_job_description(spark, text)
