"""`kanon doctor`: is everything here that a run needs?"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

import typer

from kanon_spark.cli.guard import guarded
from kanon_spark.cli.options import AsJson, Quiet
from kanon_spark.cli.output import emit, error_console, out_console
from kanon_spark.engine.session import cached_jars
from kanon_spark.errors import KanonError, PlatformError

PYTHON_VERSION = (3, 11)
JAVA_VERSIONS = (17, 21)
PACKAGES = ("numpy", "pandas", "pyarrow", "numba", "scipy", "pydantic", "PyYAML", "typer", "rich", "jinja2", "pyspark")
_GRAPHS_ADVICE = "needed by stitch: graphframes and by tables beyond one process;"
_GRAPHS_PACKAGE = "PYSPARK_SUBMIT_ARGS='--packages io.graphframes:graphframes-spark4_2.13:0.9.3 pyspark-shell'"
_JAVA_ADVICE = "install Java 17 or 21 (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"


@dataclass(frozen=True)
class Probe:
    """One thing that was looked at. Only `missing` keeps a run from working."""

    name: str
    state: Literal["ok", "note", "missing"]
    detail: str
    fix: str = ""


@guarded
def doctor(as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Check Python, Java, Spark (with a real small job), GraphFrames and write access, and say what to do."""
    probes = [look() for look in (look_at_python, look_at_packages, look_at_java, look_at_work_dir)]
    graphs = look_at_graphframes()
    if any(probe.state == "missing" for probe in probes):
        probes.append(Probe("Spark", "note", "not tried, since something above is missing"))
    else:
        if not (as_json or quiet):
            error_console().print("starting Spark for a small job …", style="dim")
        probes.append(look_at_spark())
        if graphs.state == "ok" and probes[-1].state == "ok":
            graphs = try_graphframes()
    probes.append(graphs)
    healthy = all(probe.state != "missing" for probe in probes)
    code = 0 if healthy else PlatformError.exit_code
    if as_json:
        outcome = "passed" if healthy else "failed"
        emit({"event": "outcome", "outcome": outcome, "exit_code": code, "probes": [asdict(probe) for probe in probes]})
    elif not (quiet and healthy):
        _show(probes)
    raise typer.Exit(code)


def look_at_python() -> Probe:
    """The interpreter's version."""
    found = ".".join(str(part) for part in sys.version_info[:3])
    if tuple(sys.version_info[:2]) >= PYTHON_VERSION:
        return Probe("Python", "ok", found)
    return Probe("Python", "missing", found, "use Python 3.11 or newer")


def look_at_packages() -> Probe:
    """The packages, without importing them."""
    versions, absent = [], []
    for name in PACKAGES:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            absent.append(name)
    if absent:
        return Probe("packages", "missing", f"not installed: {', '.join(absent)}", "pip install 'kanon-spark[spark]'")
    pandas = metadata.version("pandas")
    if int(pandas.split(".")[0]) >= 3:
        return Probe("packages", "missing", f"pandas {pandas} does not work with Spark 4.0", "pip install 'pandas<3'")
    return Probe("packages", "ok", ", ".join(versions))


def look_at_java() -> Probe:
    """The Java that Spark would start."""
    home = os.environ.get("JAVA_HOME")
    inside = Path(home) / "bin" / "java" if home else None
    command = str(inside) if inside is not None and inside.exists() else shutil.which("java")
    if command is None:
        return Probe("Java", "missing", "neither JAVA_HOME nor java on the PATH", _JAVA_ADVICE)
    version = java_version(command)
    if version is None:
        return Probe("Java", "missing", f"{command} does not tell its version", _JAVA_ADVICE)
    if version not in JAVA_VERSIONS:
        return Probe("Java", "missing" if version < min(JAVA_VERSIONS) else "note", f"version {version}", _JAVA_ADVICE)
    return Probe("Java", "ok", f"version {version} ({command})")


def java_version(command: str) -> int | None:
    """The major version of a Java, None where it cannot be told."""
    try:
        answer = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(match.group(1)) if match else None


