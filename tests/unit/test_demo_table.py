"""The demo's table: the same every time, skewed, correlated, and covered by its hierarchy."""

import hashlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from kanon_spark.demo import table as demo_table
from kanon_spark.demo.__main__ import main
from kanon_spark.demo.table import ROWS, make_admissions, occupation_names, write_admissions

COLUMNS = ["patient_id", "name", "age", "sex", "zip", "occupation", "admission_date", "diagnosis", "cost"]


@pytest.fixture(scope="module")
def admissions() -> pd.DataFrame:
    frame: pd.DataFrame = make_admissions().to_pandas()
    return frame


def test_shape_and_types() -> None:
    made = make_admissions(500)
    assert made.column_names == COLUMNS
    types = {name: str(made.schema.field(name).type) for name in ("age", "zip", "admission_date", "cost")}
    assert types == {"age": "int32", "zip": "string", "admission_date": "date32[day]", "cost": "decimal128(10, 2)"}


def test_the_table_is_the_one_that_figures_were_measured_on(admissions: pd.DataFrame) -> None:
    # Costs go through exp and log, whose last digits are the platform's; all other columns are exact.
    text = admissions.drop(columns="cost").to_csv(index=False)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "eb6467177305851b"


def test_another_seed_makes_another_table() -> None:
    assert not make_admissions(300, seed=1).equals(make_admissions(300, seed=2))
    assert make_admissions(300, seed=1).equals(make_admissions(300, seed=1))


def test_patients_come_back_as_themselves(admissions: pd.DataFrame) -> None:
    assert len(admissions) == ROWS
    patients = admissions.groupby("patient_id")
    assert 40_000 < len(patients) < 45_000
    for column in ("name", "sex", "zip", "occupation"):
        assert (patients[column].nunique(dropna=False) == 1).all(), column
    ordered = admissions.sort_values(["patient_id", "admission_date"])
    grown = ordered.groupby("patient_id")["age"].diff().dropna()
    assert grown.between(0, 2).all()


def test_it_is_skewed(admissions: pd.DataFrame) -> None:
    zips = admissions["zip"].value_counts(normalize=True)
    assert zips.iloc[0] > 8 * zips.median()
    assert zips.groupby(zips.index.str[:3]).sum().max() > 0.2  # a big city
    assert zips.index.str.fullmatch(r"\d{5}").all()
    assert zips.index.str.startswith("0").any()  # a zip is text: as a number it would lose its first digit


def test_it_is_correlated(admissions: pd.DataFrame) -> None:
    age = admissions.groupby("diagnosis")["age"].mean()
    assert age["tonsillitis"] < 30 < 60 < age["heart failure"]
    assert (admissions.loc[admissions["diagnosis"] == "birth", "sex"] == "female").all()
    assert admissions.loc[admissions["occupation"] == "retired", "age"].min() >= 60
    cost = admissions["cost"].astype(float).groupby(admissions["diagnosis"]).median()
    assert cost["sepsis"] > 4 * cost["concussion"]


def test_some_occupations_are_unknown_and_no_other_column_has_nulls(admissions: pd.DataFrame) -> None:
    missing = admissions.isna().mean()
    assert 0.02 < missing["occupation"] < 0.06
    assert not missing.drop("occupation").any()


def test_the_hierarchy_covers_every_occupation(repo: Path, admissions: pd.DataFrame) -> None:
    lines = (repo / "hierarchies" / "demo" / "occupation.csv").read_text().splitlines()
    leaves = [line.split(";")[0] for line in lines]
    assert sorted(leaves) == sorted(occupation_names())
    assert set(admissions["occupation"].dropna()) == set(leaves)
    assert all(line.count(";") == 2 and line.endswith(";*") for line in lines)


def test_dates_span_two_years(admissions: pd.DataFrame) -> None:
    dates = pd.to_datetime(admissions["admission_date"])
    assert (str(dates.min().date()), str(dates.max().date())) == ("2023-01-01", "2024-12-31")
    weekdays = dates.dt.dayofweek.value_counts()
    assert weekdays[[5, 6]].max() < weekdays[[0, 1, 2, 3, 4]].min()


def test_ages_fit_ids(admissions: pd.DataFrame) -> None:
    assert admissions["age"].between(0, 105).all()
    assert admissions["patient_id"].str.fullmatch(r"P\d{7}").all()
    first = admissions.groupby("patient_id")["admission_date"].min()
    days = pd.to_datetime(first).astype("int64")
    assert abs(np.corrcoef(np.arange(len(days)), days)[0, 1]) < 0.02  # an id does not tell when its patient came


def test_the_file_is_written_once(tmp_path: Path) -> None:
    path = tmp_path / "new" / "admissions.parquet"
    assert write_admissions(path, rows=50)
    before = path.stat().st_mtime_ns
    assert not write_admissions(path, rows=50)
    assert path.stat().st_mtime_ns == before
    assert write_admissions(path, rows=60)
    assert [file.name for file in path.parent.iterdir()] == ["admissions.parquet"]


def test_a_broken_file_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "admissions.parquet"
    path.write_bytes(b"half a file")
    assert write_admissions(path, rows=50)
    assert pd.read_parquet(path).shape == (50, 9)


def test_a_table_of_an_older_form_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "admissions.parquet"
    write_admissions(path, rows=50)
    monkeypatch.setattr(demo_table, "_FORM", "another")
    assert write_admissions(path, rows=50)


def test_the_command_writes_any_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.parquet"
    assert main(["--rows", "70", "--out", str(path)]) == 0
    assert "70 rows, written" in capsys.readouterr().out
    with pytest.raises(SystemExit) as end:
        main(["--rows", "0"])
    assert end.value.code == 2


def test_no_table_without_rows() -> None:
    with pytest.raises(ValueError, match="at least one row"):
        make_admissions(0)
