"""Histograms as columns of frames: Arrow's memory and numpy objects are read alike, and survive what frames do."""

from itertools import pairwise
from random import Random

import numpy as np
import pandas as pd
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kanon_spark.engine.binned import as_frame, as_table
from kanon_spark.signatures.histograms import CODE_BITS, HISTOGRAM, read_histograms

COLUMNS = 3
ENTRY = st.tuples(st.integers(0, COLUMNS - 1), st.integers(0, 6), st.integers(0, 9))
UNITS = st.lists(st.tuples(st.integers(0, 50), st.lists(ENTRY, max_size=5)), max_size=8)


def longs(entries: list[tuple[int, int, int]]) -> list[int]:
    return [long for column, code, count in entries for long in ((column << CODE_BITS) + code, count)]


def added_up(units: list[tuple[int, list[tuple[int, int, int]]]]) -> list[dict[tuple[int, int], int]]:
    found: list[dict[tuple[int, int], int]] = []
    for _, entries in units:
        sums: dict[tuple[int, int], int] = {}
        for column, code, count in entries:
            sums[column, code] = sums.get((column, code), 0) + count
        found.append(sums)
    return found


def as_read(frame: pd.DataFrame) -> list[dict[tuple[int, int], int]]:
    held = read_histograms(frame, columns=COLUMNS)
    return [
        {
            (column, int(held.values[i])): int(held.counts[i])
            for column in range(COLUMNS)
            for i in range(held.start[unit * COLUMNS + column], held.start[unit * COLUMNS + column + 1])
        }
        for unit in range(held.units)
    ]


@given(UNITS, st.integers(1, 3), st.randoms(use_true_random=False))
def test_columns_of_arrow_are_read_like_columns_of_objects(
    units: list[tuple[int, list[tuple[int, int, int]]]], pieces: int, random: "Random"
) -> None:
    whole = pa.table(
        {
            "persons": pa.array([persons for persons, _ in units], pa.int64()),
            HISTOGRAM: pa.array([longs(entries) for _, entries in units], pa.list_(pa.int64())),
        }
    )
    # Tables arrive in several batches, some of them empty.
    ends = [0, *sorted(len(units) * piece // pieces for piece in range(1, pieces)), len(units)]
    table = pa.concat_tables([whole.slice(begin, end - begin) for begin, end in pairwise(ends)])
    frame = as_frame(table)
    objects = whole.to_pandas()
    assert as_read(frame) == as_read(objects) == added_up(units)

    order = list(range(len(units)))
    random.shuffle(order)
    mixed = frame.iloc[order].reset_index(drop=True)
    assert as_read(mixed) == [added_up(units)[place] for place in order]
    odd = np.arange(len(units)) % 2 == 1
    parts = pd.concat([mixed[odd], mixed[~odd]], ignore_index=True)
    kept = [added_up(units)[place] for place in [*np.array(order, int)[odd], *np.array(order, int)[~odd]]]
    assert as_read(parts) == kept
    back = as_table(parts, whole.schema)
    assert as_read(back.to_pandas()) == kept


def test_frames_without_histograms_stay_as_they_are() -> None:
    frame = as_frame(pa.table({"a": [1, 2], "b": ["x", None]}))
    assert frame.to_dict("list") == {"a": [1, 2], "b": ["x", None]}
