"""The configurations that are measured, and the Spark settings they are measured under."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.methods import VARIANTS
from bench.places import HIERARCHIES

ZIP = "zip"


def job(
    source: Path,
    folder: Path,
    *,
    qis: Sequence[str],
    k: int,
    method: str = "lattice",
    effort: str = "normal",
    order: str = "source",
    execution: dict[str, Any] | None = None,
    sensitive: Sequence[str] = (),
    privacy: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A run on Adult's columns, with everything it writes under `folder`; `method` is one of `VARIANTS`.

    What `privacy` asks beyond k is asked of the `sensitive` columns.
    """
    variant = VARIANTS[method]
    columns = {qi: {"hierarchy": hierarchy_of(qi)} if variant.hierarchies else {} for qi in qis}
    return {
        "name": "bench",
        "source": {"path": str(source)},
        "columns": {"quasi_identifiers": columns, "sensitive": list(sensitive), "other": "keep"},
        "privacy": {"k": k, "max_suppression": variant.max_suppression, **(privacy or {})},
        "method": {"name": variant.method, "effort": effort, **variant.options},
        "execution": {"work_dir": str(folder / "work"), **(execution or {})},
        "sink": {"path": str(folder / "release"), "order": order},
        "report": {"manifest": str(folder / "manifest.json")},
    }


def hierarchy_of(qi: str) -> object:
    """The hierarchy that a column is measured with."""
    return {"prefix": {"keep": [4, 3, 2, 1]}} if qi == ZIP else str(HIERARCHIES / f"{qi}.csv")


def settings(folder: Path, *, memory: str) -> dict[str, str]:
    """Two cores, one heap: the same for whatever is compared."""
    return {
        "spark.master": "local[2]",
        "spark.driver.memory": memory,
        "spark.local.dir": str(folder / "spark"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
