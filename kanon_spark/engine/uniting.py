"""Classes put together: which with which, and the entries that follow from it.

Most demands are union safe: a class that breaks one takes in its cheapest neighbours until it holds, at the latest when
everything is one class. Alpha in distinct persons is not: the neighbour that is cheapest may hold the very persons who
break it. There one partner after another is tried, in the order of what it costs.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kanon_spark.engine.binned import apply_to_bins
from kanon_spark.engine.pieces import Solver
from kanon_spark.kernels.mending import united_classes
from kanon_spark.kernels.problem import Forest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Longs = NDArray[np.int64]

TURN = 64  # rounds of blocks, regions and refinement come before: class ids must not meet
_TRIALS = 8  # partners that are tried for each class
_TRIAL_TURNS = 24  # behind those of the other rounds
_MOST_PAIRS = 50_000_000  # of failing classes and others, for which costs are worked out


class Classes(NamedTuple):
    """Ids, boxes and rows of all classes, by id."""

    ids: Longs
    nodes: NDArray[np.int32]
    rows: Longs


def _classes_of(solver: Solver, entries: "DataFrame") -> Classes:
    from pyspark.sql import functions as F

    outs = solver.codebook.node_layout.names("out")
    # One short row per class, of k persons at least, and per signature that blocks have left open.
    classes = (
        entries.where(F.col("class_id") >= 0)
        .groupBy("class_id")
        .agg(F.sum("rows").alias("rows"), *[F.first(name).alias(name) for name in outs])
        .toPandas()
        .sort_values("class_id")
    )
    nodes = solver.forest_nodes(classes[outs].to_numpy(np.int64))
    return Classes(classes["class_id"].to_numpy(np.int64), nodes, classes["rows"].to_numpy(np.int64))


def united_with_neighbours(solver: Solver, entries: "DataFrame", failing: Longs, *, steps: int | None) -> pd.DataFrame:
    """(class_id, united): the classes that change, and the name of what they become; -1 where they are suppressed.

    Args:
        solver: Knows the trees.
        entries: The classes' members.
        failing: Classes that need more.
        steps: How many others each takes in; None: all of them.
    """
    ids, nodes, rows = _classes_of(solver, entries)
    found = united_classes(solver.forest, nodes, rows, np.searchsorted(ids, failing), steps=steps)
    changed = np.isin(found, found[np.searchsorted(ids, failing)])
    names = np.where(found[changed] < 0, -1, ids[found[changed]])
    return pd.DataFrame({"class_id": ids[changed], "united": names})


def unite(solver: Solver, entries: "DataFrame", united: pd.DataFrame, number: int, block_size: int) -> "DataFrame":
    """The entries with the classes' new names, and what they now publish."""
    from pyspark.sql import functions as F

    spark = entries.sparkSession
    names = F.broadcast(spark.createDataFrame(united, "class_id long, united long"))
    same = entries.join(names, "class_id", "left_anti").select(*entries.columns)
    bins = max(1, len(united) * solver.k // block_size)
    turn = TURN + number

    def unite_bin(frame: pd.DataFrame) -> pd.DataFrame:
        return solver.unite(frame, turn=turn, block=int(frame["bin"].iloc[0]))

    changed = entries.join(names, "class_id").withColumn("bin", F.pmod(F.xxhash64("united"), F.lit(bins)).cast("int"))
    united_ones = apply_to_bins(changed, unite_bin, solver.schema)
    return same.unionByName(united_ones.select(*entries.columns))


def try_partners(
    solver: Solver,
    entries: "DataFrame",
    failing: Longs,
    failing_of: "Callable[[DataFrame], Longs]",
    *,
    block_size: int,
    folder: Callable[[str], str],
) -> "tuple[DataFrame, Longs]":
    """Put failing classes together with the cheapest partner with whom they hold, one after another.

    Args:
        solver: Knows the trees.
        entries: The classes' members.
        failing: The classes that fail.
        failing_of: Who says it of other entries.
        block_size: Signatures of a task.
        folder: Where entries are written.

    Returns:
        The entries, and the classes that still fail.
    """

    def written(pairs: pd.DataFrame, number: int) -> "DataFrame":
        path = folder(f"tried_{number}")
        unite(solver, entries, pairs, _TRIAL_TURNS + number, block_size).write.mode("overwrite").parquet(path)
        return entries.sparkSession.read.schema(solver.schema).parquet(path)

    for trial in range(_TRIALS):
        pairs = partners(solver.forest, _classes_of(solver, entries), failing, rank=trial)
        if not len(pairs):
            break
        tried = written(pairs, 2 * trial)
        bad = failing_of(tried)
        spoilt = _members(entries, tried, bad)
        good = pairs[~pairs["united"].isin(pairs["united"][pairs["class_id"].isin(spoilt)])]
        if len(good) == len(pairs):
            entries, failing = tried, bad
        elif len(good):
            entries = written(good, 2 * trial + 1)
            failing = failing_of(entries)
        if not len(failing):
            break
    return entries, failing


def partners(forest: Forest, classes: Classes, failing: Longs, *, rank: int) -> pd.DataFrame:
    """(class_id, united) of pairs: each failing class with another, of those that are free the one of this rank.

    The largest chooses first. No class stands in two pairs.
    """
    ids, nodes, rows = classes
    asking = np.searchsorted(ids, failing)
    if len(asking) * len(ids) > _MOST_PAIRS:
        return pd.DataFrame({"class_id": [], "united": []}, dtype=np.int64)
    able = np.ones(len(ids), np.bool_)
    able[asking] = False
    cost = forest.loss[nodes].sum(axis=1)
    found = []
    for one in asking[np.lexsort((asking, -rows[asking]))].tolist():
        top = np.repeat(nodes[one][None], len(ids), axis=0)
        while (outside := (forest.lo[top] > forest.lo[nodes]) | (forest.hi[top] < forest.hi[nodes])).any():
            top[outside] = forest.parent[top[outside]]
        union = forest.loss[top].sum(axis=1)
        added = np.where(able & np.isfinite(union), rows * (union - cost) + rows[one] * (union - cost[one]), np.inf)
        order = np.argsort(added, kind="stable")
        if rank < len(order) and np.isfinite(added[order[rank]]):
            other = int(order[rank])
            able[other] = False
            found += [(ids[one], min(ids[one], ids[other])), (ids[other], min(ids[one], ids[other]))]
    return pd.DataFrame(found, columns=["class_id", "united"], dtype=np.int64)


def _members(entries: "DataFrame", tried: "DataFrame", bad: Longs) -> Longs:
    """The classes of the entries whose members stand in some classes of what was tried; at most two for each."""
    from pyspark.sql import functions as F

    if not len(bad):
        return bad
    names = F.broadcast(tried.sparkSession.createDataFrame(pd.DataFrame({"class_id": bad}), "class_id long"))
    rows = tried.join(names, "class_id").select(F.col("h").alias("tried_h"))
    found = entries.join(rows, F.col("h") == F.col("tried_h")).select("class_id").distinct().toPandas()
    return found["class_id"].to_numpy(np.int64)
