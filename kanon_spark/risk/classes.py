"""A table as classes: one row per distinct tuple of quasi-identifiers, by hashes and counts alone.

Each quasi-identifier travels as one long, a hash of its value. Two values of a column share one with a chance of 1 in
10^19 per pair, and nothing raw leaves the scan.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kanon_spark.io.content import hashable
from kanon_spark.risk.request import no_rows
from kanon_spark.risk.sizes import PopulationSize, Sizes
from kanon_spark.signatures.columns import one_form, quoted, type_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType


def value_of(table: "DataFrame", name: str, data_type: "DataType | None" = None) -> "Column":
    """A column's values with one form each, ready to be hashed; read as another type where one is given."""
    from pyspark.sql import functions as F

    own = type_of(table, name)
    column = F.col(quoted(name))
    if data_type is not None and data_type != own:
        return one_form(column.try_cast(data_type), data_type)
    return hashable(one_form(column, own), own)


def text_of(table: "DataFrame", name: str) -> "Column":
    """A column's values as texts: arrays and structs as JSON."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    own = type_of(table, name)
    column = F.col(quoted(name))
    if isinstance(own, T.ArrayType | T.StructType):
        return F.to_json(column)
    if isinstance(own, T.BinaryType):
        return F.hex(column)
    return one_form(column, own).cast("string")


def value_hash(value: "Column") -> "Column":
    """One long per value; null has its own."""
    from pyspark.sql import functions as F

    return F.xxhash64(value, value.isNull())


def person_of(table: "DataFrame", unit: str) -> "Column":
    """One long per person, null where the row names none."""
    from pyspark.sql import functions as F

    value = value_of(table, unit)
    return F.when(value.isNotNull(), F.xxhash64(value))


def hash_names(count: int) -> list[str]:
    """Names under which the quasi-identifiers' hashes travel."""
    return [f"q{index}" for index in range(count)]


def classes_of(
    table: "DataFrame", qi: Sequence[str], *, unit: str | None = None, types: "Sequence[DataType] | None" = None
) -> "DataFrame":
    """The table's classes: `q0`, `q1`, … `rows` and `size`; with a unit also who is in them.

    Args:
        table: Any table.
        qi: Its quasi-identifiers.
        unit: Column of the person; `size` counts persons then, a row without one as a person of its own. `first` and
            `last` are the least and the largest hash of a person, `nobody` the rows without one.
        types: Types to read the quasi-identifiers as, so that two tables have the same hashes for the same values.
    """
    from pyspark.sql import functions as F

    wanted = types or [type_of(table, name) for name in qi]
    names = hash_names(len(qi))
    columns = [
        value_hash(value_of(table, name, kind)).alias(alias)
        for name, kind, alias in zip(qi, wanted, names, strict=True)
    ]
    rows = F.count(F.lit(1)).alias("rows")
    if unit is None:
        return table.select(*columns).groupBy(*names).agg(rows).withColumn("size", F.col("rows"))
    person = F.col("person")
    nobody = F.count_if(person.isNull())
    return (
        table.select(*columns, person_of(table, unit).alias("person"))
        .groupBy(*names)
        .agg(
            rows,
            (F.count_distinct(person) + nobody).alias("size"),
            F.min(person).alias("first"),
            F.max(person).alias("last"),
            nobody.alias("nobody"),
        )
    )


def sizes_of(table: "DataFrame", classes: "DataFrame", *, unit: str | None = None, what: str = "table") -> Sizes:
    """How many classes have which size.

    Bounded: sizes that add up to at most n cannot have more than √(2n) different values.
    """
    from pyspark.sql import functions as F

    measures = [F.count(F.lit(1)).alias("classes"), F.sum("rows").alias("rows")]
    if unit is not None:
        # A person may be alone in several classes, and counts once.
        alone = F.when(F.col("size") == 1, F.col("first"))
        measures.append((F.count_distinct(alone) + F.count_if(alone.isNull())).alias("unique"))
    found = classes.groupBy("size").agg(*measures).collect()
    if not found:
        raise no_rows(what)
    by_size = {int(row["size"]): row for row in found}
    rows = sum(int(row["rows"]) for row in found)
    unique = 0 if 1 not in by_size else int(by_size[1]["unique" if unit is not None else "rows"])
    return Sizes(
        rows=rows,
        counted="rows" if unit is None else "persons",
        classes={size: int(row["classes"]) for size, row in sorted(by_size.items())},
        unique=unique,
        records=rows if unit is None else _persons(table, unit),
    )


def _persons(table: "DataFrame", unit: str) -> int:
    from pyspark.sql import functions as F

    person = person_of(table, unit)
    row = table.agg(F.count_distinct(person) + F.count_if(person.isNull())).first()
    return int(row[0]) if row is not None else 0


def population_sizes(classes: "DataFrame", population: "DataFrame", *, width: int) -> list[PopulationSize]:
    """How large the table's classes are in a population that the table is a part of.

    Args:
        classes: The table's classes.
        population: The population's, with the same hashes.
        width: Quasi-identifiers.

    Returns:
        One entry per size in the population: at most √(2N) for a population of N. A class of which it has fewer records
        than the table is as large as in the table, for the population holds the table.
    """
    from pyspark.sql import functions as F

    names = hash_names(width)
    there = population.select(*names, F.col("size").alias("there"))
    size = F.greatest(F.coalesce(F.col("there"), F.lit(0)), F.col("size"))
    joined = classes.join(there, names, "left").select(
        size.alias("population"), "size", (F.coalesce(F.col("there"), F.lit(0)) < F.col("size")).alias("absent")
    )
    found = joined.groupBy("population").agg(
        F.count(F.lit(1)).alias("classes"), F.sum("size").alias("records"), F.count_if("absent").alias("absent")
    )
    parts = [PopulationSize(*(int(part) for part in row)) for row in found.collect()]
    return sorted(parts, key=lambda part: part.size)
