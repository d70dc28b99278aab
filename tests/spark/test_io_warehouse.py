"""Delta, Iceberg, PostgreSQL and pointers, publisher by publisher: staging, swapping, undoing, recovering, keeping."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from warehouse import Backend, backend

from kanon_spark.config.models import SinkSpec
from kanon_spark.errors import (
    GuaranteeError,
    InternalError,
    MissingInputError,
    PlatformError,
    TargetError,
    UnsupportedTypeError,
)
from kanon_spark.io.backends import COORDINATES
from kanon_spark.io.pointer_sink import uses_pointer
from kanon_spark.io.released import open_published
from kanon_spark.io.sinks import Publisher, publisher_for, standing_run_id, target_of
from kanon_spark.io.table_names import facts_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OLD, NEW, NEXT = "20250101T000000_aaaaaaaa", "20250102T000000_bbbbbbbb", "20250103T000000_cccccccc"
LAST = "20250104T000000_dddddddd"
TOLD = ("kanon.run_id", "kanon.k", "kanon.method")
KINDS = ["delta table", "iceberg", "postgres", "pointer"]


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, spark: "SparkSession", tmp_path: Path, server: Any) -> Backend:
    return backend(request.param, spark, tmp_path, server)


def publisher(spark: "SparkSession", folder: Path, sink: dict[str, Any], run_id: str) -> Publisher:
    spec = SinkSpec.model_validate(sink)
    return publisher_for(spark, spec, base_dir=folder, run_id=run_id, work_root=str(folder / "work"))


def table_of(spark: "SparkSession", text: str) -> "DataFrame":
    return spark.createDataFrame([(text, "x", 1), (text, "", 2), (text, None, 2)], "part string, v string, n int")


def staged(spark: "SparkSession", folder: Path, place: Backend, run_id: str, text: str) -> Publisher:
    made = publisher(spark, folder, place.sink, run_id)
    made.check()
    made.write(table_of(spark, text))
    rows = made.read_staged(table_of(spark, "").schema)
    assert (rows.columns, rows.count()) == (["part", "v", "n"], 3)
    return made


def seen(place: Backend) -> str:
    """Which whole release a reader sees."""
    rows = place.read()
    assert sorted((row[1] is None, row[1], row[2]) for row in rows) == [
        (False, "", 2),
        (False, "x", 1),
        (True, None, 2),
    ]
    (text,) = {row[0] for row in rows}
    return str(text)


def test_the_life_of_a_release(
    spark: "SparkSession", tmp_path: Path, place: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First release, undo, second one, a failure and two deaths on the way to the third, changed columns."""
    first = staged(spark, tmp_path, place, OLD, "old")
    assert not first.exists()
    first.swap({"k": 5, "method": "datafly", "note": 'it\'s \\ "quoted"'})
    first.undo()
    assert not first.exists()
    first.discard()
    first = staged(spark, tmp_path, place, OLD, "old")
    first.publish({"k": 5, "method": "datafly", "note": 'it\'s \\ "quoted"'})
    assert seen(place) == "old"
    facts = first.published()
    assert facts is not None
    assert (facts["run_id"], facts["k"], facts["note"]) == (OLD, 5, 'it\'s \\ "quoted"')
    spec = SinkSpec.model_validate(place.sink)
    assert standing_run_id(spark, spec, tmp_path) == OLD
    assert target_of(spark, spec, tmp_path) == first.target
    back = open_published(spark, spec, base_dir=tmp_path)
    assert sorted(map(repr, back.select("part", "v", "n").collect())) == sorted(
        map(repr, table_of(spark, "old").collect())
    )

    second = staged(spark, tmp_path, place, NEW, "new")
    assert seen(place) == "old", "staging changes nothing"
    monkeypatch.setenv("KANON_FAIL_AT", "publish:between")
    with pytest.raises(InternalError):
        second.swap({"k": 6})
    second.undo()
    assert seen(place) == "old"
    monkeypatch.setenv("KANON_FAIL_AT", "publish:committed")
    with pytest.raises(InternalError):
        second.swap({"k": 6})
    assert seen(place) == "new", "what is committed is whole"
    second.undo()
    assert seen(place) == "old"
    undone = second.published()
    assert undone is not None
    assert (undone["run_id"], undone["k"]) == (OLD, 5)
    # It dies with what it has staged; the next one clears that away.
    following = publisher(spark, tmp_path, place.sink, NEXT)
    assert following.has_leftovers()
    assert following.recover()
    assert not following.has_leftovers()
    assert seen(place) == "old"

    third = staged(spark, tmp_path, place, NEXT, "next")
    with pytest.raises(InternalError):
        third.swap({"k": 7})  # dies right after its commit
    monkeypatch.delenv("KANON_FAIL_AT")
    last = publisher(spark, tmp_path, place.sink, LAST)
    last.recover()
    assert not last.has_leftovers()
    assert seen(place) == "next"
    facts = last.published()
    assert facts is not None
    assert (facts["run_id"], facts["k"]) == (NEXT, 7)

    wider = table_of(spark, "wide").selectExpr("part", "v", "cast(n as bigint) n", "n * 1.5 as more")
    last.write(wider)
    stays = last.earlier_stays()
    last.publish({"k": 8})
    assert still_read(spark, tmp_path, place, stays) == (None if place.name == "postgres" else "next")
    assert sorted(row[3] for row in place.read()) == [1.5, 3, 3]
    assert sorted(map(repr, last.read_published(wider.schema).collect())) == sorted(map(repr, wider.collect()))
    assert not publisher(spark, tmp_path, place.sink, OLD).has_leftovers()


