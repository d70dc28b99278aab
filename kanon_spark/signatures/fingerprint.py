"""A fingerprint of the source that no order or partitioning changes: the passes over it must see the same one."""

from typing import TYPE_CHECKING

from kanon_spark.io.content import hash_sums

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def grouped_by_hash(identities: "DataFrame") -> "DataFrame":
    """Rows with `h` and `g` to one row per signature: `h`, `rows`, `g_hi`, `g_lo`."""
    from pyspark.sql import functions as F

    g_hi, g_lo = hash_sums(F.col("g"))
    return identities.groupBy("h").agg(F.count(F.lit(1)).alias("rows"), g_hi.alias("g_hi"), g_lo.alias("g_lo"))


def fingerprint_sums() -> "list[Column]":
    """Aggregates over signatures (`h`, `rows`, `g_hi`, `g_lo`) that `fingerprint_text` makes a fingerprint of."""
    from pyspark.sql import functions as F

    hashed_hi, hashed_lo = hash_sums(F.xxhash64("h", "rows", "g_hi", "g_lo"))
    return [F.coalesce(hashed_hi, F.lit(0)).alias("hash_hi"), F.coalesce(hashed_lo, F.lit(0)).alias("hash_lo")]


def fingerprint_text(high: int, low: int) -> str:
    """The two sums put together, as 32 hexadecimal digits.

    >>> fingerprint_text(1, 2)
    '00000000000000000000000100000002'
    """
    return f"{((high << 32) + low) % (1 << 128):032x}"


def fingerprint(signatures: "DataFrame") -> str:
    """The fingerprint of a table of signatures."""
    found = signatures.agg(*fingerprint_sums()).collect()[0]  # one row
    return fingerprint_text(int(found["hash_hi"]), int(found["hash_lo"]))
