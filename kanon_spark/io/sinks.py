"""Where a release goes: one publisher per kind of target, all with the same few steps.

A run calls, in this order: `check` (nothing is made), the lock on `lock_path`, `recover`, `write`, `read_staged` (for
the verification), `publish`; and `discard` if anything fails before that. `releases/README.md` tells the whole story.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from kanon_spark.errors import TargetError
from kanon_spark.io.files import FileStore
from kanon_spark.io.paths import resolve

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from kanon_spark.config.models import SinkSpec, SourceSpec


class Publisher(Protocol):
    """The steps of write-audit-publish for one target and one run."""

    target: str
    staged_path: str
    lock_path: str
    lock_store: FileStore

    def check(self, source: "SourceSpec | None" = None) -> None:
        """Raise `TargetError` if the target cannot be written or may not be replaced; leaves no trace."""

    def check_schema(self, schema: "StructType") -> None:
        """Raise if a column would not survive in the target's format."""

    def exists(self) -> bool:
        """True if a release stands at the target."""

    def published(self) -> dict[str, Any] | None:
        """What the release at the target says of itself (`run_id`, k, rows …); None if there is none of ours."""

    def earlier_stays(self) -> str | None:
        """As what the release at the target can still be read when it has been replaced; None where it goes."""

    def write(self, table: "DataFrame") -> None:
        """Write the table to staging."""

    def read_staged(self, schema: "StructType") -> "DataFrame":
        """Read back what was written, with the columns, types and order that were written."""

    def read_published(self, schema: "StructType") -> "DataFrame":
        """Read the release at the target."""

    def publish(self, facts: Mapping[str, object] | None = None) -> None:
        """Swap the staged release in: `swap`, then `finish`."""

    def swap(self, facts: Mapping[str, object] | None = None) -> None:
        """The one step, or two renames, that readers see. `undo` would bring the previous release back."""

    def undo(self) -> None:
        """Put the previous release back after `swap`; the new one is staged again."""

    def finish(self) -> None:
        """Remove the previous release."""

    def recover(self) -> list[str]:
        """Finish or undo the swaps of dead runs and remove what they staged; the lock must be held."""

    def has_leftovers(self) -> bool:
        """True if `recover` would find something to do."""

    def discard(self) -> None:
        """Remove what this run staged."""

    def description(self) -> dict[str, object]:
        """What the manifest tells of the sink, with the options that read the release back."""


def publisher_for(spark: "SparkSession", sink: "SinkSpec", *, base_dir: Path, run_id: str, work_root: str) -> Publisher:
    """The publisher of a sink. `work_root` is the work directory, where locks of tables lie."""
    from kanon_spark.io.catalog_sink import CatalogPublisher
    from kanon_spark.io.delta_sink import DeltaPublisher
    from kanon_spark.io.iceberg_sink import IcebergPublisher
    from kanon_spark.io.path_sink import PathPublisher
    from kanon_spark.io.pointer_sink import PointerPublisher, uses_pointer
    from kanon_spark.io.postgres_sink import PostgresPublisher

    if sink.jdbc is not None:
        return PostgresPublisher(spark, sink, run_id=run_id, work_root=work_root)
    if sink.format == "delta":
        return DeltaPublisher(spark, sink, base_dir=base_dir, run_id=run_id, work_root=work_root)
    if sink.format == "iceberg":
        return IcebergPublisher(spark, sink, run_id=run_id, work_root=work_root)
    if sink.path is not None:
        kind = PointerPublisher if uses_pointer(sink) else PathPublisher
        return kind(spark, sink, base_dir=base_dir, run_id=run_id, work_root=work_root)
    return CatalogPublisher(spark, sink, run_id=run_id, work_root=work_root)


def target_of(spark: "SparkSession", sink: "SinkSpec", base_dir: Path) -> str:
    """A sink's full name: a path or a database's address (which have a slash), or a table (which has none)."""
    from kanon_spark.io.postgres import relation, shown_address
    from kanon_spark.io.table_names import TableName

    if sink.path is not None:
        return resolve(sink.path, base_dir)
    if sink.jdbc is not None:
        return f"{shown_address(sink.jdbc)}/{'.'.join(relation(sink.jdbc))}"
    return str(TableName.parse(spark, str(sink.table), any_catalog=sink.format in {"delta", "iceberg"}))


def published_run_id(spark: "SparkSession", target: str) -> str | None:
    """The id of the run whose release stands at a target; None if there is none, or it is not ours.

    Raises:
        TargetError: The target is in a database, which only the configuration of its job can open.
    """
    facts = facts_at(spark, target)
    return str(facts["run_id"]) if facts is not None else None


def facts_at(spark: "SparkSession", target: str) -> dict[str, Any] | None:
    """What the release at a target says of itself."""
    from kanon_spark.io.iceberg_table import IcebergTable
    from kanon_spark.io.released import path_release
    from kanon_spark.io.table_names import TableName, facts_of

    if target.startswith("postgresql:"):
        raise TargetError("a database is opened by the configuration of its job alone", where=target, fix="name it")
    if "/" in target:
        found = path_release(spark, target)
        return None if found is None else found.facts
    name = TableName.parse(spark, target, any_catalog=True)
    told = facts_of(spark, name.quoted)
    if told is None:
        return None
    return IcebergTable(spark, name).release() if told.kind == "iceberg" else told.release


def standing_run_id(spark: "SparkSession", sink: "SinkSpec", base_dir: Path) -> str | None:
    """The id of the run whose release stands at a sink; None if there is none of ours."""
    from kanon_spark.engine.stages import new_run_id

    if sink.jdbc is None:
        return published_run_id(spark, target_of(spark, sink, base_dir))
    facts = publisher_for(spark, sink, base_dir=base_dir, run_id=new_run_id(), work_root=str(base_dir)).published()
    return str(facts["run_id"]) if facts is not None else None
