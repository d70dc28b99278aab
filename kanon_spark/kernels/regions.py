"""Regions of a table, cut from the top down by counts of the values they hold.

Idea: `mondrian` and `kactus` cut a region in two or more by one QI, and what they need to choose the cut are marginal
counts alone: how many persons and rows (and rows of each class label) carry each value of each QI in the region. So
the same choice can be made from counts of one process's arrays (`grow_here`) and from counts that a cluster has made
(`grow`, level by level), and both ways cut alike.

Cost: a region's marginals take one pass over its signatures per QI; all regions of a depth together one pass over the
table.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kanon_spark.kernels.problem import Problem

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

ABSENT = -1  # side of a value that the region does not hold
# The cuts on the way to a region: the QI of each, and whether it divided stretches of the QI's order (a threshold)
# instead of telling values or groups of values apart.
Path = tuple[tuple[int, bool], ...]


@dataclass(frozen=True)
class Marginals:
    """What a region holds, by the values of each QI (compact codes).

    Attributes:
        signatures: How many signatures.
        persons: Per QI, persons by code.
        rows: Per QI, rows by code; a value is present where it has rows (or counts elsewhere and weighs no person).
        labels: Per QI, rows by code and class label; empty where the method knows no label.
    """

    signatures: int
    persons: tuple[Longs, ...]
    rows: tuple[Longs, ...]
    labels: tuple[Longs, ...] = ()

    @property
    def all_persons(self) -> int:
        """Persons of the region."""
        return int(self.persons[0].sum())

    @property
    def all_rows(self) -> int:
        """Rows of the region."""
        return int(self.rows[0].sum())

    def present(self, qi: int) -> Longs:
        """The codes of a QI that the region holds, in their order."""
        return np.flatnonzero(self.rows[qi])


@dataclass(frozen=True)
class Cut:
    """One cut of a region.

    Attributes:
        qi: The QI that is divided.
        side: Child of each compact code, numbered from 0 on; ABSENT for codes that the region does not hold.
        ordered: Whether the children are stretches of the QI's order, divided by thresholds.
    """

    qi: int
    side: Ints
    ordered: bool

    @property
    def children(self) -> int:
        """How many children there are."""
        return int(self.side.max()) + 1


Choose = Callable[[Marginals, Path], Cut | None]


@dataclass
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
    """The tree of cuts; region 0 is the whole table."""

    nodes: list[Region] = field(default_factory=lambda: [Region()])

    def __getitem__(self, region: int) -> Region:
        return self.nodes[region]

    @property
    def leaves(self) -> list[int]:
        """The regions that are not cut."""
        return [index for index, node in enumerate(self.nodes) if node.cut is None]

    def divide(self, region: int, cut: Cut) -> tuple[int, ...]:
        """Cut a region; the numbers of its children, in the order of the cut's sides."""
        node = self.nodes[region]
        first = len(self.nodes)
        path = (*node.path, (cut.qi, cut.ordered))
        self.nodes.extend(Region(parent=region, path=path) for _ in range(cut.children))
        node.cut, node.children = cut, tuple(range(first, first + cut.children))
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
            side = node.cut.side[codes[members, node.cut.qi]]
            for child in np.unique(side):
                todo.append((node.children[child], members[side == child]))
        return out


def count_marginals(problem: Problem, members: Longs | None = None) -> Marginals:
    """Marginals of some signatures of a problem (all of them, if none are named)."""
    codes = problem.codes if members is None else problem.codes[members]
    persons = problem.persons if members is None else problem.persons[members]
    rows = problem.rows if members is None else problem.rows[members]
    labels = problem.labels if members is None or problem.labels is None else problem.labels[members]
    leaves = [int(count) for count in problem.forest.leaves]
    return Marginals(
        signatures=codes.shape[0],
        persons=tuple(_sums(codes[:, j], persons, leaves[j]) for j in range(len(leaves))),
        rows=tuple(_sums(codes[:, j], rows, leaves[j]) for j in range(len(leaves))),
        labels=()
        if labels is None
        else tuple(
            np.stack([_sums(codes[:, j], labels[:, c], leaves[j]) for c in range(labels.shape[1])], axis=1)
            for j in range(len(leaves))
        ),
    )


def _sums(codes: Ints, weights: Longs, leaves: int) -> Longs:
    # Sums of whole numbers below 2^53 are exact in doubles.
    return np.bincount(codes, weights=weights, minlength=leaves).astype(np.int64)


def grow(
    count: Callable[[Regions, Sequence[int]], Mapping[int, Marginals]],
    choose: Choose,
    *,
    small: Callable[[Marginals], bool],
) -> Regions:
    """Cut level by level from counts that somebody else makes.

    Args:
        count: Marginals of the named leaves of the tree so far.
        choose: The method's choice; None leaves the region whole.
        small: Whether a region is left to whoever can hold its signatures.
    """
    regions = Regions()
    todo: list[int] = [0]
    while todo:
        found = count(regions, todo)
        deeper: list[int] = []
        for region in todo:
            node, marginals = regions[region], found[region]
            node.signatures, node.persons = marginals.signatures, marginals.all_persons
            if small(marginals):
                continue
            cut = choose(marginals, node.path)
            if cut is None:
                node.final = True
            else:
                deeper.extend(regions.divide(region, cut))
        todo = deeper
    return regions


def grow_here(problem: Problem, choose: Choose, *, path: Path = ()) -> tuple[Regions, Ints]:
    """Cut to the end in one process, below a region that was reached by `path`; the leaf of each signature."""
    regions = Regions([Region(path=path)])
    leaf_of = np.zeros(problem.size, np.int32)
    todo = [(0, np.arange(problem.size, dtype=np.int64))]
    while todo:
        region, members = todo.pop()
        node, marginals = regions[region], count_marginals(problem, members)
        node.signatures, node.persons = marginals.signatures, marginals.all_persons
        cut = choose(marginals, node.path)
        if cut is None:
            node.final = True
            leaf_of[members] = region
            continue
        side = cut.side[problem.codes[members, cut.qi]]
        for number, child in enumerate(regions.divide(region, cut)):
            todo.append((child, members[side == number]))
    return regions, leaf_of
