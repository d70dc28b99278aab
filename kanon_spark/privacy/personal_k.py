"""Personalized k: each person asks for a k of its own, and a class must satisfy the largest in it.

The column of wishes travels like a sensitive one: its values are the ks that occur, and the largest that stands in a
class counts, even where the person of that row is counted elsewhere. What a class achieves is persons over that k.

Cost: the wishes that the class holds.
Source: Xiao, Tao: Personalized Privacy Preservation (SIGMOD 2006) has the idea of a guarantee per person; k instead of
a node of a hierarchy as in Gedik, Liu: Protecting Location Privacy with Personalized k-Anonymity (TMC 2008).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kanon_spark.compiling import njit
from kanon_spark.privacy.base import PERSONAL
from kanon_spark.privacy.columns import Column


@dataclass(frozen=True)
class PersonalK:
    """As many persons in a class as the most demanding of them asks for."""

    union_safe: ClassVar[bool] = True  # a union has more persons, and no larger wish than one of the two had
    relative: ClassVar[bool] = False
    code: ClassVar[int] = PERSONAL
    bound: ClassVar[float] = 1.0
    rank: ClassVar[float] = 0.0

    @property
    def words(self) -> str:
        """What is asked."""
        return "personalized k"

    def refuse(self, column: Column) -> str | None:
        """The column must say what each of its values asks for."""
        return "the column does not say each person's k" if column.amounts is None else None


@njit(cache=True)
def met_wish(values, persons, amount):  # type: ignore[no-untyped-def]
    """Persons over the largest k that one of them asks for; `amount` by code."""
    largest = 1
    for i in range(len(values)):
        largest = max(largest, amount[values[i]])
    return persons / largest if len(values) > 0 else np.inf
