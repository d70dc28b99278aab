"""A draft hierarchy for each quasi-identifier. None of them can miss a value that the table holds."""

from dataclasses import dataclass
from fractions import Fraction

from kanon_spark.explore.suggest.fits import fitting_reference
from kanon_spark.explore.suggest.patterns import CODE, DIGITS, ISO_DATE, NUMBER
from kanon_spark.explore.suggest.profile import ColumnProfile
from kanon_spark.explore.suggest.roles import UNIQUE, Verdict
from kanon_spark.explore.suggest.steps import human, open_ends, widths
from kanon_spark.explore.suggest.words import POSTAL_CODE
from kanon_spark.hierarchy.interval import FINEST
from kanon_spark.signatures.domains import DOMAIN_LIMIT

FLAT = 5  # texts with at most so many values have two levels: the value and *
FLAT_CODES = 20  # the same of numbers that are codes, whose ranges would mean little
_MANY = DOMAIN_LIMIT // 2  # more values than these are generalized from the start
_MEASURES = frozenset({"an age", "a birth", "a place", "a body", "a time", "an education", "a family status"})
_EXACT = 2.0**50  # intervals are exact below 2^53
_DAY = 86_400
_SHORT, _LONG = 60, 15 * 366  # days
_PREFIXES = 4  # levels of prefixes at most


@dataclass(frozen=True)
class Drafted:
    """How a quasi-identifier is to be generalized.

    Attributes:
        hierarchy: As a configuration writes it; None for ranges and sets.
        min_level: Level that values are generalized to from the start.
        words: The same for people.
    """

    hierarchy: object | None
    words: str
    min_level: int = 0

    def spec(self) -> dict[str, object]:
        """The quasi-identifier's entry in a configuration."""
        spec: dict[str, object] = {} if self.hierarchy is None else {"hierarchy": self.hierarchy}
        return {**spec, "min_level": self.min_level} if self.min_level else spec


def draft_hierarchy(verdict: Verdict) -> Drafted | None:
    """A hierarchy for a quasi-identifier; None where it has too many values for any."""
    column = verdict.profile
    drafted = _drafted(verdict)
    if column.values <= _MANY:
        return drafted
    # Beyond the limit values must be grouped before they come to the driver; what has no levels cannot be.
    if drafted.hierarchy is None or drafted.hierarchy == "flat":
        return None
    return Drafted(drafted.hierarchy, f"{drafted.words}, from the first level on", 1)


def _drafted(verdict: Verdict) -> Drafted:
    match verdict.profile.kind:
        case "boolean":
            return Drafted("flat", "each value, then *")
        case "date" | "timestamp":
            return _dates(verdict.profile)
        case "integer" | "real":
            return _numbers(verdict)
    return _texts(verdict)


def _dates(column: ColumnProfile) -> Drafted:
    clock = column.kind == "timestamp"
    spread = column.spread
    days = 0.0 if spread is None else (spread.usual or spread.largest - spread.least) / (_DAY if clock else 1)
    levels = ["day"] if clock else []
    if days > _LONG:
        levels += ["month", "year", "decade"]
    elif days > _SHORT:
        levels += ["month", "quarter", "year"]
    elif not levels:
        return Drafted(None, "ranges of days: its dates lie close together")
    return Drafted({"date": {"levels": levels}}, f"{', '.join(levels)}, then *")


