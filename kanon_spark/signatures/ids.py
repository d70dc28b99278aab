"""Identifiers that are published as pseudonyms: the bytes that are hashed, and whether an id stands in several rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kanon_spark.io.content import hash_sums, hashable
from kanon_spark.signatures.columns import quoted, type_of
from kanon_spark.signatures.fingerprint import fingerprint_text

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType


@dataclass(frozen=True)
class IdFacts:
    """One identifier over a whole table.

    Attributes:
        rows: Rows that have an id.
        repeated: Ids that stand in more than one row.
        fingerprint: Order-free hash of all ids.
    """

    rows: int
    repeated: int
    fingerprint: str


def can_be_pseudonymized(data_type: "DataType") -> bool:
    """Whether equal values of this type, and only they, have equal bytes: text, whole numbers, decimals, dates, bytes.

    Others do not: a timestamp's text depends on the time zone, a float's on its size.
    """
    from pyspark.sql import types as T

    whole = T.ByteType | T.ShortType | T.IntegerType | T.LongType
    return isinstance(data_type, T.StringType | whole | T.DecimalType | T.DateType | T.BinaryType)


def id_bytes(table: "DataFrame", name: str) -> "Column":
    """What is hashed: text as UTF-8, numbers and dates as their text, so that 7 and "7" have the same pseudonym."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    value, data_type = F.col(quoted(name)), type_of(table, name)
    if isinstance(data_type, T.BinaryType):
        return value
    return hashable(value, data_type).cast("string").cast("binary")


def look_at_ids(table: "DataFrame", names: Sequence[str]) -> dict[str, IdFacts]:
    """Count the ids of each named column and those that repeat: one pass with one shuffle of the ids per column."""
    from pyspark.sql import functions as F

    found = {}
    for name in names:
        ids = table.select(id_bytes(table, name).alias("id")).where(F.col("id").isNotNull())
        each = ids.groupBy("id").agg(F.count(F.lit(1)).alias("rows"))
        high, low = hash_sums(F.xxhash64("id", "rows"))
        row = each.agg(F.sum("rows"), F.count(F.when(F.col("rows") > 1, 1)), high, low).collect()[0]  # one row
        rows, repeated, hi, lo = (int(part or 0) for part in row)
        found[name] = IdFacts(rows, repeated, fingerprint_text(hi, lo))
    return found
