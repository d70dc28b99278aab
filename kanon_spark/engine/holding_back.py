"""What of an applied recoding may be published: classes that the new table leaves under k, or that break a model, wait.

A class that had k persons in one table need not have them in the next. Taking classes out can only change what others
are held against (t-closeness speaks of the whole release), so it is repeated until everything left can stand. That it
does is proved afterwards, on what was written, by the verifier: persons are counted here as it will count them, so that
what it would refuse waits instead.
"""

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from kanon_spark.engine.evidence import carriers_of, make_evidence
from kanon_spark.engine.population import asked_of
from kanon_spark.errors import GuaranteeError
from kanon_spark.recoding.apply import recode
from kanon_spark.signatures.columns import quoted
from kanon_spark.signatures.encoding import ROW_HASH
from kanon_spark.signatures.sensitive import WISHES, with_wishes
from kanon_spark.verify.counting import Held, value_column
from kanon_spark.verify.groups import TUPLE, tuple_hashes, tuple_parts
from kanon_spark.verify.models import check_columns, personal_k, sensitive_models
from kanon_spark.verify.published import with_published
from kanon_spark.verify.released_models import WISH

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kanon_spark.config.loader import LoadedConfig
    from kanon_spark.engine.opened import Opened
    from kanon_spark.engine.stages import RunContext
    from kanon_spark.signatures.encoding import Encoding
    from kanon_spark.verify.asked import Asked

_ROUNDS = 20  # each of which can only shrink the release
_ROWS = "_kanon_rows"


def hold_back(
    ctx: "RunContext",
    loaded: "LoadedConfig",
    opened: "Opened",
    encoding: "Encoding",
    entries: "DataFrame",
    *,
    count: int,
) -> "DataFrame":
    """The entries with those classes left open that cannot stand, written to the work directory (stage `match`).

    Args:
        ctx: The run.
        loaded: The configuration.
        opened: The table to which the recoding is applied.
        encoding: Its encoding, labels as texts.
        entries: What each signature would publish.
        count: How many entries there are.
    """
    from pyspark.sql import functions as F

    with ctx.stage("match"):
        rows = entries.select(F.col("h").alias(ROW_HASH), F.col("rows").alias(_ROWS))
        # In the order of the verifier's tuples: hashes of the two meet.
        qi = [*encoding.names, *encoding.codebook.numbers.values()]
        whole = recode(rows, entries, encoding.codebook, columns=[*qi, ROW_HASH, _ROWS], entry_count=count, star=False)
        hashed = whole.select(ROW_HASH, _ROWS, *tuple_hashes(tuple_parts(whole, qi)))
        asked = asked_of(ctx.spark, loaded)
        if loaded.config.privacy.unit is None and not asked:
            sizes = hashed.groupBy(*TUPLE).agg(F.sum(_ROWS).alias("size"))
            failing = sizes.where(F.col("size") < loaded.config.privacy.k).select(*TUPLE)
        else:
            check_columns(opened.source, qi, replace(asked, personal_k=None))
            held = _held(loaded, opened, encoding, entries, hashed=hashed, asked=asked)
            failing = _failing(ctx, opened, held, asked, k=loaded.config.privacy.k)
        stays = hashed.join(failing, list(TUPLE), "left_anti").select(F.col(ROW_HASH).alias("stays"))
        joined = entries.join(stays, F.col("h") == F.col("stays"), "left")
        class_id = F.when(F.col("stays").isNotNull(), F.col("class_id")).otherwise(F.lit(-1).cast("long"))
        return _written(ctx, joined.withColumn("class_id", class_id).drop("stays"), opened.work.path("applied"))


def _held(
    loaded: "LoadedConfig",
    opened: "Opened",
    encoding: "Encoding",
    entries: "DataFrame",
    *,
    hashed: "DataFrame",
    asked: "Asked",
) -> Held:
    """Who would stand in which class, by the verifier's own counts: of carriers with a unit, else of rows."""
    from pyspark.sql import functions as F

    config, source = loaded.config, with_wishes(opened.source, loaded.config)
    if config.privacy.unit is not None:
        carriers = carriers_of(source, encoding, config, asked)
        if carriers is None:  # nothing is asked but k
            carriers = encoding.pairs(source, config.privacy.unit)
        evidence = make_evidence(source, encoding, entries, config, base_dir=loaded.base_dir)
        return Held.of_carriers(carriers, with_published(evidence), star=False, width=len(evidence.columns))
    values = [F.col(quoted(name)).alias(value_column(name)) for name in asked.judged]
    wish = [F.col(WISHES).alias(WISH)] if asked.personal_k is not None else []
    rows = encoding.with_identity(source).select(ROW_HASH, *values, *wish)
    return Held(rows.join(hashed.drop(_ROWS), ROW_HASH).drop(ROW_HASH), "rows")


def _failing(ctx: "RunContext", opened: "Opened", held: Held, asked: "Asked", *, k: int) -> "DataFrame":
    """The classes that cannot stand, as hashes of their tuples.

    A population is not asked here: how many of it fit a tuple depends on the tuple alone.
    """
    from pyspark.sql import functions as F

    held = replace(held, frame=_written(ctx, held.frame, opened.work.path("candidate")))
    failing: DataFrame | None = None
    for number in range(_ROUNDS):
        found = [held.members().where(F.col("members") < k).select(*TUPLE)]
        sensitive_models(held, asked, found)
        if asked.personal_k is not None:
            personal_k(held, WISH, name=asked.personal_k, k=k, failing=found)
        together = reduce(lambda left, right: left.unionByName(right), found)
        bad = _written(ctx, together.distinct(), opened.work.path(f"failing_{number}"))
        failing = bad if failing is None else failing.unionByName(bad)
        if not bad.limit(1).count():
            return failing
        held = replace(held, frame=held.frame.join(bad, list(TUPLE), "left_anti"))
    raise GuaranteeError(
        f"after {_ROUNDS} rounds of holding back classes still fail; nothing was published",
        where="recoding",
        fix="anonymize the table by a run of its own",
    )


def _written(ctx: "RunContext", table: "DataFrame", path: str) -> "DataFrame":
    table.write.mode("overwrite").parquet(path)
    return ctx.spark.read.schema(table.schema).parquet(path)
