"""How the sensitive values are spread over the classes, against the whole release: what the report draws of them.

Counted on the written table, in classes picked by the hash of their published tuple: whole ones, so that the shares in
a class are exact, and few enough that a table of any size costs one scan and a small shuffle. Numbers and times with
many values are counted in ranges of about equally many rows.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from kanon_spark.verify.groups import TUPLE, quoted, tuple_hashes, tuple_parts

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CLASSES = 2_000  # that are looked at, or all of fewer
VALUES = 10  # per column, the most frequent first
_RANGES = 8
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_QUANTILES = {"least": 0.0, "low": 0.1, "median": 0.5, "high": 0.9, "most": 1.0}
_DIGITS = 9


def sensitive_spread(
    release: "DataFrame", *, qi: Sequence[str], columns: Sequence[str], classes: int
) -> dict[str, Any] | None:
    """The most frequent values of each sensitive column, and their shares in the classes. It names values.

    Args:
        release: The written release.
        qi: Its quasi-identifiers, numbers beside them included.
        columns: The sensitive columns.
        classes: How many classes there are.

    Returns:
        `one_in`: of how many classes one was looked at, `classes`: how many these are, and `columns`: per column its
        `name` and `values`, each with its `label`, its `share` of all rows, its `rows` among those looked at and the
        `least`, `low` (tenth), `median`, `high` (ninetieth) and `most` of its shares in the classes. None without
        columns or classes.
    """
    from pyspark.sql import functions as F

    if not columns or not classes:
        return None
    step = max(1, classes // CLASSES)
    values = [F.col(quoted(name)).alias(f"v{i}") for i, name in enumerate(columns)]
    picked = release.select(*tuple_hashes(tuple_parts(release, qi)), *values)
    if step > 1:
        picked = picked.where(F.pmod("t1", F.lit(step)) == 0)
    picked = picked.persist()
    try:
        # One row per cell, and one more per row (column -1), so that a class's size is counted with its values.
        labels = [F.lit(""), *_labels(picked, len(columns))]
        parts = F.array(*[F.struct(F.lit(i).alias("c"), label.alias("v")) for i, label in enumerate(labels, start=-1)])
        return _told(picked.select(*TUPLE, F.inline(parts)), columns, step=step)
    finally:
        picked.unpersist()


def _labels(picked: "DataFrame", count: int) -> "list[Column]":
    """What each column's values are counted under: their texts; ranges, where numbers have many values."""
    from pyspark.sql import functions as F

    types = dict(picked.dtypes)
    labels = {f"v{i}": F.col(f"v{i}").cast("string") for i in range(count)}
    numbers = [name for name in labels if types[name].startswith(_NUMBERS)]
    if not numbers:
        return list(labels.values())
    steps = [i / _RANGES for i in range(_RANGES + 1)]
    asked = [F.approx_count_distinct(name).alias(f"many_{name}") for name in numbers]
    asked += [F.percentile_approx(F.col(name).cast("double"), steps).alias(f"ends_{name}") for name in numbers]
    found = picked.agg(*asked).first()
    for name in numbers:
        if found is not None and found[f"many_{name}"] > VALUES:
            labels[name] = _ranges(F.col(name), sorted(set(found[f"ends_{name}"])))
    return list(labels.values())


def _ranges(value: "Column", ends: Sequence[float]) -> "Column":
    """The range that a number lies in; null stays null."""
    from pyspark.sql import functions as F

    number = value.cast("double")
    chosen = F.when(value.isNull(), F.lit(None).cast("string"))
    for low, high in pairwise(ends):
        last = high == ends[-1]
        inside = number <= high if last else number < high
        chosen = chosen.when(inside, F.lit(f"{low:.6g} … {'' if last else 'below '}{high:.6g}"))
    return chosen.otherwise(F.lit(f"{ends[-1]:.6g} and more"))


def _told(cells: "DataFrame", columns: Sequence[str], *, step: int) -> dict[str, Any]:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    counts = cells.groupBy("c", "v").agg(F.count(F.lit(1)).alias("rows"))
    rank = F.row_number().over(Window.partitionBy("c").orderBy(F.desc("rows"), F.col("v").asc_nulls_last()))
    frequent = counts.withColumn("rank", rank).where(F.col("rank") <= VALUES).toPandas()
    known = cells.sparkSession.createDataFrame(frequent[["c", "v", "rank"]], "c int, w string, rank int")
    same = F.col("v").eqNullSafe(F.col("w"))
    # Bounded by CLASSES times VALUES for each column.
    named = cells.join(F.broadcast(known), "c").where(same)
    found = named.groupBy(*TUPLE, "c", "rank").agg(F.count(F.lit(1)).alias("n")).toPandas()
    sizes = found[found["c"] == -1].rename(columns={"n": "size"})[[*TUPLE, "size"]]
    whole = int(sizes["size"].sum())
    merged = found.merge(sizes, on=list(TUPLE))
    merged["share"] = merged["n"] / merged["size"]
    return {
        "one_in": step,
        "classes": len(sizes),
        "columns": [
            {"name": name, "values": _values(frequent, merged, place, classes=len(sizes), rows=whole)}
            for place, name in enumerate(columns)
        ],
    }


def _values(
    frequent: pd.DataFrame, found: pd.DataFrame, column: int, *, classes: int, rows: int
) -> list[dict[str, Any]]:
    told = []
    mine = frequent[frequent["c"] == column].sort_values("rank")
    for label, held, rank in zip(mine["v"], mine["rows"].astype(int), mine["rank"], strict=True):
        here = found.loc[(found["c"] == column) & (found["rank"] == rank), "share"].to_numpy(np.float64)
        shares = np.concatenate([np.zeros(classes - len(here)), here])  # most classes lack most values
        quantiles = {name: round(float(np.quantile(shares, q)), _DIGITS) for name, q in _QUANTILES.items()}
        share = round(held / rows, _DIGITS)
        told.append({"label": "null" if label is None else str(label), "rows": held, "share": share, **quantiles})
    return told
