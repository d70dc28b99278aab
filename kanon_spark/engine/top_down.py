"""Solve with a top-down method beyond one process: the method's own cuts take the place of blocks.

The tree of regions is grown level by level (`grow_in_spark`): one job counts the marginals of all regions that are
still above the block size, and the driver lets the method choose its cuts from them. A method that judges its cuts by
sensitive values needs histograms besides, which may be large where both QIs and sensitive columns have many values:
then each region goes to a task that chooses its cut, and only the cuts reach the driver. What is small enough is cut
further by tasks, one pandas UDF call per bin of regions (`solve_regions`). The method sees the same marginals as in one
process, so the classes are the same, too.

A method that must look once more above the tasks' regions (bottom-up pruning, say) hands over a `Finish`: it is given
the tree of regions and the written entries, in which `open` marks what the tasks could not place, and gives back the
entries of all signatures.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kanon_spark.engine.binned import apply_to_bins
from kanon_spark.engine.bounding import block_bound_kind, with_block_bounds
from kanon_spark.engine.judged_cuts import decide_in_spark
from kanon_spark.engine.pieces import Solver
from kanon_spark.engine.solving import Solved
from kanon_spark.engine.stages import RunContext
from kanon_spark.kernels.regions import Counter, Decision, Marginals, Regions, grow, grow_by
from kanon_spark.methods.base import TopDownMethod

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Folder = Callable[[str], str]
Finish = Callable[[RunContext, Solver, Regions, "DataFrame", Folder], "DataFrame"]


def solve_top_down(
    ctx: RunContext,
    solver: Solver,
    method: TopDownMethod,
    signatures: "DataFrame",
    *,
    count: int,
    block_size: int,
    folder: Folder,
    bound: str,
    finish: Finish | None = None,
    judged: bool = True,
) -> Solved:
    """Grow the tree of regions, solve what is left of it in tasks, and write the entries to `folder("recoding")`.

    Args:
        ctx: The run.
        solver: Everything that solves a piece.
        method: The solver's method.
        signatures: All signatures.
        count: How many there are.
        block_size: Signatures of a region that one task can hold.
        folder: Gives a path under the work folder for a name.
        bound: Which lower bound the configuration asks for.
        finish: What remains to be done with the tasks' entries, where the method has something left.
        judged: Whether the method judges its cuts by sensitive values, where more than k is asked.
    """
    from pyspark.sql import functions as F

    with ctx.stage("blocks"):
        regions = grow_in_spark(solver, method, signatures, count=count, block_size=block_size, judged=judged)
        ctx.note(f"{count} signatures in {len(regions.leaves)} regions")
    kind = block_bound_kind(solver, bound)
    if kind == "none":
        signatures = signatures.withColumn("bound", F.lit(0.0))
    else:
        signatures = with_block_bounds(ctx, solver, signatures, count=count, block_size=block_size, folder=folder)
    path = folder("recoding")
    with ctx.stage("solve"):
        solved_path = path if finish is None else folder("solved_0")
        solve_regions(solver, signatures, regions, block_size=block_size).write.mode("overwrite").parquet(solved_path)
    if finish is not None:
        with ctx.stage("rest"):
            entries = finish(ctx, solver, regions, ctx.spark.read.schema(solver.schema).parquet(solved_path), folder)
        with ctx.stage("recode"):
            entries.write.mode("overwrite").parquet(path)
    facts = _facts(regions)
    return Solved(
        ctx.spark.read.parquet(path),
        kind,
        blocks=facts["blocks"],
        cuts=[facts],
        stitch={"way": "top down", "rounds": 0, "graphframes_calls": 0},
    )


def grow_in_spark(
    solver: Solver,
    method: TopDownMethod,
    signatures: "DataFrame",
    *,
    count: int,
    block_size: int,
    judged: bool = True,
) -> Regions:
    """The tree of the method's cuts, down to regions of at most `block_size` signatures or without a cut."""
    nothing = pd.DataFrame(columns=[*solver.codebook.layout.names(), *solver.counts], dtype=np.int64)
    choose = method.chooser(solver.problem(nothing))

    def count_in_spark(regions: Regions, wanted: Sequence[int]) -> Mapping[int, Marginals]:
        return count_marginals_in_spark(solver, signatures, regions, wanted)

    def choose_in_spark(regions: Regions, wanted: Sequence[int]) -> Mapping[int, Decision]:
        return decide_in_spark(solver, choose, signatures, regions, wanted)

    if judged and solver.demands is not None:
        return grow_by(choose_in_spark, signatures=count, block_size=block_size)
    return grow(count_in_spark, choose, signatures=count, block_size=block_size)


