"""Removing what dead runs left behind. Live runs, and the recoding of the published release, are never touched."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from kanon_spark.engine.stages import new_run_id
from kanon_spark.errors import LockedError
from kanon_spark.io.files import FileStore, store_for
from kanon_spark.io.paths import join
from kanon_spark.io.sinks import Publisher, facts_at, publisher_for
from kanon_spark.logs import logger
from kanon_spark.releases.ledger import ENTRY as LEDGER_ENTRY
from kanon_spark.releases.ledger import settle
from kanon_spark.releases.lock import TargetLock
from kanon_spark.releases.workdir import (
    RunRecord,
    entries_of,
    entry_name,
    records,
    remove_run,
    work_dir_path,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kanon_spark.config.loader import LoadedConfig

# A run without a target (a DataFrame in a notebook) keeps its recoding while its process lives; seen from another
# machine, for this long.
_WITHOUT_TARGET_KEPT = 24 * 3600.0
_KEEP = ("recoding", "state")


def collect_garbage(spark: "SparkSession", loaded: "LoadedConfig", *, lock: TargetLock | None = None) -> list[str]:
    """Finish or undo an interrupted swap, remove the leftovers of dead runs, and say what was removed.

    A run passes the lock it holds on the target. Without one it is taken here; if a live run holds it, what lies beside
    the target is left alone and only the work directory is cleaned.
    """
    config, base_dir = loaded.config, Path(loaded.base_dir)
    root = work_dir_path(spark, config, base_dir)
    store = store_for(spark, root)
    removed: list[str] = []
    own: Publisher | None = None
    if config.sink is not None:
        run_id = lock.run_id if lock is not None else new_run_id()
        publisher = publisher_for(spark, config.sink, base_dir=base_dir, run_id=run_id, work_root=root)
        if lock is not None:
            removed += publisher.recover()
            own = publisher
        elif publisher.has_leftovers() or publisher.lock_store.exists(publisher.lock_path):
            try:
                with TargetLock(publisher.lock_store, publisher.lock_path, run_id=run_id, lease=config.execution.lease):
                    removed += publisher.recover()
                own = publisher
            except LockedError:
                logger.info("a live run holds %s: only the work directory is cleaned", publisher.target)
        else:
            own = publisher
    live = lock.run_id if lock is not None else None
    removed += _clean_work_dir(spark, store, root, own=own, live=live)
    return removed


def _clean_work_dir(
    spark: "SparkSession", store: FileStore, root: str, *, own: Publisher | None, live: str | None
) -> list[str]:
    removed: list[str] = []
    for run_id, record in records(store, root).items():
        if run_id == live or _lives(store, root, run_id, record):
            continue
        stands = record is not None and _is_published(spark, run_id, record, own=own)
        if record is None or not record.done:
            announced = join(root, entry_name(run_id, LEDGER_ENTRY))
            settle(spark, store, announced, lock_root=root, published=stands)
        keep = _KEEP if stands else ()
        removed += remove_run(store, root, run_id, keep=keep)
    if removed:
        logger.info("removed %d leftovers of dead runs from the work directory", len(removed))
    return removed


def _lives(store: FileStore, root: str, run_id: str, record: RunRecord | None) -> bool:
    if record is None:
        # The owner file is written first and removed last; without it, only age can speak.
        return _youngest(store, root, run_id) > time.time() - 60.0
    if record.done:
        if record.target is not None:
            return False
        if record.owner.is_here():
            return record.owner.process_lives()
        return record.owner.silent_for() < _WITHOUT_TARGET_KEPT
    return record.lives()


def _youngest(store: FileStore, root: str, run_id: str) -> float:
    times = [0.0]
    for name, _ in entries_of(store, root, run_id):
        try:
            times.append(store.modified_time(join(root, name)))
        except FileNotFoundError:
            continue
    return max(times)


def _is_published(spark: "SparkSession", run_id: str, record: RunRecord, *, own: Publisher | None) -> bool:
    """True if the run's release is the one that stands at its target, or that cannot be told."""
    if record.target is None:
        return False
    mine = own is not None and own.target == record.target
    try:
        facts = own.published() if own is not None and mine else facts_at(spark, record.target)
    except Exception as error:
        # Another job's target may be out of reach from here; its recoding is then not ours to remove.
        logger.warning(
            "cannot tell what is published at %s (%s); its recoding stays", record.target, type(error).__name__
        )
        return True
    if facts is None and record.done:
        # Another job's target may be in the gap between its two renames. Ours is not: we hold its lock.
        return not mine
    return facts is not None and str(facts["run_id"]).lower() == run_id.lower()
