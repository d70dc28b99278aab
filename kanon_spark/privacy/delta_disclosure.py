"""delta-disclosure privacy: what a class says about each value is within a factor of what the release says.

For every value of the release |ln(p / q)| < delta, with p its share in the class and q in the release. A value that a
class lacks has p = 0, so that every class must hold every value of the release: the strictest model here. Null is a
value like another.

Cost: the values that the class holds, once their number shows that none is missing.
Source: Brickell, Shmatikov: The Cost of Privacy (KDD 2008).
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kanon_spark.compiling import njit
from kanon_spark.privacy.base import DELTA
from kanon_spark.privacy.columns import Column


@dataclass(frozen=True)
class DeltaDisclosure:
    """Shares within a factor of exp(delta) of the release's, both ways."""

    delta: float
    union_safe: ClassVar[bool] = True  # each share of a union lies between the two
    relative: ClassVar[bool] = True
    code: ClassVar[int] = DELTA
    rank: ClassVar[float] = 0.0

    @property
    def bound(self) -> float:
        """What every |ln(p / q)| must stay below."""
        return self.delta

    @property
    def words(self) -> str:
        """What is asked."""
        return f"delta-disclosure privacy (delta = {self.delta:g})"

    def refuse(self, column: Column) -> str | None:
        """Any column will do."""
        del column
        return None


@njit(cache=True)
def largest_change(values, counts, share, present):  # type: ignore[no-untyped-def]
    """Largest |ln(p / q)|; infinite unless the class holds all `present` values of the release, and no other."""
    persons = counts.sum()
    found = 0
    largest = 0.0
    for i in range(len(values)):
        if counts[i] <= 0:
            continue
        found += 1
        here = share[values[i]]
        if here <= 0.0:
            return np.inf
        largest = max(largest, abs(math.log(counts[i] / persons / here)))
    return largest if found > 0 and found == present else np.inf
