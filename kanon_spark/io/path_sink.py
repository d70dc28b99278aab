"""Releases as folders of files: staged as a hidden sibling of the target, swapped in by two renames."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kanon_spark.engine.stages import failpoint
from kanon_spark.errors import TargetError
from kanon_spark.io.files import FileStore, LocalStore, probe_writable, store_for
from kanon_spark.io.formats import read_options, refuse_unwritable_layout, refuse_unwritable_types, write_options
from kanon_spark.io.paths import is_pattern, is_same_or_inside, join, local_part, name_of, overlaps, parent_of, resolve
from kanon_spark.logs import logger

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from kanon_spark.config.models import SinkSpec, SourceSpec

# Spark skips files whose names begin with an underscore, so the release can say what it is without being changed by it.
FACTS = "_kanon.json"
_WHERE = "sink.path"


def path_facts(spark: "SparkSession", target: str) -> dict[str, Any] | None:
    """What a release at a path says of itself; None if there is none of ours."""
    return _facts(store_for(spark, target), target)


class PathPublisher:
    """Write-audit-publish for one folder."""

    def __init__(self, spark: "SparkSession", sink: "SinkSpec", *, base_dir: Path, run_id: str, work_root: str) -> None:
        if sink.path is None:
            raise TargetError("no path is given", where=_WHERE, fix="name the folder of the release")
        self.target = resolve(sink.path, base_dir)
        name = name_of(self.target)
        if not name or is_pattern(self.target):
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
        self._parent = parent_of(self.target)
        self._prefix = f".{name}._kanon_"
        self._schema: StructType | None = None
        self._store: FileStore = store_for(spark, self.target)
        self.lock_store = self._store
        self.lock_path = join(self._parent, f".{name}._kanon_lock")
        self.staged_path = self._sibling(run_id, "staged")
        self._previous = self._sibling(run_id, "previous")

    def check(self, source: "SourceSpec | None" = None) -> None:
        """Refuse a target that overlaps raw data, is not a release, or cannot be written."""
        refuse_raw_places(self.target, source, base_dir=self._base_dir, work_root=self._work_root)
        try:
            self._refuse_stranger()
            probe_writable(self._store, self._parent, f"{self._prefix}{self._run_id}_probe")
        except OSError as error:
            raise unwritable(self.target, error) from None

    def check_schema(self, schema: "StructType") -> None:
        """Refuse columns that would not survive in the format, and partitions that do not fit."""
        refuse_unwritable_schema(schema, self._sink)

    def exists(self) -> bool:
        """True if anything stands at the target."""
        return self._store.exists(self.target)

    def published(self) -> dict[str, Any] | None:
        """What the release at the target says of itself."""
        return _facts(self._store, self.target)

    def earlier_stays(self) -> str | None:
        """Nothing: the previous folder is removed."""
        return None

    def write(self, table: "DataFrame") -> None:
        """Write the table beside the target."""
        self.check_schema(table.schema)
        self._schema = table.schema
        write_files(table, self.staged_path, self._sink)

    def read_staged(self, schema: "StructType") -> "DataFrame":
        """Read back what was written."""
        return read_files(self._spark, self.staged_path, self._sink.format, schema)

    def read_published(self, schema: "StructType") -> "DataFrame":
        """Read the release at the target."""
        return read_files(self._spark, self.target, self._sink.format, schema)

    def publish(self, facts: Mapping[str, object] | None = None) -> None:
        """Swap the staged release in and remove the previous one."""
        self.swap(facts)
        self.finish()

    def swap(self, facts: Mapping[str, object] | None = None) -> None:
        """The two renames. Whatever fails between them, short of the process dying, is undone at once."""
        self._refuse_stranger()
        self._store.write_text(join(self.staged_path, FACTS), self._facts_text(facts or {}))
        had_previous = self._store.exists(self.target)
        if had_previous:
            self._store.rename(self.target, self._previous)
        try:
            failpoint("publish:between")
            self._store.rename(self.staged_path, self.target)
        except BaseException:
            if had_previous and not self._store.exists(self.target):
                self._store.rename(self._previous, self.target)
            raise
        self._refresh()

    def undo(self) -> None:
        """Put the previous release back."""
        if not self._owns_target():
            return
        self._store.rename(self.target, self.staged_path)
        if self._store.exists(self._previous):
            self._store.rename(self._previous, self.target)
        self._refresh()

    def finish(self) -> None:
        """Remove the previous release. The new one is published already, so a failure is left to `recover`."""
        failpoint("publish:after")
        try:
            self._store.delete(self._previous)
        except OSError as error:
            logger.warning("[%s] the previous release could not be removed (%s)", self._run_id, type(error).__name__)

    def recover(self) -> list[str]:
        """Finish or undo swaps of dead runs; remove what they staged."""
        removed: list[str] = []
        for name, run_id, what in self._siblings():
            path = join(self._parent, name)
            if what == "previous" and not self._settle(path, run_id):
                continue
            if self._store.delete(path):
                removed.append(name)
        return removed

    def has_leftovers(self) -> bool:
        """True if a run left something beside the target."""
        return bool(self._siblings())

    def discard(self) -> None:
        """Remove what this run staged."""
        self._store.delete(self.staged_path)

    def description(self) -> dict[str, object]:
        """What the manifest tells of the sink."""
        return {
            "path": self.target,
            "format": self._sink.format,
            "partition_by": list(self._sink.partition_by),
            "read_options": read_options(self._sink.format),
        }

    def _settle(self, previous: str, run_id: str) -> bool:
        """Decide what a release that stands aside is for. True if it may be deleted."""
        if not self._store.exists(self.target):
            self._store.rename(previous, self.target)
            logger.warning(
                "[%s] the swap of run %s was interrupted: the previous release is back", self._run_id, run_id
            )
            return False
        facts = self.published()
        if facts is not None and facts["run_id"] == run_id:
            return True  # the new release is in place; only this deletion was missing
        logger.warning("[%s] %s holds an older release that nobody replaced; it is left alone", self._run_id, previous)
        return False

    def _siblings(self) -> list[tuple[str, str, str]]:
        """What other runs left beside the target. Previous releases come first, newest first: they decide."""
        shape = re.compile(re.escape(self._prefix) + r"(.+)_(staged|previous|probe)")
        found = []
        for name in self._store.list(self._parent):
            match = shape.fullmatch(name)
            if match is not None and match.group(1) != self._run_id:
                found.append((name, match.group(1), match.group(2)))
        return sorted(sorted(found, reverse=True), key=lambda entry: entry[2] != "previous")

    def _sibling(self, run_id: str, what: str) -> str:
        return join(self._parent, f"{self._prefix}{run_id}_{what}")

    def _owns_target(self) -> bool:
        facts = self.published()
        return facts is not None and facts["run_id"] == self._run_id

    def _refuse_stranger(self) -> None:
        """Only a release, or what Spark wrote, or an empty folder may be replaced."""
        if isinstance(self._store, LocalStore) and Path(local_part(self.target)).is_symlink():
            raise TargetError("the target is a symbolic link", where=_WHERE, fix="name the folder that it leads to")
        if not self._store.exists(self.target):
            return
        if not self._store.is_dir(self.target):
            raise TargetError(
                f"{self.target} is a file; a release is a folder, and nothing of yours is overwritten",
                where=_WHERE,
                fix="name a folder that does not exist yet, or move the file away",
            )
        names = self._store.list(self.target)
        if names and FACTS not in names and "_SUCCESS" not in names:
            raise TargetError(
                f"{self.target} exists and is neither a release nor a table that Spark wrote; it is not overwritten",
                where=_WHERE,
                fix="name a folder that does not exist yet, or move its content away",
            )

    def _facts_text(self, facts: Mapping[str, object]) -> str:
        own: dict[str, object] = {
            "run_id": self._run_id,
            "format": self._sink.format,
            "read_options": read_options(self._sink.format),
            "schema": json.loads(self._schema.json()) if self._schema is not None else None,
        }
        return json.dumps({**facts, **own}, indent=2, ensure_ascii=False, default=str) + "\n"

    def _refresh(self) -> None:
        # DataFrames over the target that the session already has would look for the old files.
        self._spark.catalog.refreshByPath(self.target)


def refuse_raw_places(target: str, source: "SourceSpec | None", *, base_dir: Path, work_root: str) -> None:
    """Refuse a target that overlaps raw data: the work directory or the source."""
    if is_same_or_inside(target, work_root) or is_same_or_inside(work_root, target):
        raise TargetError(
            "the release and the work directory must lie apart", where=_WHERE, fix="choose another folder"
        )
    raw = source.path if source is not None else None
    if raw is not None and overlaps(target, resolve(raw, base_dir)):
        raise TargetError(
            "the release must not be the source, lie inside it or contain it: the source would be replaced",
            where=_WHERE,
            fix="choose another folder",
        )


def refuse_unwritable_schema(schema: "StructType", sink: "SinkSpec") -> None:
    """Refuse columns that would not survive in the sink's format, and partitions that do not fit."""
    refuse_unwritable_types(schema, sink.format)
    refuse_unwritable_layout(schema, sink.format, tuple(sink.partition_by))


def unwritable(target: str, error: OSError) -> TargetError:
    """What a user is told of a folder that cannot be written."""
    return TargetError(
        f"{target} cannot be written ({error.strerror or error})",
        where=_WHERE,
        fix="choose a folder that can be written",
    )


def write_files(table: "DataFrame", path: str, sink: "SinkSpec") -> None:
    """Write a table to a folder that must not exist, as the sink asks."""
    writer = table.write.format(sink.format).options(**write_options(sink.format)).mode("error")
    if sink.partition_by:
        writer = writer.partitionBy(*sink.partition_by)
    writer.save(path)


def read_files(spark: "SparkSession", path: str, file_format: str, schema: "StructType") -> "DataFrame":
    """Read what `write_files` wrote, in the schema's order (Spark moves partition columns to the end)."""
    table = spark.read.format(file_format).options(**read_options(file_format)).schema(schema).load(path)
    return table.select(*(_quoted(name) for name in schema.names))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _facts(store: FileStore, target: str) -> dict[str, Any] | None:
    try:
        found = json.loads(store.read_text(join(target, FACTS)))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return found if isinstance(found, dict) and "run_id" in found else None
