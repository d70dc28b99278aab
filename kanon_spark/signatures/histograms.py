"""Sensitive histograms beside the signatures: one column of longs, key and count in turn.

A key is the number of the sensitive column, shifted left by `CODE_BITS`, and the code of the value. So a signature
costs what it holds, whatever the size of the domain, and one array of longs travels through Arrow without objects per
entry. The same key may stand in an array several times; readers add the counts up.
"""

from typing import TYPE_CHECKING

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
    arrays = frame[HISTOGRAM].to_list()
    lengths = np.fromiter((len(each) // 2 for each in arrays), np.int64, len(arrays))
    pairs: NDArray[np.int64] = (
        np.concatenate(arrays).astype(np.int64).reshape(-1, 2) if arrays else np.zeros((0, 2), np.int64)
    )
    place = np.repeat(np.arange(len(arrays)), lengths) * columns + (pairs[:, 0] >> CODE_BITS)
    values = (pairs[:, 0] & ((1 << CODE_BITS) - 1)).astype(np.int32)
    return sum_entries(place, values, pairs[:, 1], persons, columns)


def pairs_of(histogram: "Column") -> "Column":
    """A histogram as an array of structs of key and number, to inline."""
    from pyspark.sql import functions as F

    keys = F.filter(histogram, lambda _, place: place % 2 == 0)
    numbers = F.filter(histogram, lambda _, place: place % 2 == 1)
    return F.transform(
        F.arrays_zip(keys.alias("key"), numbers.alias("number")),
        lambda pair: F.struct(pair["key"].alias("key"), pair["number"].alias("number")),
    )
