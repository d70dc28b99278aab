"""A generalization hierarchy as arrays.

Leaves are numbered so that every node covers a run of consecutive leaf codes (preorder). Node ids: leaf codes come
first (`0 … leaves-1`, so a leaf code is its own node id), inner nodes follow bottom-up, the root is last:
`parent[v] > v` for every node but the root. That makes "is v an ancestor of leaf x" two comparisons, and climbing a
loop over one array.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]

# What a QI's values are; decides how they are ordered, measured and published.
Kind = Literal["text", "integer", "real", "date", "timestamp", "boolean"]
ORDERED: frozenset[str] = frozenset({"integer", "real", "date", "timestamp"})


@dataclass(frozen=True)
class Domain:
    """What the data holds in one QI, in code order: entry i is leaf code i of the tree built over it.

    `texts` are Spark's own string casts, so that what is published reads as Spark would print it. `positions` are the
    number itself, days since 1970-01-01 for dates, seconds since then for timestamps, NaN for text and boolean.
    With `min_level` above 0 the entries are the representatives of that level (see `hierarchy/README.md`).
    """

    kind: Kind
    texts: tuple[str, ...]
    positions: Floats
    counts: NDArray[np.int64]
    has_null: bool = False

    @property
    def span(self) -> float:
        """The domain range: largest minus smallest position (0 for text)."""
        known = self.positions[np.isfinite(self.positions)]  # one infinite value must not make all ranges free
        return float(known.max() - known.min()) if len(known) else 0.0


@dataclass(frozen=True)
class Tree:
    """One QI's hierarchy.

    Attributes:
        labels: What is published for each node; None for the null leaf.
        parent: Parent of each node, -1 for the root (the last node).
        lo, hi: Node v covers the leaf codes lo[v] … hi[v]-1.
        loss: NCP of publishing the node: 0 for a leaf (more where `min_level` made it a group, 1 for the unknown leaf),
            infinite above `max_level`. Never falls on the way up.
        width: Interval width of each node of an ordered QI (NaN at the root and the unknown leaf, which cost 1); None
            for categorical trees. Loss is then width over the domain range, capped at 1.
        levels: levels[l, x] is leaf x's node at level l; levels[0] are the leaves, the last row is the root. Where a
            path is shorter than the tree is high, one node stands at several levels.
        null_leaf: Code of the null leaf, -1 if there is none. It is the last leaf, a child of the root.
        unknown_leaf: Code of the leaf that stands for values the hierarchy misses (`unknown: root`), -1 if none.
        max_level: Highest row of `levels` that may be published, None if all may (row 0 is the `min_level`).
    """

    labels: tuple[str | None, ...]
    parent: Ints
    lo: Ints
    hi: Ints
    loss: Floats
    levels: Ints
    width: Floats | None = None
    null_leaf: int = -1
    unknown_leaf: int = -1
    max_level: int | None = None

    @property
    def leaves(self) -> int:
        """Number of leaves, the null and unknown leaf included."""
        return int(self.levels.shape[1])

    @property
    def nodes(self) -> int:
        """Number of nodes, leaves included."""
        return len(self.parent)

    @property
    def root(self) -> int:
        """Id of the root."""
        return self.nodes - 1

    @property
    def height(self) -> int:
        """Levels above the leaves."""
        return int(self.levels.shape[0]) - 1

    def lca(self, left: Ints, right: Ints) -> Ints:
        """Lowest common ancestor of two arrays of nodes, element by element.

        >>> flat = Tree.flat(["a", "b"])
        >>> flat.lca(np.array([0, 0], np.int32), np.array([0, 1], np.int32)).tolist()
        [0, 2]
        """
        first = np.array(left, dtype=np.int32)
        second = np.asarray(right)
        low, high = self.lo[second], self.hi[second]
        while True:
            # An only child covers the leaves of its parent; ids grow upwards, so `<` tells which of the two is meant.
            outside = (self.lo[first] > low) | (self.hi[first] < high) | (first < second)
            if not outside.any():
                return first
            first[outside] = self.parent[first[outside]]

    def lowest_levels(self) -> Ints:
        """The lowest level at which each node stands.

        >>> Tree.flat(["a", "b"]).lowest_levels().tolist()
        [0, 0, 1]
        """
        lowest = np.full(self.nodes, self.height, dtype=np.int32)
        for level in range(self.height, -1, -1):
            lowest[self.levels[level]] = level
        return lowest

    def covering(self, smallest: Ints, largest: Ints) -> Ints:
        """Lowest node that covers the leaf codes from smallest to largest, element by element."""
        return self.lca(smallest, largest)

    def with_span(self, span: float) -> "Tree":
        """The same tree with losses taken over this domain range (ordered QIs only; others return themselves)."""
        if self.width is None:
            return self
        measured = ~np.isnan(self.width) & np.isfinite(self.loss)
        width = self.width[measured]
        loss = self.loss.copy()
        loss[measured] = np.minimum(1.0, width / span) if span > 0 else np.where(width > 0, 1.0, 0.0)
        return replace(self, loss=loss)

    @staticmethod
    def flat(texts: Sequence[str | None], root: str = "*") -> "Tree":
        """Leaves under one root that costs 1."""
        count = len(texts)
        parent = np.full(count + 1, count, dtype=np.int32)
        parent[count] = -1
        codes = np.arange(count, dtype=np.int32)
        return Tree(
            labels=(*texts, root),
            parent=parent,
            lo=np.append(codes, np.int32(0)).astype(np.int32),
            hi=np.append(codes + 1, np.int32(count)).astype(np.int32),
            loss=np.append(np.zeros(count), 1.0),
            levels=np.vstack([codes, np.full(count, count, dtype=np.int32)]).astype(np.int32),
        )
