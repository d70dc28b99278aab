"""What of an applied recoding may be published: classes that the new table leaves under k, or that break a model, wait.

A class that had k persons in one table need not have them in the next. Taking classes out can only change what others
are held against (t-closeness speaks of the whole release), so it is repeated until everything left can stand. That it
does is proved afterwards, on what was written, by the verifier.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from kanon_spark.engine.population import asked_of
from kanon_spark.errors import GuaranteeError
from kanon_spark.recoding.apply import recode
from kanon_spark.releases.standing import PERSON, WISH
from kanon_spark.signatures.columns import quoted
from kanon_spark.signatures.encoding import ROW_HASH
from kanon_spark.signatures.sensitive import with_wishes
from kanon_spark.verify.groups import TUPLE, tuple_hashes, tuple_parts
from kanon_spark.verify.table import failing_classes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kanon_spark.config.loader import LoadedConfig
    from kanon_spark.engine.opened import Opened
    from kanon_spark.engine.stages import RunContext
    from kanon_spark.signatures.encoding import Encoding

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
        names = [*opened.tuple_columns, ROW_HASH, _ROWS]
        whole = recode(rows, entries, encoding.codebook, columns=names, entry_count=count, star=False)
        hashed = whole.select(ROW_HASH, _ROWS, *tuple_hashes(tuple_parts(whole, opened.tuple_columns)))
        asked = asked_of(ctx.spark, loaded)
        if loaded.config.privacy.unit is None and not asked:
            sizes = hashed.groupBy(*TUPLE).agg(F.sum(_ROWS).alias("size"))
            failing = sizes.where(F.col("size") < loaded.config.privacy.k).select(*TUPLE)
        else:
            failing = _failing(ctx, loaded, opened, encoding, entries, count=count)
        stays = hashed.join(failing, list(TUPLE), "left_anti").select(F.col(ROW_HASH).alias("stays"))
        joined = entries.join(stays, F.col("h") == F.col("stays"), "left")
        class_id = F.when(F.col("stays").isNotNull(), F.col("class_id")).otherwise(F.lit(-1).cast("long"))
        return _written(ctx, joined.withColumn("class_id", class_id).drop("stays"), opened.work.path("applied"))


def _failing(
    ctx: "RunContext",
    loaded: "LoadedConfig",
    opened: "Opened",
    encoding: "Encoding",
    entries: "DataFrame",
    *,
    count: int,
) -> "DataFrame":
    """The classes that cannot stand, by the persons and sensitive values of their rows: hashes of their tuples."""
    from pyspark.sql import functions as F

    config = loaded.config
    unit = config.privacy.unit
    asked = asked_of(ctx.spark, loaded)
    asked = replace(asked, personal_k=WISH if asked.personal_k is not None else None)
    source = opened.source if config.privacy.personal_k is None else with_wishes(opened.source, config)
    marked = source.withColumn(PERSON, F.lit(None).cast("string") if unit is None else F.col(quoted(unit)))
    wish = [WISH] if asked.personal_k is not None else []
    candidate = recode(
        encoding.with_identity(marked),
        entries,
        encoding.codebook,
        columns=[*opened.tuple_columns, *asked.judged, PERSON, *wish],
        entry_count=count,
        star=False,
    )
    candidate = _written(ctx, candidate, opened.work.path("candidate"))
    qi, person = opened.tuple_columns, None if unit is None else PERSON
    failing: DataFrame | None = None
    for number in range(_ROUNDS):
        found = failing_classes(candidate, qi=qi, k=config.privacy.k, unit=person, asked=asked)
        bad = _written(ctx, found.distinct(), opened.work.path(f"failing_{number}"))
        failing = bad if failing is None else failing.unionByName(bad)
        if not bad.limit(1).count():
            return failing
        classes = candidate.select("*", *tuple_hashes(tuple_parts(candidate, qi)))
        candidate = classes.join(bad, list(TUPLE), "left_anti").drop(*TUPLE)
    raise GuaranteeError(
        f"after {_ROUNDS} rounds of holding back classes still fail; nothing was published",
        where="recoding",
        fix="anonymize the table by a run of its own",
    )


def _written(ctx: "RunContext", table: "DataFrame", path: str) -> "DataFrame":
    table.write.mode("overwrite").parquet(path)
    return ctx.spark.read.schema(table.schema).parquet(path)
