"""Privacy models against the real table: types they say nothing about, values a hierarchy misses, what cannot be met.

Only numbers come to the driver: how many values of a column are carried by how many persons.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kanon_spark.config.findings import Finding
from kanon_spark.config.hierarchy_specs import fix_unknown
from kanon_spark.config.loader import LoadedConfig
from kanon_spark.config.models import Config, FileSpec, QiSpec, SensitiveSpec
from kanon_spark.errors import (
    CoverageError,
    DataError,
    KanonError,
    RequestError,
    UnsupportedTypeError,
)
from kanon_spark.io.quiet import condition_of, quiet_query_errors

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from kanon_spark.privacy.base import Model
    from kanon_spark.privacy.columns import Column

_WISHES = "privacy.personal_k"
_COARSE = "ask for less, or expect a coarse release"
_LESS = "ask for less, or allow more suppression (privacy.max_suppression)"


def judged_columns(config: Config) -> dict[str, SensitiveSpec]:
    """The sensitive columns that a model speaks of, each with all its models."""
    from pathlib import Path

    from kanon_spark.verify.asked import asked_by

    return asked_by(config, base_dir=Path()).judged


# Columns and types alone


def sensitive_type_findings(schema: "StructType", config: Config) -> Iterator[Finding]:
    """What the types of sensitive columns and wishes stand against; starts no Spark job."""
    from kanon_spark.hierarchy.tree import ORDERED
    from kanon_spark.signatures.columns import kind_of
    from kanon_spark.signatures.fit import misfit

    types = {field.name: field.dataType for field in schema.fields}
    for name, spec in judged_columns(config).items():
        if name not in types:
            continue
        path = f"columns.sensitive.{name}"
        try:
            kind = kind_of(types[name], qi=name)
        except UnsupportedTypeError:
            yield Finding(
                "error",
                path,
                f"no privacy model can judge a column of type {types[name].simpleString()}",
                "make it text, a number, a date, a timestamp or a boolean, or ask nothing of it",
                UnsupportedTypeError.exit_code,
            )
            continue
        wrong = misfit(spec.hierarchy, kind, qi=name)
        if wrong is not None:
            yield Finding("error", f"{path}.hierarchy", wrong.message, wrong.fix, wrong.exit_code)
        if spec.t_closeness is not None and spec.t_closeness.distance == "ordered" and kind not in ORDERED:
            yield Finding(
                "error",
                f"{path}.t_closeness",
                f"the ordered distance needs numbers, dates or times, this column is {kind}",
                "ask for the equal or the hierarchical distance of this column",
                UnsupportedTypeError.exit_code,
            )
    yield from _wish_findings(schema, config)


_RULE = "a SQL expression over the source's columns, such as CASE WHEN age < 18 THEN 20 END"


def _wish_findings(schema: "StructType", config: Config) -> Iterator[Finding]:
    from pyspark.errors import AnalysisException, ParseException
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    from kanon_spark.signatures.columns import quoted

    spec = config.privacy.personal_k
    session = SparkSession.getActiveSession()
    if spec is None or session is None or (spec.column is not None and spec.column not in schema.fieldNames()):
        return
    rows = session.createDataFrame([], schema)
    try:
        wish = F.col(quoted(spec.column)) if spec.column is not None else F.expr(spec.rule or "NULL")
        with quiet_query_errors():
            kind = rows.select(wish.alias("wish")).schema["wish"].dataType.simpleString()
    except (AnalysisException, ParseException) as error:
        yield Finding("error", f"{_WISHES}.rule", _unreadable(error), _RULE, RequestError.exit_code)
        return
    if kind not in {"tinyint", "smallint", "int", "bigint", "void"}:
        own = spec.column is not None
        yield Finding(
            "error",
            _WISHES if own else f"{_WISHES}.rule",
            f"each person's own k must be a whole number, this is {kind}",
            "cast it to int",
            UnsupportedTypeError.exit_code if own else RequestError.exit_code,
        )


def _unreadable(error: "PySparkException") -> str:
    """What is wrong with an expression, in words."""
    parameters = error.getMessageParameters() or {}
    name = parameters.get("objectName")
    if condition_of(error).startswith("UNRESOLVED_COLUMN") and name:
        near = parameters.get("proposal")
        return f"the source has no column {name}" + (f"; it has {near}" if near else "")
    return f"Spark cannot read it ({condition_of(error)})"


# The data


def demand_findings(
    spark: "SparkSession", loaded: LoadedConfig, source: "DataFrame", *, persons: int, rows: int, show_values: bool
) -> Iterator[Finding]:
    """What stands against the privacy models in the table itself.

    Args:
        spark: The session.
        loaded: The configuration.
        source: The table.
        persons: Its persons, or rows without a unit.
        rows: Its rows.
        show_values: Tell some of the values that hierarchies miss.
    """
    config = loaded.config
    yield from _coverage(spark, loaded, source, show_values=show_values)
    if judged_columns(config) or config.privacy.personal_k is not None:
        yield from _feasible(source, config, persons=persons, rows=rows)
    yield from _population(spark, loaded)


def _coverage(
    spark: "SparkSession", loaded: LoadedConfig, source: "DataFrame", *, show_values: bool
) -> Iterator[Finding]:
    """Hierarchy files of sensitive columns: their own errors, and the values that they miss."""
    from kanon_spark.signatures.coverage import find_missing
    from kanon_spark.signatures.encoding import file_encoding

    for name, spec in judged_columns(loaded.config).items():
        path = f"columns.sensitive.{name}.hierarchy"
        if spec.hierarchy is not None and (spec.t_closeness is None or spec.t_closeness.distance != "hierarchical"):
            yield Finding("warning", path, "no model uses it", "ask for t_closeness with distance: hierarchical")
            continue
        if not isinstance(spec.hierarchy, FileSpec):
            continue
        alone = {name: QiSpec(hierarchy=spec.hierarchy)}
        columns = loaded.config.columns.model_copy(update={"quasi_identifiers": alone})
        config = loaded.config.model_copy(update={"columns": columns})
        try:
            encoding = file_encoding(spark, source, config, base_dir=loaded.base_dir, names=[name])
        except KanonError as error:
            yield Finding("error", path, error.message, error.fix, error.exit_code)
            continue
        for missing in find_missing(source, encoding, [0], show_values=show_values):
            fix = fix_unknown(spec.hierarchy)
            if spec.hierarchy.unknown == "root":
                yield Finding("warning", path, f"the file misses {missing}; to the distance they are one value", fix)
            else:
                yield Finding("error", path, f"the file misses {missing}", fix, CoverageError.exit_code)


def _feasible(source: "DataFrame", config: Config, *, persons: int, rows: int) -> Iterator[Finding]:
    from kanon_spark.methods.full_domain import most_suppressed
    from kanon_spark.privacy.alpha import Alpha
    from kanon_spark.privacy.feasibility import forced, impossible
    from kanon_spark.privacy.l_diversity import Entropy, Recursive
    from kanon_spark.privacy.t_closeness import TCloseness

    columns, models = count_columns(source, config)
    members = _members(source, config) if any(column.people is not None for column in columns) else None
    suppressible = most_suppressed(config.privacy.max_suppression, rows)
    # A run counts persons by what is left of the quasi-identifiers at their least level, here they are as they are.
    merged = config.privacy.unit is not None and any(qi.min_level for qi in config.columns.quasi_identifiers.values())
    for column in columns:
        path = column.name if column.name == _WISHES else f"columns.sensitive.{column.name}"
        for model in models[column.name]:
            alone = {column.name: [model]}
            for text in impossible([column], alone, suppressible=suppressible, persons=persons, members=members):
                sure = not (merged and isinstance(model, Entropy | Recursive))
                message = text.removeprefix(f"{column.name}: ")
                yield Finding(
                    "error" if sure else "warning", path, message, _LESS, DataError.exit_code if sure else None
                )
            if merged and isinstance(model, TCloseness):
                continue  # the distribution of a run is another
            for text in forced([column], alone, suppressible=suppressible):
                message = text.removeprefix(f"{column.name}: ")
                misnamed = isinstance(model, Alpha) and model.unknown > 0
                fix = "write them as the column does, or leave them out" if misnamed else _COARSE
                yield Finding("warning", path, message, fix)


def _population(spark: "SparkSession", loaded: LoadedConfig) -> Iterator[Finding]:
    from kanon_spark.engine.population import open_population, persons_of
    from kanon_spark.privacy.feasibility import impossible_k_map

    asked = loaded.config.privacy.k_map
    if asked is None:
        return
    try:
        population = open_population(spark, loaded)
    except KanonError as error:
        yield Finding("error", error.where, error.message, error.fix, error.exit_code)
        return
    people = 0 if population is None else persons_of(population, loaded.config.privacy.unit)
    for text in impossible_k_map(asked.k, people):
        yield Finding("error", "privacy.k_map.k", text, "lower k, or take a larger population", DataError.exit_code)


@dataclass(frozen=True)
class _Part:
    """One column to be counted: its value, what has to be known of it, and whether alpha limits it."""

    value: "Expression"
    watched: "Expression"
    amount: "Expression"
    raw: "Expression"
    limited: bool = False


def count_columns(source: "DataFrame", config: Config) -> "tuple[list[Column], Mapping[str, tuple[Model, ...]]]":
    """How many rows carry each value of the judged columns, and what is asked of them.

    With a unit a person counts once for each combination of quasi-identifiers and judged values, as in a run, and where
    alpha is asked `people` has each once. One job. Of the values themselves nothing comes back: codes are given out by
    how often they occur.
    """
    from functools import reduce

    import numpy as np
    from pyspark.sql import functions as F

    from kanon_spark.privacy.asked import models_of
    from kanon_spark.privacy.columns import Column
    from kanon_spark.privacy.personal_k import PersonalK
    from kanon_spark.signatures.columns import kind_of, quoted
    from kanon_spark.signatures.lookups import same_text

    unit = config.privacy.unit
    parts = _parts(source, config)
    person = []
    if unit is not None:
        known = F.col(quoted(unit))
        carrier = F.when(
            known.isNotNull(), _combination(source, config, [known, *(part.raw for part in parts.values())])
        )
        person = [known.alias("person"), carrier.alias("carrier")]
    tables = []
    for index, part in enumerate(parts.values()):
        each = source.select(
            F.lit(index).alias("column"),
            F.xxhash64(part.value, part.value.isNull()).alias("value"),
            part.value.isNull().alias("null"),
            part.watched.alias("watched"),
            part.amount.cast("long").alias("amount"),
            *person,
        )
        number = people = F.count(F.lit(1))
        if unit is not None:
            nobody = F.count(F.when(F.col("person").isNull(), 1))
            number, people = F.count_distinct("carrier") + nobody, F.count_distinct("person") + nobody
        values = each.groupBy("column", "value", "null", "watched", "amount").agg(
            number.alias("number"), (people if part.limited else F.lit(0)).alias("people")
        )
        same = ["column", "null", "watched", "amount", "number", "people"]
        tables.append(values.groupBy(*same).agg(F.count("*").alias("values")))
    # At most √(2n) different numbers per column, with a unit one row per value; of wishes one per k that is asked for.
    found = reduce(lambda left, right: left.unionAll(right), tables).toPandas().sort_values("null", kind="stable")
    columns: list[Column] = []
    models: dict[str, tuple[Model, ...]] = {}
    for index, name in enumerate(parts):
        own = found[found["column"] == index]
        many = own["values"].to_numpy(np.int64)
        counts = np.repeat(own["number"].to_numpy(np.int64), many)
        if name == _WISHES:
            columns.append(Column.personal(name, np.repeat(own["amount"].to_numpy(np.int64), many), counts))
            models[name] = (PersonalK(),)
            continue
        null = len(counts) - 1 if len(own) and own["null"].iloc[-1] else -1
        distinct = (
            np.repeat(own["people"].to_numpy(np.int64), many) if unit is not None and parts[name].limited else None
        )
        columns.append(Column(name, counts, null=null, people=distinct))
        spec = judged_columns(config)[name]
        named = (spec.alpha.values if spec.alpha is not None else None) or ()
        codes = np.flatnonzero(np.repeat(own["watched"].to_numpy(bool), many)).tolist()
        # Which of the named values has which code does not matter: together they are the watched ones. But two names
        # may mean one value.
        kind = kind_of(source.schema[name].dataType, qi=name) if named else "text"
        forms = {each: same_text(each, kind) for each in named}
        code_of = dict(zip(dict.fromkeys(forms.values()), codes, strict=False))
        named_codes = {each: code_of[form] for each, form in forms.items() if form in code_of}
        models[name] = models_of(spec, config.privacy, named_codes)
    return columns, models


def _parts(source: "DataFrame", config: Config) -> dict[str, _Part]:
    from pyspark.sql import functions as F

    from kanon_spark.signatures.columns import normalised, quoted

    parts = {}
    for name, spec in judged_columns(config).items():
        value = normalised(source, name)
        named = spec.alpha.values if spec.alpha is not None else None
        # Each name is read as a value of the column, so that 3 means 3.0 where there are fractions.
        names = [F.lit(each).try_cast(source.schema[name].dataType) for each in named or ()]
        watched = F.coalesce(value.isin(*names), F.lit(False)) if names else F.lit(False)
        parts[name] = _Part(value, watched, F.lit(None), value, spec.alpha is not None)
    wishes = config.privacy.personal_k
    if wishes is not None:
        wish = F.col(quoted(wishes.column)) if wishes.column is not None else F.expr(wishes.rule or "NULL")
        k = config.privacy.k
        amount = F.greatest(F.lit(k).cast("long"), F.coalesce(wish.cast("long"), F.lit(k)))
        parts[_WISHES] = _Part(amount, F.lit(False), amount, wish)
    return parts


def _combination(source: "DataFrame", config: Config, more: "list[Expression]") -> "Expression":
    """One long for the quasi-identifiers of a row and more."""
    from pyspark.sql import functions as F

    from kanon_spark.io.content import null_masks
    from kanon_spark.signatures.columns import normalised

    parts = [*more, *[normalised(source, name) for name in config.columns.quasi_identifiers]]
    return F.xxhash64(*parts, *null_masks(parts))


def _members(source: "DataFrame", config: Config) -> int:
    """Pairs of a person and one of his combinations of quasi-identifiers; a row without a person is one of its own."""
    from pyspark.sql import functions as F

    from kanon_spark.signatures.columns import quoted

    known = F.col(quoted(config.privacy.unit or ""))
    pair = F.when(known.isNotNull(), _combination(source, config, [known]))
    found = source.agg(F.count_distinct(pair) + F.count(F.when(known.isNull(), 1))).first()
    return int(found[0]) if found is not None else 0
