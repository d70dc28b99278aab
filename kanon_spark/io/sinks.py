"""Where a release goes: one publisher per kind of target, all with the same few steps.

A run calls, in this order: `check` (nothing is made), the lock on `lock_path`, `recover`, `write`, `read_staged` (for
the verification), `publish`; and `discard` if anything fails before that. `releases/README.md` tells the whole story.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from kanon_spark.errors import NotYetError
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

    def write(self, table: "DataFrame") -> None:
        """Write the table to staging."""

    def read_staged(self, schema: "StructType") -> "DataFrame":
        """Read back what was written, with the columns, types and order that were written."""

    def read_published(self, schema: "StructType") -> "DataFrame":
        """Read the release at the target."""

    def publish(self, facts: Mapping[str, object] | None = None) -> None:
        """Swap the staged release in: `swap`, then `finish`."""

    def swap(self, facts: Mapping[str, object] | None = None) -> None:
        """The two renames. The previous release still stands aside, and `undo` would bring it back."""

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
    """The publisher of a sink. `work_root` is the work directory, where locks of catalog tables lie."""
    from kanon_spark.io.catalog_sink import CatalogPublisher
    from kanon_spark.io.formats import FORMATS
    from kanon_spark.io.path_sink import PathPublisher

    if sink.format not in FORMATS or (sink.path is None and sink.table is None):
        kind = "jdbc" if sink.jdbc is not None else sink.format
        raise NotYetError(
            f"publishing to {kind} is not built yet", where="sink", fix=f"use a path with format {' | '.join(FORMATS)}"
        )
    if sink.path is not None:
        return PathPublisher(spark, sink, base_dir=base_dir, run_id=run_id, work_root=work_root)
    return CatalogPublisher(spark, sink, run_id=run_id, work_root=work_root)


def target_of(spark: "SparkSession", sink: "SinkSpec", base_dir: Path) -> str | None:
    """A sink's full name: an absolute path (which has a slash) or a table with its database (which has none)."""
    from kanon_spark.io.catalog_sink import TableName

    if sink.path is not None:
        return resolve(sink.path, base_dir)
    return str(TableName.parse(spark, sink.table)) if sink.table is not None else None


def published_run_id(spark: "SparkSession", target: str) -> str | None:
    """The id of the run whose release stands at a target; None if there is none, or it is not ours."""
    from kanon_spark.io.catalog_sink import TableName, table_facts
    from kanon_spark.io.path_sink import path_facts

    facts = path_facts(spark, target) if "/" in target else table_facts(spark, TableName.parse(spark, target))
    return str(facts["run_id"]) if facts is not None else None
