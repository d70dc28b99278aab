"""Opening sources: formats, options, filters, snapshots, and what a user reads when it does not work."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kanon_spark.config.models import Config, SourceSpec
from kanon_spark.errors import EmptyTableError, MissingInputError, RequestError
from kanon_spark.io.sources import Source, open_source
from kanon_spark.releases.workdir import WorkDir

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUN = "20250101T000000_aaaaaaaa"


def opened(spark: "SparkSession", folder: Path, **source: Any) -> Source:
    return open_source(spark, SourceSpec.model_validate(source), base_dir=folder)


@pytest.mark.parametrize("file_format", ["parquet", "orc", "json", "csv"])
def test_folders_tell_their_format(spark: "SparkSession", tmp_path: Path, file_format: str) -> None:
    writer = spark.createDataFrame([(1, "a"), (2, "b")], "n int, part string").write
    options = {"header": "true"} if file_format == "csv" else {}
    writer.partitionBy("part").format(file_format).options(**options).save(str(tmp_path / "people"))
    found = opened(spark, tmp_path, path="people")
    assert sorted((row["n"], row["part"]) for row in found.table.collect()) == [(1, "a"), (2, "b")]
    assert found.description["format"] == file_format
    assert found.description["path"] == str(tmp_path / "people")


def test_csv_has_a_header_and_types_unless_told_otherwise(spark: "SparkSession", tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text('age,zip,note\n34,01234,"say ""hi"""\n')
    found = opened(spark, tmp_path, path="people.csv")
    assert [tuple(row) for row in found.table.collect()] == [(34, 1234, 'say "hi"')]
    assert found.description["assumed_options"] == {"header": "true", "inferSchema": "true", "escape": '"'}
    plain = opened(spark, tmp_path, path="people.csv", options={"InferSchema": False, "token": "hush"})
    assert plain.table.first()["zip"] == "01234"
    assert plain.description["options"] == {"InferSchema": "false", "token": "(hidden)"}
    assert plain.description["assumed_options"] == {"header": "true", "escape": '"'}


def test_tabs_json_lines_and_patterns(spark: "SparkSession", tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("x\ty\n1\t2\n")
    (tmp_path / "b.ndjson").write_text('{"x": 1}\n{"x": 2}\n')
    (tmp_path / "c1.csv").write_text("x\n1\n")
    (tmp_path / "c2.csv").write_text("x\n2\n")
    assert opened(spark, tmp_path, path="a.tsv").table.columns == ["x", "y"]
    assert opened(spark, tmp_path, path="b.ndjson").table.count() == 2
    assert opened(spark, tmp_path, path="c*.csv").table.count() == 2
    with pytest.raises(MissingInputError, match="nothing is found"):
        opened(spark, tmp_path, path="d*.csv")


def test_missing_paths_name_what_is_near(spark: "SparkSession", tmp_path: Path) -> None:
    (tmp_path / "patients.csv").write_text("x\n1\n")
    with pytest.raises(MissingInputError, match=r"did you mean patients\.csv\?") as caught:
        opened(spark, tmp_path, path="patient.csv")
    assert caught.value.exit_code == 2 and caught.value.where == "source.path"
    with pytest.raises(MissingInputError, match=r"there is patients\.csv"):
        opened(spark, tmp_path, path="zzz")
    with pytest.raises(MissingInputError, match="neither does its folder"):
        opened(spark, tmp_path, path="nowhere/patients.csv")


def test_unreadable_sources_are_one_clear_line(spark: "SparkSession", tmp_path: Path, capfd: Any) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "fake.parquet").write_text("this is not parquet, and holds Mrs Secret")
    (tmp_path / "blank.csv").write_text("")
    with pytest.raises(MissingInputError, match="no parquet files"):
        opened(spark, tmp_path, path="empty")
    with pytest.raises(RequestError, match="cannot read") as caught:
        opened(spark, tmp_path, path="fake.parquet")
    assert "Secret" not in str(caught.value)
    with pytest.raises(EmptyTableError):
        opened(spark, tmp_path, path="blank.csv")
    (tmp_path / "pretty.json").write_text('{\n  "name": "Mrs Secret"\n}\n')
    with pytest.raises(RequestError, match="none of its lines is a JSON object"):
        opened(spark, tmp_path, path="pretty.json")
    assert "Mrs" not in capfd.readouterr().err


def test_where_filters_and_is_only_noted(spark: "SparkSession", tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("age,name\n30,Ann\n40,Bob\n")
    found = opened(spark, tmp_path, path="p.csv", where="age > 35 AND name <> 'Ann'")
    assert [row["age"] for row in found.table.collect()] == [40]
    assert found.description["filtered"] is True and "Ann" not in str(found.description)


@pytest.mark.parametrize(
    "condition", ["name = = 'Secret'", "nme = 'Secret'", "age", "name = Secret", "age > 'Secret' +"]
)
def test_a_wrong_where_does_not_repeat_its_values(
    spark: "SparkSession", tmp_path: Path, condition: str, capfd: Any
) -> None:
    (tmp_path / "p.csv").write_text("age,name\n30,Ann\n")
    with pytest.raises(RequestError, match=r"source\.where") as caught:
        opened(spark, tmp_path, path="p.csv", where=condition)
    assert "Secret" not in str(caught.value) and caught.value.__cause__ is None
    assert "age, name" in caught.value.fix
    output = capfd.readouterr()
    assert "Secret" not in output.err + output.out  # PySpark would log the query


def test_catalog_tables(spark: "SparkSession", tmp_path: Path) -> None:
    spark.sql("CREATE DATABASE IF NOT EXISTS kanon_io")
    spark.range(3).write.mode("overwrite").saveAsTable("kanon_io.patients")
    try:
        found = opened(spark, tmp_path, table="kanon_io.patients", where="id > 0")
        assert found.table.count() == 2 and found.description["table"] == "kanon_io.patients"
        with pytest.raises(MissingInputError, match=r"did you mean patients\?"):
            opened(spark, tmp_path, table="kanon_io.patient")
        with pytest.raises(MissingInputError, match=r"named \./patients"):
            opened(spark, tmp_path, table="patients")
        with pytest.raises(MissingInputError, match="database"):
            opened(spark, tmp_path, table="no_such.patients")
        with pytest.raises(RequestError, match="not a table's name"):
            opened(spark, tmp_path, table="a b; c")
    finally:
        spark.sql("DROP DATABASE kanon_io CASCADE")


def test_a_snapshot_no_longer_depends_on_the_source(spark: "SparkSession", tmp_path: Path) -> None:
    spark.createDataFrame([(1, "a b"), (2, None)], "n int, `odd.name` string").write.parquet(
        str(tmp_path / "p.parquet")
    )
    config = Config.model_validate(
        {
            "source": {"path": "p.parquet", "snapshot": "copy"},
            "columns": {"quasi_identifiers": ["n"]},
            "execution": {"work_dir": "work"},
        }
    )
    assert config.source is not None
    with WorkDir.open(spark, config, tmp_path, RUN) as work:
        found = open_source(spark, config.source, base_dir=tmp_path, work=work)
        spark.range(0).write.mode("overwrite").parquet(str(tmp_path / "p.parquet"))
        assert sorted(tuple(row) for row in found.table.collect()) == [(1, "a b"), (2, None)]
        assert (tmp_path / "work" / f"_kanon_{RUN}_source").exists()
    assert list((tmp_path / "work").iterdir()) == []
