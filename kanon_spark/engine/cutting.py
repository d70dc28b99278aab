"""Count the cells of the block cuts on the workers.

Large tables are counted by a sample, drawn by the signatures' hashes so that it is the same on every run: the cuts need
to know where the signatures are many, not how many exactly. A signature that the sample has not seen still falls into
one block, and whatever it shares a group with across a border still costs the crossing loss; only the sizes of the
blocks become estimates.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kanon_spark.blocks.cuts import CellRequest, Cells, Cuts, children_of, count_cells, cut_blocks
from kanon_spark.kernels.problem import Forest
from kanon_spark.signatures.layout import Layout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


Place = Callable[[pd.DataFrame], NDArray[np.int32]]

SAMPLE = 400_000  # signatures that are counted at least: a block of 50,000 of 10 million is then known to 2%


def cut_in_spark(
    signatures: "DataFrame",
    forest: Forest,
    place: Place,
    columns: Sequence[str],
    *,
    count: int,
    block_size: int,
    last: frozenset[int],
) -> Cuts:
    """Cut blocks from cell counts that the workers make; at most `CELL_LIMIT` cells reach the driver.

    Args:
        signatures: What to cut; has `h`.
        forest: The trees of the whole table.
        place: The codes at which each signature of a batch lies.
        columns: The columns that `place` reads.
        count: How many signatures there are.
        block_size: The most a block may hold.
        last: QIs to cut only where no other is left.
    """
    from pyspark.sql import functions as F

    parts = max(1, count // SAMPLE)
    counted_ones = signatures.where(F.pmod("h", F.lit(parts)) == 0) if parts > 1 else signatures
    counted_ones = counted_ones.select(*columns)

    def count_in_spark(cuts: Cuts, request: CellRequest) -> Cells:
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
            counted_ones.mapInPandas(count_batches, "block int, cell bigint, number bigint")
            .groupBy("block", "cell")
            .agg((F.sum("number") * parts).alias("number"))
            .toPandas()
        )
        counted = counted.sort_values(["block", "cell"])
        found: Cells = {}
        for block, layout in layouts.items():
            part = counted[counted["block"] == block]
            found[block] = (layout.unpack(part[["cell"]].to_numpy()), part["number"].to_numpy())
        return found

    return cut_blocks(forest, signatures=count, block_size=block_size, count=count_in_spark, last=last)
