"""Does a published range end on the grid that `output.ranges: grid` promises? Decided from its text alone.

The grid of a range is the coarsest that its tight width allows, so a range on it is only a few steps long, and its ends
are multiples of the step. Whether such a step exists can be seen without knowing the tight range.
"""

import re
from datetime import date, timedelta
from decimal import Context, Decimal, InvalidOperation, localcontext

# First digit of a number's step: most steps that a range on it is long. It was narrower than the next step (2, 2.5 or 2
# times this one) and was widened by less than a step at each end.
_MOST = {1: 3, 2: 4, 5: 3}
_EXACT = Context(prec=80)
_MOMENT = re.compile(r"([+-]?\d{4,})-(\d\d)-(\d\d)(?: (\d\d):(\d\d):(\d\d))?")
# Calendar steps in months, and most months of a range on them.
_MONTHS = {1: 5, 3: 15, 12: 132, 120: 1320, 1200: None}
_WEEKS = 6  # most weeks of a range that is shorter than a month
_SECONDS = {1: 61, 60: 3_660, 3_600: 90_000, 86_400: 691_200}


def on_grid(label: str, kind: str) -> bool:
    """True if both ends of `[lo, hi]` lie on a grid that suits its width.

    >>> on_grid("[60, 70]", "integer"), on_grid("[61, 68]", "integer"), on_grid("[2021-03-01, 2021-05-31]", "date")
    (True, False, True)
    """
    low, _, high = label[1:-1].partition(", ")
    if kind == "date":
        return _days_on_grid(low, high)
    if kind == "timestamp":
        return _moments_on_grid(low, high)
    try:
        return _numbers_on_grid(low, high)
    except InvalidOperation:  # no numbers, or so far from any grid that there is no remainder
        return False


def _numbers_on_grid(low: str, high: str) -> bool:
    with localcontext(_EXACT):
        least, largest = Decimal(low), Decimal(high)
        if not (least.is_finite() and largest.is_finite()):
            return True  # such a range has no width, and stays as it is
        width = largest - least
        steps = [
            (Decimal(digit).scaleb(width.adjusted() - down), most) for digit, most in _MOST.items() for down in (0, 1)
        ]
        return any(least % step == 0 and largest % step == 0 and 0 < width / step <= most for step, most in steps)


def _days_on_grid(low: str, high: str) -> bool:
    first, last = _read(low), _read(high)
    if first is None or last is None:
        return False
    after = _plus_a_day(last)
    days = _day_number(after) - _day_number(first)
    if days <= 7:  # steps of days
        return True
    if _day_number(first) % 7 == 0 and days % 7 == 0 and days <= 7 * _WEEKS:
        return True
    return _on_months(first, after)


def _moments_on_grid(low: str, high: str) -> bool:
    first, last = _read(low), _read(high)
    if first is None or last is None:
        return False
    seconds = _second_number(last) - _second_number(first)
    for step, most in _SECONDS.items():
        if _second_number(first) % step == 0 and seconds % step == 0 and 0 < seconds <= most:
            return True
    if any((*first[3:], *last[3:])):
        return False
    days = _day_number(last) - _day_number(first)
    if _day_number(first) % 7 == 0 and days % 7 == 0 and days <= 7 * _WEEKS:
        return True
    return _on_months(first, last)


Moment = tuple[int, int, int, int, int, int]


def _read(text: str) -> Moment | None:
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups())
    return year, month, day, hour, minute, second


def _on_months(first: Moment, after: Moment) -> bool:
    """Both begin a month, and both are multiples of one calendar step."""
    if first[2] != 1 or after[2] != 1:
        return False
    begin, end = (moment[0] * 12 + moment[1] - 1 for moment in (first, after))
    return any(
        begin % step == 0 and end % step == 0 and (most is None or 0 < end - begin <= most)
        for step, most in _MONTHS.items()
    )


# Python's dates know the years 1 to 9999; the calendar repeats itself every 400 years (146,097 days, whole weeks).


def _shifted(moment: Moment) -> tuple[date, int]:
    cycles, year = divmod(moment[0] - 1, 400)
    return date(year + 401, moment[1], moment[2]), cycles - 1


def _day_number(moment: Moment) -> int:
    """Days since a Monday."""
    day, cycles = _shifted(moment)
    return day.toordinal() - 1 + cycles * 146_097


def _second_number(moment: Moment) -> int:
    return _day_number(moment) * 86_400 + moment[3] * 3_600 + moment[4] * 60 + moment[5]


def _plus_a_day(moment: Moment) -> Moment:
    day, cycles = _shifted(moment)
    day += timedelta(days=1)
    return day.year + 400 * cycles, day.month, day.day, 0, 0, 0
