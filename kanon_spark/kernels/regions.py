"""Regions of a table, cut from the top down by counts of the values they hold.

Idea: `mondrian` and `kactus` cut a region in two or more by one QI, and what they need to choose the cut are marginal
counts alone: how many persons and rows (and rows of each class label) carry each value of each QI in the region. So
the same choice can be made from counts of one process's arrays (`grow_here`) and from counts that a cluster has made
(`grow`, level by level), and both ways cut alike.

Both marginals and cuts are sparse: they speak of the values that a region holds, never of the whole domain, since
small regions are many and a domain may have a million values. A cut divides the order of a QI's codes at thresholds;
that is enough for all cuts there are: a node's children, a single value and null (the last code) are all stretches of
that order.

Where classes must satisfy more than k, a cut may be judged by what its children hold: a region also tells, for a QI
that somebody asks about, the histogram of sensitive values of each value. A child is a stretch of values, so its
histogram is the exact sum of theirs.

Cost: a region's marginals take one look at each code of its signatures, and sorting the distinct ones; all regions of
a depth together one pass over the table. Histograms are put together only for the QIs that are asked for.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.kernels.guard import Guard
from kanon_spark.kernels.guarded_groups import histograms_by_unit
from kanon_spark.kernels.problem import Problem
from kanon_spark.privacy.histograms import Histograms

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

# The cuts on the way to a region: the QI of each, and whether it divided stretches of the QI's order (a threshold)
# instead of telling values or groups of values apart.
Path = tuple[tuple[int, bool], ...]


@dataclass(frozen=True)
class Marginals:
    """What a region holds, by the values of each QI: one entry for each value (compact code) that it holds.

    All arrays have one element per entry. The entries of QI j are `start[j]` … `start[j+1]-1`, in the order of codes.

    Attributes:
        start: Where the entries of each QI begin; one more than there are QIs.
        codes: The values.
        signatures: Signatures that carry the value.
        persons: Persons; may be 0, where all of them count elsewhere.
        rows: Rows.
        labels: Rows of each class label, entries by labels; no columns where the method knows no label.
        sensitive: Gives the histograms of a QI's entries, one unit for each; None where nothing is asked beyond k.
    """

    start: Longs
    codes: Ints
    signatures: Longs
    persons: Longs
    rows: Longs
    labels: Longs
    sensitive: Callable[[int], Histograms] | None = None

    def entries(self, qi: int) -> slice:
        """The entries of a QI, to slice any of the arrays by."""
        return slice(int(self.start[qi]), int(self.start[qi + 1]))

    def present(self, qi: int) -> Ints:
        """The codes of a QI that the region holds, in their order."""
        return self.codes[self.entries(qi)]

    @cached_property
    def all_signatures(self) -> int:
        """Signatures of the region."""
        return int(self.signatures[self.entries(0)].sum())

    @cached_property
    def all_persons(self) -> int:
        """Persons of the region."""
        return int(self.persons[self.entries(0)].sum())

    @cached_property
    def all_rows(self) -> int:
        """Rows of the region."""
        return int(self.rows[self.entries(0)].sum())


@dataclass(frozen=True, slots=True)
class Cut:
    """One cut of a region; every child must hold something of it.

    Attributes:
        qi: The QI that is divided.
        bounds: The least code of each child but the first: child c holds the codes from bounds[c-1] to below bounds[c].
            To give each value a child of its own: `marginals.present(qi)[1:]`.
        ordered: Whether the children are stretches of the QI's order, divided by thresholds.
    """

    qi: int
    bounds: Ints
    ordered: bool

    @property
    def children(self) -> int:
        """How many children there are."""
        return len(self.bounds) + 1

    def side(self, codes: Ints) -> Longs:
        """The child that holds each of these codes of the QI."""
        return np.searchsorted(self.bounds, codes, side="right")

    def sums(self, marginals: Marginals, values: Longs) -> Longs:
        """Sums of entries (persons, rows, …; one value per entry, or a row of them) over each child."""
        held = marginals.entries(self.qi)
        first = np.searchsorted(marginals.codes[held], self.bounds)
        return np.add.reduceat(values[held], np.concatenate([[0], first]), axis=0)


Choose = Callable[[Marginals, Path], Cut | None]


@dataclass(frozen=True, slots=True)
class Division:
    """A cut with the sizes of its children.

    Attributes:
        cut: The cut.
        signatures: Signatures of each child.
        persons: Persons of each child.
    """

    cut: Cut
    signatures: tuple[int, ...]
    persons: tuple[int, ...]

    @classmethod
    def of(cls, cut: Cut, marginals: Marginals) -> "Division":
        """A cut of a region that holds these marginals."""
        signatures, persons = (cut.sums(marginals, each).tolist() for each in (marginals.signatures, marginals.persons))
        return cls(cut, tuple(signatures), tuple(persons))


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a region: how many persons it holds, and how it is divided; None leaves it whole."""

    persons: int
    division: Division | None

    @classmethod
    def by(cls, choose: Choose, marginals: Marginals, path: Path) -> "Decision":
        """What a method makes of a region with these marginals."""
        cut = choose(marginals, path)
        return cls(marginals.all_persons, None if cut is None else Division.of(cut, marginals))


