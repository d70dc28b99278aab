"""The work directory: where a run keeps what is raw. Entries carry the run's id; an owner file tells who runs."""

import json
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from kanon_spark.engine.session import is_local
from kanon_spark.errors import ConfigError, TargetError
from kanon_spark.io.files import FileStore, LocalStore, store_for
from kanon_spark.io.paths import is_pattern, is_same_or_inside, join, local_part, parent_of, resolve
from kanon_spark.io.sinks import target_of
from kanon_spark.logs import logger
from kanon_spark.releases.owner import Heartbeat, Owner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kanon_spark.config.models import Config

DEFAULT_NAME = ".kanon"
OWNER = "owner.json"
RUN_ID = r"\d{8}T\d{6}_[0-9a-f]{8}"
_ENTRY = re.compile(rf"_kanon_({RUN_ID})_(.+)")
_WHERE = "execution.work_dir"


def entry_name(run_id: str, what: str) -> str:
    """The name of a run's entry in the work directory.

    >>> entry_name("20250102T030405_0a1b2c3d", "recoding")
    '_kanon_20250102T030405_0a1b2c3d_recoding'
    """
    return f"_kanon_{run_id}_{what}"


def split_entry(name: str) -> tuple[str, str] | None:
    """The run id and the rest of an entry's name; None for files that are not ours."""
    match = _ENTRY.fullmatch(name)
    return (match.group(1), match.group(2)) if match else None


def is_kept(what: str, keep: Sequence[str]) -> bool:
    """True if an entry is one of the kept ones, or a companion such as `recoding.json` or `recoding_texts`."""
    return any(what == kept or what.startswith((f"{kept}.", f"{kept}_")) for kept in keep)


def work_dir_path(spark: "SparkSession", config: "Config", base_dir: Path) -> str:
    """Where the configuration's work directory is. Nothing is made; a place that cannot serve is refused."""
    named = config.execution.work_dir
    if named is None and not is_local(spark):
        raise ConfigError(
            "on a cluster the work directory must be on a store that driver and executors share",
            where=_WHERE,
            fix="name a shared path, for example work_dir: hdfs:///user/me/kanon (it will hold raw data)",
        )
    path = resolve(named if named is not None else DEFAULT_NAME, base_dir)
    if is_pattern(path):
        raise ConfigError(
            "the path holds one of * ? [ ] { }, which Spark reads as a pattern", where=_WHERE, fix="name another folder"
        )
    if config.sink is not None and config.sink.path is not None:
        sink = resolve(config.sink.path, base_dir)
        beside = is_same_or_inside(path, parent_of(sink)) and is_same_or_inside(parent_of(sink), path)
        if beside or is_same_or_inside(path, sink) or is_same_or_inside(sink, path):
            raise ConfigError(
                "the work directory holds raw data and must not be the release, contain it, or lie inside it",
                where=_WHERE,
                fix=f"name another folder than {path}",
            )
    return path


@dataclass(frozen=True)
class RunRecord:
    """What an owner file tells about a run: who, for which target, and whether it ended well."""

    owner: Owner
    target: str | None
    done: bool

    @classmethod
    def read(cls, store: FileStore, path: str) -> "RunRecord | None":
        """Read an owner file; None if there is none or it is not one."""
        try:
            text = store.read_text(path)
        except FileNotFoundError:
            return None
        owner = Owner.from_text(text)
        if owner is None:
            return None
        more = json.loads(text)
        return cls(owner, more.get("target"), bool(more.get("done")))

    def lives(self) -> bool:
        """True if the run may be at work: its process is there or, seen from another machine, gives signs of life."""
        return self.owner.process_lives() if self.owner.is_here() else not self.owner.is_stale()

    def to_text(self) -> str:
        """The owner file's text."""
        return self.owner.to_text(target=self.target, done=self.done)


