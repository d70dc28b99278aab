"""`check_table`: everything that would stop a run or deserves a thought, found on real tables."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from kanon_spark.config.loader import load_config
from kanon_spark.config.models import Config
from kanon_spark.config.preflight import Finding, check_schema, check_table
from kanon_spark.signatures import domains


def check(
    spark: SparkSession, source: DataFrame, folder: Path, columns: dict[str, Any], *, show: bool = False, **other: Any
) -> list[Finding]:
    loaded = replace(load_config({"columns": columns, **other}), base_dir=folder)
    return check_table(spark, loaded, source, show_values=show)


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> None:
    """Schemas are parsed by Spark, also where a test reads no table."""


@pytest.fixture(scope="module")
def people(spark: SparkSession) -> DataFrame:
    rows = [(f"n{n % 30}", n % 5, ["Bern", "Oslo", "Atlantis"][n % 3], "same", n, n % 2 == 0) for n in range(40)]
    schema = "name string, `a.b` int, town string, one string, note int, flag boolean"
    return spark.createDataFrame(rows, schema).repartition(2).cache()


def test_a_sound_job_has_no_findings(spark: SparkSession, people: DataFrame, tmp_path: Path) -> None:
    columns = {"quasi_identifiers": ["a.b", "town"], "sensitive": ["flag"], "other": "drop"}
    assert check(spark, people, tmp_path, columns) == []


def test_warnings_in_one_pass(spark: SparkSession, people: DataFrame, tmp_path: Path) -> None:
    (tmp_path / "town.csv").write_text("Bern;*\nOslo;*\n")
    columns = {
        "identifiers": ["name"],
        "quasi_identifiers": {
            "one": {},
            "town": {"hierarchy": {"csv": {"path": "town.csv", "unknown": "root"}}},
        },
        "sensitive": ["note"],
        "other": "drop",
    }
    found = check(spark, people, tmp_path, columns)
    assert {finding.level for finding in found} == {"warning"}
    by_path = {finding.path: finding.message for finding in found}
    assert "repeats" in by_path["privacy.unit"]
    assert "one value" in by_path["columns.quasi_identifiers.one"]
    assert "'note'" in by_path["columns"]
    assert "1 distinct value in 13 rows" in by_path["columns.quasi_identifiers.town.hierarchy"]


def test_identifiers_that_do_not_repeat_are_fine_and_one_that_repeats_once_is_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = {"identifiers": ["id"], "quasi_identifiers": ["x"]}
    sound = spark.range(200).selectExpr("cast(id AS string) AS id", "id % 3 AS x")
    assert check(spark, sound, tmp_path, columns) == []
    once = sound.union(sound.limit(1))
    (finding,) = check(spark, once, tmp_path, columns)
    assert "set privacy.unit: id" in finding.fix


def test_hierarchies_that_miss_values_show_them_only_on_request(
    spark: SparkSession, people: DataFrame, tmp_path: Path
) -> None:
    (tmp_path / "town.csv").write_text("Bern;*\nOslo;*\n")
    (tmp_path / "broken.csv").write_text("0;x;*\n1;y\n")
    columns = {
        "quasi_identifiers": {"town": {"hierarchy": "town.csv"}, "a.b": {"hierarchy": "broken.csv"}},
        "other": "drop",
    }
    found = check(spark, people, tmp_path, columns)
    assert all(finding.level == "error" for finding in found)
    broken, missing = sorted(found, key=lambda finding: finding.exit_code or 0)
    assert (broken.exit_code, missing.exit_code) == (2, 3)
    assert missing.message == "the file misses 1 distinct value in 13 rows"
    assert missing.path == "columns.quasi_identifiers.town.hierarchy"
    shown = check(spark, people, tmp_path, columns, show=True)
    assert any("such as 'Atlantis'" in finding.message for finding in shown)
    assert not any("Atlantis" in finding.message for finding in found)


def test_persons(spark: SparkSession, people: DataFrame, tmp_path: Path) -> None:
    columns = {"identifiers": ["name"], "quasi_identifiers": ["town"], "other": "drop"}
    (few,) = check(spark, people, tmp_path, columns, privacy={"k": 31, "unit": "name"})
    assert (few.level, few.path, few.exit_code) == ("error", "privacy.k", 3)
    assert "30 persons" in few.message
    rows = check(spark, people, tmp_path, {**columns, "identifiers": []}, privacy={"k": 41})
    assert "40 rows" in rows[0].message
    nobody = people.selectExpr("nullif(name, 'n0') AS name", "town")
    (warning,) = check(spark, nobody, tmp_path, columns, privacy={"k": 2, "unit": "name"})
    assert (warning.level, warning.path) == ("warning", "privacy.unit")
    assert warning.message.startswith("2 rows")


def test_an_empty_table(spark: SparkSession, people: DataFrame, tmp_path: Path) -> None:
    (finding,) = check(spark, people.limit(0), tmp_path, {"quasi_identifiers": ["town"], "other": "drop"})
    assert (finding.level, finding.path, finding.exit_code) == ("error", "source", 3)


def test_domains_that_are_too_wide(
    spark: SparkSession, people: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domains, "DOMAIN_LIMIT", 20)
    found = check(spark, people, tmp_path, {"quasi_identifiers": ["note"], "other": "drop"})
    assert [(finding.level, finding.exit_code) for finding in found] == [("error", 3)]


def schema_findings(schema: str, **config: Any) -> list[Finding]:
    struct = T.StructType.fromDDL(schema)
    return check_schema(struct, Config.model_validate(config))


def test_columns_and_types_are_judged_without_a_job() -> None:
    columns = {
        "quasi_identifiers": {
            "agee": {},
            "tags": {},
            "city": {"hierarchy": {"interval": {"widths": [5]}}},
        }
    }
    found = schema_findings(
        "age int, tags array<string>, city string, extra int", columns=columns, privacy={"unit": "person"}
    )
    assert [(finding.path, finding.exit_code) for finding in found] == [
        ("columns.quasi_identifiers.agee", 2),
        ("privacy.unit", 2),
        ("columns.other", 3),
        ("columns.quasi_identifiers.tags", 3),
        ("columns.quasi_identifiers.city", 2),
    ]
    assert "did you mean 'age'" in found[0].message
    assert "'age', 'extra'" in found[2].message
    assert "array<string>" in found[3].message


@pytest.mark.parametrize("schema", ["a int, a int", "a int, A int"])
def test_two_columns_of_one_name(schema: str) -> None:
    (finding,) = schema_findings(schema, columns={"quasi_identifiers": ["a"], "other": "drop"})
    assert "several columns are called 'a'" in finding.message


def test_units_that_cannot_be_compared() -> None:
    columns = {"quasi_identifiers": ["a"], "identifiers": ["u"]}
    (finding,) = schema_findings("a int, u map<string, int>", columns=columns, privacy={"unit": "u"})
    assert (finding.path, finding.exit_code) == ("privacy.unit", 3)


def test_more_quasi_identifiers_than_a_mask_holds() -> None:
    names = [f"q{n}" for n in range(64)]
    (finding,) = schema_findings(", ".join(f"{name} int" for name in names), columns={"quasi_identifiers": names})
    assert "64 quasi-identifiers" in finding.message
