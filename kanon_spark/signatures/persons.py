"""Persons, not rows: which signature a person counts in.

Each person weighs 1 on one of his signatures and 0 on the others, so that counts add up and nobody is counted twice.
The choice must be the same whatever the order of the rows: of his signatures' hashes, each mixed with the hash of the
person, the least one wins. (Mixing by exclusive or keeps it one long, which Spark aggregates without sorting, and which
gives the signature's hash back.) A row without a person is a person of its own.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def persons_by_hash(rows: "DataFrame") -> "DataFrame":
    """From rows with `h` and `unit`: `person_h` and `chosen`, how many known persons weigh on that signature."""
    from pyspark.sql import functions as F

    mixed = F.col("h").bitwiseXOR(F.xxhash64("unit"))
    known = rows.where(F.col("unit").isNotNull())
    least = known.groupBy("unit").agg(F.min(mixed).alias("least"))
    chosen = least.select(F.col("least").bitwiseXOR(F.xxhash64("unit")).alias("person_h"))
    return chosen.groupBy("person_h").agg(F.count(F.lit(1)).alias("chosen"))


def pairs(rows: "DataFrame") -> "DataFrame":
    """Distinct (h, unit) of rows with these columns, and `rows`, how many rows each pair stands for."""
    from pyspark.sql import functions as F

    return rows.groupBy("h", "unit").agg(F.count(F.lit(1)).alias("rows"))
