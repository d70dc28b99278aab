"""What all privacy models share: the protocol, their codes in compiled code, and when two numbers are equal.

A model looks at one class at a time, and at nothing of it but its *histogram*: how many persons (rows, where no unit is
given) carry each value of one sensitive column. `union_safe` says that two classes which satisfy a model still do when
they are put together; it holds for every model here, and rests on counts that add up: whoever counts must give each
person to one class only. `relative` says that classes are held against the distribution of the whole release, which
changes when rows are suppressed, so that everything must be judged again afterwards.
"""

from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from kanon_spark.privacy.columns import Column

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Sums of the same shares differ in their last digits. Where a model allows equality, this much more is equal; strict
# comparisons (recursive l-diversity, delta-disclosure) stay strict.
EPSILON = 1e-9

# Codes of the models in compiled code.
DISTINCT, ENTROPY, RECURSIVE = 0, 1, 2
EQUAL, ORDERED, HIERARCHICAL = 3, 4, 5
ALPHA, BETA, ENHANCED, DELTA, PERSONAL = 6, 7, 8, 9, 10


class Model(Protocol):
    """One demand on one sensitive column."""

    union_safe: ClassVar[bool]
    relative: ClassVar[bool]

    @property
    def code(self) -> int:
        """Which model it is in compiled code."""
        ...

    @property
    def bound(self) -> float:
        """What the achieved value of each class is compared with."""
        ...

    @property
    def rank(self) -> float:
        """The l of recursive diversity, whose bound is c; 0 for all others."""
        ...

    @property
    def words(self) -> str:
        """What is asked, for people, such as `entropy l-diversity (l = 3)`."""
        ...

    def refuse(self, column: "Column") -> str | None:
        """Why the model says nothing about such a column; None if it does."""
        ...


def at_least(code: int) -> bool:
    """Whether more is better: the achieved value must reach the bound, not stay below it.

    >>> at_least(ENTROPY), at_least(ALPHA)
    (True, False)
    """
    return code in (DISTINCT, ENTROPY, PERSONAL)