def still_read(spark: "SparkSession", folder: Path, place: Backend, stays: str | None) -> str | None:
    """What somebody reads who is told where the release before the last one stays."""
    if stays is None:
        return None
    number = re.search(r"(?:version|snapshot) (\d+)", stays)
    if number is not None:
        table = spark.sql(f"SELECT * FROM {place.sink['table']} VERSION AS OF {number[1]}")
    else:
        named = re.search(r"the folder (\S+),", stays)
        assert named is not None, stays
        table = spark.read.parquet(str(folder / "out" / "release" / named[1]))
    return seen(Backend(place.name, place.sink, lambda: [tuple(row) for row in table.collect()]))


def test_what_the_owner_has_set_stays(spark: "SparkSession", tmp_path: Path) -> None:
    """Comments and properties go over to the next release, and it says whose it is."""
    for kind, file_format in (("delta table", "delta"), ("iceberg", "iceberg"), ("parquet", "parquet")):
        if kind == "parquet":
            spark.sql("CREATE DATABASE IF NOT EXISTS house")
            place = Backend(kind, {"table": "house.kept"}, list)
        else:
            place = backend(kind, spark, tmp_path, pytest.fail)
        name = place.sink["table"]
        staged(spark, tmp_path, place, OLD, "old").publish({"k": 5, "method": "datafly"})
        spark.sql(f"COMMENT ON TABLE {name} IS 'it\\'s ours'")
        spark.sql(f"ALTER TABLE {name} ALTER COLUMN v COMMENT 'what it was'")
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('team' = 'research')")
        last = staged(spark, tmp_path, place, NEW, "new")
        if file_format == "iceberg":
            last.discard()
            last.write(table_of(spark, "new").selectExpr("*", "n + 1 AS more"))  # other columns: by replacing
        last.publish({"k": 7, "method": "mondrian"})
        found = facts_of(spark, name)
        assert found is not None
        assert (found.comment, found.column_comments, found.kind) == ("it's ours", {"v": "what it was"}, file_format)
        own = {key: value for key, value in found.properties.items() if key in {"team", *TOLD}}
        assert own == {"team": "research", "kanon.run_id": NEW, "kanon.k": "7", "kanon.method": "mondrian"}


