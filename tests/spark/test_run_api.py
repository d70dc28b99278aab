"""The Python door: a DataFrame in, a release out, nothing published."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from run_world import smallest_class

from kanon_spark import Anonymizer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_dataframe_in_and_a_release_out(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the work directory is made beside the configuration; arguments stand where we are
    people = spark.createDataFrame([(20 + n % 7, "mf"[n % 2], n) for n in range(40)], "age int, sex string, pay int")
    stages = []
    intervals = {"interval": {"widths": [2, 4]}}
    job = Anonymizer(quasi_identifiers={"age": {"hierarchy": intervals}, "sex": None}, sensitive=["pay"], k=5)
    release = job.run(people, listeners=[lambda event: stages.append((event.stage, event.state))])

    assert smallest_class(release.table, ["age", "sex"]) >= 5
    assert release.table.columns == ["age", "sex", "pay"]
    assert sorted(row.pay for row in release.table.collect()) == list(range(40))
    verdict = release.verify()
    assert verdict.passed
    assert verdict.rows == 40

    metrics = release.metrics
    assert 0 <= metrics["gcp_bound"] <= metrics["gcp"] <= 1
    assert set(metrics["per_qi"]) == {"age", "sex"}
    metrics["gcp"] = -1
    assert release.metrics["gcp"] >= 0, "what is handed out is a copy"
    assert release.manifest["outcome"] == "released"
    assert release.manifest["seconds"]["total"] > 0
    # The manifest is written in the last stage, so that it cannot tell how long that took.
    assert set(release.manifest["seconds"]["stages"]) == {stage for stage, _ in stages} - {"report"}
    assert release.recoding.entries.count() == 14
    assert ((tmp_path / ".kanon").stat().st_mode & 0o777) == 0o700

    report = release.report(tmp_path / "deep" / "report.html")
    assert report.read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")
    card = release._repr_html_()
    assert re.search(r"<(table|div)", card)
    assert "5" in card
    assert [path.name for path in tmp_path.iterdir() if path.name not in {".kanon", "deep"}] == []


def test_neither_table_nor_source(spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kanon_spark.errors import RequestError

    monkeypatch.chdir(tmp_path)
    with pytest.raises(RequestError, match="names no source"):
        Anonymizer(quasi_identifiers=["age"], k=5).run(spark=spark)
