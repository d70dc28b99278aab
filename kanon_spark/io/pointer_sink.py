"""Releases on object stores, where a rename copies: each has a folder of its own, and one small file says which.

    <target>/_current                        JSON: run id, folder and form of the release that readers are to read
    <target>/_releases/release=<run_id>/     one release; the one before stays for readers who are still at it

A release is written where it will stay, verified there, and published by writing `_current`, which a store replaces in
one step. Spark does not look into folders that begin with an underscore, so that who reads `<target>` itself, without
the pointer, gets an error instead of several releases at once or one that nobody has verified.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kanon_spark.engine.stages import failpoint
from kanon_spark.errors import TargetError
from kanon_spark.io.files import FileStore, probe_writable, store_for
from kanon_spark.io.formats import read_options
from kanon_spark.io.path_sink import (
    read_files,
    refuse_raw_places,
    refuse_unwritable_schema,
    unwritable,
    write_files,
)
from kanon_spark.io.paths import (
    is_pattern,
    join,
    name_of,
    resolve,
    scheme_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from kanon_spark.config.models import SinkSpec, SourceSpec

CURRENT, RELEASES = "_current", "_releases"
_FOLDER, _LOCK = "release=", "_lock"
_WHERE = "sink.path"
# Stores whose renames copy file by file.
OBJECT_STORES = frozenset(
    {"s3", "s3a", "s3n", "gs", "wasb", "wasbs", "abfs", "abfss", "oss", "cos", "cosn", "obs", "swift"}
)


def uses_pointer(sink: "SinkSpec") -> bool:
    """Whether a sink's releases are found by a pointer: on object stores, or where the configuration says so."""
    if sink.path is None or sink.layout == "folder":
        return False
    return sink.layout == "pointer" or scheme_of(sink.path) in OBJECT_STORES


def current_release(store: FileStore, target: str) -> tuple[str, dict[str, Any]] | None:
    """Folder and facts of the release that the pointer at a target names; None if there is no pointer."""
    try:
        facts = json.loads(store.read_text(join(target, CURRENT)))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    if not isinstance(facts, dict) or "run_id" not in facts:
        return None
    return join(target, str(facts["folder"])), facts


