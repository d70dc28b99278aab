"""`datafly`: raise the column with most distinct values until few enough rows stand alone; suppress those.

Source: Sweeney's Datafly, the comparator of many papers. Distinct values are those of the whole table at its current
levels; of equals the column that is declared first is raised. Rows in groups of under k persons, or that do not satisfy
what is asked beyond k, stand alone: they are suppressed, at most the share that `privacy.max_suppression` allows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kanon_spark.kernels.level_counts import LevelVector
from kanon_spark.methods.base import Leftover
from kanon_spark.methods.full_domain import Choice, FullDomain, LevelCounts, most_suppressed


@dataclass(frozen=True)
class Datafly(FullDomain):
    """The method with its options."""

    max_suppression: float = 0.0
    name: str = "datafly"
    leftover: Leftover = "suppress"

    def choose(self, counts: LevelCounts) -> Choice:
        """One vector: the first that leaves few enough rows, or all columns at their top."""
        scope = counts.scope
        names, heights, everything = scope.ladders.names, scope.heights, range(len(scope.qis))
        allowed = most_suppressed(self.max_suppression, scope.rows)
        levels: LevelVector = scope.floor
        trace: list[Mapping[str, Any]] = []
        while True:
            tally = counts.tally([levels])[0]
            left = scope.rows - tally.rows
            trace.append({"levels": dict(zip(names, levels, strict=True)), "rows_left": left, "groups": tally.groups})
            distinct = scope.sizes(levels)
            raisable = [j for j in everything if levels[j] < heights[j]]
            if left <= allowed or not raisable:
                return Choice((levels,), tuple(trace))
            most = max(raisable, key=lambda j: (distinct[j], -j))
            levels = (*levels[:most], levels[most] + 1, *levels[most + 1 :])
            counts = next(counts.roll_up([(tuple(everything), levels)]))
