"""What the full-domain methods share: they choose levels of whole columns, and groups of k persons are released there.

A *choice* is a list of level vectors, one level per QI. They are carried out in turn: among the signatures that are
left, those in groups of at least k persons at these levels are released at exactly these levels, and leave. `datafly`
and `incognito` choose one vector, `prgain` several. What no vector releases is suppressed, or joins.

Methods never see signatures: they ask `LevelCounts` how many persons and rows lie in groups of at least k, and there are
two of those, one over numpy arrays and one over Spark.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

LevelVector = tuple[int, ...]


@dataclass(frozen=True)
class Choice:
    """Level vectors to carry out in turn, and how they were found."""

    released: tuple[LevelVector, ...]
    trace: tuple[Mapping[str, Any], ...] = ()


class LevelCounts(Protocol):
    """Counts of groups under level vectors."""
