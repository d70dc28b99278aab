"""How the sensitive values are spread over the classes, against the whole release: what the report draws of them.

Counted on the written table, in classes picked by the hash of their published tuple: whole ones, so that the shares in
a class are exact, and few enough that a table of any size costs one scan and a small shuffle. Numbers with many values
are counted in ranges of about equally many rows, whose ends are round: no end is the value of a person.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kanon_spark.verify.groups import TUPLE, quoted, tuple_hashes, tuple_parts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CLASSES = 2_000  # that are looked at, or all of fewer
VALUES = 10  # per column, the most frequent first
_RANGES = 8
_NUMBERS = {"tinyint", "smallint", "int", "bigint", "float", "double", "decimal"}
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
    types = dict(release.dtypes)
    texts = [F.col(quoted(name)).cast("string").alias(f"v{i}") for i, name in enumerate(columns)]
    numbers = {i: name for i, name in enumerate(columns) if types[name].partition("(")[0] in _NUMBERS}
    values = [F.col(quoted(name)).cast("double").alias(f"x{i}") for i, name in numbers.items()]
    picked = release.select(*tuple_hashes(tuple_parts(release, qi)), *texts, *values)
    if step > 1:
        picked = picked.where(F.pmod("t1", F.lit(step)) == 0)
    picked = picked.persist()
    try:
        ends = _ends(picked, list(numbers))
        cells = picked.mapInPandas(partial(_cells, ends=ends), "t1 long, t2 long, c int, v string")
        return _told(cells, columns, step=step)
    finally:
        picked.unpersist()


def _ends(picked: "DataFrame", numbers: Sequence[int]) -> dict[int, list[float]]:
    """Of each column of numbers with many values, where one range ends and the next begins."""
    from pyspark.sql import functions as F

    if not numbers:
        return {}
    steps = [i / _RANGES for i in range(1, _RANGES)]
    asked = [F.approx_count_distinct(f"x{i}").alias(f"many{i}") for i in numbers]
    asked += [F.percentile_approx(f"x{i}", steps).alias(f"ends{i}") for i in numbers]
    found = picked.agg(*asked).first()
    assert found is not None  # an aggregate over everything has one row
    ends = {i: round_ends(found[f"ends{i}"] or ()) for i in numbers if found[f"many{i}"] > VALUES}
    return {i: each for i, each in ends.items() if each}


def round_ends(ends: Sequence[float]) -> list[float]:
    """Ends moved to the nearest multiple of a round step; none where they all lie in one place.

    >>> round_ends([1203.5, 2377.0, 3641.2, 5022.9])
    [1000.0, 2000.0, 4000.0, 5000.0]
    >>> round_ends([3.0, 3.0])
    []
    """
    width = (max(ends, default=0.0) - min(ends, default=0.0)) / max(1, len(ends) - 1)
    if not width > 0 or not math.isfinite(width):
        return []
    power = 10.0 ** math.floor(math.log10(width))
    step = max(part * power for part in (1, 2, 5) if part * power <= width)
    return sorted({round(end / step) * step for end in ends})


def _cells(batches: Iterable[pd.DataFrame], *, ends: dict[int, list[float]]) -> Iterator[pd.DataFrame]:
    """One line per cell with the label it is counted under, and one more per row (column -1) for the class's size.

    Labels are made here, not by Spark: a plan must not show values.
    """
    for batch in batches:
        at = batch[list(TUPLE)]
        yield at.assign(c=-1, v="")
        for name in (name for name in batch.columns if name.startswith("v")):
            i = int(name[1:])
            text = _ranges(batch[f"x{i}"].to_numpy(np.float64), ends[i]) if i in ends else batch[name].to_numpy(object)
            yield at.assign(c=i, v=text)


def _ranges(numbers: NDArray[np.float64], ends: Sequence[float]) -> NDArray[np.object_]:
    """The range that each number lies in; None for null."""
    names = [f"below {ends[0]:.6g}", *(f"{low:.6g} … below {high:.6g}" for low, high in pairwise(ends))]
    names.append(f"{ends[-1]:.6g} and more")
    texts = np.array(names, np.object_)[np.searchsorted(ends, numbers, side="right")]
    texts[~np.isfinite(numbers)] = None
    return texts


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
