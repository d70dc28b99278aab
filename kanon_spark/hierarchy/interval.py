"""Interval hierarchies: nested half-open intervals counted from an origin, with open ends.

Bounds are computed from the decimal texts of widths and origin and rounded once, so that a value never falls into an
interval whose printed bounds do not hold it (0.3 belongs to [0.3, 0.4), although 0.3 / 0.1 < 3 in binary).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from kanon_spark.config.models import IntervalSpec
from kanon_spark.errors import HierarchyError
from kanon_spark.hierarchy.assemble import Level, Longs, Skeleton, number_runs, run_starts, stack
from kanon_spark.hierarchy.labels import plain
from kanon_spark.hierarchy.tree import Domain, Floats, Kind

EXACT = 2.0**53  # above it, doubles skip integers
FINEST = 2**900  # parts of 1 that widths may be told in: a few more, and they are no doubles


@dataclass(frozen=True)
class _Grid:
    """The finest intervals in use: number g is [bound(g), bound(g + 1)), cut off at bottom and top."""

    spec: IntervalSpec
    width: Fraction
    integer: bool

    @property
    def scale(self) -> int:
        """Common denominator of origin and width."""
        return math.lcm(_exact(self.spec.origin).denominator, self.width.denominator)

    def bounds(self, numbers: Longs) -> Floats:
        """Lower bounds: one division of two exact integers each, so rounded once."""
        origin, width = int(_exact(self.spec.origin) * self.scale), int(self.width * self.scale)
        return (origin + numbers * width) / float(self.scale)

    def numbers(self, values: Floats, *, slack: float) -> Longs:
        """Number of the interval of each value; `slack` (in widths) forgives what rounding took from a lower bound."""
        guess = np.floor((values - self.spec.origin) / float(self.width)).astype(np.int64)
        shifted = values + slack * float(self.width)
        return guess + (shifted >= self.bounds(guess + 1)) - (shifted < self.bounds(guess))

    def ends(self, numbers: Longs, ratio: int) -> tuple[Floats, Floats]:
        """Printed ends of intervals as wide as `ratio` of the finest: closed for integers, else half-open."""
        low, high = self.bounds(numbers * ratio), self.bounds((numbers + 1) * ratio)
        if self.spec.bottom is not None:
            low = np.maximum(low, self.spec.bottom)
        if self.spec.top is not None:
            high = np.minimum(high, self.spec.top)
        return (np.ceil(low), np.ceil(high) - 1) if self.integer else (low, high)

    def label(self, low: float, high: float) -> str:
        if self.integer:
            return plain(low) if low == high else f"[{plain(low)}, {plain(high)}]"
        return f"[{plain(low)}, {plain(high)})"


def build_intervals(spec: IntervalSpec, domain: Domain, *, where: str, min_level: int) -> tuple[Skeleton, float]:
    """Levels of nested intervals over the domain; returns the tree and the domain range that its widths refer to.

    With `min_level` the domain's entries are lower bounds of that level's intervals (below `bottom` and from `top` on:
    any value there), and the leaves are the intervals themselves.
    """
    _check(spec, domain.kind, where)
    used = spec.widths[min_level - 1 :] if min_level else spec.widths
    grid = _Grid(spec, _exact(used[0]), domain.kind == "integer")
    values = domain.positions
    side = np.zeros(len(values), dtype=np.int64)  # -1 below bottom, 1 from top on
    if spec.bottom is not None:
        side[values < spec.bottom] = -1
    if spec.top is not None:
        side[values >= spec.top] = 1
    inside = values[side == 0]
    _check_size(grid, inside, where)
    numbers = np.zeros(len(values), dtype=np.int64)
    numbers[side == 0] = grid.numbers(inside, slack=1e-9 if min_level and not grid.integer else 0.0)
    levels = [_level(grid, width, numbers, side, values, guess_tails=min_level > 0) for width in used]
    if not min_level:
        return stack(domain.texts, levels, leaf_width=np.zeros(len(values))), domain.span
    base = levels[0]
    widths = np.asarray(base.width)[base.group]
    labels = [base.labels[group] for group in base.group.tolist()]
    reach = values + np.where(side < 0, 0.0, widths)
    known = np.isfinite(reach) & np.isfinite(values)
    span = float(reach[known].max() - values[known].min()) if known.any() else 0.0
    return stack(labels, levels[1:], leaf_width=widths), span


def _level(grid: _Grid, width: float, numbers: Longs, side: Longs, values: Floats, *, guess_tails: bool) -> Level:
    """One level; an open end is one group at every level."""
    spec = grid.spec
    ratio = int(_exact(width) / grid.width)
    coarse = np.where(side == 0, numbers // ratio, 0)
    group = number_runs(side, coarse)
    starts = run_starts(group)
    low, high = grid.ends(coarse[starts], ratio)
    widths = np.maximum(0.0, high - low)
    labels = [grid.label(*ends) for ends in zip(low.tolist(), high.tolist(), strict=True)]
    step = 1.0 if grid.integer else 0.0  # closed integer intervals end one before the bound
    # Where the data's extremes are hidden behind representatives, a tail is taken to be as wide as the widest interval.
    least_tail = spec.widths[-1] - step if guess_tails else 0.0
    if spec.bottom is not None and len(side) and side[0] < 0:
        labels[0] = f"< {plain(spec.bottom)}"
        widths[0] = max(least_tail, spec.bottom - step - float(values[0]))
    if spec.top is not None and len(side) and side[-1] > 0:
        labels[-1] = f">= {plain(spec.top)}"
        widths[-1] = max(least_tail, float(values[-1]) - spec.top)
    return Level(group, labels, widths)


def _check(spec: IntervalSpec, kind: Kind, where: str) -> None:
    if kind not in {"integer", "real"}:
        dates = kind in {"date", "timestamp"}
        raise HierarchyError(
            f"intervals need a numeric column, this one is {kind}",
            where=where,
            fix="use {date: {levels: [month, quarter, year]}}" if dates else "use prefix, flat or a CSV file",
        )
    exact = [_exact(width) for width in spec.widths]
    if not exact or exact[0] <= 0 or any(large <= small or large % small for small, large in pairwise(exact)):
        raise HierarchyError(
            "interval widths do not nest",
            where=where,
            fix="make each width a multiple of the one before, as in [5, 10, 20]",
        )


def _check_size(grid: _Grid, values: Floats, where: str) -> None:
    """Refuse numbers whose intervals could not be told exactly: a label must be true of every value under it."""
    if np.isinf(values).any():
        raise HierarchyError(
            "the column holds infinite values, which fall into no interval",
            where=where,
            fix="give the hierarchy open ends (bottom, top), or clean the column",
        )
    spec = grid.spec
    if grid.scale > FINEST:
        raise HierarchyError(
            "interval widths are too fine to be told exactly", where=where, fix="choose rounder widths and origin"
        )
    if len(values) and grid.scale * (np.abs(values).max() + abs(spec.origin) + spec.widths[-1]) > EXACT:
        raise HierarchyError(
            "the column holds numbers too large for exact intervals"
            + (" with this many decimals" if grid.scale > 1 else " (beyond 2^53)"),
            where=where,
            fix="choose rounder widths and origin, or open ends (bottom, top) that keep such numbers apart",
        )


def _exact(number: float) -> Fraction:
    """The number as its decimal text says: 0.1 is one tenth."""
    return Fraction(repr(float(number)))
