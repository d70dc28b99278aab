"""The configuration: frozen models that read the same from YAML, a dict and Python keyword arguments.

Each model checks what can be checked inside it; `rules.py` checks what spans several. Use `load_config` to make a
`Config`: it reports every problem at once and in plain words.
"""

from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from kanon_spark.config.base import (
    NO_BOOLEAN,
    ColumnName,
    OptionText,
    Share,
    Spec,
    Text,
    Whole,
    named,
    refuse,
    short_form,
)
from kanon_spark.config.hierarchy_specs import (
    CsvSpec,
    DateSpec,
    FileSpec,
    FlatSpec,
    HierarchyField,
    HierarchySpec,
    IntervalSpec,
    PrefixSpec,
    ReferenceSpec,
)
from kanon_spark.config.jdbc import JdbcSpec
from kanon_spark.config.privacy_specs import Alpha, Beta, Delta, KMapSpec, LDiversity, PersonalK, TCloseness
from kanon_spark.config.pseudonyms import PseudonymSpec

__all__ = [
    "ColumnsSpec",
    "Config",
    "CsvSpec",
    "DateSpec",
    "ExecutionSpec",
    "FileSpec",
    "FlatSpec",
    "HierarchySpec",
    "IdentifierSpec",
    "IntervalSpec",
    "MethodSpec",
    "OutputSpec",
    "PrefixSpec",
    "PrivacySpec",
    "PseudonymSpec",
    "QiSpec",
    "ReferenceSpec",
    "ReportSpec",
    "ScheduleSpec",
    "SensitiveSpec",
    "SinkSpec",
    "SourceSpec",
    "format_of",
]

