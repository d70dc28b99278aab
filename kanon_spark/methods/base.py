"""What a method is: a small object that turns a problem into classes. The engine runs it on a table, block or rest.

There are three shapes. A *local* method solves one piece at a time, and the engine cuts the pieces. A *top-down* method
cuts the table itself, from the top, by counts of the values in each region; what is small enough is then solved like a
piece. A *full-domain* method chooses levels by counting groups. To add one, write one file with a class like `Lattice`,
`Mondrian` or `Datafly` and name it in `registry.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from kanon_spark.hierarchy.tree import Tree
from kanon_spark.kernels.levels import Levels
from kanon_spark.kernels.problem import Problem
from kanon_spark.kernels.regions import Choose, Path
from kanon_spark.kernels.spanning import Edges

if TYPE_CHECKING:
    from kanon_spark.methods.full_domain import Choice, LevelCounts

Effort = Literal["fast", "normal", "high"]
Leftover = Literal["suppress", "join"]
Trace = tuple[Mapping[str, Any], ...]


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
        path: The cuts that led to the piece, where a top-down method has cut the table.
        trees: The full tree of each QI, for methods that publish nodes of their own choice.
        names: Names of the QIs, for methods that tell how they got there.
        suppressible: Rows of the piece that may be left open for good, where classes must satisfy more than k.
    """

    problem: Problem
    stop: float
    whole_size: int
    suppressed: float
    seed: int
    levels: Levels | None = None
    tree: Edges | None = None
    path: Path = ()
    trees: tuple[Tree, ...] = ()
    names: tuple[str, ...] = ()
    suppressible: int = 0


@dataclass(frozen=True)
class Solution:
    """What a method found for the signatures of a piece.

    Attributes:
        class_of: Class of each signature; -1: open, or to be suppressed.
        bound: A lower bound of each signature's loss per row.
        nodes: What each signature publishes, signatures by QIs: a node of the QI's full tree that covers the whole
            class, or OWN for what the class's values give (their lowest common ancestor, range or set). The root of a
            QI without a hierarchy stands for a suppressed cell. None: OWN everywhere.
        trace: How the method got there, step by step, where it has something to tell: names and numbers, no values.
    """

    class_of: NDArray[np.int32]
    bound: NDArray[np.float64]
    nodes: NDArray[np.int32] | None = None
    trace: Trace = ()


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

    @property
    def leftover(self) -> Leftover:
        """What becomes of the last signatures that cannot fill a class: suppressed, or put into one that has room."""
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


@runtime_checkable
class TopDownMethod(LocalMethod, Protocol):
    """A method that cuts the table itself, region by region; below a region it solves like a local one.

    `solve` continues where `piece.path` ends, so that the classes are the same whoever made the cuts above.
    """

    def chooser(self, problem: Problem) -> Choose:
        """The choice of cuts on this table; it reads the problem's trees, measure and k, never its signatures."""
        ...


@runtime_checkable
class FullDomainMethod(LocalMethod, Protocol):
    """A method that chooses levels of whole columns by counting groups; whoever counts, it chooses alike."""

    def choose(self, counts: "LevelCounts") -> "Choice":
        """The levels at which groups are released."""
        ...
