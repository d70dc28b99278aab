"""Published cells as numbers that a classifier can learn from, as a reader of the release would make them.

- A number, date or timestamp is one feature. An interval or range stands for its midpoint; a label that is no interval
  (`young`) for the midpoint of the values under it.
- Any other column has one feature per value. A raw value is 1 in its own. A set, or a label that covers m values, is
  1/m in each of them: the reader knows that it was one of them, and not which. So a model that was trained on coarse
  cells can be asked about raw ones.
- A suppressed cell (`*`, `?`), null, and a label that covers everything are missing: NaN in all features.

Columns of very many values keep the most frequent ones; all others share one feature.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kanon_spark.hierarchy.labels import interval_of
from kanon_spark.measure.attributes import Attribute, position_of

Floats = NDArray[np.float64]
SUPPRESSED = frozenset({"*", "?"})
MOST_VALUES = 200  # features of one column; a table of 50,000 rows then stays under 100 MB per column


@dataclass(frozen=True)
class Features:
    """One column of a table in numbers.

    Attributes:
        values: Rows by features; a row of NaN where the cell is missing.
        ordered: True where the single feature is a position on an axis, False for shares of values.
        widths: How far apart the ends of each row's interval are; None where all are single positions.
    """

    values: Floats
    ordered: bool
    widths: Floats | None = None

    @property
    def known(self) -> NDArray[np.bool_]:
        """Rows whose cell is not missing."""
        known: NDArray[np.bool_] = ~np.isnan(self.values[:, 0])
        return known

    @property
    def exact(self) -> bool:
        """Whether every cell is one value, so that there is nothing to draw."""
        single = self.values.max(axis=1) == 1 if not self.ordered else True
        return bool(self.known.all() and np.all(single) and (self.widths is None or not self.widths.any()))

    def drawn(self, rng: np.random.Generator) -> "Features":
        """The column as it may have been: every cell replaced by one of the values that it covers, drawn at random.

        Missing cells are drawn from what the other rows tell; where none tells anything, they stay missing.
        """
        known = self.known
        if not known.any():
            return self
        if self.ordered:
            drawn = self.values.copy()
            if self.widths is not None:
                drawn[:, 0] += (rng.random(len(drawn)) - 0.5) * self.widths
            drawn[~known, 0] = rng.choice(drawn[known, 0], int((~known).sum()))
            return Features(drawn, True)
        shares = np.where(known[:, None], self.values, self.values[known].mean(axis=0))
        reached = shares.cumsum(axis=1)
        sums = reached[:, -1]
        picked = (reached <= (rng.random(len(shares)) * sums)[:, None]).sum(axis=1)
        return Features(np.eye(shares.shape[1])[picked], False)


class Reader:
    """Reads the cells of one column."""

    def __init__(self, attribute: Attribute, frequent: "pd.Series[str] | None" = None) -> None:
        """Prepare to read.

        Args:
            attribute: What is known of the column.
            frequent: Raw values by which the most frequent ones are known, where there are too many for a feature each.
        """
        self.attribute = attribute
        self._number = {text: number for number, text in enumerate(attribute.values)}
        self._feature = self._features_by_value(frequent)

    def read(self, cells: "pd.Series[str]", *, raw: bool = False) -> Features:
        """Every cell in numbers; each distinct one is understood once.

        Args:
            cells: Texts (or lists of them, where sets are published as arrays).
            raw: They are original values: nothing in them is a label.
        """
        texts = cells.map(_as_text)
        codes, distinct = pd.factorize(texts)  # null has code -1
        if not self.attribute.ordered:
            known = [self._raw(str(text)) if raw else self._shares(str(text)) for text in distinct]
            return Features(np.vstack([*known, np.full(self.width, np.nan)])[codes], False)
        ends = [(self._place(str(text)),) * 2 if raw else self._ends(str(text)) for text in distinct]
        table = np.array([*ends, (np.nan, np.nan)])[codes]
        return Features(table.mean(axis=1, keepdims=True), True, table[:, 1] - table[:, 0])

    @property
    def width(self) -> int:
        """Number of features."""
        return 1 if self.attribute.ordered else int(self._feature.max(initial=0)) + 1

    def _features_by_value(self, frequent: "pd.Series[str] | None") -> NDArray[np.int64]:
        count = len(self.attribute.values)
        if count <= MOST_VALUES:
            return np.arange(count)
        rows = np.zeros(count, np.int64)
        if frequent is not None:
            for text, often in frequent.value_counts().items():
                if str(text) in self._number:
                    rows[self._number[str(text)]] = often
        feature = np.full(count, MOST_VALUES - 1)
        feature[np.argsort(-rows, kind="stable")[: MOST_VALUES - 1]] = np.arange(MOST_VALUES - 1)
        return feature

    def _raw(self, text: str) -> Floats:
        number = self._number.get(text)
        return self._spread([] if number is None else [number])

    def _place(self, text: str) -> float:
        """Where a single value lies."""
        number = self._number.get(text)
        return position_of(text, self.attribute.kind) if number is None else float(self.attribute.positions[number])

    def _ends(self, text: str) -> tuple[float, float]:
        """Least and largest position that a published cell covers; NaN where it is missing."""
        if text in SUPPRESSED:
            return np.nan, np.nan
        if text in self._number:
            return (self._place(text),) * 2
        under = self.attribute.covers.get(text)
        if under is not None and len(under) == len(self.attribute.values):
            return np.nan, np.nan
        said = self._interval(text)
        if said is None and under is not None:
            places = self.attribute.positions[under]
            return float(np.min(places)), float(np.max(places))
        return (self._place(text),) * 2 if said is None else said

    def _interval(self, text: str) -> tuple[float, float] | None:
        """Both ends of an interval or range; None for any other label."""
        if self.attribute.kind in {"integer", "real"}:
            return interval_of(text)
        parts = text[1:-1].split(", ")
        if not text.startswith("[") or len(parts) != 2:
            return None
        low, high = (position_of(part, self.attribute.kind) for part in parts)
        return low, high

    def _shares(self, text: str) -> Floats:
        if text in SUPPRESSED:
            return self._spread([])
        if text in self._number:
            return self._raw(text)
        under: Iterable[int] | None = self.attribute.covers.get(text)
        if under is None:
            under = [self._number[member] for member in members_of(text) if member in self._number]
        return self._spread(list(under))

    def _spread(self, numbers: Sequence[int]) -> Floats:
        """Equal shares of these values; missing where there are none, or where they are all there is."""
        if not numbers or (len(numbers) == len(self.attribute.values) and len(numbers) > 1):
            return np.full(self.width, np.nan)
        return np.bincount(self._feature[list(numbers)], minlength=self.width) / len(numbers)


def _as_text(cell: object) -> str | None:
    if isinstance(cell, list | tuple | np.ndarray):
        return json.dumps([str(member) for member in cell], ensure_ascii=False)
    return None if pd.isna(cell) else str(cell)  # type: ignore[call-overload]


def members_of(label: str) -> list[str]:
    r"""Members of a published set, `{a, b}` or a JSON array of texts; the label itself where it is neither.

    >>> members_of('{a, "b, c"}'), members_of('["x", "y"]'), members_of("z")
    (['a', 'b, c'], ['x', 'y'], ['z'])
    """
    if label.startswith('["') and label.endswith('"]'):
        return [str(member) for member in json.loads(label)]
    if not (label.startswith("{") and label.endswith("}")):
        return [label]
    decoder = json.JSONDecoder()
    found: list[str] = []
    place, end = 1, len(label) - 1
    while place < end:
        if label[place] == '"':  # quoted where it could be misread
            member, place = decoder.raw_decode(label, place)
        else:
            stop = label.find(", ", place)
            stop = end if stop < 0 else stop
            member, place = label[place:stop], stop
        found.append(str(member))
        place += 2
    return found
