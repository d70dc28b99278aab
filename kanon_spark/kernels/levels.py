"""Distances between signatures by the levels of their hierarchies (HDist), in whole numbers.

Two values of a QI of height H are 2·l/H apart, l the lowest level at which both have the same ancestor; the distance of
two signatures is the sum over the QIs. Whole numbers keep ties exact: one level of a QI weighs lcm(heights)/H, and the
distance of the definition is twice the weight over the lcm.

Source: Graph based local recoding (the paper behind `mst`). A QI without a hierarchy takes part by the levels of its
search tree; a flat one is at distance 0 or 2, like any other root.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.hierarchy.tree import Tree

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


@dataclass(frozen=True)
class Levels:
    """The levels of all QIs over the leaves that the data holds.

    Attributes:
        up: Ancestors as small numbers, one after the other: level l of QI j starts at begin[j, l] and has one entry per
            compact leaf code; equal entries mean the same ancestor.
        begin: QIs by levels.
        sizes: Ancestors of each QI at each level, QIs by levels.
        height: Levels above the leaves of each QI.
        unit: Weight of one level of each QI.
        scale: The lcm of the heights.
    """

    up: Ints
    begin: Longs
    sizes: Longs
    height: Ints
    unit: Longs
    scale: int

    @classmethod
    def of(cls, trees: Sequence[Tree], present: Sequence[Ints]) -> "Levels":
        """Levels of each tree over its present leaf codes (compact code → full code)."""
        parts: list[Ints] = []
        heights = []
        begin = np.zeros((len(trees), max((tree.height for tree in trees), default=0) + 1), np.int64)
        sizes = np.ones_like(begin)
        used = 0
        for index, (tree, codes) in enumerate(zip(trees, present, strict=True)):
            heights.append(tree.height)
            for level in range(tree.height + 1):
                _, small = np.unique(tree.levels[level, codes], return_inverse=True)
                begin[index, level] = used
                sizes[index, level] = int(small.max(initial=0)) + 1
                parts.append(small.astype(np.int32))
                used += len(codes)
        scale = lcm(*[height for height in heights if height > 0]) if any(heights) else 1
        unit = np.array([scale // height if height > 0 else 0 for height in heights], np.int64)
        up = np.concatenate(parts) if parts else np.zeros(0, np.int32)
        return cls(up, begin, sizes, np.array(heights, np.int32), unit, scale)

    def hdist(self, weight: NDArray[np.int64] | int) -> NDArray[np.float64]:
        """The paper's distance of a weight.

        >>> flat = Levels.of([Tree.flat(["a", "b"])], [np.array([0, 1], np.int32)])
        >>> float(flat.hdist(1))
        2.0
        """
        return 2.0 * np.asarray(weight, np.float64) / self.scale


@njit(cache=True)
def weight_between(codes, a, b, up, begin, height, unit, limit):  # type: ignore[no-untyped-def]
    """Distance of two signatures, or anything above `limit` if it is above."""
    total = 0
    for j in range(codes.shape[1]):
        x, y = codes[a, j], codes[b, j]
        if x != y:
            level = 1
            while level < height[j] and up[begin[j, level] + x] != up[begin[j, level] + y]:
                level += 1
            total += level * unit[j]
            if total > limit:
                return total
    return total
