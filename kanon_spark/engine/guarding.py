"""Sensitive histograms on Spark: read, written and added up where regions, groups and classes are formed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kanon_spark.kernels.value_sums import ValueSums
from kanon_spark.privacy.demands import Demands
from kanon_spark.privacy.histograms import Histograms
from kanon_spark.signatures.histograms import CODE_BITS, HISTOGRAM

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Longs = NDArray[np.int64]


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


def pairs_of(histogram: "Column") -> "Column":
    """A histogram as an array of structs of key and number, to inline."""
    from pyspark.sql import functions as F

    keys = F.filter(histogram, lambda _, place: place % 2 == 0)
    numbers = F.filter(histogram, lambda _, place: place % 2 == 1)
    return F.transform(
        F.arrays_zip(keys.alias("key"), numbers.alias("number")),
        lambda pair: F.struct(pair["key"].alias("key"), pair["number"].alias("number")),
    )


def merged_histograms(frame: "DataFrame", by: Sequence[str]) -> "DataFrame":
    """One row for each group: its persons, and the histogram of all its signatures.

    Values are added up by Spark, so that nobody holds the histograms of a large group side by side.
    """
    from pyspark.sql import functions as F

    persons = frame.groupBy(*by).agg(F.sum("persons").alias("persons"))
    exploded = frame.select(*by, F.inline(pairs_of(F.col(HISTOGRAM))))
    summed = exploded.groupBy(*by, "key").agg(F.sum("number").alias("number"))
    pair = F.array("key", "number")
    histograms = summed.groupBy(*by).agg(F.flatten(F.array_sort(F.collect_list(pair))).alias(HISTOGRAM))
    nothing = F.array().cast("array<bigint>")
    return persons.join(histograms, list(by), "left").withColumn(HISTOGRAM, F.coalesce(HISTOGRAM, nothing))


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
