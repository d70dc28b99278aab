"""Privacy models beyond k on any table, by Spark aggregates alone.

A class is a group of rows with equal quasi-identifiers. Its histogram says how many persons (rows, without a unit)
carry each value of a sensitive column; a person who carries several values there counts once for each. The distribution
of the release is the sum of all histograms. Definitions, and what null means to each model, are those of
`privacy/README.md`; the code is another: nothing here knows how a method judged its classes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kanon_spark.config.later import LDiversitySpec
from kanon_spark.config.models import SensitiveSpec
from kanon_spark.errors import MissingInputError, RequestError, UnsupportedTypeError
from kanon_spark.verify.asked import Asked, Found
from kanon_spark.verify.distances import hierarchical_distances, ordered_distances
from kanon_spark.verify.facts import Check
from kanon_spark.verify.groups import TUPLE, quoted, tuple_hashes, tuple_parts
from kanon_spark.verify.population import fitting_population

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Sums of shares differ in their last digits. A little more than methods may allow themselves, so that rounding alone
# never refuses a release; strict comparisons stay strict.
SLACK = 2e-9


@dataclass(frozen=True)
class Demand:
    """One model on one column.

    Attributes:
        key: Its key in a configuration.
        asked: What every class must have, in words.
        value: What a class has, as an aggregate over its rows of the histogram; None where a distance of its own file
            computes it.
        good: Whether that is enough.
        rising: More is better.
    """

    key: str
    asked: str
    value: "Column | None"
    good: "Callable[[Column], Column]"
    rising: bool = False


def model_checks(
    table: "DataFrame", *, qi: Sequence[str], k: int, asked: Asked, unit: str | None = None
) -> tuple[Check, ...]:
    """One check per model and column; arguments and errors are those of `find_models`."""
    return tuple(found.check for found in find_models(table, qi=qi, k=k, asked=asked, unit=unit))


def find_models(
    table: "DataFrame", *, qi: Sequence[str], k: int, asked: Asked, unit: str | None = None
) -> tuple[Found, ...]:
    """What the classes of a table have of each model and column.

    Args:
        table: Any table.
        qi: Its quasi-identifiers.
        k: The k of a person who does not say its own.
        asked: The models.
        unit: Column of the protected person; None counts rows.

    Raises:
        MissingInputError: The table lacks a column that was named.
        UnsupportedTypeError: A model says nothing about a column of such a type.
        RequestError: A sensitive column is a quasi-identifier too.
        CoverageError: A hierarchy file misses values of the sensitive column.
    """
    _check_columns(table, qi, asked)
    rows = _tuples(table, qi=qi, unit=unit)
    found: list[Found] = []
    for name, spec in asked.sensitive.items():
        found += _of_column(rows, name, spec, asked, counted=unit is not None)
    if asked.personal_k is not None:
        found.append(_wishes(rows, asked.personal_k, k=k, counted=unit is not None))
    if asked.population is not None:
        found.append(fitting_population(table, qi=qi, unit=unit, population=asked.population, base_dir=asked.base_dir))
    return tuple(found)


def _check_columns(table: "DataFrame", qi: Sequence[str], asked: Asked) -> None:
    wanted = {name: "sensitive" for name in asked.sensitive}
    if asked.personal_k is not None:
        wanted[asked.personal_k] = "personal_k"
    types = {field.name: field.dataType.simpleString() for field in table.schema.fields}
    for name, where in wanted.items():
        if name not in types:
            raise MissingInputError(
                f"the table has no column '{name}'", where=where, fix=f"it has {', '.join(table.columns)}"
            )
        if name in qi and where == "sensitive":
            raise RequestError(
                "the column is a quasi-identifier too, so that each class holds one value of it",
                where=name,
                fix="name it as sensitive or as quasi-identifier, not both",
            )
        if "map<" in types[name] or types[name] == "variant":
            raise UnsupportedTypeError(
                f"values of type {types[name]} cannot be compared", where=name, fix="leave it out or cast it to string"
            )
    for name, spec in asked.sensitive.items():
        if spec.t_closeness is not None and spec.t_closeness.distance == "ordered" and not _is_ordered(types[name]):
            raise UnsupportedTypeError(
                f"the ordered distance needs numbers, dates or times, not {types[name]}",
                where=name,
                fix="ask for the equal or the hierarchical distance",
            )
    if asked.personal_k is not None and not _is_whole(types[asked.personal_k]):
        raise UnsupportedTypeError(
            f"a person's k is a whole number, not {types[asked.personal_k]}",
            where=asked.personal_k,
            fix="cast the column to int",
        )


def _is_whole(kind: str) -> bool:
    return kind in {"tinyint", "smallint", "int", "bigint"}


def _is_ordered(kind: str) -> bool:
    return _is_whole(kind) or kind.startswith(("float", "double", "decimal", "date", "timestamp"))


def _tuples(table: "DataFrame", *, qi: Sequence[str], unit: str | None) -> "DataFrame":
    """The table with its tuples' hashes, its person as `person`, and all columns under names that cannot clash."""
    from pyspark.sql import functions as F

    person = [] if unit is None else [F.col(quoted(unit)).alias("person")]
    values = [F.col(quoted(name)).alias(f"of {name}") for name in table.columns]
    return table.select(*tuple_hashes(tuple_parts(table, qi)), *person, *values)


