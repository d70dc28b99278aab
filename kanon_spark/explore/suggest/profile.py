"""What is known of a table's columns before their roles are decided: counts and shares. No Spark here."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kanon_spark.hierarchy.tree import Kind

# Where the quantiles are taken: the ends of the bulk, the ends of almost all, and the middle.
QUANTILES = (0.005, 0.1, 0.5, 0.9, 0.995)
_FENCE = 1.5  # how far from the bulk, in widths of it, a value is still usual
VALUES_LIMIT = 2_000  # of a column with at most so many values each is looked at


@dataclass(frozen=True)
class Spread:
    """Where numbers and times lie, as doubles (days for dates, seconds for timestamps), infinities aside.

    Attributes:
        least: The least.
        largest: The largest.
        quantiles: At `QUANTILES`.
        infinite: Rows that are infinite.
    """

    least: float
    largest: float
    quantiles: tuple[float, ...]
    infinite: int = 0

    @property
    def core(self) -> float:
        """From where the lowest tenth ends to where the highest begins."""
        return self.quantiles[3] - self.quantiles[1]

    @property
    def low(self) -> float:
        """Where usual values begin: all but one in 200, and not far below the bulk (in small tables, one is many)."""
        return max(self.quantiles[0], self.quantiles[1] - _FENCE * self.core) if self.core else self.quantiles[0]

    @property
    def high(self) -> float:
        """Where usual values end."""
        return min(self.quantiles[4], self.quantiles[3] + _FENCE * self.core) if self.core else self.quantiles[4]

    @property
    def usual(self) -> float:
        """From where usual values begin to where they end."""
        return self.high - self.low


@dataclass(frozen=True)
class Lengths:
    """Characters of texts."""

    shortest: int
    longest: int
    mean: float


@dataclass(frozen=True)
class ColumnProfile:
    """One column.

    Attributes:
        name: Its name.
        type: Its type, as Spark writes it.
        kind: What it would be as a quasi-identifier; None where it can be none.
        rows: Rows of the table.
        filled: Rows in which it is not null (NaN counts as null).
        distinct: Different values, approximately, null aside.
        shapes: Share of the filled rows that have each shape of `patterns.ALL` (texts only).
        lengths: Of texts.
        spread: Of numbers and times.
        scale: Decimals that a number has by its type; None for floating point.
        counts: Every value as text with its rows, null aside; None where there are more than `VALUES_LIMIT`.
    """

    name: str
    type: str
    kind: Kind | None
    rows: int
    filled: int
    distinct: int
    shapes: Mapping[str, float] = field(default_factory=dict)
    lengths: Lengths | None = None
    spread: Spread | None = None
    scale: int | None = 0
    counts: Mapping[str, int] | None = field(default=None, repr=False)

    @property
    def values(self) -> int:
        """Different values: as counted where each was looked at, else approximately."""
        return len(self.counts) if self.counts is not None else min(self.distinct, self.filled)

    @property
    def distinction(self) -> float:
        """Different values per filled row: 1 if every row has its own."""
        return self.values / self.filled if self.filled else 0.0

    @property
    def rows_per_value(self) -> float:
        """Rows that share a value, on average."""
        return self.filled / self.values if self.values else 0.0

    @property
    def separation(self) -> float | None:
        """Chance that two different rows differ in it, null being a value of its own; None where it was not counted."""
        if self.counts is None or self.rows < 2:
            return None
        sizes = [*self.counts.values(), self.rows - self.filled]
        return 1 - sum(size * (size - 1) for size in sizes) / (self.rows * (self.rows - 1))

    def share(self, shape: str) -> float:
        """Share of the filled rows with a shape."""
        return self.shapes.get(shape, 0.0)


@dataclass(frozen=True)
class TableProfile:
    """A table.

    Attributes:
        rows: Its rows.
        columns: Its columns, in order.
        one_in: Shapes, lengths and quantiles are those of one in so many rows.
    """

    rows: int
    columns: tuple[ColumnProfile, ...]
    one_in: int = 1
