"""Form the classes: in one process where the signatures fit, over blocks in pandas UDFs where they do not.

Blocks close what is cheaper than anything that crosses their border, which is exactly what the whole table would close.
What stays open meets again: in one process as soon as it fits, else over new blocks cut on other QIs.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from kanon_spark.blocks.cuts import Cuts
from kanon_spark.engine.cutting import cut_in_spark
from kanon_spark.engine.pieces import COUNTS, Solver
from kanon_spark.engine.refining import refine_across_blocks
from kanon_spark.engine.reopen import reopen_for_the_rest
from kanon_spark.engine.stages import RunContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LOCAL_LIMIT = 100_000  # signatures: one process solves and bounds them in seconds
REST_LIMIT = 250_000  # signatures that blocks may leave to one process
BLOCK_SIZE = 50_000  # signatures: a task's memory stays far below 1 GB, and its kernels run in seconds
# How far beyond its crossing loss each round of blocks may go. The first is exact; later ones only see what is left.
FACTORS = (1.0, 2.0, 4.0, np.inf)


@dataclass
class Solved:
    """The recoding's entries and how they were found."""

    entries: "DataFrame"
    bound_kind: str
    blocks: int = 1
    rounds: int = 0
    cuts: list[dict[str, Any]] = field(default_factory=list)


def solve_in_one_process(ctx: RunContext, solver: Solver, signatures: "DataFrame", *, path: str, bound: str) -> Solved:
    """Collect the signatures (the caller knows that they fit), solve, bound, and write the entries."""
    with ctx.stage("solve"):
        frame = solver.in_order(signatures.toPandas())
        entries = solver.solve(frame)
    with ctx.stage("bound"):
        entries["bound"], kind = solver.bound(frame, kind="dual" if bound == "auto" else bound)
    with ctx.stage("recode"):
        _write(ctx, solver, entries, path)
    return Solved(ctx.spark.read.parquet(path), kind)


def solve_over_blocks(
    ctx: RunContext,
    solver: Solver,
    signatures: "DataFrame",
    *,
    count: int,
    block_size: int,
    folder: Callable[[str], str],
    bound: str,
    rest_limit: int = REST_LIMIT,
) -> Solved:
    """Blocks first, then the rest; every round is written, and read back by the next."""
    from pyspark.sql import functions as F

    names = solver.codebook.layout.names()
    closed: list[DataFrame] = []
    remaining, left = signatures, count
    # A cut through a QI without a hierarchy gives the bound away, so such QIs are cut only where no other is left.
    last = {i for i, column in enumerate(solver.codebook.columns) if column.publish != "node"}
    cut_facts: list[dict[str, Any]] = []
    turn = 0
    while turn < len(FACTORS) and (turn == 0 or left > rest_limit):
        with ctx.stage("blocks"):
            cuts = cut_in_spark(
                remaining,
                solver.forest,
                solver.codes,
                names,
                count=left,
                block_size=block_size,
                last=frozenset(last),
            )
            last |= {split.qi for split in cuts.splits}
            cut_facts.append(_facts(cuts, FACTORS[turn]))
            ctx.note(f"{left} signatures in {len(cuts.blocks)} blocks")
        with ctx.stage("solve" if turn == 0 else "rest"):
            path = folder(f"solved_{turn}")
            solved = _solve_blocks(solver, remaining, cuts, block_size, FACTORS[turn], turn)
            solved.write.mode("overwrite").partitionBy("open").parquet(path)
            written = ctx.spark.read.schema(solver.schema).parquet(path)
            closed.append(written.where(~F.col("open")))
            remaining = written.where(F.col("open")).select(*solver.codebook.layout.names(), *COUNTS, "bound")
            left = remaining.count()
            ctx.note(f"{left} signatures stay open")
        turn += 1
    with ctx.stage("rest"):
        # At most rest_limit signatures, or what blocks that were solved to the end have left: under k persons each.
        rest = remaining.toPandas()
        if len(rest):
            entries = solver.solve(rest, turn=turn)
            if entries["open"].any():
                entries, closed = reopen_for_the_rest(solver, entries, closed, turn=turn + 1)
            path = folder("solved_rest")
            _write(ctx, solver, entries, path)
            closed.append(ctx.spark.read.parquet(path))
    entries_of_all = closed[0]
    for part in closed[1:]:
        entries_of_all = entries_of_all.unionByName(part.select(*entries_of_all.columns))
    if solver.method.refines(count):
        with ctx.stage("refine"):
            entries_of_all = refine_across_blocks(
                ctx,
                solver,
                entries_of_all,
                count=count,
                block_size=block_size,
                folder=folder,
                last=frozenset(last),
                turn=turn + 2,
            )
    with ctx.stage("recode"):
        path = folder("recoding")
        kept_bound = F.lit(0.0) if bound == "none" else F.col("bound")
        entries_of_all.withColumn("bound", kept_bound).write.mode("overwrite").parquet(path)
    kind = "none" if bound == "none" else "simple per block"
    return Solved(ctx.spark.read.parquet(path), kind, cut_facts[0]["blocks"], turn, cut_facts)


def _solve_blocks(
    solver: Solver, signatures: "DataFrame", cuts: Cuts, block_size: int, factor: float, turn: int
) -> "DataFrame":
    """One pandas UDF call per bin of blocks."""
    bins = cuts.bins(block_size)

    def put_into_bins(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            batch["bin"] = bins[cuts.assign(solver.codes(batch))]
            yield batch

    def solve_bin(frame: pd.DataFrame) -> pd.DataFrame:
        return solver.solve_bin(frame, cuts, factor=factor, turn=turn)

    fields = ", ".join(f"{name} {kind}" for name, kind in signatures.dtypes)
    binned = signatures.mapInPandas(put_into_bins, f"{fields}, bin int")
    return binned.groupBy("bin").applyInPandas(solve_bin, solver.schema)


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
