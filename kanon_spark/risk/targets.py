"""The rows that an attacker holds: drawn from the original, seeded and bounded.

Rows are drawn by content: each copy of equal rows has a number, and the rows with the least hashes of (seed, content,
number) are taken. So the draw is uniform over rows, and the same whatever their order, files or partitions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kanon_spark.risk.classes import text_of, value_hash, value_of
from kanon_spark.risk.request import no_rows
from kanon_spark.signatures.columns import one_form, quoted, type_of
from kanon_spark.verify.groups import TUPLE, tuple_hashes

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import Column, DataFrame

MOST_TARGETS = 100_000  # they are held on the driver and travel with every task
_COPIES = 4_096  # numbers that are made at once for copies of one row


@dataclass(frozen=True)
class Drawn:
    """The rows that were drawn.

    Attributes:
        keys: `t1`, `t2` (hashes of the tuple) and `target`, one row per distinct tuple.
        target: For each drawn row the number of its tuple.
        values: For each drawn row the hashes of its sensitive values, one column per sensitive column.
    """

    keys: "pd.DataFrame"
    target: NDArray[np.int64]
    values: NDArray[np.int64]


def sensitive_hash(table: "DataFrame", name: str) -> "Column":
    """One long per sensitive value, by its text; numbers by their shortest, for 100 may be 100.0 in the other table."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    own, text = type_of(table, name), text_of(table, name)
    if isinstance(own, T.FractionalType):
        number = one_form(F.col(quoted(name)), own)
        short = F.regexp_replace(text, "0+$", "") if isinstance(own, T.DecimalType) and own.scale > 0 else text
        whole = F.when(number == F.floor(number), F.floor(number).try_cast("decimal(38,0)").cast("string"))
        text = F.coalesce(whole, short)
    return value_hash(text)


def value_names(count: int) -> list[str]:
    """Names under which hashes of sensitive values travel."""
    return [f"s{index}" for index in range(count)]


def keyed(table: "DataFrame", columns: Sequence[str], sensitive: Sequence[str], *more: "Column") -> "DataFrame":
    """The original's rows: `t1`, `t2` (hashes of what the attacker knows), `s0`, … (of sensitive values), and more."""
    hashes = tuple_hashes([value_of(table, name) for name in columns])
    values = [
        sensitive_hash(table, name).alias(alias)
        for name, alias in zip(sensitive, value_names(len(sensitive)), strict=True)
    ]
    return table.select(*hashes, *values, *more)


def draw(rows: "DataFrame", *, count: int, seed: int, sensitive: int) -> Drawn:
    """Draw rows.

    Args:
        rows: As `keyed` makes them.
        count: How many to draw; all of them, if there are fewer. Bounds what comes to the driver.
        seed: Seed of the draw.
        sensitive: Sensitive columns.
    """
    import pandas as pd
    from pyspark.sql import functions as F

    names = [*TUPLE, *value_names(sensitive)]
    equal = rows.groupBy(*names).agg(F.count(F.lit(1)).alias("copies"))
    last = F.col("copies") - 1
    # In two steps, for a million equal rows must not become one array of a million numbers.
    blocks = equal.withColumn("block", F.explode(F.sequence(F.lit(0).cast("long"), last, F.lit(_COPIES).cast("long"))))
    upper = F.least(F.col("block") + (_COPIES - 1), last)
    copies = blocks.withColumn("copy", F.explode(F.sequence(F.col("block"), upper)))
    ordered = copies.withColumn("draw", F.xxhash64(F.lit(seed), *names, "copy"))
    found = ordered.orderBy("draw", *names, "copy").limit(count).select(*names).toPandas()
    if found.empty:
        raise no_rows("table")
    keys = found[list(TUPLE)].drop_duplicates().sort_values(list(TUPLE)).reset_index(drop=True)
    keys["target"] = np.arange(len(keys), dtype=np.int32)
    target = found.merge(keys, on=list(TUPLE), how="left")["target"].to_numpy(np.int64)
    values = found[value_names(sensitive)].to_numpy(np.int64) if sensitive else np.zeros((len(found), 0), np.int64)
    return Drawn(pd.DataFrame(keys), target, values)
