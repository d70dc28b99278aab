"""The README's Python block runs as it stands, and does what it says."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_readme_python_runs(spark: "SparkSession", repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"^```python\n(.*?)^```", (repo / "README.md").read_text(), flags=re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, "README.md", "exec"), names)
    release = names["release"]
    counts = {tuple(row)[:2]: row["count"] for row in release.table.groupBy("age", "zip").count().collect()}
    assert counts == {("[30, 34]", "104**"): 3, ("[60, 64]", "80207"): 3}
    assert 0 < release.metrics["gcp"] < 0.5
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
