"""The notebooks, cell by cell, as Databricks would run them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = Path(__file__).resolve().parents[2] / "jobs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.py"))
SMALL = {"rows": "1200", "k": "5"}


class Widgets:
    """Databricks' widgets: what a job has set wins over what the notebook says."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def text(self, name: str, default: str) -> None:
        self.values[name] = SMALL.get(name, default)

    def get(self, name: str) -> str:
        return self.values[name]


class Utilities:
    """`dbutils`, as far as notebooks use it."""

    def __init__(self) -> None:
        self.widgets = Widgets()


def cells_of(path: Path) -> list[str]:
    """The cells of code; those of text are comments all through."""
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# Databricks notebook source\n")
    return [cell for cell in text.split("\n# COMMAND ----------\n") if not cell.strip().startswith("# MAGIC")]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_to_its_end(
    spark: "SparkSession", path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown: list[str] = []
    world: dict[str, Any] = {"spark": spark, "dbutils": Utilities(), "displayHTML": shown.append}
    for number, cell in enumerate(cells_of(path)):
        exec(compile(cell, f"{path.name}, cell {number}", "exec"), world)
    if path.stem == "quickstart":
        assert world["release"].manifest["privacy"]["k"]["achieved"] >= 5
        assert "patient_id" not in world["release"].table.columns
    elif path.stem == "explain_a_release":
        assert world["release"].manifest["risk"]["attack"]["after"]["worst"] <= 1 / 5
        assert "External edition" in shown[0]
