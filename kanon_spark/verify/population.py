"""k-map: how many persons of a population each published tuple fits.

Labels are judged by `truth.py`, as everywhere: a label fits a person if it is true of the person's value. That is
decided once per pair of label and value of a column; the tuples are then put together by joins.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kanon_spark.config.models import Config, DateSpec, FileSpec, PrefixSpec, QiSpec
from kanon_spark.errors import MissingInputError
from kanon_spark.io.paths import resolve
from kanon_spark.signatures.forms import form_of
from kanon_spark.verify.asked import Found, Population
from kanon_spark.verify.facts import SUPPRESSED
from kanon_spark.verify.groups import quoted
from kanon_spark.verify.truth import Judge, Text, judge_for

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

Kind = Literal["text", "integer", "real", "date", "timestamp", "boolean"]

_KINDS: dict[str, Kind] = {
    "tinyint": "integer",
    "smallint": "integer",
    "int": "integer",
    "bigint": "integer",
    "float": "real",
    "double": "real",
    "date": "date",
    "boolean": "boolean",
}
_OTHER_STAR = "?"  # what a method may write in place of a star


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
        judges: Who judges the labels of each quasi-identifier, where that is known better than from the two tables.

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
        judges = _guessed(table, people, qi, population, base_dir) if judges is None else judges
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


def judges_by_form(config: Config, table: "DataFrame", population: Population, *, base_dir: Path) -> list[Judge]:
    """Judges of all quasi-identifiers of a release, by the forms that its configuration gives their labels.

    What kind of values a column had is taken from the population: the release has texts throughout. Means are not
    among the forms: a configuration that asks for them may not ask for k-map.
    """
    judges: list[Judge] = []
    for name, spec in config.columns.quasi_identifiers.items():
        kind = _kind(table, population.table, name)
        suppressed = form_of(spec, kind, config).suppressed
        judges.append(_judge(spec, table, name, kind, base_dir=base_dir, suppressed=suppressed))
    return judges


def _guessed(
    table: "DataFrame", people: "DataFrame", qi: Sequence[str], population: Population, base_dir: Path
) -> list[Judge]:
    """Judges by what the two tables show, where nobody says how the labels were made."""
    from pyspark.sql import functions as F

    # Some tables spell `unknown` so: then it is a value, and nobody else fits it. And some values end with stars.
    columns = [F.col(f"value{i}") for i in range(len(qi))]
    spelt = [F.max(F.coalesce(value == _OTHER_STAR, F.lit(False))) for value in columns]
    starred = [F.max(F.coalesce(value.endswith(SUPPRESSED), F.lit(False))) for value in columns]
    found = people.agg(*spelt, *starred).collect()[0]
    judges = []
    for name, is_value, has_stars in zip(qi, found, found[len(qi) :], strict=False):
        spec, kind = QiSpec(hierarchy=population.hierarchies.get(name)), _kind(table, population.table, name)
        judge = _judge(spec, table, name, kind, base_dir=base_dir, suppressed=SUPPRESSED)
        if spec.hierarchy is None:
            judge = _ShapesJudge(judge, prefixes=not has_stars, days=kind in ("text", "date", "timestamp"))
        judges.append(judge if is_value else _OtherStar(judge))
    return judges


def _kind(table: "DataFrame", population: "DataFrame", name: str) -> Kind:
    """What the population's values are; texts there are of the kind that the published column has, if it has one."""
    for frame in (population, table):
        kind = frame.schema[name].dataType.simpleString()
        if kind.startswith("timestamp"):
            return "timestamp"
        if kind.startswith("decimal"):
            return "real"
        if kind in _KINDS:
            return _KINDS[kind]
    return "text"


def _judge(spec: QiSpec, table: "DataFrame", name: str, kind: Kind, *, base_dir: Path, suppressed: str) -> Judge:
    members = table.schema[name].dataType.simpleString().startswith("array")
    if spec.hierarchy is None and kind == "text" and not members:
        return _TextsJudge(suppressed)
    path = Path(resolve(spec.hierarchy.path, base_dir)) if isinstance(spec.hierarchy, FileSpec) else None
    return judge_for(spec, kind=kind, csv_path=path, members=members, suppressed=suppressed)


class _TextsJudge(Judge):
    """Texts of which nobody says what they are: a label is a set of them, or a range if they can be read as ordered.

    A label that is a single value is that text alone: as numbers, the codes 07 and 7 would be one.
    """

    def __init__(self, suppressed: str) -> None:
        super().__init__(suppressed)
        self._sets = judge_for(QiSpec(), kind="text")
        self._ranges = [judge_for(QiSpec(), kind=kind) for kind in ("real", "timestamp")]

    def _covers(self, raw: str, label: str) -> bool:
        ranges = self._ranges if label.startswith(("[", "(", "< ", ">= ")) else []
        return self._sets.covers(raw, label) or any(judge.covers(raw, label) for judge in ranges)

    def _contains(self, inner: str, label: str) -> bool:
        return self._covers(inner, label)


class _ShapesJudge(Judge):
    """Another judge, who also knows labels by their shape: `123**` begins with 123, `2024-03` is a month.

    Args:
        judge: Who is asked first.
        prefixes: Whether stars at the end stand for what was cut off; not where values themselves end with stars.
        days: Whether the values may be days or moments.
    """

    def __init__(self, judge: Judge, *, prefixes: bool, days: bool) -> None:
        super().__init__()
        self._judge = judge
        self._prefix = judge_for(QiSpec(hierarchy=PrefixSpec(keep=(1,))), kind="text") if prefixes else None
        self._calendar = judge_for(QiSpec(hierarchy=DateSpec(levels=("day",))), kind="date") if days else None

    def covers(self, raw: Text, label: Text) -> bool:
        return self._judge.covers(raw, label) or (raw is not None and label is not None and self._covers(raw, label))

    def _covers(self, raw: str, label: str) -> bool:
        if label.endswith(SUPPRESSED):
            return bool(label.strip(SUPPRESSED)) and self._prefix is not None and self._prefix.covers(raw, label)
        return self._calendar is not None and self._calendar.covers(raw, label)

    def _contains(self, inner: str, label: str) -> bool:
        return self._judge.contains(inner, label)


class _OtherStar(Judge):
    """Another judge, for whom the `?` of the method kactus is a suppressed cell too."""

    def __init__(self, judge: Judge) -> None:
        super().__init__(_OTHER_STAR)
        self._judge = judge

    def covers(self, raw: Text, label: Text) -> bool:
        return label in (_OTHER_STAR, f'["{_OTHER_STAR}"]') or self._judge.covers(raw, label)

    def _covers(self, raw: str, label: str) -> bool:
        return self._judge.covers(raw, label)

    def _contains(self, inner: str, label: str) -> bool:
        return self._judge.contains(inner, label)


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
