"""The parts of a growing release that a reader can tell apart: what each run added to a tuple, and unions of these.

A reader who has kept release i finds in release j > i what the runs i + 1 to j have added. Where nobody stands in two
classes of such a union its counts are the sums of theirs, and every model that holds for the classes holds for it, too.
Distinct persons do not add up: who is in two classes with one value counts once for it in their union, so that the
others weigh more there. Hence unions are judged themselves: of each tuple, those of one run and all after it.

Not every run has to begin one. Where nobody of run i stands in a later class of the tuple, the counts of run i and of
what came after it add up; so only runs count somebody of whom came back. All parts are held against one distribution,
that of the whole release: only then is a union no farther from it than the farthest of what it is made of.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from kanon_spark.config.models import SensitiveSpec
from kanon_spark.verify.asked import Asked, Found
from kanon_spark.verify.counting import Held, value_column
from kanon_spark.verify.groups import TUPLE, quoted, tuple_hashes, tuple_parts
from kanon_spark.verify.models import check_columns, find_models, personal_k, sensitive_models

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Of a row's part: the run it begins with, and whether it ends there, too.
_SINCE, _ALONE = "_kanon_since", "_kanon_alone"
_ORDER, _LAST = "_kanon_order", "_kanon_last"
_WHOLE = ("w1", "w2")


@dataclass(frozen=True)
class Record:
    """The record of published rows.

    Attributes:
        rows: Published columns, with key, cohort and, where there is a unit, the person of each row.
        cohort: Column of the run that published a row. Runs sort by their names, which begin with the time.
        newest: The run that is being verified.
        person: Column of the person; None counts rows.
    """

    rows: "DataFrame"
    cohort: str
    newest: str
    person: str | None


def judge_parts(
    record: Record, *, qi: Sequence[str], k: int, asked: Asked, failing: "list[DataFrame] | None" = None
) -> tuple[Found, ...]:
    """What the parts of a release have of each model and column. How many of a population fit is not asked.

    Args:
        record: The rows.
        qi: Columns of the published tuple.
        k: The k of a person who does not say its own.
        asked: The models.
        failing: Where to put the class to blame for each part that fails (`t1`, `t2` of tuple and cohort): its newest,
            since what was published before had passed without it.
    """
    asked = replace(asked, population=None)
    own = [*qi, record.cohort]
    if record.person is None or not any(_by_shares(spec) for spec in asked.judged.values()):
        # Counts add up, or are not asked for: a union has the values and the persons of its classes, at least.
        return find_models(record.rows, qi=own, k=k, asked=asked, unit=record.person, failing=failing)
    check_columns(record.rows, qi, asked)
    wishes = [] if asked.personal_k is None else [asked.personal_k]
    names = [*asked.judged, *wishes]
    parts = _parts(record, qi)
    held = Held.of_table(parts, qi=[*qi, _SINCE, _ALONE], names=names, unit=record.person)
    whole = Held.of_table(record.rows, qi=qi, names=names, unit=record.person)
    bad: list[DataFrame] = []
    found = sensitive_models(replace(held, whole=whole), asked, bad)
    if asked.personal_k is not None:
        found.append(personal_k(held, value_column(asked.personal_k), name=asked.personal_k, k=k, failing=bad))
    if failing is not None and bad:
        failed = reduce(lambda left, right: left.unionByName(right), bad).distinct()
        failing.append(_blamed(parts, failed, record, qi))
    return tuple(found)


def _by_shares(spec: SensitiveSpec) -> bool:
    """Whether a model looks at how many carry a value, and not only at which values there are."""
    counted = spec.l_diversity is not None and spec.l_diversity.kind != "distinct"
    return counted or spec.alpha is not None or _relative(spec)


def _relative(spec: SensitiveSpec) -> bool:
    """Whether a model holds a class against a distribution."""
    return any((spec.t_closeness, spec.beta_likeness, spec.delta_disclosure))


def _parts(record: Record, qi: Sequence[str]) -> "DataFrame":
    """Each row in what its run added to the tuple, and once more in every union that has to be judged."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    cohort, person = F.col(quoted(record.cohort)), F.col(quoted(str(record.person)))
    # Clocks may go wrong; that the newest run is the newest is known.
    order = F.concat(F.when(cohort == record.newest, F.lit("1")).otherwise(F.lit("0")), cohort.cast("string"))
    whole = [each.alias(name) for each, name in zip(tuple_hashes(tuple_parts(record.rows, qi)), _WHOLE, strict=True)]
    rows = record.rows.select("*", *whole, order.alias(_ORDER))
    rows = rows.withColumn(_LAST, F.max(_ORDER).over(Window.partitionBy(*_WHOLE)))
    alone = rows.withColumns({_SINCE: F.col(_ORDER), _ALONE: F.lit(True)})
    # A row without a person is a person of its own, who does not come back.
    came = rows.where(person.isNotNull()).select(*_WHOLE, person.alias("who"), F.col(_ORDER).alias(_SINCE)).distinct()
    later = F.max(_SINCE).over(Window.partitionBy(*_WHOLE, "who"))
    begun = came.withColumn("later", later).where(F.col(_SINCE) < F.col("later")).select(*_WHOLE, _SINCE).distinct()
    unions = rows.join(begun, list(_WHOLE)).where(F.col(_ORDER) >= F.col(_SINCE)).withColumn(_ALONE, F.lit(False))
    return alone.unionByName(unions)


