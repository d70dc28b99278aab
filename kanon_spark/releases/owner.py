"""Who holds a lock or a run's files, and whether that process still lives."""

import dataclasses
import json
import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kanon_spark.logs import logger

BEATS_PER_LEASE = 3


@dataclass(frozen=True)
class Owner:
    """One run, as it is written into locks and beside its files. `beat` is its last sign of life."""

    run_id: str
    host: str
    machine: str
    pid: int
    birth: str
    started: float
    beat: float
    lease: float

    @classmethod
    def me(cls, run_id: str, lease: float) -> "Owner":
        """This process, now."""
        now = time.time()
        host, pid = socket.gethostname(), os.getpid()
        return cls(run_id, host, this_machine(), pid, birth_of(pid), started=now, beat=now, lease=lease)

    @classmethod
    def from_text(cls, text: str) -> "Owner | None":
        """Read what `to_text` wrote; None for anything else, such as a file that is still being written."""
        try:
            found = json.loads(text)
            return cls(**{field.name: found[field.name] for field in dataclasses.fields(cls)})
        except (ValueError, TypeError, KeyError):
            return None

    def to_text(self, **more: object) -> str:
        """One line of JSON; `more` is added to it."""
        return json.dumps({**dataclasses.asdict(self), **more}) + "\n"

    def now(self) -> "Owner":
        """The same run with a fresh sign of life."""
        return dataclasses.replace(self, beat=time.time())

    def is_here(self) -> bool:
        """True if its process ids are ours: the same boot of the same machine, and the same container."""
        return self.machine == this_machine()

    def process_lives(self) -> bool:
        """True if its process still runs here (only meaningful where `is_here()`)."""
        return process_lives(self.pid, self.birth)

    def silent_for(self, now: float | None = None) -> float:
        """Seconds since its last sign of life."""
        return max(0.0, (time.time() if now is None else now) - self.beat)

    def is_stale(self, now: float | None = None) -> bool:
        """True if it gave no sign of life for its lease, or its process is gone from this machine."""
        return self.silent_for(now) > self.lease or (self.is_here() and not self.process_lives())


@cache
def this_machine() -> str:
    """What must be equal for two process ids to be comparable: host name, boot and process namespace."""
    boot = _first_line(Path("/proc/sys/kernel/random/boot_id"))
    namespace = Path("/proc/self/ns/pid")
    space = str(namespace.readlink()) if namespace.is_symlink() else ""
    return "/".join((socket.gethostname(), boot, space))


def birth_of(pid: int) -> str:
    """When a process began, in kernel ticks, so that a reused process id is not taken for it; empty if unknown."""
    line = _first_line(Path(f"/proc/{pid}/stat"))
    # The program's name, in brackets, may hold spaces: count fields from behind it.
    fields = line.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else ""


def process_lives(pid: int, birth: str) -> bool:
    """True if the process runs and is the one that was meant."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    if _is_zombie(pid):
        return False
    return not birth or birth_of(pid) == birth


def _is_zombie(pid: int) -> bool:
    return _first_line(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()[:1] == ["Z"]


def _first_line(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").split("\n", 1)[0].strip()
    except OSError:
        return ""


class Heartbeat:
    """A thread that calls `beat` several times per lease until it is stopped."""

    def __init__(self, beat: Callable[[], None], *, lease: float, name: str) -> None:
        self._beat = beat
        self._pause = lease / BEATS_PER_LEASE
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"kanon-{name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; when this returns it writes no more."""
        self._stop.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._pause):
            try:
                self._beat()
            except OSError as error:
                # A store that is away for a moment must not end the run; whether the lock is still held is asked before
                # anything is published.
                logger.warning("no sign of life could be written (%s)", type(error).__name__)
