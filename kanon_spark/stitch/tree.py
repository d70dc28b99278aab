"""The exact minimum spanning tree of all signatures across blocks.

1. Blocks are cut so that nothing across a border is nearer than the block's crossing weight: its local edges up to that
   weight are final (cut property), and what they connect is one component from here on.
2. From the least crossing weight on, lattice nodes are visited in batches by rising weight; components that meet in a
   group get an edge (`cross.py`).
3. The edges of a batch become tree edges by Kruskal in one process where they fit, else by Borůvka rounds: every
   component picks its lightest edge (ties by the edge's own ends, so that picks never close a cycle), GraphFrames gives
   the components of the picks, the edges are relabelled, reduced to the lightest between any two, and so on.
4. Once most signatures are in one component, only groups with something outside it are looked at, so that a batch can
   have hundreds of nodes; once very few are outside, one map-only pass finds their nearest, and the tree is whole.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kanon_spark.blocks.cuts import Cuts
from kanon_spark.engine.cutting import cut_in_spark
from kanon_spark.kernels.levels import Levels
from kanon_spark.kernels.problem import Forest
from kanon_spark.kernels.spanning import Edges, components, kruskal, spanning_tree
from kanon_spark.stitch.cross import NodesByWeight, Outside, cross_edges, nearest_edges
from kanon_spark.stitch.graph import Graphs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kanon_spark.engine.pieces import Solver

EDGE_LIMIT = 5_000_000  # edges of a batch that one process may take: some 200 MB
FIRST_KEYS = 1_000_000  # group keys that the first batch of lattice nodes makes; each next one makes twice as many …
MOST_KEYS = 20_000_000  # … up to this
OUTSIDE_SIGNATURES = 200_000  # signatures outside the largest component that are broadcast …
OUTSIDE_KEYS = 4_000_000  # … and the keys they may have at the nodes of a batch: some 150 MB per task
MOST_NODES = 300  # of such a batch
SCAN_SIGNATURES = 1_000  # signatures outside the largest component that are scanned for directly …
SCAN_PAIRS = 2_000_000_000  # … or more, up to so many pairs, …
SCAN_FOUND = 1_000_000  # … as long as no more can be found: each signature has a nearest one in each component


@dataclass
class Tree:
    """The tree of a table.

    Attributes:
        edges: `a`, `b` (signatures, by their hash `h`, a < b) and the whole-number weight `w`.
        scale: 2·w/scale is the paper's distance.
        facts: For the manifest: blocks, crossing weights, components after the blocks, batches, Borůvka rounds.
    """

    edges: "DataFrame"
    scale: int
    facts: dict[str, Any]

    def table(self) -> "DataFrame":
        """The edges for users: `a`, `b`, `weight`, `distance`."""
        from pyspark.sql import functions as F

        distance = F.col("w") * F.lit(2.0) / F.lit(float(self.scale))
        return self.edges.select("a", "b", F.col("w").alias("weight"), distance.alias("distance"))


def tree_across_blocks(
    solver: "Solver",
    signatures: "DataFrame",
    *,
    count: int,
    block_size: int,
    folder: Callable[[str], str],
    graphs: Graphs,
    by_graphs: bool,
    may_call: bool,
    tell: Callable[[str], None],
) -> Tree:
    """Build it.

    Args:
        solver: Reads signatures.
        signatures: `h` and the key words.
        count: How many signatures there are.
        block_size: The most a block may hold.
        folder: Gives a path under the work folder for a name.
        graphs: Calls GraphFrames.
        by_graphs: Use Borůvka rounds with GraphFrames whatever the size.
        may_call: Whether GraphFrames may be called at all.
        tell: Told how it goes on.
    """
    builder = _Builder(solver, solver.levels, folder, graphs, by_graphs, may_call, tell)
    return builder.build(signatures, count=count, block_size=block_size)


@dataclass
class _Builder:
    solver: "Solver"
    levels: Levels
    folder: Callable[[str], str]
    graphs: Graphs
    by_graphs: bool
    may_call: bool
    tell: Callable[[str], None]

    def build(self, signatures: "DataFrame", *, count: int, block_size: int) -> Tree:
        spark = signatures.sparkSession
        cuts = cut_in_spark(
            signatures,
            height_forest(self.solver, self.levels),
            self.solver.codes,
            self.solver.codebook.layout.names(),
            count=count,
            block_size=block_size,
            last=frozenset(),
        )
        local = self._local_trees(signatures, cuts, block_size)
        final = local.where("edge").select("a", "b", "w")
        vertices = local.where("not edge").select(
            local["a"].alias("h"), local["b"].alias("component"), *self.solver.codebook.layout.names()
        )
        found = [final]
        left = count - final.count()
        facts: dict[str, Any] = {
            "blocks": len(cuts.blocks),
            "crossing": sorted({int(w) for w in cuts.crossing if np.isfinite(w)}),
            "components_after_blocks": left,
            "batches": 0,
            "rounds": 0,
        }
        start = int(min(cuts.crossing)) if np.isfinite(min(cuts.crossing)) else 0
        nodes = NodesByWeight(self.levels, start=start)
        while left > 1:
            self.tell(f"{left} components to join")
            edges = self._next_edges(vertices, nodes, facts["batches"], count=count, left=left)
            edges = self._written(edges.where("x <> y"), f"cross_{facts['batches']}")
            kept, labels = self._forest_of(edges, facts)
            found.append(kept)
            left -= kept.count()
            facts["batches"] += 1
            if left > 1:
                vertices = self._relabelled(vertices, labels, facts["batches"])
        whole = found[0]
        for part in found[1:]:
            whole = whole.unionByName(part)
        path = self.folder("recoding_tree")  # as confidential as the recoding, and kept with it
        whole.write.mode("overwrite").parquet(path)
        return Tree(spark.read.parquet(path), self.levels.scale, facts)

    def _local_trees(self, signatures: "DataFrame", cuts: Cuts, block_size: int) -> "DataFrame":
        """Rows of two kinds: final edges (edge, a, b, w), and signatures (a) with their component (b) and key words."""
        names = self.solver.codebook.layout.names()
        bins = cuts.bins(block_size)
        solver, levels = self.solver, self.levels

        def put_into_bins(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            for batch in batches:
                batch["bin"] = bins[cuts.assign(solver.codes(batch))]
                yield batch

        def grow(frame: pd.DataFrame) -> pd.DataFrame:
            frame = solver.in_order(frame)
            block_of = cuts.assign(solver.codes(frame))
            parts = [
                _grow_block(frame[block_of == block], cuts.blocks[block].crossing, solver, levels)
                for block in np.unique(block_of)
            ]
            return pd.concat(parts, ignore_index=True)

        words = ", ".join(f"{name} long" for name in names)
        binned = signatures.select("h", *names).mapInPandas(put_into_bins, f"h long, {words}, bin int")
        grown = binned.groupBy("bin").applyInPandas(grow, f"edge boolean, a long, b long, w long, {words}")
        return self._written(grown, "local_trees")

    def _forest_of(self, edges: "DataFrame", facts: dict[str, Any]) -> "tuple[DataFrame, DataFrame]":
        """Tree edges among these, and the new name of every component they join."""
        number = facts["batches"]
        if self.by_graphs or (self.may_call and edges.count() > EDGE_LIMIT):
            return self._boruvka(edges, number, facts)
        spark = edges.sparkSession
        kept, labels = joined_in_one_process(edges.toPandas())
        return (
            spark.createDataFrame(kept, "a long, b long, w long"),
            self._written(spark.createDataFrame(labels, "component long, joined long"), f"labels_{number}"),
        )

    def _boruvka(self, edges: "DataFrame", number: int, facts: dict[str, Any]) -> "tuple[DataFrame, DataFrame]":
        from pyspark.sql import functions as F

        spark = edges.sparkSession
        labels = edges.select(F.col("x").alias("component")).union(edges.select("y")).distinct()
        labels = self._written(labels.withColumn("joined", F.col("component")), f"labels_{number}_0")
        kept: list[DataFrame] = []
        turn = 0
        while edges.limit(1).count():
            turn += 1
            facts["rounds"] += 1
            ends = edges.select(F.col("x").alias("of"), "*").union(edges.select(F.col("y").alias("of"), "*"))
            # Ties by the signatures themselves: the order of all edges is total, so that picks close no cycle.
            picks = ends.groupBy("of").agg(F.min(F.struct("w", "a", "b", "x", "y")).alias("best")).select("best.*")
            picks = self._written(picks.distinct(), f"picks_{number}_{turn}")
            kept.append(picks.select("a", "b", "w"))
            vertices = labels.select(F.col("joined").alias("id")).distinct()
            joined = self.graphs.components(vertices, picks.select(F.col("x").alias("src"), F.col("y").alias("dst")))
            renamed = joined.select(F.col("id").alias("joined"), F.col("component").alias("now"))
            moved = labels.join(renamed, "joined").select("component", F.col("now").alias("joined"))
            labels = self._written(moved, f"labels_{number}_{turn}")
            edges = self._written(_renamed(edges, joined), f"left_{number}_{turn}")
        if not kept:
            return spark.createDataFrame([], "a long, b long, w long"), labels
        whole = kept[0]
        for part in kept[1:]:
            whole = whole.unionByName(part)
        return whole, labels

    def _next_edges(
        self, vertices: "DataFrame", nodes: NodesByWeight, batches: int, *, count: int, left: int
    ) -> "DataFrame":
        """Candidate edges of the next batch: of all groups, of those with something outside, or what ends the tree."""
        from pyspark.sql import functions as F

        width = len(self.levels.height)
        # Before the first batch nothing is large, and with so many components too much is outside.
        known = batches > 0 and left <= OUTSIDE_SIGNATURES
        largest, apart = self._largest(vertices, count) if known else (None, count)
        if largest is None or apart > OUTSIDE_SIGNATURES:
            keys = min(MOST_KEYS, FIRST_KEYS << batches)
            return cross_edges(vertices, self.solver, self.levels, nodes.take(max(width, keys // max(1, count))))
        outside = vertices.where(F.col("component") != largest).toPandas()  # at most OUTSIDE_SIGNATURES
        few_pairs = apart * count <= SCAN_PAIRS and apart * left <= SCAN_FOUND
        if apart > SCAN_SIGNATURES and not few_pairs:
            batch = nodes.take(max(width, min(MOST_NODES, OUTSIDE_KEYS // apart)))
            few = Outside(largest, self.solver.codes(outside))
            return cross_edges(vertices, self.solver, self.levels, batch, few)
        found = nearest_edges(vertices, outside, self.solver, self.levels)
        return found.groupBy(F.least("x", "y").alias("x"), F.greatest("x", "y").alias("y")).agg(
            F.min(F.struct("w", "a", "b")).alias("best")
        ).select("best.a", "best.b", "best.w", "x", "y")  # fmt: skip

    @staticmethod
    def _largest(vertices: "DataFrame", count: int) -> tuple[int, int]:
        """The component of most signatures, and how many are outside it."""
        from pyspark.sql import functions as F

        sizes = vertices.groupBy("component").agg(F.count(F.lit(1)).alias("size"))
        row = sizes.agg(F.max(F.struct("size", "component")).alias("top")).select("top.*").first()
        assert row is not None
        return int(row["component"]), count - int(row["size"])

    def _relabelled(self, vertices: "DataFrame", labels: "DataFrame", number: int) -> "DataFrame":
        from pyspark.sql import functions as F

        renamed = vertices.join(labels, "component", "left").select(
            "h",
            F.coalesce("joined", "component").alias("component"),
            *self.solver.codebook.layout.names(),
        )
        return self._written(renamed, f"vertices_{number}")

    def _written(self, table: "DataFrame", what: str) -> "DataFrame":
        """Lineage ends here: what follows reads a file."""
        path = self.folder(f"span_{what}")
        table.write.mode("overwrite").parquet(path)
        return table.sparkSession.read.schema(table.schema).parquet(path)


def _renamed(edges: "DataFrame", joined: "DataFrame") -> "DataFrame":
    """Edges between the new components: inner ones gone, the lightest of parallel ones kept."""
    from pyspark.sql import functions as F

    left = joined.select(F.col("id").alias("x"), F.col("component").alias("new_x"))
    right = joined.select(F.col("id").alias("y"), F.col("component").alias("new_y"))
    moved = edges.join(left, "x").join(right, "y").where("new_x <> new_y")
    between = [F.least("new_x", "new_y").alias("x"), F.greatest("new_x", "new_y").alias("y")]
    best = moved.groupBy(*between).agg(F.min(F.struct("w", "a", "b")).alias("best"))
    return best.select("best.a", "best.b", "best.w", "x", "y")


def _grow_block(frame: pd.DataFrame, crossing: float, solver: "Solver", levels: Levels) -> pd.DataFrame:
    """One block: its final edges, and its signatures with their components (named by the least hash)."""
    names = solver.codebook.layout.names()
    h = frame["h"].to_numpy(np.int64)
    tree = spanning_tree(levels, np.asfortranarray(solver.codes(frame)))
    kept = int(np.searchsorted(tree.w, crossing, side="right"))
    a, b = h[tree.a[:kept]], h[tree.b[:kept]]
    group = components(tree.a[:kept], tree.b[:kept], len(h))
    least = pd.Series(h).groupby(group).transform("min").to_numpy()
    edges = pd.DataFrame({"edge": True, "a": np.minimum(a, b), "b": np.maximum(a, b), "w": tree.w[:kept]})
    vertices = pd.DataFrame({"edge": False, "a": h, "b": least, "w": np.int64(0)})
    for name in names:
        edges[name] = np.int64(0)
        vertices[name] = frame[name].to_numpy(np.int64)
    return pd.concat([edges, vertices], ignore_index=True)


def joined_in_one_process(edges: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Kruskal over candidate edges (a, b, w, x, y): tree edges (a, b, w), and (component, joined) of all components."""
    edges = edges.sort_values(["w", "a", "b"], kind="stable")
    names = np.unique(edges[["x", "y"]].to_numpy(np.int64))
    x = np.searchsorted(names, edges["x"].to_numpy(np.int64)).astype(np.int32)
    y = np.searchsorted(names, edges["y"].to_numpy(np.int64)).astype(np.int32)
    kept = kept_by_kruskal(x, y, len(names))
    joined = names[components(x, y, len(names))] if len(names) else names
    return edges.loc[kept, ["a", "b", "w"]], pd.DataFrame({"component": names, "joined": joined})


