"""Time and memory of a whole run at growing sizes, beside the floor, each in a fresh process with the same settings."""

import json
import math
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.adult import QI8, load_adult
from bench.child import EVENT
from bench.jobs import ZIP, job
from bench.places import cache_folder
from bench.tables import count_rows, table_path
from bench.usage import Sampler

Tell = Callable[[str], None]
SENSITIVE = "hours-per-week"  # some ninety values
WARM_UP_ROWS = 200_000  # more signatures than one process takes where the table is sparse: blocks, as in large runs


@dataclass(frozen=True)
class Plan:
    """What is measured."""

    rows: tuple[int, ...]
    zips: int = 2000
    order: str = "source"
    k: int = 10
    memory: str = "4g"
    repeat: int = 1
    seed: int = 1
    effort: str = "normal"
    table: Path | None = None
    method: str = "lattice"
    stitch: str = "auto"
    l_diversity: float | None = None  # measured beside k alone, of the column SENSITIVE

    @property
    def qis(self) -> tuple[str, ...]:
        """Adult's eight, and the zip where it tells anything."""
        return QI8 if self.zips == 1 else (ZIP, *QI8)


@dataclass(frozen=True)
class Measured:
    """One process. Seconds and CPU count from when the session is up; the peak is that of the whole process tree."""

    session_seconds: float
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    found: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Size:
    """Everything measured at one size."""

    rows: int
    floors: tuple[Measured, ...]
    runs: tuple[Measured, ...]
    guarded: tuple[Measured, ...] = ()

    @property
    def guarded_seconds(self) -> float:
        """Median over the repeats of the runs that ask more than k."""
        return statistics.median(one.seconds for one in self.guarded)

    @property
    def guarded_ratio(self) -> float:
        """How many runs with k alone they take."""
        return self.guarded_seconds / self.run_seconds

    @property
    def floor_seconds(self) -> float:
        """Median over the repeats."""
        return statistics.median(one.seconds for one in self.floors)

    @property
    def run_seconds(self) -> float:
        """Median over the repeats."""
        return statistics.median(one.seconds for one in self.runs)

    @property
    def ratio(self) -> float:
        """How many floors a run takes."""
        return self.run_seconds / self.floor_seconds

    @property
    def manifest(self) -> dict[str, Any]:
        """The last run's."""
        return dict(self.runs[-1].found["manifest"])

    @property
    def per_million(self) -> float:
        """Seconds of the run for a million signatures."""
        return self.run_seconds / max(1, self.manifest["signatures"]) * 1e6

    def to_json(self) -> dict[str, Any]:
        """All figures."""
        return {
            "rows": self.rows,
            "seconds_per_million_signatures": self.per_million,
            "floor_seconds": self.floor_seconds,
            "run_seconds": self.run_seconds,
            "ratio": self.ratio,
            "guarded_ratio": self.guarded_ratio if self.guarded else None,
            "guarded": [asdict(one) for one in self.guarded],
            "floors": [asdict(one) for one in self.floors],
            "runs": [asdict(one) for one in self.runs],
        }


def growth(rows: Sequence[int], seconds: Sequence[float]) -> list[float | None]:
    """The exponent e in seconds ~ rows^e between each size and the one before it.

    >>> growth([10, 100], [2.0, 20.0])
    [None, 1.0]
    """
    found: list[float | None] = [None]
    for place in range(1, len(rows)):
        same = rows[place] == rows[place - 1]
        times = math.log(seconds[place] / seconds[place - 1])
        found.append(None if same else round(times / math.log(rows[place] / rows[place - 1]), 3))
    return found


