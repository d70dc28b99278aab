"""A configuration against the real table, before any work: everything that would stop a run or deserves a thought.

`check_schema` looks at columns and types only and starts no Spark job: every run does it. `check_table` also reads the
data: `kanon check` does it.
"""

from collections.abc import Container, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kanon_spark.config.findings import Finding
from kanon_spark.config.hierarchy_specs import fix_unknown
from kanon_spark.config.loader import LoadedConfig
from kanon_spark.config.models import Config, FileSpec
from kanon_spark.config.pseudonyms import repeated_text, stable_warning
from kanon_spark.config.roles import assign_roles
from kanon_spark.config.sensitive_findings import demand_findings, sensitive_type_findings
from kanon_spark.config.words import did_you_mean
from kanon_spark.errors import (
    CoverageError,
    DataError,
    EmptyTableError,
    KanonError,
    MissingInputError,
    RepeatedIdError,
    RequestError,
    RoleError,
    TooFewPersonsError,
    UnsupportedTypeError,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession
    from pyspark.sql.types import DataType, StructType

ACTS_AS_QI = 0.5  # a kept column with more distinct values than this share of the rows tells rows apart by itself
CLEARLY_FEWER, CLEARLY_MORE = 0.97, 1.1  # beyond the error of approximate counts
MOST_QIS = 63  # their null flags share one long
_QIS = "columns.quasi_identifiers"

__all__ = ["Finding", "check_schema", "check_table"]


def check_schema(schema: "StructType", config: Config) -> list[Finding]:
    """What the table's columns and types alone tell."""
    names = schema.fieldNames()
    roles = assign_roles(config, names)
    found = [_missing_column(name, config, names) for name in roles.missing]
    # Spark finds columns by name without regard to case unless a session says otherwise.
    lowered = [name.lower() for name in names]
    doubled = sorted({name for name in lowered if lowered.count(name) > 1})
    found += [
        Finding(
            "error", "source", f"several columns are called '{name}', case aside", "rename them", DataError.exit_code
        )
        for name in doubled
    ]
    if roles.without_role:
        listed = ", ".join(f"'{name}'" for name in roles.without_role)
        found.append(
            Finding(
                "error",
                "columns.other",
                f"no role is given to {len(roles.without_role)} column(s): {listed}",
                "name each as identifier, quasi-identifier or sensitive, or set columns.other to drop or keep",
                RoleError.exit_code,
            )
        )
    if len(roles.quasi_identifiers) > MOST_QIS:
        message = f"there are {len(roles.quasi_identifiers)} quasi-identifiers, more than {MOST_QIS}"
        found.append(Finding("error", _QIS, message, "leave out the least telling ones", RequestError.exit_code))
    if not doubled:
        found += _type_findings(schema, config)
        found += _unit_type_findings(schema, config)
        found += _form_findings(schema, config)
        found += _pseudonym_type_findings(schema, config)
        found += sensitive_type_findings(schema, config)
    return found


def check_table(
    spark: "SparkSession", loaded: LoadedConfig, source: "DataFrame", *, show_values: bool = False
) -> list[Finding]:
    """All findings about a table; where its columns do not fit, the data is not read."""
    config = loaded.config
    found = check_schema(source.schema, config)
    if any(finding.level == "error" for finding in found):
        return found
    counts = _counts(source, config)
    if counts["rows"] == 0:
        empty = EmptyTableError.exit_code
        return [
            *found,
            Finding("error", "source", "the table has no rows", "check source.path and source.where", empty),
        ]
    found += _person_findings(counts, source, config)
    found += _pseudonym_findings(source, config)
    found += _value_findings(counts, source, config)
    found += _coverage_findings(spark, source, config, base_dir=loaded.base_dir, show_values=show_values)
    persons = _persons(counts, config)
    found += demand_findings(spark, loaded, source, persons=persons, rows=int(counts["rows"]), show_values=show_values)
    return found


def _persons(counts: "Row", config: Config) -> int:
    unit = config.privacy.unit
    return int(counts["rows"] if unit is None else counts["units"] + counts["null_units"])


def _missing_column(name: str, config: Config, names: list[str]) -> Finding:
    columns = config.columns
    places: dict[str, Container[str]] = {
        _QIS: columns.quasi_identifiers,
        "columns.sensitive": columns.sensitive,
        "columns.identifiers": columns.identifiers,
    }
    path = next((f"{place}.{name}" for place, known in places.items() if name in known), None)
    if path is None:
        wishes = config.privacy.personal_k.column if config.privacy.personal_k is not None else None
        others = {
            wishes: "privacy.personal_k",
            config.privacy.unit: "privacy.unit",
            config.method.target: "method.target",
        }
        path = others.get(name, "method.label")
    listed = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
    return Finding(
        "error",
        path,
        f"the table has no column '{name}'{did_you_mean(name, names)}",
        f"the table has: {listed}",
        MissingInputError.exit_code,
    )


def _type_findings(schema: "StructType", config: Config) -> Iterator[Finding]:
    from kanon_spark.signatures.columns import kind_of
    from kanon_spark.signatures.fit import misfit

    types = {field.name: field.dataType for field in schema.fields}
    for name, spec in config.columns.quasi_identifiers.items():
        if name not in types:
            continue
        try:
            wrong: KanonError | None = misfit(spec.hierarchy, kind_of(types[name], qi=name), qi=name)
        except DataError as error:
            wrong = error
        if wrong is not None:
            yield Finding("error", wrong.where or f"{_QIS}.{name}", wrong.message, wrong.fix, wrong.exit_code)


def _form_findings(schema: "StructType", config: Config) -> Iterator[Finding]:
    """What stands against the number columns that `output.numeric` adds."""
    from kanon_spark.signatures.columns import kind_of
    from kanon_spark.signatures.forms import forms_of

    kinds = {}
    for field in schema.fields:
        if field.name in config.columns.quasi_identifiers:
            try:
                kinds[field.name] = kind_of(field.dataType, qi=field.name)
            except DataError:  # said already
                continue
    dropped = assign_roles(config, schema.fieldNames()).dropped
    # Spark does not tell age_lo from Age_Lo.
    taken = {name.lower() for name in schema.fieldNames() if name not in dropped}
    for name, form in forms_of(config, kinds).items():
        for added in form.added(name):
            if added.lower() in taken:
                yield Finding(
                    "error",
                    "output.numeric",
                    f"the release would have two columns called '{added}', one of them added beside '{name}'",
                    "rename or drop the table's column, or set output.numeric: label",
                    RequestError.exit_code,
                )
            taken.add(added.lower())
        if "mean" in form.numbers and config.columns.quasi_identifiers[name].min_level:
            yield Finding(
                "error",
                f"{_QIS}.{name}.min_level",
                "the values are generalized from the start, and a mean would tell what min_level hides",
                "set output.numeric: bounds, or remove min_level",
                RequestError.exit_code,
            )


def _unit_type_findings(schema: "StructType", config: Config) -> Iterator[Finding]:
    unit = config.privacy.unit
    types = {field.name: field.dataType for field in schema.fields}
    if unit in types and not _has_equality(types[unit]):
        yield Finding(
            "error",
            "privacy.unit",
            f"a column of type {types[unit].simpleString()} cannot name persons: Spark cannot compare its values",
            "name a column of text or numbers",
            UnsupportedTypeError.exit_code,
        )


def _pseudonym_type_findings(schema: "StructType", config: Config) -> Iterator[Finding]:
    from kanon_spark.signatures.ids import can_be_pseudonymized

    types = {field.name: field.dataType for field in schema.fields}
    for name, spec in config.columns.identifiers.items():
        path = f"columns.identifiers.{name}.pseudonym"
        if spec.pseudonym is not None and name in types and not can_be_pseudonymized(types[name]):
            yield Finding(
                "error",
                path,
                f"a column of type {types[name].simpleString()} cannot become a pseudonym",
                "cast it to text, a whole number, a decimal or a date in the source, or drop it",
                UnsupportedTypeError.exit_code,
            )
        if spec.pseudonym is not None and spec.pseudonym.stable:
            fix = "leave stable out, so that each run has pseudonyms of its own, unless the releases are to be linked"
            yield Finding("warning", f"{path}.stable", stable_warning(name), fix)


def _pseudonym_findings(source: "DataFrame", config: Config) -> Iterator[Finding]:
    from kanon_spark.signatures.ids import look_at_ids

    names = [name for name, spec in config.columns.identifiers.items() if spec.pseudonym is not None]
    for name, facts in look_at_ids(source, names).items():
        if facts.repeated:
            message, fix = repeated_text(name, facts.repeated)
            yield Finding("error", f"columns.identifiers.{name}.pseudonym", message, fix, RepeatedIdError.exit_code)


def _counts(source: "DataFrame", config: Config) -> "Row":
    """Rows, persons and (approximate) distinct values of every column that a finding may speak of, in one pass."""
    from pyspark.sql import functions as F

    from kanon_spark.signatures.columns import normalised, quoted

    roles = assign_roles(config, source.columns)
    unit = config.privacy.unit
    wanted: list[Column] = [F.count(F.lit(1)).alias("rows")]
    if unit is not None:
        column = F.col(quoted(unit))
        wanted += [F.count_distinct(column).alias("units"), F.count_if(column.isNull()).alias("null_units")]
    for index, name in enumerate(roles.quasi_identifiers):
        value = normalised(source, name)
        both = F.approx_count_distinct(value) + F.max(value.isNull().cast("int"))
        wanted.append(both.alias(f"qi_{index}"))
    hashable = {field.name for field in source.schema.fields if _has_equality(field.dataType)}
    for index, name in enumerate(roles.kept):
        wanted.append(
            (F.approx_count_distinct(F.col(quoted(name))) if name in hashable else F.lit(0)).alias(f"kept_{index}")
        )
    for index, name in enumerate(config.columns.identifiers):
        column = F.col(quoted(name))
        distinct = F.approx_count_distinct(column, 0.01) if name in hashable else F.count(column)
        wanted += [distinct.alias(f"id_{index}"), F.count(column).alias(f"id_rows_{index}")]
    row = source.agg(*wanted).first()
    assert row is not None
    return row


def _has_equality(data_type: "DataType") -> bool:
    """Whether Spark can compare values of this type, and so count distinct ones."""
    from pyspark.sql import types as T

    match data_type:
        case T.MapType() | T.VariantType():
            return False
        case T.ArrayType():
            return _has_equality(data_type.elementType)
        case T.StructType():
            return all(_has_equality(field.dataType) for field in data_type.fields)
    return True


def _person_findings(counts: "Row", source: "DataFrame", config: Config) -> Iterator[Finding]:
    k, unit = config.privacy.k, config.privacy.unit
    persons = _persons(counts, config)
    if persons < k:
        yield Finding(
            "error",
            "privacy.k",
            f"the table has {persons} {'rows' if unit is None else 'persons'}, fewer than k = {k}",
            f"lower k to {persons} or less, or anonymize a larger table",
            TooFewPersonsError.exit_code,
        )
    if unit is not None and counts["null_units"]:
        yield Finding(
            "warning",
            "privacy.unit",
            f"{counts['null_units']} rows have no person id; each counts as a person of its own",
            "filter them with source.where if they should not",
        )
    if unit is None:
        for index, name in enumerate(config.columns.identifiers):
            if _repeats(source, name, counts[f"id_{index}"], counts[f"id_rows_{index}"]):
                yield Finding(
                    "warning",
                    "privacy.unit",
                    f"the identifier '{name}' repeats, and no privacy.unit is given: k counts rows, so that several "
                    "rows of one person may make up a class",
                    f"if '{name}' names a person, set privacy.unit: {name}, so that k counts persons",
                )


def _repeats(source: "DataFrame", name: str, distinct: int, rows: int) -> bool:
    """Whether a value stands in two rows. The approximate count tells where many do; only else are they compared."""
    from pyspark.sql import functions as F

    from kanon_spark.signatures.columns import quoted, type_of

    if distinct < CLEARLY_FEWER * rows:
        return True
    if not _has_equality(type_of(source, name)):
        return False
    values = source.select(F.col(quoted(name)).alias("value")).where(F.col("value").isNotNull())
    twice = values.groupBy("value").agg(F.count(F.lit(1)).alias("rows")).where(F.col("rows") > 1)
    return bool(twice.limit(1).select("rows").collect())


def _value_findings(counts: "Row", source: "DataFrame", config: Config) -> Iterator[Finding]:
    from kanon_spark.signatures.domains import DOMAIN_LIMIT

    roles = assign_roles(config, source.columns)
    for index, name in enumerate(roles.quasi_identifiers):
        if counts[f"qi_{index}"] <= 1:
            yield Finding(
                "warning", f"{_QIS}.{name}", "has one value only, so it protects nothing and costs nothing", "drop it"
            )
        spec = config.columns.quasi_identifiers[name]
        own_values = spec.file is None and spec.min_level == 0
        if own_values and counts[f"qi_{index}"] > CLEARLY_MORE * DOMAIN_LIMIT:
            yield Finding(
                "error",
                f"{_QIS}.{name}",
                f"the column has about {counts[f'qi_{index}']:,} distinct values, more than {DOMAIN_LIMIT:,}",
                "set min_level, so that values are generalized from the start, or round them in the source",
                DataError.exit_code,
            )
    for index, name in enumerate(roles.kept):
        if counts[f"kept_{index}"] > ACTS_AS_QI * counts["rows"]:
            yield Finding(
                "warning",
                "columns",
                f"the kept column '{name}' has about {counts[f'kept_{index}']} distinct values in {counts['rows']} "
                "rows: it tells rows apart by itself",
                "make it a quasi-identifier or an identifier, unless nobody outside can know it",
            )


def _coverage_findings(
    spark: "SparkSession", source: "DataFrame", config: Config, *, base_dir: Path, show_values: bool
) -> Iterator[Finding]:
    """Hierarchy files against the table: a Spark anti-join per file, and every file's own errors."""
    from kanon_spark.signatures.coverage import find_missing
    from kanon_spark.signatures.encoding import file_encoding

    files: dict[str, FileSpec] = {}
    for name, spec in config.columns.quasi_identifiers.items():
        if not isinstance(spec.hierarchy, FileSpec):
            continue
        try:
            file_encoding(spark, source, config, base_dir=base_dir, names=[name])
            files[name] = spec.hierarchy
        except KanonError as error:
            yield Finding("error", error.where or f"{_QIS}.{name}", error.message, error.fix, error.exit_code)
    if not files:
        return
    encoding = file_encoding(spark, source, config, base_dir=base_dir, names=list(files))
    for missing in find_missing(source, encoding, range(len(files)), show_values=show_values):
        path = f"{_QIS}.{missing.name}.hierarchy"
        fix = fix_unknown(files[missing.name])
        if files[missing.name].unknown == "root":
            yield Finding("warning", path, f"the file misses {missing}; they are published as *", fix)
        else:
            yield Finding(
                "error",
                path,
                f"the file misses {missing}",
                f"{fix} to publish them as *",
                CoverageError.exit_code,
            )
