"""What the full-domain methods share: they choose levels of whole columns, and good groups are released there.

A group is *good* if it has at least k persons and satisfies what is asked beyond k.

A *choice* is a list of level vectors, one level per QI. They are carried out in turn: among the signatures that are
left, those in good groups at these levels are released at exactly these levels, and leave. `datafly` and `incognito`
choose one vector, `prgain` several. What no vector releases is suppressed, or joins.

Methods never see signatures: they ask `LevelCounts` how many persons and rows lie in good groups, and there are two of
those, one over numpy arrays (`kernels/level_counts.py`) and one over Spark (`engine/level_counts.py`).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kanon_spark.kernels.carry_out import FlatTrees, join_left, own_values, release_groups
from kanon_spark.kernels.ladders import Ladders
from kanon_spark.kernels.level_counts import ArrayCounts, LevelVector, Roll, Scope, Tally
from kanon_spark.kernels.measure import Measure
from kanon_spark.methods.base import Leftover, Piece, Solution


@dataclass(frozen=True)
class Choice:
    """Level vectors to carry out in turn, and how they were found."""

    released: tuple[LevelVector, ...]
    trace: tuple[Mapping[str, Any], ...] = ()


class LevelCounts(Protocol):
    """Counts of groups under level vectors."""

    @property
    def scope(self) -> Scope:
        """Which QIs are counted, from which levels upwards, up to which heights; k; rows of the whole table."""
        ...

    @property
    def persons(self) -> int:
        """Persons that are counted: all, or those that are left."""
        ...

    def tally(self, vectors: Sequence[LevelVector]) -> list[Tally]:
        """What each vector would release; all vectors are counted at once."""
        ...

    def roll_up(self, wanted: Sequence[Roll]) -> "Iterator[LevelCounts]":
        """Counts over some of the QIs, from some levels upwards; one for each that is wanted, in turn."""
        ...

    def without(self, levels: LevelVector) -> "LevelCounts":
        """Counts of what is left when good groups have left, from these levels upwards."""
        ...

    def by_k_alone(self) -> "LevelCounts":
        """The same counts where any group of at least k persons is good."""
        ...


class FullDomain(ABC):
    """A method that only has to choose; what it chose is carried out here, in one process."""

    tight: bool = False

    @property
    @abstractmethod
    def leftover(self) -> Leftover:
        """What becomes of signatures that no vector releases."""

    @abstractmethod
    def choose(self, counts: LevelCounts) -> Choice:
        """The levels at which groups are released."""

    def solve(self, piece: Piece) -> Solution:
        """Choose by numpy counts, release, and let what is left join if it is to."""
        problem = piece.problem
        measure = problem.measure or Measure.by_nodes(problem.forest)
        rows = int(problem.rows.sum())
        ladders = Ladders.of(piece.trees, problem.forest.present, measure.weights, rows=rows, names=piece.names)
        choice = self.choose(ArrayCounts.of(ladders, problem))
        released = release_groups(ladders, problem, choice.released)
        if self.leftover == "join":
            released = join_left(piece.trees, FlatTrees.of(piece.trees, measure.weights), problem, released)
        roots = [tree.root for tree in piece.trees]
        nodes = released.of_each(own_values(measure.kinds, roots, released.nodes, released.published))
        return Solution(released.class_of, np.zeros(problem.size), nodes, choice.trace)

    def refines(self, whole_size: int) -> bool:
        """Never: levels of whole columns are what these methods are about."""
        return False

    def refine(self, piece: Piece, class_of: NDArray[np.int32], bound: NDArray[np.float64]) -> NDArray[np.int32]:
        """The classes as they are."""
        return class_of


def most_suppressed(share: float, rows: int) -> int:
    """The most rows that may be suppressed, as the share's decimal text says.

    >>> most_suppressed(0.29, 100)
    29
    """
    return int(Decimal(repr(share)) * rows)
