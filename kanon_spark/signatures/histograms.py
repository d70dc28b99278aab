"""Sensitive histograms beside the signatures: one column of longs, key and count in turn.

A key is the number of the sensitive column, shifted left by `CODE_BITS`, and the code of the value. So a signature
costs what it holds, whatever the size of the domain, and one array of longs travels through Arrow without objects per
entry. The same key may stand in an array several times; readers add the counts up.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kanon_spark.privacy.histograms import Histograms, sum_entries

if TYPE_CHECKING:
    from pyspark.sql import Column

HISTOGRAM = "sensitive"  # the column
CODE_BITS = 32


def read_histograms(frame: pd.DataFrame, *, columns: int) -> Histograms:
    """Histograms of a frame's signatures, in its order.

    >>> frame = pd.DataFrame({"persons": [3, 1], "sensitive": [np.array([4, 2, 7, 1]), np.array([4, 1])]})
    >>> found = read_histograms(frame, columns=1)
    >>> found.start.tolist(), found.values.tolist(), found.counts.tolist(), found.persons.tolist()
    ([0, 2, 3], [4, 7, 4], [2, 1, 1], [3, 1])
    """
    persons = frame["persons"].to_numpy(np.int64)
    longs, flat = _flattened(frame[HISTOGRAM])
    pairs = flat.reshape(-1, 2)
    place = np.repeat(np.arange(len(longs)), longs // 2) * columns + (pairs[:, 0] >> CODE_BITS)
    values = (pairs[:, 0] & ((1 << CODE_BITS) - 1)).astype(np.int32)
    return sum_entries(place, values, pairs[:, 1], persons, columns)


def _flattened(column: "pd.Series[Any]") -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many longs each histogram has, and all of them one after another."""
    if isinstance(column.dtype, pd.ArrowDtype):
        import pyarrow as pa

        held = pa.array(column.array)
        held = held.combine_chunks() if isinstance(held, pa.ChunkedArray) else held
        return held.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64), held.flatten().to_numpy()
    arrays = column.to_list()
    longs = np.fromiter(map(len, arrays), np.int64, len(arrays))
    return longs, np.concatenate(arrays).astype(np.int64) if arrays else np.zeros(0, np.int64)


def pairs_of(histogram: "Column") -> "Column":
    """A histogram as an array of structs of key and number, to inline."""
    from pyspark.sql import functions as F

    none = F.array().cast("array<struct<key: bigint, number: bigint>>")
    places = F.sequence(F.lit(0), F.size(histogram) - 2, F.lit(2))
    pairs = F.transform(
        places,
        lambda place: F.struct(F.get(histogram, place).alias("key"), F.get(histogram, place + 1).alias("number")),
    )
    return F.when(F.size(histogram) > 0, pairs).otherwise(none)
