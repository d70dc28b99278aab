"""What a kernel solves: weighted signatures over pruned trees, as flat arrays.

Pruning ("prep"): leaves that the data does not hold are left out and the others renumbered; an inner node that holds
the same data leaves as its child is dropped, the child's (smaller) loss kept. What remains is every node that can be
the lowest common ancestor of some data, and nothing else. The pruned trees are a property of the whole table: every
block uses the same ones, or blocks would disagree about what crosses a cut.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kanon_spark.hierarchy.tree import Tree
from kanon_spark.kernels.guard import NOTHING, Guard
from kanon_spark.kernels.measure import Measure

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

OWN = -1  # in the nodes that a method chooses to publish: what the class's own values give


@dataclass(frozen=True)
class Forest:
    """The pruned trees of all QIs in flat arrays; node ids are global, QI j owns start[j] … start[j+1]-1.

    Within a QI the leaves come first: leaf code x (compact) is node start[j]+x. Parents have larger ids than children,
    the QI's root is start[j+1]-1. `loss` is already multiplied by the QI's weight, and strictly positive losses never
    fall on the way up. A loss of infinity marks a node that must not be published.
    """

    start: Ints  # d+1
    leaves: Ints  # d: number of compact leaves
    parent: Ints  # global ids, -1 at roots
    lo: Ints  # compact leaf codes, half-open
    hi: Ints
    loss: Floats
    original: Ints  # node id in the full tree
    compact: tuple[Ints, ...]  # per QI: full leaf code -> compact code, -1 if absent
    present: tuple[Ints, ...]  # per QI: compact code -> full leaf code

    @property
    def width(self) -> int:
        """Number of QIs."""
        return len(self.leaves)

    @classmethod
    def of(cls, trees: Sequence[Tree], weights: Floats, present: Sequence[NDArray[np.bool_]]) -> "Forest":
        """Prune each tree to the leaves marked present."""
        pruned = [_prune(tree, mask) for tree, mask in zip(trees, present, strict=True)]
        start = np.concatenate([[0], np.cumsum([len(one.original) for one in pruned])]).astype(np.int32)
        losses = [tree.loss[one.original] * weight for tree, one, weight in zip(trees, pruned, weights, strict=True)]
        parents = [np.where(one.parent < 0, -1, one.parent + base) for one, base in zip(pruned, start, strict=False)]
        return cls(
            start=start,
            leaves=np.array([len(one.leaves) for one in pruned], dtype=np.int32),
            parent=np.concatenate(parents).astype(np.int32),
            lo=np.concatenate([one.lo for one in pruned]),
            hi=np.concatenate([one.hi for one in pruned]),
            loss=np.concatenate(losses),
            original=np.concatenate([one.original for one in pruned]),
            compact=tuple(one.compact for one in pruned),
            present=tuple(one.leaves for one in pruned),
        )

    @cached_property
    def highest(self) -> Ints:
        """For each node its highest ancestor that may be published; itself where none may."""
        top = np.arange(len(self.parent), dtype=np.int32)
        while True:
            above = self.parent[top]
            rises = (above >= 0) & np.isfinite(self.loss[np.maximum(above, 0)])
            if not rises.any():
                return top
            top = np.where(rises, above, top).astype(np.int32)

    def encode(self, codes: Ints) -> Ints:
        """Full leaf codes (rows by QIs) to compact ones."""
        out = np.empty(codes.shape, dtype=np.int32, order="F")
        for index, lookup in enumerate(self.compact):
            out[:, index] = lookup[codes[:, index]]
        return out


class _Pruned(NamedTuple):
    """One pruned tree; ids are its own."""

    leaves: Ints
    compact: Ints
    original: Ints
    parent: Ints
    lo: Ints
    hi: Ints


def _prune(tree: Tree, mask: NDArray[np.bool_]) -> _Pruned:
    leaves = np.flatnonzero(mask).astype(np.int32)
    before = np.concatenate([[0], np.cumsum(mask)]).astype(np.int64)
    low, high = before[tree.lo], before[tree.hi]  # compact interval of every node
    # Of the inner nodes with the same data leaves, the lowest (which has the smallest id) stays.
    inner = np.arange(tree.leaves, tree.nodes)
    inner = inner[high[inner] - low[inner] >= 2]
    _, first = np.unique(low[inner] * (len(leaves) + 1) + high[inner], return_index=True)
    kept = np.concatenate([leaves, np.sort(inner[first])]).astype(np.int32)
    new_id = np.full(tree.nodes, -1, dtype=np.int32)
    new_id[kept] = np.arange(len(kept), dtype=np.int32)
    above = tree.parent[kept]
    while (dropped := (above >= 0) & (new_id[above] < 0)).any():
        above[dropped] = tree.parent[above[dropped]]
    compact = np.full(tree.leaves, -1, dtype=np.int32)
    compact[leaves] = np.arange(len(leaves), dtype=np.int32)
    return _Pruned(
        leaves,
        compact,
        kept,
        np.where(above < 0, -1, new_id[above]).astype(np.int32),
        low[kept].astype(np.int32),
        high[kept].astype(np.int32),
    )


@dataclass(frozen=True)
class Problem:
    """Signatures to partition into classes of at least k persons, at the least row-weighted loss.

    Attributes:
        forest: The pruned trees.
        codes: Compact leaf codes, signatures by QIs, column-major, distinct rows.
        rows: Rows of each signature; they weigh the loss.
        persons: Persons of each signature; they count towards k.
        k: Least persons in a class.
        measure: How each QI is measured by methods that know ranges and sets; None: every QI by its tree.
        labels: Rows of each class label, signatures by labels, where a method guards labels.
        guard: What classes must satisfy beyond k.
    """

    forest: Forest
    codes: Ints
    rows: Longs
    persons: Longs
    k: int
    measure: Measure | None = None
    labels: Longs | None = None
    guard: Guard = NOTHING

    @property
    def size(self) -> int:
        """Number of signatures."""
        return int(self.codes.shape[0])

    def part(self, index: NDArray[np.integer], guard: Guard) -> "Problem":
        """The problem of some of the signatures, in the given order, under a guard of their own."""
        labels = None if self.labels is None else self.labels[index]
        codes = np.asfortranarray(self.codes[index])
        return replace(
            self, codes=codes, rows=self.rows[index], persons=self.persons[index], labels=labels, guard=guard
        )
