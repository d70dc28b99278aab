"""Privacy models beyond k on any table, by Spark aggregates alone.

A class is a group of rows with equal quasi-identifiers. Its histogram says how many persons (rows, without a unit)
carry each value of a sensitive column (`counting.py`). The distribution of the release is the sum of all histograms.
Definitions, and what null means to each model, are those of `privacy/README.md`; the code is another: nothing here
knows how a method judged its classes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add, or_
from typing import TYPE_CHECKING

from kanon_spark.config.forms import plain
from kanon_spark.config.models import SensitiveSpec
from kanon_spark.config.privacy_specs import LDiversitySpec
from kanon_spark.errors import MissingInputError, RequestError, UnsupportedTypeError
from kanon_spark.verify.asked import Asked, Found
from kanon_spark.verify.counting import Held, form_for, one_value, text_hash, value_column
from kanon_spark.verify.distances import hierarchical_distances, ordered_distances
from kanon_spark.verify.facts import Check
from kanon_spark.verify.groups import TUPLE, quoted
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
        form: What was asked, as a configuration says it.
        named: For each value that it names whether a class holds it, as 0 and 1: a name that no class holds may be
            misspelt.
    """

    key: str
    asked: str
    value: "Column | None"
    good: "Callable[[Column], Column]"
    rising: bool = False
    form: object = None
    named: "tuple[Column, ...]" = ()


def model_checks(
    table: "DataFrame", *, qi: Sequence[str], k: int, asked: Asked, unit: str | None = None
) -> tuple[Check, ...]:
    """One check per model and column; arguments and errors are those of `find_models`."""
    return tuple(found.check for found in find_models(table, qi=qi, k=k, asked=asked, unit=unit))


def find_models(
    table: "DataFrame",
    *,
    qi: Sequence[str],
    k: int,
    asked: Asked,
    unit: str | None = None,
    failing: "list[DataFrame] | None" = None,
) -> tuple[Found, ...]:
    """What the classes of a table have of each model and column.

    Args:
        table: Any table.
        qi: Its quasi-identifiers.
        k: The k of a person who does not say its own.
        asked: The models.
        unit: Column of the protected person; None counts rows.
        failing: Where to put the classes (`t1`, `t2`) that fail a model of a column or a person's own k.

    Raises:
        MissingInputError: The table lacks a column that was named.
        UnsupportedTypeError: A model says nothing about a column of such a type.
        RequestError: A sensitive column is a quasi-identifier too.
        CoverageError: A hierarchy file misses values of the sensitive column.
    """
    check_columns(table, qi, asked)
    wishes = [asked.personal_k] if asked.personal_k is not None else []
    held = Held.of_table(table, qi=qi, names=[*asked.judged, *wishes], unit=unit)
    found = sensitive_models(held, asked, failing)
    if asked.personal_k is not None:
        found.append(personal_k(held, value_column(asked.personal_k), name=asked.personal_k, k=k, failing=failing))
    if asked.population is not None:
        found.append(fitting_population(table, qi=qi, unit=unit, population=asked.population, base_dir=asked.base_dir))
    return tuple(found)


def check_columns(table: "DataFrame", qi: Sequence[str], asked: Asked) -> None:
    """Refuse what the models say nothing about."""
    wanted = {name: "sensitive" for name in asked.judged}
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
    for name, spec in asked.judged.items():
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


def sensitive_models(held: Held, asked: Asked, failing: "list[DataFrame] | None" = None) -> list[Found]:
    """What classes have of the models of all sensitive columns."""
    return [found for name, spec in asked.judged.items() for found in _of_column(held, name, spec, asked, failing)]