def _persons(counted: bool) -> "Column":
    """Distinct persons of a group; a row whose unit is null is a person of its own, and so is any row without one."""
    from pyspark.sql import functions as F

    if not counted:
        return F.count(F.lit(1))
    return F.count_distinct("person") + F.count(F.when(F.col("person").isNull(), 1))


def _histogram(rows: "DataFrame", name: str, *, counted: bool) -> "DataFrame":
    """`t1`, `t2`, `value`, `count`; NaN is null."""
    from pyspark.sql import functions as F

    column = F.col(quoted(f"of {name}"))
    if rows.schema[f"of {name}"].dataType.simpleString() in {"float", "double"}:
        column = F.when(~F.isnan(column), column)
    each = rows.select(*TUPLE, column.alias("value"), *(["person"] if counted else []))
    return each.groupBy(*TUPLE, "value").agg(_persons(counted).alias("count"))


def _of_column(rows: "DataFrame", name: str, spec: SensitiveSpec, asked: Asked, *, counted: bool) -> list[Found]:
    """The models of one column, from one histogram of it."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    histogram = _histogram(rows, name, counted=counted).persist()
    try:
        totals = histogram.groupBy("value").agg(F.sum("count").alias("all"))
        # One row: how many persons and how many values there are.
        everybody, values = totals.agg(F.sum("all"), F.count(F.lit(1))).collect()[0]
        demands = _demands(spec, everybody=everybody or 0, values=values)
        entries = histogram.withColumn("size", F.sum("count").over(Window.partitionBy(*TUPLE)))
        if any((spec.t_closeness, spec.beta_likeness, spec.delta_disclosure)):
            known = totals.select(F.col("value").alias("known"), "all")
            entries = entries.join(known, F.col("value").eqNullSafe(F.col("known"))).drop("known")
        if spec.alpha is not None:
            entries = _with_members(rows, entries, counted=counted)
        simple = [demand for demand in demands if demand.value is not None]
        found = _found(entries, simple, column=name)
        for demand in demands:
            if demand.value is None:
                classes = _distances(entries, name, spec, asked, everybody=everybody or 0)
                found += _summed(classes, [demand], column=name)
        order = [f"{demand.key}({name})" for demand in demands]
        return sorted(found, key=lambda each: order.index(each.name))
    finally:
        histogram.unpersist()


def _distances(entries: "DataFrame", name: str, spec: SensitiveSpec, asked: Asked, *, everybody: int) -> "DataFrame":
    if spec.t_closeness is not None and spec.t_closeness.distance == "ordered":
        return ordered_distances(entries)
    return hierarchical_distances(entries, spec.hierarchy, everybody=everybody, where=name, base_dir=asked.base_dir)


def _with_members(rows: "DataFrame", entries: "DataFrame", *, counted: bool) -> "DataFrame":
    """Add the persons of each class as `members`: who carries several values counts once."""
    from pyspark.sql import functions as F

    if not counted:
        return entries.withColumn("members", F.col("size"))
    members = rows.groupBy(*TUPLE).agg(_persons(counted).alias("members"))
    return entries.join(members, list(TUPLE))


def _found(entries: "DataFrame", demands: Sequence[Demand], *, column: str) -> list[Found]:
    if not demands:
        return []
    measures = [demand.value.alias(f"d{index}") for index, demand in enumerate(demands) if demand.value is not None]
    return _summed(entries.groupBy(*TUPLE).agg(*measures), demands, column=column)


def _summed(classes: "DataFrame", demands: Sequence[Demand], *, column: str) -> list[Found]:
    """From what each class has (`d0`, `d1`, …) to one row."""
    from pyspark.sql import functions as F

    measures = [F.count(F.lit(1))]
    for index, demand in enumerate(demands):
        value = F.col(f"d{index}")
        measures += [F.min(value) if demand.rising else F.max(value), F.count(F.when(~demand.good(value), 1))]
    found = classes.agg(*measures).collect()[0]
    return [
        Found(f"{demand.key}({column})", demand.asked, None if worst is None else float(worst), failing, found[0])
        for demand, worst, failing in zip(demands, found[1::2], found[2::2], strict=True)
    ]


def _demands(spec: SensitiveSpec, *, everybody: int, values: int) -> list[Demand]:
    """The models of a column, as aggregates over the entries (value, count, size, all) of a class."""
    from pyspark.sql import functions as F

    infinite = F.lit(float("inf"))
    share = F.col("count") / F.col("size")
    whole = F.col("all") / F.lit(max(1, everybody))
    found: list[Demand] = []
    if spec.l_diversity is not None:
        found.append(_diversity(spec.l_diversity))
    if spec.t_closeness is not None:
        t, distance = spec.t_closeness.t, spec.t_closeness.distance
        moved = F.sum(F.greatest(F.lit(0.0), share - whole)) if distance == "equal" else None
        words = f"a distribution within {t:g} of the release's ({distance} distance)"
        found.append(Demand("t_closeness", words, moved, lambda value: value <= t + SLACK))
    if spec.alpha is not None:
        alpha, named = spec.alpha.alpha, spec.alpha.values
        watched = F.lit(True) if named is None else F.col("value").cast("string").isin(*named)
        largest = F.coalesce(F.max(F.when(watched, F.col("count") / F.col("members"))), F.lit(0.0))
        what = "no value" if named is None else "none of the named values"
        words = f"{what} with more than {alpha:g} of its persons"
        found.append(Demand("alpha", words, largest, lambda value: value <= alpha + SLACK))
    if spec.beta_likeness is not None:
        beta, kind = spec.beta_likeness.beta, spec.beta_likeness.kind
        rise = share / whole - 1
        limited = rise if kind == "basic" else F.when(rise > SLACK - F.ln(whole), infinite).otherwise(rise)
        words = f"no value that rises by more than {beta:g} of its share ({kind} beta-likeness)"
        most = F.greatest(F.lit(0.0), F.max(limited))
        found.append(Demand("beta_likeness", words, most, lambda value: value <= beta + SLACK))
    if spec.delta_disclosure is not None:
        delta = spec.delta_disclosure
        complete = F.count(F.lit(1)) >= values
        change = F.when(complete, F.max(F.abs(F.ln(share / whole)))).otherwise(infinite)
        words = f"all values, their logarithmic change below {delta:g}"
        found.append(Demand("delta_disclosure", words, change, lambda value: value < delta))
    return found


def _diversity(spec: LDiversitySpec) -> Demand:
    from pyspark.sql import functions as F

    known = F.when(F.col("value").isNotNull(), F.col("count"))
    nulls = F.coalesce(F.sum(F.when(F.col("value").isNull(), F.col("count"))), F.lit(0))
    largest = F.max(known)
    if spec.kind == "distinct":
        number = F.count(known).cast("double")
        words = f"at least {spec.l:g} different values"
        return Demand("l_diversity", words, number, lambda value: value >= spec.l - SLACK, rising=True)
    if spec.kind == "entropy":
        # Nulls are taken for the most frequent value, the worst that they can be.
        logs = F.sum(known * F.ln(known)) - largest * F.ln(largest) + (largest + nulls) * F.ln(largest + nulls)
        entropy = F.ln(F.sum("count")) - logs / F.sum("count")
        number = F.when(largest.isNull(), F.lit(0.0)).otherwise(F.exp(F.greatest(F.lit(0.0), entropy)))
        words = f"values of an entropy of at least ln {spec.l:g}"
        return Demand("l_diversity", words, number, lambda value: value >= spec.l - SLACK, rising=True)
    c = spec.c or 0.0
    rank = -int(-spec.l // 1)  # rounded up
    first = F.slice(F.sort_array(F.collect_list(known), asc=False), 1, rank - 1)
    tail = F.sum(known) - F.aggregate(first, F.lit(0).cast("long"), lambda total, count: total + count)
    ratio = F.when(tail > 0, (largest + nulls) / tail).otherwise(F.lit(float("inf")))
    words = f"a most frequent value below {c:g} times the counts from the {rank}. on"
    return Demand("l_diversity", words, ratio, lambda value: value < c)


def _wishes(rows: "DataFrame", name: str, *, k: int, counted: bool) -> Found:
    """Whether every class has as many persons as the most demanding of them asks for, as a share of that."""
    from pyspark.sql import functions as F

    wish = F.greatest(F.lit(1).cast("long"), F.coalesce(F.col(quoted(f"of {name}")).cast("long"), F.lit(k)))
    classes = rows.groupBy(*TUPLE).agg((_persons(counted) / F.max(wish)).alias("d0"))
    words = "at least once the persons that each of them asks for"
    (found,) = _summed(classes, [Demand("personal_k", words, None, lambda value: value >= 1, True)], column=name)
    return found
