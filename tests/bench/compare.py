"""`kanon compare` on Adult: how long all cells take on one aggregation, and the page with their curves."""

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.adult import QI5, QI_SETS, Adult
from bench.jobs import hierarchy_of, settings
from bench.methods import TARGET

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kanon_spark.explore.compare import Comparison

# What the papers of `datafly` and `incognito` allow; other methods need none of it.
MAX_SUPPRESSION = 0.1


def columns_of(name: str) -> tuple[str, ...]:
    """The quasi-identifiers of a set, or as many as a number says of those that graph based local recoding names.

    >>> columns_of("2")
    ('age', 'workclass')
    """
    return QI5[: int(name)] if name.isdecimal() else QI_SETS[name]


def job(qis: Sequence[str], folder: Path, *, effort: str) -> dict[str, Any]:
    """What is compared: Adult with its hierarchies, the label kept."""
    return {
        "name": f"adult, {len(qis)} quasi-identifiers",
        "columns": {
            "quasi_identifiers": {qi: {"hierarchy": hierarchy_of(qi)} for qi in qis},
            "sensitive": [TARGET],
            "other": "drop",
        },
        "privacy": {"max_suppression": MAX_SUPPRESSION},
        "method": {"effort": effort},
        "execution": {"work_dir": str(folder / "work")},
    }


def compare_in(
    spark: "SparkSession", adult: Adult, folder: Path, *, qis: Sequence[str], effort: str, **asked: Any
) -> "Comparison":
    """Compare in a session that is there; `asked` goes to `Anonymizer.compare`."""
    from kanon_spark import Anonymizer

    table = spark.createDataFrame(adult.rows[[*qis, TARGET]])
    return Anonymizer(job(qis, folder, effort=effort)).compare(table, **asked)


def measure_compare(
    adult: Adult, *, qis: Sequence[str], effort: str, memory: str, tell: Callable[[str], None], **asked: Any
) -> "Comparison":
    """The comparison in a session of its own, each cell told."""
    from kanon_spark.engine.session import get_spark
    from kanon_spark.engine.stages import StageEvent

    def hear(event: StageEvent) -> None:
        if event.state == "note":
            tell(event.text)

    with tempfile.TemporaryDirectory(prefix="kanon_bench_") as name:
        folder = Path(name)
        spark = get_spark("kanon bench", extra=settings(folder, memory=memory), brief=True)
        try:
            return compare_in(spark, adult, folder, qis=qis, effort=effort, listeners=[hear], **asked)
        finally:
            spark.stop()


def load_now() -> str:
    """What else the machine is doing: processes that wanted a core in the last one, five and fifteen minutes."""
    return ", ".join(f"{part:.1f}" for part in os.getloadavg())
