"""Count the cells of the block cuts on the workers."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kanon_spark.blocks.cuts import CellRequest, Cells, Cuts, children_of, count_cells, cut_blocks
from kanon_spark.engine.pieces import Solver
from kanon_spark.signatures.layout import Layout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def cut_in_spark(
    solver: Solver,
    signatures: "DataFrame",
    count: int,
    block_size: int,
    last: frozenset[int],
    codes: Callable[[pd.DataFrame], NDArray[np.int32]] | None = None,
) -> Cuts:
    """Cut blocks from cell counts that the workers make; at most `CELL_LIMIT` cells reach the driver.

    Args:
        solver: Knows the trees.
        signatures: What to cut.
        count: How many there are.
        block_size: The most a block may hold.
        last: QIs to cut only where no other is left.
        codes: Where each signature of a batch lies; by default where its own codes say.
    """
    place = codes or solver.codes

    def count_in_spark(cuts: Cuts, request: CellRequest) -> Cells:
        from pyspark.sql import functions as F

        layouts = {
            block: Layout.of([len(children_of(cuts.forest, qi, frontier[qi])) for qi in columns])
            for block, frontier, columns in zip(request.blocks, request.frontiers, request.columns, strict=True)
        }

        def count_batches(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            for batch in batches:
                at = place(batch)
                for block, (cells, number) in count_cells(at, cuts.assign(at), request, cuts.forest).items():
                    yield pd.DataFrame({"block": block, "cell": layouts[block].pack(cells)[:, 0], "number": number})

        counted = (
            signatures.mapInPandas(count_batches, "block int, cell bigint, number bigint")
            .groupBy("block", "cell")
            .agg(F.sum("number").alias("number"))
            .toPandas()
        )
        counted = counted.sort_values(["block", "cell"])
        found: Cells = {}
        for block, layout in layouts.items():
            part = counted[counted["block"] == block]
            found[block] = (layout.unpack(part[["cell"]].to_numpy()), part["number"].to_numpy())
        return found

    return cut_blocks(solver.forest, signatures=count, block_size=block_size, count=count_in_spark, last=last)
