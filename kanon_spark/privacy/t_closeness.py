"""t-closeness: the sensitive distribution of each class is within t of the release's, by the earth mover's distance.

    equal          all values are equally far apart: half the sum of |p - q|
    ordered        numbers and dates: two of the m values that occur lie |i - j| / (m - 1) apart
    hierarchical   two values lie as far apart as the level of their lowest common ancestor is high, over the height

Idea: none of them needs to look at values that the class does not hold.
- equal: what one value has too much, others have too little, so that the sum over values with p > q is enough.
- ordered: the distance is the area between the two cumulative distributions. Between two values that the class holds
  its own is flat and the release's rises, so that they cross at most once: one binary search and prefix sums per gap.
- hierarchical: the distance between two values is the number of levels on which they lie under different nodes. So the
  earth mover's distance is the mean, over the levels below the root, of the equal distance between the nodes' shares
  (the recursive formula of the paper gives the same), and only nodes above values of the class can have too much.

Null is a value like another: behind the largest one in the order, a leaf of its own under the root of a hierarchy.

Cost: for a class of s values in a domain of m: s; s · log m; s · height.
Source: Li, Li, Venkatasubramanian: t-Closeness (ICDE 2007).
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from kanon_spark.compiling import njit
from kanon_spark.privacy.base import EQUAL, HIERARCHICAL, ORDERED
from kanon_spark.privacy.columns import Column

_CODES = {"equal": EQUAL, "ordered": ORDERED, "hierarchical": HIERARCHICAL}


@dataclass(frozen=True)
class TCloseness:
    """A distance of at most t."""

    t: float
    distance: Literal["equal", "ordered", "hierarchical"] = "equal"
    union_safe: ClassVar[bool] = True  # the distance is convex, and a union's distribution lies between the two
    relative: ClassVar[bool] = True
    rank: ClassVar[float] = 0.0

    @property
    def code(self) -> int:
        """Which distance it is."""
        return _CODES[self.distance]

    @property
    def bound(self) -> float:
        """Largest distance."""
        return self.t

    @property
    def words(self) -> str:
        """What is asked."""
        return f"t-closeness (t = {self.t:g}, {self.distance} distance)"

    def refuse(self, column: Column) -> str | None:
        """Distances need an order or a hierarchy."""
        if self.distance == "ordered" and not column.ordered:
            return "the ordered distance needs a column of numbers or dates"
        if self.distance == "hierarchical" and column.levels is None:
            return "the hierarchical distance needs a hierarchy of the sensitive column"
        return None


@njit(cache=True)
def equal_distance(values, counts, share):  # type: ignore[no-untyped-def]
    """Half the sum of all |p - q|; `share` is the release's distribution, by code."""
    persons = counts.sum()
    if persons == 0:
        return np.inf
    moved = 0.0
    for i in range(len(values)):
        moved += max(0.0, counts[i] / persons - share[values[i]])
    return moved


@njit(cache=True)
def ordered_distance(values, counts, rank, level, area):  # type: ignore[no-untyped-def]
    """Area between the cumulative distributions, over m - 1.

    Args:
        values: Codes that the class holds, ascending.
        counts: Persons of each.
        rank: Place of each code among the values that occur.
        level: The release's cumulative share, by place.
        area: area[r] is the sum of `level` over the places before r; one more than there are places.
    """
    persons = counts.sum()
    places = len(level)
    if persons == 0:
        return np.inf
    if places < 2:
        return 0.0
    total = 0.0
    below = 0  # persons of the class so far
    place = 0
    for i in range(len(values) + 1):
        following = rank[values[i]] if i < len(values) else places
        height = below / persons
        # From `place` on the class stays at this height; the release passes it at `cross`.
        cross = place + np.searchsorted(level[place:following], height)
        total += height * (cross - place) - (area[cross] - area[place])
        total += (area[following] - area[cross]) - height * (following - cross)
        place = following
        if i < len(values):
            below += counts[i]
    return max(0.0, total) / (places - 1)


@njit(cache=True)
def hierarchical_distance(values, counts, node, share, height):  # type: ignore[no-untyped-def]
    """Mean over the levels of what nodes have too much.

    Args:
        values: Codes that the class holds, ascending: those under one node stand together.
        counts: Persons of each.
        node: node[l * domain + x] is the node of value x at level l, for the levels below the root.
        share: The release's share of each node.
        height: Levels below the root.
    """
    persons = counts.sum()
    if persons == 0:
        return np.inf
    if height == 0:
        return 0.0
    domain = len(node) // height
    moved = 0.0
    for level in range(height):
        base = level * domain
        i = 0
        while i < len(values):
            here = node[base + values[i]]
            mine = 0
            while i < len(values) and node[base + values[i]] == here:
                mine += counts[i]
                i += 1
            moved += max(0.0, mine / persons - share[here])
    return moved / height
