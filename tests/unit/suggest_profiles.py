"""Columns as a look at a table would profile them, made from their values in Python."""

import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from kanon_spark.explore.suggest.patterns import ALL
from kanon_spark.explore.suggest.profile import (
    QUANTILES,
    VALUES_LIMIT,
    ColumnProfile,
    Lengths,
    Spread,
    TableProfile,
)
from kanon_spark.hierarchy.tree import Kind

_EPOCH = date(1970, 1, 1)


def column(name: str, values: Sequence[Any], *, kind: Kind | None = None, scale: int | None = 0) -> ColumnProfile:
    """The profile of a column with these values."""
    filled = [value for value in values if value is not None]
    kind = kind or _kind(filled)
    texts = [str(value) for value in filled]
    counts: Counter[str] = Counter(texts)
    shapes, lengths, spread = {}, None, None
    if kind == "text" and filled:
        shapes = {shape: np.mean([bool(re.search(pattern, text)) for text in texts]) for shape, pattern in ALL.items()}
        sizes = [len(text) for text in texts]
        lengths = Lengths(min(sizes), max(sizes), float(np.mean(sizes)))
    elif kind in {"integer", "real", "date", "timestamp"} and filled:
        spread = spread_of([_position(value) for value in filled])
    return ColumnProfile(
        name=name,
        type=kind,
        kind=kind,
        rows=len(values),
        filled=len(filled),
        distinct=len(counts),
        shapes={shape: float(share) for shape, share in shapes.items()},
        lengths=lengths,
        spread=spread,
        scale=scale,
        counts=counts if len(counts) <= VALUES_LIMIT else None,
    )


def spread_of(numbers: Sequence[float]) -> Spread:
    finite = [number for number in numbers if np.isfinite(number)]
    # As Spark does: a value that occurs, not one between two.
    quantiles = np.quantile(finite, QUANTILES, method="inverted_cdf")
    return Spread(min(finite), max(finite), tuple(map(float, quantiles)), len(numbers) - len(finite))


def table(*columns: ColumnProfile) -> TableProfile:
    return TableProfile(columns[0].rows, columns)


def _kind(values: Sequence[Any]) -> Kind:
    kinds: dict[type, Kind] = {bool: "boolean", int: "integer", float: "real", datetime: "timestamp", date: "date"}
    return kinds.get(type(values[0]), "text") if values else "text"


def _position(value: Any) -> float:
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC).timestamp()
    return float((value - _EPOCH).days) if isinstance(value, date) else float(value)