def kept_by_kruskal(x: NDArray[np.int32], y: NDArray[np.int32], size: int) -> NDArray[np.bool_]:
    """Which of the edges, taken in their order, join what was apart."""
    order = np.arange(len(x), dtype=np.int64)
    tree = kruskal(Edges(x, y, order), size)
    out = np.zeros(len(x), np.bool_)
    out[tree.w] = True
    return out


def height_forest(solver: "Solver", levels: Levels) -> Forest:
    """The forest with weights in place of losses: a cut below a node costs what a pair across it is apart at least."""
    forest = solver.forest
    loss = np.zeros(len(forest.loss))
    for j, column in enumerate(solver.codebook.columns):
        inside = slice(int(forest.start[j]), int(forest.start[j + 1]))
        loss[inside] = column.tree.lowest_levels()[forest.original[inside]] * levels.unit[j]
    return Forest(
        start=forest.start,
        leaves=forest.leaves,
        parent=forest.parent,
        lo=forest.lo,
        hi=forest.hi,
        loss=loss,
        original=forest.original,
        compact=forest.compact,
        present=forest.present,
    )


def tree_in_one_process(spark: "SparkSession", solver: "Solver", frame: pd.DataFrame, path: str) -> Tree:
    """The tree of signatures that fit one process, written like the other."""
    edges = spanning_tree(solver.levels, np.asfortranarray(solver.codes(frame)))
    h = frame["h"].to_numpy(np.int64)
    a, b = h[edges.a], h[edges.b]
    table = pd.DataFrame({"a": np.minimum(a, b), "b": np.maximum(a, b), "w": edges.w})
    spark.createDataFrame(table, "a long, b long, w long").write.mode("overwrite").parquet(path)
    return Tree(spark.read.parquet(path), solver.levels.scale, {"blocks": 1, "batches": 0, "rounds": 0})
