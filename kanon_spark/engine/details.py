"""What only the report shows: distributions before and after, sensitive values over the classes, the method's own way.

They take a few more looks at recoding and release, so they are gathered only where a report is written.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kanon_spark.config.loader import LoadedConfig
from kanon_spark.measure.distributions import qi_distributions
from kanon_spark.measure.sensitive_spread import sensitive_spread
from kanon_spark.signatures.columns import quoted
from kanon_spark.signatures.encoding import ROW_HASH

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kanon_spark.engine.opened import Opened
    from kanon_spark.engine.solving import Solved
    from kanon_spark.signatures.encoding import Encoding

_BARS = 20


@dataclass(frozen=True)
class Details:
    """Gathers them. It holds tables, so that a report that is asked for later is as good as one of the run."""

    loaded: LoadedConfig
    opened: "Opened"
    encoding: "Encoding"
    solved: "Solved"
    signatures: int
    classes: int

    def gather(self, entries: "DataFrame", release: "DataFrame") -> dict[str, Any]:
        """The manifest's part `details`; it names values.

        Args:
            entries: The recoding's entries.
            release: What was written.
        """
        config = self.loaded.config
        columns = [name for name in config.columns.sensitive if name in release.columns]
        spread = sensitive_spread(release, qi=self.opened.tuple_columns, columns=columns, classes=self.classes)
        if spread is not None and config.privacy.unit is not None:
            self._count_persons(entries, spread, columns)
        return {
            "quasi_identifiers": qi_distributions(entries, self.encoding.codebook, count=self.signatures),
            "sensitive": spread,
            "tree": self._lengths(),
            "config": self.loaded.text,
        }

    def _count_persons(self, entries: "DataFrame", spread: dict[str, Any], columns: Sequence[str]) -> None:
        """How many persons of the release carry each value that is named: a person's rows may be many."""
        from pyspark.sql import functions as F

        unit = self.loaded.config.privacy.unit
        assert unit is not None
        rows = self.encoding.with_identity(self.opened.source).select(
            F.col(ROW_HASH).alias("h"),
            F.coalesce(F.col(quoted(unit)).cast("string"), F.expr("uuid()")).alias("person"),
            *[F.col(quoted(name)).cast("string").alias(f"v{i}") for i, name in enumerate(columns)],
        )
        released = rows.join(entries.where(F.col("class_id") >= 0).select("h"), "h", "left_semi")
        parts = F.array(*[F.struct(F.lit(i).alias("c"), F.col(f"v{i}").alias("v")) for i in range(len(columns))])
        named = [
            (place, None if value["label"] == "null" else value["label"])
            for place, column in enumerate(spread["columns"])
            for value in column["values"]
        ]
        known = F.broadcast(released.sparkSession.createDataFrame(named, "c int, w string"))
        cells = released.select("person", F.inline(parts)).join(known, "c").where(F.col("v").eqNullSafe(F.col("w")))
        # Bounded by the values that are named.
        found = cells.groupBy("c", "v").agg(F.countDistinct("person").alias("persons")).collect()
        persons = {(row["c"], row["v"]): row["persons"] for row in found}
        for place, column in enumerate(spread["columns"]):
            for value in column["values"]:
                # A range of numbers is no single value: its persons were not counted, and none are claimed.
                label = None if value["label"] == "null" else value["label"]
                value["persons"] = persons.get((place, label), 0)

    def _lengths(self) -> list[dict[str, float]] | None:
        """Edges of the spanning tree by their length, where the method built one."""
        from pyspark.sql import functions as F

        if self.solved.tree is None:
            return None
        # Lengths are sums of few levels: there are few different ones.
        table = self.solved.tree.table().groupBy(F.round("distance", 6).alias("length")).count()
        found = table.orderBy("length").toPandas()
        if len(found) > _BARS:
            edges = np.linspace(float(found["length"].min()), float(found["length"].max()), _BARS + 1)[1:]
            found["length"] = edges[np.minimum(_BARS - 1, np.searchsorted(edges, found["length"]))]
            found = found.groupby("length").sum().reset_index()
        return [
            {"length": float(length), "edges": int(many)}
            for length, many in zip(found["length"], found["count"], strict=True)
        ]
