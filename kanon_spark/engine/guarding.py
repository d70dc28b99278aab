"""Sensitive histograms on Spark: read, written and added up where regions, groups and classes are formed."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kanon_spark.kernels.guard import Guard
from kanon_spark.kernels.guarded_groups import good_groups
from kanon_spark.kernels.value_sums import ValueSums
from kanon_spark.privacy.demands import Demands
from kanon_spark.privacy.histograms import Histograms
from kanon_spark.signatures.histograms import CODE_BITS, HISTOGRAM, pairs_of, read_histograms

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Longs = NDArray[np.int64]
_PERSONS, _SIZE = -1, -2


def write_histograms(histograms: Histograms) -> list[Longs]:
    """What `read_histograms` reads: an array of keys and counts in turn for each unit."""
    columns = histograms.columns
    column = np.repeat(np.arange(len(histograms.start) - 1) % columns, np.diff(histograms.start))
    pairs = np.empty((len(histograms.values), 2), np.int64)
    pairs[:, 0] = (column.astype(np.int64) << CODE_BITS) + histograms.values
    pairs[:, 1] = histograms.counts
    ends = 2 * histograms.start[columns::columns]
    return np.split(pairs.ravel(), ends[:-1]) if len(ends) else []


def as_slots(keys: Longs, demands: Demands) -> Longs:
    """Keys of histograms as the slots of demands."""
    slots: Longs = demands.base[keys >> CODE_BITS] + (keys & ((1 << CODE_BITS) - 1))
    return slots


def merged_histograms(frame: "DataFrame", by: Sequence[str]) -> "DataFrame":
    """One row for each group: its persons, its number of signatures (`size`), and the histogram of all of them.

    Values are added up by Spark, so that nobody holds the histograms of a large group side by side. Persons and
    signatures travel among them, under keys that no value has.
    """
    from pyspark.sql import functions as F

    def line(key: int, number: "Column") -> "Column":
        return F.struct(F.lit(key).cast("bigint").alias("key"), number.cast("bigint").alias("number"))

    own = F.array(line(_PERSONS, F.col("persons")), line(_SIZE, F.lit(1)))
    lines = frame.select(*by, F.inline(F.concat(own, pairs_of(F.col(HISTOGRAM)))))
    summed = lines.groupBy(*by, "key").agg(F.sum("number").alias("number"))
    key, number = F.col("key"), F.col("number")
    # What is no pair is null, and not collected.
    pairs = F.collect_list(F.when(key >= 0, F.array(key, number)))
    return summed.groupBy(*by).agg(
        F.sum(F.when(key == _PERSONS, number)).alias("persons"),
        F.sum(F.when(key == _SIZE, number)).alias("size"),
        F.flatten(F.array_sort(pairs)).alias(HISTOGRAM),
    )


def with_goodness(frame: "DataFrame", *, k: int, demands: Demands | None, kept: bool = False) -> "DataFrame":
    """A frame of groups with `good`: whether each has k persons and satisfies everything.

    Args:
        frame: `persons` of each group and, where more than k is asked, its histogram; a key may stand there repeatedly.
        k: Least persons.
        demands: What is asked beyond.
        kept: Whether histograms are still needed; they come back added up.
    """
    from pyspark.sql import functions as F

    if demands is None:
        return frame.withColumn("good", F.col("persons") >= k)
    columns = len(demands.null)

    def judge(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            histograms = read_histograms(batch, columns=columns)
            large = batch["persons"].to_numpy(np.int64) >= k
            guard = Guard.of(demands, histograms)
            batch["good"] = good_groups(guard, np.arange(len(batch)), large)
            if kept:
                batch[HISTOGRAM] = as_column(histograms)
            yield batch if kept else batch.drop(columns=[HISTOGRAM])

    names = [(name, kind) for name, kind in frame.dtypes if kept or name != HISTOGRAM]
    return frame.mapInPandas(judge, ", ".join(f"{name} {kind}" for name, kind in [*names, ("good", "boolean")]))


def as_column(histograms: Histograms) -> "pd.Series[Any]":
    """Histograms as a column of a frame."""
    return pd.Series(write_histograms(histograms), dtype=object)


def value_sums(frame: "DataFrame", by: str, demands: Demands) -> dict[int, ValueSums]:
    """Sensitive values of each group.

    At most (groups) x (sensitive values, which the driver holds with the demands) rows are collected: the caller names
    the bound of the groups.
    """
    from pyspark.sql import functions as F

    exploded = frame.select(by, "h", F.inline(pairs_of(F.col(HISTOGRAM))))
    once = exploded.groupBy(by, "h", "key").agg(F.sum("number").alias("number"))
    summed = once.groupBy(by, "key").agg(F.sum("number").alias("number"), F.count(F.lit(1)).alias("holders"))
    found = summed.toPandas()
    groups = found[by].to_numpy()
    slots = as_slots(found["key"].to_numpy(np.int64), demands)
    numbers, holders = found["number"].to_numpy(np.int64), found["holders"].to_numpy(np.int64)
    sums = {}
    for group in np.unique(groups).tolist():
        mine = groups == group
        sums[group] = ValueSums.of(slots[mine], numbers[mine], holders[mine])
    return sums
