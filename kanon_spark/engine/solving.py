"""Form the classes: in one process where the signatures fit, over blocks in pandas UDFs where they do not.

Blocks close what is cheaper than anything that crosses their border, which is exactly what the whole table would close.
What stays open meets again: in one process where it fits, else gathered into regions across the blocks (`stitch/`).
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

import numpy as np
import pandas as pd

from kanon_spark.blocks.cuts import Cuts
from kanon_spark.engine.binned import apply_to_bins
from kanon_spark.engine.cutting import cut_in_spark
from kanon_spark.engine.pieces import Solver
from kanon_spark.engine.refining import refine_across_blocks
from kanon_spark.engine.reopen import reopen_for_the_rest
from kanon_spark.engine.session import cores
from kanon_spark.engine.stages import RunContext
from kanon_spark.kernels.spanning import Edges
from kanon_spark.methods.base import Trace
from kanon_spark.stitch.gather import gather
from kanon_spark.stitch.graph import Graphs
from kanon_spark.stitch.tree import Tree

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

P = ParamSpec("P")
T = TypeVar("T")

LOCAL_LIMIT = 100_000  # signatures: one process solves and bounds them in seconds
REST_LIMIT = 250_000  # signatures that blocks may leave to one process
BLOCK_SIZE = 50_000  # signatures: a task's memory stays far below 1 GB, and its kernels run in seconds
_TASKS = 8  # for each core, where there are so many bins; and bins of a task where there are many more
# How far beyond its crossing loss each round of blocks may go. The first is exact; later ones only see what is left.
FACTORS = (1.0, 2.0, 4.0, np.inf)
Stitch = Literal["auto", "local", "graphframes"]


@dataclass
class Solved:
    """The recoding's entries and how they were found."""

    entries: "DataFrame"
    bound_kind: str
    blocks: int = 1
    cuts: list[dict[str, Any]] = field(default_factory=list)
    stitch: dict[str, Any] = field(default_factory=lambda: {"way": "one process", "rounds": 0, "graphframes_calls": 0})
    tree: Tree | None = None
    cpu: dict[str, float] | None = None  # CPU seconds of the kernels, where one process did the work
    trace: Trace = ()
    broken: int = 0  # classes that break a demand of the whole release and could not be united with others


@dataclass(frozen=True)
class Way:
    """How a table that does not fit one process is solved.

    Attributes:
        block_size: Signatures of a block.
        stitch: What is done with what blocks leave open: `local` (one process, after more rounds of blocks if it is
            too much for one), `graphframes` (gathered into regions), `auto` (whichever fits).
        rest_limit: Signatures that blocks may leave to one process.
    """

    block_size: int = BLOCK_SIZE
    stitch: Stitch = "auto"
    rest_limit: int = REST_LIMIT

    def by_graphs(self, left: int) -> bool:
        """Whether GraphFrames is to gather so many open signatures."""
        return left > 0 and (self.stitch == "graphframes" or (self.stitch == "auto" and left > self.rest_limit))


