"""Ranges on a grid: the ends of a class's range are moved outward to round steps, so that they are nobody's own values.

The step follows from the width of the tight range alone:
- numbers: the largest of 1, 2, 5 x 10^n that is no wider than the range. `[61, 68]` is 7 wide, its step is 5, and it
  becomes `[60, 70]`. Computed in decimal from the texts, so that 0.1 is one tenth.
- dates: days below a week, whole weeks (from Monday) below a month, then months, quarters, years, decades, centuries:
  the longest period that is no longer than the range. `[2021-03-01, 2021-05-09]` becomes `[2021-03-01, 2021-05-31]`.
- timestamps: seconds, minutes and hours before those; a range ends where a period ends, which is where the next begins.

What comes out holds what went in and is less than three times as wide (up to two seconds, where it was less than one).
Neighbours such as `[23, 24]` stay as they are: their step is 1. So does a single value, which is no range, and a range
with an infinite end.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext

import numpy as np

from kanon_spark.hierarchy.tree import Kind

# Decimals have up to 38 digits and doubles 17: with these, every quotient by a step is exact.
_EXACT = Context(prec=80)
_PLAIN = range(-7, 21)  # powers of ten that are written out

_SECOND = 1_000_000  # in microseconds
_DAY = 86_400 * _SECOND
# Shortest range (in days) that a period suits, from the longest period down.
_PERIODS = (("century", 36_525), ("decade", 3_653), ("year", 366), ("quarter", 92), ("month", 31), ("week", 7))
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1_200}
_CLOCK = (3_600 * _SECOND, 60 * _SECOND, _SECOND)
_EPOCH_MONTHS = 1970 * 12
_MONDAY = 3  # 1970-01-01 was a Thursday


def widen(low: str, high: str, kind: Kind) -> tuple[str, str, float]:
    """The ends of a range moved outward to its grid, and how far they are apart (numbers; days; seconds).

    >>> widen("61", "68", "integer")
    ('60', '70', 10.0)
    >>> widen("2021-03-01", "2021-05-09", "date")
    ('2021-03-01', '2021-05-31', 91.0)
    """
    if kind == "date":
        return _widen_days(low, high)
    if kind == "timestamp":
        return _widen_moments(low, high)
    return _widen_numbers(low, high)


def _widen_numbers(low: str, high: str) -> tuple[str, str, float]:
    with localcontext(_EXACT):
        least, largest = Decimal(low), Decimal(high)
        if not (least.is_finite() and largest.is_finite()):
            return low, high, float("inf")
        step = number_step(largest - least)
        least = (least / step).to_integral_value(ROUND_FLOOR) * step
        largest = (largest / step).to_integral_value(ROUND_CEILING) * step
        return _text(least), _text(largest), float(largest - least)


def number_step(width: Decimal) -> Decimal:
    """The largest of 1, 2, 5 x 10^n that is at most this width.

    >>> [str(number_step(Decimal(width))) for width in ("7", "4.9", "0.1", "25")]
    ['5', '2', '0.1', '2E+1']
    """
    power = width.adjusted()
    lead = width.scaleb(-power)
    return Decimal(5 if lead >= 5 else 2 if lead >= 2 else 1).scaleb(power)


def _text(number: Decimal) -> str:
    """A round number as a person writes it: `60`, `0.4`, and `1E+300` for what nobody writes out."""
    if not number:
        return "0"
    number = number.normalize()
    return f"{number:f}" if number.adjusted() in _PLAIN else f"{number:E}"


def _widen_days(low: str, high: str) -> tuple[str, str, float]:
    first, last = _moment(low) // _DAY, _moment(high) // _DAY
    period = _period(last - first)
    if period is not None:
        first, last = _start(first, period), _end(last, period) - 1
    return _day_text(first), _day_text(last), float(last - first)


def _widen_moments(low: str, high: str) -> tuple[str, str, float]:
    least, largest = _moment(low), _moment(high)
    period = _period((largest - least) // _DAY)
    if period is not None:
        day = _start(least // _DAY, period)
        # A range that ends exactly where a period begins already ends on the grid.
        end = largest // _DAY if largest % _DAY == 0 else largest // _DAY + 1
        begun = _start(end, period)
        least, largest = day * _DAY, (end if begun == end else _end(end, period)) * _DAY
    else:
        width = largest - least
        step = _DAY if width >= _DAY else next((each for each in _CLOCK if width >= each), _SECOND)
        least, largest = least // step * step, -(-largest // step) * step
    return _moment_text(least), _moment_text(largest), (largest - least) / _SECOND


def _period(days: int) -> str | None:
    """The period that suits a range of so many days; None: days, or less."""
    return next((period for period, shortest in _PERIODS if days >= shortest), None)


def _start(day: int, period: str) -> int:
    """First day of the period that holds a day (days since 1970-01-01)."""
    if period == "week":
        return (day + _MONDAY) // 7 * 7 - _MONDAY
    return _first_day(_month(day) // _MONTHS[period] * _MONTHS[period])


def _end(day: int, period: str) -> int:
    """First day after the period that holds a day."""
    if period == "week":
        return _start(day, period) + 7
    return _first_day((_month(day) // _MONTHS[period] + 1) * _MONTHS[period])


def _month(day: int) -> int:
    """The month that holds a day, counted from the year 0, so that decades and centuries are whole multiples."""
    return int(np.datetime64(day, "D").astype("datetime64[M]").astype(np.int64)) + _EPOCH_MONTHS


def _first_day(month: int) -> int:
    return int(np.datetime64(month - _EPOCH_MONTHS, "M").astype("datetime64[D]").astype(np.int64))


def _moment(text: str) -> int:
    """Microseconds since 1970-01-01 of a date or timestamp as Spark prints it."""
    return int(np.datetime64(text.removeprefix("+").replace(" ", "T"), "us").astype(np.int64))


def _day_text(day: int) -> str:
    return str(np.datetime64(day, "D"))


def _moment_text(moment: int) -> str:
    return str(np.datetime64(moment // _SECOND, "s")).replace("T", " ")
