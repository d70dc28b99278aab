"""Why a run stops: what the pre-flight look at the table has found, and what Spark's errors mean to a user."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pandas as pd

from kanon_spark.config.checking import exit_code_of
from kanon_spark.config.models import Config
from kanon_spark.engine.guarding import merged_histograms, with_goodness
from kanon_spark.errors import (
    DataError,
    InternalError,
    KanonError,
    RequestError,
    SourceChangedError,
    SuppressionError,
    TooFewPersonsError,
)
from kanon_spark.io.quiet import failed_expression
from kanon_spark.measure.tally import Entries
from kanon_spark.methods.full_domain import most_suppressed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kanon_spark.config.preflight import Finding
    from kanon_spark.signatures.sensitive import Sensitive


def refuse_errors(findings: "Iterable[Finding]") -> None:
    """Raise if any finding is an error: a request error where the request is wrong, else a data error."""
    errors = [finding for finding in findings if finding.level == "error"]
    if not errors:
        return
    kind = RequestError if exit_code_of(errors) == RequestError.exit_code else DataError
    if len(errors) == 1:
        raise kind(errors[0].message, where=errors[0].path, fix=errors[0].fix)
    listed = "\n".join(f"  {one.path}: {one.message}\n    fix: {one.fix}" for one in errors)
    raise kind(f"{len(errors)} problems between the configuration and the table:\n{listed}")


_GONE = re.compile(r"FAILED_READ_FILE\.FILE_NOT_EXIST\].*?reading file (\S+)", re.DOTALL)


def as_known(error: Exception, *, run_id: str) -> KanonError:
    """What an error means to a user; an `InternalError` without the error's text, which may hold values, if nothing."""
    if isinstance(error, KanonError):
        return error
    gone = _GONE.search(str(error))
    if gone is not None and run_id not in gone.group(1):
        return SourceChangedError(
            "files of the source went away while it was being read; nothing was published",
            where="source",
            fix="run again when it is at rest, or set source.snapshot: copy",
        )
    return failed_expression(error) or InternalError(f"something unexpected happened ({type(error).__name__})")


def refuse_too_few(config: Config, persons: int) -> None:
    """Stop where the table has fewer than k persons."""
    k, unit = config.privacy.k, config.privacy.unit
    if persons < k:
        what = "persons" if unit else "rows"
        raise TooFewPersonsError(
            f"the table has {persons} {what}, fewer than k = {k}",
            where="privacy.k",
            fix=f"lower k to {persons} or less, or anonymize a larger table",
        )


def count_suppressed(entries: Entries) -> dict[str, int]:
    """Rows and persons that are suppressed."""
    if isinstance(entries, pd.DataFrame):
        gone = entries[entries["class_id"] < 0]
        return {"rows": int(gone["rows"].sum()), "persons": int(gone["persons"].sum())}
    from pyspark.sql import functions as F

    found = entries.where(F.col("class_id") < 0).agg(
        F.coalesce(F.sum("rows"), F.lit(0)).alias("rows"), F.coalesce(F.sum("persons"), F.lit(0)).alias("persons")
    )
    row = found.first()
    assert row is not None
    return {"rows": int(row["rows"]), "persons": int(row["persons"])}


def refuse_suppression(config: Config, suppressed: int, *, rows: int) -> None:
    """Stop where more rows are suppressed than the configuration allows."""
    allowed = config.privacy.max_suppression
    if suppressed > most_suppressed(allowed, rows):
        raise SuppressionError(
            f"{suppressed} of {rows} rows would have to be suppressed, more than the share of "
            f"{allowed:g} that is allowed; nothing was published",
            where="privacy.max_suppression",
            fix="raise max_suppression or max_level, or ask for less (k, models)",
        )


def may_be_shown(entries: "DataFrame", config: Config, sensitive: "Sensitive | None", *, persons: int) -> bool:
    """Whether suppressed rows may be published as rows of `*`: as the class that they then are.

    Where classes are held against the distribution of the release they are dropped: they were suppressed because they
    do not fit it.
    """
    from pyspark.sql import functions as F

    if persons < config.privacy.k:
        return False
    if sensitive is None:
        return True
    if sensitive.relative:
        return False
    together = merged_histograms(entries.where(F.col("class_id") < 0).withColumn("all", F.lit(0)), ["all"])
    # Persons who count elsewhere do not make alpha any easier here: no share is larger than so.
    demands = sensitive.judged(together).demands._replace(repeated=False)
    judged = with_goodness(together, k=config.privacy.k, demands=demands)
    return all(row["good"] for row in judged.select("good").collect())  # one row


def why_not_shown(sensitive: "Sensitive | None") -> str:
    """What the manifest says where suppressed rows are dropped although rows of `*` were asked for."""
    if sensitive is not None and sensitive.relative:
        why = "classes are held against the distribution of the release, and they would be a part of it"
    else:
        why = "as a class of their own they would break k or another demand"
    return f"The suppressed rows are left out, though rows of * were asked for: {why}."
