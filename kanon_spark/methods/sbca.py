"""`sbca`: similarity-based clustering, which needs no hierarchies: categories are compared by how often they occur.

Source: similarity-based clustering algorithm. See `kernels/sbca.py` for the rule. QIs with a hierarchy publish their
nodes, the others ranges and sets; the distances are the same either way.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kanon_spark.kernels.bounds import simple_bound
from kanon_spark.kernels.sbca import similarity_classes
from kanon_spark.methods.base import Leftover, Piece, Solution


@dataclass(frozen=True)
class Sbca:
    """The method with its options.

    Attributes:
        leftover: Whether the last signatures, which cannot fill a class, are suppressed or join the last class.
    """

    leftover: Leftover = "join"
    name: str = "sbca"
    tight: bool = True

    def solve(self, piece: Piece) -> Solution:
        """Form all classes that the piece can fill; what is left over joins the last one where the piece is the end.

        Similarity says nothing about loss, so there is no class that a block should leave to a later round.
        """
        problem = piece.problem
        whole = np.isinf(piece.stop)
        class_of = similarity_classes(problem, join=bool(whole) and self.leftover == "join")
        bound = np.zeros(problem.size)
        if not whole and (problem.measure is None or problem.measure.only_nodes):
            bound = simple_bound(problem, ceiling=piece.suppressed, cap=piece.stop)
        return Solution(class_of, bound)

    def refines(self, whole_size: int) -> bool:
        """The classes stay what the paper makes them."""
        return False

    def refine(self, piece: Piece, class_of: NDArray[np.int32], bound: NDArray[np.float64]) -> NDArray[np.int32]:
        """Leave the classes as they are."""
        return class_of
