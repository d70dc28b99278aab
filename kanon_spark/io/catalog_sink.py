"""Releases as parquet tables of Spark's catalog: staged as a table beside the target, swapped in by two renames."""

import hashlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kanon_spark.engine.stages import failpoint
from kanon_spark.errors import TargetError
from kanon_spark.io.files import store_for
from kanon_spark.io.formats import refuse_unwritable_layout, refuse_unwritable_types
from kanon_spark.io.paths import join
from kanon_spark.io.table_names import (
    WHERE,
    TableName,
    facts_of,
    literal,
    property_list,
    quoted_column,
    refuse_no_database,
    refuse_source,
    release_properties,
)
from kanon_spark.logs import logger

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from kanon_spark.config.models import SinkSpec, SourceSpec

_FORMAT = "parquet"


class CatalogPublisher:
    """Write-audit-publish for one managed parquet table."""

    def __init__(self, spark: "SparkSession", sink: "SinkSpec", *, run_id: str, work_root: str) -> None:
        if sink.table is None:
            raise TargetError("no table is given", where=WHERE, fix="name the table of the release")
        self._spark = spark
        self._sink = sink
        self._run_id = run_id
        self._name = TableName.parse(spark, sink.table)
        self._staged = self._name.sibling(run_id, "staged")
        self._previous = self._name.sibling(run_id, "previous")
        self.target = str(self._name)
        self.staged_path = str(self._staged)
        # A catalog has no place for lock files: runs that share the work directory exclude each other.
        digest = hashlib.sha256(self.target.encode()).hexdigest()[:16]
        self.lock_path = join(work_root, f"kanon_lock_{digest}")
        self.lock_store = store_for(spark, work_root)

    def check(self, source: "SourceSpec | None" = None) -> None:
        """Refuse a missing database, a view, an external table, the source itself, and a name whose folder is taken."""
        refuse_source(self._spark, source, self._name)
        refuse_no_database(self._spark, self._name)
        if self.exists():
            kind = str(self._spark.catalog.getTable(self._name.quoted).tableType).upper()
            if kind != "MANAGED":
                raise TargetError(
                    f"{self.target} is not a managed table ({kind.lower()}); it is not replaced",
                    where=WHERE,
                    fix="choose another name",
                )
            return
        folder = join(self._location(), self._name.name)
        if store_for(self._spark, folder).list(folder):
            raise TargetError(
                f"the catalog has no table {self.target}, but files lie where it would be stored: {folder}",
                where=WHERE,
                fix="a catalog in memory forgets its tables; move the files away, or publish to sink.path",
            )

    def check_schema(self, schema: "StructType") -> None:
        """Refuse columns that would not survive, and partitions that do not fit."""
        refuse_unwritable_types(schema, _FORMAT)
        refuse_unwritable_layout(schema, _FORMAT, tuple(self._sink.partition_by))

    def exists(self) -> bool:
        """True if the table exists."""
        return bool(self._spark.catalog.tableExists(self._name.quoted))

    def published(self) -> dict[str, Any] | None:
        """What the release says of itself, in its table properties."""
        found = facts_of(self._spark, self._name.quoted)
        return None if found is None else found.release

    def earlier_stays(self) -> str | None:
        """Nothing: the previous table is dropped."""
        return None

    def write(self, table: "DataFrame") -> None:
        """Write the table beside the target."""
        self.check_schema(table.schema)
        writer = table.write.format(_FORMAT).mode("error")
        if self._sink.partition_by:
            writer = writer.partitionBy(*self._sink.partition_by)
        writer.saveAsTable(self._staged.quoted)

    def read_staged(self, schema: "StructType") -> "DataFrame":
        """Read back what was written."""
        return self._read(self._staged, schema)

    def read_published(self, schema: "StructType") -> "DataFrame":
        """Read the release."""
        return self._read(self._name, schema)

    def publish(self, facts: Mapping[str, object] | None = None) -> None:
        """Swap the staged table in and drop the previous one."""
        self.swap(facts)
        self.finish()

    def swap(self, facts: Mapping[str, object] | None = None) -> None:
        """The two renames. Whatever fails between them, short of the process dying, is undone at once."""
        had_previous = self.exists()
        self._take_over(release_properties(facts or {}, run_id=self._run_id, file_format=_FORMAT))
        if had_previous:
            self._rename(self._name, self._previous)
        try:
            failpoint("publish:between")
            self._rename(self._staged, self._name)
        except BaseException:
            if had_previous and not self.exists():
                self._rename(self._previous, self._name)
            raise

    def undo(self) -> None:
        """Put the previous release back."""
        facts = self.published()
        if facts is None or facts["run_id"] != self._run_id:
            return
        self._rename(self._name, self._staged)
        if self._spark.catalog.tableExists(self._previous.quoted):
            self._rename(self._previous, self._name)

    def finish(self) -> None:
        """Drop the previous release."""
        failpoint("publish:after")
        self._drop(self._previous)

    def recover(self) -> list[str]:
        """Finish or undo swaps of dead runs; drop what they staged."""
        removed: list[str] = []
        for name, run_id, what in self._siblings():
            sibling = TableName(self._name.database, name)
            if what == "previous" and not self._settle(sibling, run_id):
                continue
            self._drop(sibling)
            removed.append(str(sibling))
        return removed + self._sweep_folders()

    def has_leftovers(self) -> bool:
        """True if a run left tables, or folders of tables that the catalog has forgotten, beside the target."""
        return bool(self._siblings() or self._forgotten())

    def discard(self) -> None:
        """Drop what this run staged."""
        self._drop(self._staged)

    def description(self) -> dict[str, object]:
        """What the manifest tells of the sink."""
        return {
            "table": self.target,
            "format": _FORMAT,
            "partition_by": list(self._sink.partition_by),
            "read_options": {},
        }

    def _take_over(self, properties: dict[str, str]) -> None:
        """Give the staged table its properties, and those and the comments that the previous table's owner has set."""
        staged, before = self._staged.quoted, facts_of(self._spark, self._name.quoted)
        kept = {} if before is None else before.kept
        self._spark.sql(f"ALTER TABLE {staged} SET TBLPROPERTIES ({property_list({**kept, **properties})})")
        if before is None:
            return
        if before.comment:
            self._spark.sql(f"COMMENT ON TABLE {staged} IS {literal(before.comment)}")
        there = set(self._spark.table(staged).columns)
        for column, comment in before.column_comments.items():
            if column in there:
                name = quoted_column(column)
                self._spark.sql(f"ALTER TABLE {staged} ALTER COLUMN {name} COMMENT {literal(comment)}")

    def _settle(self, previous: TableName, run_id: str) -> bool:
        """Decide what a release that stands aside is for. True if it may be dropped."""
        if not self.exists():
            self._rename(previous, self._name)
            logger.warning(
                "[%s] the swap of run %s was interrupted: the previous release is back", self._run_id, run_id
            )
            return False
        facts = self.published()
        if facts is not None and str(facts["run_id"]).lower() == run_id:
            return True
        logger.warning("[%s] %s holds an older release that nobody replaced; it is left alone", self._run_id, previous)
        return False

    def _siblings(self) -> list[tuple[str, str, str]]:
        """Tables that runs other than this one left. Previous releases come first, newest first: they decide."""
        # One row per table whose name begins like the target's: a handful.
        rows = self._spark.sql(f"SHOW TABLES IN `{self._name.database}` LIKE '{self._name.name}__kanon_*'").collect()
        split = (self._split(str(row["tableName"])) for row in rows if not row["isTemporary"])
        found = sorted((entry for entry in split if entry is not None), reverse=True)
        return sorted(found, key=lambda entry: entry[2] != "previous")

    def _split(self, name: str) -> tuple[str, str, str] | None:
        match = re.fullmatch(re.escape(self._name.name) + r"__kanon_(.+)_(staged|previous)", name)
        if match is None or match.group(1) == self._run_id.lower():
            return None
        return name, match.group(1), match.group(2)

    def _forgotten(self) -> list[str]:
        """Folders of staged tables that the catalog does not know: a catalog in memory dies with its process."""
        location = self._location()
        known = {name for name, _, _ in self._siblings()}
        names = store_for(self._spark, location).list(location)
        parts = [self._split(name) for name in names if name not in known]
        return [entry[0] for entry in parts if entry is not None and entry[2] == "staged"]

    def _sweep_folders(self) -> list[str]:
        location = self._location()
        names = self._forgotten()
        for name in names:
            store_for(self._spark, location).delete(join(location, name))
        return names

    def _location(self) -> str:
        return str(self._spark.catalog.getDatabase(self._name.database).locationUri)

    def _read(self, name: TableName, schema: "StructType") -> "DataFrame":
        return self._spark.table(name.quoted).select(*map(quoted_column, schema.names))

    def _rename(self, old: TableName, new: TableName) -> None:
        self._spark.sql(f"ALTER TABLE {old.quoted} RENAME TO {new.quoted}")
        in_memory = self._spark.conf.get("spark.sql.catalogImplementation", "in-memory") == "in-memory"
        if in_memory and any(column.isPartition for column in self._spark.catalog.listColumns(new.quoted)):
            # Spark's catalog in memory moves the folder but goes on looking for its partitions at the old place. (A
            # process that dies before this line takes the catalog with it.)
            self._spark.sql(f"MSCK REPAIR TABLE {new.quoted} SYNC PARTITIONS")

    def _drop(self, name: TableName) -> None:
        self._spark.sql(f"DROP TABLE IF EXISTS {name.quoted}")