def _of_column(
    held: Held, name: str, spec: SensitiveSpec, asked: Asked, failing: "list[DataFrame] | None"
) -> list[Found]:
    """The models of one column, from one histogram of it."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    relative = any((spec.t_closeness, spec.beta_likeness, spec.delta_disclosure))
    entries = histogram = held.histogram(name, spec)
    everybody, values = 0, 0
    if relative:
        histogram = histogram.persist()  # it is looked at several times
    try:
        entries = histogram.withColumn("size", F.sum("count").over(Window.partitionBy(*TUPLE)))
        if relative:
            counted = histogram if held.whole is None else held.whole.histogram(name, spec)
            totals = counted.groupBy("value").agg(F.sum("count").alias("all"))
            # One row: how many persons and how many values there are.
            people, values = totals.agg(F.sum("all"), F.count(F.lit(1))).collect()[0]
            everybody = people or 0
            known = totals.select(F.col("value").alias("known"), "all")
            entries = entries.join(known, F.col("value").eqNullSafe(F.col("known"))).drop("known")
        if spec.alpha is not None:
            if held.counting in ("rows", "groups"):
                entries = entries.withColumn("members", F.col("size"))
            else:
                entries = entries.join(held.members(), list(TUPLE))
        demands = [
            replace(demand, form=plain(getattr(spec, demand.key)))
            for demand in _demands(spec, everybody=everybody, values=values, kind=held.kind_of(name))
        ]
        simple = [demand for demand in demands if demand.value is not None]
        found = _found(entries, simple, column=name, failing=failing)
        for demand in demands:
            if demand.value is None:
                classes = _distances(entries, name, spec, asked, everybody=everybody)
                found += _summed(classes, [demand], column=name, failing=failing)
        order = [f"{demand.key}({name})" for demand in demands]
        return sorted(found, key=lambda each: order.index(each.name))
    finally:
        if relative:
            histogram.unpersist()


def _distances(entries: "DataFrame", name: str, spec: SensitiveSpec, asked: Asked, *, everybody: int) -> "DataFrame":
    if spec.t_closeness is not None and spec.t_closeness.distance == "ordered":
        return ordered_distances(entries)
    return hierarchical_distances(entries, spec.hierarchy, everybody=everybody, where=name, base_dir=asked.base_dir)


def _found(
    entries: "DataFrame", demands: Sequence[Demand], *, column: str, failing: "list[DataFrame] | None"
) -> list[Found]:
    if not demands:
        return []
    measures = []
    for index, demand in enumerate(demands):
        if demand.value is not None:
            measures.append(demand.value.alias(f"d{index}"))
        measures += [occurs.alias(f"d{index}_{place}") for place, occurs in enumerate(demand.named)]
    return _summed(entries.groupBy(*TUPLE).agg(*measures), demands, column=column, failing=failing)


def _summed(
    classes: "DataFrame", demands: Sequence[Demand], *, column: str, failing: "list[DataFrame] | None" = None
) -> list[Found]:
    """From what each class has (`d0`, `d1`, …) to one row."""
    from pyspark.sql import functions as F

    measures = [F.count(F.lit(1))]
    for index, demand in enumerate(demands):
        value = F.col(f"d{index}")
        occurring = [F.coalesce(F.max(f"d{index}_{place}"), F.lit(0)) for place in range(len(demand.named))]
        measures += [
            (F.min(value) if demand.rising else F.max(value)).alias(f"worst{index}"),
            F.count(F.when(~demand.good(value), 1)).alias(f"failing{index}"),
            reduce(add, occurring, F.lit(0)).alias(f"occurring{index}"),
        ]
    found = classes.agg(*measures).collect()[0]
    failed = [int(found[f"failing{index}"]) for index in range(len(demands))]
    if failing is not None and any(failed):
        bad = [~demand.good(F.col(f"d{index}")) for index, demand in enumerate(demands)]
        failing.append(classes.where(reduce(or_, bad)).select(*TUPLE))
    return [
        Found(
            f"{demand.key}({column})",
            demand.asked,
            None if found[f"worst{index}"] is None else float(found[f"worst{index}"]),
            failed[index],
            found[0],
            demand.form,
            len(demand.named) - int(found[f"occurring{index}"]),
        )
        for index, demand in enumerate(demands)
    ]


def _demands(spec: SensitiveSpec, *, everybody: int, values: int, kind: str) -> list[Demand]:
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
        text = F.col("value") if form_for(spec) == "text" else text_hash(F.col("value"))
        # By hashes, which Spark works out before anything is planned: no value stands in a plan.
        # Each name is read as a value of the column, so that 3 means 3.0 where there are fractions.
        hashes = [text_hash(one_value(F.lit(each).try_cast(kind), kind)) for each in named or ()]
        watched = F.lit(True) if named is None else text.isin(*hashes)
        largest = F.coalesce(F.max(F.when(watched, F.col("carrying") / F.col("members"))), F.lit(0.0))
        what = "no value" if named is None else "none of the named values"
        words = f"{what} with more than {alpha:g} of its persons"
        occurs = tuple(F.max(text.eqNullSafe(each).cast("int")) for each in hashes)
        found.append(Demand("alpha", words, largest, lambda value: value <= alpha + SLACK, named=occurs))
    if spec.beta_likeness is not None:
        beta, form = spec.beta_likeness.beta, spec.beta_likeness.kind
        rise = share / whole - 1
        limited = rise if form == "basic" else F.when(rise > SLACK - F.ln(whole), infinite).otherwise(rise)
        words = f"no value that rises by more than {beta:g} of its share ({form} beta-likeness)"
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
    tail = tail + nulls if rank == 1 else tail  # they stand with the most frequent value, and so does the tail's first
    ratio = F.when(tail > 0, (largest + nulls) / tail).otherwise(F.lit(float("inf")))
    words = f"a most frequent value below {c:g} times the counts from the {rank}. on"
    return Demand("l_diversity", words, ratio, lambda value: value < c)


def personal_k(held: Held, wish: str, *, name: str, k: int, failing: "list[DataFrame] | None" = None) -> Found:
    """Whether every class has as many persons as the most demanding of them asks for, as a share of that.

    Args:
        held: Who stands in the classes.
        wish: Column of the wishes there.
        name: What the check calls it.
        k: The k of a person who does not say its own.
        failing: Where to put classes that have fewer.
    """
    from pyspark.sql import functions as F

    own = F.coalesce(F.col(quoted(wish)).cast("long"), F.lit(k))
    words = "at least once the persons that each of them asks for"
    demand = Demand("personal_k", words, None, lambda value: value >= 1, True, name)
    wishes = held.wishes(F.greatest(F.lit(1).cast("long"), own))
    (found,) = _summed(wishes, [demand], column=name, failing=failing)
    return found
