"""The floor: the least that Spark needs for any release that treats equal tuples of quasi-identifiers alike.

Read the table, group by the QIs, keep the map from tuples to labels, join it back on the QIs, write. No codes, no
solving, no checks. The label is a value itself where its tuple has k rows and `*` elsewhere, so that the counts are
needed. The map is written and read back, because whoever decides labels must have seen all counts before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BROADCAST_SIGNATURES = 2_000_000  # beyond, the map is joined by a shuffle


@dataclass(frozen=True)
class Floor:
    """What the floor saw."""

    signatures: int
    broadcast: bool


def run_floor(spark: "SparkSession", source: Path, folder: Path, *, qis: Sequence[str], k: int) -> Floor:
    """Do it: `folder/map` and `folder/floor` are written."""
    from pyspark.sql import functions as F

    table = spark.read.parquet(str(source))
    labels = [
        F.when(F.col("count") >= k, F.col(f"`{qi}`").cast("string")).otherwise(F.lit("*")).alias(f"_label_{number}")
        for number, qi in enumerate(qis)
    ]
    quoted = [F.col(f"`{qi}`") for qi in qis]
    table.groupBy(*quoted).count().select(*quoted, *labels).write.parquet(str(folder / "map"))
    found = spark.read.parquet(str(folder / "map"))
    signatures = found.count()
    broadcast = signatures <= BROADCAST_SIGNATURES
    joined = table.join(F.broadcast(found) if broadcast else found.hint("shuffle_hash"), list(qis))
    label_of = {qi: F.col(f"_label_{number}").alias(qi) for number, qi in enumerate(qis)}
    joined.select(*[label_of.get(name, F.col(f"`{name}`")) for name in table.columns]).write.parquet(
        str(folder / "floor")
    )
    return Floor(signatures, broadcast)
