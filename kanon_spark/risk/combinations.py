"""Which quasi-identifiers, alone or together, single rows out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, groupby
from math import comb
from typing import TYPE_CHECKING

from kanon_spark.risk.classes import hash_names, text_of
from kanon_spark.risk.facts import ColumnRank, Combination
from kanon_spark.signatures.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MOST = 512  # combinations that are looked at: of up to three columns up to 14 columns in all, of two up to 31
ALL_UP_TO = 5  # so few columns that all combinations are looked at
USUAL = 3
PER_SIZE = 3  # combinations that are told for each number of columns
# Combinations of values that are grouped. Beyond, one in so many of them is, chosen by its hash: each is looked at with
# all its rows or not at all, so that shares stay unbiased.
GROUPED = 20_000_000

Columns = tuple[int, ...]


@dataclass(frozen=True)
class Told:
    """What was counted of one combination of columns."""

    columns: Columns
    groups: int
    unique_rows: int
    equal_pairs: int


def column_sets(count: int) -> list[Columns]:
    """The combinations of columns to look at, by size and then in order.

    >>> column_sets(3)
    [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    >>> len(column_sets(8)), len(column_sets(10)), len(column_sets(20)), len(column_sets(60))
    (92, 175, 210, 60)
    """
    largest = count if count <= ALL_UP_TO else USUAL
    while largest > 1 and sum(comb(count, size) for size in range(1, largest + 1)) > MOST:
        largest -= 1
    return [chosen for size in range(1, largest + 1) for chosen in combinations(range(count), size)]


def count_sets(classes: "DataFrame", sets: Sequence[Columns], *, step: int = 1, unit: bool = False) -> list[Told]:
    """Group the classes by every combination of columns, in one pass.

    Args:
        classes: As `classes_of` makes them.
        sets: The combinations. At most one row each comes back.
        step: Look at one in so many combinations of values; single columns are always looked at whole.
        unit: The classes know their persons: what one person alone has is unique, in however many rows.
    """
    from pyspark.sql import functions as F

    names = hash_names(max(max(chosen) for chosen in sets) + 1)
    rows = classes.select("rows", *(["first", "last", "nobody"] if unit else []), F.inline(_keys(sets, names)))
    if step > 1:
        single = sum(len(chosen) == 1 for chosen in sets)
        rows = rows.where((F.col("set") < single) | (F.pmod(F.col("key"), F.lit(step)) == 0))
    total = F.sum("rows").alias("rows")
    if unit:
        alone = ((F.col("nobody") == 0) & (F.col("first") == F.col("last"))) | (
            (F.col("nobody") == 1) & F.col("first").isNull()
        )
        groups = rows.groupBy("set", "key").agg(
            total, F.min("first").alias("first"), F.max("last").alias("last"), F.sum("nobody").alias("nobody")
        )
    else:
        alone = F.col("rows") == 1
        groups = rows.groupBy("set", "key").agg(total)
    size = F.col("rows").cast("decimal(19,0)")  # the square of a long needs more than a long
    found = groups.groupBy("set").agg(
        F.count(F.lit(1)).alias("groups"),
        F.coalesce(F.sum(F.when(alone, F.col("rows"))), F.lit(0)).alias("unique_rows"),
        F.sum(size * (size - 1)).alias("equal_pairs"),
    )
    counted = {int(row["set"]): row for row in found.collect()}
    return [
        Told(chosen, *(int(counted[index][name]) for name in ("groups", "unique_rows", "equal_pairs")))
        if index in counted
        else Told(chosen, 0, 0, 0)
        for index, chosen in enumerate(sets)
    ]


def _keys(sets: Sequence[Columns], names: Sequence[str]) -> "Column":
    from pyspark.sql import functions as F

    return F.array(
        *[
            F.struct(
                F.lit(index).alias("set"), F.xxhash64(F.lit(index), *[names[place] for place in chosen]).alias("key")
            )
            for index, chosen in enumerate(sets)
        ]
    )


def rank_columns(told: Sequence[Told], qi: Sequence[str], *, rows: int) -> tuple[ColumnRank, ...]:
    """The single columns, the one that tells most pairs of rows apart first."""
    pairs = rows * (rows - 1)
    ranks = [
        ColumnRank(
            name=qi[each.columns[0]],
            distinct=each.groups,
            distinction=each.groups / rows,
            separation=1 - each.equal_pairs / pairs if pairs else 0.0,
        )
        for each in told
        if len(each.columns) == 1
    ]
    return tuple(sorted(ranks, key=lambda rank: (-rank.separation, -rank.distinct)))


def riskiest(
    told: Sequence[Told], qi: Sequence[str], *, rows: int, step: int = 1, per_size: int = PER_SIZE
) -> tuple[Combination, ...]:
    """For each number of columns the combinations that single out most rows, then those with the smallest classes."""
    found = []
    for size, same in groupby(sorted(told, key=lambda each: len(each.columns)), key=lambda each: len(each.columns)):
        scale = 1 if size == 1 else step
        scaled = [
            Combination(
                columns=tuple(qi[place] for place in each.columns),
                unique_share=min(1.0, each.unique_rows * scale / rows),
                average_size=rows / (each.groups * scale) if each.groups else float(rows),
            )
            for each in same
        ]
        found += sorted(scaled, key=lambda each: (-each.unique_share, each.average_size))[:per_size]
    return tuple(found)


def with_example(table: "DataFrame", combination: Combination, *, unit: str | None) -> Combination:
    """The combination with one unique combination of values, if there is one."""
    from pyspark.sql import functions as F

    if not combination.unique_share:
        return combination
    names = [f"v{index}" for index in range(len(combination.columns))]
    columns = [text_of(table, name).alias(alias) for name, alias in zip(combination.columns, names, strict=True)]
    if unit is None:
        size = F.count(F.lit(1))
    else:
        columns.append(F.col(quoted(unit)).alias("person"))
        size = F.count_distinct("person") + F.count_if(F.col("person").isNull())
    alone = table.select(*columns).groupBy(*names).agg(size.alias("size")).where(F.col("size") == 1)
    row = alone.select(*names).orderBy(*names).first()
    return (
        combination if row is None else replace(combination, example=dict(zip(combination.columns, row, strict=True)))
    )
