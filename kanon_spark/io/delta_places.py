"""Where a Delta table stands: under a name of a catalog, or at a path."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kanon_spark.errors import TargetError
from kanon_spark.io.files import probe_writable, store_for
from kanon_spark.io.path_sink import unwritable
from kanon_spark.io.paths import is_pattern, is_same_or_inside, join, name_of, overlaps, parent_of, resolve
from kanon_spark.io.table_names import SESSION_CATALOG, TableName, refuse_no_database, refuse_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrameWriter, SparkSession

    from kanon_spark.config.models import SourceSpec

DELTA_LOG = "_delta_log"


class DeltaPlace(Protocol):
    """A Delta table, there or not."""

    where: str

    @property
    def quoted(self) -> str:
        """Its name as SQL takes it."""

    @property
    def shown(self) -> str:
        """Its name in lists of what was removed."""

    def staged(self, run_id: str) -> "DeltaPlace":
        """Where a run stages what is to replace it."""

    def check(self, source: "SourceSpec | None") -> None:
        """Raise `TargetError` where it must not, or cannot, be written."""

    def exists(self) -> bool:
        """True if the table exists."""

    def save(self, writer: "DataFrameWriter") -> None:
        """Write a new table here."""

    def drop(self) -> None:
        """Remove the table with its files."""

    def left_by_others(self, run_id: str) -> "list[tuple[str, DeltaPlace]]":
        """What runs other than this one have staged for it, with their ids."""

    def forgotten(self, run_id: str) -> list[str]:
        """Names of folders of staged tables that the catalog does not know."""

    def sweep(self, run_id: str) -> list[str]:
        """Remove them."""


class DeltaTable:
    """A table of a catalog."""

    where = "sink.table"

    def __init__(self, spark: "SparkSession", name: TableName) -> None:
        self._spark = spark
        self._name = name

    def __str__(self) -> str:
        return str(self._name)

    @property
    def quoted(self) -> str:
        """Its name as SQL takes it."""
        return self._name.quoted

    @property
    def shown(self) -> str:
        """Its name."""
        return str(self._name)

    def staged(self, run_id: str) -> "DeltaTable":
        """A table of the same database."""
        return DeltaTable(self._spark, self._name.sibling(run_id, "staged"))

    def check(self, source: "SourceSpec | None") -> None:
        """Refuse the source itself, a missing database, and a name whose folder is taken."""
        refuse_source(self._spark, source, self._name)
        refuse_no_database(self._spark, self._name)
        if self._name.catalog == SESSION_CATALOG and not self.exists():
            folder = join(self._location(), self._name.name)
            if store_for(self._spark, folder).list(folder):
                raise TargetError(
                    f"the catalog has no table {self}, but files lie where it would be stored: {folder}",
                    where=self.where,
                    fix="a catalog in memory forgets its tables; move the files away, or publish to sink.path",
                )

    def exists(self) -> bool:
        """True if the table exists."""
        return bool(self._spark.catalog.tableExists(self.quoted))

    def save(self, writer: "DataFrameWriter") -> None:
        """Write a new table."""
        writer.saveAsTable(self.quoted)

    def drop(self) -> None:
        """Drop the table."""
        self._spark.sql(f"DROP TABLE IF EXISTS {self.quoted}")

    def left_by_others(self, run_id: str) -> "list[tuple[str, DeltaPlace]]":
        """Tables of the same database whose names say so."""
        # One row per table whose name begins like this one's: a handful.
        pattern = f"{self._name.name}__kanon_*".lower()
        rows = self._spark.sql(f"SHOW TABLES IN {self._name.quoted_database} LIKE '{pattern}'").collect()
        found: list[tuple[str, DeltaPlace]] = []
        for row in rows:
            other = self._run_of(str(row["tableName"]), run_id)
            if other is not None:
                found.append((other, self.staged(other)))
        return found

    def forgotten(self, run_id: str) -> list[str]:
        """A catalog in memory dies with its process, and leaves folders behind."""
        if self._name.catalog != SESSION_CATALOG:
            return []
        known = {other for other, _ in self.left_by_others(run_id)}
        location = self._location()
        names = store_for(self._spark, location).list(location)
        return [name for name in names if (other := self._run_of(name, run_id)) is not None and other not in known]

    def sweep(self, run_id: str) -> list[str]:
        """Remove such folders."""
        location, names = self._location() if self._name.catalog == SESSION_CATALOG else "", self.forgotten(run_id)
        for name in names:
            store_for(self._spark, location).delete(join(location, name))
        return names

    def _run_of(self, name: str, run_id: str) -> str | None:
        match = re.fullmatch(re.escape(self._name.name.lower()) + r"__kanon_(.+)_staged", name.lower())
        return None if match is None or match.group(1) == run_id.lower() else match.group(1)

    def _location(self) -> str:
        return str(self._spark.catalog.getDatabase(self._name.database).locationUri)


class DeltaPath:
    """A table at a path. Staged tables are hidden siblings, as those of other releases at paths."""

    where = "sink.path"

    def __init__(self, spark: "SparkSession", path: str, *, base_dir: Path, work_root: str) -> None:
        if not name_of(path) or is_pattern(path) or "`" in path:
            raise TargetError(
                "this cannot be the folder of a release: it is a root, or holds one of * ? [ ] { } `",
                where=self.where,
                fix="name a folder",
            )
        self._spark = spark
        self._path = path
        self._base_dir = base_dir
        self._work_root = work_root
        self._prefix = f".{name_of(path)}._kanon_"
        self.store = store_for(spark, path)
        self.lock_path = join(parent_of(path), f"{self._prefix}lock")

    def __str__(self) -> str:
        return self._path

    @property
    def quoted(self) -> str:
        """The path as SQL takes it."""
        return f"delta.`{self._path}`"

    @property
    def shown(self) -> str:
        """The folder's own name."""
        return name_of(self._path)

    def staged(self, run_id: str) -> "DeltaPath":
        """A hidden sibling."""
        path = join(parent_of(self._path), f"{self._prefix}{run_id}_staged")
        return DeltaPath(self._spark, path, base_dir=self._base_dir, work_root=self._work_root)

    def check(self, source: "SourceSpec | None") -> None:
        """Refuse a path that overlaps raw data, and a folder that is no Delta table."""
        path, work = self._path, self._work_root
        if is_same_or_inside(path, work) or is_same_or_inside(work, path):
            raise TargetError(
                "the release and the work directory must lie apart", where=self.where, fix="choose another folder"
            )
        if source is not None and source.path is not None and overlaps(path, resolve(source.path, self._base_dir)):
            raise TargetError(
                "the release must not be the source, lie inside it or contain it: the source would be replaced",
                where=self.where,
                fix="choose another folder",
            )
        if not self.exists() and (self.store.list(path) or (self.store.exists(path) and not self.store.is_dir(path))):
            raise TargetError(
                f"{path} exists and is no Delta table; it is not overwritten",
                where=self.where,
                fix="name a folder that does not exist yet, or move its content away",
            )
        try:
            probe_writable(self.store, parent_of(path), f"{self._prefix}probe")
        except OSError as error:
            raise unwritable(path, error) from None

    def exists(self) -> bool:
        """True if there is a log."""
        return self.store.is_dir(join(self._path, DELTA_LOG))

    def save(self, writer: "DataFrameWriter") -> None:
        """Write a new table."""
        writer.save(self._path)

    def drop(self) -> None:
        """Remove the folder."""
        self.store.delete(self._path)

    def left_by_others(self, run_id: str) -> "list[tuple[str, DeltaPlace]]":
        """Siblings whose names say so."""
        shape = re.compile(re.escape(self._prefix) + r"(.+)_staged")
        matches = (shape.fullmatch(name) for name in self.store.list(parent_of(self._path)))
        runs = [match.group(1) for match in matches if match is not None and match.group(1) != run_id]
        return [(other, self.staged(other)) for other in runs]

    def forgotten(self, run_id: str) -> list[str]:
        """No catalog, nothing to forget."""
        return []

    def sweep(self, run_id: str) -> list[str]:
        """There is nothing to remove."""
        return []