Decide = Callable[["Regions", Sequence[int]], Mapping[int, Decision]]


@dataclass(slots=True)
class Region:
    """A node of the tree of cuts; without a cut it is a leaf, and may be cut further by whoever holds its rows."""

    parent: int = -1
    cut: Cut | None = None
    children: tuple[int, ...] = ()
    path: Path = ()
    signatures: int = 0
    persons: int = 0
    final: bool = False  # no cut was found: nobody needs to look for one again


@dataclass
class Regions:
    """The tree of cuts; region 0 is the whole table. Parents have smaller numbers than their children."""

    nodes: list[Region] = field(default_factory=lambda: [Region()])

    def __getitem__(self, region: int) -> Region:
        return self.nodes[region]

    @property
    def leaves(self) -> list[int]:
        """The regions that are not cut, in the order of the cuts: what was divided last stands together."""
        found: list[int] = []
        todo = [0]
        while todo:
            region = todo.pop()
            node = self.nodes[region]
            if node.cut is None:
                found.append(region)
            todo.extend(reversed(node.children))
        return found

    def divide(self, region: int, division: Division) -> tuple[int, ...]:
        """Cut a region; the numbers of its children, in the order of the cut's sides."""
        node = self.nodes[region]
        first = len(self.nodes)
        path = (*node.path, (division.cut.qi, division.cut.ordered))
        for signatures, persons in zip(division.signatures, division.persons, strict=True):
            self.nodes.append(Region(region, path=path, signatures=signatures, persons=persons))
        node.cut, node.children = division.cut, tuple(range(first, len(self.nodes)))
        return node.children

    def assign(self, codes: Ints) -> Ints:
        """The leaf that each signature lies in (compact codes, signatures by QIs)."""
        out = np.zeros(codes.shape[0], np.int32)
        todo = [(0, np.arange(codes.shape[0]))]
        while todo:
            region, members = todo.pop()
            node = self.nodes[region]
            if node.cut is None:
                out[members] = region
                continue
            side = node.cut.side(codes[members, node.cut.qi])
            for child in np.unique(side):
                todo.append((node.children[child], members[side == child]))
        return out


class Counter:
    """Counts the marginals of any signatures of a problem; it keeps its tables from one count to the next."""

    def __init__(self, problem: Problem) -> None:
        leaves = problem.forest.leaves.astype(np.int64)
        none = np.zeros((problem.size, 0), np.int64)
        self._base = np.concatenate([[0], np.cumsum(leaves)]).astype(np.int64)
        self._codes = np.ascontiguousarray(problem.codes)
        self._persons, self._rows = problem.persons, problem.rows
        self._labels = none if problem.labels is None else np.ascontiguousarray(problem.labels)
        # One line per value of any QI: signatures, persons, rows, and the rows of each label. All 0 between counts.
        self._table = np.zeros((int(self._base[-1]), 3 + self._labels.shape[1]), np.int64)
        self._guard = problem.guard if problem.guard.asks else None

    def count(self, members: Longs) -> Marginals:
        """Marginals of the named signatures."""
        start, codes, tally = _count(
            self._base, self._codes, self._persons, self._rows, self._labels, members, self._table
        )
        sensitive = None if self._guard is None else partial(self._histograms, self._guard, members)
        return Marginals(start, codes, tally[:, 0], tally[:, 1], tally[:, 2], tally[:, 3:], sensitive)

    def _histograms(self, guard: Guard, members: Longs, qi: int) -> Histograms:
        """Histograms of the values of a QI among some signatures, in the order of codes."""
        held, unit_of = np.unique(self._codes[members, qi], return_inverse=True)
        return histograms_by_unit(guard, members, unit_of, len(held))


