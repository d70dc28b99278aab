"""The values that the data holds in QIs whose hierarchy is built over them: one job for all, written once.

The dictionaries (value to leaf code) are raw data: they stay under the work folder as parquet and never become literals
of a plan.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from kanon_spark.errors import DataError, InternalError
from kanon_spark.hierarchy.tree import ORDERED, Domain, Kind
from kanon_spark.signatures.columns import position

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

DOMAIN_LIMIT = 2_000_000  # most distinct values of one QI; they are collected on the driver to build the tree
_COLLECTED_AT_ONCE = 4_000_000  # most entries collected in one go; above, QI by QI


@dataclass(frozen=True)
class DomainRequest:
    """One QI whose values are wanted.

    Attributes:
        index: Its number among the QIs.
        name: Column name, for messages.
        ident: Its normalised value, or the value's representative with `min_level`.
        kind: What the ident is.
        by_count: Number the values by falling frequency, not in their own order (sets: text without a hierarchy).
        rank: Number them by this expression over `ident` first; None for their own order.
    """

    index: int
    name: str
    ident: "Column"
    kind: Kind
    by_count: bool
    rank: "Column | None" = None


@dataclass(frozen=True)
class Dictionaries:
    """The dictionaries of a run: `domain[i]` for the tree, `table(i)` to join with."""

    domains: dict[int, Domain]
    entries: "DataFrame"

    def table(self, index: int) -> "DataFrame":
        """(code int, ident) of one QI; null, where the data holds it, has the last code."""
        from pyspark.sql import functions as F

        own = self.entries.where(F.col("qi") == index)
        return own.select("code", F.col(f"ident{index}").alias("ident"))


def read_domains(
    spark: "SparkSession", source: "DataFrame", requests: Sequence[DomainRequest], *, path: str
) -> Dictionaries:
    """Find, number and write the distinct values of the given QIs.

    Raises:
        DataError: A QI has more than `DOMAIN_LIMIT` distinct values.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    # One narrow branch per QI instead of one wide grouping set: a columnar source reads each column once, and
    # grouping by one column is several times cheaper than by all.
    branches = [_distinct(source, request) for request in requests]
    types = {request.index: branch.schema["ident"].dataType for request, branch in zip(requests, branches, strict=True)}
    parts = []
    for request, branch in zip(requests, branches, strict=True):
        idents = [
            (F.col("ident") if index == request.index else F.lit(None).cast(data_type)).alias(f"ident{index}")
            for index, data_type in types.items()
        ]
        parts.append(
            branch.select(F.lit(request.index).alias("qi"), "text", "position", "rank", "tie", "rows", *idents)
        )
    order = Window.partitionBy("qi").orderBy(F.col("text").isNull(), F.col("rank"), F.col("tie"), F.col("text"))
    coded = reduce(lambda left, right: left.unionByName(right), parts)
    coded = coded.withColumn("code", F.row_number().over(order) - 1).drop("rank", "tie")
    coded.write.mode("overwrite").parquet(path)
    entries = spark.read.schema(coded.schema).parquet(path)
    tables = _collect(entries, requests)
    for request in requests:
        _refuse_wide(request, tables[request.index].num_rows)
        _refuse_collisions(request, tables[request.index])
    return Dictionaries({request.index: _domain(tables[request.index], request.kind) for request in requests}, entries)


def _distinct(source: "DataFrame", request: DomainRequest) -> "DataFrame":
    from pyspark.sql import functions as F

    grouped = source.select(request.ident.alias("ident")).groupBy("ident").agg(F.count(F.lit(1)).alias("rows"))
    # A column of all-different values must fail, not fill one task with billions of rows to number.
    bounded = grouped.limit(DOMAIN_LIMIT + 2)
    where = position(F.col("ident"), request.kind)
    own = where if request.rank is None else request.rank
    rank = -F.col("rows").cast("double") if request.by_count else own
    return bounded.select(
        "ident",
        F.col("ident").cast("string").alias("text"),
        where.alias("position"),
        rank.alias("rank"),
        (_beyond_doubles(where) if request.kind in ORDERED else F.lit("")).alias("tie"),
        "rows",
    )


def _beyond_doubles(where: "Column") -> "Column":
    """Orders longs and decimals that share one double (beyond 2^53) by their digits, so that ranges are true."""
    from pyspark.sql import functions as F

    text = F.col("ident").cast("string")
    negative = F.lpad(F.translate(text, "0123456789", "9876543210"), 48, "~")
    return F.when(where < 0, negative).otherwise(F.lpad(text, 48, " "))


def _refuse_wide(request: DomainRequest, size: int) -> None:
    if size > DOMAIN_LIMIT:
        raise DataError(
            f"the column has more than {DOMAIN_LIMIT:,} distinct values",
            where=f"columns.quasi_identifiers.{request.name}",
            fix="set min_level, so that values are generalized from the start, or round them in the source",
        )


def _refuse_collisions(request: DomainRequest, table: "pa.Table") -> None:
    """Texts travel as their hashes: with two million values the chance that two share one is 1 in 10 million."""
    if request.kind == "text" and len(np.unique(table["hash"].to_numpy())) < table.num_rows:
        raise InternalError("two values of the column share a 64-bit hash", where=request.name)


def _collect(entries: "DataFrame", requests: Sequence[DomainRequest]) -> "dict[int, pa.Table]":
    """Bring the entries to the driver: at most DOMAIN_LIMIT + 2 per QI, and QI by QI if they are many together."""
    from pyspark.sql import functions as F

    fields = entries.select("qi", "code", "text", "position", "rows", F.xxhash64("text").alias("hash"))
    together = fields.limit(_COLLECTED_AT_ONCE + 1).toArrow()
    if together.num_rows > _COLLECTED_AT_ONCE:
        return {request.index: fields.where(F.col("qi") == request.index).toArrow() for request in requests}
    qi = together["qi"].to_numpy()
    return {request.index: together.filter(qi == request.index) for request in requests}


def _domain(table: "pa.Table", kind: Kind) -> Domain:
    table = table.sort_by("code")
    texts = table["text"].to_pylist()
    has_null = bool(texts) and texts[-1] is None
    known = len(texts) - has_null
    positions = table["position"].to_numpy()[:known].astype(np.float64)
    return Domain(
        kind=kind,
        texts=tuple(texts[:known]),
        positions=positions if kind in ORDERED else np.full(known, np.nan),
        counts=table["rows"].to_numpy()[:known].astype(np.int64),
        has_null=has_null,
    )