class PointerPublisher:
    """Write-audit-publish for one folder of releases."""

    def __init__(self, spark: "SparkSession", sink: "SinkSpec", *, base_dir: Path, run_id: str, work_root: str) -> None:
        self.target = resolve(str(sink.path), base_dir)
        if not name_of(self.target) or is_pattern(self.target):
            raise TargetError(
                "this cannot be the folder of a release: it is a root, or holds one of * ? [ ] { }",
                where=_WHERE,
                fix="name a folder",
            )
        self._spark = spark
        self._sink = sink
        self._base_dir = base_dir
        self._run_id = run_id
        self._work_root = work_root
        self._store = store_for(spark, self.target)
        self._schema: StructType | None = None
        self._before: str | None = None
        self.lock_store = self._store
        self.lock_path = join(self.target, _LOCK)  # rights on a store are often given for one prefix alone
        self.staged_path = join(join(self.target, RELEASES), f"{_FOLDER}{run_id}")

    def check(self, source: "SourceSpec | None" = None) -> None:
        """Refuse a target that overlaps raw data, holds something else, or cannot be written."""
        refuse_raw_places(self.target, source, base_dir=self._base_dir, work_root=self._work_root)
        names = self._store.list(self.target)
        strangers = [name for name in names if name not in {CURRENT, RELEASES} and not name.startswith(_LOCK)]
        if strangers or (self._store.exists(self.target) and not self._store.is_dir(self.target)):
            raise TargetError(
                f"{self.target} holds other things than releases and their pointer",
                where=_WHERE,
                fix="name a folder that does not exist yet, or move its content away",
            )
        try:
            probe_writable(self._store, self.target, f"{_LOCK}_probe_{self._run_id}")
        except OSError as error:
            raise unwritable(self.target, error) from None

    def check_schema(self, schema: "StructType") -> None:
        """Refuse columns that would not survive in the format, and partitions that do not fit."""
        refuse_unwritable_schema(schema, self._sink)

    def exists(self) -> bool:
        """True if a pointer stands at the target."""
        return self.published() is not None

    def published(self) -> dict[str, Any] | None:
        """What the pointer says."""
        found = current_release(self._store, self.target)
        return None if found is None else found[1]

    def earlier_stays(self) -> str | None:
        """The folder that readers were led to: some may still be at it."""
        facts = self.published()
        return None if facts is None else f"the folder {facts['folder']}, until the release after this one"

    def write(self, table: "DataFrame") -> None:
        """Write the table to a folder of its own, which no pointer names."""
        self.check_schema(table.schema)
        self._schema = table.schema
        write_files(table, self.staged_path, self._sink)

    def read_staged(self, schema: "StructType") -> "DataFrame":
        """Read back what was written."""
        return read_files(self._spark, self.staged_path, self._sink.format, schema)

    def read_published(self, schema: "StructType") -> "DataFrame":
        """Read the release that the pointer names."""
        found = current_release(self._store, self.target)
        return read_files(self._spark, self.staged_path if found is None else found[0], self._sink.format, schema)

    def publish(self, facts: Mapping[str, object] | None = None) -> None:
        """Point at the staged release and remove those that nobody is led to any more."""
        self.swap(facts)
        self.finish()

    def swap(self, facts: Mapping[str, object] | None = None) -> None:
        """Write the pointer."""
        before = self.published()
        self._before = None if before is None else self._store.read_text(join(self.target, CURRENT))
        own: dict[str, object] = {
            "run_id": self._run_id,
            "folder": f"{RELEASES}/{_FOLDER}{self._run_id}",
            "previous": None if before is None else before["run_id"],
            "format": self._sink.format,
            "read_options": read_options(self._sink.format),
            "schema": json.loads(self._schema.json()) if self._schema is not None else None,
        }
        text = json.dumps({**(facts or {}), **own}, indent=2, ensure_ascii=False, default=str) + "\n"
        failpoint("publish:between")
        self._store.write_text(join(self.target, CURRENT), text)
        failpoint("publish:committed")

    def undo(self) -> None:
        """Point at the previous release again."""
        facts = self.published()
        if facts is None or facts["run_id"] != self._run_id:
            return
        if self._before is None:
            self._store.delete(join(self.target, CURRENT))
        else:
            self._store.write_text(join(self.target, CURRENT), self._before)

    def finish(self) -> None:
        """Remove releases that are neither in sight nor the one before."""
        failpoint("publish:after")
        self._sweep()

    def recover(self) -> list[str]:
        """Remove what dead runs staged."""
        return self._sweep()

    def has_leftovers(self) -> bool:
        """True if a run left a release that no pointer names."""
        return bool(self._unnamed())

    def discard(self) -> None:
        """Remove what this run staged."""
        facts = self.published()
        if facts is None or facts["run_id"] != self._run_id:
            self._store.delete(self.staged_path)

    def description(self) -> dict[str, object]:
        """What the manifest tells of the sink."""
        return {
            "path": self.target,
            "layout": "pointer",
            "format": self._sink.format,
            "partition_by": list(self._sink.partition_by),
            "read_options": read_options(self._sink.format),
        }

    def _unnamed(self) -> list[str]:
        facts = self.published() or {}
        named = {f"{_FOLDER}{run_id}" for run_id in (facts.get("run_id"), facts.get("previous"), self._run_id)}
        return [name for name in self._store.list(join(self.target, RELEASES)) if name not in named]

    def _sweep(self) -> list[str]:
        names = self._unnamed()
        for name in names:
            self._store.delete(join(join(self.target, RELEASES), name))
        return names
