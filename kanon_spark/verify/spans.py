"""Stretches of ordered domains, as texts say them: intervals, ranges, months, decades.

A part of the independent judge (`truth.py`): texts are read here by the words of the configuration alone.
"""

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any


@dataclass(frozen=True)
class Span:
    """From low to high; None is without end. Bounds are any values that compare."""

    low: Any
    high: Any
    low_open: bool = False
    high_open: bool = False

    def within(self, other: "Span") -> bool:
        """True if all of this lies in the other."""
        if other.low is not None:
            if self.low is None or self.low < other.low:
                return False
            if self.low == other.low and other.low_open and not self.low_open:
                return False
        if other.high is not None:
            if self.high is None or self.high > other.high:
                return False
            if self.high == other.high and other.high_open and not self.high_open:
                return False
        return True


class Reader(ABC):
    """Reads values and labels of one ordered kind as spans; None for what it cannot read."""

    @abstractmethod
    def value(self, text: str) -> Any | None:
        """A value as something that compares."""

    def label(self, text: str) -> Span | None:
        """A label: `[lo, hi]` with either end open, `< x`, `>= x`, or a single value."""
        if text.startswith(("< ", ">= ")):
            sign, _, rest = text.partition(" ")
            bound = self.value(rest)
            if bound is None:
                return None
            return Span(None, bound, high_open=True) if sign == "<" else Span(bound, None)
        if text[:1] in "[(" and text[-1:] in "])" and text.count(", ") == 1:
            left, right = text[1:-1].split(", ")
            low, high = self.value(left), self.value(right)
            if low is None or high is None:
                return None
            return Span(low, high, low_open=text[0] == "(", high_open=text[-1] == ")")
        point = self.value(text)
        return None if point is None else Span(point, point)


def number_of(text: str) -> Decimal | None:
    """The number that a text is; None if it is none."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return None if number.is_nan() else number


class Numbers(Reader):
    """Whole and real numbers, exact whatever their digits."""

    def value(self, text: str) -> Decimal | None:
        """A value as something that compares."""
        return number_of(text)


_MOMENT = re.compile(r"([+-]?\d{3,})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?")


class Moments(Reader):
    """Dates and timestamps as Spark prints them (time zone UTC)."""

    def value(self, text: str) -> tuple[int, ...] | None:
        """A value as something that compares."""
        found = _MOMENT.fullmatch(text)
        if found is None:
            return None
        *whole, fraction = found.groups()
        return (*(int(part or 0) for part in whole), int((fraction or "").ljust(9, "0")))


_QUARTER = re.compile(r"([+-]?\d{3,})-Q([1-4])")
_MONTH = re.compile(r"([+-]?\d{3,})-(\d\d)")
_YEAR = re.compile(r"[+-]?\d{3,}")
_DECADE = re.compile(r"([+-]?\d{2,}0)s")


class Calendar(Reader):
    """Days, and the months, quarters, years and decades that hold them."""

    def value(self, text: str) -> tuple[int, int, int] | None:
        """A value as something that compares."""
        found = _MOMENT.fullmatch(text)
        return None if found is None else (int(found[1]), int(found[2]), int(found[3]))

    def label(self, text: str) -> Span | None:
        """A label: a stretch of days, or what every ordered kind has."""
        if found := _QUARTER.fullmatch(text):
            year, last = int(found[1]), 3 * int(found[2])
            return Span((year, last - 2, 1), (year, last, 31))
        if found := _MONTH.fullmatch(text):
            year, month = int(found[1]), int(found[2])
            return Span((year, month, 1), (year, month, 31))
        if _YEAR.fullmatch(text):
            return Span((int(text), 1, 1), (int(text), 12, 31))
        if found := _DECADE.fullmatch(text):
            return Span((int(found[1]), 1, 1), (int(found[1]) + 9, 12, 31))
        return super().label(text)
