"""A small version of the bench: the same tables, floor, runs and judge, in the suite's session; results, no times."""

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from bench.adult import NUMERIC, QI8, ROW_ID, Adult, stand_in
from bench.floor import run_floor
from bench.jobs import ZIP, job
from bench.judge import judge
from bench.places import HIERARCHIES
from bench.quality import measure_one
from bench.tables import COPIED, count_rows, make_table, table_path

from kanon_spark.config.loader import load_config
from kanon_spark.engine.runner import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS, K = 20_000, 10


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bench")


@pytest.fixture(scope="module")
def table(spark: "SparkSession", folder: Path) -> Path:
    base = stand_in(300)
    path = table_path(folder, base, rows=ROWS, zips=50, seed=1)
    make_table(spark, base, path, rows=ROWS, zips=50, seed=1)
    return path


def test_the_table_is_a_function_of_rows_and_seed(spark: "SparkSession", folder: Path, table: Path) -> None:
    base = stand_in(300)
    rows = pd.read_parquet(table).sort_values("rid", ignore_index=True)
    assert count_rows(table) == ROWS
    assert rows["rid"].tolist() == list(range(ROWS))
    assert list(rows.columns) == ["rid", ZIP, *COPIED]
    assert rows["age"].between(17, 90).all()
    assert rows[ZIP].nunique() == 50
    assert rows[ZIP].str.fullmatch(r"\d{5}").all()
    often = rows[ZIP].value_counts()
    assert 1.4 < often.iloc[0] / often.iloc[1] < 2.1  # 1/rank: about twice
    assert set(rows["occupation"]) <= set(base["occupation"])
    first = folder / "first.parquet"
    make_table(spark, base, first, rows=1000, zips=50, seed=1)
    assert pd.read_parquet(first).sort_values("rid", ignore_index=True).equals(rows.head(1000))


def test_the_floor_keeps_every_row_and_stars_the_rare(spark: "SparkSession", folder: Path, table: Path) -> None:
    qis = [ZIP, "age", "sex"]
    found = run_floor(spark, table, folder / "floor", qis=qis, k=K)
    before = pd.read_parquet(table).set_index("rid").sort_index()
    after = pd.read_parquet(folder / "floor" / "floor").set_index("rid").sort_index()
    assert found.signatures == before.groupby(qis).ngroups
    assert found.broadcast
    often = (before.groupby(qis)["income"].transform("size") >= K).to_numpy()
    assert 0 < often.sum() < ROWS
    assert (after.loc[~often, qis] == "*").all(axis=None)
    assert after.loc[often, qis].equals(before.loc[often, qis].astype(str))
    kept = [name for name in before.columns if name not in qis]
    assert after[kept].equals(before[kept])


def test_the_shuffled_floor_gives_the_same_rows(
    spark: "SparkSession", folder: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    qis = [ZIP, "sex"]
    run_floor(spark, table, folder / "by_broadcast", qis=qis, k=K)
    monkeypatch.setattr("bench.floor.BROADCAST_SIGNATURES", 0)
    assert not run_floor(spark, table, folder / "by_shuffle", qis=qis, k=K).broadcast
    one, other = (
        pd.read_parquet(folder / name / "floor").sort_values("rid", ignore_index=True)
        for name in ("by_broadcast", "by_shuffle")
    )
    assert one.equals(other)


def test_the_measured_run_is_what_the_judge_says(spark: "SparkSession", folder: Path, table: Path) -> None:
    loaded = load_config(job(table, folder / "run", qis=QI8, k=K, effort="fast"))
    manifest = run(loaded, spark=spark).manifest
    original, release = pd.read_parquet(table), pd.read_parquet(folder / "run" / "release")
    judged = judge(original, release, qis=QI8, k=K, row_id="rid", hierarchies=HIERARCHIES, numeric=NUMERIC)
    assert judged.smallest >= K
    assert judged.classes == manifest["classes"]
    assert judged.gcp_hierarchy == pytest.approx(manifest["metrics"]["gcp"])
    assert manifest["metrics"]["gcp_bound"] <= judged.gcp_hierarchy + 1e-9
    assert release[ZIP].equals(original.set_index("rid").loc[release["rid"], ZIP].reset_index(drop=True))


def test_quality_judges_a_whole_run(spark: "SparkSession", tmp_path: Path) -> None:
    rows = stand_in(3000).assign(**{ROW_ID: range(3000)})
    invented = Adult(rows, "invented", False)
    figure = measure_one(spark, invented, tmp_path, qi_set="QI5", k=5, way="blocks", effort="fast")
    assert figure.blocks > 1
    assert figure.judged.smallest >= 5
    assert figure.bound <= figure.judged.gcp_hierarchy == pytest.approx(figure.own_gcp)
    assert figure.solve_cpu is None  # the workers have solved, and this process knows nothing of their CPU
    assert not (tmp_path / "run").exists()  # the release is judged and gone
