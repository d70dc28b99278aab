"""The time budget of a run: when it has run out, Spark's jobs are cancelled and nothing is published.

Kernels in the driver cannot be stopped halfway; the next stage notices. Once the release is being swapped in the budget
no longer counts: what has been verified is published.
"""

import threading
from typing import TYPE_CHECKING

from kanon_spark.engine.session import cancel_jobs, tag_jobs
from kanon_spark.errors import TimeBudgetError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Deadline:
    """Counts from its making. Without a budget it never passes."""

    def __init__(self, spark: "SparkSession", seconds: float | None, *, tag: str) -> None:
        self._spark = spark
        self._seconds = seconds
        self._tag = tag
        self._passed = False
        self._timer: threading.Timer | None = None
        if seconds is not None:
            tag_jobs(spark, tag)
            self._timer = threading.Timer(seconds, self._pass)
            self._timer.daemon = True
            self._timer.start()

    @property
    def passed(self) -> bool:
        """True once the budget has run out."""
        return self._passed

    def check(self) -> None:
        """Raise `TimeBudgetError` if the budget has run out."""
        if self._passed:
            raise self.error()

    def error(self) -> TimeBudgetError:
        """What a run that ran out of time says."""
        return TimeBudgetError(
            f"the time budget of {self._seconds:g} s ran out; nothing was published",
            where="schedule.time_budget",
            fix="run again with a larger budget, a faster method or method.effort: fast",
        )

    def disarm(self) -> None:
        """From here on time does not count."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
            self._timer = None
            tag_jobs(self._spark, self._tag, remove=True)

    def _pass(self) -> None:
        self._passed = True
        cancel_jobs(self._spark, self._tag)