def measure_scale(plan: Plan, tell: Tell) -> list[Size]:
    """Floor and run, in turn, at each size."""
    tables = [plan.table] if plan.table else [_ensure_table(plan, rows, tell) for rows in plan.rows]
    _warm_up(plan, tell)
    sizes = []
    for table in tables:
        rows = count_rows(table)
        floors, runs, guarded = [], [], []
        for turn in range(plan.repeat):
            again = f", {turn + 1} of {plan.repeat}" if plan.repeat > 1 else ""
            common: dict[str, Any] = {"memory": plan.memory, "table": str(table)}
            tell(f"{rows:,} rows: the floor{again}")
            floors.append(in_fresh_process({**common, "what": "floor", "qis": plan.qis, "k": plan.k}))
            tell(f"{rows:,} rows: the run{again}")
            runs.append(in_fresh_process({**common, "what": "run"}, plan=replace(plan, l_diversity=None)))
            if plan.l_diversity is not None:
                tell(f"{rows:,} rows: the run with l-diversity{again}")
                guarded.append(in_fresh_process({**common, "what": "run"}, plan=plan))
        sizes.append(Size(rows, tuple(floors), tuple(runs), tuple(guarded)))
    return sizes


def _warm_up(plan: Plan, tell: Tell) -> None:
    """A small run of each kind, not measured: on a fresh machine it compiles the kernels, which is done once."""
    table = _ensure_table(plan, min(WARM_UP_ROWS, *plan.rows), tell)
    for l_diversity in dict.fromkeys([None, plan.l_diversity]):
        tell("warm up" + ("" if l_diversity is None else " with l-diversity"))
        request = {"what": "run", "memory": plan.memory, "table": str(table)}
        in_fresh_process(request, plan=replace(plan, l_diversity=l_diversity))


def _ensure_table(plan: Plan, rows: int, tell: Tell) -> Path:
    """The table from the cache, made first if it is not there."""
    base = load_adult().rows
    folder = cache_folder() / "bench"
    path = table_path(folder, base, rows=rows, zips=plan.zips, seed=plan.seed)
    if not path.exists():
        tell(f"make {path.name}")
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
            base.to_parquet(file.name)
            request = {"what": "table", "base": file.name, "table": str(path), "rows": rows}
            in_fresh_process({**request, "zips": plan.zips, "seed": plan.seed, "memory": plan.memory})
    return path


def in_fresh_process(request: dict[str, Any], *, plan: Plan | None = None) -> Measured:
    """Let a child do it, and watch the child and its descendants meanwhile.

    Args:
        request: What the child is to do; its folder is added here and removed afterwards.
        plan: Where given, the job of a run is made from it.
    """
    scratch = cache_folder() / "bench"  # beside the tables: big enough for them, big enough for what is written
    scratch.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="work_", dir=scratch))
    try:
        request = {**request, "folder": str(folder)}
        if plan is not None:
            source = Path(request["table"]).absolute()
            request["job"] = job(
                source,
                folder,
                qis=plan.qis,
                k=plan.k,
                method=plan.method,
                effort=plan.effort,
                order=plan.order,
                execution={"stitch": plan.stitch},
                sensitive=[SENSITIVE],
                privacy={} if plan.l_diversity is None else {"l_diversity": plan.l_diversity},
            )
            request["graphs"] = plan.stitch != "local"
        asked = folder / "request.json"
        asked.write_text(json.dumps(request))
        command = [sys.executable, "-P", "-m", "bench.child", str(asked)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            return _watch(child)
        finally:
            child.kill()  # only where something went wrong is it still there
            child.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _watch(child: "subprocess.Popen[str]") -> Measured:
    """Follow the child's events to its end."""
    assert child.stdout is not None
    events: dict[str, dict[str, Any]] = {}
    with Sampler(child.pid) as sampler:
        for line in child.stdout:
            if not line.startswith(EVENT):
                continue
            event = json.loads(line.removeprefix(EVENT))
            events[event.pop("event")] = event
            if "done" in events:
                sampler.sample()
                break
            sampler.mark()
    child.stdout.read()  # to the end, so that the child is never stuck on a full pipe
    code = child.wait()
    if code or "done" not in events:
        raise SystemExit(f"a measured process ended with code {code}; its message is above")
    done = events["done"]
    return Measured(
        session_seconds=events["ready"]["session_seconds"],
        seconds=done.pop("seconds"),
        cpu_seconds=sampler.cpu_seconds,
        peak_bytes=sampler.peak_bytes,
        found=done,
    )
