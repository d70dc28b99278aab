"""`mst`: classes from the minimum spanning tree of all signatures, or by merges that the tree's distances only guide.

Source: Graph based local recoding. `cut: paper` is its rule and `cut: balanced` a milder one, both on the exact tree;
`cut: loss`, the default, merges components by what their union loses, splits large classes along their own trees, and
refines like `lattice`.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kanon_spark.errors import InternalError
from kanon_spark.kernels.bounds import simple_bound
from kanon_spark.kernels.lattice import loss_of_each
from kanon_spark.kernels.merging import cut_longest, grow_balanced, merge_by_loss, split_along_trees
from kanon_spark.kernels.spanning import spanning_tree
from kanon_spark.methods.base import Effort, Leftover, Piece, Solution
from kanon_spark.methods.lattice import Lattice, place_rest

Cut = Literal["loss", "balanced", "paper"]


@dataclass(frozen=True)
class Mst:
    """The method with its options."""

    effort: Effort = "normal"
    cut: Cut = "loss"
    name: str = "mst"
    tight: bool = False
    leftover: Leftover = "join"

    @property
    def by_tree(self) -> bool:
        """True where the classes are cut from the tree of the whole table, so that no block can form any."""
        return self.cut != "loss"

    def solve(self, piece: Piece) -> Solution:
        """Classes by the chosen cut; with `cut: loss` in a block only what nothing outside could make cheaper."""
        problem = piece.problem
        levels = piece.levels
        if levels is None:
            raise InternalError("mst was not given the levels of the hierarchies")
        whole = np.isinf(piece.stop)
        if self.by_tree:
            tree = piece.tree if piece.tree is not None else spanning_tree(levels, problem.codes)
            class_of = (cut_longest if self.cut == "paper" else grow_balanced)(problem, tree)
        else:
            class_of = split_along_trees(problem, merge_by_loss(problem, stop=piece.stop), levels)
        if whole:
            class_of = place_rest(piece, class_of)
        cap = None if whole else piece.stop
        bound = simple_bound(problem, ceiling=piece.suppressed, cap=cap, reached=loss_of_each(problem, class_of))
        if self.refines(piece.whole_size):
            class_of = self.refine(piece, class_of, bound)
        return Solution(class_of, bound)

    def refines(self, whole_size: int) -> bool:
        """The cuts of the tree stay what they are; `cut: loss` is refined like `lattice`."""
        return not self.by_tree and Lattice(self.effort).refines(whole_size)

    def refine(self, piece: Piece, class_of: NDArray[np.int32], bound: NDArray[np.float64]) -> NDArray[np.int32]:
        """Polish and steal."""
        return Lattice(self.effort).refine(piece, class_of, bound)
