"""`mondrian`: cut the table in the widest quasi-identifier, again and again, while every side is a class of its own.

The comparator of most papers: fast, simple, and good where quasi-identifiers are ordered. It needs no hierarchy and
respects those that are given. See `kernels/mondrian.py` for the rules of the cuts. They depend on counts of values
alone, so a cluster that counts cuts like one process that holds everything, and both publish the same classes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kanon_spark.kernels.guarded_groups import good_groups
from kanon_spark.kernels.mondrian import widest_first
from kanon_spark.kernels.problem import Problem
from kanon_spark.kernels.regions import Choose, grow_here
from kanon_spark.methods.base import Leftover, Piece, Solution


@dataclass(frozen=True)
class Mondrian:
    """The method; it has no options.

    `leftover` has nothing to do here: a table of k persons is one class at least. What `max_level` forbids to stand in
    a class of k persons, or in one that satisfies what is asked beyond k, is open, and will be suppressed.
    """

    name: str = "mondrian"
    tight: bool = True
    leftover: Leftover = "join"

    def chooser(self, problem: Problem) -> Choose:
        """The widest QI that has an allowable cut."""
        return widest_first(problem)

    def solve(self, piece: Piece) -> Solution:
        """Cut to the end; classes are numbered in the order of the cuts. It knows no bound of its own."""
        problem = piece.problem
        regions, leaf_of = grow_here(problem, self.chooser(problem), path=piece.path)
        leaves = np.array(regions.leaves)
        number = np.full(len(regions.nodes), -1, np.int32)
        large = np.array([node.cut is None and node.persons >= problem.k for node in regions.nodes])
        classes = leaves[good_groups(problem.guard, leaf_of, large)[leaves]]
        number[classes] = np.arange(len(classes), dtype=np.int32)
        return Solution(number[leaf_of], np.zeros(problem.size))

    def refines(self, whole_size: int) -> bool:
        """Never: the classes are the regions."""
        return False

    def refine(self, piece: Piece, class_of: NDArray[np.int32], bound: NDArray[np.float64]) -> NDArray[np.int32]:
        """Leave the classes as they are."""
        return class_of
