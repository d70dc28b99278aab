"""beta-likeness: no sensitive value becomes much more likely in a class than it is in the release.

With q the share of a value in the release and p its share in the class, for every value whose share rises:

    basic      (p - q) / q <= beta
    enhanced   (p - q) / q <= min(beta, -ln q): common values may rise less, so that none can come near to certainty

What a class achieves is the largest relative rise; it is infinite where the enhanced limit -ln q, which no beta can
lift, is broken. Null is a value like another.

Cost: the values that the class holds: the share of all others falls.
Source: Cao, Karras: Publishing Microdata with a Robust Privacy Guarantee (PVLDB 2012).
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from kanon_spark.compiling import njit
from kanon_spark.privacy.base import BETA, ENHANCED, EPSILON
from kanon_spark.privacy.columns import Column


@dataclass(frozen=True)
class BetaLikeness:
    """A relative rise of at most beta."""

    beta: float
    kind: Literal["basic", "enhanced"] = "basic"
    union_safe: ClassVar[bool] = True  # each share of a union lies between the two
    relative: ClassVar[bool] = True
    rank: ClassVar[float] = 0.0

    @property
    def code(self) -> int:
        """Which kind it is."""
        return ENHANCED if self.kind == "enhanced" else BETA

    @property
    def bound(self) -> float:
        """Largest relative rise."""
        return self.beta

    @property
    def words(self) -> str:
        """What is asked."""
        return f"{self.kind} beta-likeness (beta = {self.beta:g})"

    def refuse(self, column: Column) -> str | None:
        """Any column will do."""
        del column
        return None


@njit(cache=True)
def largest_rise(values, counts, share, enhanced):  # type: ignore[no-untyped-def]
    """Largest (p - q) / q; infinite where the enhanced limit is broken, or a value is not in the release at all."""
    persons = counts.sum()
    if persons == 0:
        return np.inf
    largest = 0.0
    for i in range(len(values)):
        if counts[i] <= 0:
            continue
        here = share[values[i]]
        if here <= 0.0:
            return np.inf
        rise = counts[i] / persons / here - 1.0
        if enhanced and rise > EPSILON - math.log(here):
            return np.inf
        largest = max(largest, rise)
    return largest