FileFormat = Literal["parquet", "orc", "csv", "json", "delta", "iceberg"]
MethodName = Literal[
    "auto", "lattice", "kmember", "mst", "sbca", "kactus", "prgain", "mondrian", "datafly", "incognito"
]
VERSIONED = ("delta", "iceberg")  # formats whose tables have versions that can be read by their number
_SUFFIXES = {".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".orc": "orc"}


def format_of(path: str) -> str:
    """The format that a path's ending names; parquet where it names none.

    >>> format_of("data/people.csv.gz"), format_of("data/people")
    ('csv', 'parquet')
    """
    name = PurePosixPath(path.lower())
    suffix = name.suffix if name.suffix not in {".gz", ".bz2", ".zst"} else PurePosixPath(name.stem).suffix
    return _SUFFIXES.get(suffix, "parquet")


class SourceSpec(Spec):
    """Where the rows come from: a path, a catalog table, or a PostgreSQL database."""

    path: Text | None = None
    format: FileFormat | None = None
    options: dict[str, OptionText] = Field(default_factory=dict)
    table: Text | None = None
    jdbc: JdbcSpec | None = None
    version: Whole | None = None
    where: Text | None = None
    snapshot: Literal["none", "copy"] = "none"

    @model_validator(mode="before")
    @classmethod
    def _format_by_ending(cls, value: object) -> object:
        if isinstance(value, dict) and isinstance(value.get("path"), str) and value.get("format") is None:
            return {**value, "format": format_of(value["path"])}
        return value

    @model_validator(mode="after")
    def _one_place(self) -> "SourceSpec":
        _exactly_one(self.path, self.table, self.jdbc)
        if self.path is None and self.options:
            refuse("options belong to a path (a database has its own: jdbc.options)")
        if self.path is None and self.format not in {None, *VERSIONED}:
            refuse("format belongs to a path; of a table only delta or iceberg may be said")
        if self.jdbc is not None and self.format is not None:
            refuse("a database has no format")
        if self.version is not None and (self.jdbc is not None or self.format not in {None, *VERSIONED}):
            refuse("only Delta and Iceberg tables have versions")
        return self


class SinkSpec(Spec):
    """Where the release goes: a path, a catalog table, or a PostgreSQL table."""

    path: Text | None = None
    format: FileFormat = "parquet"
    table: Text | None = None
    jdbc: JdbcSpec | None = None
    partition_by: tuple[ColumnName, ...] = ()
    order: Literal["shuffled", "source"] = "shuffled"
    layout: Literal["auto", "folder", "pointer"] = "auto"

    @model_validator(mode="after")
    def _one_place(self) -> "SinkSpec":
        _exactly_one(self.path, self.table, self.jdbc)
        if self.table is not None and self.format in {"orc", "csv", "json"}:
            refuse("a catalog table is written as parquet, delta or iceberg")
        if self.path is not None and self.format == "iceberg":
            refuse("an Iceberg release is a table of a catalog: name it with table")
        if self.layout != "auto" and (self.path is None or self.format == "delta"):
            refuse("layout belongs to a path with files; tables have transactions instead")
        if self.jdbc is not None:
            _plain_table(self.jdbc, self.format, self.partition_by)
        if len(set(self.partition_by)) < len(self.partition_by):
            refuse("partition_by names a column twice")
        return self


def _plain_table(jdbc: JdbcSpec, file_format: str, partition_by: tuple[str, ...]) -> None:
    if jdbc.query is not None:
        refuse("a release goes to a table, not to a query")
    if file_format != "parquet" or partition_by:
        refuse("a database has neither format nor partition_by")


def _exactly_one(*places: object) -> None:
    given = sum(place is not None for place in places)
    if given != 1:
        refuse(f"exactly one of path, table or jdbc must be given, {'none' if not given else 'several'} was")


class QiSpec(Spec):
    """One quasi-identifier. Without a hierarchy, numbers and dates publish ranges and text publishes sets."""

    hierarchy: HierarchyField = None
    weight: Annotated[float, Field(gt=0), NO_BOOLEAN] = 1.0
    min_level: Annotated[int, Field(ge=0), NO_BOOLEAN] = 0
    max_level: Annotated[int, Field(ge=0), NO_BOOLEAN] | None = None

    @property
    def file(self) -> FileSpec | None:
        """The hierarchy file whose lines name all leaves; None where the leaves are what the data holds.

        A file under whose codes longer ones stand (`stem`) names the leaves from level 1 on only.
        """
        hierarchy = self.hierarchy
        if not isinstance(hierarchy, FileSpec) or (hierarchy.stem is not None and not self.min_level):
            return None
        return hierarchy

    @model_validator(mode="after")
    def _levels(self) -> "QiSpec":
        from kanon_spark.config.hierarchy_specs import hierarchy_levels

        if self.max_level is not None and self.min_level > self.max_level:
            refuse("min_level must not be larger than max_level")
        if self.hierarchy is None:
            if self.min_level or self.max_level is not None:
                refuse("min_level and max_level need a hierarchy: ranges and sets have no levels")
            return self
        star = hierarchy_levels(self.hierarchy)
        if star is not None and self.min_level >= star:
            refuse(f"min_level must be below {star}, the level of '*': drop the column instead")
        if star is not None and self.max_level is not None and self.max_level > star:
            refuse(f"max_level must be at most {star}, the level of '*'")
        return self


class IdentifierSpec(Spec):
    """A direct identifier: dropped, or replaced by a pseudonym."""

    pseudonym: PseudonymSpec | None = None


class SensitiveSpec(Spec):
    """A sensitive column: kept as it is, and protected by models of its own where they are given."""

    hierarchy: HierarchyField = None
    l_diversity: LDiversity | None = None
    t_closeness: TCloseness | None = None
    alpha: Alpha | None = None
    beta_likeness: Beta | None = None
    delta_disclosure: Delta | None = None


def _qi_short_form(value: object) -> object:
    """A QI may be written as its hierarchy alone: a path, `flat`, or a hierarchy object."""
    alone = isinstance(value, str) or (isinstance(value, Spec) and not isinstance(value, QiSpec))
    return {"hierarchy": value} if alone else value


QiField = Annotated[QiSpec, BeforeValidator(_qi_short_form)]


class ColumnsSpec(Spec):
    """Each column's role. The order of the quasi-identifiers decides ties."""

    identifiers: Annotated[dict[ColumnName, IdentifierSpec], named("identifier")] = Field(default_factory=dict)
    quasi_identifiers: Annotated[dict[ColumnName, QiField], named("quasi-identifier")]
    sensitive: Annotated[dict[ColumnName, SensitiveSpec], named("sensitive column")] = Field(default_factory=dict)
    other: Literal["error", "drop", "keep"] = "error"

    @model_validator(mode="after")
    def _some(self) -> "ColumnsSpec":
        if not self.quasi_identifiers:
            refuse("at least one quasi-identifier is needed: without one there is nothing to anonymize")
        return self


class PrivacySpec(Spec):
    """What the release must guarantee."""

    k: Annotated[int, Field(ge=2), NO_BOOLEAN] = 5
    unit: ColumnName | None = None
    max_suppression: Share = 0.0
    l_diversity: LDiversity | None = None
    t_closeness: TCloseness | None = None
    alpha: Alpha | None = None
    beta_likeness: Beta | None = None
    delta_disclosure: Delta | None = None
    personal_k: PersonalK | None = None
    k_map: KMapSpec | None = None


class MethodSpec(Spec):
    """How classes are formed. Options other than `effort` belong to single methods."""

    name: MethodName = "auto"
    effort: Literal["fast", "normal", "high"] = "normal"
    cut: Literal["loss", "balanced", "paper"] | None = None
    order: Literal["cheapest", "paper"] | None = None
    label: ColumnName | None = None
    penalty: Annotated[float, Field(ge=0), NO_BOOLEAN] | None = None
    leftover: Literal["suppress", "join"] | None = None
    target: ColumnName | None = None
    dimension: Literal["multi", "single"] | None = None
    numeric: Literal["range", "mean"] | None = None
    criterion: Literal["gain_ratio", "gini"] | None = None
    beam: Annotated[int, Field(ge=1), NO_BOOLEAN] | None = None


class ExecutionSpec(Spec):
    """How the work is carried out; nothing here weakens a guarantee."""

    block_size: Annotated[int, Field(ge=1), NO_BOOLEAN] | None = None
    local_limit: Annotated[int, Field(ge=0), NO_BOOLEAN] | None = None
    stitch: Literal["auto", "local", "graphframes"] = "auto"
    bound: Literal["auto", "simple", "dual", "none"] = "auto"
    seed: Whole = 0
    work_dir: Text | None = None
    lease: Annotated[float, Field(gt=0), NO_BOOLEAN] = 60.0


class OutputSpec(Spec):
    """How published values look."""

    ranges: Literal["tight", "grid"] = "tight"
    numeric: Literal["label", "bounds", "mean"] = "label"
    sets: Literal["label", "array"] = "label"
    suppressed_rows: Literal["drop", "star"] = "drop"


class ReportSpec(Spec):
    """Where manifest and report go."""

    html: Text | None = None
    manifest: Text | None = None
    risk: Literal["auto", "full", "none"] = "auto"
    edition: Literal["internal", "external"] = "internal"


class PartitionSpec(Spec):
    """One partition of the source."""

    column: ColumnName
    value: Text


class ScheduleSpec(Spec):
    """Repeated runs."""

    run_key: Text | None = None
    partition: PartitionSpec | None = None
    ledger: Text | None = None
    repeat: Literal["replace", "incremental"] = "replace"
    key: ColumnName | None = None
    max_loss: Share | None = None
    time_budget: Annotated[float, Field(gt=0), NO_BOOLEAN] | None = None


class Config(Spec):
    """A whole job, as `load_config` returns it.

    >>> config = Config.model_validate({"columns": {"quasi_identifiers": ["age"]}, "privacy": {"k": 10}})
    >>> config.privacy.k, config.resolved_method, list(config.columns.quasi_identifiers)
    (10, 'kmember', ['age'])
    """

    version: Literal[1] = 1
    name: Text = "release"
    source: Annotated[SourceSpec, short_form("path", str)] | None = None
    columns: ColumnsSpec
    privacy: PrivacySpec = PrivacySpec()
    method: Annotated[MethodSpec, short_form("name", str)] = MethodSpec()
    execution: ExecutionSpec = ExecutionSpec()
    output: OutputSpec = OutputSpec()
    sink: Annotated[SinkSpec, short_form("path", str)] | None = None
    report: ReportSpec = ReportSpec()
    schedule: ScheduleSpec = ScheduleSpec()

    @property
    def resolved_method(self) -> str:
        """The method that runs: `auto` is `lattice` where a quasi-identifier has a hierarchy, else `kmember`."""
        if self.method.name != "auto":
            return self.method.name
        any_hierarchy = any(qi.hierarchy is not None for qi in self.columns.quasi_identifiers.values())
        return "lattice" if any_hierarchy else "kmember"

    def to_dict(self) -> dict[str, object]:
        """The shortest dict that loads to this configuration again (values from `${NAME}` stand in it filled in)."""
        from kanon_spark.config.forms import to_form

        return {"version": self.version, **to_form(self)}
