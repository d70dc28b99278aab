"""The worked example of the published values: exact rows in, exact rows out."""

import json
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from kanon_spark.config.loader import load_config
from kanon_spark.engine.runner import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent


BLOCKS = {"local_limit": 0, "block_size": 2}


@pytest.mark.parametrize(
    ("forms", "execution"),
    [(False, {}), (False, BLOCKS), (True, {})],
    ids=["one process", "blocks", "other forms"],
)
def test_published_values(spark: "SparkSession", tmp_path: Path, forms: bool, execution: dict[str, Any]) -> None:
    example = yaml.safe_load((HERE / "published_values.yaml").read_text(encoding="utf-8"))
    if forms:
        other = yaml.safe_load((HERE / "published_forms.yaml").read_text(encoding="utf-8"))
        example["config"]["output"] = other["output"]
        example |= {"columns": other["columns"], "released": other["released"]}
        example["losses"] |= other["losses"]
    (tmp_path / "jobs.csv").write_bytes((HERE / "jobs.csv").read_bytes())
    config = tmp_path / "job.yaml"
    config.write_text(json.dumps({**example["config"], "execution": execution}), encoding="utf-8")
    source = spark.createDataFrame([tuple(row) for row in example["source"]], example["schema"])

    release = run(load_config(config), spark=spark, table=source)

    assert release.table.columns == example["columns"]
    found = sorted((list(row) for row in release.table.collect()), key=lambda row: row[-1])
    assert found == example["released"]
    assert release.manifest["classes"] == 4
    assert release.manifest["privacy"]["k"] == {"asked": 3, "achieved": 3}
    expected = {name: _mean(losses) for name, losses in example["losses"].items()}
    per_qi = release.metrics["per_qi"]
    assert {name: per_qi[name]["ncp"] for name in per_qi} == pytest.approx(expected)
    assert release.metrics["gcp"] == pytest.approx(sum(expected.values()) / len(expected))
    assert release.metrics["gcp_bound"] <= release.metrics["gcp"]
    assert release.metrics["dm"] == 4 * 3**2
    assert release.metrics["cavg"] == pytest.approx(12 / 4 / 3)


def _mean(losses: list[Any]) -> float:
    """All classes are equally large."""
    return float(sum(Fraction(str(loss).replace(" ", "")) for loss in losses) / len(losses))
