"""Counts of groups under level vectors, in one process.

Idea: a table of places (one row per signature, or per group of an earlier count) with rows and persons. A level vector
sends each row to the places at its levels; equal rows are a group. Everything that a full-domain method asks is a sum
over groups, and a group at high levels is a union of groups at low ones: *rolling up* makes a smaller table that
answers every later question at or above its levels.

A group is *good* if it has at least k persons and satisfies what is asked beyond: only good ones are released. A union
of good groups is good, but a bad one can spoil it, so that raising a level may release less than before.

Cost: one pass over the table per vector and QI, and a sort of the packed places, or a count of them where they are few;
where more than k is asked, one look at the histograms of the groups of k persons.

Source: the frequency sets and their roll-up of Incognito (LeFevre, DeWitt and Ramakrishnan, 2005).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kanon_spark.kernels.guard import NOTHING, Guard
from kanon_spark.kernels.guarded_groups import good_groups, guard_of_groups
from kanon_spark.kernels.ladders import Ladders
from kanon_spark.kernels.problem import Problem

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]
LevelVector = tuple[int, ...]
Roll = tuple[tuple[int, ...], LevelVector]  # QIs, and the lowest level of each that will be asked for

_WIDEST = 1 << 62  # packed places stay below
_SHARED = 8  # vectors, and rows of a table, from which on rolling up first saves time
_SMALL = 512
_DENSE = 4  # places per row up to which counting beats sorting


@dataclass(frozen=True)
class Tally:
    """What a level vector would release.

    Attributes:
        rows: Rows in good groups.
        persons: Persons in such groups.
        groups: Groups in all.
        loss: Loss of those rows, in whole units (see `Scope.total_loss` for that of the table).
    """

    rows: int
    persons: int
    groups: int
    loss: int


@dataclass(frozen=True)
class Scope:
    """What is counted: some QIs of a table, from some levels upwards.

    Attributes:
        ladders: The levels of all QIs.
        qis: The QIs that are counted; level vectors have one entry for each.
        floor: The lowest level of each that can be asked for.
        k: Least persons in a group.
        rows: Rows of the whole table, also those that have left.
    """

    ladders: Ladders
    qis: tuple[int, ...]
    floor: LevelVector
    k: int
    rows: int

    @classmethod
    def whole(cls, ladders: Ladders, *, k: int, rows: int) -> "Scope":
        """All QIs, from their leaves on."""
        width = len(ladders.columns)
        return cls(ladders, tuple(range(width)), (0,) * width, k, rows)

    @property
    def heights(self) -> LevelVector:
        """The highest level of each QI."""
        return tuple(self.ladders.heights[j] for j in self.qis)

    def sizes(self, levels: Sequence[int]) -> list[int]:
        """How many places each QI has at these levels."""
        return [self.ladders.columns[j].size(level) for j, level in zip(self.qis, levels, strict=True)]

    def places(self, table: Ints, levels: Sequence[int]) -> Ints:
        """A table of places at the floor, lifted to these levels."""
        out = np.empty(table.shape, np.int32, order="F")
        for i, (j, low, high) in enumerate(zip(self.qis, self.floor, levels, strict=True)):
            out[:, i] = table[:, i] if low == high else self.ladders.columns[j].climb(low, high)[table[:, i]]
        return out

    def costs(self, places: Ints, levels: Sequence[int]) -> Longs:
        """Loss per row of each row of places, in whole units."""
        total = np.zeros(places.shape[0], np.int64)
        for i, (j, level) in enumerate(zip(self.qis, levels, strict=True)):
            total += self.ladders.columns[j].cost[level][places[:, i]]
        return total

    def total_loss(self, released: int, loss: int) -> int:
        """Loss of the whole table in whole units: so many rows are released at this loss, the others suppressed."""
        return loss + (self.rows - released) * self.ladders.suppressed

    def gcp(self, released: int, loss: int) -> float:
        """The same as a share of what suppressing all rows would cost."""
        return self.total_loss(released, loss) / max(1, self.rows * self.ladders.suppressed)

    def rolled(self, qis: Sequence[int], floor: LevelVector) -> "Scope":
        """Fewer QIs (by their place in this scope), higher levels."""
        return replace(self, qis=tuple(self.qis[i] for i in qis), floor=floor)


@dataclass(frozen=True)
class _Groups:
    """Groups in the order of their places: places, rows and persons of each, and the group of each row of the table."""

    places: Ints
    rows: Longs
    persons: Longs
    group_of: Longs


@dataclass(frozen=True)
class ArrayCounts:
    """Counts over arrays: places at the scope's floor, rows and persons of each; `guard` has a unit for each."""

    scope: Scope
    table: Ints
    table_rows: Longs
    table_persons: Longs
    guard: Guard = NOTHING

    @classmethod
    def of(cls, ladders: Ladders, problem: Problem) -> "ArrayCounts":
        """Counts over the signatures of a problem; what may not be published at all is not counted."""
        shown = ladders.open(problem.codes)
        scope = Scope.whole(ladders, k=problem.k, rows=int(problem.rows.sum()))
        guard = problem.guard if shown.all() else problem.guard.take(np.flatnonzero(shown))
        return cls(scope, problem.codes[shown], problem.rows[shown], problem.persons[shown], guard)

    @property
    def persons(self) -> int:
        """Persons that are counted."""
        return int(self.table_persons.sum())

    def tally(self, vectors: Sequence[LevelVector]) -> list[Tally]:
        """What each vector would release.

        Vectors that have something in common share the counting: the table is rolled up to the levels that all of them
        are above, then they are parted by their levels in one QI, and so on.
        """
        if len(vectors) < _SHARED or len(self.table) < _SMALL:
            return [self._tally(levels) for levels in vectors]
        asked = np.array(vectors)
        lowest: LevelVector = tuple(asked.min(axis=0).tolist())
        if lowest != self.scope.floor:
            return next(self.roll_up([(tuple(range(len(lowest))), lowest)]))._tally_parts(asked)
        return self._tally_parts(asked)

    def _tally_parts(self, asked: Longs) -> list[Tally]:
        """The same for vectors (by QIs) that this table is as high as; parted by the QI in which they differ most."""
        width = asked.max(axis=0) - asked.min(axis=0)
        apart = int(width.argmax())
        if width[apart] == 0:
            return [self._tally(tuple(levels)) for levels in asked.tolist()]
        upper = asked[:, apart] > asked[:, apart].min() + (width[apart] - 1) // 2
        out: list[Tally | None] = [None] * len(asked)
        for part in (~upper, upper):
            members = np.flatnonzero(part)
            for index, tally in zip(members, self.tally([tuple(one) for one in asked[members].tolist()]), strict=True):
                out[index] = tally
        return [tally for tally in out if tally is not None]

    def _tally(self, levels: LevelVector) -> Tally:
        groups = self._groups(levels)
        good = self._good(groups)
        rows = groups.rows[good]
        loss = (rows * self.scope.costs(groups.places[good], levels)).sum()
        return Tally(int(rows.sum()), int(groups.persons[good].sum()), len(groups.rows), int(loss))

    def by_k_alone(self) -> "ArrayCounts":
        """The same counts where any group of at least k persons is good."""
        return replace(self, guard=NOTHING)

    def roll_up(self, wanted: Sequence[Roll]) -> Iterator["ArrayCounts"]:
        """Counts over some of the QIs, from some levels upwards; one for each that is wanted, in turn."""
        for qis, floor in wanted:
            scope = self.scope.rolled(qis, tuple(self.scope.floor[i] for i in qis))
            some = replace(self, scope=scope, table=self.table[:, list(qis)])
            groups = some._groups(floor)
            guard = guard_of_groups(self.guard, groups.group_of, len(groups.rows))
            yield ArrayCounts(scope.rolled(range(len(qis)), floor), groups.places, groups.rows, groups.persons, guard)

    def without(self, levels: LevelVector) -> "ArrayCounts":
        """Counts of what is left when good groups have left, from these levels upwards."""
        groups = self._groups(levels)
        left = ~self._good(groups)
        scope = self.scope.rolled(range(len(levels)), levels)
        number = np.where(left, np.cumsum(left) - 1, -1)
        guard = guard_of_groups(self.guard, number[groups.group_of], int(left.sum()))
        return ArrayCounts(scope, groups.places[left], groups.rows[left], groups.persons[left], guard)

    def _good(self, groups: _Groups) -> Bools:
        """Which of the groups are released."""
        return good_groups(self.guard, groups.group_of, groups.persons >= self.scope.k)

    def _groups(self, levels: LevelVector) -> _Groups:
        places = self.scope.places(self.table, levels)
        group_of, first = number_groups(places, self.scope.sizes(levels))
        count = len(first)
        # Sums of whole numbers below 2^53 are exact in doubles.
        rows = np.bincount(group_of, self.table_rows, count).astype(np.int64)
        persons = np.bincount(group_of, self.table_persons, count).astype(np.int64)
        return _Groups(places[first], rows, persons, group_of)


def number_groups(places: Ints, sizes: Sequence[int]) -> tuple[Longs, Longs]:
    """Number of each row's group, and a row of each group; groups come in the order of their places.

    >>> group_of, first = number_groups(np.array([[1, 0], [0, 2], [1, 0]], np.int32), [2, 3])
    >>> group_of.tolist(), first.tolist()
    ([1, 0, 1], [1, 0])
    """
    count = places.shape[0]
    packed, span = np.zeros(count, np.int64), 1
    for j, size in enumerate(sizes):
        if span * size >= _WIDEST:
            kept, packed = np.unique(packed, return_inverse=True)
            span = len(kept)
        packed = packed * size + places[:, j]
        span *= size
    if span > _DENSE * count + 1024:
        _, first, group_of = np.unique(packed, return_index=True, return_inverse=True)
        return group_of.astype(np.int64), first.astype(np.int64)
    some = np.full(span, -1, np.int64)
    some[packed[::-1]] = np.arange(count - 1, -1, -1)
    held = np.flatnonzero(some >= 0)
    number = np.empty(span, np.int64)
    number[held] = np.arange(len(held))
    return number[packed], some[held]
