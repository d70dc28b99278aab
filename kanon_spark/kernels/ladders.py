"""The levels that full-domain methods may choose from, as numbers that nest.

Idea: at each level the nodes of a QI that the data reaches are numbered 0, 1, 2 … in the order of their ids: *places*.
A place at one level lies under exactly one place of every higher level, so groups can be counted once at low levels and
rolled up to higher ones. Two corners of the trees are straightened for that. A node that `max_level` closes is never
climbed to: its leaves stay at the highest node below it that is open. And where a file lets one node stand at different
levels for different leaves, all of them climb with the first.

Losses are whole numbers of a small unit, chosen so that the loss of the whole table fits a 64-bit integer: sums are
then the same in whatever order, on whatever machine, they are made, and ties are ties everywhere.

Cost: levels times leaves of each QI, once per table.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kanon_spark.hierarchy.tree import Tree

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

_BITS = 62  # of a 64-bit sum; one is the sign, one is left for rounding


@dataclass(frozen=True)
class Ladder:
    """The levels of one QI over its compact leaf codes.

    Attributes:
        nodes: Levels by leaves: node of the full tree.
        place: Levels by leaves: number of that node among those of its level.
        first: Per level, a leaf under each place.
        cost: Per level, loss of each place in whole units.
        open: Whether each leaf may be published at all.
        root: The full tree's root.
    """

    nodes: Ints
    place: Ints
    first: tuple[Ints, ...]
    cost: tuple[Longs, ...]
    open: NDArray[np.bool_]
    root: int

    @classmethod
    def of(cls, tree: Tree, present: Ints, *, weight: float, unit: float) -> "Ladder":
        """The levels of a tree over the leaves that the data holds (compact code → full code)."""
        top = tree.height if tree.max_level is None else tree.max_level
        nodes = np.empty((top + 1, len(present)), np.int32)
        nodes[0] = present
        for level in range(1, top + 1):
            below, climbed = nodes[level - 1], tree.levels[level, present]
            # Ids grow on the way up, so the highest of two nodes on one path has the larger id.
            here = np.where(np.isfinite(tree.loss[climbed]), np.maximum(below, climbed), below)
            highest = np.full(tree.nodes, -1, np.int32)
            np.maximum.at(highest, below, here)
            nodes[level] = highest[below]
        places, firsts, costs = [], [], []
        loss = np.rint(np.where(np.isfinite(tree.loss), tree.loss, 0.0) * (weight / unit)).astype(np.int64)
        for row in nodes:
            held, first, place = np.unique(row, return_index=True, return_inverse=True)
            places.append(place.astype(np.int32))
            firsts.append(first.astype(np.int32))
            costs.append(loss[held])
        may_be_published = np.isfinite(tree.loss[present])
        return cls(nodes, np.array(places, np.int32), tuple(firsts), tuple(costs), may_be_published, tree.root)

    @property
    def height(self) -> int:
        """The highest level that may be published."""
        return len(self.first) - 1

    def size(self, level: int) -> int:
        """How many places a level has."""
        return len(self.first[level])

    def climb(self, low: int, high: int) -> Ints:
        """The place at a high level of each place at a low one."""
        found: Ints = self.place[high][self.first[low]]
        return found


@dataclass(frozen=True)
class Ladders:
    """The levels of all QIs.

    Attributes:
        columns: The QIs, in the order of the configuration.
        suppressed: What a suppressed row costs, in whole units.
        unit: The loss that one unit stands for.
        names: Names of the QIs, for those who tell of levels; their numbers where they have none.
    """

    columns: tuple[Ladder, ...]
    suppressed: int
    unit: float
    names: tuple[str, ...]

    @classmethod
    def of(
        cls, trees: Sequence[Tree], present: Sequence[Ints], weights: Floats, *, rows: int, names: Sequence[str] = ()
    ) -> "Ladders":
        """Levels of all QIs; `rows` of the whole table decide the unit of its losses."""
        worst = max(1.0, float(weights.sum()) * max(1, rows))
        unit = 2.0 ** (np.ceil(np.log2(worst)) - _BITS)
        columns = tuple(
            Ladder.of(tree, codes, weight=float(weight), unit=float(unit))
            for tree, codes, weight in zip(trees, present, weights, strict=True)
        )
        suppressed = int(np.rint(weights.sum() / unit))
        return cls(columns, suppressed, float(unit), tuple(names) or tuple(str(j) for j in range(len(trees))))

    @cached_property
    def heights(self) -> tuple[int, ...]:
        """The highest level of each QI that may be published."""
        return tuple(column.height for column in self.columns)

    def open(self, codes: Ints) -> NDArray[np.bool_]:
        """Which signatures (compact leaf codes) may be published at all."""
        return all_open([column.open for column in self.columns], codes)

    def nodes(self, codes: Ints, levels: Sequence[int]) -> Ints:
        """Nodes of the full trees at which signatures stand, signatures by QIs."""
        out = np.empty(codes.shape, np.int32)
        for j, (column, level) in enumerate(zip(self.columns, levels, strict=True)):
            out[:, j] = column.nodes[level][codes[:, j]]
        return out

    def leaves(self, nodes: Ints, levels: Sequence[int]) -> Ints:
        """A compact leaf code under each node that stands at these levels: at any higher level it stands for all."""
        out = np.empty(nodes.shape, np.int32, order="F")
        for j, (column, level) in enumerate(zip(self.columns, levels, strict=True)):
            first = column.first[level]
            out[:, j] = first[np.searchsorted(column.nodes[level][first], nodes[:, j])]
        return out

    def places(self, codes: Ints, levels: Sequence[int]) -> Ints:
        """The same as places."""
        out = np.empty(codes.shape, np.int32, order="F")
        for j, (column, level) in enumerate(zip(self.columns, levels, strict=True)):
            out[:, j] = column.place[level][codes[:, j]]
        return out

    def sizes(self, levels: Sequence[int]) -> list[int]:
        """How many places each QI has at these levels."""
        return [column.size(level) for column, level in zip(self.columns, levels, strict=True)]


def all_open(open_leaves: Sequence[NDArray[np.bool_]], codes: Ints) -> NDArray[np.bool_]:
    """Which signatures (compact leaf codes) have only leaves that may be published."""
    found = np.ones(codes.shape[0], bool)
    for j, may in enumerate(open_leaves):
        found &= may[codes[:, j]]
    return found
