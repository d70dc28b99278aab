"""Identifiers that are published as keyed pseudonyms: right, refused where they repeat, and their key is nowhere."""

import hashlib
import hmac
import json
import logging
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from run_world import KEPT, World, multiset, published_by_row, smallest_class
from test_run_confidential import plans  # noqa: F401 (a fixture)

from kanon_spark.config.checking import check_job, exit_code_of
from kanon_spark.config.loader import load_config
from kanon_spark.engine import runner
from kanon_spark.engine.verification import verify_with_config
from kanon_spark.errors import DataError, GuaranteeError, RepeatedIdError, SourceChangedError
from kanon_spark.recoding import pseudonyms

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kanon_spark.engine.release import Release

KEY = "a-canary-key-of-many-bytes"
QIS = {"age": {"hierarchy": {"interval": {"widths": [10, 20]}}, "max_level": 1}}
# Twelve people in their twenties and three loners, who find no class below level 2 and are suppressed.
AGES = [*range(20, 29), 20, 21, 22, 41, 61, 81]
FORM = re.compile(r"[0-9a-f]{32}")


@pytest.fixture
def world(spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("KANON_KEY", KEY)
    return World(spark, tmp_path)


def ssn(index: int) -> str | None:
    """Two people have no number."""
    return None if index in (3, 12) else f"078-05-{index:04d}"


def people(spark: "SparkSession", ids: Callable[[int], Any] = ssn, kind: str = "string") -> "DataFrame":
    rows = [(age, ids(index), f"n{index}", f"Name {index}") for index, age in enumerate(AGES)]
    return spark.createDataFrame(rows, f"age int, ssn {kind}, note string, name string")


def job(world: World, *, stable: bool = False, columns: dict[str, Any] | None = None, **options: Any) -> Any:
    pseudonym = {"key": "${KANON_KEY}", **({"stable": True} if stable else {})}
    identifiers = {"ssn": {"pseudonym": pseudonym}, "name": {}}
    usual = {"privacy": {"max_suppression": 0.25}}
    return world.job(QIS, columns={"identifiers": identifiers, **(columns or {})}, **{**usual, **options})


def expected(value: str, salt: str, column: str = "ssn") -> str:
    run_key = hmac.new(KEY.encode(), f"kanon_spark pseudonym 1\0{column}\0{salt}".encode(), hashlib.sha256).digest()
    return hmac.new(run_key, value.encode(), hashlib.sha256).hexdigest()[:32]


def check_of(release: "Release") -> Any:
    return next(check for check in release.manifest["checks"] if check["name"] == "pseudonyms")


@pytest.mark.parametrize("order", ["source", "shuffled"])
@pytest.mark.parametrize("rows", ["drop", "star"])
def test_each_row_has_the_pseudonym_of_its_id(spark: "SparkSession", world: World, order: str, rows: str) -> None:
    world.save(people(spark))
    sink = {"path": "out/release", "order": order}
    release = world.run(job(world, sink=sink, output={"suppressed_rows": rows}))
    assert release.table.columns == ["age", "ssn", "note"]
    assert release.table.schema["ssn"].dataType.simpleString() == "string"
    found = published_by_row(release.table, "note")
    run_id = release.manifest["run_id"]
    for index in range(len(AGES) if rows == "star" else 12):
        raw = ssn(index)
        assert found[f"n{index}"]["ssn"] == (None if raw is None else expected(raw, run_id)), index
    assert len(found) == (15 if rows == "star" else 12)
    assert release.manifest["rows"]["suppressed"] == 3
    assert smallest_class(release.table, ["age"]) >= 3
    assert check_of(release)["passed"]
    count = 13 if rows == "star" else 11
    assert f"ssn: {count} pseudonyms, no two alike; each is the keyed hash" in check_of(release)["detail"]
    assert release.manifest["columns"]["pseudonyms"] == {"ssn": {"stable": False}}
    assert release.manifest["columns"]["dropped"] == ["name"]
    assert release.manifest["warnings"] == []
    assert release.verify().passed
    assert world.left_in_work() == KEPT
    samples = json.dumps(release.manifest["samples"])
    assert "078-05" not in samples
    assert "ssn" not in samples


def test_stable_pseudonyms_are_the_same_again_and_warned_of(spark: "SparkSession", world: World) -> None:
    world.save(people(spark))
    first = world.run(job(world, stable=True))
    again = world.run(job(world, stable=True, name="again", sink={"path": "out/again"}))
    assert multiset(first.table) == multiset(again.table)
    assert first.manifest["content_hash"] == again.manifest["content_hash"]
    assert first.table.where("note = 'n0'").collect()[0]["ssn"] == expected(str(ssn(0)), "")
    assert any("'ssn' is stable" in text for text in first.manifest["warnings"])
    assert "is stable: releases with the same key can be linked" in (world.manifest.parent / "report.html").read_text()
    findings = check_job(job(world, stable=True), spark=spark)
    stable = [finding for finding in findings if finding.path == "columns.identifiers.ssn.pseudonym.stable"]
    assert [finding.level for finding in stable] == ["warning"]
    assert exit_code_of(findings) == 0


def test_other_pseudonyms_differ_from_run_to_run(spark: "SparkSession", world: World) -> None:
    world.save(people(spark))
    tables = [world.run(job(world, name=name, sink={"path": f"out/{name}"})).table for name in ("one", "two")]
    one, two = ({row["ssn"] for row in table.collect()} - {None} for table in tables)
    assert len(one) == len(two) == 11
    assert not one & two
    assert multiset(tables[0].drop("ssn")) == multiset(tables[1].drop("ssn"))


@pytest.mark.parametrize("kind", ["int", "bigint", "decimal(12,0)", "date", "binary", "string"])
def test_types_of_ids(spark: "SparkSession", world: World, kind: str) -> None:
    value = {"date": "date_add(date'2020-01-01', cast(ssn AS int))"}.get(kind, f"cast(ssn AS {kind})")
    source = people(spark, str).selectExpr("age", f"{value} AS ssn", "note", "name")
    release = world.run(job(world, stable=True, sink=None, report=None), source)
    row = release.table.where("note = 'n5'").collect()[0]
    assert row["ssn"] == expected("2020-01-06" if kind == "date" else "5", "")


@pytest.mark.parametrize("kind", ["double", "timestamp", "array<string>", "boolean"])
def test_types_that_cannot_be_ids(spark: "SparkSession", world: World, kind: str) -> None:
    value = {"array<string>": "array(ssn)", "boolean": "ssn is null"}.get(kind, f"try_cast(ssn AS {kind})")
    source = people(spark).selectExpr("age", f"{value} AS ssn", "note", "name")
    with pytest.raises(DataError, match="cannot become a pseudonym") as refused:
        world.run(job(world, sink=None, report=None), source)
    assert refused.value.exit_code == 3


def test_ids_that_repeat_are_refused(spark: "SparkSession", world: World) -> None:
    world.save(people(spark))
    world.run(job(world))
    before = world.released()
    # One of the two is a loner, who would be suppressed: that does not help, or luck would decide.
    world.save(people(spark, lambda index: "078-05-0001" if index == 14 else ssn(index)))
    with pytest.raises(RepeatedIdError, match="1 ids of 'ssn' stand in several rows") as refused:
        world.run(job(world))
    assert refused.value.exit_code == 3
    assert refused.value.where == "columns.identifiers.ssn.pseudonym"
    assert "without a pseudonym" in refused.value.fix
    assert "078-05" not in str(refused.value)
    assert world.released() == before
    assert world.left_beside() == []
    assert world.left_in_work() == KEPT
    failed = json.loads((world.manifest.parent / "manifest.failed.json").read_text())
    assert failed["error"]["code"] == "K307"

    findings = check_job(job(world), spark=spark)
    wrong = [finding for finding in findings if finding.level == "error"]
    assert [finding.path for finding in wrong] == ["columns.identifiers.ssn.pseudonym"]
    assert exit_code_of(findings) == 3


def test_the_unit_may_be_a_pseudonym_where_each_person_has_one_row(spark: "SparkSession", world: World) -> None:
    world.save(people(spark))
    privacy = {"unit": "ssn", "max_suppression": 0.25}
    release = world.run(job(world, privacy=privacy))
    assert release.manifest["persons"] == 15
    assert release.manifest["privacy"]["unit"] == "ssn"
    found = {row["note"]: row["ssn"] for row in release.table.collect()}
    assert found["n0"] == expected(str(ssn(0)), release.manifest["run_id"])
    assert found["n3"] is None
    world.save(people(spark, lambda index: f"person {index // 2}"))
    with pytest.raises(RepeatedIdError):
        world.run(job(world, privacy=privacy))


def test_another_unit_and_two_pseudonyms(spark: "SparkSession", world: World) -> None:
    """Visits have pseudonyms, patients come twice and are not published; the same value differs by column."""
    source = people(spark).selectExpr("age", "ssn", "ssn AS visit", "note", "name", "pmod(hash(note), 9) AS patient")
    identifiers = {name: {"pseudonym": {"key": "${KANON_KEY}"}} for name in ("visit", "ssn")}
    release = world.run(
        world.job(QIS, k=2, sink=None, columns={"identifiers": identifiers, "other": "drop"},
                  privacy={"unit": "patient", "max_suppression": 0.5}),
        source,
    )  # fmt: skip
    assert release.table.columns == ["age", "ssn", "visit"]
    rows = release.table.where("ssn is not null").collect()
    assert rows
    assert all(row["ssn"] != row["visit"] for row in rows)
    assert check_of(release)["passed"]


def test_the_key_is_nowhere(
    spark: "SparkSession",
    world: World,
    plans: list[str],  # noqa: F811
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world.save(people(spark))
    seen: list[tuple[str, bytes]] = []

    def look(event: Any) -> None:
        seen.append(("event", repr(event).encode()))
        seen.extend((str(path), path.read_bytes()) for path in world.folder.rglob("*") if path.is_file())

    plans.clear()
    with caplog.at_level(logging.DEBUG):
        release = runner.run(job(world), spark=spark, listeners=[look])
    seen += [("plan", text.encode()) for text in plans]
    seen += [("log", record.getMessage().encode()) for record in caplog.records]
    run_id = release.manifest["run_id"]
    derived = hmac.new(KEY.encode(), f"kanon_spark pseudonym 1\0ssn\0{run_id}".encode(), hashlib.sha256).digest()
    secrets = [KEY.encode(), derived, derived.hex().encode()]
    assert [where for where, text in seen if any(secret in text for secret in secrets)] == []
    assert any(b"kanon_pseudonym" in text for where, text in seen if where == "plan"), "we would see it"
    assert any("078-05" not in where and b"078-05" in text for where, text in seen), "the source holds raw ids"

    monkeypatch.setattr(pseudonyms, "_maker", _failing)
    caplog.clear()
    with caplog.at_level(logging.DEBUG), pytest.raises(Exception, match="after 32 bytes") as broken:
        runner.run(job(world), spark=spark)
    assert KEY not in str(broken.value)
    assert not any(KEY in record.getMessage() for record in caplog.records)
    assert KEY not in (world.manifest.parent / "manifest.failed.json").read_text()
    assert world.left_in_work() == KEPT


def _failing(key: bytes) -> Any:
    import pandas as pd

    def kanon_pseudonym(ids: pd.Series) -> pd.Series:  # type: ignore[type-arg]
        raise ValueError(f"after {len(key)} bytes")

    return kanon_pseudonym


ROTATED = (
    "CASE WHEN ssn is not null THEN coalesce(lead(ssn) OVER (PARTITION BY ssn is null ORDER BY {by}), "
    "first(ssn) OVER (PARTITION BY ssn is null ORDER BY {by})) END AS ssn"
)
TAMPERED: dict[str, Callable[["DataFrame"], "DataFrame"]] = {
    "raw": lambda table: table,
    "digit": lambda table: table.selectExpr(
        "age", "if(note = 'n1', translate(ssn, '0123456789abcdef', '123456789abcdef0'), ssn) AS ssn", "note"
    ),
    "lost": lambda table: table.selectExpr("age", "if(note = 'n1', null, ssn) AS ssn", "note"),
    "made up": lambda table: table.selectExpr("age", "coalesce(ssn, repeat('ab', 16)) AS ssn", "note"),
    "twice": lambda table: table.selectExpr("age", "if(ssn is null, null, repeat('ab', 16)) AS ssn", "note"),
    "moved": lambda table: table.selectExpr("age", ROTATED.format(by="note"), "note"),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_verification_finds_what_is_not_the_pseudonym(
    spark: "SparkSession", world: World, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    world.save(people(spark))
    world.run(job(world))
    before = world.released()
    real = runner.pseudonymize

    def tampered(table: "DataFrame", *args: Any, **kwargs: Any) -> "DataFrame":
        return table if what == "raw" else TAMPERED[what](real(table, *args, **kwargs))

    monkeypatch.setattr(runner, "pseudonymize", tampered)
    with pytest.raises(GuaranteeError, match="pseudonyms") as refused:
        world.run(job(world, sink={"path": "out/release", "order": "source"}))
    assert refused.value.exit_code == 4
    said = {"raw": "not 32 hexadecimal", "twice": "10 repeat"}.get(what, "have others than their own")
    assert said in str(refused.value)
    assert "multiset" not in str(refused.value), "the other columns are right"
    assert world.released() == before


def test_verification_knows_rows_apart_by_their_class_alone(
    spark: "SparkSession", world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No column is kept, and the pseudonyms change places: the same pseudonyms, the same tuples."""
    source = people(spark).selectExpr("if(age > 24, 70, age) AS age", "ssn")
    real = runner.pseudonymize

    def tampered(table: "DataFrame", *args: Any, **kwargs: Any) -> "DataFrame":
        return real(table, *args, **kwargs).selectExpr("age", ROTATED.format(by="age"))

    columns = {"identifiers": {"ssn": {"pseudonym": {"key": "${KANON_KEY}"}}}, "other": "drop"}
    release = world.run(world.job(QIS, sink=None, columns=columns), source)
    assert len({row["age"] for row in release.table.collect()}) > 1
    monkeypatch.setattr(runner, "pseudonymize", tampered)
    with pytest.raises(GuaranteeError, match=r"pseudonyms: .* published tuples have others than their own"):
        world.run(world.job(QIS, sink=None, columns=columns), source)


def test_ids_that_change_under_way(spark: "SparkSession", world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.save(people(spark))
    verify = runner._Job._verify

    def late(self: Any, *args: Any, **kwargs: Any) -> Any:
        world.save(people(spark, lambda index: f"other {index}"))
        spark.catalog.refreshByPath(str(world.folder / "data" / "table"))
        return verify(self, *args, **kwargs)

    monkeypatch.setattr(runner._Job, "_verify", late)
    with pytest.raises(SourceChangedError) as refused:
        world.run(job(world))
    assert refused.value.exit_code == 3
    assert not world.sink.exists()


def test_a_standing_release_is_verified_with_and_without_the_key(
    spark: "SparkSession", world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.save(people(spark))
    release = world.run(job(world))
    config = world.folder / "job.yaml"

    def detail(table: "DataFrame") -> tuple[bool, str]:
        verdict = verify_with_config(load_config(config, keys_optional=True), table=table, spark=spark)
        check = next(check for check in verdict.checks if check.name == "pseudonyms")
        assert all(other.passed for other in verdict.checks if other is not check)
        return check.passed, check.detail

    other = TAMPERED["digit"](release.table)
    assert detail(release.table) == (
        True, "ssn: 11 pseudonyms, no two alike; each is the keyed hash of its row's id",
    )  # fmt: skip
    assert not detail(other)[0]

    monkeypatch.delenv("KANON_KEY")
    passed, text = detail(release.table)
    assert passed
    assert "every row with an id has one; whether they are the keyed hashes" in text
    assert "was not checked for ssn: the key is not set" in text
    assert detail(other)[0], "which is why it is said"
    assert not detail(TAMPERED["lost"](release.table))[0]
    assert not detail(TAMPERED["twice"](release.table))[0]

    monkeypatch.setenv("KANON_KEY", KEY + "?")
    assert not detail(release.table)[0], "another key"


def test_blocks_and_formats(spark: "SparkSession", world: World) -> None:
    world.save(people(spark))
    release = world.run(
        job(world, execution={"local_limit": 0, "block_size": 2}, sink={"path": "out/release", "format": "csv"})
    )
    found = Counter(row["ssn"] is None or bool(FORM.fullmatch(row["ssn"])) for row in release.table.collect())
    assert found == {True: 12}
    assert check_of(release)["passed"]
