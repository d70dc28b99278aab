"""The ledger of a scheduled job: one row per run, whatever became of it.

A ledger is a folder with one small JSON file per run (`spark.read.json` reads it as a table), or a table of the
catalog. Either way a run writes its row once, at its end; a row of the same run is never written twice. What a run
would write if it died stands in its part of the work directory from the start, so that the next run, or `kanon gc`, can
enter it: as `killed`, or as `published` if it had swapped its release in before it died.
"""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kanon_spark.errors import KanonError, LockedError, TargetError
from kanon_spark.io.files import FileStore, store_for
from kanon_spark.io.paths import join, resolve
from kanon_spark.io.quiet import condition_of, quiet_query_errors
from kanon_spark.logs import logger
from kanon_spark.releases.lock import TargetLock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kanon_spark.config.loader import LoadedConfig
    from kanon_spark.releases.workdir import WorkDir

ENTRY = "ledger.json"
PUBLISHED, RELEASED, REPEATED, FAILED, KILLED = "published", "released", "repeated", "failed", "killed"
_WHERE = "schedule.ledger"
_PATIENCE = 120.0  # seconds in which other jobs' rows get through
_SQL = {str: "string", int: "bigint", float: "double"}


@dataclass(frozen=True)
class LedgerRow:
    """What the ledger keeps of one run: counts and sums, no value of the table.

    >>> LedgerRow.schema().split(", ")[:3]
    ['run_id string', 'name string', 'run_key string']
    """

    run_id: str
    name: str
    run_key: str | None = None
    partition: str | None = None
    target: str | None = None
    config_sha256: str | None = None
    method: str | None = None
    outcome: str = KILLED
    exit_code: int | None = None
    error: str | None = None
    started: str | None = None
    finished: str | None = None
    rows_input: int | None = None
    rows_released: int | None = None
    rows_suppressed: int | None = None
    rows_held_back: int | None = None
    persons: int | None = None
    signatures: int | None = None
    classes: int | None = None
    k_asked: int | None = None
    k_achieved: int | None = None
    gcp: float | None = None
    gcp_bound: float | None = None
    seconds_predicted: float | None = None
    seconds_taken: float | None = None
    content_hash: str | None = None
    version: str | None = None

    @classmethod
    def schema(cls) -> str:
        """The columns as Spark's DDL."""
        kinds = {name: kind for kind in _SQL for name in (kind.__name__, f"{kind.__name__} | None")}
        return ", ".join(f"{field.name} {_SQL[kinds[_type_name(field.type)]]}" for field in fields(cls))

    @classmethod
    def begun(cls, loaded: "LoadedConfig", *, run_id: str, target: str | None) -> "LedgerRow":
        """What can be said when a run begins; as it stands, the row of a run that was killed."""
        from kanon_spark import __version__

        config = loaded.config
        part = config.schedule.partition
        return cls(
            run_id=run_id,
            name=config.name,
            run_key=config.schedule.run_key,
            partition=None if part is None else f"{part.column}={part.value}",
            target=target,
            config_sha256=loaded.sha256,
            method=config.resolved_method,
            started=_now(),
            k_asked=config.privacy.k,
            version=__version__,
        )

    def ended(self, manifest: Mapping[str, Any]) -> "LedgerRow":
        """The row of a run that has its manifest: a release, or why there is none."""
        rows, metrics = manifest.get("rows", {}), manifest.get("metrics", {})
        seconds, error = manifest.get("seconds", {}), manifest.get("error")
        return replace(
            self,
            outcome=manifest["outcome"],
            exit_code=0 if error is None else error["exit_code"],
            error=None if error is None else error["code"],
            finished=_now(),
            rows_input=rows.get("input"),
            rows_released=rows.get("released"),
            rows_suppressed=rows.get("suppressed"),
            rows_held_back=rows.get("held_back"),
            persons=manifest.get("persons"),
            signatures=manifest.get("signatures"),
            classes=manifest.get("classes"),
            k_achieved=manifest.get("privacy", {}).get("k", {}).get("achieved"),
            gcp=metrics.get("gcp"),
            gcp_bound=metrics.get("gcp_bound"),
            seconds_predicted=seconds.get("predicted"),
            seconds_taken=seconds.get("total"),
            content_hash=manifest.get("content_hash"),
        )


