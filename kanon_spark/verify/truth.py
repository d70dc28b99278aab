"""Is a published label true of a raw value? Decided from the texts alone.

This is the independent judge: it knows the configuration's words (what an interval, a prefix, a date level, a range or
a set means) and reads a hierarchy file by a few lines of its own. It builds no tree and shares no code with what chose
the labels.

Three rules hold for every kind: a suppressed cell (`*`, or what the method's form says) is true of anything; null is
published only for null; null is covered only by null or a suppressed cell. A value is always true of itself.
"""

import csv
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path

from kanon_spark.config.models import DateSpec, FileSpec, FlatSpec, IntervalSpec, PrefixSpec, QiSpec
from kanon_spark.verify.facts import SUPPRESSED
from kanon_spark.verify.spans import Calendar, Moments, Numbers, Reader, Span, number_of

Text = str | None


class Judge(ABC):
    """Decides for one quasi-identifier, in which a suppressed cell reads `suppressed`."""

    def __init__(self, suppressed: str = SUPPRESSED) -> None:
        self._suppressed = suppressed

    def covers(self, raw: Text, label: Text) -> bool:
        """True if `label` may be published for a row whose value reads `raw`."""
        if label == self._suppressed:
            return True
        if raw is None or label is None:
            return raw is None and label is None
        return self._covers(raw, label)

    def contains(self, inner: Text, label: Text) -> bool:
        """True if every value that `inner` (itself a label) may stand for may be published as `label`."""
        if label == self._suppressed:
            return True
        if inner is None or label is None:
            return inner is None and label is None
        return self._contains(inner, label)

    def untrue(self, pairs: Iterable[tuple[Text, Text]], *, generalized: bool) -> int:
        """How many (value, label) pairs are false; `generalized` values are labels themselves."""
        holds = self.contains if generalized else self.covers
        return sum(not holds(value, label) for value, label in pairs)

    def extent(self, label: str) -> Span | None:
        """What a label says in numbers, which is as narrow as numbers beside it may be; None if it says nothing."""
        del label
        return None

    @abstractmethod
    def _covers(self, raw: str, label: str) -> bool: ...

    @abstractmethod
    def _contains(self, inner: str, label: str) -> bool: ...


def judge_for(
    spec: QiSpec,
    *,
    kind: str,
    csv_path: Path | None = None,
    members: bool = False,
    suppressed: str = SUPPRESSED,
) -> Judge:
    """The judge for a quasi-identifier, by what its configuration says; sets may be published as their `members`.

    >>> judge = judge_for(QiSpec(hierarchy=PrefixSpec(keep=[3, 2])), kind="text")
    >>> judge.covers("53715", "537**"), judge.covers("53715", "538**")
    (True, False)
    """
    hierarchy = spec.hierarchy
    if isinstance(hierarchy, FileSpec):
        path = csv_path if csv_path is not None else Path(hierarchy.path)
        rows = _read_rows(path, hierarchy.separator)
        if hierarchy.stem is not None:
            return _StemJudge(rows, stem=hierarchy.stem, min_level=spec.min_level, suppressed=suppressed)
        return _FileJudge(rows, min_level=spec.min_level, kind=kind, suppressed=suppressed)
    if isinstance(hierarchy, IntervalSpec):
        return _SpanJudge(Numbers(), suppressed)
    if isinstance(hierarchy, DateSpec):
        return _SpanJudge(Calendar(), suppressed)
    if isinstance(hierarchy, PrefixSpec):
        return _PrefixJudge(suppressed)
    if isinstance(hierarchy, FlatSpec):
        return _FlatJudge(suppressed)
    if kind in ("integer", "real"):
        return _SpanJudge(Numbers(), suppressed)
    if kind in ("date", "timestamp"):
        return _SpanJudge(Moments(), suppressed)
    return _MembersJudge(suppressed) if members else _SetJudge(suppressed)


# Hierarchy files


def _read_rows(path: Path, separator: str) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.reader(file, delimiter=separator) if any(field.strip() for field in row)]
    return [row if len(row) > 1 else [*row, SUPPRESSED] for row in rows]


class _FileJudge(Judge):
    """A label is true of a value if the value's own line in the file names it, at `min_level` or above.

    Where the same label heads several lines at `min_level`, all of them must name what is published. Null, and a value
    that the file does not name (`unknown: root`), stand under the root alone; a file's root is a suppressed cell.
    """

    def __init__(self, rows: list[list[str]], *, min_level: int, kind: str, suppressed: str) -> None:
        super().__init__(suppressed)
        self._kind = kind
        self._root = frozenset({suppressed}.union(*(row[-1:] for row in rows)))
        self._of_value: dict[object, frozenset[str]] = {}
        self._of_label: dict[str, frozenset[str]] = {}
        self._extents: dict[str, Span] = {}
        for row in rows:
            fields = frozenset(row[min_level:])
            number = number_of(row[0]) if kind in ("integer", "real") else None
            if number is not None:
                for label in fields - self._root:
                    known = self._extents.get(label, Span(number, number))
                    self._extents[label] = Span(min(number, known.low), max(number, known.high))
            self._of_value[self._key(row[0])] = fields
            label = row[min_level]
            self._of_label[label] = self._of_label.get(label, fields) & fields

    def _key(self, text: str) -> object:
        """The value that a text spells: a file's 39 is a table's 39.0, its TRUE a table's true."""
        read: object | None = None
        if self._kind in ("integer", "real"):
            read = number_of(text)
        elif self._kind in ("date", "timestamp"):
            read = Moments().value(text.strip())
        elif self._kind == "boolean":
            read = text.strip().lower()
        return text if read is None else read

    def extent(self, label: str) -> Span | None:
        """The file's own values under the label, wherever it stands."""
        return self._extents.get(label)

    def covers(self, raw: Text, label: Text) -> bool:
        return label in self._root or super().covers(raw, label)

    def contains(self, inner: Text, label: Text) -> bool:
        return label in self._root or super().contains(inner, label)

    def _covers(self, raw: str, label: str) -> bool:
        return label in self._of_value.get(self._key(raw), ())

    def _contains(self, inner: str, label: str) -> bool:
        return label in self._of_label.get(inner, ())


