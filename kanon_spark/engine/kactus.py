"""`kactus` beyond one process: the tasks prune the regions that they hold, the driver prunes the tree above them.

A task releases the classes of its region and leaves open what the region's root is left with. To the tree above, that
is a leaf like any other: the driver needs how many persons it holds, and the few signatures that others might borrow
(`kernels/kactus_pruning.py`), with their sensitive values where more than k is asked. What comes of it is a small table
(region → class, and the signatures that were lent), which is joined back. Then the last steps: what is left in the
root, and single-dimension suppression.

The rules are those of the one process, and so are the classes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kanon_spark.engine.guarding import merged_histograms, value_sums
from kanon_spark.engine.kactus_single import ends_of, silences, single_dimension
from kanon_spark.engine.pieces import Solver
from kanon_spark.engine.solving import Solved
from kanon_spark.engine.stages import RunContext
from kanon_spark.engine.top_down import Folder, solve_top_down
from kanon_spark.kernels.kactus_cells import Classes, as_nodes, named_by, silent_cells
from kanon_spark.kernels.kactus_pruning import Asked, Holding, Loan, lendable, prune, together
from kanon_spark.kernels.regions import Regions
from kanon_spark.kernels.value_sums import ValueSums
from kanon_spark.methods.base import Solution
from kanon_spark.methods.kactus import Kactus
from kanon_spark.signatures.histograms import HISTOGRAM, read_histograms

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TURN = 1  # of the classes that the driver makes; those of the tasks are numbered by turn 0
_NONE = -1  # place of a signature that no class has taken
_NOTHING = np.zeros(0, np.int64)  # a histogram of nobody


def solve_kactus(
    ctx: RunContext,
    solver: Solver,
    method: Kactus,
    signatures: "DataFrame",
    *,
    count: int,
    block_size: int,
    folder: Folder,
    bound: str,
) -> Solved:
    """Solve top down, and prune above the tasks' regions; the arguments are those of `solve_top_down`."""
    below = replace(method, below=True)
    return solve_top_down(
        ctx,
        replace(solver, method=below),
        below,
        signatures,
        count=count,
        block_size=block_size,
        folder=folder,
        bound=bound,
        finish=partial(_finish, method=method),
        judged=False,  # the tree is cut by labels alone
    )


def _finish(
    ctx: RunContext, solver: Solver, regions: Regions, entries: "DataFrame", folder: Folder, *, method: Kactus
) -> "DataFrame":
    """Entries of all signatures, from those of the tasks, in which `open` marks what their regions are left with."""
    from pyspark.sql import functions as F

    carried = _with_regions(ctx, solver, regions, entries.where(F.col("open")), folder("carried"))
    closed = entries.where(~F.col("open"))
    asked = Asked(solver.k, solver.demands)
    pruned = prune([node.children for node in regions.nodes], _holdings(solver, regions, carried), asked)
    released = [*pruned.released, *([(0, pruned.left)] if asked.good(pruned.left) else [])]
    ctx.note(f"{len(released)} classes above the regions")
    placed = _placed(carried, [held for _, held in released])
    above = _Above(solver, placed, named_by([regions[node].path for node, _ in released], solver.forest.width))
    if method.leftover == "join" and pruned.left.signatures > 0 and not asked.good(pruned.left):
        closed = above.join_what_is_left(closed, [held for _, held in released], pruned.left, asked)
    whole = closed.unionByName(above.entries().select(*closed.columns))
    return single_dimension(ctx, solver, whole, folder("multi")) if method.dimension == "single" else whole