@njit(cache=True)
def _count(base, codes, persons, rows, labels, members, table):  # type: ignore[no-untyped-def]
    width = len(base) - 1
    touched = np.empty(min(len(table), len(members) * width), np.int64)
    entries = 0
    for s in members:
        for j in range(width):
            line = base[j] + codes[s, j]
            if table[line, 0] == 0:
                touched[entries] = line
                entries += 1
            table[line, 0] += 1
            table[line, 1] += persons[s]
            table[line, 2] += rows[s]
            for c in range(labels.shape[1]):
                table[line, 3 + c] += labels[s, c]
    lines = np.sort(touched[:entries])  # by QI, then by code
    start = np.searchsorted(lines, base)
    found = np.empty(entries, np.int32)
    tally = np.empty((entries, table.shape[1]), np.int64)
    for j in range(width):
        for i in range(start[j], start[j + 1]):
            found[i] = lines[i] - base[j]
            tally[i] = table[lines[i]]
            table[lines[i]] = 0
    return start, found, tally


def count_marginals(problem: Problem, members: Longs | None = None) -> Marginals:
    """Marginals of some signatures of a problem (all of them, if none are named)."""
    return Counter(problem).count(np.arange(problem.size) if members is None else members)


def grow(
    count: Callable[[Regions, Sequence[int]], Mapping[int, Marginals]],
    choose: Choose,
    *,
    signatures: int,
    block_size: int,
) -> Regions:
    """Cut level by level from counts that somebody else makes.

    Args:
        count: Marginals of the named leaves of the tree so far.
        choose: The method's choice; None leaves the region whole.
        signatures: How many there are in all.
        block_size: Regions of at most so many are left to whoever can hold their signatures; they are not counted.
    """

    def decide(regions: Regions, wanted: Sequence[int]) -> Mapping[int, Decision]:
        found = count(regions, wanted)
        return {region: Decision.by(choose, found[region], regions[region].path) for region in wanted}

    return grow_by(decide, signatures=signatures, block_size=block_size)


def grow_by(decide: Decide, *, signatures: int, block_size: int) -> Regions:
    """The same where somebody else also chooses: what becomes of the named leaves of the tree so far."""
    regions = Regions([Region(signatures=signatures)])
    todo = [0] if signatures > block_size else []
    while todo:
        found = decide(regions, todo)
        deeper: list[int] = []
        for region in todo:
            node, decision = regions[region], found[region]
            node.persons = decision.persons
            if decision.division is None:
                node.final = True
            else:
                deeper.extend(regions.divide(region, decision.division))
        todo = [region for region in deeper if regions[region].signatures > block_size]
    return regions


def grow_here(problem: Problem, choose: Choose, *, path: Path = ()) -> tuple[Regions, Ints]:
    """Cut to the end in one process, below a region that was reached by `path`; the leaf of each signature."""
    regions = Regions([Region(path=path, signatures=problem.size, persons=int(problem.persons.sum()))])
    counter = Counter(problem)
    leaf_of = np.zeros(problem.size, np.int32)
    todo = [(0, np.arange(problem.size, dtype=np.int64))]
    while todo:
        region, members = todo.pop()
        node, marginals = regions[region], counter.count(members)
        cut = choose(marginals, node.path)
        if cut is None:
            node.final = True
            leaf_of[members] = region
            continue
        side = cut.side(problem.codes[members, cut.qi])
        for number, child in enumerate(regions.divide(region, Division.of(cut, marginals))):
            todo.append((child, members[side == number]))
    return regions, leaf_of
