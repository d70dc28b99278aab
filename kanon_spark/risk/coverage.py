"""Does a published cell cover a value that the attacker knows? Asked for many values at once.

The verifier's judge of truth decides (`verify/truth.py`). With a configuration it knows each column's hierarchy;
without one a label is read by its shape: `[a, b]`, `[a, b)`, `< 10`, `>= 90`, `{a, b}`, `123**`, `2024-03`, `2024-Q1`,
`2020s`, `*`, or the value itself.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kanon_spark.config.models import DateSpec, FileSpec, IntervalSpec, PrefixSpec, QiSpec
from kanon_spark.errors import MissingInputError
from kanon_spark.hierarchy.labels import interval_of, plain
from kanon_spark.io.paths import resolve
from kanon_spark.signatures.columns import kind_of
from kanon_spark.signatures.forms import SUPPRESSED, form_of
from kanon_spark.verify.truth import Judge, Text, judge_for

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

    from kanon_spark.config.loader import LoadedConfig

Flags = NDArray[np.bool_]
Bits = NDArray[np.uint8]

UNKNOWN = "?"  # how some methods and many files write a suppressed cell
_NUMERIC = frozenset({"integer", "real"})
_ORDERED = _NUMERIC | {"date", "timestamp"}
# Labels whose answers are remembered, and bytes of these answers: with many targets each is long.
_KEPT, _KEPT_BYTES = 20_000, 32_000_000


@dataclass(frozen=True)
class Reading:
    """How the labels of one column are to be read.

    Attributes:
        kind: What the raw values are ("text", "integer", "real", "date", "timestamp", "boolean").
        judge: Who decides, where a configuration says what labels mean; None reads labels by their shape.
        spans: That judge's labels are stretches of an ordered domain.
        members: Labels are JSON arrays of values.
        stars: Labels that stand for anything.
        mean: Numbers are means of a class's values: any known value may stand behind any of them.
    """

    kind: str
    judge: Judge | None = None
    spans: bool = False
    members: bool = False
    stars: frozenset[str] = frozenset({SUPPRESSED})
    mean: bool = False


def readings_by_shape(
    raw: "Mapping[str, DataType]", published: "StructType", *, holds_unknown: frozenset[str] = frozenset()
) -> dict[str, Reading]:
    """How to read the labels of a release of which nothing else is known.

    Args:
        raw: The quasi-identifiers with their types in the original.
        published: The release's columns: arrays are sets of values.
        holds_unknown: Quasi-identifiers in which the original itself holds `?`, which is a value there and no star.
    """
    from pyspark.sql import types as T

    arrays = {field.name for field in published.fields if isinstance(field.dataType, T.ArrayType)}
    return {
        name: Reading(
            kind=kind_of(data_type, qi=name),
            members=name in arrays,
            stars=frozenset({SUPPRESSED} if name in holds_unknown else {SUPPRESSED, UNKNOWN}),
        )
        for name, data_type in raw.items()
    }


def readings_by_config(raw: "Mapping[str, DataType]", loaded: "LoadedConfig") -> dict[str, Reading]:
    """How to read the labels of a release that a configuration describes, for the columns that it names.

    Hierarchy files are read here, on the driver: workers need not have them.
    """
    readings = {}
    for name, spec in loaded.config.columns.quasi_identifiers.items():
        if name not in raw:
            continue
        kind = kind_of(raw[name], qi=name)
        form = form_of(spec, kind, loaded.config)
        csv = Path(resolve(spec.hierarchy.path, loaded.base_dir)) if isinstance(spec.hierarchy, FileSpec) else None
        if csv is not None and not csv.is_file():
            raise MissingInputError(
                f"there is no file {csv}", where=f"columns.quasi_identifiers.{name}.hierarchy", fix="check the path"
            )
        own = spec.hierarchy is None and kind in _ORDERED
        readings[name] = Reading(
            kind=kind,
            judge=judge_for(spec, kind=kind, csv_path=csv, members=form.members),
            spans=own or isinstance(spec.hierarchy, IntervalSpec | DateSpec),
            members=form.members,
            stars=frozenset({SUPPRESSED, form.suppressed}),
            mean=form.mean,
        )
    return readings


def _is_number(label: Text) -> bool:
    try:
        return label is not None and not math.isnan(float(label))
    except ValueError:
        return False


def unpacked(bits: Bits, count: int) -> Flags:
    """Rows of flags from rows of bytes."""
    flags: Flags = np.unpackbits(bits, axis=1, count=count).view(np.bool_)
    return flags


@dataclass(frozen=True)
class _Reader:
    """A judge, and whether what it reads are stretches of an ordered domain."""

    judge: Judge
    spans: bool = False


class Coverage:
    """Which of some values a label covers.

    Stretches are found by bisection among the sorted values, so that thousands of ranges cost little; all other labels
    are held against every distinct value. Answers are remembered, eight flags to a byte: labels repeat from class to
    class.

    >>> Coverage(Reading("integer"), ["31", "39", "52", None]).row("[30, 39]").tolist()
    [True, True, False, False]
    """

    def __init__(self, reading: Reading, values: Sequence[Text]) -> None:
        self._reading = reading
        number: dict[Text, int] = {}
        self._place_of = np.array([number.setdefault(value, len(number)) for value in values], np.int64)
        self._places = number  # of the distinct values
        self._known: dict[Text, Bits] = {}
        self._kept = min(_KEPT, _KEPT_BYTES // max(1, -(-len(values) // 8)))
        self._not_null = np.array([value is not None for value in number], np.bool_)
        self._sorted: dict[_Reader, tuple[list[Any], NDArray[np.int64]]] = {}

    def row(self, label: Text) -> Flags:
        """One flag per value."""
        flags: Flags = unpacked(self.packed([label]), len(self._place_of))[0]
        return flags

    def packed(self, labels: Sequence[Text]) -> Bits:
        """The same for several labels, eight flags to a byte."""
        if len(self._known) > self._kept:
            self._known.clear()
        for label in labels:
            if label not in self._known:
                self._known[label] = np.packbits(self._judged(label)[self._place_of])
        return np.stack([self._known[label] for label in labels])

    def _judged(self, label: Text) -> Flags:
        flags = np.full(len(self._places), label in self._reading.stars)
        if flags.all():
            return flags
        # A mean tells of no single row whether it is behind it: a class that might be the target's is never left out.
        if self._reading.mean and _is_number(label):
            return flags | self._not_null
        readers = self._readers(label)
        # A label is true of the value that it spells, except where a judge that must be asked knows better.
        if label in self._places and all(reader.spans or self._reading.judge is None for reader, _ in readers):
            flags[self._places[label]] = True
        for reader, text in readers:
            flags |= self._within(reader, text) if reader.spans else self._covered(reader.judge, text)
        return flags

    def _covered(self, judge: Judge, label: Text) -> Flags:
        return np.array([judge.covers(value, label) for value in self._places], np.bool_)

    def _within(self, reader: _Reader, label: Text) -> Flags:
        flags = np.zeros(len(self._places), np.bool_)
        span = reader.judge.extent(label) if label is not None else None
        if span is not None:
            points, places = self._points(reader)
            first = 0 if span.low is None else (bisect_right if span.low_open else bisect_left)(points, span.low)
            last = (
                len(points)
                if span.high is None
                else (bisect_left if span.high_open else bisect_right)(points, span.high)
            )
            flags[places[first:last]] = True
        return flags

    def _points(self, reader: _Reader) -> tuple[list[Any], NDArray[np.int64]]:
        """The values that the reader can place, sorted, and where each of them stands."""
        if reader not in self._sorted:
            spans = [(reader.judge.extent(value), place) for value, place in self._places.items() if value is not None]
            placed = sorted((span.low, place) for span, place in spans if span is not None and span.low == span.high)
            places = np.array([place for _, place in placed], np.int64)
            self._sorted[reader] = ([point for point, _ in placed], places)
        return self._sorted[reader]

    def _readers(self, label: Text) -> list[tuple[_Reader, Text]]:
        judge = self._reading.judge
        return self._by_shape(label) if judge is None else [(_Reader(judge, self._reading.spans), label)]

    @cached_property
    def _shapes(self) -> dict[str, _Reader]:
        dates = QiSpec(hierarchy=DateSpec(levels=("day",)))
        return {
            "numbers": _Reader(judge_for(QiSpec(), kind="real"), spans=True),
            "moments": _Reader(judge_for(QiSpec(), kind="timestamp"), spans=True),
            "calendar": _Reader(judge_for(dates, kind="date"), spans=True),
            "prefix": _Reader(judge_for(QiSpec(hierarchy=PrefixSpec(keep=(1,))), kind="text")),
            "set": _Reader(judge_for(QiSpec(), kind="text")),
            "members": _Reader(judge_for(QiSpec(), kind="text", members=True)),
        }

    def _by_shape(self, label: Text) -> list[tuple[_Reader, Text]]:
        """Which readers to ask; a label that looks like nothing known stands for itself alone."""
        kind, shapes = self._reading.kind, self._shapes
        found: list[tuple[_Reader, Text]] = []
        if self._reading.members:
            return [(shapes["members"], label)]
        if label is None:
            return found
        if label[:1] == "{" and label[-1:] == "}":
            found.append((shapes["set"], label))
        elif label[:1] in {"[", "(", "<", ">"}:
            interval = None if shapes["numbers"].judge.extent(label) is not None else interval_of(label)
            # `[15-19]` is how hierarchy files like to write what we write as `[15, 19]`.
            text = label if interval is None else f"[{plain(interval[0])}, {plain(interval[1])}]"
            found += [(shapes["numbers"], text)] if kind not in {"date", "timestamp"} else []
            found += [(shapes["moments"], label)] if kind not in _NUMERIC else []
        elif label.endswith("*"):
            found.append((shapes["prefix"], label))
        elif kind in _NUMERIC:
            found.append((shapes["numbers"], label))  # 39 is 39.0
        elif kind != "boolean":
            found.append((shapes["calendar"], label))
        return found
