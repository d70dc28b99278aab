"""A published release, checked again from its source: long after the run, by whoever holds the recoding."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from kanon_spark.io.content import hash_sums
from kanon_spark.verify.asked import Asked
from kanon_spark.verify.facts import Check, Evidence, Verdict
from kanon_spark.verify.pseudonyms import PseudonymFacts
from kanon_spark.verify.release import verify_release

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def verify_against_source(
    table: "DataFrame",
    *,
    source: "DataFrame",
    k: int,
    evidence: Evidence,
    kept: Sequence[str],
    suppressed_rows: Literal["drop", "star"],
    max_suppression: float,
    pairs: "DataFrame | None" = None,
    pseudonyms: PseudonymFacts | None = None,
    asked: Asked | None = None,
    carriers: "DataFrame | None" = None,
) -> Verdict:
    """Check that the recoding is the source's own, then that the table is the source recoded.

    Args:
        table: The published table.
        source: The source's rows with their signature hash `h` and content hash `g`.
        k: As for `verify_release`, like all that follow.
        evidence: The recoding.
        kept: Columns that pass through unchanged.
        suppressed_rows: Whether suppressed rows were dropped or published as rows of `*`.
        max_suppression: Largest share of the source's rows that may be suppressed.
        pairs: Persons of each signature, where `privacy.unit` is given.
        pseudonyms: Identifiers that are published as pseudonyms, where there are any.
        asked: Privacy models beyond k.
        carriers: Who carries what, and asks for which k.

    Returns:
        The verdict of `verify_release` with the check `source` before the others.
    """
    from pyspark.sql import functions as F

    g_hi, g_lo = hash_sums(F.col("g"))
    grouped = source.groupBy("h").agg(F.count(F.lit(1)).alias("rows"), g_hi.alias("g_hi"), g_lo.alias("g_lo"))
    here = _fingerprint(grouped)
    there = _fingerprint(evidence.entries.select("h", "rows", "g_hi", "g_lo"))
    verdict = verify_release(
        table,
        k=k,
        evidence=evidence,
        kept=kept,
        suppressed_rows=suppressed_rows,
        max_suppression=max_suppression,
        input_rows=here[1],
        pairs=pairs,
        pseudonyms=pseudonyms,
        asked=asked,
        carriers=carriers,
    )
    if here == there:
        check = Check("source", True, f"the recoding was made from these {here[1]:,} rows in {here[0]:,} signatures")
    else:
        check = Check(
            "source",
            False,
            f"the source now has {here[1]:,} rows in {here[0]:,} signatures, the recoding was made from "
            f"{there[1]:,} rows in {there[0]:,} signatures, or the rows themselves are others",
        )
    return replace(verdict, checks=(check, *verdict.checks))


def _fingerprint(signatures: "DataFrame") -> tuple[int, int, int, int]:
    """Signatures, rows and an order-free hash over (h, rows, content sums)."""
    from pyspark.sql import functions as F

    hashed_hi, hashed_lo = hash_sums(F.xxhash64("h", "rows", "g_hi", "g_lo"))
    found = signatures.agg(F.count(F.lit(1)), F.sum("rows"), hashed_hi, hashed_lo).collect()[0]
    signature_count, rows, high, low = (int(part or 0) for part in found)
    return signature_count, rows, high, low
