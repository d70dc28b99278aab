"""Publishing to paths and catalog tables with a real session: staging, swapping, recovery, refusals."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kanon_spark.config.models import SinkSpec, SourceSpec
from kanon_spark.errors import InternalError, MissingInputError, TargetError, UnsupportedTypeError
from kanon_spark.io.released import open_release
from kanon_spark.io.sinks import Publisher, published_run_id, publisher_for, target_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OLD, NEW, NEXT = "20250101T000000_aaaaaaaa", "20250102T000000_bbbbbbbb", "20250103T000000_cccccccc"
SINKS: dict[str, dict[str, Any]] = {
    "parquet": {"path": "out/release"},
    "csv": {"path": "out/release", "format": "csv"},
    "table": {"table": "kanon_sinks.release", "partition_by": ["part"]},
}


@pytest.fixture
def database(spark: "SparkSession") -> Iterator[None]:
    spark.sql("CREATE DATABASE IF NOT EXISTS kanon_sinks")
    location = spark.catalog.getDatabase("kanon_sinks").locationUri
    yield
    spark.sql("DROP DATABASE kanon_sinks CASCADE")
    shutil.rmtree(location.removeprefix("file:"), ignore_errors=True)


@pytest.fixture(params=SINKS)
def sink(request: pytest.FixtureRequest, database: None) -> dict[str, Any]:
    return SINKS[request.param]


def publisher(spark: "SparkSession", folder: Path, sink: dict[str, Any], run_id: str) -> Publisher:
    spec = SinkSpec.model_validate(sink)
    return publisher_for(spark, spec, base_dir=folder, run_id=run_id, work_root=str(folder / "work"))


def table_of(spark: "SparkSession", text: str) -> "DataFrame":
    return spark.createDataFrame([(text, "x", 1), (text, "", 2), (text, None, 2)], "part string, v string, n int")


def release(spark: "SparkSession", folder: Path, sink: dict[str, Any], run_id: str, text: str) -> Publisher:
    made = publisher(spark, folder, sink, run_id)
    made.check()
    made.write(table_of(spark, text))
    return made


def published(made: Publisher, spark: "SparkSession") -> str:
    schema = table_of(spark, "").schema
    rows = made.read_published(schema).collect()
    assert sorted((row["v"] is None, row["v"], row["n"]) for row in rows) == [
        (False, "", 2),
        (False, "x", 1),
        (True, None, 2),
    ]
    (text,) = {row["part"] for row in rows}
    return str(text)


def test_stage_publish_and_replace(spark: "SparkSession", tmp_path: Path, sink: dict[str, Any]) -> None:
    first = release(spark, tmp_path, sink, OLD, "old")
    assert not first.exists()
    staged = first.read_staged(table_of(spark, "").schema)
    assert staged.columns == ["part", "v", "n"] and staged.count() == 3
    first.publish({"k": 5, "rows": 3, "note": 'it\'s \\ "quoted"'})
    assert published(first, spark) == "old"
    facts = first.published()
    assert facts is not None and (facts["run_id"], facts["k"], facts["note"]) == (OLD, 5, 'it\'s \\ "quoted"')
    second = release(spark, tmp_path, sink, NEW, "new")
    assert published(second, spark) == "old"  # staging changes nothing
    second.publish({})
    assert published(second, spark) == "new"
    assert not publisher(spark, tmp_path, sink, NEXT).has_leftovers()
    assert published_run_id(spark, second.target) == NEW
    assert target_of(spark, SinkSpec.model_validate(sink), tmp_path) == second.target


def test_failures_leave_the_old_release(
    spark: "SparkSession", tmp_path: Path, sink: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    release(spark, tmp_path, sink, OLD, "old").publish({})
    second = release(spark, tmp_path, sink, NEW, "new")
    monkeypatch.setenv("KANON_FAIL_AT", "publish:between")
    with pytest.raises(InternalError):
        second.publish({})
    assert published(second, spark) == "old"
    second.discard()
    monkeypatch.delenv("KANON_FAIL_AT")
    assert not publisher(spark, tmp_path, sink, NEXT).has_leftovers()


@pytest.mark.parametrize(("point", "expected"), [("publish:between", "old"), ("publish:after", "new")])
def test_an_interrupted_swap_is_settled(
    spark: "SparkSession",
    tmp_path: Path,
    sink: dict[str, Any],
    point: str,
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release(spark, tmp_path, sink, OLD, "old").publish({})
    second = release(spark, tmp_path, sink, NEW, "new")

    class Killed(BaseException):
        """Stands for a kill: from here on the publisher does nothing any more."""

    def stop(name: str) -> None:
        if name == point:
            for part in ("exists", "_rename", "_drop"):
                monkeypatch.setattr(second, part, lambda *_: True, raising=False)
            if hasattr(second, "_store"):
                monkeypatch.setattr(second._store, "rename", lambda *_: None)
            raise Killed

    module = type(second).__module__
    monkeypatch.setattr(f"{module}.failpoint", stop)
    with pytest.raises(Killed):
        second.publish({})
    following = publisher(spark, tmp_path, sink, NEXT)
    assert following.has_leftovers()
    assert following.exists() == (point == "publish:after")
    removed = following.recover()
    assert len(removed) == 1
    assert published(following, spark) == expected
    assert not following.has_leftovers()
    monkeypatch.undo()
    third = release(spark, tmp_path, sink, NEXT, "next")
    third.publish({})
    assert published(third, spark) == "next"


def test_undo_after_the_swap(spark: "SparkSession", tmp_path: Path, sink: dict[str, Any]) -> None:
    release(spark, tmp_path, sink, OLD, "old").publish({})
    second = release(spark, tmp_path, sink, NEW, "new")
    second.swap({})
    assert published(second, spark) == "new"
    second.undo()
    assert published(second, spark) == "old"
    second.discard()
    assert not publisher(spark, tmp_path, sink, NEXT).has_leftovers()


def test_types_are_refused_when_they_cannot_be_written(spark: "SparkSession", tmp_path: Path) -> None:
    made = publisher(spark, tmp_path, SINKS["csv"], NEW)
    with pytest.raises(UnsupportedTypeError, match="tags"):
        made.write(spark.sql("SELECT 1 AS n, array(1) AS tags"))
    assert not (tmp_path / "out").exists()


def test_the_release_tells_how_to_read_it(spark: "SparkSession", tmp_path: Path) -> None:
    from pyspark.sql.types import StructType

    release(spark, tmp_path, SINKS["csv"], NEW, "new").publish({"k": 5})
    facts = json.loads((tmp_path / "out" / "release" / "_kanon.json").read_text())
    schema = StructType.fromJson(facts["schema"])
    back = (
        spark.read.format(facts["format"])
        .options(**facts["read_options"])
        .schema(schema)
        .load(str(tmp_path / "out/release"))
    )
    assert sorted(map(repr, back.collect())) == sorted(map(repr, table_of(spark, "new").collect()))


def test_a_release_is_opened_by_path_or_name(spark: "SparkSession", tmp_path: Path, sink: dict[str, Any]) -> None:
    release(spark, tmp_path, sink, NEW, "007").publish({"k": 5})
    place = sink.get("path") or sink["table"]
    back = open_release(spark, place, base_dir=tmp_path)
    # "007" stays a text: the types come from the release, they are not guessed
    assert sorted(map(repr, back.select("part", "v", "n").collect())) == sorted(
        map(repr, table_of(spark, "007").collect())
    )


def test_other_tables_are_opened_like_sources(spark: "SparkSession", tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("a,b\n1,x\n")
    assert open_release(spark, "other.csv", base_dir=tmp_path).columns == ["a", "b"]
    with pytest.raises(MissingInputError, match=r"did you mean other\.csv"):
        open_release(spark, "othr.csv", base_dir=tmp_path)
    with pytest.raises(MissingInputError, match="no table"):
        open_release(spark, "no_such_table", base_dir=tmp_path)


@pytest.mark.usefixtures("database")
def test_tables_that_are_not_replaced(spark: "SparkSession", tmp_path: Path) -> None:
    def check(table: str, source: str | None = None) -> None:
        spec = SourceSpec.model_validate({"table": source}) if source is not None else None
        publisher(spark, tmp_path, {"table": table}, NEW).check(spec)

    check("kanon_sinks.fine")
    check("spark_catalog.kanon_sinks.fine", "kanon_sinks.other")
    with pytest.raises(TargetError, match="no database"):
        check("no_such_database.x")
    with pytest.raises(TargetError, match="must not replace its source"):
        check("kanon_sinks.fine", "KANON_SINKS.Fine")
    with pytest.raises(TargetError, match="not the name of a table"):
        check("kanon_sinks.no-good")
    with pytest.raises(TargetError, match="not the name of a table"):
        check("other.kanon_sinks.x")
    spark.sql("CREATE VIEW kanon_sinks.seen AS SELECT 1 AS x")
    with pytest.raises(TargetError, match="not a managed table"):
        check("kanon_sinks.seen")
    spark.range(1).write.option("path", str(tmp_path / "outside")).saveAsTable("kanon_sinks.external")
    with pytest.raises(TargetError, match="not a managed table"):
        check("kanon_sinks.external")
    location = spark.catalog.getDatabase("kanon_sinks").locationUri.removeprefix("file:")
    (Path(location) / "forgotten").mkdir(parents=True)
    (Path(location) / "forgotten" / "part.parquet").write_text("")
    with pytest.raises(TargetError, match="files lie where it would be stored"):
        check("kanon_sinks.forgotten")


@pytest.mark.usefixtures("database")
def test_folders_of_tables_that_a_catalog_in_memory_forgot_are_removed(spark: "SparkSession", tmp_path: Path) -> None:
    location = Path(spark.catalog.getDatabase("kanon_sinks").locationUri.removeprefix("file:"))
    lost = location / f"release__kanon_{OLD}_staged".lower()
    lost.mkdir(parents=True)
    made = publisher(spark, tmp_path, SINKS["table"], NEW)
    assert made.has_leftovers()
    assert made.recover() == [lost.name]
    assert not lost.exists()


@pytest.mark.usefixtures("database")
def test_locks_of_tables_lie_in_the_work_directory(spark: "SparkSession", tmp_path: Path) -> None:
    one = publisher(spark, tmp_path, {"table": "kanon_sinks.a"}, NEW)
    same = publisher(spark, tmp_path, {"table": "`Kanon_Sinks`.`A`"}, NEXT)
    other = publisher(spark, tmp_path, {"table": "kanon_sinks.b"}, NEW)
    assert one.lock_path == same.lock_path != other.lock_path
    assert Path(one.lock_path).parent == tmp_path / "work"