def _with_regions(ctx: RunContext, solver: Solver, regions: Regions, entries: "DataFrame", path: str) -> "DataFrame":
    """Entries with the region that each lies in, written once."""

    def assign(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            batch["region"] = regions.assign(solver.codes(batch))
            yield batch

    schema = f"{solver.schema}, region int"
    entries.mapInPandas(assign, schema).write.mode("overwrite").parquet(path)
    return ctx.spark.read.schema(schema).parquet(path)


def _holdings(solver: Solver, regions: Regions, carried: "DataFrame") -> dict[int, Holding]:
    """What each region is left with, as a leaf of the tree above."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    words = solver.codebook.layout.names()
    region = Window.partitionBy("region")
    # Those without a person lend nothing and come last; a region of only such ones must not be missed.
    rank = F.row_number().over(region.orderBy(F.col("persons") == 0, "persons", *words))
    totals = [F.count(F.lit(1)).over(region).alias("signatures"), F.sum("persons").over(region).alias("all_persons")]
    guarded = [HISTOGRAM] if solver.demands is not None else []
    offers = carried.select("region", *totals, "persons", *words, "h", rank.alias("rank"), *guarded)
    # At most k rows per region of the tree, which the driver holds.
    found = offers.where(F.col("rank") <= solver.k).drop("rank").toPandas()
    values = _values(solver, found)
    loans: dict[tuple[int, int, int], list[Loan]] = {}
    numbers = found.drop(columns=guarded).itertuples(index=False, name=None)
    for (leaf, signatures, all_persons, persons, *key), own in zip(numbers, values, strict=True):
        loans.setdefault((leaf, signatures, all_persons), []).append(Loan(persons, tuple(key), own))
    # Regions of the tree.
    sums = {} if solver.demands is None else value_sums(carried, "region", solver.demands)
    held = {leaf: Holding() for leaf in regions.leaves}
    for (leaf, signatures, all_persons), offered in loans.items():
        held[leaf] = Holding(
            signatures, all_persons, (leaf,), (), lendable(offered, solver.k), sums.get(leaf, _no_values(solver))
        )
    return held


def _values(solver: Solver, frame: pd.DataFrame) -> "list[ValueSums | None]":
    """Sensitive values of each signature, where more than k is asked."""
    if solver.demands is None:
        return [None] * len(frame)
    guard = solver.guard(frame)
    members = np.arange(len(frame))
    return [ValueSums.of_members(guard.histograms, guard.demands, members[s : s + 1]) for s in members]


def _no_values(solver: Solver) -> ValueSums | None:
    """Of signatures without any sensitive value."""
    none = np.zeros(0, np.int64)
    return None if solver.demands is None else ValueSums(none, none, none)


def _placed(carried: "DataFrame", classes: list[Holding]) -> "DataFrame":
    """The carried entries with their class (`place`), by their region, or by the class that has borrowed them."""
    from pyspark.sql import functions as F

    spark = carried.sparkSession
    by_region = [(leaf, number) for number, held in enumerate(classes) for leaf in held.leaves]
    lent = [(key[-1], number) for number, held in enumerate(classes) for key in held.borrowed]
    regions = spark.createDataFrame(pd.DataFrame(by_region, columns=["region", "own"]), "region int, own int")
    moved = spark.createDataFrame(pd.DataFrame(lent, columns=["h", "lent"]), "h bigint, lent int")
    joined = carried.join(F.broadcast(regions), "region", "left").join(F.broadcast(moved), "h", "left")
    return joined.withColumn("place", F.coalesce("lent", "own", F.lit(_NONE))).drop("lent", "own", "region")


class _Above:
    """The classes that were pruned together above the regions."""

    def __init__(self, solver: Solver, placed: "DataFrame", named: NDArray[np.bool_]) -> None:
        from pyspark.sql import functions as F

        self.solver, self.placed = solver, placed
        book = solver.codebook
        codes = [book.layout.unpack_column(j) for j in range(len(book.columns))]
        ends = [each.alias(f"{name}{j}") for j, code in enumerate(codes) for name, each in ends_of(code)]
        summary = placed.where(F.col("place") >= 0).groupBy("place")
        first = F.min(F.struct(*book.layout.names())).alias("first")
        # One row per class above the regions, of which there are no more than regions.
        facts = summary.agg(F.sum("rows").alias("rows"), first, *ends).toPandas().sort_values("place")
        self.rows = facts["rows"].to_numpy(np.int64)
        self.first = [tuple(each) for each in facts["first"]]
        self.corners = np.stack(
            [facts[[f"{end}{j}" for j in range(len(codes))]].to_numpy(np.int32) for end in ("least", "most")], axis=1
        )
        self.roots = np.array([column.tree.root for column in book.columns], np.int32)
        problem = solver.problem(_frame(solver, self.corners.reshape(-1, len(codes))))
        self.silent = silent_cells(problem, Classes(self._class_of(2), named), self.roots)

    def _class_of(self, each: int) -> NDArray[np.int32]:
        return np.repeat(np.arange(len(self.rows), dtype=np.int32), each)

    def join_what_is_left(
        self, closed: "DataFrame", released: list[Holding], left: Holding, asked: Asked
    ) -> "DataFrame":
        """What is left joins the class that has the fewest cells to lose, of those that stay good with it.

        Args:
            closed: The tasks' classes.
            released: The classes above the regions, by their place.
            left: What is left.
            asked: What makes a class good.

        Returns:
            The tasks' classes without the one that was joined.
        """
        from pyspark.sql import functions as F

        book = self.solver.codebook
        shown = reduce(lambda a, b: a + b, [(~silent).cast("int") for silent in silences(book)])
        first = F.min(F.struct(*book.layout.names())).alias("first")
        costs = closed.groupBy("class_id").agg((F.sum("rows") * F.first(shown)).alias("cells"), first)
        costs = _staying_good(self.solver, closed, costs, left)
        best = costs.orderBy("cells", "first").limit(1).collect()  # one row
        cells = (self.rows * (~self.silent).sum(axis=1)).tolist()
        offers: list[tuple[int, tuple[Any, ...], int]] = [
            (cell, first, place)
            for place, (cell, first) in enumerate(zip(cells, self.first, strict=True))
            if asked.good(together([released[place], left], asked.k))
        ]
        if best:
            offers.append((best[0]["cells"], tuple(best[0]["first"]), len(cells)))
        if not offers:
            return closed
        place = min(offers)[-1]
        if place == len(cells):
            chosen = F.col("class_id") == F.lit(best[0]["class_id"])
            self.placed = self.placed.unionByName(closed.where(chosen).withColumn("place", F.lit(place)))
            closed = closed.where(~chosen)
            # It names nothing, so that any codes will do as its corners.
            some = np.array([present[0] for present in self.solver.forest.present], np.int32)
            self.corners = np.concatenate([self.corners, np.broadcast_to(some, (1, 2, len(some)))])
            self.silent = np.concatenate([self.silent, np.ones((1, len(some)), np.bool_)])
            self.rows = np.append(self.rows, 0)
        self.silent[place] = True
        self.placed = self.placed.withColumn(
            "place", F.when(F.col("place") == _NONE, F.lit(place)).otherwise(F.col("place"))
        )
        return closed

    def entries(self) -> "DataFrame":
        """The carried entries with what their classes publish; those without a class stay as they are."""
        from pyspark.sql import functions as F

        table = self._published()
        names = [name for name in table.columns if name != "place"]
        types = dict(field.strip().split(" ") for field in self.solver.schema.split(","))
        schema = "place int, " + ", ".join(f"new_{name} {types[name]}" for name in names)
        new = table[["place", *names]].rename(columns={name: f"new_{name}" for name in names})
        joined = self.placed.join(F.broadcast(self.placed.sparkSession.createDataFrame(new, schema)), "place", "left")
        placed = F.col("place") >= 0
        changed = {name: F.when(placed, F.col(f"new_{name}")).otherwise(F.col(name)) for name in names}
        return joined.withColumns({**changed, "open": ~placed})

    def _published(self) -> pd.DataFrame:
        """Class id, nodes, labels, losses and numbers of each class, by the corners of the box around it."""
        table = self._publish(self.corners.reshape(-1, self.corners.shape[2]), self._class_of(2))
        for j, column in enumerate(self.solver.codebook.columns):
            if not (column.form.mean or "mean" in column.form.numbers):
                continue
            # Means need the rows of each value; all else follows from the least and largest ones.
            counted = self._counted(j)
            if len(counted):
                class_of = counted["place"].to_numpy(np.int32)
                codes = self.corners[class_of, 0]
                codes[:, j] = counted["code"]
                own = self._publish(codes, class_of, counted["rows"].to_numpy(np.int64))
                changed = [name for name in own.columns if name.endswith(f"_{j}")]
                table.loc[own.index, changed] = own[changed]
        return table.reset_index(names="place")

    def _counted(self, j: int) -> pd.DataFrame:
        """Rows of each value of a QI in each class that names it."""
        from pyspark.sql import functions as F

        naming = np.flatnonzero(~self.silent[:, j]).tolist()
        code = self.solver.codebook.layout.unpack_column(j).alias("code")
        counted = self.placed.where(F.col("place").isin(naming)).groupBy("place", code)
        # At most (classes above the regions) x (values of the QI, which the driver holds in the codebook).
        return counted.agg(F.sum("rows").alias("rows")).toPandas()

    def _publish(
        self, codes: NDArray[np.int32], class_of: NDArray[np.int32], rows: NDArray[np.int64] | None = None
    ) -> pd.DataFrame:
        """What classes of these signatures (full codes) publish, by class."""
        solver = self.solver
        frame = _frame(solver, codes, rows)
        nodes = as_nodes(self.silent, class_of, self.roots)
        solution = Solution(class_of, np.zeros(len(class_of)), nodes)
        entries = solver.entries(frame, solver.problem(frame), solution, turn=_TURN)
        kept = [name for name in entries.columns if name not in {*frame.columns, "bound", "open"}]
        return entries[kept].groupby(class_of).nth(0).set_index(np.unique(class_of))


def _staying_good(solver: Solver, closed: "DataFrame", costs: "DataFrame", left: Holding) -> "DataFrame":
    """The costs of those of the tasks' classes that satisfy everything with what is left."""
    demands = solver.demands
    if demands is None or left.values is None:
        return costs
    values, persons = left.values, left.persons

    def judge(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            histograms = read_histograms(batch, columns=len(demands.null))
            good = []
            for u, held in enumerate(batch["persons"]):
                own = ValueSums.of_members(histograms, demands, np.array([u]))
                good.append(ValueSums.together([own, values]).satisfy(demands, int(held) + persons))
            yield batch.loc[good, ["class_id"]]

    classes = merged_histograms(closed.select("class_id", "persons", HISTOGRAM), ["class_id"])
    return costs.join(classes.mapInPandas(judge, "class_id bigint"), "class_id", "left_semi")


def _frame(solver: Solver, codes: NDArray[np.int32], rows: NDArray[np.int64] | None = None) -> pd.DataFrame:
    """Signatures with these full codes, as if they had been read."""
    layout = solver.codebook.layout
    frame = pd.DataFrame(layout.pack(codes), columns=layout.names())
    for name in solver.counts:
        frame[name] = np.int64(0) if name != HISTOGRAM else pd.Series([_NOTHING] * len(frame), dtype=object)
    frame["rows"] = np.int64(1) if rows is None else rows
    return frame
