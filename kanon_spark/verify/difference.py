"""An incremental release against the one before it: what changed must not point at anyone.

Both tables are looked at as a reader would who has kept the older one: as rows that are there or not. Persons are
counted on the record of published rows, which is first shown to be what was written.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kanon_spark.io.content import content_hash
from kanon_spark.verify.asked import Asked
from kanon_spark.verify.facts import Check, Verdict
from kanon_spark.verify.groups import TUPLE, group_rows, quoted, summarize, tuple_hashes, tuple_parts
from kanon_spark.verify.table import verify_table
from kanon_spark.verify.unions import Record, judge_parts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Record", "verify_growth"]


def verify_growth(
    written: "DataFrame",
    record: Record,
    *,
    previous: "DataFrame | None",
    qi: Sequence[str],
    k: int,
    asked: Asked | None,
) -> Verdict:
    """Check what was written, as a whole, in each part that a reader can tell apart, and against what stood before.

    Args:
        written: The staged release, read back.
        record: Its rows with their keys.
        previous: The release that stands at the target; None for a first one.
        qi: Columns of the published tuple.
        k: Persons that every published tuple must have, and must gain if it gains any.
        asked: Privacy models beyond k.

    Returns:
        The verdict of `verify_table` on all rows, and the checks `record`, `cohorts` (what each run added to a tuple
        holds by itself, and so does what has come since any of them), `unchanged` (what was published before stands as
        it was) and `gains`.
    """
    columns = written.columns
    own = record.rows.select(*[quoted(name) for name in columns])
    whole = verify_table(
        record.rows.select(*[quoted(name) for name in [*columns, *_more(record, asked)]]),
        qi=qi,
        k=k,
        unit=record.person,
        asked=asked,
    )
    kept = [name for name in columns if name not in set(qi)]
    here = summarize(group_rows(written, qi=qi, kept=kept), width=len(qi), k=k)
    there = summarize(group_rows(own, qi=qi, kept=kept), width=len(qi), k=k)
    same = (here.content, here.rows) == (there.content, there.rows)
    checks = [*whole.checks, _check("record", same, "the rows written are those of the record")]
    parts = list(verify_table(record.rows, qi=[*qi, record.cohort], k=k, unit=record.person).checks)
    if asked is not None:
        parts += [found.check for found in judge_parts(record, qi=qi, k=k, asked=asked)]
    failed = "; ".join(f"{check.name}: {check.detail}" for check in parts if not check.passed)
    held = "what each run added holds by itself, and so does what has come since"
    checks.append(_check("cohorts", not failed, failed or held))
    if previous is not None:
        checks.append(_unchanged(record, previous.select(*[quoted(name) for name in columns])))
    checks.append(_gains(record, qi=qi, k=k))
    return replace(whole, checks=tuple(checks), rows=here.rows, content_hash=here.content)


def _more(record: Record, asked: Asked | None) -> list[str]:
    more = [] if record.person is None else [record.person]
    return more + ([asked.personal_k] if asked is not None and asked.personal_k is not None else [])


def _check(name: str, passed: bool, detail: str) -> Check:
    return Check(name, passed, detail)


def _unchanged(record: Record, previous: "DataFrame") -> Check:
    """Rows of earlier runs stand in the previous release, each at least as often."""
    from pyspark.sql import functions as F

    older = record.rows.where(F.col(record.cohort) != record.newest).select(*[quoted(n) for n in previous.columns])

    def counted(table: "DataFrame", name: str) -> "DataFrame":
        return (
            table.select(content_hash(table, table.columns).alias("row"))
            .groupBy("row")
            .agg(F.count(F.lit(1)).alias(name))
        )

    both = counted(older, "now").join(counted(previous, "before"), "row", "left")
    new = both.where(F.col("now") > F.coalesce(F.col("before"), F.lit(0))).count()
    detail = (
        f"{new:,} rows claim to have been published before and were not" if new else "older rows stand as they were"
    )
    return Check("unchanged", new == 0, detail)


def _gains(record: Record, *, qi: Sequence[str], k: int) -> Check:
    """Every published tuple gains no person, or at least k who were not in it before."""
    from pyspark.sql import functions as F

    rows = record.rows
    hashes = tuple_hashes(tuple_parts(rows, qi))
    person = F.lit(None).cast("string") if record.person is None else F.col(quoted(record.person)).cast("string")
    each = rows.select(*hashes, person.alias("person"), (F.col(record.cohort) == record.newest).alias("new"))
    # A row without a person is a person of its own.
    alone = (
        each.where(F.col("person").isNull())
        .groupBy(*TUPLE)
        .agg(F.count(F.when(F.col("new"), 1)).alias("came"), F.lit(0).cast("long").alias("joined"))
    )
    named = (
        each.where(F.col("person").isNotNull())
        .groupBy(*TUPLE, "person")
        .agg(F.min("new").alias("came"), F.max("new").alias("joined"))
    )
    others = named.groupBy(*TUPLE).agg(
        F.count(F.when(F.col("came"), 1)).alias("came"), F.count(F.when(F.col("joined"), 1)).alias("joined")
    )
    gained = alone.unionByName(others).groupBy(*TUPLE).agg(F.sum("came").alias("came"), F.sum("joined").alias("joined"))
    touched = (F.col("came") > 0) | (F.col("joined") > 0)
    short = gained.where(touched & (F.col("came") < k)).count()
    detail = (
        f"{short:,} published tuples gain fewer than {k} persons" if short else f"tuples gain no one, or at least {k}"
    )
    return Check("gains", short == 0, detail)
