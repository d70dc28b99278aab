"""Memory and CPU of a process and all its descendants, sampled from /proc by a thread."""

import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

_PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Process:
    """One process, as /proc/<pid>/stat tells it."""

    pid: int
    parent: int
    cpu_seconds: float
    resident_bytes: int


def parse_stat(text: str) -> Process:
    """Read a stat line. The command's name may hold spaces and brackets, so fields count from the last bracket.

    >>> parse_stat("7 (a) b) S 3 7 7 0 -1 0 0 0 0 0 100 20 0 0 20 0 1 0 5 0 2 0").parent
    3
    """
    pid, rest = text.split(" ", 1)
    fields = rest.rsplit(")", 1)[1].split()  # fields[0] is field 3 of the manual, the state
    return Process(int(pid), int(fields[1]), (int(fields[11]) + int(fields[12])) / _TICKS, int(fields[21]) * _PAGE)


def process_tree(root: int) -> list[Process]:
    """The process and its descendants that live now; empty where there is no /proc."""
    children: dict[int, list[Process]] = {}
    found: list[Process] = []
    for entry in _PROC.glob("[0-9]*") if _PROC.is_dir() else ():
        try:
            process = parse_stat((entry / "stat").read_text())
        except (OSError, IndexError, ValueError):
            continue  # it ended while we looked
        children.setdefault(process.parent, []).append(process)
        if process.pid == root:
            found.append(process)
    for process in found:  # grows while it is walked
        found += children.get(process.pid, [])
    return found


@dataclass
class Sampler:
    """Watches a tree of processes while the body of `with` runs.

    Resident memory counts pages that processes share once for each of them, so the peak is a safe overestimate. CPU is
    what each process had used when it was last seen; a process shorter than the interval may be missed.
    """

    root: int
    interval: float = 0.25
    peak_bytes: int = 0
    _cpu: dict[int, float] = field(default_factory=dict)
    _before: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    @property
    def cpu_seconds(self) -> float:
        """CPU used since `mark`, or since the beginning."""
        with self._lock:
            return sum(self._cpu.values()) - self._before

    def sample(self) -> None:
        """Look once."""
        with self._lock:
            self._look()

    def _look(self) -> None:
        tree = process_tree(self.root)
        self.peak_bytes = max(self.peak_bytes, sum(process.resident_bytes for process in tree))
        for process in tree:
            self._cpu[process.pid] = process.cpu_seconds

    def mark(self) -> None:
        """Count CPU from now on."""
        with self._lock:
            self._look()
            self._before = sum(self._cpu.values())

    def __enter__(self) -> "Sampler":
        """Begin to watch."""
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop watching."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(self.interval):
            self.sample()