def test_a_copy_that_differs_is_undone(spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Delta copies what was verified: should the copy be another table, the version before is restored."""
    place = backend("delta table", spark, tmp_path, pytest.fail)
    staged(spark, tmp_path, place, OLD, "old").publish({})
    second = staged(spark, tmp_path, place, NEW, "new")
    whole = type(second)._replace  # type: ignore[attr-defined]
    monkeypatch.setattr(type(second), "_replace", lambda self, rows, *more: whole(self, rows.limit(2), *more))
    with pytest.raises(GuaranteeError, match="not the one that was verified"):
        second.swap({})
    # A run would undo it now. Should it die before, or before it has compared, the next one does.
    publisher(spark, tmp_path, place.sink, NEXT).recover()
    assert seen(place) == "old"


def test_views_and_grants_of_postgres_stay(spark: "SparkSession", tmp_path: Path, server: Any) -> None:
    import psycopg

    place = backend("postgres", spark, tmp_path, server)
    name = place.sink["jdbc"]["table"]
    staged(spark, tmp_path, place, OLD, "old").publish({"k": 5})
    with psycopg.connect(server().conninfo) as connection:
        connection.execute(f"CREATE ROLE {name}_reader")
        connection.execute(f"GRANT SELECT ON {name} TO {name}_reader")
        connection.execute(f"ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO {name}_reader")
        connection.execute(f"CREATE VIEW {name}_view AS SELECT part FROM {name}")
        connection.execute(f"COMMENT ON TABLE {name} IS 'ours'")
    made = staged(spark, tmp_path, place, NEW, "new")

    def may_read(table: str) -> bool:
        with psycopg.connect(server().conninfo) as connection:
            asked = f"SELECT has_table_privilege('{name}_reader', '{table}', 'SELECT')"
            return bool(connection.execute(asked).fetchone()[0])

    assert may_read(name)
    assert not may_read(made.staged_path), "what is not verified is closed, whatever the schema's defaults say"
    made.publish({"k": 6})
    with psycopg.connect(server().conninfo) as connection:
        assert {row[0] for row in connection.execute(f"SELECT part FROM {name}_view")} == {"new"}
        assert connection.execute(f"SELECT obj_description('{name}'::regclass)").fetchone() == ("ours",)
        assert may_read(name)
        connection.execute(f"CREATE TABLE {name}_other (x int)")
        connection.execute(f"INSERT INTO {name}_other VALUES (1)")
    other = {"jdbc": {**place.sink["jdbc"], "table": f"{name}_other"}}
    with pytest.raises(TargetError, match="no release"):
        publisher(spark, tmp_path, other, NEXT).check()
    changed = publisher(spark, tmp_path, place.sink, NEXT)
    changed.write(table_of(spark, "changed").select("v", "n"))
    with pytest.raises(TargetError, match="a view needs them"):
        changed.swap({})
    assert seen(place) == "new"
    wrong = {"jdbc": {**place.sink["jdbc"], "password": "wrong_canary"}}
    with pytest.raises(MissingInputError) as caught:
        publisher(spark, tmp_path, wrong, NEXT).check()
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("kind", COORDINATES)
def test_a_missing_jar_is_named(
    spark: "SparkSession", tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kanon_spark.io.backends.has_class", lambda spark, name: False)
    sinks: dict[str, dict[str, Any]] = {
        "delta": {"path": "out", "format": "delta"},
        "iceberg": {"table": "ice.house.x", "format": "iceberg"},
        "postgresql": {"jdbc": {"url": "jdbc:postgresql://127.0.0.1/x", "table": "x"}},
    }
    with pytest.raises(PlatformError) as caught:
        publisher(spark, tmp_path, sinks[kind], NEW)
    assert COORDINATES[kind] in str(caught.value)
    assert caught.value.exit_code == 2


def test_object_stores_have_pointers() -> None:
    def way(**sink: Any) -> bool:
        return uses_pointer(SinkSpec.model_validate(sink))

    assert way(path="s3a://bucket/x") and way(path="abfss://a@b/x") and way(path="out", layout="pointer")
    assert not (way(path="hdfs://host/x") or way(path="out") or way(path="gs://b/x", layout="folder"))


def test_types_survive_in_postgres(spark: "SparkSession", tmp_path: Path, server: Any) -> None:
    place = backend("postgres", spark, tmp_path, server)
    values = (
        "true a, cast(7 AS smallint) b, cast(1.5 AS float) c, cast('NaN' AS double) d, cast(12.30 AS decimal(9,2)) e, "
        "DATE '1969-12-31' f, TIMESTAMP '1969-12-31 23:59:59.123456Z' g, TIMESTAMP_NTZ '2024-03-31 02:30:00' h, "
        "X'00ff' i, array('x', '', null, 'a,\"b\"') j, array(1L, null) k, 'ä\\\\n' `odd \"name`"
    )
    nulls = ", ".join(f"null AS {name}" for name in "abcdefghijk")
    table = spark.sql(f"SELECT {values} UNION ALL SELECT {nulls}, null")
    made = publisher(spark, tmp_path, place.sink, OLD)
    made.write(table)
    assert sorted(map(repr, made.read_staged(table.schema).collect())) == sorted(map(repr, table.collect()))
    made.discard()
    with pytest.raises(UnsupportedTypeError, match=r"m \(map"):
        made.write(spark.sql("SELECT map('a', 1) AS m"))
    with pytest.raises(TargetError, match="refused the rows"):
        made.write(spark.sql("SELECT 'a' || char(0) AS t"))
    made.discard()
