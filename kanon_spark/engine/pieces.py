"""One piece of the work, Spark-free: a frame of signatures in, a frame of recoding entries out.

The same object serves the driver (small tables, the rest) and the workers (blocks), so both ways give the same classes.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kanon_spark.blocks.cuts import CellRequest, Cells, Cuts, count_cells, cut_blocks
from kanon_spark.engine.good_classes import keep_good, keep_good_after_suppression
from kanon_spark.kernels.bounds import project, simple_bound
from kanon_spark.kernels.dual import dual_bound
from kanon_spark.kernels.guard import NOTHING, Guard
from kanon_spark.kernels.kmember import reach
from kanon_spark.kernels.levels import Levels
from kanon_spark.kernels.measure import Measure, Measured
from kanon_spark.kernels.problem import Forest, Problem
from kanon_spark.kernels.regions import Path
from kanon_spark.kernels.spanning import Edges
from kanon_spark.methods.base import LocalMethod, Piece, Solution, TopDownMethod, Trace
from kanon_spark.privacy.demands import Demands
from kanon_spark.recoding.publish import publish
from kanon_spark.signatures.codebook import Codebook
from kanon_spark.signatures.histograms import HISTOGRAM, read_histograms
from kanon_spark.signatures.labels import label_name
from kanon_spark.signatures.sensitive import Judged

COUNTS = ["h", "rows", "persons", "g_hi", "g_lo"]
_CLASS_BITS = 32  # a class id is round, block and class within the block, so that no two tasks need to agree on numbers
_ROUND_BITS = 24


@dataclass(frozen=True)
class Solver:
    """Everything that is needed to solve any piece of one table."""

    codebook: Codebook
    forest: Forest
    method: LocalMethod
    k: int
    whole_size: int
    seed: int
    labels: int = 0  # how many class labels the signatures count, where the method guards them
    demands: Demands | None = None  # what classes must satisfy beyond k; the signatures then carry histograms
    judged: Judged | None = None  # the same with the distributions that it is held against
    suppressible: int = 0  # rows of the table that may be suppressed

    @property
    def counts(self) -> list[str]:
        """What a signature carries beside its codes."""
        return [*COUNTS, *self.label_names, *([HISTOGRAM] if self.demands is not None else [])]

    @property
    def label_names(self) -> list[str]:
        """Columns of the rows that carry each class label."""
        return [label_name(number) for number in range(self.labels)]

    @property
    def suppressed(self) -> float:
        """What a suppressed row costs."""
        return float(self.codebook.weights.sum())

    def problem(self, frame: pd.DataFrame) -> Problem:
        """The frame's signatures as kernels see them."""
        return Problem(
            self.forest,
            np.asfortranarray(self.codes(frame)),
            frame["rows"].to_numpy(np.int64),
            frame["persons"].to_numpy(np.int64),
            self.k,
            self.measure,
            frame[self.label_names].to_numpy(np.int64) if self.labels else None,
            self.guard(frame),
        )

    def guard(self, frame: pd.DataFrame) -> Guard:
        """What classes of the frame's signatures must satisfy."""
        if self.demands is None:
            return NOTHING
        return Guard.of(self.demands, read_histograms(frame, columns=len(self.demands.null)))

    @cached_property
    def measure(self) -> Measure:
        """How each QI is measured where ranges and sets count as what they are, not as nodes of a search tree."""
        columns, present = self.codebook.columns, self.forest.present
        nulls = [
            int(self.forest.compact[j][column.tree.null_leaf]) if column.tree.null_leaf >= 0 else -1
            for j, column in enumerate(columns)
        ]
        return Measure(
            kinds=tuple(column.publish for column in columns),
            weights=self.codebook.weights,
            positions=tuple(column.positions[codes] for column, codes in zip(columns, present, strict=True)),
            spans=tuple(column.span for column in columns),
            domains=tuple(column.tree.leaves - (column.tree.null_leaf >= 0) for column in columns),
            nulls=tuple(nulls),
        )

    @cached_property
    def cut_forest(self) -> Forest:
        """The trees to cut blocks by: each node's loss is the least of a class that has members on both sides.

        To a method that measures ranges and sets as what they are, search trees say nothing.
        """
        if not self.method.tight:
            return self.forest
        measure = self.measure
        return replace(self.forest, loss=measure.crossing(self.forest), parent=measure.flat_sets(self.forest))

    @property
    def unbounded(self) -> frozenset[int]:
        """QIs to cut last: a cut through a QI without a hierarchy gives the bound away, if there is one."""
        return frozenset(range(len(self.codebook.columns))) - self.counted if self.counted else frozenset()

    @cached_property
    def levels(self) -> Levels:
        """The levels of the hierarchies and search trees."""
        return Levels.of([column.tree for column in self.codebook.columns], self.forest.present)

    def codes(self, frame: pd.DataFrame) -> NDArray[np.int32]:
        """Compact leaf codes of the frame's signatures."""
        layout = self.codebook.layout
        return self.forest.encode(layout.unpack(frame[layout.names()].to_numpy(np.int64)))

    def solve(
        self,
        frame: pd.DataFrame,
        *,
        stop: float = np.inf,
        turn: int = 0,
        block: int = 0,
        tree: Edges | None = None,
        path: Path = (),
        last: bool = False,
    ) -> pd.DataFrame:
        """Recoding entries of one piece; `open` marks the signatures that no class below the stop has taken.

        A `tree`, where given, numbers the signatures in the order of their codes. The `last` piece knows that what it
        leaves open will be suppressed.
        """
        return self._entries_and_solution(frame, stop=stop, turn=turn, block=block, tree=tree, path=path, last=last)[0]

    def solve_whole(self, frame: pd.DataFrame, *, tree: Edges | None = None) -> tuple[pd.DataFrame, Trace]:
        """Recoding entries of a whole table, and what the method tells of its way."""
        entries, solution = self._entries_and_solution(frame, tree=tree, last=True)
        return entries, solution.trace

    def _entries_and_solution(
        self,
        frame: pd.DataFrame,
        *,
        stop: float = np.inf,
        turn: int = 0,
        block: int = 0,
        tree: Edges | None = None,
        path: Path = (),
        last: bool = False,
    ) -> tuple[pd.DataFrame, Solution]:
        frame = self.in_order(frame)
        problem = self.problem(frame)
        trees = tuple(column.tree for column in self.codebook.columns)
        seed = self.seed + block
        names = tuple(column.name for column in self.codebook.columns)
        room = self.suppressible if last else int(problem.rows.sum())  # what is not the last may leave anything open
        piece = Piece(
            problem, stop, self.whole_size, self.suppressed, seed, self.levels, tree, path, trees, names, room
        )
        to_the_end = np.isinf(stop) and (last or not isinstance(self.method, TopDownMethod))
        mends = bool(to_the_end) and self.method.leftover == "join"
        solution = keep_good(piece, self.method.solve(piece), mends=mends)
        if last and self.judged is not None:
            solution = keep_good_after_suppression(piece, solution, self.judged)
        return self.entries(frame, problem, solution, turn=turn, block=block), solution

    def bound(
        self, frame: pd.DataFrame, *, kind: str = "simple", cap: float = np.inf
    ) -> tuple[NDArray[np.float64], str]:
        """Lower bound of each signature's loss per row, and which bound it is.

        A QI without a hierarchy publishes tight ranges or sets, which cost less than any node of its search tree: it
        counts nothing in these bounds. Without any other QI a whole table of finite values has a weak one: what a
        signature costs together with the nearest ones that fill its class. Whatever leaves the frame costs at least
        `cap`.
        """
        if kind == "none" or not len(frame):
            return np.zeros(len(frame)), "none"
        counted = np.array([column.publish == "node" for column in self.codebook.columns])
        if not counted.any():
            if np.isfinite(cap) or not self.measure.finite:
                return np.zeros(len(frame)), "none"
            whole = self.problem(frame)
            return np.minimum(reach(whole, Measured.of(whole)), self.suppressed), "neighbours"
        problem, index = project(self.problem(frame), counted)
        if kind == "dual":
            found = dual_bound(problem, ceiling=self.suppressed)
            return found.values[index], found.kind
        return simple_bound(problem, ceiling=self.suppressed, cap=cap)[index], "simple"

    def entries(
        self, frame: pd.DataFrame, problem: Problem, solution: Solution, *, turn: int = 0, block: int = 0
    ) -> pd.DataFrame:
        """The frame with class, published nodes and labels, and bound."""
        published = publish(problem, solution.class_of, self.codebook, solution.nodes)
        first = ((turn << _ROUND_BITS) | block) << _CLASS_BITS
        out = frame[[*self.codebook.layout.names(), *self.counts]].copy()
        open_ = solution.class_of < 0
        out["class_id"] = np.where(open_, -1, first + solution.class_of.astype(np.int64))
        for place, name in enumerate(self.codebook.node_layout.names("out")):
            out[name] = published.out[:, place]
        for index in published.labels:
            out[f"label_{index}"] = published.labels[index]
            out[f"loss_{index}"] = published.losses[index]
        for name, values in published.numbers.items():
            out[name] = values
        # The first round sees all rows and knows the bound; later ones see only what is left and pass it on.
        out["bound"] = frame.get("bound", solution.bound)
        out["open"] = open_
        return out

    def forest_nodes(self, words: NDArray[np.int64]) -> NDArray[np.int32]:
        """Packed node ids of the full trees to ids of the pruned forest."""
        nodes = self.codebook.node_layout.unpack(words)
        forest = self.forest
        out = np.empty_like(nodes)
        for index, column in enumerate(self.codebook.columns):
            first, end = forest.start[index], forest.start[index + 1]
            # Only the root may be published although it was pruned: by what is suppressed.
            back = np.full(column.tree.nodes, end - 1, dtype=np.int32)
            back[forest.original[first:end]] = np.arange(first, end, dtype=np.int32)
            out[:, index] = back[nodes[:, index]]
        return np.ascontiguousarray(out)

    def refine(self, frame: pd.DataFrame, *, turn: int, block: int) -> pd.DataFrame:
        """Polish the classes of a frame of entries; open entries stay as they are."""
        frame = self.in_order(frame)
        problem = self.problem(frame)
        class_of = frame["class_id"].rank(method="dense").to_numpy().astype(np.int32) - 1
        open_ = frame["open"].to_numpy(bool)
        class_of = np.where(open_, -1, class_of - int(open_.any())).astype(np.int32)
        piece = Piece(problem, np.inf, self.whole_size, self.suppressed, self.seed + block, self.levels)
        bound = frame["bound"].to_numpy(np.float64)
        refined = self.method.refine(piece, class_of, bound)
        return self.entries(frame, problem, Solution(refined, bound), turn=turn, block=block)

    def unite(self, frame: pd.DataFrame, *, turn: int, block: int) -> pd.DataFrame:
        """Entries of classes that are given by the column `united` (-1: suppressed), whatever they were before."""
        frame = self.in_order(frame)
        gone = frame["united"].to_numpy() < 0
        _, number = np.unique(frame["united"].to_numpy(), return_inverse=True)
        class_of = np.where(gone, -1, number - int(gone.any())).astype(np.int32)
        united = Solution(class_of, frame["bound"].to_numpy(np.float64))
        return self.entries(frame, self.problem(frame), united, turn=turn, block=block)

    def in_order(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Signatures in the order of their codes: the result must not depend on how they arrived."""
        return frame.sort_values(self.codebook.layout.names(), kind="stable").reset_index(drop=True)

    def solve_bin(self, frame: pd.DataFrame, cuts: Cuts, *, factor: float, turn: int) -> pd.DataFrame:
        """Solve every block of a bin, each up to `factor` times its own crossing loss."""
        frame = self.in_order(frame)
        block_of = cuts.assign(self.codes(frame))
        exact = all(column.publish == "node" for column in self.codebook.columns)
        parts = []
        for block in np.unique(block_of):
            piece = frame[block_of == block].reset_index(drop=True)
            crossing = cuts.blocks[block].crossing
            if "bound" not in piece and not exact:
                piece["bound"], _ = self.bound(piece, cap=cuts.crossing_of(int(block), self.counted))
            if self.method.tight and not exact:
                parts.append(piece)
                continue
            parts.append(self.solve(piece, stop=float(crossing * factor), turn=turn, block=int(block)))
        together: pd.DataFrame = pd.concat(parts, ignore_index=True)
        if self.method.tight and not exact:
            # Borders of ranges and sets are cheap to cross: neighbouring blocks are better solved as one.
            stop = float(cuts.crossing[np.unique(block_of)].min() * factor)
            return self.solve(together, stop=stop, turn=turn, block=int(block_of.min()))
        return together

    def solve_regions(self, frame: pd.DataFrame, *, block_size: int, turn: int) -> pd.DataFrame:
        """Solve every region of a bin to the end; one above the block size is cut like a block."""
        frame = self.in_order(frame)
        block = int(frame["bin"].iloc[0])
        parts = []
        classes = 0
        for _, region in frame.groupby("region", sort=True):
            codes = self.codes(region)
            piece_of = np.zeros(len(region), np.int32)
            if len(region) > block_size:
                piece_of = self.cut_here(codes, block_size).assign(codes)
            for piece in np.unique(piece_of):
                solved = self.solve(region[piece_of == piece].reset_index(drop=True), turn=turn, block=block)
                closed = ~solved["open"]
                made = solved.loc[closed, "class_id"].nunique()
                solved.loc[closed, "class_id"] += classes  # numbered on, so that no two regions share a class
                classes += made
                parts.append(solved)
        return pd.concat(parts, ignore_index=True)

    def cut_here(self, codes: NDArray[np.int32], block_size: int) -> Cuts:
        """Cuts of these signatures into blocks, counted in this process."""

        def count(cuts: Cuts, request: CellRequest) -> Cells:
            return count_cells(codes, cuts.assign(codes), request, cuts.forest)

        return cut_blocks(self.cut_forest, signatures=len(codes), block_size=block_size, count=count)

    @property
    def counted(self) -> frozenset[int]:
        """QIs whose loss counts in a bound."""
        return frozenset(i for i, column in enumerate(self.codebook.columns) if column.publish == "node")

    @property
    def schema(self) -> str:
        """Spark DDL of the entries."""
        kinds = {HISTOGRAM: "array<bigint>"}
        names = [f"{name} {kinds.get(name, 'bigint')}" for name in [*self.codebook.layout.names(), *self.counts]]
        names.append("class_id bigint")
        names += [f"{name} bigint" for name in self.codebook.node_layout.names("out")]
        for index, column in enumerate(self.codebook.columns):
            if column.publish != "node":
                names += [f"label_{index} string", f"loss_{index} double"]
        names += [f"{name} double" for name in self.codebook.numbers]
        return ", ".join([*names, "bound double", "open boolean"])
