"""l-diversity: each class holds at least l well-represented sensitive values.

    distinct     at least l different values
    entropy      the entropy of the class is at least ln l
    recursive    r1 < c · (r_l + … + r_m), counts in descending order: the most frequent value is not too frequent, even
                 if an attacker can rule out l - 2 of the others

Null is not a value that protects anybody: it may hide any value. Distinct diversity does not count it; the two others
take every null for the class's most frequent value, the worst it can be (no other guess gives a smaller entropy or a
larger r1 over the same tail). A class of nulls alone achieves 0, and no recursive c.

Cost: the values that the class holds; recursive sorts their counts.
Source: Machanavajjhala, Gehrke, Kifer, Venkitasubramaniam: l-Diversity (ICDE 2006, TKDD 2007).
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kanon_spark.compiling import njit
from kanon_spark.privacy.base import DISTINCT, ENTROPY, RECURSIVE
from kanon_spark.privacy.columns import Column


@dataclass(frozen=True)
class Distinct:
    """At least l different values."""

    l: float  # noqa: E741 (the literature's name)
    union_safe: ClassVar[bool] = True  # a union holds the values of both
    relative: ClassVar[bool] = False
    code: ClassVar[int] = DISTINCT
    rank: ClassVar[float] = 0.0

    @property
    def bound(self) -> float:
        """Least number of values."""
        return self.l

    @property
    def words(self) -> str:
        """What is asked."""
        return f"distinct l-diversity (l = {self.l:g})"

    def refuse(self, column: Column) -> str | None:
        """Any column will do."""
        del column
        return None


@dataclass(frozen=True)
class Entropy:
    """Entropy of at least ln l; what a class achieves is exp(entropy)."""

    l: float  # noqa: E741 (the literature's name)
    union_safe: ClassVar[bool] = True  # entropy is concave, and so is its least value over all guesses of the nulls
    relative: ClassVar[bool] = False
    code: ClassVar[int] = ENTROPY
    rank: ClassVar[float] = 0.0

    @property
    def bound(self) -> float:
        """Least exp(entropy)."""
        return self.l

    @property
    def words(self) -> str:
        """What is asked."""
        return f"entropy l-diversity (l = {self.l:g})"

    def refuse(self, column: Column) -> str | None:
        """Any column will do."""
        del column
        return None


@dataclass(frozen=True)
class Recursive:
    """Recursive (c,l)-diversity; what a class achieves is r1 / (r_l + … + r_m), which must be below c."""

    c: float
    l: float  # noqa: E741 (the literature's name)
    union_safe: ClassVar[bool] = True  # the largest count is at most the sum of both, the tail at least
    relative: ClassVar[bool] = False
    code: ClassVar[int] = RECURSIVE

    @property
    def bound(self) -> float:
        """What r1 over the tail must stay below."""
        return self.c

    @property
    def rank(self) -> float:
        """Where the tail begins: l, rounded up."""
        return float(math.ceil(self.l))

    @property
    def words(self) -> str:
        """What is asked."""
        return f"recursive (c,l)-diversity (c = {self.c:g}, l = {self.l:g})"

    def refuse(self, column: Column) -> str | None:
        """Any column will do."""
        del column
        return None


@njit(cache=True)
def distinct_values(values, counts, null):  # type: ignore[no-untyped-def]
    """Different values that somebody carries, null apart."""
    found = 0
    for i in range(len(values)):
        if counts[i] > 0 and values[i] != null:
            found += 1
    return float(found)


@njit(cache=True)
def entropy_values(values, counts, null):  # type: ignore[no-untyped-def]
    """Exp(entropy), nulls taken for the most frequent value; 0 if there are only nulls."""
    persons = 0
    nulls = 0
    largest = 0
    total = 0.0  # of count · ln count
    for i in range(len(values)):
        count = counts[i]
        if count <= 0:
            continue
        persons += count
        if values[i] == null:
            nulls = count
            continue
        largest = max(largest, count)
        total += count * math.log(count)
    if largest == 0:
        return 0.0
    if nulls > 0:
        total += (largest + nulls) * math.log(largest + nulls) - largest * math.log(largest)
    return math.exp(max(0.0, math.log(persons) - total / persons))


@njit(cache=True)
def recursive_ratio(values, counts, null, rank):  # type: ignore[no-untyped-def]
    """Largest count, nulls with it, over the counts from the `rank`-th on; infinite where there are none."""
    known = np.empty(len(values), np.int64)
    found = 0
    nulls = 0
    for i in range(len(values)):
        if counts[i] <= 0:
            continue
        if values[i] == null:
            nulls = counts[i]
        else:
            known[found] = counts[i]
            found += 1
    before = int(rank) - 1  # so many of the largest are not in the tail
    if found <= before:
        return np.inf
    known = np.sort(known[:found])
    tail = 0
    for i in range(found - before):
        tail += known[i]
    return (known[found - 1] + nulls) / tail