def _type_name(kind: Any) -> str:
    return str(kind.__name__ if isinstance(kind, type) else kind)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class Ledger:
    """A job's ledger: `rows` reads it, `enter` adds a run.

    Attributes:
        spark: The session.
        place: The folder, or the table's name.
        is_path: True for a folder.
        lock_root: The work directory: writers of a table that cannot take two at once exclude each other there.
    """

    spark: "SparkSession"
    place: str
    is_path: bool
    lock_root: str

    @classmethod
    def of(cls, spark: "SparkSession", named: str, *, base_dir: Path, lock_root: str) -> "Ledger":
        """The ledger that a configuration names: a text with a slash is a folder, any other a table."""
        is_path = "/" in named
        return cls(spark, resolve(named, base_dir) if is_path else named, is_path, lock_root)

    def check(self) -> None:
        """Raise `TargetError` if it cannot serve; the folder is made, nothing else."""
        if self.is_path:
            store = store_for(self.spark, self.place)
            try:
                store.mkdirs(self.place, mode=0o700)
            except OSError as error:
                raise TargetError(
                    f"the ledger's folder cannot be made ({error.strerror or type(error).__name__})",
                    where=_WHERE,
                    fix="name another folder",
                ) from None
            return
        with quiet_query_errors():
            try:
                missing = self._missing_columns()
            except Exception as error:
                raise TargetError(
                    f"this is not the name of a table ({condition_of(error)})",
                    where=_WHERE,
                    fix="write database.table, or a folder with a slash in it: ./ledger",
                ) from None
        if missing:
            raise TargetError(
                f"the table {self.place} is no ledger: it lacks {', '.join(missing)}",
                where=_WHERE,
                fix="name a table that does not exist yet; the first run makes it",
            )

    def _missing_columns(self) -> list[str]:
        if not self._table_exists():
            return []
        there = set(self.spark.table(self.place).columns)
        return [field.name for field in fields(LedgerRow) if field.name not in there]

    def rows(self) -> "DataFrame":
        """All runs; no rows where the ledger has not been begun."""
        if self.is_path:
            if not store_for(self.spark, self.place).is_dir(self.place):
                return self.spark.createDataFrame([], LedgerRow.schema())
            return self.spark.read.schema(LedgerRow.schema()).json(self.place)
        if not self._table_exists():
            return self.spark.createDataFrame([], LedgerRow.schema())
        return self.spark.table(self.place)

    def published(self, *, run_key: str, config_sha256: str, target: str) -> LedgerRow | None:
        """The run that published this key with this configuration at this target, if one has."""
        from pyspark.sql import functions as F

        found = self.rows().where(
            (F.col("run_key") == run_key)
            & (F.col("config_sha256") == config_sha256)
            & (F.col("target") == target)
            & F.col("outcome").isin(PUBLISHED, RELEASED)
        )
        row = found.orderBy(F.desc("run_id")).first()
        return None if row is None else LedgerRow(**{field.name: row[field.name] for field in fields(LedgerRow)})

    def pace(self, name: str, method: str) -> float | None:
        """Seconds per row that the last few runs of this job by this method took; None where there is none yet."""
        from pyspark.sql import functions as F

        done = (F.col("name") == name) & (F.col("method") == method) & (F.col("outcome") == PUBLISHED)
        last = self.rows().where(done & (F.col("rows_input") > 0)).orderBy(F.desc("run_id")).limit(5)
        row = last.agg(F.median(F.col("seconds_taken") / F.col("rows_input"))).first()
        return None if row is None or row[0] is None else float(row[0])

    def enter(self, row: LedgerRow) -> None:
        """Write a run's row, unless it is there already.

        Raises:
            TargetError: The ledger cannot be written.
        """
        with quiet_query_errors():
            try:
                if self.is_path:
                    self._enter_file(row)
                else:
                    self._enter_table(row)
            except KanonError:
                raise
            except Exception as error:
                raise TargetError(
                    f"the ledger cannot be written ({condition_of(error)})",
                    where=_WHERE,
                    fix="check the folder or table, and that its columns are those of conf/README.md",
                ) from None

    def _enter_file(self, row: LedgerRow) -> None:
        store = store_for(self.spark, self.place)
        path = join(self.place, f"{row.run_id}.json")
        if not store.exists(path):
            store.write_text(path, json.dumps(asdict(row), ensure_ascii=False) + "\n", private=True)

    def _enter_table(self, row: LedgerRow) -> None:
        from pyspark.sql import functions as F

        frame = self.spark.createDataFrame([tuple(asdict(row).values())], LedgerRow.schema()).coalesce(1)
        with self._turn(row.run_id):
            if not self._table_exists():
                frame.write.saveAsTable(self.place)
                return
            table = self.spark.table(self.place)
            if table.where(F.col("run_id") == row.run_id).limit(1).count():
                return
            # By position: the table's own order of columns counts.
            frame.select(*table.columns).write.insertInto(self.place)

    @contextmanager
    def _turn(self, run_id: str) -> Iterator[None]:
        """Plain files know no transactions, and two inserts at once could lose a row: one waits for the other."""
        name = "".join(letter if letter.isalnum() else "_" for letter in self.place)
        store = store_for(self.spark, self.lock_root)
        lock = TargetLock(store, join(self.lock_root, f"kanon_ledger_{name}"), run_id=run_id, lease=60.0)
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                lock.acquire()
                break
            except LockedError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.5)
        try:
            yield
        finally:
            lock.release()

    def _table_exists(self) -> bool:
        return bool(self.spark.catalog.tableExists(self.place))


def announce(ledger: Ledger, row: LedgerRow, work: "WorkDir") -> None:
    """Leave in the work directory what is to be entered if this run dies."""
    entry = {"place": ledger.place, "is_path": ledger.is_path, "row": asdict(row)}
    work.store.write_text(work.path(ENTRY), json.dumps(entry), private=True)


def settle(spark: "SparkSession", store: FileStore, path: str, *, lock_root: str, published: bool) -> None:
    """Enter a dead run by what it has announced at `path`, if anything."""
    try:
        entry = json.loads(store.read_text(path))
    except FileNotFoundError:
        return
    row = LedgerRow(**entry["row"])
    if not published:
        row = replace(row, outcome=KILLED, exit_code=None)
    try:
        Ledger(spark, entry["place"], bool(entry["is_path"]), lock_root).enter(row)
    except KanonError as error:
        logger.warning("the dead run %s could not be entered into the ledger: %s", row.run_id, error.message)
