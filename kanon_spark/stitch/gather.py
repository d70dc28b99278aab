"""Gather what blocks left open into regions that can be solved again, by picks and connected components.

Every component (a signature at first) picks the partner whose union with it adds the least loss, found by the tree of
boxes that each worker builds over all components; GraphFrames tells which components the picks join. Rounds go on until
every region holds enough persons to choose among. Regions that lie side by side are then packed together up to the size
of a block: the more a kernel can choose among, the less is lost, and what belongs together stays together.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.kernels.partners import cheapest_partners
from kanon_spark.stitch.graph import Graphs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kanon_spark.engine.pieces import Solver

REGION = 6  # times k persons: enough to choose in, few enough for a task
MOST_ROUNDS = 8  # each halves the regions that are too small, at least
_SLICE = 20_000  # components that one task asks for


def gather(
    solver: "Solver",
    open_ones: "DataFrame",
    *,
    block_size: int,
    folder: Callable[[str], str],
    graphs: Graphs,
    tell: Callable[[str], None],
) -> "tuple[DataFrame, int]":
    """The open signatures with the column `region` added, and the number of rounds.

    Args:
        solver: Knows trees and k.
        open_ones: Entries that no block could close: key words, `h`, `rows`, `persons`.
        block_size: Signatures up to which neighbouring regions are packed together.
        folder: Gives a path under the work folder for a name.
        graphs: Calls GraphFrames.
        tell: Told how it goes on.
    """
    from pyspark.sql import functions as F

    spark = open_ones.sparkSession
    wanted = REGION * solver.k
    members = open_ones.withColumn("region", F.col("h"))
    rounds = 0
    while True:
        # Bounded by what blocks leave open; a component is some forty bytes.
        regions = _regions(solver, members)
        small = np.flatnonzero(regions.persons < wanted).astype(np.int32)
        tell(f"{len(regions.names)} regions, {len(small)} of them small")
        if not len(small) or len(regions.names) == 1 or rounds == MOST_ROUNDS:
            break
        picks = _picks(solver, regions, small, open_ones)
        picks = _written(picks, folder(f"gather_picks_{rounds}"))
        if not picks.limit(1).count():
            break  # nothing that is left may be published together
        vertices = spark.createDataFrame(pd.DataFrame({"id": regions.names}), "id long")
        joined = graphs.components(vertices, picks)
        names = joined.select(F.col("id").alias("region"), F.col("component").alias("now"))
        moved = members.join(names, "region").select(*open_ones.columns, F.col("now").alias("region"))
        members = _written(moved, folder(f"gather_members_{rounds}"))
        rounds += 1
    packs = pd.DataFrame({"region": regions.names, "now": _packs(solver, regions, block_size)})
    packed = F.broadcast(spark.createDataFrame(packs, "region long, now long"))
    return members.join(packed, "region").select(*open_ones.columns, F.col("now").alias("region")), rounds


class _Regions:
    """Box, rows, persons and signatures of every region, in the order of their names."""

    def __init__(self, names: NDArray[np.int64], nodes: NDArray[np.int32], counts: NDArray[np.int64]) -> None:
        self.names = names
        self.nodes = nodes
        self.rows, self.persons, self.signatures = (np.ascontiguousarray(counts[:, i]) for i in range(3))


def _packs(solver: "Solver", regions: _Regions, block_size: int) -> NDArray[np.int32]:
    """The pack in which each region is solved: cut like blocks where it costs least, then filled up with neighbours."""
    corners = solver.forest.lo[regions.nodes]
    cuts = solver.cut_here(np.repeat(corners, regions.signatures, axis=0), block_size)
    return cuts.bins(block_size)[cuts.assign(corners)]


def _regions(solver: "Solver", members: "DataFrame") -> _Regions:
    """Boxes are made from the least and the largest code of each QI."""
    from pyspark.sql import functions as F

    width = solver.forest.width
    words = solver.codebook.layout.names()
    codes = ", ".join(f"c{j} int" for j in range(width))

    def with_codes(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            out = batch[["region", "rows", "persons"]].copy()
            at = solver.codes(batch)
            for j in range(width):
                out[f"c{j}"] = at[:, j]
            yield out

    coded = members.select("region", "rows", "persons", *words).mapInPandas(
        with_codes, f"region long, rows long, persons long, {codes}"
    )
    measures = [F.sum(name).alias(name) for name in ("rows", "persons")] + [F.count(F.lit(1)).alias("size")]
    measures += [F.min(f"c{j}").alias(f"least{j}") for j in range(width)]
    measures += [F.max(f"c{j}").alias(f"most{j}") for j in range(width)]
    # One short row per component that blocks left open.
    found = coded.groupBy("region").agg(*measures).toPandas().sort_values("region")
    least = found[[f"least{j}" for j in range(width)]].to_numpy(np.int32)
    most = found[[f"most{j}" for j in range(width)]].to_numpy(np.int32)
    forest = solver.forest
    nodes = _covering(least, most, forest.start, forest.parent, forest.hi)
    return _Regions(found["region"].to_numpy(np.int64), nodes, found[["rows", "persons", "size"]].to_numpy(np.int64))


def _picks(solver: "Solver", regions: _Regions, small: NDArray[np.int32], like: "DataFrame") -> "DataFrame":
    """(src, dst): each small region and its cheapest partner."""
    forest, nodes, rows, names = solver.forest, regions.nodes, regions.rows, regions.names
    slices = -(-len(small) // _SLICE)

    def ask(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            for number in batch["id"]:
                asking = small[number * _SLICE : (number + 1) * _SLICE]
                partner, _ = cheapest_partners(forest, nodes, rows, asking)
                found = partner >= 0
                yield pd.DataFrame({"src": names[asking[found]], "dst": names[partner[found]]})

    asked = like.sparkSession.range(slices, numPartitions=slices)
    return asked.mapInPandas(ask, "src long, dst long")


def _written(table: "DataFrame", path: str) -> "DataFrame":
    """Lineage ends here: what follows reads a file."""
    table.write.mode("overwrite").parquet(path)
    return table.sparkSession.read.schema(table.schema).parquet(path)


@njit(cache=True)
def _covering(least, most, start, parent, hi):  # type: ignore[no-untyped-def]
    out = np.empty(least.shape, np.int32)
    for i in range(least.shape[0]):
        for j in range(least.shape[1]):
            v = start[j] + least[i, j]
            while hi[v] <= most[i, j]:
                v = parent[v]
            out[i, j] = v
    return out
