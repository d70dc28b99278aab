"""Releases as Delta tables: staged as tables of their own, copied in by one commit, compared, undone if they differ.

Delta's log makes the replacement one step: readers see the old version or the new one, never a part and never nothing.
What was verified is the staged table; the copy is compared with it at the version that was committed, and the target is
restored to the version before if they differ. So a table keeps its history, and whatever a catalog has granted on it.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kanon_spark.engine.session import setting
from kanon_spark.engine.stages import failpoint
from kanon_spark.errors import GuaranteeError, TargetError
from kanon_spark.io.backends import require_backend
from kanon_spark.io.content import fingerprint
from kanon_spark.io.delta_places import DeltaPath, DeltaPlace, DeltaTable
from kanon_spark.io.files import store_for
from kanon_spark.io.formats import refuse_unwritable_layout, refuse_unwritable_types
from kanon_spark.io.paths import join, resolve
from kanon_spark.io.table_names import (
    TableFacts,
    TableName,
    facts_of,
    literal,
    property_list,
    quoted_column,
    release_properties,
    with_comments,
)
from kanon_spark.logs import logger

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from kanon_spark.config.models import SinkSpec, SourceSpec

_FORMAT = "delta"
_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_LOOKED_AT = 50  # versions: how many others may have been committed while the copy was compared


class DeltaPublisher:
    """Write-audit-publish for one Delta table, of a catalog or at a path."""

    def __init__(self, spark: "SparkSession", sink: "SinkSpec", *, base_dir: Path, run_id: str, work_root: str) -> None:
        require_backend(spark, _FORMAT, where="sink.format")
        self._spark = spark
        self._sink = sink
        self._run_id = run_id
        self._place: DeltaPlace
        if sink.path is not None:
            self._place = DeltaPath(spark, resolve(sink.path, base_dir), base_dir=base_dir, work_root=work_root)
            self.lock_store, self.lock_path = self._place.store, self._place.lock_path
        else:
            self._place = DeltaTable(spark, TableName.parse(spark, str(sink.table), any_catalog=True))
            digest = hashlib.sha256(str(self._place).encode()).hexdigest()[:16]
            self.lock_store, self.lock_path = store_for(spark, work_root), join(work_root, f"kanon_lock_{digest}")
        self._staged = self._place.staged(run_id)
        self._before: int | None = None
        self.target = str(self._place)
        self.staged_path = str(self._staged)

    def check(self, source: "SourceSpec | None" = None) -> None:
        """Refuse the source itself, a place that cannot be written, and what is no Delta table."""
        self._place.check(source)
        found = self._facts()
        if found is not None and found.kind != _FORMAT:
            raise TargetError(
                f"{self.target} is no Delta table ({found.kind or 'a view'}); it is not replaced",
                where=self._place.where,
                fix="choose another name, or remove it",
            )

    def check_schema(self, schema: "StructType") -> None:
        """Refuse columns that would not survive, and partitions that do not fit."""
        refuse_unwritable_types(schema, _FORMAT)
        refuse_unwritable_layout(schema, _FORMAT, tuple(self._sink.partition_by))

    def exists(self) -> bool:
        """True if the table exists."""
        return self._place.exists()

    def published(self) -> dict[str, Any] | None:
        """What the release says of itself, in its table properties."""
        found = self._facts()
        return None if found is None else found.release

    def earlier_stays(self) -> str | None:
        """A version of the table's history."""
        return None if self._facts() is None else f"version {self._latest()} of the table, until VACUUM removes it"

    def write(self, table: "DataFrame") -> None:
        """Write the table beside the target."""
        self.check_schema(table.schema)
        writer = table.write.format(_FORMAT).mode("error")
        if self._sink.partition_by:
            writer = writer.partitionBy(*self._sink.partition_by)
        self._staged.save(writer)

    def read_staged(self, schema: "StructType") -> "DataFrame":
        """Read back what was written."""
        return self._read(self._staged, schema.names)

    def read_published(self, schema: "StructType") -> "DataFrame":
        """Read the release."""
        return self._read(self._place, schema.names)

    def publish(self, facts: Mapping[str, object] | None = None) -> None:
        """Swap the staged table in and drop it."""
        self.swap(facts)
        self.finish()

    def swap(self, facts: Mapping[str, object] | None = None) -> None:
        """Replace the target by one commit, and compare what was committed with what was verified."""
        staged = self._spark.table(self._staged.quoted)
        print_of_staged = fingerprint(staged, staged.columns)
        before = self._facts()
        self._before = None if before is None else self._latest()
        own = {"replaces": self._before, "fingerprint": print_of_staged, "partition_by": list(self._sink.partition_by)}
        properties = release_properties({**(facts or {}), **own}, run_id=self._run_id, file_format=_FORMAT)
        failpoint("publish:between")
        self._replace(staged, before, properties)
        failpoint("publish:committed")
        if not self._agrees(self._run_id, print_of_staged, staged.columns):
            raise GuaranteeError(
                "the committed table is not the one that was verified; the previous release is restored",
                where=self._place.where,
                fix="run again; if it happens again, report it",
            )

    def undo(self) -> None:
        """Put the previous release back."""
        facts = self.published()
        if facts is not None and facts["run_id"] == self._run_id:
            self._restore(self._before)

    def finish(self) -> None:
        """Drop the staged table. The previous release stays in the target's history until it is vacuumed."""
        failpoint("publish:after")
        self._staged.drop()

    def recover(self) -> list[str]:
        """Finish the comparison of a run that died in it; drop what dead runs staged."""
        removed = []
        for run_id, place in self._left():
            facts = self.published()
            if facts is not None and str(facts["run_id"]).lower() == run_id.lower():
                self._settle(facts)
            place.drop()
            removed.append(place.shown)
        return removed + self._place.sweep(self._run_id)

    def has_leftovers(self) -> bool:
        """True if a run left a staged table beside the target."""
        return bool(self._left() or self._place.forgotten(self._run_id))

    def discard(self) -> None:
        """Drop what this run staged."""
        self._staged.drop()

    def description(self) -> dict[str, object]:
        """What the manifest tells of the sink."""
        return {
            self._place.where.removeprefix("sink."): self.target,
            "format": _FORMAT,
            "partition_by": list(self._sink.partition_by),
            "read_options": {},
        }

    def _facts(self) -> TableFacts | None:
        return facts_of(self._spark, self._place.quoted) if self._place.exists() else None

    def _left(self) -> list[tuple[str, DeltaPlace]]:
        return self._place.left_by_others(self._run_id)

    def _replace(self, staged: "DataFrame", before: TableFacts | None, properties: Mapping[str, str]) -> None:
        kept = before if before is not None else TableFacts(_FORMAT, managed=True)
        view = f"kanon_{self._run_id}"
        with_comments(staged, kept.column_comments).createOrReplaceTempView(view)
        parts = ", ".join(map(quoted_column, self._sink.partition_by))
        try:
            # The run's id in the history: by it this version is found again whatever others commit.
            with setting(self._spark, _USER_METADATA, self._run_id):
                self._spark.sql(
                    f"CREATE OR REPLACE TABLE {self._place.quoted} USING {_FORMAT}"
                    + (f" PARTITIONED BY ({parts})" if parts else "")
                    + (f" COMMENT {literal(kept.comment)}" if kept.comment else "")
                    + f" TBLPROPERTIES ({property_list({**kept.kept, **properties})}) AS SELECT * FROM {view}"
                )
        finally:
            self._spark.catalog.dropTempView(view)

    def _latest(self) -> int:
        return latest_version(self._spark, self._place.quoted)

    def _agrees(self, run_id: str, wanted: str, columns: list[str]) -> bool:
        """Whether the version that a run has committed holds what it has verified."""
        history = self._spark.sql(f"DESCRIBE HISTORY {self._place.quoted} LIMIT {_LOOKED_AT}").collect()
        versions = [int(row["version"]) for row in history if row["userMetadata"] == run_id]
        if not versions:
            return False
        committed = self._spark.sql(f"SELECT * FROM {self._place.quoted} VERSION AS OF {max(versions)}")
        return set(committed.columns) == set(columns) and fingerprint(committed, columns) == wanted

    def _settle(self, facts: Mapping[str, Any]) -> None:
        """A run died after its commit: what it has not compared is compared now."""
        columns = self._spark.table(self._place.quoted).columns
        if not self._agrees(str(facts["run_id"]), str(facts.get("fingerprint")), columns):
            before = facts.get("replaces")
            self._restore(None if before is None else int(before))
            logger.warning(
                "[%s] run %s had committed another table than it verified: undone", self._run_id, facts["run_id"]
            )

    def _restore(self, version: int | None) -> None:
        if version is None:
            self._place.drop()
        else:
            # The run's id in the history: by it this version is found again whatever others commit.
            with setting(self._spark, _USER_METADATA, self._run_id):
                self._spark.sql(f"RESTORE TABLE {self._place.quoted} TO VERSION AS OF {version}").collect()

    def _read(self, place: DeltaPlace, names: list[str]) -> "DataFrame":
        return self._spark.table(place.quoted).select(*map(quoted_column, names))


def latest_version(spark: "SparkSession", quoted: str) -> int:
    """The newest version of a Delta table."""
    row = spark.sql(f"DESCRIBE HISTORY {quoted} LIMIT 1").first()
    assert row is not None  # every Delta table has a version 0
    return int(row["version"])
