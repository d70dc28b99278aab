"""`min_level` on hierarchies that are built over the data: each value's representative at that level, in Catalyst.

An interval stands for itself by its lower bound, a prefix by its text, a calendar period by its first day. The finer
values never leave the source: they are not in the dictionary, the signatures or the recoding.
"""

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from kanon_spark.config.models import DateSpec, IntervalSpec, PrefixSpec
from kanon_spark.hierarchy.tree import Kind

if TYPE_CHECKING:
    from pyspark.sql import Column

_SAFE_LONG = 1 << 62  # far beyond what intervals may hold, near enough to keep a subtraction from overflowing


def representative(
    value: "Column", spec: IntervalSpec | PrefixSpec | DateSpec, *, kind: Kind, level: int, decimal: bool = False
) -> "tuple[Column, Kind]":
    """The representative of a normalised value at a level (1 or higher), and what kind it is.

    Args:
        value: The normalised value.
        spec: The hierarchy.
        kind: What the values are.
        level: Level of the hierarchy.
        decimal: The column is a decimal, which may be too large for a long.
    """
    from pyspark.sql import functions as F

    match spec:
        case PrefixSpec():
            return F.substring(value.cast("string"), 1, spec.keep[level - 1]), "text"
        case DateSpec():
            return _first_day(value.cast("date"), spec.levels[level - 1]), "date"
        case IntervalSpec():
            return _with_open_ends(value, spec, kind=kind, level=level, decimal=decimal), kind


def _first_day(day: "Column", level: str) -> "Column":
    from pyspark.sql import functions as F

    if level == "day":
        return day
    if level == "decade":
        return F.make_date(F.year(day) - F.pmod(F.year(day), F.lit(10)), F.lit(1), F.lit(1))
    return F.trunc(day, level)


def _with_open_ends(value: "Column", spec: IntervalSpec, *, kind: Kind, level: int, decimal: bool) -> "Column":
    """Lower bound of the value's interval; within an open end, one number that lies there."""
    from pyspark.sql import functions as F

    whole = kind == "integer"
    exact = [_exact(spec.widths[level - 1]), _exact(spec.origin)]
    if whole and not decimal and all(number.denominator == 1 for number in exact):
        lower = _whole_bound(value, width=int(exact[0]), origin=int(exact[1]))
        typed = "long"
    else:
        lower = _real_bound(value.cast("double"), width=exact[0], origin=exact[1])
        typed = "double"

    def number(bound: float) -> "Column":
        return F.lit(math.ceil(bound) if whole else float(bound)).cast(typed)

    cases = F.when(value.isNull(), F.lit(None).cast(typed))
    if spec.bottom is not None:
        lower = F.greatest(lower, number(spec.bottom))
        below = math.ceil(spec.bottom) - 1 if whole else spec.bottom - spec.widths[level - 1]
        cases = cases.when(value < F.lit(spec.bottom), F.lit(below).cast(typed))
    if spec.top is not None:
        cases = cases.when(value >= F.lit(spec.top), number(spec.top))
    return cases.otherwise(lower)


def _whole_bound(value: "Column", *, width: int, origin: int) -> "Column":
    from pyspark.sql import functions as F

    number = value.cast("long")
    step = F.lit(width).cast("long")
    # Each term is smaller than the width, so nothing overflows, however large the value.
    beyond = F.pmod(F.pmod(number, step) - F.lit(origin % width), step)
    return F.greatest(number, F.lit(-_SAFE_LONG)) - beyond


def _real_bound(value: "Column", *, width: Fraction, origin: Fraction) -> "Column":
    """Bounds are one division of two whole numbers, exactly as the tree's builder computes them."""
    from pyspark.sql import functions as F

    scale = math.lcm(width.denominator, origin.denominator)

    def bound(number: "Column") -> "Column":
        return (F.lit(float(origin * scale)) + number * F.lit(float(width * scale))) / F.lit(float(scale))

    guess = F.floor((value - F.lit(float(origin))) / F.lit(float(width))).cast("double")
    return (
        F.when(value >= bound(guess + 1), bound(guess + 1))
        .when(value < bound(guess), bound(guess - 1))
        .otherwise(bound(guess))
    )


def _exact(number: float) -> Fraction:
    """The number as its decimal text says: 0.1 is one tenth."""
    return Fraction(repr(float(number)))
