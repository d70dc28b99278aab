"""What a hierarchy file misses: which columns, how many distinct values, how many rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kanon_spark.signatures.encoding import Encoding

SHOWN_VALUES = 5


@dataclass(frozen=True)
class Missing:
    """Values of one QI that have no leaf.

    Attributes:
        index: The QI's number.
        name: Its column.
        values: Distinct values.
        rows: Rows that hold them.
        shown: The most frequent ones, where values may be shown at all.
    """

    index: int
    name: str
    values: int
    rows: int
    shown: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Counts; values only if they were asked for."""
        text = f"{self.values:,} distinct value{'s' if self.values != 1 else ''} in {self.rows:,} rows"
        return f"{text} (such as {', '.join(map(repr, self.shown))})" if self.shown else text


def find_missing(
    source: "DataFrame", encoding: "Encoding", indexes: Sequence[int], *, show_values: bool = False
) -> list[Missing]:
    """Count what the hierarchies of the given QIs miss, in one job; QIs that miss nothing are left out."""
    from pyspark.sql import functions as F

    if not indexes:
        return []
    parts = []
    for index in indexes:
        lost = encoding.codes_of(source, index).where(F.col("code") == encoding.codebook.columns[index].miss)
        value = F.col("value").cast("string").alias("value")
        parts.append(lost.groupBy(value).agg(F.count(F.lit(1)).alias("rows")).withColumn("qi", F.lit(index)))
    each = reduce(lambda left, right: left.unionByName(right), parts)
    measures = [F.count(F.lit(1)).alias("values"), F.sum("rows").alias("rows")]
    found = {int(row["qi"]): row for row in each.groupBy("qi").agg(*measures).collect()}  # one row per QI
    shown = {index: _most_frequent(each, index) for index in found} if show_values else {}
    return [
        Missing(index, encoding.names[index], int(row["values"]), int(row["rows"]), shown.get(index, ()))
        for index, row in sorted(found.items())
    ]


def _most_frequent(each: "DataFrame", index: int) -> tuple[str, ...]:
    from pyspark.sql import functions as F

    ranked = each.where(F.col("qi") == index).orderBy(F.desc("rows"), "value").limit(SHOWN_VALUES)
    return tuple(str(row["value"]) for row in ranked.collect())