def _blamed(parts: "DataFrame", failed: "DataFrame", record: Record, qi: Sequence[str]) -> "DataFrame":
    from pyspark.sql import functions as F

    newest = parts.where(F.col(_ALONE) | (F.col(_ORDER) == F.col(_LAST)))
    names = ("c1", "c2")
    cohorts = tuple_hashes(tuple_parts(parts, [*qi, record.cohort]))
    classes = [each.alias(name) for each, name in zip(cohorts, names, strict=True)]
    each = newest.select(*tuple_hashes(tuple_parts(parts, [*qi, _SINCE, _ALONE])), *classes).distinct()
    blamed = each.join(failed, list(TUPLE), "left_semi")
    return blamed.select(*[F.col(name).alias(own) for name, own in zip(names, TUPLE, strict=True)])


def failing_alone(
    arrivals: "DataFrame", *, qi: Sequence[str], entry: str, person: str | None, asked: Asked
) -> "list[DataFrame]":
    """The tuples (`t1`, `t2`) that fail where arrivals are a release of their own, counted as one is verified.

    Args:
        arrivals: The rows of one run.
        qi: Columns of the published tuple.
        entry: Column that tells raw tuples apart: there, a person counts once for each combination of values.
        person: Column of the person; None counts rows.
        asked: The models.
    """
    from pyspark.sql import functions as F

    failing: list[DataFrame] = []
    if not any(_relative(spec) or (person is not None and _by_shares(spec)) for spec in asked.judged.values()):
        return failing  # a class is what it is, whatever else there is
    asked = replace(asked, population=None)
    if person is None:
        held = Held.of_table(arrivals, qi=qi, names=list(asked.judged), unit=None)
    else:
        wishes = [] if asked.personal_k is None else [asked.personal_k]
        values = [F.col(quoted(name)).alias(value_column(name)) for name in [*asked.judged, *wishes]]
        picked = arrivals.select(
            *tuple_hashes(tuple_parts(arrivals, qi)),
            F.col(quoted(entry)).alias("h"),
            F.col(quoted(person)).alias("person"),
            *values,
        )
        counted = picked.groupBy(*[quoted(name) for name in picked.columns]).agg(F.count(F.lit(1)).alias("rows"))
        held = Held(counted, "carriers")
    sensitive_models(held, asked, failing)
    return failing
