"""Whole runs in a folder of their own: make a job, run it, look at what stands where, and judge the release."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kanon_spark.config.loader import LoadedConfig, load_config
from kanon_spark.engine.runner import run
from kanon_spark.engine.stages import StageEvent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kanon_spark.engine.release import Release

Row = tuple[Any, ...]
WITH_REPORT = {"manifest": "reports/manifest.json", "html": "reports/report.html"}  # it takes seconds: only on request


@dataclass
class World:
    """One folder with a table, a job and its target."""

    spark: "SparkSession"
    folder: Path
    stages: list[str] = field(default_factory=list)

    @property
    def sink(self) -> Path:
        """Where the release goes."""
        return self.folder / "out" / "release"

    @property
    def work(self) -> Path:
        """The default work directory."""
        return self.folder / ".kanon"

    @property
    def manifest(self) -> Path:
        """Where jobs made here write their manifest."""
        return self.folder / "reports" / "manifest.json"

    def save(self, table: "DataFrame", name: str = "table") -> Path:
        """Write the source."""
        path = self.folder / "data" / name
        table.write.mode("overwrite").parquet(str(path))
        return path

    def write(self, name: str, *lines: str) -> str:
        """Write a text file and give back its name, as a configuration would say it."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return name

    def config_file(self, quasi_identifiers: Any, *, name: str = "job", k: int = 3, **sections: Any) -> Path:
        """Write a configuration; sections given here win over the usual ones. A section of None is left out."""
        columns = {"quasi_identifiers": quasi_identifiers, "other": "keep", **sections.pop("columns", {})}
        usual: dict[str, Any] = {
            "name": name,
            "source": {"path": "data/table"},
            "columns": columns,
            "privacy": {"k": k, **sections.pop("privacy", {})},
            "sink": {"path": "out/release"},
            "report": {"manifest": "reports/manifest.json"},
        }
        body = {key: value for key, value in {**usual, **sections}.items() if value is not None}
        path = self.folder / f"{name}.yaml"
        path.write_text(json.dumps(body, ensure_ascii=False), encoding="utf-8")  # JSON is YAML
        return path

    def job(self, quasi_identifiers: Any, **options: Any) -> LoadedConfig:
        """The configuration, loaded."""
        return load_config(self.config_file(quasi_identifiers, **options))

    def run(self, job: LoadedConfig, table: "DataFrame | None" = None) -> "Release":
        """Run a job and note its stages."""
        self.stages.clear()
        return run(job, spark=self.spark, table=table, listeners=[self._hear])

    def _hear(self, event: StageEvent) -> None:
        if event.state == "end" and event.stage not in self.stages:
            self.stages.append(event.stage)

    def released(self) -> dict[str, bytes]:
        """Every file of the published release, with its bytes."""
        return contents(self.sink)

    def left_beside(self) -> list[str]:
        """What stands beside the release and is not the release: nothing may."""
        folder = self.sink.parent
        return sorted(path.name for path in folder.iterdir() if path != self.sink) if folder.exists() else []

    def left_in_work(self) -> list[str]:
        """What stands in the work directory, run ids cut off: `recoding` and `owner.json` may, of one run."""
        if not self.work.exists():
            return []
        return sorted(re.sub(r"^_kanon_\d{8}T\d{6}_[0-9a-f]{8}_", "", path.name) for path in self.work.iterdir())


KEPT = ["owner.json", "recoding"]  # what a successful run leaves in its work directory


def contents(folder: Path) -> dict[str, bytes]:
    """Relative path to bytes of every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def multiset(table: "DataFrame") -> Counter[Row]:
    """The rows of a small table, each with how often it occurs."""
    return Counter(tuple(row) for row in table.collect())


def smallest_class(table: "DataFrame", qis: Sequence[str]) -> int:
    """What pycanon says of a release. Null is a value like any other, so it is spelt out for pandas."""
    from pycanon import anonymity

    # Plain names: pycanon builds queries from them.
    names = {name: f"q{index}" for index, name in enumerate(qis)}
    rows = [["<null>" if value is None else value for value in row] for row in _selected(table, qis)]
    import pandas as pd

    return int(anonymity.k_anonymity(pd.DataFrame(rows, columns=list(names.values())), list(names.values())))


def _selected(table: "DataFrame", names: Sequence[str]) -> Iterable[Row]:
    places = [table.columns.index(name) for name in names]
    return [tuple(row[place] for place in places) for row in table.collect()]


def published_by_row(table: "DataFrame", key: str) -> dict[Any, dict[str, Any]]:
    """Each row of a small table by its (unique) key."""
    place = table.columns.index(key)
    return {row[place]: dict(zip(table.columns, row, strict=True)) for row in table.collect()}


Truth = Callable[[Any, str], bool]


def in_range(raw: Any, label: str) -> bool:
    """`[lo, hi]`, or the value itself."""
    if not label.startswith("["):
        return bool(_like(raw, label) == raw)
    low, high = label[1:-1].split(", ")
    return bool(_like(raw, low) <= raw <= _like(raw, high))


def in_interval(raw: Any, label: str) -> bool:
    """A closed interval of integers, a half-open one of others, or the value itself."""
    if label.endswith(")"):
        low, high = label[1:-1].split(", ")
        return bool(_like(raw, low) <= raw < _like(raw, high))
    return in_range(raw, label)


def in_set(raw: Any, label: str) -> bool:
    """`{a, b}` without quoted members, or the value itself."""
    text = str(raw).lower() if isinstance(raw, bool) else str(raw)
    return text == label or (label[0] + label[-1] == "{}" and text in label[1:-1].split(", "))


def in_period(raw: Any, label: str) -> bool:
    """A day, month, quarter, year or decade."""
    year, quarter = raw.year, (raw.month + 2) // 3
    day = f"{raw:%Y-%m-%d}"
    return label in {str(raw), day, day[:7], f"{year}-Q{quarter}", f"{year}", f"{year // 10}0s"}


def has_prefix(raw: Any, label: str) -> bool:
    """`12***`: so many characters, then stars up to the length."""
    return len(label) >= len(raw) and str(raw).startswith(label.rstrip("*"))


def under(paths: Mapping[Any, Sequence[str]]) -> Truth:
    """Labels of a hierarchy file: any on the value's own path."""
    return lambda raw, label: label == str(raw) or label in paths[raw]


def _like(raw: Any, text: str) -> Any:
    """The text read as a value of the same type as `raw`."""
    match raw:
        case datetime():
            return datetime.fromisoformat(text)
        case date():
            return date.fromisoformat(text)
        case bool():
            return text == "true"
        case int():
            return int(text)
        case float():
            return float(text)
        case Decimal():
            return Decimal(text)
    return text


def untrue_cells(
    source: Mapping[Any, Mapping[str, Any]], released: Mapping[Any, Mapping[str, Any]], truths: Mapping[str, Truth]
) -> list[tuple[Any, str, Any, Any]]:
    """Released cells that are not true of the row they came from: (key, column, raw, label)."""
    wrong = []
    for key, row in released.items():
        for name, true in truths.items():
            raw, label = source[key][name], row[name]
            null = raw is None or raw != raw  # NaN counts as null
            good = label == "*" or (label is None if null else label is not None and true(raw, label))
            if not good:
                wrong.append((key, name, raw, label))
    return wrong
