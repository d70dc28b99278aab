"""The rows that are compared on: only the columns that matter, all rows or a sample, copied once.

Everything later reads the copy, so that the source is read once and may change meanwhile. The copy holds raw values: it
lies in the work folder, and goes when the comparison ends.

A sample takes whole persons where a unit is named: those whose hash is small. Without a unit, rows that are alike in
all these columns are counted, and of each kind its share is kept, rounded up or down by a hash. Either way the sample
depends on the content and the seed alone, not on files, order or partitions.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kanon_spark.config.models import Config
from kanon_spark.config.sensitive_findings import judged_columns
from kanon_spark.explore.compare.request import SAMPLE_ROWS, Sample
from kanon_spark.signatures.columns import quoted
from kanon_spark.signatures.sensitive import WISHES, with_wishes

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_PARTS = 1_000_000_000  # hashes are cut into so many parts: shares are exact to nine digits


@dataclass(frozen=True)
class Drawn:
    """The rows to compare on.

    Attributes:
        table: They themselves, read from the copy.
        whole: Rows of the whole table; None where nobody counted, because all are taken.
        share: The share that was drawn; None where all are taken.
        by_itself: Whether the sample was drawn because the table is large, not because somebody asked.
    """

    table: "DataFrame"
    whole: int | None = None
    share: float | None = None
    by_itself: bool = False


def columns_needed(config: Config, labels: Iterable[str]) -> list[str]:
    """The columns that figures depend on: quasi-identifiers, the unit, judged sensitive columns, wishes and labels."""
    privacy = config.privacy
    named = [
        *config.columns.quasi_identifiers,
        *([privacy.unit] if privacy.unit is not None else []),
        *judged_columns(config),
        *([WISHES] if privacy.personal_k is not None else []),
        *labels,
    ]
    return list(dict.fromkeys(named))


def draw(
    rows: "DataFrame", config: Config, *, labels: Iterable[str], asked: Sample | None, seed: int, path: str
) -> Drawn:
    """Copy what is needed of the rows to `path`.

    Args:
        rows: The rows.
        config: The configuration.
        labels: Columns of class labels.
        asked: Which sample to draw; None draws about `SAMPLE_ROWS` rows of a larger table, and all of any other.
        seed: Seed of the sample.
        path: Where the copy is written.
    """
    names = columns_needed(config, labels)
    rows = with_wishes(rows, config).select(*[quoted(name) for name in names])
    whole, share = None, None
    if asked is None or asked.rows is not None or asked.share is not None:
        whole = rows.count()
        most = SAMPLE_ROWS if asked is None else asked.rows
        share = asked.share if asked is not None and asked.share is not None else _share(most, whole)
    if share is not None:
        rows = _sampled(rows, config.privacy.unit, share=share, seed=seed)
    rows.write.mode("overwrite").parquet(path)
    copy = rows.sparkSession.read.schema(rows.schema).parquet(path)
    return Drawn(copy, whole, share, by_itself=asked is None and share is not None)


def _share(most: int | None, whole: int) -> float | None:
    return None if most is None or whole <= most else most / whole


def _sampled(rows: "DataFrame", unit: str | None, *, share: float, seed: int) -> "DataFrame":
    from pyspark.sql import functions as F

    border = F.lit(round(share * _PARTS))
    if unit is None:
        return _kept_of_each_kind(rows, share=share, seed=seed)
    person = F.col(quoted(unit))
    chosen = rows.where(person.isNotNull() & (_part(seed, person) < border))
    # Rows without a person are persons of their own.
    return chosen.unionByName(_kept_of_each_kind(rows.where(person.isNull()), share=share, seed=seed))


def _kept_of_each_kind(rows: "DataFrame", *, share: float, seed: int) -> "DataFrame":
    """Of n rows that are alike floor(n · share + u) are kept, with u between 0 and 1 by their hash."""
    from pyspark.sql import functions as F

    from kanon_spark.io.content import content_hash

    names = [quoted(name) for name in rows.columns]
    counted = rows.groupBy(*names).agg(F.count(F.lit(1)).alias("_kanon_many"))
    drawn = _part(seed, content_hash(rows, rows.columns)) / F.lit(float(_PARTS))
    kept = F.floor(F.col("_kanon_many") * F.lit(share) + drawn).cast("int")
    each = counted.withColumn("_kanon_kept", kept).where("_kanon_kept > 0")
    return each.withColumn("_kanon_each", F.explode(F.sequence(F.lit(1), F.col("_kanon_kept")))).select(*names)


def _part(seed: int, value: "Column") -> "Column":
    """Which of `_PARTS` parts a value belongs to; another seed gives other parts."""
    from pyspark.sql import functions as F

    return F.pmod(F.xxhash64(F.lit(f"sample {seed}"), value), F.lit(_PARTS))