def solve_in_one_process(
    ctx: RunContext, solver: Solver, signatures: "DataFrame", *, path: str, bound: str, tree: Edges | None = None
) -> Solved:
    """Collect the signatures (the caller knows that they fit), solve, bound, and write the entries.

    The bound does not depend on the solution: it is found beside it, by kernels that let go of Python's lock.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        with ctx.stage("solve"):
            frame = solver.in_order(signatures.toPandas())
            bounding = pool.submit(timed, solver.bound, frame, kind="dual" if bound == "auto" else bound)
            (entries, trace), solve_seconds = timed(solver.solve_whole, frame, tree=tree)
        with ctx.stage("bound"):
            (entries["bound"], kind), bound_seconds = bounding.result()
    with ctx.stage("recode"):
        _write(ctx, solver, entries, path)
    cpu = {"solve": solve_seconds, "bound": bound_seconds}
    return Solved(ctx.spark.read.parquet(path), kind, cpu=cpu, trace=trace)


def timed(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> tuple[T, float]:
    """The result of some work, and the CPU seconds that this thread took for it."""
    begin = time.thread_time()
    return work(*args, **kwargs), time.thread_time() - begin


def solve_over_blocks(
    ctx: RunContext,
    solver: Solver,
    signatures: "DataFrame",
    *,
    count: int,
    way: Way,
    folder: Callable[[str], str],
    graphs: Graphs,
    bound: str,
) -> Solved:
    """Blocks first, then what they left open; every round is written, and read back by the next."""
    rounds = _Rounds(ctx, solver, way, folder)
    rounds.solve_blocks(signatures, count)
    stitch: dict[str, Any] = {"way": "local", "rounds": 0}
    if way.by_graphs(rounds.left):
        stitch = {"way": "graphframes", "rounds": rounds.solve_regions(graphs)}
    while way.stitch == "local" and rounds.left > way.rest_limit and rounds.turn < len(FACTORS):
        rounds.solve_blocks(rounds.remaining, rounds.left)
    rounds.solve_rest()
    entries = rounds.entries()
    if solver.method.refines(count):
        with ctx.stage("refine"):
            entries = refine_across_blocks(
                ctx,
                solver,
                entries,
                count=count,
                block_size=way.block_size,
                folder=folder,
                last=frozenset(rounds.last),
                turn=rounds.turn + 2,
            )
    with ctx.stage("recode"):
        from pyspark.sql import functions as F

        path = folder("recoding")
        kept_bound = F.lit(0.0) if bound == "none" else F.col("bound")
        entries.withColumn("bound", kept_bound).write.mode("overwrite").parquet(path)
    return Solved(
        ctx.spark.read.parquet(path),
        "none" if bound == "none" else "simple per block",
        blocks=rounds.cuts[0]["blocks"],
        cuts=rounds.cuts,
        stitch={**stitch, "block_rounds": len(rounds.cuts), "graphframes_calls": graphs.calls},
    )


class _Rounds:
    """Rounds of blocks, regions and the rest: what is closed so far, and what stays open."""

    def __init__(self, ctx: RunContext, solver: Solver, way: Way, folder: Callable[[str], str]) -> None:
        self.ctx, self.solver, self.way, self.folder = ctx, solver, way, folder
        self.closed: list[DataFrame] = []
        self.cuts: list[dict[str, Any]] = []
        self.last = set(solver.unbounded)
        self.turn = 0
        self.left = 0
        self.remaining: DataFrame

    def solve_blocks(self, signatures: "DataFrame", count: int) -> None:
        """Cut blocks and close what each may close."""
        factor = FACTORS[self.turn]
        with self.ctx.stage("blocks"):
            cuts = cut_in_spark(
                signatures,
                self.solver.cut_forest,
                self.solver.codes,
                self.solver.codebook.layout.names(),
                count=count,
                block_size=self.way.block_size,
                last=frozenset(self.last),
            )
            self.last |= {split.qi for split in cuts.splits}
            self.cuts.append(_facts(cuts, factor))
            self.ctx.note(f"{count} signatures in {len(cuts.blocks)} blocks")
        with self.ctx.stage("solve" if self.turn == 0 else "rest"):
            self._keep(_solve_blocks(self.solver, signatures, cuts, self.way.block_size, factor, self.turn))

    def solve_regions(self, graphs: Graphs) -> int:
        """Gather the open signatures into regions and solve each to the end; the number of rounds it took."""
        from pyspark.sql import functions as F

        solver, turn, block_size = self.solver, self.turn, self.way.block_size
        with self.ctx.stage("stitch"):
            members, rounds = gather(
                solver,
                self.remaining,
                block_size=block_size,
                folder=self.folder,
                graphs=graphs,
                tell=self.ctx.note,
            )
            bins = -(-self.left // block_size)

            def solve_bin(frame: pd.DataFrame) -> pd.DataFrame:
                return solver.solve_regions(frame, block_size=block_size, turn=turn)

            binned = members.withColumn("bin", F.pmod(F.xxhash64("region"), F.lit(bins)).cast("int"))
            self._keep(apply_to_bins(binned, solve_bin, solver.schema))
        return rounds

    def solve_rest(self) -> None:
        """The last few in one process; where they are too few for a class, the cheapest closed ones are reopened."""
        with self.ctx.stage("rest"):
            # At most rest_limit signatures, or what was solved to the end and still is under k persons.
            rest = self.remaining.toPandas()
            if not len(rest):
                return
            entries = self.solver.solve(rest, turn=self.turn)
            if entries["open"].any() and self.solver.method.leftover == "join":
                entries, self.closed = reopen_for_the_rest(self.solver, entries, self.closed, turn=self.turn + 1)
            path = self.folder("solved_rest")
            _write(self.ctx, self.solver, entries, path)
            self.closed.append(self.ctx.spark.read.parquet(path))

    def entries(self) -> "DataFrame":
        """Everything that is closed, or suppressed in the end."""
        whole = self.closed[0]
        for part in self.closed[1:]:
            whole = whole.unionByName(part.select(*whole.columns))
        return whole

    def _keep(self, solved: "DataFrame") -> None:
        """Write a round's entries, and see what stays open."""
        from pyspark.sql import functions as F

        path = self.folder(f"solved_{self.turn}")
        solved.write.mode("overwrite").partitionBy("open").parquet(path)
        written = self.ctx.spark.read.schema(self.solver.schema).parquet(path)
        self.closed.append(written.where(~F.col("open")))
        names = [*self.solver.codebook.layout.names(), *self.solver.counts, "bound"]
        self.remaining = written.where(F.col("open")).select(*names)
        self.left = self.remaining.count()
        self.ctx.note(f"{self.left} signatures stay open")
        self.turn += 1


