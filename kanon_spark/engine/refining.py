"""Polish classes across the borders of the blocks they were formed in.

A block is polished by itself, so classes on the two sides of a cut never trade signatures. Here the classes, whole, are
dealt into new blocks that are cut on other QIs, and polished there. Any division of *classes* is as good as any other
for correctness: polishing never lets a class fall under k, and it never makes the loss rise.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kanon_spark.blocks.cuts import Cuts
from kanon_spark.engine.binned import apply_to_bins
from kanon_spark.engine.cutting import cut_in_spark
from kanon_spark.engine.pieces import Solver
from kanon_spark.engine.stages import RunContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROUNDS = 2  # one for each further way to cut; more bring less than a thousandth


def refine_across_blocks(
    ctx: RunContext,
    solver: Solver,
    entries: "DataFrame",
    *,
    count: int,
    block_size: int,
    folder: Callable[[str], str],
    last: frozenset[int],
    turn: int,
) -> "DataFrame":
    """Polish the entries' classes in other blocks; `last` are the QIs that have been cut already."""
    for number in range(ROUNDS):
        cuts = cut_in_spark(
            entries,
            solver.cut_forest,
            partial(class_corners, solver),
            solver.codebook.node_layout.names("out"),
            count=count,
            block_size=block_size,
            last=last,
        )
        last = frozenset({split.qi for split in cuts.splits}) | solver.unbounded
        path = folder(f"refined_{number}")
        refined = _refine_blocks(solver, entries, cuts, block_size, turn + number)
        refined.write.mode("overwrite").parquet(path)
        entries = ctx.spark.read.schema(solver.schema).parquet(path)
    return entries


def class_corners(solver: Solver, frame: pd.DataFrame) -> NDArray[np.int32]:
    """Where the class of each signature begins in each QI: equal for all signatures of a class."""
    words = frame[solver.codebook.node_layout.names("out")].to_numpy(np.int64)
    corners: NDArray[np.int32] = solver.forest.lo[solver.forest_nodes(words)]
    return corners


def _refine_blocks(solver: Solver, entries: "DataFrame", cuts: Cuts, block_size: int, turn: int) -> "DataFrame":
    bins = cuts.bins(block_size)

    def put_into_bins(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            batch["bin"] = bins[cuts.assign(class_corners(solver, batch))]
            yield batch

    def refine_bin(frame: pd.DataFrame) -> pd.DataFrame:
        return solver.refine(frame, turn=turn, block=int(frame["bin"].iloc[0]))

    binned = entries.mapInPandas(put_into_bins, f"{solver.schema}, bin int")
    return apply_to_bins(binned, refine_bin, solver.schema)
