"""When the last few signatures cannot form a class, the closed class that takes them most cheaply is opened again."""

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from kanon_spark.compiling import njit
from kanon_spark.engine.pieces import Solver
from kanon_spark.kernels.lattice import joined_cost

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Signatures that look for a class each, evenly chosen; beyond (rows of persons who count elsewhere can be many), the
# others join one of the classes that these have found.
REOPEN_LIMIT = 2_000


def reopen_for_the_rest(
    solver: Solver, entries: pd.DataFrame, closed: "list[DataFrame]", *, turn: int
) -> "tuple[pd.DataFrame, list[DataFrame]]":
    """Solve the open entries again together with the closed classes that are cheapest for them.

    Returns:
        The entries and the closed parts without the reopened classes. Entries that no class may take stay open.
    """
    from pyspark.sql import functions as F

    left = entries[entries["open"]].reset_index(drop=True)
    asking = left.iloc[:: -(-len(left) // REOPEN_LIMIT)]
    outs = solver.codebook.node_layout.names("out")
    parts = [part.select("class_id", *outs, "rows") for part in closed]
    classes = (
        reduce(lambda one, two: one.unionByName(two), parts).groupBy("class_id", *outs).agg(F.sum("rows").alias("rows"))
    )
    codes, rows = solver.codes(asking), asking["rows"].to_numpy(np.int64)

    def cheapest(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            nodes = solver.forest_nodes(batch[outs].to_numpy(np.int64))
            forest = solver.forest
            best, rise = _cheapest_class(
                nodes, batch["rows"].to_numpy(np.int64), codes, rows, forest.parent, forest.lo, forest.hi, forest.loss
            )
            found = np.isfinite(rise)
            ids = batch["class_id"].to_numpy(np.int64)
            yield pd.DataFrame({"place": np.flatnonzero(found), "class_id": ids[best[found]], "rise": rise[found]})

    # At most REOPEN_LIMIT rows per batch of classes.
    offers = classes.mapInPandas(cheapest, "place bigint, class_id bigint, rise double")
    ranked = offers.groupBy("place").agg(F.min(F.struct("rise", "class_id")).alias("best")).select("best.class_id")
    chosen = sorted({int(row.class_id) for row in ranked.collect()})
    if not chosen:
        return entries, closed
    names = [*solver.codebook.layout.names(), *solver.counts, "bound"]
    mine = F.col("class_id").isin(chosen)
    reopened = pd.concat([part.where(mine).select(*names).toPandas() for part in closed])
    again = solver.solve(pd.concat([left[names], reopened], ignore_index=True), turn=turn, last=True)
    kept = entries[~entries["open"]]
    return pd.concat([kept, again], ignore_index=True), [part.where(~mine) for part in closed]


@njit(cache=True)
def _cheapest_class(nodes, class_rows, codes, rows, parent, lo, hi, loss):  # type: ignore[no-untyped-def]
    best = np.full(len(rows), -1, np.int64)
    least = np.full(len(rows), np.inf)
    for s in range(len(rows)):
        for c in range(len(class_rows)):
            cost = 0.0
            for j in range(nodes.shape[1]):
                cost += loss[nodes[c, j]]
            new = joined_cost(nodes[c], codes, s, parent, lo, hi, loss, np.inf)
            rise = class_rows[c] * (new - cost) + rows[s] * new
            if rise < least[s]:
                least[s] = rise
                best[s] = c
    return best, least
