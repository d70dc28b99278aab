"""What a kernel solves: weighted signatures over pruned trees, as flat arrays.

Pruning ("prep"): leaves that the data does not hold are left out and the others renumbered; an inner node that holds the
same data leaves as its child is dropped, the child's (smaller) loss kept. What remains is every node that can be the
lowest common ancestor of some data, and nothing else. The pruned trees are a property of the whole table: every block
uses the same ones, or blocks would disagree about what crosses a cut.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kanon_spark.hierarchy.tree import Tree

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]


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
        start = [0]
        parent: list[int] = []
        lo: list[int] = []
        hi: list[int] = []
        loss: list[float] = []
        original: list[int] = []
        compact: list[Ints] = []
        kept_leaves: list[Ints] = []
        for tree, weight, mask in zip(trees, weights, present, strict=True):
            leaves = np.flatnonzero(mask).astype(np.int32)
            before = np.concatenate([[0], np.cumsum(mask)]).astype(np.int32)
            low, high = before[tree.lo], before[tree.hi]  # compact interval of every node
            base = start[-1]
            nodes = [int(x) for x in leaves]
            covered: dict[tuple[int, int], int] = {(i, i + 1): base + i for i in range(len(leaves))}
            for node in range(tree.leaves, tree.nodes):
                span = (int(low[node]), int(high[node]))
                if span[1] - span[0] >= 2 and span not in covered:
                    covered[span] = base + len(nodes)
                    nodes.append(node)
            ids = {node: base + i for i, node in enumerate(nodes)}
            for node in nodes:
                up = int(tree.parent[node])
                while up >= 0 and up not in ids:
                    up = int(tree.parent[up])
                parent.append(ids[up] if up >= 0 else -1)
            lo += [int(low[node]) for node in nodes]
            hi += [int(high[node]) for node in nodes]
            loss += [float(tree.loss[node]) * float(weight) for node in nodes]
            original += nodes
            start.append(base + len(nodes))
            lookup = np.full(tree.leaves, -1, dtype=np.int32)
            lookup[leaves] = np.arange(len(leaves), dtype=np.int32)
            compact.append(lookup)
            kept_leaves.append(leaves)
        return cls(
            start=np.array(start, dtype=np.int32),
            leaves=np.array([len(x) for x in kept_leaves], dtype=np.int32),
            parent=np.array(parent, dtype=np.int32),
            lo=np.array(lo, dtype=np.int32),
            hi=np.array(hi, dtype=np.int32),
            loss=np.array(loss),
            original=np.array(original, dtype=np.int32),
            compact=tuple(compact),
            present=tuple(kept_leaves),
        )

    def encode(self, codes: Ints) -> Ints:
        """Full leaf codes (rows × QIs) to compact ones."""
        out = np.empty(codes.shape, dtype=np.int32, order="F")
        for index, lookup in enumerate(self.compact):
            out[:, index] = lookup[codes[:, index]]
        return out


@dataclass(frozen=True)
class Problem:
    """Signatures to partition into classes of at least k persons, at the least row-weighted loss.

    Attributes:
        forest: The pruned trees.
        codes: Compact leaf codes, signatures × QIs, column-major, distinct rows.
        rows: Rows of each signature; they weigh the loss.
        persons: Persons of each signature; they count towards k.
        k: Least persons in a class.
    """

    forest: Forest
    codes: Ints
    rows: Longs
    persons: Longs
    k: int

    @property
    def size(self) -> int:
        """Number of signatures."""
        return int(self.codes.shape[0])