def _solve_blocks(
    solver: Solver, signatures: "DataFrame", cuts: Cuts, block_size: int, factor: float, turn: int
) -> "DataFrame":
    """One pandas UDF call per bin of blocks."""
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.functions import pandas_udf

    bins = cuts.bins(block_size)

    def bin_of(words: pd.DataFrame) -> pd.Series:  # Spark reads the hint
        return pd.Series(bins[cuts.assign(solver.codes(words))])

    def solve_bin(frame: pd.DataFrame) -> pd.DataFrame:
        return solver.solve_bin(frame, cuts, factor=factor, turn=turn)

    # Only the key words go to Python and back for this; histograms are dear to carry.
    words = F.struct(*solver.codebook.layout.names())
    put = pandas_udf(bin_of, "int")  # type: ignore[call-overload]  # its stubs know no frames of structs
    # Left to Spark, there are few long tasks, and all cores wait for the last; every task more has to begin, too.
    count = int(bins.max()) + 1
    tasks = min(count, max(_TASKS * cores(signatures.sparkSession), count // _TASKS))
    binned = signatures.withColumn("bin", put(words)).repartition(tasks, "bin")
    return apply_to_bins(binned, solve_bin, solver.schema)


def _write(ctx: RunContext, solver: Solver, entries: pd.DataFrame, path: str) -> None:
    ctx.spark.createDataFrame(entries, solver.schema).write.mode("overwrite").parquet(path)


def _facts(cuts: Cuts, factor: float) -> dict[str, Any]:
    """What the manifest says of the cuts: sizes (estimates where a sample was counted) and guarantees, no values."""
    return {
        "blocks": len(cuts.blocks),
        "largest": max(block.size for block in cuts.blocks),
        "cut_qis": sorted({split.qi for split in cuts.splits}),
        "crossing": {
            str(round(loss, 6)): int(n) for loss, n in zip(*np.unique(cuts.crossing, return_counts=True), strict=True)
        },
        "stop": "crossing loss: classes are those of the whole table" if factor == 1.0 else f"{factor} x crossing loss",
    }
