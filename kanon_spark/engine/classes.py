"""Which way a table's classes are formed: in one process or over blocks, with or without a spanning tree."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from kanon_spark.engine.pieces import Solver
from kanon_spark.engine.session import is_connect
from kanon_spark.engine.solving import (
    BLOCK_SIZE,
    LOCAL_LIMIT,
    Solved,
    Stitch,
    Way,
    solve_in_one_process,
    solve_over_blocks,
)
from kanon_spark.engine.stages import RunContext
from kanon_spark.errors import RequestError
from kanon_spark.kernels.spanning import Edges
from kanon_spark.methods.base import FullDomainMethod, LocalMethod, TopDownMethod
from kanon_spark.methods.kactus import Kactus
from kanon_spark.methods.mst import Mst
from kanon_spark.stitch.graph import Graphs
from kanon_spark.stitch.tree import Tree, tree_across_blocks, tree_in_one_process

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kanon_spark.config.models import ExecutionSpec

CUT_LIMIT = 2_000_000  # signatures whose tree one process may cut: some 300 MB


def form_classes(
    ctx: RunContext,
    solver: Solver,
    signatures: "DataFrame",
    *,
    count: int,
    execution: "ExecutionSpec",
    folder: Callable[[str], str],
) -> Solved:
    """Form the classes of a table and write the recoding to `folder("recoding")`.

    Args:
        ctx: The run.
        solver: Everything that solves a piece.
        signatures: All signatures.
        count: How many there are.
        execution: What the configuration says of blocks and stitch.
        folder: Gives a path under the work folder for a name.

    Raises:
        PlatformError: GraphFrames is needed and cannot be called.
        RequestError: `cut: paper` or `cut: balanced` on more signatures than one process can hold.
    """
    limit = _limit(execution)
    way = Way(execution.block_size or BLOCK_SIZE, stitch_for(ctx.spark, execution.stitch))
    graphs = Graphs(ctx.spark, folder)
    tree: Tree | None = None
    method = solver.method
    if isinstance(method, Mst):
        with ctx.stage("tree"):
            tree = _tree(ctx, solver, signatures, count=count, limit=limit, way=way, folder=folder, graphs=graphs)
    if in_one_process(method, count, execution):
        edges = _edges(tree, signatures, solver, count) if tree is not None and isinstance(method, Mst) else None
        solved = solve_in_one_process(
            ctx, solver, signatures, path=folder("recoding"), bound=execution.bound, tree=edges
        )
        solved.stitch["graphframes_calls"] = graphs.calls
    elif isinstance(method, FullDomainMethod):
        from kanon_spark.engine.full_domain import solve_full_domain

        solved = solve_full_domain(ctx, solver, method, signatures, count=count, folder=folder, bound=execution.bound)
    elif isinstance(method, Kactus):
        from kanon_spark.engine.kactus import solve_kactus

        solved = solve_kactus(
            ctx,
            solver,
            method,
            signatures,
            count=count,
            block_size=way.block_size,
            folder=folder,
            bound=execution.bound,
        )
    elif isinstance(method, TopDownMethod):
        from kanon_spark.engine.top_down import solve_top_down

        solved = solve_top_down(
            ctx,
            solver,
            method,
            signatures,
            count=count,
            block_size=way.block_size,
            folder=folder,
            bound=execution.bound,
        )
    else:
        solved = solve_over_blocks(
            ctx, solver, signatures, count=count, way=way, folder=folder, graphs=graphs, bound=execution.bound
        )
    solved.tree = tree
    return solved


def stitch_for(spark: "SparkSession", asked: Stitch) -> Stitch:
    """How blocks are stitched here: where GraphFrames cannot be called by its nature, `auto` is `local`.

    Where it merely is not installed, a run that needs it ends and says what to add: it is the faster way by far.
    """
    return "local" if asked == "auto" and is_connect(spark) else asked


def in_one_process(method: LocalMethod, count: int, execution: "ExecutionSpec") -> bool:
    """Whether one process forms the classes of so many signatures: they fit, or are cut from one tree."""
    return count <= _limit(execution) or (isinstance(method, Mst) and method.by_tree)


def _limit(execution: "ExecutionSpec") -> int:
    return LOCAL_LIMIT if execution.local_limit is None else execution.local_limit


def _tree(
    ctx: RunContext,
    solver: Solver,
    signatures: "DataFrame",
    *,
    count: int,
    limit: int,
    way: Way,
    folder: Callable[[str], str],
    graphs: Graphs,
) -> Tree:
    if count <= limit:
        return tree_in_one_process(ctx.spark, solver, solver.in_order(signatures.toPandas()), folder("recoding_tree"))
    return tree_across_blocks(
        solver,
        signatures,
        count=count,
        block_size=way.block_size,
        folder=folder,
        graphs=graphs,
        by_graphs=way.stitch == "graphframes",
        may_call=way.stitch != "local",
        tell=ctx.note,
    )


def _edges(tree: Tree, signatures: "DataFrame", solver: Solver, count: int) -> Edges:
    """The tree with signatures numbered in the order of their codes, as kernels see them."""
    if count > CUT_LIMIT:
        raise RequestError(
            f"the tree of {count:,} signatures is too large to be cut in one process",
            where="method.cut",
            fix="use cut: loss, which has no such limit",
        )
    names = solver.codebook.layout.names()
    ordered = solver.in_order(signatures.select("h", *names).toPandas())["h"].to_numpy(np.int64)
    by_hash = np.argsort(ordered, kind="stable")
    found: pd.DataFrame = tree.edges.toPandas()
    a, b = (by_hash[np.searchsorted(ordered[by_hash], found[end].to_numpy(np.int64))] for end in ("a", "b"))
    return Edges.ordered(a, b, found["w"].to_numpy(np.int64))
