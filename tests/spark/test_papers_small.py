"""The small version of `scripts/papers`, whole; and its way without Spark against a run on Spark."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from bench.adult import QI5, ROW_ID, stand_in
from bench.jobs import hierarchy_of, job
from bench.local import anonymize, config_of
from bench.methods import VARIANTS
from papers.__main__ import PAPERS, app
from typer.testing import CliRunner

from kanon_spark.config.loader import load_config
from kanon_spark.engine.runner import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_small_version_measures_judges_and_draws(tmp_path: Path) -> None:
    figures = tmp_path / "papers.json"
    result = CliRunner().invoke(app, ["--small", "--out", str(tmp_path / "out"), "--json", str(figures)])
    assert result.exit_code == 0, result.output
    for paper in PAPERS.values():
        assert paper.title in result.output
    told = json.loads(figures.read_text())
    assert told["small"] is True
    assert [one["paper"] for one in told["papers"]] == list(PAPERS)
    for one, paper in zip(told["papers"], PAPERS.values(), strict=True):
        assert one["cells"]
        assert {finding["holds"] for finding in one["findings"]} <= {"yes", "mostly", "no", "not comparable"}
        for plot in paper.plots:
            assert (tmp_path / "out" / f"{paper.key}_{plot.name}.svg").read_text().startswith("<svg")
    page = (tmp_path / "out" / "index.html").read_text()
    assert page.count("<svg") == sum(len(paper.plots) for paper in PAPERS.values())
    assert "<script" not in page


@pytest.mark.parametrize("method", ["mondrian", "sbca"])
def test_what_is_published_without_spark_is_what_a_run_publishes(
    spark: "SparkSession", tmp_path: Path, method: str
) -> None:
    rows = stand_in(600).assign(**{ROW_ID: range(600)})
    source = tmp_path / "rows.parquet"
    rows[[ROW_ID, *QI5]].to_parquet(source, index=False)
    manifest = run(load_config(job(source, tmp_path / "run", qis=QI5, k=5, method=method)), spark=spark).manifest
    there = pd.read_parquet(tmp_path / "run" / "release").sort_values(ROW_ID, ignore_index=True)
    specs = {qi: {"hierarchy": hierarchy_of(qi)} if VARIANTS[method].hierarchies else {} for qi in QI5}
    here = anonymize(rows, config_of(specs, k=5, method={"name": method}))
    assert here.release[list(QI5)].reset_index(drop=True).equals(there[list(QI5)])
    assert here.gcp == pytest.approx(manifest["metrics"]["gcp"])