def _numbers(verdict: Verdict) -> Drafted:
    column, name = verdict.profile, verdict.name
    sense = name.of("quasi")
    if sense == POSTAL_CODE and column.kind == "integer":
        return _postal_numbers(column)
    reference = fitting_reference(column, name)
    if reference is not None:
        return Drafted(reference.spec, f"the taxonomy {reference.name}")
    codes = name.id_like or (sense is not None and sense.title not in _MEASURES)
    if codes and column.values <= FLAT_CODES:
        return Drafted("flat", "codes: each value, then *")
    if codes or column.spread is None:
        return Drafted(None, "ranges")
    spread = column.spread
    steps = widths(spread, finest=_finest(column))
    if not steps:
        return Drafted(None, "ranges: its values lie close together")
    largest = Fraction(max(abs(spread.least), abs(spread.largest)))  # a float would overflow beside tiny steps
    parts = max(each.denominator for each in steps)
    if parts * largest > _EXACT or parts > FINEST:
        return Drafted(None, "ranges: its numbers are too large or too small for exact intervals")
    bottom, top = open_ends(spread, steps[0])
    interval: dict[str, object] = {"widths": [_plain(step) for step in steps]}
    ends = {"bottom": bottom, "top": top}
    interval.update({key: _plain(end) for key, end in ends.items() if end is not None})
    open_words = " and open ends" if bottom is not None and top is not None else " and an open end"
    words = "intervals" + (open_words if len(interval) > 1 else "")
    return Drafted({"interval": interval}, f"{words}, then *")


def _finest(column: ColumnProfile) -> Fraction:
    """The least width that is coarser than the values: for floating point as fine as the bulk needs."""
    if column.scale is not None:
        return 2 / Fraction(10) ** max(0, column.scale)
    usual = column.spread.usual if column.spread is not None else 0.0
    return human((usual or 1.0) / 10**6)


def _postal_numbers(column: ColumnProfile) -> Drafted:
    spread = column.spread
    digits = set() if spread is None else {len(str(int(end))) for end in (spread.least, spread.largest)}
    if spread is not None and spread.least >= 0 and len(digits) == 1:
        return _prefixes(digits.pop())
    # Leading zeros are lost, or lengths differ: intervals of 10, 100, … are the prefixes of the number.
    longest = max(digits, default=1)
    steps = [10**power for power in range(1, longest)]
    return Drafted({"interval": {"widths": steps}}, "its first digits, then *") if steps else Drafted(None, "ranges")


def _texts(verdict: Verdict) -> Drafted:
    column, name = verdict.profile, verdict.name
    reference = fitting_reference(column, name)
    if reference is not None:
        return Drafted(reference.spec, f"the taxonomy {reference.name}")
    lengths = column.lengths
    if lengths is not None and column.share(ISO_DATE) > UNIQUE:
        keep = [10, 7, 4] if lengths.longest > 10 else [7, 4]
        return Drafted({"prefix": {"keep": keep}}, "month and year by their first characters, then *")
    if lengths is not None and name.of("quasi") == POSTAL_CODE and lengths.longest > 1:
        return _prefixes(lengths.longest)
    if column.values <= FLAT:
        return Drafted("flat", "each value, then *")
    if lengths is not None and _is_fixed_code(column):
        return _prefixes(lengths.longest)
    return Drafted(None, "sets of values")


def _is_fixed_code(column: ColumnProfile) -> bool:
    lengths = column.lengths
    same = lengths is not None and lengths.shortest == lengths.longest and 3 <= lengths.longest <= 20
    return same and column.share(CODE) > 0.99 and column.share(DIGITS) > UNIQUE


def _prefixes(length: int) -> Drafted:
    """Shorter and shorter prefixes.

    >>> _prefixes(5).hierarchy, _prefixes(10).hierarchy
    ({'prefix': {'keep': [4, 3, 2, 1]}}, {'prefix': {'keep': [8, 6, 4, 2]}})
    """
    if length < 2:
        return Drafted("flat", "each value, then *")
    if length <= _PREFIXES + 1:
        keep = list(range(length - 1, 0, -1))
    else:
        keep = [length * part // (_PREFIXES + 1) for part in range(_PREFIXES, 0, -1)]
    return Drafted({"prefix": {"keep": keep}}, "its first characters, then *")


def is_number_text(column: ColumnProfile) -> bool:
    """Whether a text column holds numbers, of which intervals could be made were it one of numbers."""
    return column.kind == "text" and column.share(NUMBER) > UNIQUE


def _plain(number: Fraction) -> int | float:
    return int(number) if number.denominator == 1 else float(number)
