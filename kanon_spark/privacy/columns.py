"""A sensitive column as the models see it: codes instead of values, and how many persons carry each."""

from dataclasses import dataclass

import numpy as np

from kanon_spark.hierarchy.tree import Tree
from kanon_spark.privacy.base import Floats, Ints, Longs


@dataclass(frozen=True)
class Column:
    """One sensitive column of a release.

    Attributes:
        name: Its name.
        counts: Persons that carry each value, by code: the distribution of what is released. A value of the domain
            that is not released counts 0, and is then no value of the release.
        null: Code of null, -1 if there is none. In an ordered column it is the largest code.
        ordered: The codes follow the order of the values (numbers, dates), so that they can be far apart.
        levels: levels[l, x] is the node of value x at level l of its hierarchy (`Tree.levels`); values under one node
            have consecutive codes. None where there is no hierarchy.
        amounts: The k that each value asks for, where the column says each person's own k.
        people: Distinct persons that carry each value, where `counts` counts some of them several times.
    """

    name: str
    counts: Longs
    null: int = -1
    ordered: bool = False
    levels: Ints | None = None
    amounts: Longs | None = None
    people: Longs | None = None

    @classmethod
    def under(cls, tree: Tree, name: str, counts: Longs) -> "Column":
        """A column whose codes are the leaves of a hierarchy."""
        return cls(name, counts, null=tree.null_leaf, levels=tree.levels)

    @classmethod
    def personal(cls, name: str, amounts: Longs, counts: Longs) -> "Column":
        """A column of each person's own k; code i asks for `amounts[i]`."""
        return cls(name, counts, amounts=amounts)

    @property
    def size(self) -> int:
        """Codes of the domain."""
        return len(self.counts)

    @property
    def shares(self) -> Floats:
        """The distribution of the release; all 0 where nothing is released."""
        total = self.counts.sum()
        return self.counts / total if total else np.zeros(self.size)

    @property
    def present(self) -> int:
        """Values that the release holds, null among them."""
        return int(np.count_nonzero(self.counts))
