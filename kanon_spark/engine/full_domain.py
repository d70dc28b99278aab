"""Full-domain methods on tables that do not fit one process: levels by Spark counts, classes by joins on group keys.

The method chooses as it would in one process (`engine/level_counts.py`). Its level vectors are then carried out in
turn: signatures get the packed nodes of their group, groups are summed, and good ones (k persons, who satisfy what is
asked beyond) leave with their signatures. What is left looks for the class that it costs least, in passes of a bounded
number of signatures, each a map over the classes; where more than k is asked, classes decide whom they take, and who
was refused looks again. Last, bins of whole classes become entries.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from kanon_spark.engine import level_counts
from kanon_spark.engine.admission import admit
from kanon_spark.engine.binned import apply_to_bins
from kanon_spark.engine.bounding import block_bound_kind, with_block_bounds
from kanon_spark.engine.guarding import merged_histograms, with_goodness
from kanon_spark.engine.level_counts import counts_over
from kanon_spark.engine.pieces import Solver
from kanon_spark.engine.solving import BLOCK_SIZE, Solved
from kanon_spark.engine.stages import RunContext
from kanon_spark.kernels.admission import ROUNDS
from kanon_spark.kernels.carry_out import FlatTrees, own_values, release_groups, widen
from kanon_spark.kernels.ladders import Ladders, all_open
from kanon_spark.kernels.level_counts import LevelVector
from kanon_spark.kernels.problem import Problem
from kanon_spark.methods.base import FullDomainMethod, Solution
from kanon_spark.signatures.histograms import HISTOGRAM

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

JOIN_LIMIT = 20_000  # signatures that look for a class in one pass over the classes
_NONE = -1  # group and vector of a signature that no class has taken


def solve_full_domain(
    ctx: RunContext,
    solver: Solver,
    method: FullDomainMethod,
    signatures: "DataFrame",
    *,
    count: int,
    folder: Callable[[str], str],
    bound: str,
) -> Solved:
    """Choose levels, release groups, let what is left join if it is to, and write the recoding."""
    from pyspark.sql import functions as F

    kind = block_bound_kind(solver, bound)
    if kind == "none":
        signatures = signatures.withColumn("bound", F.lit(0.0))
    else:
        signatures = with_block_bounds(ctx, solver, signatures, count=count, block_size=BLOCK_SIZE, folder=folder)
    with ctx.stage("solve"):
        # One row.
        rows = int(signatures.agg(F.sum("rows")).collect()[0][0])
        columns = solver.codebook.columns
        ladders = Ladders.of(
            [column.tree for column in columns],
            solver.forest.present,
            solver.codebook.weights,
            rows=rows,
            names=[column.name for column in columns],
        )
        choice = method.choose(counts_over(solver, ladders, signatures, rows=rows, count=count, folder=folder))
        ctx.note(f"groups are released at {len(choice.released)} level vectors")
        released = _Released(ctx, solver, ladders, folder)
        released.carry_out(signatures, choice.released)
    if method.leftover == "join":
        with ctx.stage("rest"):
            released.join()
    with ctx.stage("recode"):
        path = folder("recoding")
        released.entries(bins=-(-count // BLOCK_SIZE)).write.mode("overwrite").parquet(path)
    stitch = {"way": "level counts", "rounds": len(choice.released), "graphframes_calls": 0}
    return Solved(ctx.spark.read.parquet(path), kind, stitch=stitch, trace=choice.trace)


class _Released:
    """What is released so far, and what is left.

    A released signature carries `vector`, the number of the level vector, the packed nodes of its group (`group…`) and
    how many signatures the group has; those two names are what tells classes apart.
    """

    def __init__(self, ctx: RunContext, solver: Solver, ladders: Ladders, folder: Callable[[str], str]) -> None:
        self.ctx, self.solver, self.ladders, self.folder = ctx, solver, ladders, folder
        self.names = [*solver.codebook.layout.names(), *solver.counts, "bound"]
        self.group = solver.codebook.node_layout.names("group")
        self.wide = solver.codebook.node_layout.names("wide")
        self.parts: list[DataFrame] = []
        self.left: DataFrame
        self.widened: DataFrame | None = None

    def carry_out(self, signatures: "DataFrame", vectors: Sequence[LevelVector]) -> None:
        """Release good groups, vector by vector.

        Where each vector is above the one before, groups of the first tell all that follows: once they fit the driver,
        the vectors that are left are carried out there, on the groups, and told to their signatures in one job.
        """
        from pyspark.sql import functions as F

        self.left = signatures.select(*self.names)
        for number, levels in enumerate(vectors):
            grouped = self.left.mapInPandas(self._grouping(levels), self._ddl(self.left, self.group))
            sums = self._sums(grouped)
            rest = vectors[number:]
            if len(rest) > 1 and _ascending(rest):
                sums = self._put(sums, f"groups_{number}")
                if self._fit(sums):
                    # At most HELD_GROUPS rows.
                    self._release_rest(grouped, sums.toPandas(), number, rest)
                    return
            judged = with_goodness(sums, k=self.solver.k, demands=self.solver.demands)
            full = F.col("good") & (F.col(self.group[0]) != _NONE)
            told = grouped.join(judged.withColumn("released", full).drop("good", "persons"), self.group)
            written = self._put(told, f"released_{number}", by="released")
            self.parts.append(written.where("released").drop("released").withColumn("vector", F.lit(number)))
            self.left = written.where("not released").select(*self.names)

    def _sums(self, grouped: "DataFrame") -> "DataFrame":
        """Persons and signatures of each group, and its histogram where more than k is asked."""
        from pyspark.sql import functions as F

        if self.solver.demands is not None:
            return merged_histograms(grouped, self.group)
        return grouped.groupBy(*self.group).agg(F.sum("persons").alias("persons"), F.count(F.lit(1)).alias("size"))

    def _fit(self, sums: "DataFrame") -> bool:
        """Whether the driver can hold these groups."""
        from pyspark.sql import functions as F

        longs = F.lit(0) if self.solver.demands is None else F.coalesce(F.sum(F.size(HISTOGRAM)), F.lit(0))
        # One row.
        groups, held = sums.agg(F.count(F.lit(1)), longs).collect()[0]
        return bool(groups <= level_counts.HELD_GROUPS and held <= level_counts.HELD_LONGS)

    def _release_rest(
        self, grouped: "DataFrame", sums: pd.DataFrame, number: int, vectors: Sequence[LevelVector]
    ) -> None:
        """Carry out vectors on the groups of the first of them, a leaf standing for each group."""
        from pyspark.sql import functions as F

        layout, group = self.solver.codebook.node_layout, self.group
        sums = sums[sums[group[0]] != _NONE].sort_values(group).reset_index(drop=True)
        codes = self.ladders.leaves(layout.unpack(sums[group].to_numpy(np.int64)), vectors[0])
        sizes, persons = sums["size"].to_numpy(np.int64), sums["persons"].to_numpy(np.int64)
        problem = Problem(self.solver.forest, codes, sizes, persons, self.solver.k, guard=self.solver.guard(sums))
        found = release_groups(self.ladders, problem, vectors)
        taken = found.class_of >= 0
        class_of = found.class_of[taken]
        first = [f"first_{name}" for name in group]
        told = sums.loc[taken, group].set_axis(first, axis=1)
        told["vector"] = number + found.vectors[class_of]
        told["size"] = np.bincount(class_of, sizes[taken], len(found.nodes)).astype(np.int64)[class_of]
        for place, name in enumerate(group):
            told[name] = layout.pack(found.nodes)[class_of, place]
        fields = ", ".join(f"{name} bigint" for name in [*first, "size", *group])
        of_groups = self.ctx.spark.createDataFrame(told[[*first, "size", *group, "vector"]], f"{fields}, vector int")
        renamed = grouped.withColumnsRenamed(dict(zip(group, first, strict=True)))
        both = renamed.join(of_groups, first, "left").drop(*first)
        written = self._put(
            both.withColumn("released", F.col("vector").isNotNull()), f"released_{number}", by="released"
        )
        self.parts.append(written.where("released").drop("released"))
        self.left = written.where("not released").select(*self.names)

    def join(self) -> None:
        """Let each signature that is left join the class where the loss rises least.

        Classes are looked at as they were released, whoever else joins them, so passes do not depend on each other.
        Where more than k is asked a class takes only those with whom it stays good; who is refused looks again, among
        the classes that have not refused anybody (`kernels/admission.py`).
        """
        from pyspark.sql import functions as F

        left = self.left.count()
        if not left or not self.parts:
            return
        class_of = ["vector", *self.group]
        classes = _union(self.parts).groupBy(*class_of).agg(F.sum("rows").alias("rows"))
        classes = self._put(classes, "released_classes")
        alone: list[DataFrame] = []  # those whom no class may take
        joined: list[DataFrame] = []
        for turn in range(ROUNDS):
            self.ctx.note(f"{left} signatures look for a class")
            chosen = self._choose_classes(classes, left, turn)
            alone.append(chosen.where(F.col("vector").isNull()).select(*self.names))
            asking = chosen.where(F.col("vector").isNotNull())
            if self.solver.demands is None:
                joined.append(asking.drop("rise"))
                break
            taken = admit(
                self.solver, _union([self._members(part) for part in [*self.parts, *joined]]), asking, class_of
            )
            told = self._put(asking.join(taken, "h"), f"asked_{turn}", by="taken")
            joined.append(told.where("taken").drop("taken", "rise"))
            refused = told.where("not taken")
            left = refused.count()
            self.left = refused.select(*self.names)
            if not left:
                break
            classes = classes.join(refused.select(*class_of).distinct(), class_of, "left_anti")
            classes = self._put(classes, f"taking_{turn}")
        else:
            alone.append(self.left)
        self.parts += joined
        self.widened = self._widened(_union(joined))
        self.left = _union(alone)

    def _members(self, part: "DataFrame") -> "DataFrame":
        return part.select("vector", *self.group, "persons", HISTOGRAM)

    def _choose_classes(self, classes: "DataFrame", left: int, turn: int) -> "DataFrame":
        """Those that are left with the class that takes each at the least `rise`; null where none may."""
        from pyspark.sql import functions as F

        class_of = ["vector", *self.group]
        passes = -(-left // JOIN_LIMIT)
        offers = []
        for number in range(passes):
            mine = self.left.where(F.pmod("h", F.lit(passes)) == number)
            # About JOIN_LIMIT rows: hashes spread evenly.
            asking = self.solver.in_order(mine.select(*self.solver.codebook.layout.names(), "h", "rows").toPandas())
            fields = ", ".join(f"{name} bigint" for name in self.group)
            made = classes.mapInPandas(self._offering(asking), f"h bigint, rise double, vector int, {fields}")
            best = made.groupBy("h").agg(F.min(F.struct("rise", *class_of)).alias("best"))
            told = best.select("h", *[f"best.{name}" for name in ["rise", *class_of]])
            offers.append(self._put(told, f"offers_{turn}_{number}"))
        chosen = self.left.join(_union(offers), "h", "left").withColumn("size", F.lit(1).cast("bigint"))
        return self._put(chosen, f"joined_{turn}")

    def entries(self, *, bins: int) -> "DataFrame":
        """The recoding's entries."""
        from pyspark.sql import functions as F

        solver, names, group, wide = self.solver, self.names, self.group, self.wide
        suppressed = self.left.withColumns(
            {
                "vector": F.lit(_NONE),
                "size": F.lit(1).cast("bigint"),
                **{one: F.lit(_NONE).cast("bigint") for one in group},
            }
        )
        columns = [*names, "vector", "size", *group]
        table = _union([part.select(*columns) for part in [*self.parts, suppressed]])
        if self.widened is not None:
            table = table.join(self.widened, ["vector", *group], "left")
        own = [
            F.coalesce(F.col(w), F.col(g)) if self.widened is not None else F.col(g)
            for w, g in zip(wide, group, strict=True)
        ]
        # A class whose members publish its nodes alone needs not meet in one task, however large it is: its parts are
        # numbered apart, and publish the same. Ranges, sets and means are made of all members.
        alone = all(column.publish == "node" and not column.form.numbers for column in solver.codebook.columns)
        pieces = F.ceil(F.col("size") / F.lit(BLOCK_SIZE)) if alone else F.lit(1)
        by_class = F.xxhash64("vector", *group, F.pmod(F.col("h"), pieces.cast("bigint")))
        placed = F.when(F.col("vector") == _NONE, F.col("h")).otherwise(by_class)
        table = table.select(
            *names,
            "vector",
            *group,
            *[one.alias(w) for one, w in zip(own, wide, strict=True)],
            F.pmod(placed, F.lit(bins)).cast("int").alias("bin"),
        )
        kinds, roots = solver.measure.kinds, [column.tree.root for column in solver.codebook.columns]
        layout = solver.codebook.node_layout

        def finish(frame: pd.DataFrame) -> pd.DataFrame:
            frame = solver.in_order(frame)
            words = frame[["vector", *group]].to_numpy(np.int64)
            taken = words[:, 0] != _NONE
            class_of = np.full(len(frame), -1, np.int32)
            class_of[taken] = np.unique(words[taken], axis=0, return_inverse=True)[1].reshape(-1)
            nodes = own_values(kinds, roots, layout.unpack(words[:, 1:]), layout.unpack(frame[wide].to_numpy(np.int64)))
            solution = Solution(class_of, np.zeros(len(frame)), nodes)
            return solver.entries(frame, solver.problem(frame), solution, block=int(frame["bin"].iloc[0]))

        return apply_to_bins(table, finish, solver.schema)

    def _grouping(self, levels: LevelVector) -> Callable[[Iterable[pd.DataFrame]], Iterator[pd.DataFrame]]:
        """Adds the packed nodes at these levels; a signature that may not be published belongs to no group."""
        solver, group, layout = self.solver, self.group, self.solver.codebook.node_layout
        # Only what this vector needs travels to the workers, not the whole ladders.
        nodes = [column.nodes[level] for column, level in zip(self.ladders.columns, levels, strict=True)]
        open_ = [column.open for column in self.ladders.columns]

        def grouping(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            for batch in batches:
                codes = solver.codes(batch)
                words = layout.pack(np.stack([here[codes[:, j]] for j, here in enumerate(nodes)], axis=1))
                words[~all_open(open_, codes)] = _NONE
                for place, name in enumerate(group):
                    batch[name] = words[:, place]
                yield batch

        return grouping

    def _offering(self, asking: pd.DataFrame) -> Callable[[Iterable[pd.DataFrame]], Iterator[pd.DataFrame]]:
        """The best class of a batch for each signature that asks."""
        codebook, group = self.solver.codebook, self.group
        flat = FlatTrees.of([column.tree for column in codebook.columns], codebook.weights)
        codes = codebook.layout.unpack(asking[codebook.layout.names()].to_numpy(np.int64))
        rows, hashes = asking["rows"].to_numpy(np.int64), asking["h"].to_numpy(np.int64)

        def offering(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            for batch in batches:
                # The first of equals is taken: vectors and nodes in their order, as one process has them.
                classes = batch.sort_values(["vector", *group]).reset_index(drop=True)
                nodes = codebook.node_layout.unpack(classes[group].to_numpy(np.int64))
                best, rise = flat.cheapest(nodes, classes["rows"].to_numpy(np.int64), codes, rows)
                found = best >= 0
                out = classes.loc[best[found], ["vector", *group]].reset_index(drop=True)
                out.insert(0, "h", hashes[found])
                out.insert(1, "rise", rise[found])
                yield out

        return offering

    def _widened(self, joined: "DataFrame") -> "DataFrame":
        """Packed nodes of the classes that were joined."""
        from pyspark.sql import functions as F

        codebook, group, wide = self.solver.codebook, self.group, self.wide
        trees = [column.tree for column in codebook.columns]
        codes = [codebook.layout.unpack_column(j) for j in range(len(trees))]
        reach = joined.groupBy("vector", *group).agg(
            *[F.min(code).alias(f"min_{j}") for j, code in enumerate(codes)],
            *[F.max(code).alias(f"max_{j}") for j, code in enumerate(codes)],
        )

        def widening(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            for batch in batches:
                nodes = codebook.node_layout.unpack(batch[group].to_numpy(np.int64))
                place = np.arange(len(batch))
                for end in ("min", "max"):
                    nodes = widen(
                        trees, nodes, place, batch[[f"{end}_{j}" for j in range(len(trees))]].to_numpy(np.int32)
                    )
                words = codebook.node_layout.pack(nodes)
                out = batch[["vector", *group]].copy()
                for index, name in enumerate(wide):
                    out[name] = words[:, index]
                yield out

        fields = ", ".join(f"{name} bigint" for name in [*group, *wide])
        return self._put(reach.mapInPandas(widening, f"vector int, {fields}"), "widened")

    def _put(self, table: "DataFrame", name: str, *, by: str | None = None) -> "DataFrame":
        """Write a table and read it back: nobody computes it again."""
        path = self.folder(name)
        writer = table.write.mode("overwrite")
        (writer.partitionBy(by) if by else writer).parquet(path)
        return self.ctx.spark.read.schema(table.schema).parquet(path)

    @staticmethod
    def _ddl(table: "DataFrame", added: Sequence[str]) -> str:
        return ", ".join(f"{name} {kind}" for name, kind in [*table.dtypes, *((one, "bigint") for one in added)])


def _ascending(vectors: Sequence[LevelVector]) -> bool:
    return all(a <= b for low, high in pairwise(vectors) for a, b in zip(low, high, strict=True))


def _union(parts: "Sequence[DataFrame]") -> "DataFrame":
    return reduce(lambda one, two: one.unionByName(two), parts)
