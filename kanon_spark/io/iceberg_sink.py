"""Releases as Iceberg tables, in one of two ways.

*Branch*, where the target has the same columns already: the release is written to a branch of the target, verified
there, and the main branch is fast-forwarded to it. What was verified is what is published, to the byte; if anybody else
wrote to the table in the meantime, Iceberg refuses.

*Replace*, for a first release or changed columns: the release is staged as a table of its own, verified, and copied
into the target by one commit, which is then compared with the staged table and undone if they differ.

The run's id stands in the summary of the snapshot that readers see, so that data and name can never disagree. What else
is known of a release stands in a table property of that run.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from kanon_spark.engine.stages import failpoint
from kanon_spark.errors import GuaranteeError, TargetError
from kanon_spark.io.backends import require_backend
from kanon_spark.io.content import fingerprint
from kanon_spark.io.files import store_for
from kanon_spark.io.formats import refuse_unwritable_layout, refuse_unwritable_types
from kanon_spark.io.iceberg_table import RUN_ID, IcebergTable, facts_key
from kanon_spark.io.paths import join
from kanon_spark.io.table_names import WHERE, TableName, quoted_column, refuse_no_database, refuse_source
from kanon_spark.logs import logger

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from kanon_spark.config.models import SinkSpec, SourceSpec

_FORMAT = "iceberg"


class IcebergPublisher:
    """Write-audit-publish for one Iceberg table."""

    def __init__(self, spark: "SparkSession", sink: "SinkSpec", *, run_id: str, work_root: str) -> None:
        require_backend(spark, _FORMAT, where="sink.format")
        self._spark = spark
        self._sink = sink
        self._run_id = run_id
        self._name = TableName.parse(spark, str(sink.table), any_catalog=True)
        self._table = IcebergTable(spark, self._name)
        self._staged = IcebergTable(spark, self._name.sibling(run_id, "staged"))
        self._way: Literal["branch", "replace"] = "replace"
        self._before: int | None = None
        self._audited: int | None = None  # the branch's snapshot, which is what is verified
        self.target = str(self._name)
        self.staged_path = str(self._staged.name)
        digest = hashlib.sha256(self.target.encode()).hexdigest()[:16]
        self.lock_path = join(work_root, f"kanon_lock_{digest}")
        self.lock_store = store_for(spark, work_root)

    def check(self, source: "SourceSpec | None" = None) -> None:
        """Refuse the source itself, a missing database or catalog, and what is no Iceberg table."""
        catalog = str(self._spark.conf.get(f"spark.sql.catalog.{self._name.catalog}", "") or "")
        if not catalog:
            raise TargetError(
                f"the session has no catalog {self._name.catalog}",
                where=WHERE,
                fix=f"set spark.sql.catalog.{self._name.catalog}=org.apache.iceberg.spark.SparkCatalog with its type "
                "and warehouse, or name a table of another catalog",
            )
        refuse_source(self._spark, source, self._name)
        refuse_no_database(self._spark, self._name)
        found = self._table.facts()
        if found is not None and found.kind != _FORMAT:
            raise TargetError(
                f"{self.target} is no Iceberg table ({found.kind or 'a view'}); it is not replaced",
                where=WHERE,
                fix="choose another name, or remove it",
            )

    def check_schema(self, schema: "StructType") -> None:
        """Refuse columns that would not survive, and partitions that do not fit."""
        refuse_unwritable_types(schema, _FORMAT)
        refuse_unwritable_layout(schema, _FORMAT, tuple(self._sink.partition_by))

    def exists(self) -> bool:
        """True if the table exists."""
        return self._table.exists()

    def published(self) -> dict[str, Any] | None:
        """What the release says of itself, by the snapshot that readers see."""
        return self._table.release()

    def earlier_stays(self) -> str | None:
        """A snapshot of the table."""
        snapshot = self._table.snapshot()
        return None if snapshot is None else f"snapshot {snapshot} of the table, until expire_snapshots removes it"

    def write(self, table: "DataFrame") -> None:
        """Write to a branch of the target where it has these columns, else to a table beside it."""
        self.check_schema(table.schema)
        self._way = "branch" if self._fits(table.schema) else "replace"
        if self._way == "branch":
            self._audited = self._table.write_branch(table, self._run_id)
        else:
            self._staged.replace(table, partition_by=self._sink.partition_by, run_id=self._run_id)

    def read_staged(self, schema: "StructType") -> "DataFrame":
        """Read back what was written."""
        staged = self._table.read(self._audited) if self._way == "branch" else self._staged.read()
        return staged.select(*map(quoted_column, schema.names))

    def read_published(self, schema: "StructType") -> "DataFrame":
        """Read the release."""
        return self._table.read().select(*map(quoted_column, schema.names))

    def publish(self, facts: Mapping[str, object] | None = None) -> None:
        """Swap the staged release in and tidy up."""
        self.swap(facts)
        self.finish()

    def swap(self, facts: Mapping[str, object] | None = None) -> None:
        """One commit: the main branch moves to the verified snapshot, or the verified table replaces the target."""
        self._before = self._table.snapshot()
        own: dict[str, object] = {
            **(facts or {}),
            "run_id": self._run_id,
            "format": _FORMAT,
            "partition_by": list(self._sink.partition_by),
            "replaces": self._before,
        }
        if self._way == "branch":
            # Nobody reads it before main is there: a release is looked up by the run of the snapshot in sight.
            self._table.set_properties({facts_key(self._run_id): json.dumps(own, default=str)})
            failpoint("publish:between")
            self._table.fast_forward(self._run_id)
            failpoint("publish:committed")
            if self._table.snapshot() != self._audited:
                raise _differs()
            return
        staged = self._staged.read()
        own["fingerprint"] = fingerprint(staged, staged.columns)
        failpoint("publish:between")
        text = json.dumps(own, default=str)
        self._table.replace(
            staged,
            partition_by=self._sink.partition_by,
            run_id=self._run_id,
            properties={facts_key(self._run_id): text, **_plain(own)},
        )
        failpoint("publish:committed")
        if not self._agrees(own):
            raise _differs()

    def undo(self) -> None:
        """Put the previous release back."""
        facts = self.published()
        if facts is not None and facts["run_id"] == self._run_id:
            self._restore(self._before, self._way)
            self._tidy()

    def finish(self) -> None:
        """Say plainly what stands there, and remove the branch or the staged table."""
        failpoint("publish:after")
        self._tidy()
        self._table.drop_branch(self._run_id)
        self._staged.drop()

    def recover(self) -> list[str]:
        """Finish the comparison of a run that died in it; remove branches and tables that dead runs left."""
        removed = []
        for run_id, staged in self._staged_by_others():
            facts = self.published()
            if facts is not None and str(facts["run_id"]).lower() == run_id:
                self._settle(facts)
            staged.drop()
            removed.append(str(staged.name))
        for run_id in self._branches_of_others():
            self._table.drop_branch(run_id)
            removed.append(f"{self.target}.branch_kanon_{run_id}")
        self._tidy()
        return removed

    def has_leftovers(self) -> bool:
        """True if a run left a branch or a staged table."""
        return bool(self._staged_by_others() or self._branches_of_others())

    def discard(self) -> None:
        """Remove what this run staged."""
        self._staged.drop()
        self._table.drop_branch(self._run_id)

    def description(self) -> dict[str, object]:
        """What the manifest tells of the sink."""
        return {
            "table": self.target,
            "format": _FORMAT,
            "way": self._way,
            "partition_by": list(self._sink.partition_by),
            "read_options": {},
        }

    def _fits(self, schema: "StructType") -> bool:
        """Whether the release can go to a branch: a release of ours stands there, with these columns and partitions."""
        facts = self.published()
        if facts is None or facts.get("partition_by") != list(self._sink.partition_by):
            return False
        there = [(field.name, field.dataType) for field in self._table.read().schema.fields]
        return there == [(field.name, field.dataType) for field in schema.fields]

    def _agrees(self, facts: Mapping[str, Any]) -> bool:
        """Whether the snapshot that a run has committed holds what it has verified."""
        snapshot = self._table.snapshot_of(str(facts["run_id"]))
        if snapshot is None:
            return False
        committed = self._table.read(snapshot)
        return fingerprint(committed, committed.columns) == facts.get("fingerprint")

    def _settle(self, facts: Mapping[str, Any]) -> None:
        """A run died after it had replaced the table: what it has not compared is compared now."""
        if facts.get("fingerprint") is not None and not self._agrees(facts):
            before = facts.get("replaces")
            self._restore(None if before is None else int(before), "replace")
            logger.warning(
                "[%s] run %s had committed another table than it verified: undone", self._run_id, facts["run_id"]
            )

    def _restore(self, snapshot: int | None, way: str) -> None:
        if snapshot is None:
            self._table.drop()
        elif way == "branch":
            self._table.roll_back(snapshot)
        else:
            self._table.replace_by(snapshot)

    def _tidy(self) -> None:
        """Properties that people look for follow the release in sight; facts of other runs go."""
        facts = self.published()
        if facts is None:
            return
        properties = self._table.properties()
        wanted = _plain(facts)
        if any(properties.get(key) != value for key, value in wanted.items()):
            self._table.set_properties(wanted)
        mine = {facts_key(str(facts["run_id"])), facts_key(self._run_id)}
        self._table.unset_properties([key for key in properties if key.startswith(facts_key("")) and key not in mine])

    def _staged_by_others(self) -> list[tuple[str, IcebergTable]]:
        others = self._table.staged_siblings()
        mine = self._run_id.lower()
        return [
            (run_id, IcebergTable(self._spark, self._name.sibling(run_id, "staged")))
            for run_id in others
            if run_id != mine
        ]

    def _branches_of_others(self) -> list[str]:
        return [run_id for run_id in self._table.branches() if run_id != self._run_id]


def _differs() -> GuaranteeError:
    return GuaranteeError(
        "the committed table is not the one that was verified; the previous release is restored",
        where=WHERE,
        fix="run again; if it happens again, report it",
    )


def _plain(facts: Mapping[str, Any]) -> dict[str, str]:
    """The few facts that people look for among a table's properties."""
    return {RUN_ID: str(facts["run_id"]), **{f"kanon.{k}": str(facts[k]) for k in ("k", "method") if k in facts}}
