"""Names of catalog tables, and what a table says of itself: its properties, comments, and the release in it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kanon_spark.errors import TargetError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kanon_spark.config.models import SourceSpec

SESSION_CATALOG = "spark_catalog"
FACTS = "kanon.facts"
WHERE = "sink.table"
_PART = re.compile(r"[A-Za-z0-9_]+")
# Properties that a format keeps itself; all others are the owner's and go over to the next release.
_OWN = re.compile(
    r"kanon\..*|comment|owner|provider|location|external|transient_lastDdlTime|option\..*|numFiles|totalSize|numRows|"
    r"delta\.(min(Reader|Writer)Version|feature\..*|columnMapping\..*|rowTracking\..*|inCommitTimestamp.*|clustering.*)|"
    r"current-snapshot-id|format|format-version|sort-order|identifier-fields"
)


@dataclass(frozen=True)
class TableName:
    """A table of a catalog. Names of the session's own catalog are in lower case, as it keeps them."""

    database: str
    name: str
    catalog: str = SESSION_CATALOG

    @classmethod
    def parse(cls, spark: "SparkSession", text: str, *, where: str = WHERE, any_catalog: bool = False) -> "TableName":
        """Read `name`, `database.name` or `catalog.database.name`."""
        parts = [part.strip("`") for part in text.split(".")]
        if len(parts) == 3 and parts[0].lower() == SESSION_CATALOG:
            parts = parts[1:]
        fits = len(parts) <= (3 if any_catalog else 2) and all(_PART.fullmatch(part) for part in parts)
        if not fits:
            raise TargetError(
                "this is not the name of a table" + ("" if any_catalog else " in Spark's own catalog"),
                where=where,
                fix=f"write name or database.name{', or catalog.database.name' * any_catalog}: letters, digits, _",
            )
        if len(parts) == 3:
            return cls(parts[1], parts[2], parts[0])
        catalog = str(spark.catalog.currentCatalog()) if any_catalog else SESSION_CATALOG
        database = parts[0] if len(parts) == 2 else str(spark.catalog.currentDatabase())
        if catalog != SESSION_CATALOG:
            return cls(database, parts[-1], catalog)
        return cls(database.lower(), parts[-1].lower())

    def sibling(self, run_id: str, what: str) -> "TableName":
        """The name under which a run keeps the staged or the previous table."""
        return TableName(self.database, f"{self.name}__kanon_{run_id}_{what}".lower(), self.catalog)

    def __str__(self) -> str:
        return ".".join(self._parts)

    @property
    def quoted(self) -> str:
        """The name as SQL takes it."""
        return ".".join(f"`{part}`" for part in self._parts)

    @property
    def quoted_database(self) -> str:
        """The database as SQL takes it."""
        return ".".join(f"`{part}`" for part in self._parts[:-1])

    @property
    def _parts(self) -> tuple[str, ...]:
        own = (self.database, self.name)
        return own if self.catalog == SESSION_CATALOG else (self.catalog, *own)


@dataclass(frozen=True)
class TableFacts:
    """What a table says of itself.

    Attributes:
        kind: `delta`, `iceberg`, `parquet` …; empty for a view.
        managed: Whether its files are the catalog's.
        comment: The comment on the table.
        properties: All of its properties.
        column_comments: Comments on columns that have one.
    """

    kind: str
    managed: bool
    comment: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    column_comments: dict[str, str] = field(default_factory=dict)

    @property
    def kept(self) -> dict[str, str]:
        """The properties that its owner has set, and that go over to the next release."""
        return {key: value for key, value in self.properties.items() if not _OWN.fullmatch(key)}

    @property
    def release(self) -> dict[str, Any] | None:
        """What the release in it says of itself; None if it is none of ours."""
        return read_facts(self.properties.get(FACTS))


def facts_of(spark: "SparkSession", quoted: str) -> TableFacts | None:
    """What the table of a quoted name says of itself; None if there is none."""
    if not spark.catalog.tableExists(quoted):
        return None
    # A few rows per column, and a handful more.
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {quoted}").collect()
    begin = next((place for place, row in enumerate(rows) if row["col_name"].startswith("# Detailed")), 0)
    told = {str(row["col_name"]): str(row["data_type"]) for row in rows[begin:]}
    if "VIEW" in told.get("Type", ""):
        return TableFacts("", managed=False)
    comments = {
        each.name: str(each.metadata["comment"])
        for each in spark.table(quoted).schema.fields
        if each.metadata.get("comment")
    }
    return TableFacts(
        told.get("Provider", "").lower(),
        told.get("Type", "").upper() == "MANAGED",
        told.get("Comment"),
        properties_of(spark, quoted),
        comments,
    )


def properties_of(spark: "SparkSession", quoted: str) -> dict[str, str]:
    """The properties of a table."""
    # One row per table property: a handful.
    return {str(row["key"]): str(row["value"]) for row in spark.sql(f"SHOW TBLPROPERTIES {quoted}").collect()}


def read_facts(text: str | None) -> dict[str, Any] | None:
    """The facts of a release as a property holds them; None if they are not ours."""
    try:
        found = json.loads(text or "")
    except ValueError:
        return None
    return found if isinstance(found, dict) and "run_id" in found else None


def release_properties(facts: Mapping[str, object], *, run_id: str, file_format: str) -> dict[str, str]:
    """The properties by which a table says which release it holds: all in one, and those that people look for."""
    text = json.dumps({**facts, "run_id": run_id, "format": file_format}, default=str)
    plain = {f"kanon.{name}": str(facts[name]) for name in ("k", "method") if name in facts}
    return {FACTS: text, "kanon.run_id": run_id, **plain}


def with_comments(table: "DataFrame", comments: Mapping[str, str]) -> "DataFrame":
    """The table with comments on its columns, for a statement that makes a table of it."""
    from pyspark.sql import functions as F

    columns = []
    for name in table.columns:
        column = F.col(quoted_column(name))
        columns.append(column.alias(name, metadata={"comment": comments[name]}) if name in comments else column)
    return table.select(*columns)


def quoted_column(name: str) -> str:
    """A column's name as SQL takes it."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """A text as SQL takes it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def property_list(properties: Mapping[str, str]) -> str:
    """Properties as SQL takes them, without the parentheses."""
    return ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties.items())


def refuse_source(spark: "SparkSession", source: "SourceSpec | None", name: TableName) -> None:
    """Raise `TargetError` where the release would replace its own source."""
    if source is None or source.table is None:
        return
    try:
        same = TableName.parse(spark, source.table, where="source.table", any_catalog=True) == name
    except TargetError:
        return
    if same:
        raise TargetError("the release must not replace its source", where=WHERE, fix="choose another table")


def refuse_no_database(spark: "SparkSession", name: TableName) -> None:
    """Raise `TargetError` where there is no such database."""
    if not spark.catalog.databaseExists(name.quoted_database):
        raise TargetError(
            f"there is no database {name.quoted_database.replace('`', '')}",
            where=WHERE,
            fix="create it, or name another one",
        )
