"""Numbers in labels: writing them, and reading the intervals that people write."""

import math
import re

_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_INTERVAL = re.compile(rf"[\[\](]?\s*({_NUMBER})\s*(?:-|–|—|,|;|:|\.\.|to)\s*({_NUMBER})\s*[\[\])]?")  # noqa: RUF001


def plain(value: float) -> str:
    """A number as a person writes it: no `.0` behind integers.

    >>> plain(15.0), plain(0.5), plain(-0.0)
    ('15', '0.5', '0')
    """
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return repr(float(value))


def interval_of(label: str) -> tuple[float, float] | None:
    """The ends of an interval label (`[15-19]`, `15-19`, `[15, 20)`, `]15;20]` …), None for any other text.

    >>> interval_of("[15-19]"), interval_of("(-10--5]"), interval_of(">=80")
    ((15.0, 19.0), (-10.0, -5.0), None)
    """
    match = _INTERVAL.fullmatch(label.strip())
    if match is None:
        return None
    low, high = float(match[1]), float(match[2])
    return (low, high) if low <= high else None


def number_of(text: str) -> float | None:
    """The finite number that a text spells, None if it spells none.

    >>> number_of(" 15 "), number_of("1_000"), number_of("nan")
    (15.0, None, None)
    """
    if "_" in text:  # Python reads 1_000, Spark does not
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