def look_at_graphframes() -> Probe:
    """GraphFrames' Python side and the jar that `scripts/setup` keeps; only the GraphFrames stitch needs them."""
    try:
        version = metadata.version("graphframes-py")
    except metadata.PackageNotFoundError:
        advice = f"{_GRAPHS_ADVICE} pip install 'kanon-spark[graphframes]'"
        return Probe("GraphFrames", "note", "graphframes-py is not installed", advice)
    jars = cached_jars()
    if jars:
        held = f"{len(jars)} jar{'s' if len(jars) > 1 else ''} in {jars[0].parent}"
        return Probe("GraphFrames", "ok", f"graphframes-py {version}, {held}")
    advice = f"{_GRAPHS_ADVICE} in a checkout scripts/setup --jars fetches it, elsewhere {_GRAPHS_PACKAGE}"
    return Probe("GraphFrames", "note", "no jar in the cache", advice)


def try_graphframes(start: Callable[[], int] | None = None) -> Probe:
    """A real call: what belongs together in a graph of two pieces."""
    try:
        components = (start or _small_graph)()
    except Exception as error:  # as below: the doctor must be able to say so, and a run can do without
        advice = (
            f"the jar must fit Spark and graphframes-py; without it: execution.stitch: local. Else {_GRAPHS_PACKAGE}"
        )
        return Probe("GraphFrames", "note", f"a small graph failed ({type(error).__name__})", advice)
    if components != 2:
        return Probe("GraphFrames", "missing", "a small graph gave a wrong result", "set execution.stitch: local")
    return Probe("GraphFrames", "ok", "found the two pieces of a small graph")


def look_at_work_dir() -> Probe:
    """Write access where a run keeps its confidential files by default, and to the temporary folder."""
    for folder in (Path.cwd(), Path(tempfile.gettempdir())):
        try:
            with tempfile.TemporaryDirectory(prefix=".kanon_doctor_", dir=folder):
                continue
        except OSError as error:
            reason = error.strerror or "no access"
            advice = "run where you may write, or set execution.work_dir and TMPDIR"
            return Probe("write access", "missing", f"{folder}: {reason}", advice)
    return Probe("write access", "ok", f"{Path.cwd()} and {tempfile.gettempdir()}")


def look_at_spark(start: Callable[[], tuple[str, int]] | None = None) -> Probe:
    """A real job: rows through a Python worker, written, and read back."""
    try:
        version, total = (start or _small_job)()
    except KanonError as error:
        return Probe("Spark", "missing", error.message, error.fix)
    except Exception as error:  # whatever is wrong with the installation, the doctor must be able to say so
        from kanon_spark.cli.guard import describe, write_trace

        advice = f"the full trace is in {write_trace(error)}; often Java, or Python workers of another version"
        return Probe("Spark", "missing", describe(error), advice)
    if total != sum(range(1, 101)):
        return Probe("Spark", "missing", "a small job gave a wrong result", "reinstall pyspark, pandas and pyarrow")
    return Probe("Spark", "ok", f"version {version}; rows went through a Python worker, onto the disk and back")


def _small_job() -> tuple[str, int]:
    from collections.abc import Iterable, Iterator

    import pandas as pd

    from kanon_spark.engine.session import get_spark

    spark = get_spark("kanon-doctor", brief=True, graphs=True)

    def plus_one(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            yield batch + 1

    with tempfile.TemporaryDirectory(prefix=".kanon_doctor_", dir=Path.cwd()) as folder:
        path = str(Path(folder) / "rows")
        spark.range(100).mapInPandas(plus_one, "id long").write.parquet(path)
        row = spark.read.parquet(path).groupBy().sum("id").first()
    return spark.version, int(row[0]) if row is not None else -1


def _small_graph() -> int:
    from kanon_spark.engine.session import get_spark
    from kanon_spark.stitch.graph import Graphs

    spark = get_spark()
    with tempfile.TemporaryDirectory(prefix=".kanon_doctor_", dir=Path.cwd()) as folder:
        vertices = spark.range(4)
        edges = spark.createDataFrame([(0, 1), (2, 3)], "src long, dst long")
        found = Graphs(spark, lambda name: str(Path(folder) / name)).components(vertices, edges)
        return found.select("component").distinct().count()


def _show(probes: list[Probe]) -> None:
    from rich.table import Table
    from rich.text import Text

    styles = {"ok": "green", "note": "yellow", "missing": "bold red"}
    grid = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for probe in probes:
        text = Text(probe.detail)
        if probe.fix:
            text.append(f"\nfix: {probe.fix}", style="dim")
        grid.add_row(Text(probe.state, style=styles[probe.state]), probe.name, text)
    out_console().print(grid)