def count_marginals_in_spark(
    solver: Solver, signatures: "DataFrame", regions: Regions, wanted: Sequence[int]
) -> dict[int, Marginals]:
    """Marginals of some leaves of the tree, all of them in one job."""
    from pyspark.sql import functions as F

    tallies = ["signatures", "persons", "rows", *solver.label_names]
    solver = replace(solver, demands=None)  # marginals alone: histograms stay where they are

    def count_batches(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            problem = solver.problem(batch)
            leaf_of = regions.assign(problem.codes)
            counter = Counter(problem)
            here = np.intersect1d(leaf_of, wanted).tolist()
            if here:
                found = [counter.count(np.flatnonzero(leaf_of == region)) for region in here]
                yield _as_frame(dict(zip(here, found, strict=True)), tallies)

    fields = ", ".join(f"{name} bigint" for name in tallies)
    # One line per value that a region holds: at most (regions above the block size) x (values of all QIs, which the
    # driver holds in the codebook), and at most QIs x signatures.
    counted = (
        signatures.select(*solver.codebook.layout.names(), *solver.counts)
        .mapInPandas(count_batches, f"region int, qi int, code int, {fields}")
        .groupBy("region", "qi", "code")
        .agg(*[F.sum(name).alias(name) for name in tallies])
        .toPandas()
        .sort_values(["region", "qi", "code"])
    )
    width = len(solver.codebook.columns)
    region_of = counted["region"].to_numpy()
    return {region: _from_frame(counted[region_of == region], tallies, width) for region in wanted}


def _as_frame(found: Mapping[int, Marginals], tallies: list[str]) -> pd.DataFrame:
    """Marginals of some regions, one line per value."""
    each = list(found.values())
    values = [np.column_stack([one.signatures, one.persons, one.rows, one.labels]) for one in each]
    frame = pd.DataFrame(np.concatenate(values), columns=tallies)
    qis = [np.repeat(np.arange(len(one.start) - 1), np.diff(one.start)) for one in each]
    frame.insert(0, "region", np.repeat(list(found), [len(one.codes) for one in each]).astype(np.int32))
    frame.insert(1, "qi", np.concatenate(qis).astype(np.int32))
    frame.insert(2, "code", np.concatenate([one.codes for one in each]))
    return frame


def _from_frame(counted: pd.DataFrame, tallies: list[str], width: int) -> Marginals:
    """Marginals of one region from its lines, in the order of QIs and codes."""
    start = np.searchsorted(counted["qi"].to_numpy(), np.arange(width + 1))
    values = counted[tallies].to_numpy(np.int64)
    return Marginals(
        start.astype(np.int64),
        counted["code"].to_numpy(np.int32),
        signatures=values[:, 0],
        persons=values[:, 1],
        rows=values[:, 2],
        labels=values[:, 3:],
    )


def solve_regions(solver: Solver, signatures: "DataFrame", regions: Regions, *, block_size: int) -> "DataFrame":
    """Entries of all signatures: every leaf of the tree is solved below its path, one UDF call per bin of leaves.

    Class ids name the leaf, so that no two tasks need to agree. A leaf above the block size is one that the method
    does not cut any further: it goes to a task whole, which needs no more than its arrays.
    """
    bins = _bins(regions, block_size)

    def put_into_bins(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            batch["region"] = regions.assign(solver.codes(batch))
            batch["bin"] = bins[batch["region"]]
            yield batch

    def solve_bin(frame: pd.DataFrame) -> pd.DataFrame:
        leaf_of = frame["region"].to_numpy()
        parts = []
        for leaf in np.unique(leaf_of).tolist():
            parts.append(solver.solve(frame[leaf_of == leaf], path=regions[leaf].path, block=leaf))
        return pd.concat(parts, ignore_index=True)

    fields = ", ".join(f"{name} {kind}" for name, kind in signatures.dtypes)
    binned = signatures.mapInPandas(put_into_bins, f"{fields}, region int, bin int")
    return apply_to_bins(binned, solve_bin, solver.schema)


def _bins(regions: Regions, size: int) -> NDArray[np.int32]:
    """Bin of each leaf: neighbours together, up to `size` signatures, so that small regions cost no overhead."""
    out = np.zeros(len(regions.nodes), np.int32)
    current, held = 0, 0
    for leaf in regions.leaves:
        if held and held + regions[leaf].signatures > size:
            current, held = current + 1, 0
        out[leaf] = current
        held += regions[leaf].signatures
    return out


def _facts(regions: Regions) -> dict[str, Any]:
    """What the manifest says of the cuts."""
    leaves = [regions[leaf] for leaf in regions.leaves]
    return {
        "blocks": len(leaves),
        "largest": max(leaf.signatures for leaf in leaves),
        "cut_qis": sorted({node.cut.qi for node in regions.nodes if node.cut is not None}),
        "depth": max(len(leaf.path) for leaf in leaves),
        "stop": "none: the cuts are the method's own",
    }
