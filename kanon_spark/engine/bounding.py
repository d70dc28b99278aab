"""A lower bound of the loss for methods that do not solve over blocks of the trees: blocks are cut for the bound alone.

Inside a block the bound is that of the block's own signatures; a class that leaves the block costs at least its
crossing loss, whatever the method. So the bound holds for every release, and each task holds one bin of blocks.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from kanon_spark.engine.binned import apply_to_bins
from kanon_spark.engine.cutting import cut_in_spark
from kanon_spark.engine.pieces import Solver
from kanon_spark.engine.stages import RunContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def block_bound_kind(solver: Solver, bound: str) -> str:
    """Which bound a large table gets where the configuration asks for `bound`: none where no QI has a hierarchy."""
    return "none" if bound == "none" or not solver.counted else "simple per block"


def with_block_bounds(
    ctx: RunContext,
    solver: Solver,
    signatures: "DataFrame",
    *,
    count: int,
    block_size: int,
    folder: Callable[[str], str],
) -> "DataFrame":
    """The signatures with a column `bound`, which `Solver.entries` passes on; written to `folder("bounded")`.

    Some QI must have a hierarchy (see `block_bound_kind`).
    """
    with ctx.stage("bound"):
        cuts = cut_in_spark(
            signatures,
            solver.forest,
            solver.codes,
            solver.codebook.layout.names(),
            count=count,
            block_size=block_size,
            last=solver.unbounded,
        )
        bins = cuts.bins(block_size)

        def put_into_bins(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            for batch in batches:
                batch["block"] = cuts.assign(solver.codes(batch))
                batch["bin"] = bins[batch["block"]]
                yield batch

        def bound_bin(frame: pd.DataFrame) -> pd.DataFrame:
            frame = solver.in_order(frame)
            bound = np.zeros(len(frame))
            block_of = frame["block"].to_numpy()
            for block in np.unique(block_of):
                inside = block_of == block
                bound[inside], _ = solver.bound(frame[inside], cap=cuts.crossing_of(int(block), solver.counted))
            frame["bound"] = bound
            return frame.drop(columns=["block", "bin"])

        fields = ", ".join(f"{name} {kind}" for name, kind in signatures.dtypes)
        binned = signatures.mapInPandas(put_into_bins, f"{fields}, block int, bin int")
        bounded = apply_to_bins(binned, bound_bin, f"{fields}, bound double")
        path = folder("bounded")
        bounded.write.mode("overwrite").parquet(path)
        return ctx.spark.read.schema(bounded.schema).parquet(path)
