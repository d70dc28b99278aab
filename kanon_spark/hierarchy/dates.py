"""Calendar hierarchies: day, month, quarter, year, decade."""

from itertools import pairwise
from typing import get_args

import numpy as np

from kanon_spark.config.hierarchy_specs import DateLevel
from kanon_spark.config.models import DateSpec
from kanon_spark.errors import HierarchyError
from kanon_spark.hierarchy.assemble import Level, Longs, Skeleton, number_runs, run_starts, stack
from kanon_spark.hierarchy.tree import Domain, Floats

FINE_TO_COARSE: tuple[DateLevel, ...] = get_args(DateLevel)
DAY_SECONDS = 86_400.0
# Length of a period in months.
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
_EPOCH = 1970


def build_dates(spec: DateSpec, domain: Domain, *, where: str, min_level: int) -> tuple[Skeleton, float]:
    """Levels of calendar periods over the domain; returns the tree and the domain range that its widths refer to.

    With `min_level` the domain's entries are first days of that level's periods, and the leaves are the periods.
    """
    if domain.kind not in {"date", "timestamp"}:
        raise HierarchyError(
            f"a date hierarchy needs a date or timestamp column, this one is {domain.kind}",
            where=where,
            fix="cast the column to date, or use another hierarchy",
        )
    ranks = [FINE_TO_COARSE.index(level) for level in spec.levels]
    if any(coarse <= fine for fine, coarse in pairwise(ranks)):
        raise HierarchyError(
            "the levels of a date hierarchy do not go from fine to coarse",
            where=where,
            fix=f"order them as in {', '.join(FINE_TO_COARSE)}",
        )
    clock = domain.kind == "timestamp"
    days = np.floor(domain.positions / DAY_SECONDS if clock else domain.positions).astype(np.int64)
    levels = [_level(level, days, clock=clock) for level in spec.levels[max(0, min_level - 1) :]]
    if not min_level:
        return stack(domain.texts, levels, leaf_width=np.zeros(len(days))), domain.span
    base = levels[0]
    widths = np.asarray(base.width)[base.group]
    labels = [base.labels[group] for group in base.group.tolist()]
    span = float(domain.positions[-1] + widths[-1] - domain.positions[0]) if len(days) else 0.0
    return stack(labels, levels[1:], leaf_width=widths), span


def _level(level: DateLevel, days: Longs, *, clock: bool) -> Level:
    """One level. A period is as wide as from its first to its last day, or on the clock from its start to its end."""
    if level == "day":
        group = number_runs(days)
        first = days[run_starts(group)]
        labels = [str(day) for day in first.astype("datetime64[D]")]
        return Level(group, labels, np.full(len(first), DAY_SECONDS if clock else 0.0))
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    length = _MONTHS[level]
    # Decades start at years divisible by ten, and 1970 is one, so every period is a multiple of its length from there.
    period = months // length
    group = number_runs(period)
    number = period[run_starts(group)]
    start = (number * length).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    end = ((number + 1) * length).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    days_long = (end - start).astype(np.float64)
    width: Floats = days_long * DAY_SECONDS if clock else days_long - 1
    return Level(group, [_label(level, int(each) * length) for each in number], width)


def _label(level: DateLevel, month: int) -> str:
    """Label of the period that starts with a month, counted from 1970-01."""
    year, index = _EPOCH + month // 12, month % 12
    match level:
        case "month":
            return f"{year:04d}-{index + 1:02d}"
        case "quarter":
            return f"{year:04d}-Q{index // 3 + 1}"
        case "decade":
            return f"{year:04d}s"
        case _:
            return f"{year:04d}"
