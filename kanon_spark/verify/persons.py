"""k by persons: who stands behind each published tuple.

The released table no longer names its persons, so that they are counted through the recoding: a person belongs to the
signatures of his rows, a signature to the tuple that it publishes. He counts once in a tuple, however many rows he has.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kanon_spark.verify.groups import TUPLE, tuple_columns, tuple_hashes, tuple_parts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Persons:
    """Least persons of a published group, groups with fewer than k, and pairs whose signature has no entry."""

    least: int
    short: int
    unmatched: int


def count_persons(pairs: "DataFrame", published: "DataFrame", *, star: bool, width: int, k: int) -> Persons:
    """Count distinct persons per published tuple.

    Args:
        pairs: Distinct (h, unit) of the source. Rows whose unit is null are persons of their own: `rows` says how many
            rows a pair stands for, and without that column each pair with a null unit is one person.
        published: All entries with their published tuple.
        star: Suppressed rows are published as `*` and count there; otherwise they are left out.
        width: Columns of the tuple.
        k: Least persons of a group.
    """
    from pyspark.sql import functions as F

    tuples = published.select(
        F.col("h").alias("entry_h"),
        *tuple_hashes(tuple_parts(published, tuple_columns(width))),
        (F.col("class_id") < 0).alias("suppressed"),
    )
    rows = F.col("rows") if "rows" in pairs.columns else F.lit(1)
    mine = pairs.select("h", "unit", rows.cast("long").alias("rows"))
    joined = mine.join(tuples, F.col("h") == F.col("entry_h"), "left")
    if not star:
        joined = joined.where(F.col("suppressed").isNull() | ~F.col("suppressed"))
    each = joined.groupBy(*TUPLE, "unit").agg(F.sum("rows").alias("rows"))
    weight = F.when(F.col("unit").isNull(), F.col("rows")).otherwise(F.lit(1))
    groups = each.groupBy(*TUPLE).agg(F.sum(weight).alias("persons"))
    known = F.col("t1").isNotNull()
    found = groups.agg(
        F.min(F.when(known, F.col("persons"))),
        F.count(F.when(known & (F.col("persons") < k), 1)),
        F.sum(F.when(~known, F.col("persons"))),
    ).collect()[0]
    return Persons(*(int(part or 0) for part in found))
