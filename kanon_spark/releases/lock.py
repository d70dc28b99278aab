"""One run per target: a lock file with a heartbeat. `README.md` tells how it goes stale and how it is broken."""

import threading
import time
from types import TracebackType

from kanon_spark.errors import LockedError
from kanon_spark.io.files import FileStore
from kanon_spark.io.paths import join, name_of, parent_of
from kanon_spark.logs import logger
from kanon_spark.releases.owner import Heartbeat, Owner

_ATTEMPTS = 50
_PAUSE = 0.02  # seconds before a run looks again whether another has broken the lock


class TargetLock:
    """Holds a target for one run: `with TargetLock(store, path, run_id=…, lease=60) as lock: …`.

    Whoever's run id stands in the file holds the lock. `assert_held` must be called right before publishing.
    """

    def __init__(self, store: FileStore, path: str, *, run_id: str, lease: float) -> None:
        self.path = path
        self.run_id = run_id
        self._store = store
        self._owner = Owner.me(run_id, lease)
        self._writing = threading.Lock()
        self._heartbeat: Heartbeat | None = None

    def __enter__(self) -> "TargetLock":
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def acquire(self) -> None:
        """Take the lock, breaking a stale one; `LockedError` if a live run holds it."""
        for _ in range(_ATTEMPTS):
            self._owner = self._owner.now()
            if self._store.create_exclusive(self.path, self._owner.to_text()):
                self._heartbeat = Heartbeat(self._refresh, lease=self._owner.lease, name="lock")
                return
            holder = self._holder()
            if holder is None:
                continue  # it was released between the two looks
            if not holder.is_stale():
                raise _locked(holder, self.path)
            self._break(holder)
        raise LockedError("other runs take the target all the time", where=self.path, fix="try again later")

    def release(self) -> None:
        """Give the lock back; one that somebody else has taken meanwhile is left alone."""
        if self._heartbeat is None:
            return
        self._heartbeat.stop()
        self._heartbeat = None
        with self._writing:
            if self._is_mine():
                self._store.delete(self.path)
        self._sweep()

    def assert_held(self) -> None:
        """Raise `LockedError` unless the lock is still this run's; renews it for a whole lease."""
        with self._writing:
            if self._heartbeat is not None and self._is_mine():
                self._write()
                return
        raise LockedError(
            f"run {self.run_id} lost the lock on its target: it gave no sign of life for {self._owner.lease:g} s, and "
            "another run took over",
            where=self.path,
            fix="nothing was published; run again, with a longer execution.lease if the driver stalls",
        )

    def _refresh(self) -> None:
        with self._writing:
            if self._is_mine():
                self._write()
            else:
                logger.warning("[%s] the lock on the target is lost", self.run_id)

    def _write(self) -> None:
        self._owner = self._owner.now()
        self._store.write_text(self.path, self._owner.to_text())

    def _is_mine(self) -> bool:
        holder = self._holder()
        return holder is not None and holder.run_id == self.run_id

    def _holder(self) -> Owner | None:
        """Who stands in the file; None if there is no file. One that makes no sense counts from when it was written."""
        try:
            text = self._store.read_text(self.path)
            written = self._store.modified_time(self.path)
        except FileNotFoundError:
            return None
        unknown = Owner("unknown", "unknown", "", 0, "", started=written, beat=written, lease=self._owner.lease)
        return Owner.from_text(text) or unknown

    def _break(self, stale: Owner) -> None:
        """Take a stale lock away. Runs that see it do so in turn, and look again when it is theirs."""
        turn = self.path + ".breaking"
        if not self._store.create_exclusive(turn, self._owner.to_text()):
            self._sweep()  # whoever breaks it may have died over it
            time.sleep(_PAUSE)
            return
        try:
            self._take_away(stale)
        finally:
            self._store.delete(turn)

    def _take_away(self, stale: Owner) -> None:
        found = self._holder()
        if found is None or (found.run_id, found.beat) != (stale.run_id, stale.beat):
            return  # somebody else broke or released it meanwhile
        aside = f"{self.path}.{self.run_id}.stale"
        try:
            self._store.rename(self.path, aside)
        except OSError:
            return  # its holder woke up and released it: look again
        text = self._store.read_text(aside)
        taken = Owner.from_text(text)
        if taken is not None and (taken.run_id, taken.beat) != (stale.run_id, stale.beat):
            # Its holder woke up between our look and our rename: give it back.
            self._store.create_exclusive(self.path, text)
        else:
            logger.warning("[%s] broke the stale lock of run %s (host %s)", self.run_id, stale.run_id, stale.host)
        self._store.delete(aside)

    def _sweep(self) -> None:
        """Delete what a run that died while it wrote or broke this lock left beside it, once it is a lease old."""
        folder, prefix = parent_of(self.path), name_of(self.path) + "."
        for name in self._store.list(folder):
            if name.startswith(prefix) and name.endswith((".tmp", ".stale", ".breaking")):
                path = join(folder, name)
                try:
                    if time.time() - self._store.modified_time(path) > self._owner.lease:
                        self._store.delete(path)
                except FileNotFoundError:
                    continue


def _locked(holder: Owner, path: str) -> LockedError:
    silent = holder.silent_for()
    left = max(0.0, holder.lease - silent)
    return LockedError(
        f"run {holder.run_id} on host {holder.host} (process {holder.pid}) holds the target; it began "
        f"{time.time() - holder.started:.0f} s ago and its last sign of life is {silent:.0f} s old",
        where=path,
        fix=f"wait until it ends; if it is dead, its lock goes stale in {left:.0f} s and the next run takes over",
    )
