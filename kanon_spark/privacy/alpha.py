"""(alpha,k)-anonymity: no sensitive value, or none of the named ones, is carried by more than alpha of a class.

The share is that of persons: who carries several values counts for each of them, but once in the class. Where all
values are protected null is one of them, like another.

Cost: the values that the class holds.
Source: Wong, Li, Fu, Wang: (alpha,k)-Anonymity (KDD 2006).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kanon_spark.compiling import njit
from kanon_spark.privacy.base import ALPHA
from kanon_spark.privacy.columns import Column


@dataclass(frozen=True)
class Alpha:
    """A share of at most alpha, for all values or for the named codes; how many named values have none is `unknown`."""

    alpha: float
    values: tuple[int, ...] | None = None
    unknown: int = 0
    union_safe: ClassVar[bool] = True  # the share of a union lies between the two
    relative: ClassVar[bool] = False
    code: ClassVar[int] = ALPHA
    rank: ClassVar[float] = 0.0

    @property
    def bound(self) -> float:
        """Largest share."""
        return self.alpha

    @property
    def words(self) -> str:
        """What is asked."""
        named = "" if self.values is None else f", {len(self.values)} named values"
        return f"(alpha,k)-anonymity (alpha = {self.alpha:g}{named})"

    def refuse(self, column: Column) -> str | None:
        """Named values must be values of the column."""
        if self.values is not None and not all(0 <= code < column.size for code in self.values):
            return "a named value is none of the column's"
        return None


@njit(cache=True)
def largest_share(values, counts, persons, watched):  # type: ignore[no-untyped-def]
    """Largest share of persons that carry one watched value; all are watched where `watched` is empty."""
    if persons == 0:
        return np.inf
    largest = 0
    for i in range(len(values)):
        if counts[i] > largest and (len(watched) == 0 or watched[values[i]]):
            largest = counts[i]
    return largest / persons
