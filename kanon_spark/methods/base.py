"""What a method is: a small object that turns a problem into classes. The engine runs it on a table, block or rest.

To add a local method, write one file with a class like `Lattice` and name it in `registry.py`.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from kanon_spark.kernels.levels import Levels
from kanon_spark.kernels.problem import Problem
from kanon_spark.kernels.spanning import Edges

Effort = Literal["fast", "normal", "high"]


@dataclass(frozen=True)
class Piece:
    """A part of a table to solve: all of it, a block, or what blocks have left.

    Attributes:
        problem: The signatures of the piece, in the order of their codes.
        stop: Only classes cheaper than this may be formed; infinite means: to the end, nothing stays open that fits.
        whole_size: Signatures in the whole table: effort is a function of it, not of the piece.
        suppressed: What a suppressed row costs (the sum of the QIs' weights).
        seed: Seed of every random choice.
        levels: The hierarchies' levels, for methods that measure distances by them.
        tree: A spanning tree of the piece, where one has been built already.
    """

    problem: Problem
    stop: float
    whole_size: int
    suppressed: float
    seed: int
    levels: Levels | None = None
    tree: Edges | None = None


@dataclass(frozen=True)
class Solution:
    """Class of each signature (-1: open, or to be suppressed) and a lower bound of each signature's loss per row."""

    class_of: NDArray[np.int32]
    bound: NDArray[np.float64]


class LocalMethod(Protocol):
    """A method that solves one piece at a time."""

    @property
    def name(self) -> str:
        """The name that configurations use."""
        ...

    @property
    def tight(self) -> bool:
        """Whether it measures QIs without a hierarchy by their ranges and sets, not by nodes of their search trees."""
        ...

    def solve(self, piece: Piece) -> Solution:
        """Form classes of at least k persons."""
        ...

    def refines(self, whole_size: int) -> bool:
        """Whether classes of a table of this size are worth refining across the borders of their blocks."""
        ...

    def refine(self, piece: Piece, class_of: NDArray[np.int32], bound: NDArray[np.float64]) -> NDArray[np.int32]:
        """Make classes cheaper; none falls under k, what is open (-1) stays open, and the loss never rises."""
        ...
