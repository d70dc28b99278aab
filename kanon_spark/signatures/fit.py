"""Which hierarchies suit which kinds of columns."""

from kanon_spark.config.models import DateSpec, FileSpec, HierarchySpec, IntervalSpec
from kanon_spark.errors import HierarchyError
from kanon_spark.hierarchy.tree import Kind


def misfit(spec: HierarchySpec | None, kind: Kind, *, qi: str) -> HierarchyError | None:
    """What is wrong with a hierarchy on a column of this kind, None if nothing is.

    >>> from kanon_spark.config.models import IntervalSpec
    >>> misfit(IntervalSpec(widths=[5]), "text", qi="zip").message
    'an interval hierarchy needs a numeric column, this one is text'
    """
    where = f"columns.quasi_identifiers.{qi}"
    if isinstance(spec, IntervalSpec) and kind not in {"integer", "real"}:
        dates = kind in {"date", "timestamp"}
        return HierarchyError(
            f"an interval hierarchy needs a numeric column, this one is {kind}",
            where=where,
            fix="use {date: {levels: [month, quarter, year]}}" if dates else "use prefix, flat or a CSV file",
        )
    if isinstance(spec, DateSpec) and kind not in {"date", "timestamp"}:
        return HierarchyError(
            f"a date hierarchy needs a date or timestamp column, this one is {kind}",
            where=where,
            fix="cast the column to date, or use another hierarchy",
        )
    if isinstance(spec, FileSpec) and spec.stem is not None and kind != "text":
        return HierarchyError(
            f"the codes of this hierarchy are texts, the column is {kind}", where=where, fix="cast the column to string"
        )
    return None
