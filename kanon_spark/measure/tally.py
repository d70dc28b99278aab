"""Rows per published node of every QI: a few thousand numbers that all metrics of loss are made of.

Counted by numpy on the packed words: on the driver for small recodings (a cold Python worker costs seconds, and so does
compiling a query of a hundred sums), else in the workers.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kanon_spark.signatures.codebook import Codebook

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

# A recoding's entries: a Spark table, or collected where one process has formed the classes.
Entries: TypeAlias = "DataFrame | pd.DataFrame"
DRIVER_ENTRIES = 500_000  # packed words of this many entries are a few megabytes
ALL, SUPPRESSED = -1, -2  # what is counted besides the QIs, which count by their index
_SCHEMA = "qi int, place long, rows long, cost double"


def tally(entries: Entries, codebook: Codebook, *, count: int) -> dict[int, pd.DataFrame]:
    """Rows (`rows`) and their loss or bound (`cost`) by `place`, for each QI, for ALL and for SUPPRESSED.

    A QI's places are node ids, 0 (exact) and 1 (range or set); only released rows count there. ALL holds every row
    and, as cost, the sum of their bounds.
    """
    from pyspark.sql import functions as F

    own = [f"loss_{index}" for index, column in enumerate(codebook.columns) if column.publish != "node"]
    names = ["rows", "class_id", "bound", *codebook.node_layout.names("out"), *own]
    count_batches = partial(tally_batches, codebook=codebook)
    if isinstance(entries, pd.DataFrame) or count <= DRIVER_ENTRIES:
        import pyarrow as pa

        if isinstance(entries, pd.DataFrame):
            table = pa.Table.from_pandas(entries[names], preserve_index=False)
        else:
            table = entries.select(*names).toArrow()
        found = pa.Table.from_batches(count_batches(table.to_batches())).to_pandas()
    else:
        counted = entries.select(*names).mapInArrow(count_batches, _SCHEMA).groupBy("qi", "place")
        # Bounded by the nodes of all trees, which the driver holds anyway.
        found = counted.agg(F.sum("rows").alias("rows"), F.sum("cost").alias("cost")).toPandas()
    found = found.sort_values(["qi", "place"])
    return {qi: found[found["qi"] == qi] for qi in (ALL, SUPPRESSED, *range(len(codebook.columns)))}


def tally_batches(batches: "Iterable[pa.RecordBatch]", *, codebook: Codebook) -> "Iterator[pa.RecordBatch]":
    """The tallies of all batches together, as one batch per QI."""
    import pyarrow as pa

    rows_at = {index: np.zeros(column.tree.nodes, np.int64) for index, column in enumerate(codebook.columns)}
    rows_at |= {ALL: np.zeros(1, np.int64), SUPPRESSED: np.zeros(1, np.int64)}
    cost_at = {qi: np.zeros(max(2, len(counts))) for qi, counts in rows_at.items()}
    for batch in batches:
        rows = batch.column("rows").to_numpy()
        released = batch.column("class_id").to_numpy() >= 0
        rows_at[ALL] += rows.sum()
        cost_at[ALL][0] += (rows * batch.column("bound").to_numpy()).sum()
        rows_at[SUPPRESSED] += rows[~released].sum()
        names = codebook.node_layout.names("out")
        words = np.column_stack([batch.column(name).to_numpy() for name in names])[released]
        nodes = codebook.node_layout.unpack(words)
        kept = rows[released]
        for index, column in enumerate(codebook.columns):
            places: NDArray[np.int64] = nodes[:, index].astype(np.int64)
            if column.publish != "node":
                loss = batch.column(f"loss_{index}").to_numpy()[released]
                places = (loss != 0).astype(np.int64)
                np.add.at(cost_at[index], places, kept * loss)
            np.add.at(rows_at[index], places, kept)
    for qi, counts in rows_at.items():
        places = np.flatnonzero(counts)
        yield pa.record_batch(
            {
                "qi": pa.array(np.full(len(places), qi, np.int32)),
                "place": pa.array(places),
                "rows": pa.array(counts[places]),
                "cost": pa.array(cost_at[qi][places]),
            }
        )
