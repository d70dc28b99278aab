"""Histograms that grow and shrink: of a leaf that takes signatures in, lends some, or is joined with others.

Besides persons they count the signatures that hold each value: a value stays as long as one of them is there, even if
all its persons count elsewhere.

Cost: sorting the values that are held, for each change.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kanon_spark.privacy.demands import Demands, satisfies
from kanon_spark.privacy.histograms import Histograms

Longs = NDArray[np.int64]


@dataclass(frozen=True)
class ValueSums:
    """Sensitive values that something holds.

    Attributes:
        slots: Column and value as one number (`Demands.base` of the column, and the code), ascending.
        counts: Persons of each.
        holders: Signatures that hold each.
    """

    slots: Longs
    counts: Longs
    holders: Longs

    @classmethod
    def of(cls, slots: Longs, counts: Longs, holders: Longs) -> "ValueSums":
        """Sums over slots that may stand there several times; what nobody holds any more is left out."""
        held, place = np.unique(slots, return_inverse=True)
        # Sums of whole numbers below 2^53 are exact in doubles.
        persons = np.bincount(place, counts, len(held)).astype(np.int64)
        still = np.bincount(place, holders, len(held)).astype(np.int64)
        kept = still > 0
        return cls(held[kept], persons[kept], still[kept])

    @classmethod
    def of_members(cls, histograms: Histograms, demands: Demands, members: NDArray[np.integer]) -> "ValueSums":
        """What some units of histograms hold together."""
        columns = histograms.columns
        begin, end = histograms.start[members * columns], histograms.start[(members + 1) * columns]
        lengths = end - begin
        entries = np.repeat(begin - np.cumsum(lengths) + lengths, lengths) + np.arange(int(lengths.sum()))
        column = (np.searchsorted(histograms.start, entries, side="right") - 1) % columns
        slots = demands.base[column] + histograms.values[entries]
        return cls.of(slots, histograms.counts[entries], np.ones(len(entries), np.int64))

    @classmethod
    def together(cls, parts: "Sequence[ValueSums]") -> "ValueSums":
        """What several things hold."""
        return cls.of(
            np.concatenate([part.slots for part in parts]),
            np.concatenate([part.counts for part in parts]),
            np.concatenate([part.holders for part in parts]),
        )

    def without(self, gone: "ValueSums") -> "ValueSums":
        """What is held when some of it has gone."""
        return ValueSums.together([self, ValueSums(gone.slots, -gone.counts, -gone.holders)])

    def satisfy(self, demands: Demands, persons: int) -> bool:
        """Whether so many persons with these values satisfy everything."""
        start = np.searchsorted(self.slots, demands.base)
        column = np.searchsorted(demands.base, self.slots, side="right") - 1
        values = (self.slots - demands.base[column]).astype(np.int32)
        return bool(satisfies(demands, start, values, self.counts, persons))
