"""k-map: how many persons of a population each published tuple fits.

Labels are judged by `truth.py`, as everywhere: a label fits a person if it is true of the person's value. That is
decided once per pair of label and value of a column; the tuples are then put together by joins.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kanon_spark.config.models import FileSpec, QiSpec
from kanon_spark.errors import MissingInputError
from kanon_spark.verify.asked import Found, Population
from kanon_spark.verify.groups import quoted
from kanon_spark.verify.truth import Judge, judge_for

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

_KINDS = {
    "tinyint": "integer",
    "smallint": "integer",
    "int": "integer",
    "bigint": "integer",
    "float": "real",
    "double": "real",
    "date": "date",
    "boolean": "boolean",
}


def fitting_population(
    table: "DataFrame",
    *,
    qi: Sequence[str],
    unit: str | None,
    population: Population,
    base_dir: Path,
    judges: Sequence[Judge] | None = None,
) -> Found:
    """Least persons that a published tuple fits, and how many tuples fit fewer than k.

    Args:
        table: The published table.
        qi: Its quasi-identifiers; the population must have them too, with its own raw values.
        unit: Column of the person; counts persons where the population has it, else rows.
        population: The population, k, and the hierarchies of the labels.
        base_dir: Folder that the paths of hierarchy files start from.
        judges: Who judges the labels of each quasi-identifier, where that is known better than from the population.

    Raises:
        MissingInputError: The population lacks a quasi-identifier.
    """
    from pyspark.sql import functions as F

    missing = [name for name in qi if name not in population.table.columns]
    if missing:
        raise MissingInputError(
            f"the population has no column {', '.join(map(repr, missing))}",
            where="k_map",
            fix="give it the quasi-identifiers of the table",
        )
    labels, values = [f"label{i}" for i in range(len(qi))], [f"value{i}" for i in range(len(qi))]
    texts = [_text(table, name).alias(label) for name, label in zip(qi, labels, strict=True)]
    # Both are looked at once for each column.
    published = table.select(*texts).distinct().persist()
    people = _people(population.table, qi, values, unit).persist()
    try:
        judges = [_judge(population, name, base_dir) for name in qi] if judges is None else judges
        # Who stands in the population with several tuples counts once for each label, whichever of them fit.
        known, nobody = F.count_distinct("person"), F.sum(F.when(F.col("person").isNull(), F.col("rows")))
        persons = known + F.coalesce(nobody, F.lit(0))
        fitting = _fitting(published, people, judges).groupBy(*labels).agg(persons.alias("persons"))
        few = F.count(F.when(F.col("persons") < population.k, 1))
        # One row each: the tuples that fit nobody are those that the joins have lost.
        least, failing, found = fitting.agg(F.min("persons"), few, F.count(F.lit(1))).collect()[0]
        classes = published.count()
    finally:
        published.unpersist()
        people.unpersist()
    nobody = classes - found
    worst = None if classes == 0 else 0.0 if nobody else float(least)
    words = f"a tuple that fits at least {population.k} persons of the population"
    return Found("k_map", words, worst, failing + nobody, classes, population.k)


def _text(table: "DataFrame", name: str) -> "Column":
    """A published cell as text; arrays as the JSON that judges of members read."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    column = F.col(quoted(name))
    return F.to_json(column) if isinstance(table.schema[name].dataType, T.ArrayType) else column.cast("string")


def _fitting(published: "DataFrame", people: "DataFrame", judges: Sequence[Judge]) -> "DataFrame":
    """Each published tuple with each raw tuple and person that it fits."""
    from pyspark.sql import functions as F

    # Start with the column that tells most persons apart, so that few pairs are looked at in the others.
    counts = people.agg(*[F.count_distinct(f"value{i}") for i in range(len(judges))]).collect()[0]
    matched = published
    for step, i in enumerate(sorted(range(len(judges)), key=lambda i: -counts[i])):
        pairs = _true_pairs(published, people, i, judges[i])
        same_label = F.col(f"label{i}").eqNullSafe(F.col("same_label"))
        same_value = F.col(f"value{i}").eqNullSafe(F.col("same_value"))
        if step == 0:
            matched = matched.join(pairs, same_label).join(people, same_value)
        else:
            matched = matched.join(pairs, same_label & same_value)
        matched = matched.drop("same_label", "same_value")
    return matched


def _people(table: "DataFrame", qi: Sequence[str], values: Sequence[str], unit: str | None) -> "DataFrame":
    """Distinct raw tuples of the population, as texts, with each `person` (null: unknown) and its `rows`."""
    from pyspark.sql import functions as F

    known = F.col(quoted(unit)) if unit is not None and unit in table.columns else F.lit(None).cast("string")
    texts = [F.col(quoted(name)).cast("string").alias(value) for name, value in zip(qi, values, strict=True)]
    each = table.select(*texts, known.alias("person"))
    return each.groupBy(*values, "person").agg(F.count(F.lit(1)).alias("rows"))


def _judge(population: Population, name: str, base_dir: Path) -> Judge:
    spec = population.hierarchies.get(name)
    kind = population.table.schema[name].dataType.simpleString()
    known = _KINDS.get(kind, "real" if kind.startswith("decimal") else "text")
    known = "timestamp" if kind.startswith("timestamp") else known
    path = base_dir / Path(spec.path).expanduser() if isinstance(spec, FileSpec) else None
    return judge_for(QiSpec(hierarchy=spec), kind=known, csv_path=path)


def _true_pairs(published: "DataFrame", people: "DataFrame", i: int, judge: Judge) -> "DataFrame":
    """Each label of column i with each value that it is true of."""
    from pyspark.sql import functions as F

    labels = published.select(F.col(f"label{i}").alias("same_label")).distinct()
    values = people.select(F.col(f"value{i}").alias("same_value")).distinct()
    kept = partial(_keep_true, judge=judge)
    return labels.crossJoin(values).mapInArrow(kept, "same_label string, same_value string")


def _keep_true(batches: "Iterable[pa.RecordBatch]", *, judge: Judge) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    for batch in batches:
        pairs = zip(batch.column("same_value").to_pylist(), batch.column("same_label").to_pylist(), strict=True)
        yield batch.filter(pa.array([judge.covers(value, label) for value, label in pairs], pa.bool_()))