class WorkDir:
    """One run's part of the work directory.

    As a context manager it forgets everything but the recoding when the body ends well, and everything when it fails.
    """

    def __init__(self, root: str, *, run_id: str, store: FileStore, target: str | None, lease: float) -> None:
        self.root = root
        self.run_id = run_id
        self.store = store
        self._record = RunRecord(Owner.me(run_id, lease), target, done=False)
        self._make()
        self._write_record()
        self._heartbeat: Heartbeat | None = Heartbeat(self._beat, lease=lease, name="work")

    @classmethod
    def open(cls, spark: "SparkSession", config: "Config", base_dir: Path, run_id: str) -> "WorkDir":
        """Make or find the work directory and announce this run in it."""
        root = work_dir_path(spark, config, base_dir)
        target = target_of(spark, config.sink, base_dir) if config.sink is not None else None
        return cls(root, run_id=run_id, store=store_for(spark, root), target=target, lease=config.execution.lease)

    def __enter__(self) -> "WorkDir":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.forget(keep=("recoding",) if error is None else ())

    def path(self, what: str) -> str:
        """The path of one of the run's entries, for Spark or for `store`."""
        return join(self.root, entry_name(self.run_id, what))

    def forget(self, *, keep: Sequence[str] = ("recoding",)) -> list[str]:
        """Remove the run's entries but those in `keep`, and say which.

        Keeping something says that the run ended well: what earlier runs kept for the same target is then removed too.
        """
        if self._heartbeat is not None:
            self._heartbeat.stop()
            self._heartbeat = None
        removed = []
        kept = False
        for name, what in entries_of(self.store, self.root, self.run_id):
            if what == OWNER:
                continue
            if is_kept(what, keep):
                kept = True
                continue
            self.store.delete(join(self.root, name))
            removed.append(name)
        if kept:
            self._record = RunRecord(self._record.owner.now(), self._record.target, done=True)
            self._write_record()
            removed += self._retire_earlier()
        else:
            self.store.delete(self.path(OWNER))
        return removed

    def _retire_earlier(self) -> list[str]:
        """A target has one published release, so only the recoding of the newest one is of use."""
        removed = []
        for run_id, record in records(self.store, self.root).items():
            if run_id == self.run_id or record is None or record.target is None or record.target != self._record.target:
                continue
            # A run that was killed right after its swap has not ended well, but what it published is replaced too.
            if record.done or not record.lives():
                removed += remove_run(self.store, self.root, run_id)
        return removed

    def _make(self) -> None:
        try:
            self.store.mkdirs(self.root, mode=0o700)
            if isinstance(self.store, LocalStore):
                _close_to_others(self.store, Path(local_part(self.root)))
        except OSError as error:
            raise TargetError(
                f"the work directory {self.root} cannot be used ({error.strerror or error})",
                where=_WHERE,
                fix="name a folder that can be written",
            ) from None

    def _write_record(self) -> None:
        try:
            self.store.write_text(self.path(OWNER), self._record.to_text())
        except OSError as error:
            raise TargetError(
                f"the work directory {self.root} cannot be written ({error.strerror or error})",
                where=_WHERE,
                fix="name a folder that can be written",
            ) from None

    def _beat(self) -> None:
        self._record = RunRecord(self._record.owner.now(), self._record.target, self._record.done)
        self.store.write_text(self.path(OWNER), self._record.to_text())


def entries_of(store: FileStore, root: str, run_id: str) -> list[tuple[str, str]]:
    """The names of a run's entries, each with what it is."""
    found = ((name, split_entry(name)) for name in store.list(root))
    return [(name, parts[1]) for name, parts in found if parts is not None and parts[0] == run_id]


def records(store: FileStore, root: str) -> dict[str, RunRecord | None]:
    """The record of every run that has entries in the work directory; None where the owner file is missing."""
    runs = dict.fromkeys(parts[0] for parts in map(split_entry, store.list(root)) if parts is not None)
    return {run_id: RunRecord.read(store, join(root, entry_name(run_id, OWNER))) for run_id in runs}


def remove_run(store: FileStore, root: str, run_id: str, *, keep: Sequence[str] = ()) -> list[str]:
    """Remove a run's entries; the owner file goes last, and stays if anything is kept."""
    entries = [(name, what) for name, what in entries_of(store, root, run_id) if what != OWNER]
    removed = [name for name, what in entries if not is_kept(what, keep)]
    for name in removed:
        store.delete(join(root, name))
    if len(removed) == len(entries) and store.delete(join(root, entry_name(run_id, OWNER))):
        removed.append(entry_name(run_id, OWNER))
    return removed


def _close_to_others(store: FileStore, folder: Path) -> None:
    """What is raw is readable by its owner only. A folder that others use for other things is not closed under them."""
    mode = stat.S_IMODE(folder.stat().st_mode)
    if not mode & 0o077:
        return
    strangers = [
        name for name in store.list(str(folder)) if split_entry(name) is None and not name.startswith("kanon_lock_")
    ]
    if strangers:
        raise ConfigError(
            f"{folder} holds other files and is open to others (mode {mode:o}): no place for raw data",
            where=_WHERE,
            fix=f"name an own folder, for example {folder}/kanon, or run: chmod 700 {folder}",
        )
    folder.chmod(0o700)
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        logger.warning("the work directory's file system has no permissions: others may read the raw data in it")
