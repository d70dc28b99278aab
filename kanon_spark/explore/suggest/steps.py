"""Interval widths that people count in: 1, 2, 5, 10, 20, 50, … each a multiple of the one before."""

import math
from collections.abc import Iterator
from fractions import Fraction

from kanon_spark.explore.suggest.profile import Spread

_FIRST_CUT = 10  # the bulk of the values falls into about so many of the finest intervals
_COARSEST = 0.6  # no width above this share of the usual range: two intervals would hold nearly all
_DOUBLED = 3  # more intervals than these at the coarsest width: one more level of twice the width
_MOST_LEVELS = 6
_FAR = 0.5  # an end that lies further out than this share of the usual range gets an open interval


def human(number: float) -> Fraction:
    """The number of the form 1, 2 or 5 times a power of ten that is nearest by ratio.

    >>> [float(human(each)) for each in (0.003, 3.1, 4.4, 18, 800)]
    [0.002, 2.0, 5.0, 20.0, 1000.0]
    """
    power = math.floor(math.log10(number))
    around = [mantissa * Fraction(10) ** exponent for exponent in (power, power + 1) for mantissa in (1, 2, 5)]
    return min(around, key=lambda each: (abs(math.log(float(each) / number)), each))


def widths(spread: Spread, *, finest: Fraction) -> tuple[Fraction, ...]:
    """Nesting widths for numbers that lie so; none where the values are too few or too close for intervals.

    Args:
        spread: Where the numbers lie.
        finest: The least width that says less than the value itself: 2 for whole numbers.

    >>> [int(each) for each in widths(Spread(17, 90, (17, 22, 37, 58, 80)), finest=Fraction(2))]
    [5, 10, 20]
    """
    usual = spread.usual or spread.largest - spread.least
    bulk = spread.core or usual
    limit = Fraction(_COARSEST) * Fraction(usual)
    if usual <= 0 or finest > limit:
        return ()
    width = max(finest, human(bulk / _FIRST_CUT))
    if width > limit:
        width = finest
    found = [width]
    while len(found) < _MOST_LEVELS:
        following = next(each for each in _humans_above(width) if each % width == 0)
        if following > limit:
            break
        found.append(width := following)
    if usual / float(width) > _DOUBLED and 2 * width <= limit:
        found.append(2 * width)
    return tuple(found)


def _humans_above(width: Fraction) -> Iterator[Fraction]:
    power = math.floor(math.log10(float(width)))
    exponent = power
    while True:
        for mantissa in (1, 2, 5):
            number = mantissa * Fraction(10) ** exponent
            if number > width:
                yield number
        exponent += 1


def open_ends(spread: Spread, width: Fraction) -> tuple[Fraction | None, Fraction | None]:
    """Where open intervals begin below and above, as multiples of a width: where an end lies far from all others.

    >>> open_ends(Spread(0, 99_999, (0, 20, 40, 60, 98)), Fraction(5))
    (None, Fraction(100, 1))
    """
    low, high = spread.low, spread.high
    reach = _FAR * (spread.usual or float(width))
    bottom = top = None
    if low - spread.least > reach or spread.infinite:
        bottom = math.floor(Fraction(low) / width) * width
    if spread.largest - high > reach or spread.infinite:
        top = (math.floor(Fraction(high) / width) + 1) * width
    return bottom, top