class _StemJudge(_FileJudge):
    """The same where the first characters of a value are what the file names, and the value itself is level 0."""

    def __init__(self, rows: list[list[str]], *, stem: int, min_level: int, suppressed: str) -> None:
        self._stem = stem
        self._itself = min_level == 0
        super().__init__(rows, min_level=max(0, min_level - 1), kind="text", suppressed=suppressed)

    def _key(self, text: str) -> object:
        return text[: self._stem]

    def _covers(self, raw: str, label: str) -> bool:
        known = self._key(raw) in self._of_value
        return known and ((self._itself and raw == label) or super()._covers(raw, label))


class _FlatJudge(Judge):
    """A value is published as it is, or not at all."""

    def _covers(self, raw: str, label: str) -> bool:
        return raw == label

    def _contains(self, inner: str, label: str) -> bool:
        return inner == label


class _PrefixJudge(Judge):
    """`123**` is true of the values that begin with 123, whatever their length."""

    def _covers(self, raw: str, label: str) -> bool:
        return raw == label or (label.endswith("*") and raw.startswith(label.rstrip("*")))

    def _contains(self, inner: str, label: str) -> bool:
        return inner == label or (label.endswith("*") and inner.rstrip("*").startswith(label.rstrip("*")))


class _SetJudge(Judge):
    """`{a, b}` is true of its members; a member with a comma, brace or quote is written as JSON text."""

    def __init__(self, suppressed: str) -> None:
        super().__init__(suppressed)
        self._members: dict[str, frozenset[str]] = {}

    def _set(self, label: str) -> frozenset[str]:
        if label not in self._members:
            self._members[label] = frozenset(_members(label))
        return self._members[label]

    def _covers(self, raw: str, label: str) -> bool:
        return raw == label or raw in self._set(label)

    def _contains(self, inner: str, label: str) -> bool:
        return inner == label or (bool(self._set(inner)) and self._set(inner) <= self._set(label))


class _MembersJudge(_SetJudge):
    """The same for arrays, which come as JSON texts: `["a", "b"]`, and `["*"]` for a suppressed cell."""

    def covers(self, raw: Text, label: Text) -> bool:
        if raw is None or label is None:
            return (raw is None and label is None) or self._set(label or "") == {self._suppressed}
        return self._covers(raw, label)

    def _set(self, label: str) -> frozenset[str]:
        if label not in self._members:
            self._members[label] = frozenset(_texts(label))
        return self._members[label]

    def _covers(self, raw: str, label: str) -> bool:
        return raw in self._set(label) or self._set(label) == {self._suppressed}


def _texts(label: str) -> list[str]:
    """The texts of a JSON array; none if it is not one of texts only."""
    try:
        found = json.loads(label)
    except json.JSONDecodeError:
        return []
    return found if isinstance(found, list) and all(isinstance(text, str) for text in found) else []


def _members(label: str) -> list[str]:
    """Members of a published set; none if the text is not one.

    >>> _members('{a, "b, c", d}')
    ['a', 'b, c', 'd']
    """
    if len(label) < 2 or label[0] != "{" or label[-1] != "}":
        return []
    decoder = json.JSONDecoder()
    members: list[str] = []
    position, end = 1, len(label) - 1
    while True:
        if label.startswith('"', position):
            try:
                member, position = decoder.raw_decode(label, position)
            except json.JSONDecodeError:
                return []
        else:
            stop = label.find(", ", position, end)
            stop = end if stop < 0 else stop
            member, position = label[position:stop], stop
            if any(mark in member for mark in '{},"'):
                return []
        members.append(member)
        if position == end:
            return members
        if not label.startswith(", ", position) or position + 2 > end:
            return []
        position += 2


# Everything that is a stretch of an ordered domain: intervals, ranges, months, decades


class _SpanJudge(Judge):
    """A label is true of a value that lies in it."""

    def __init__(self, reader: Reader, suppressed: str) -> None:
        super().__init__(suppressed)
        self._reader = reader
        self._spans: dict[str, Span | None] = {}

    def _span(self, label: str) -> Span | None:
        # There are far fewer labels than values, and each is read for thousands of them.
        if label not in self._spans:
            self._spans[label] = self._reader.label(label)
        return self._spans[label]

    def extent(self, label: str) -> Span | None:
        return self._span(label)

    def _covers(self, raw: str, label: str) -> bool:
        if raw == label:
            return True
        value, span = self._reader.value(raw), self._span(label)
        return value is not None and span is not None and Span(value, value).within(span)

    def _contains(self, inner: str, label: str) -> bool:
        if inner == label:
            return True
        span, outer = self._span(inner), self._span(label)
        return span is not None and outer is not None and span.within(outer)
