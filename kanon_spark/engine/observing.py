"""Counts that come with a pass that happens anyway: Spark's `observe`.

They are for telling only. What decides is counted on what was written: an observed count is added up from tasks, and
where a stage before the last runs twice, so do its additions.
"""

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PATIENCE = 5.0  # seconds; Spark's own `get` waits for ever if a writer has planned the table anew


class ObservedRows:
    """Counts the rows of a table while they pass by."""

    def __init__(self) -> None:
        from pyspark.sql import Observation

        self._observation = Observation()
        self._seen: int | None = None

    def watch(self, table: "DataFrame") -> "DataFrame":
        """The same table; whoever writes it counts its rows."""
        from pyspark.sql import functions as F

        return table.observe(self._observation, F.count(F.lit(1)).alias("rows"))

    def seen(self) -> int | None:
        """Rows that have passed by; None where it cannot be told."""
        asking = threading.Thread(target=self._ask, name="kanon-observed", daemon=True)
        asking.start()
        asking.join(_PATIENCE)
        return self._seen

    def _ask(self) -> None:
        try:
            self._seen = int(self._observation.get["rows"])
        except Exception:  # only a number for people is missing then
            self._seen = None
