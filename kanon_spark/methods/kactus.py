"""`kactus`: multidimensional suppression, guided by a classification tree over the QIs and a target column.

See `kernels/kactus.py` for the tree, `kernels/kactus_pruning.py` for how it is pruned until every class is good (it has
k persons, and satisfies what is asked beyond), and `kernels/kactus_cells.py` for what a class publishes. This file puts
them together, and decides what becomes of the last few persons: what is left in the root, where no value is named, may
be no good class. It is suppressed, or (`join`) the released class that has the fewest cells to lose is pruned into the
root as well, and released with it; of classes that would not stay good with it none is.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kanon_spark.kernels.kactus import Criterion, best_cuts
from kanon_spark.kernels.kactus_cells import (
    Classes,
    as_nodes,
    cheapest_to_suppress,
    holdings,
    named_by,
    place,
    silent_cells,
    single_dimension,
)
from kanon_spark.kernels.kactus_pruning import Asked, prune
from kanon_spark.kernels.problem import Problem
from kanon_spark.kernels.regions import Choose, grow_here
from kanon_spark.methods.base import Leftover, Piece, Solution


@dataclass(frozen=True)
class Kactus:
    """The method with its options.

    Attributes:
        leftover: What becomes of those who are left in the root and are no good class.
        dimension: Whether a value is suppressed row by row (`multi`), or in all rows once it is in any (`single`).
        numeric: What QIs without a hierarchy that were tested by an inequality publish (`signatures/forms.py`).
        criterion: How cuts are judged.
        below: Whether the pieces are regions of a tree that was cut elsewhere: what their root is left with stays open,
            and the last steps are not for them.
    """

    leftover: Leftover = "join"
    dimension: Literal["multi", "single"] = "multi"
    numeric: Literal["range", "mean"] = "range"
    criterion: Criterion = "gain_ratio"
    below: bool = False
    name: str = "kactus"
    tight: bool = True

    def chooser(self, problem: Problem) -> Choose:
        """The cut that tells most about the target."""
        return best_cuts(problem, self.criterion)

    def solve(self, piece: Piece) -> Solution:
        """Grow the tree, prune it, and name what each class publishes."""
        problem = piece.problem
        width = problem.forest.width
        asked = Asked(problem.k, problem.guard.demands if problem.guard.asks else None)
        roots = np.array([tree.root for tree in piece.trees], np.int32)
        regions, leaf_of = grow_here(problem, self.chooser(problem), path=piece.path)
        pruned = prune([node.children for node in regions.nodes], holdings(problem, regions, leaf_of), asked)
        released = list(pruned.released)
        if asked.good(pruned.left) and not self.below:
            released.append((0, pruned.left))
        class_of = place([held for _, held in released], pruned.left, leaf_of, len(regions.nodes))
        named = named_by([regions[node].path for node, _ in released], width)
        silent = silent_cells(problem, Classes(class_of, named), roots)
        if not self.below:
            if self.leftover == "join" and (class_of < 0).any():
                class_of, silent = _join(problem, class_of, silent)
            if self.dimension == "single":
                silent = single_dimension(problem, class_of, silent)
        return Solution(class_of, np.zeros(problem.size), as_nodes(silent, class_of, roots))

    def refines(self, whole_size: int) -> bool:
        """The tree decides; there is nothing to refine."""
        del whole_size
        return False

    def refine(self, piece: Piece, class_of: NDArray[np.int32], bound: NDArray[np.float64]) -> NDArray[np.int32]:
        """Leave the classes as they are."""
        del piece, bound
        return class_of


def _join(
    problem: Problem, class_of: NDArray[np.int32], silent: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """What is left joins the class that has the fewest cells to lose, which then publishes none."""
    cheapest = cheapest_to_suppress(problem, class_of, silent)
    if cheapest < 0:
        return class_of, silent
    silent = silent.copy()
    silent[cheapest] = True
    return np.where(class_of < 0, cheapest, class_of).astype(np.int32), silent
