"""The demo's job: `conf/demo.yaml` on the generated table, with everything it writes in one folder."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kanon_spark.config.loader import LoadedConfig
    from kanon_spark.engine.release import Release
    from kanon_spark.engine.stages import Listener

DEFAULT_FOLDER = Path("out/demo")


def demo_config_path() -> Path:
    """`conf/demo.yaml` of the checkout, or the copy of it that travels in the wheel."""
    here = Path(__file__).resolve()
    packaged, checkout = here.parent / "data", here.parents[2]
    home = packaged if packaged.is_dir() else checkout
    return home / "conf" / "demo.yaml"


def load_demo(folder: Path | None = None) -> "LoadedConfig":
    """The demo's configuration with source, sink, report and working files under `folder`.

    >>> load_demo(Path("/tmp/demo")).config.sink.path
    '/tmp/demo/release'
    """
    from kanon_spark.config.loader import load_config

    folder = (folder or DEFAULT_FOLDER).absolute()
    places = {
        "source.path": folder / "admissions.parquet",
        "sink.path": folder / "release",
        "report.html": folder / "report.html",
        "report.manifest": folder / "manifest.json",
        "execution.work_dir": folder / ".kanon",
    }
    return load_config(demo_config_path(), overrides=[f"{key}={_as_yaml(path)}" for key, path in places.items()])


def run_demo(folder: Path | None = None, listeners: "Sequence[Listener]" = (), *, rows: int | None = None) -> "Release":
    """Make the table where it is not there yet, and anonymize it.

    Args:
        folder: Where table, release, manifest and report go; `out/demo` in the current folder by default.
        listeners: Called with each `StageEvent`, for progress.
        rows: Rows of the table; 50,000 by default.
    """
    from kanon_spark.demo.table import ROWS, write_admissions
    from kanon_spark.engine.runner import run

    loaded = load_demo(folder)
    source = loaded.config.source
    if source is None or source.path is None:
        raise AssertionError("load_demo sets source.path")
    write_admissions(Path(source.path), rows=rows or ROWS)
    return run(loaded, listeners=listeners)


def _as_yaml(path: Path) -> str:
    """A path as a quoted YAML scalar, in which `${…}` stays what it is."""
    return json.dumps(str(path).replace("${", "$${"), ensure_ascii=False)
