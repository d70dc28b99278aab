"""A table's profile, counted by Spark: a few aggregates, and the values of columns that have few."""

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from kanon_spark.errors import DataError, EmptyTableError, UnsupportedTypeError
from kanon_spark.explore.suggest.patterns import ALL
from kanon_spark.explore.suggest.profile import (
    QUANTILES,
    VALUES_LIMIT,
    ColumnProfile,
    Lengths,
    Spread,
    TableProfile,
)
from kanon_spark.hierarchy.tree import ORDERED, Kind
from kanon_spark.io.content import content_hash
from kanon_spark.signatures.columns import kind_of, normalised, position

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

LOOKED_AT = 200_000  # rows whose shapes, lengths and quantiles are looked at, roughly; distinct values: all rows
_AT_ONCE = 40  # columns in one aggregate: more would make plans that Spark does not compile
_SKETCH = 12  # registers of a distinct count, as a power of two: an error of 1.6%
_ACCURACY = 10_000  # of quantiles: one in so many rows
_MARGIN = 1.2  # beyond the error of approximate counts


def profile_table(table: "DataFrame", *, looked_at: int = LOOKED_AT) -> TableProfile:
    """Look at every column.

    Passes over the rows: their number, distinct values and ends, shapes and quantiles (in a larger table of one in so
    many rows, chosen by their content), and a narrow one per column with few values.

    Raises:
        EmptyTableError: There is no row.
        DataError: Several columns have the same name, case aside.
    """
    names = table.columns
    lowered = [name.lower() for name in names]
    doubled = sorted({name for name in lowered if lowered.count(name) > 1})
    if doubled:
        listed = ", ".join(f"'{name}'" for name in doubled)
        raise DataError(f"several columns are called {listed}, case aside", where="source", fix="rename them")
    rows = table.count()
    if rows == 0:
        raise EmptyTableError("the table has no rows", where="source", fix="check the path")
    kinds = {field.name: _kind(field.dataType) for field in table.schema.fields}
    one_in = -(-rows // looked_at)
    seen = table
    if one_in > 1:
        from pyspark.sql import functions as F

        # By content, so that the same table gives the same part, however it is partitioned.
        seen = table.where(F.pmod(content_hash(table, names), F.lit(one_in)) == 0)
        if seen.count() < rows // one_in // 2:  # many equal rows: so few of their kinds tell too little
            seen, one_in = table, 1
    counted = _counts(table, kinds)
    shapes = _looks(seen, kinds)
    few = [name for name in names if kinds[name] and 0 < counted[name]["distinct"] <= VALUES_LIMIT * _MARGIN]
    values = _values(table, few)
    columns = tuple(
        _column(field.name, field.dataType, kinds[field.name], rows, counted[field.name], shapes, values)
        for field in table.schema.fields
    )
    return TableProfile(rows, columns, one_in)


def _kind(data_type: "DataType") -> Kind | None:
    try:
        return kind_of(data_type, qi="")
    except UnsupportedTypeError:
        return None


def _counts(table: "DataFrame", kinds: dict[str, Kind | None]) -> dict[str, dict[str, Any]]:
    """Filled rows, distinct values and ends of every column; of nested and other types the filled rows alone."""
    from pyspark.sql import functions as F

    from kanon_spark.signatures.columns import quoted

    wanted: dict[str, dict[str, Column]] = {}
    for name, kind in kinds.items():
        value = normalised(table, name) if kind else F.col(quoted(name))
        wanted[name] = {
            "filled": F.count(value),
            "distinct": _distinct(value) if kind else F.lit(0),
        }
        if kind in ORDERED:
            finite, endless = _finite(value, kind)
            wanted[name] |= {"least": F.min(finite), "largest": F.max(finite), "infinite": F.count_if(endless)}
    return _aggregated(table, wanted)


def _distinct(value: "Column") -> "Column":
    """Approximately how many different values: a sketch is one field of a plan, approx_count_distinct hundreds."""
    from pyspark.sql import functions as F

    hashed = F.when(value.isNotNull(), F.xxhash64(value))
    return F.coalesce(F.hll_sketch_estimate(F.hll_sketch_agg(hashed, _SKETCH)), F.lit(0))


def _finite(value: "Column", kind: Kind) -> "tuple[Column, Column]":
    """Where a value lies, null for infinities, and whether it is one."""
    from pyspark.sql import functions as F

    place = position(value, kind)
    endless = F.abs(place) == F.lit(float("inf"))
    return F.when(~endless, place), endless


def _looks(table: "DataFrame", kinds: dict[str, Kind | None]) -> dict[str, dict[str, Any]]:
    """Shapes and lengths of texts, where numbers and times lie."""
    from pyspark.sql import functions as F

    wanted: dict[str, dict[str, Column]] = {}
    for name, kind in kinds.items():
        value = normalised(table, name) if kind else None
        if kind == "text" and value is not None:
            length = F.length(value)
            wanted[name] = {
                "shortest": F.min(length),
                "longest": F.max(length),
                "mean": F.avg(length),
                **{shape: F.avg(value.rlike(pattern).cast("double")) for shape, pattern in ALL.items()},
            }
        elif kind in ORDERED and value is not None:
            finite, _ = _finite(value, kind)
            wanted[name] = {"quantiles": F.percentile_approx(finite, list(QUANTILES), _ACCURACY)}
    return _aggregated(table, wanted)


def _aggregated(table: "DataFrame", wanted: "dict[str, dict[str, Column]]") -> dict[str, dict[str, Any]]:
    """One row per batch of columns comes back."""
    found: dict[str, dict[str, Any]] = {}
    for batch in _batches(list(wanted), _AT_ONCE):
        measures = [
            column.alias(f"{place}_{index}")
            for place, name in enumerate(batch)
            for index, column in enumerate(wanted[name].values())
        ]
        row = table.agg(*measures).first()
        assert row is not None
        for place, name in enumerate(batch):
            found[name] = {key: row[f"{place}_{index}"] for index, key in enumerate(wanted[name])}
    return found


def _values(table: "DataFrame", names: Sequence[str]) -> dict[str, dict[str, int]]:
    """Every value with its rows, of columns that have few: at most one more than `VALUES_LIMIT` of each come back."""
    from pyspark.sql import functions as F

    found: dict[str, dict[str, int]] = {}
    for batch in _batches(names, _AT_ONCE):
        branches = [
            table.select(normalised(table, name).cast("string").alias("value"))
            .where(F.col("value").isNotNull())
            .groupBy("value")
            .agg(F.count(F.lit(1)).alias("rows"))
            .limit(VALUES_LIMIT + 1)
            .withColumn("place", F.lit(place))  # last, so that all branches but for it are the same compiled code
            for place, name in enumerate(batch)
        ]
        for row in reduce(lambda left, right: left.unionAll(right), branches).collect():
            found.setdefault(batch[row["place"]], {})[row["value"]] = int(row["rows"])
    return {name: counts for name, counts in found.items() if len(counts) <= VALUES_LIMIT}


def _batches(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (names[start : start + size] for start in range(0, len(names), size))


def _column(
    name: str,
    data_type: "DataType",
    kind: Kind | None,
    rows: int,
    counted: dict[str, Any],
    looks: dict[str, dict[str, Any]],
    values: dict[str, dict[str, int]],
) -> ColumnProfile:
    seen = looks.get(name, {})
    lengths = None
    if seen.get("longest") is not None:
        lengths = Lengths(int(seen["shortest"]), int(seen["longest"]), float(seen["mean"]))
    spread = None
    if seen.get("quantiles") is not None:
        quantiles = tuple(float(each) for each in seen["quantiles"])
        spread = Spread(float(counted["least"]), float(counted["largest"]), quantiles, int(counted["infinite"]))
    return ColumnProfile(
        name=name,
        type=data_type.simpleString(),
        kind=kind,
        rows=rows,
        filled=int(counted["filled"]),
        distinct=int(counted["distinct"]),
        shapes={shape: float(seen[shape] or 0.0) for shape in ALL if shape in seen},
        lengths=lengths,
        spread=spread,
        scale=_scale(data_type, kind),
        counts=values.get(name),
    )


def _scale(data_type: "DataType", kind: Kind | None) -> int | None:
    return None if kind == "real" and not hasattr(data_type, "scale") else int(getattr(data_type, "scale", 0))


def count_persons(table: "DataFrame", names: Iterable[str]) -> dict[str, int]:
    """Exactly how many different values, a null row being one of its own, each of a few columns has."""
    from pyspark.sql import functions as F

    chosen = list(names)
    if not chosen:
        return {}
    columns = [normalised(table, name) for name in chosen]
    row = table.agg(
        *[
            (F.count_distinct(column) + F.count_if(column.isNull())).alias(f"p{index}")
            for index, column in enumerate(columns)
        ]
    ).first()
    assert row is not None
    return {name: int(row[f"p{index}"]) for index, name in enumerate(chosen)}
