"""Identifiers that are published as keyed pseudonyms: right, refused where they repeat, and their key is nowhere."""

import hashlib
import hmac
import json
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import types as T
from run_world import KEPT, WITH_REPORT, World, multiset, published_by_row, smallest_class
from test_run_confidential import plans  # noqa: F401 (a fixture)

from kanon_spark.config.checking import check_job, exit_code_of
from kanon_spark.config.loader import load_config
from kanon_spark.config.preflight import check_schema
from kanon_spark.config.pseudonyms import PseudonymSpec
from kanon_spark.engine import runner
from kanon_spark.engine.verification import verify_with_config
from kanon_spark.errors import GuaranteeError, InternalError, RepeatedIdError, SourceChangedError
from kanon_spark.recoding import pseudonyms
from kanon_spark.verify import pseudonyms as verifying
from kanon_spark.verify import release as verifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kanon_spark.engine.release import Release
    from kanon_spark.verify.facts import Check

KEY = "a-canary-key-of-many-bytes"
QIS = {"age": {"hierarchy": {"interval": {"widths": [10, 20]}}, "max_level": 1}}
# Twelve people in their twenties and three loners, who find no class below level 2 and are suppressed.
AGES = [*range(20, 29), 20, 21, 22, 41, 61, 81]
SUPPRESSION = {"max_suppression": 0.25}


def ssn(index: int) -> str | None:
    """Two people have no number."""
    return None if index in (3, 12) else f"078-05-{index:04d}"


def people(spark: "SparkSession", ids: Callable[[int], str | None] = ssn) -> "DataFrame":
    rows = [(age, ids(index), f"n{index}", f"Name {index}") for index, age in enumerate(AGES)]
    return spark.createDataFrame(rows, "age int, ssn string, note string, name string")


def job(world: World, *, stable: bool = False, **options: Any) -> Any:
    pseudonym = {"key": "${KANON_KEY}", **({"stable": True} if stable else {})}
    columns = {"identifiers": {"ssn": {"pseudonym": pseudonym}, "name": {}}}
    return world.job(QIS, **{"columns": columns, "privacy": SUPPRESSION, "report": WITH_REPORT, **options})


def run_key(salt: str, column: str = "ssn") -> bytes:
    return hmac.new(KEY.encode(), f"kanon_spark pseudonym 1\0{column}\0{salt}".encode(), hashlib.sha256).digest()


def expected(value: str | None, salt: str, column: str = "ssn") -> str | None:
    if value is None:
        return None
    return hmac.new(run_key(salt, column), value.encode(), hashlib.sha256).hexdigest()[:32]


def check_of(release: "Release") -> Any:
    return next(check for check in release.manifest["checks"] if check["name"] == "pseudonyms")


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KANON_KEY", KEY)


@pytest.fixture
def world(spark: "SparkSession", tmp_path: Path) -> World:
    return World(spark, tmp_path)


@dataclass(frozen=True)
class Made:
    """A release that stands, and what the verifier was told about its pseudonyms."""

    world: World
    release: "Release"
    facts: verifying.PseudonymFacts
    arguments: dict[str, Any]

    def check(self, table: "DataFrame", *, key: bool = True) -> "Check":
        columns = tuple(each if key else replace(each, key=None) for each in self.facts.columns)
        return verifying.pseudonym_check(table, replace(self.facts, columns=columns), **self.arguments)


@pytest.fixture(scope="module")
def made(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Made]":
    world = World(spark, tmp_path_factory.mktemp("pseudonyms"))
    world.save(people(spark))
    told: list[tuple[Any, dict[str, Any]]] = []

    def listen(table: "DataFrame", facts: Any, published: "DataFrame", **more: Any) -> "Check":
        told.append((facts, {"published": published, **more}))
        return verifying.pseudonym_check(table, facts, published, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KANON_KEY", KEY)
        patch.setattr(verifier, "pseudonym_check", listen)
        release = world.run(job(world))
    yield Made(world, release, *told[0])


@pytest.mark.parametrize(("order", "rows"), [("source", "drop"), ("shuffled", "star")])
def test_each_row_has_the_pseudonym_of_its_id(
    spark: "SparkSession", world: World, made: Made, order: str, rows: str
) -> None:
    world.save(people(spark))
    sink = {"path": "out/release", "order": order}
    release = world.run(job(world, sink=sink, output={"suppressed_rows": rows}))
    assert release.table.columns == ["age", "ssn", "note"]
    assert release.table.schema["ssn"].dataType == T.StringType()
    found = published_by_row(release.table, "note")
    run_id, count = release.manifest["run_id"], 15 if rows == "star" else 12
    assert {note: row["ssn"] for note, row in found.items()} == {
        f"n{index}": expected(ssn(index), run_id) for index in range(count)
    }
    assert release.manifest["rows"]["suppressed"] == 3
    assert smallest_class(release.table, ["age"]) >= 3
    detail = f"ssn: {count - (2 if rows == 'star' else 1)} pseudonyms, no two alike; each is the keyed hash"
    assert check_of(release)["passed"]
    assert detail in check_of(release)["detail"]
    assert release.verify().passed
    assert world.left_in_work() == KEPT

    manifest = release.manifest
    assert manifest["columns"]["pseudonyms"] == {"ssn": {"stable": False}}
    assert manifest["columns"]["dropped"] == ["name"]
    assert manifest["warnings"] == []
    assert "ssn" not in json.dumps(manifest["samples"]), "raw ids beside their rows would undo them"
    assert "Published as a pseudonym, and not shown here: ssn." in (world.manifest.parent / "report.html").read_text()

    # The same ids in another run have others.
    other = made.release.table
    assert multiset(other.drop("ssn")) <= multiset(release.table.drop("ssn"))
    assert {row["ssn"] for row in other.collect()} & {row["ssn"] for row in found.values()} == {None}


def test_stable_pseudonyms_are_the_same_again_and_warned_of(spark: "SparkSession", world: World) -> None:
    world.save(people(spark))
    first = world.run(job(world, stable=True))
    again = world.run(job(world, stable=True, name="again", sink={"path": "out/again"}, report=None))
    assert first.manifest["content_hash"] == again.manifest["content_hash"]
    assert first.table.where("note = 'n0'").collect()[0]["ssn"] == expected(ssn(0), "")
    assert any("'ssn' is stable" in text for text in first.manifest["warnings"])
    assert "is stable: releases with the same key can be linked" in (world.manifest.parent / "report.html").read_text()
    findings = check_job(job(world, stable=True), spark=spark)
    stable = [finding for finding in findings if finding.path == "columns.identifiers.ssn.pseudonym.stable"]
    assert [finding.level for finding in stable] == ["warning"]
    assert exit_code_of(findings) == 0


def test_types_of_ids(spark: "SparkSession") -> None:
    values = {
        "text": "cast(id AS string)",
        "small": "cast(id AS tinyint)",
        "long": "id",
        "decimal": "cast(id AS decimal(20,0))",
        "collated": "cast(id AS string) COLLATE UNICODE_CI",
        "bytes": "cast(cast(id AS string) AS binary)",
        "date": "date_add(date'2020-01-01', cast(id AS int))",
    }
    table = spark.range(3).selectExpr(*[f"{value} AS {name}" for name, value in values.items()])
    spec = PseudonymSpec(key=KEY)
    rows = pseudonyms.pseudonymize(table, dict.fromkeys(values, spec), run_id="run").collect()
    assert [row.asDict() for row in rows] == [
        {name: expected(f"2020-01-0{id_ + 1}" if name == "date" else str(id_), "run", name) for name in values}
        for id_ in range(3)
    ]
    with pytest.raises(InternalError, match="without its key"):
        pseudonyms.pseudonymize(table, {"text": PseudonymSpec.model_construct(key="", stable=False)}, run_id="run")


@pytest.mark.parametrize("kind", [T.DoubleType(), T.TimestampType(), T.ArrayType(T.StringType()), T.BooleanType()])
def test_types_that_cannot_be_ids(world: World, kind: T.DataType) -> None:
    schema = people(world.spark).schema
    schema["ssn"].dataType = kind
    findings = check_schema(schema, job(world).config)
    assert [finding.path for finding in findings] == ["columns.identifiers.ssn.pseudonym"]
    assert "cannot become a pseudonym" in findings[0].message
    assert exit_code_of(findings) == 3


def test_ids_that_repeat_are_refused(spark: "SparkSession", made: Made) -> None:
    world = made.world
    before = world.released()
    # One of the two is a loner, who would be suppressed: that does not help, or luck would decide.
    world.save(people(spark, lambda index: "078-05-0001" if index == 14 else ssn(index)), "repeated")
    again = job(world, name="repeated", source={"path": "data/repeated"})
    with pytest.raises(RepeatedIdError, match="1 ids of 'ssn' stand in several rows") as refused:
        world.run(again)
    assert refused.value.exit_code == 3
    assert refused.value.where == "columns.identifiers.ssn.pseudonym"
    assert "without a pseudonym" in refused.value.fix
    assert "078-05" not in str(refused.value)
    assert world.released() == before
    assert world.left_beside() == []
    assert world.left_in_work() == KEPT
    assert json.loads((world.manifest.parent / "manifest.failed.json").read_text())["error"]["code"] == "K307"

    findings = check_job(again, spark=spark)
    assert [finding.path for finding in findings if finding.level == "error"] == ["columns.identifiers.ssn.pseudonym"]
    assert exit_code_of(findings) == 3


def test_the_unit_may_be_a_pseudonym_where_each_person_has_one_row(spark: "SparkSession", world: World) -> None:
    privacy = {"unit": "ssn", **SUPPRESSION}
    release = world.run(job(world, privacy=privacy, sink=None, report=None), people(spark))
    assert release.manifest["persons"] == 15
    assert release.manifest["privacy"]["unit"] == "ssn"
    assert release.manifest["columns"]["dropped"] == ["name"]
    found = {row["note"]: row["ssn"] for row in release.table.collect()}
    assert found == {f"n{index}": expected(ssn(index), release.manifest["run_id"]) for index in range(12)}
    twice = people(spark, lambda index: f"person {index // 2}")
    with pytest.raises(RepeatedIdError):
        world.run(job(world, privacy=privacy, sink=None, report=None), twice)


def test_two_pseudonyms_beside_another_unit_and_further_columns_over_blocks(
    spark: "SparkSession", world: World
) -> None:
    """Visits have pseudonyms, patients come more than once and are not published; a value differs by column."""
    world.save(people(spark).selectExpr("age", "ssn", "ssn AS visit", "pmod(hash(note), 9) AS patient"))
    identifiers = {name: {"pseudonym": {"key": "${KANON_KEY}"}} for name in ("visit", "ssn")}
    options: dict[str, Any] = {
        "columns": {"identifiers": identifiers, "other": "drop"},
        "privacy": {"unit": "patient", "max_suppression": 0.5},
        "execution": {"local_limit": 0, "block_size": 2},
        "output": {"numeric": "bounds"},
        "sink": {"path": "out/release", "format": "csv"},
    }
    release = world.run(world.job({"age": None}, k=2, **options))
    assert release.table.columns == ["age", "age_lo", "age_hi", "ssn", "visit"]
    salt, ids = release.manifest["run_id"], [ssn(index) for index in range(15)]
    pairs = {(expected(each, salt), expected(each, salt, "visit")) for each in ids}
    found = {(row["ssn"], row["visit"]) for row in release.table.collect()}
    assert len(found) > 5
    assert found <= pairs
    assert all(one is None or (re.fullmatch("[0-9a-f]{32}", one) and one != two) for one, two in found)
    assert check_of(release)["passed"]
    assert check_of(release)["detail"].count("no two alike") == 2


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
    derived = run_key(release.manifest["run_id"])
    secrets = [KEY.encode(), derived, derived.hex().encode()]
    assert [where for where, text in seen if any(secret in text for secret in secrets)] == []
    assert any(b"kanon_pseudonym(" in text for where, text in seen if where == "plan"), "we would see it"
    assert any("_kanon_" in where for where, _ in seen), "the work directory was looked at"

    # A worker that fails says what went wrong, but not with which key.
    def failing(key: bytes) -> Any:
        import pandas as pd

        def kanon_pseudonym(ids: pd.Series) -> pd.Series:  # type: ignore[type-arg]
            raise ValueError(f"after {len(key)} bytes")

        return kanon_pseudonym

    monkeypatch.setattr(pseudonyms, "_maker", failing)
    caplog.clear()
    with caplog.at_level(logging.DEBUG), pytest.raises(Exception, match="after 32 bytes") as broken:
        runner.run(job(world), spark=spark)
    said = [str(broken.value), *(record.getMessage() for record in caplog.records)]
    said.append((world.manifest.parent / "manifest.failed.json").read_text())
    assert not any(KEY in text or derived.hex() in text for text in said)
    assert world.left_in_work() == KEPT


ROTATED = (
    "CASE WHEN ssn is not null THEN coalesce(lead(ssn) OVER (PARTITION BY ssn is null ORDER BY {by}), "
    "first(ssn) OVER (PARTITION BY ssn is null ORDER BY {by})) END"
)
OTHERS = "have others than their own"
# What somebody made of the column, and what is said about it with and without the key at hand.
TAMPERED = {
    "a digit": ("if(note = 'n1', translate(ssn, '0123456789abcdef', '123456789abcdef0'), ssn)", OTHERS, None),
    "one lost": ("if(note = 'n1', null, ssn)", OTHERS, OTHERS),
    "one made up": ("coalesce(ssn, repeat('ab', 16))", OTHERS, OTHERS),
    "all alike": ("if(ssn is null, null, repeat('ab', 16))", "10 repeat", "10 repeat"),
    "changed places": (ROTATED.format(by="note"), OTHERS, None),
    "a line break": (
        "if(note = 'n1', concat(ssn, '\\n'), ssn)",
        "1 are not 32 hexadecimal",
        "1 are not 32 hexadecimal",
    ),
    "no pseudonym": ("if(ssn is null, null, note)", "11 are not 32 hexadecimal digits", "11 are not 32 hexadecimal"),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_verification_finds_what_is_not_the_pseudonym(made: Made, what: str) -> None:
    expression, with_key, without = TAMPERED[what]
    table = made.release.table.selectExpr("age", f"{expression} AS ssn", "note")
    check = made.check(table)
    assert not check.passed
    assert with_key in check.detail
    check = made.check(table, key=False)
    assert check.passed == (without is None), "what needs the key cannot be found without it"
    assert (without or "was not checked for ssn: the key is not set") in check.detail


def test_raw_ids_are_never_published(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the step that replaces them were skipped."""
    before = made.world.released()
    monkeypatch.setattr(runner, "pseudonymize", lambda table, specs, *, run_id: table)
    with pytest.raises(GuaranteeError, match=r"pseudonyms: .*11 are not 32 hexadecimal digits") as refused:
        made.world.run(job(made.world))
    assert refused.value.exit_code == 4
    assert "multiset" not in str(refused.value), "all other columns are right"
    assert "078-05" not in str(refused.value)
    assert made.world.released() == before


def test_rows_are_known_apart_by_their_class_alone(
    spark: "SparkSession", world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No column is kept, and pseudonyms change places between classes: all sets of values stay the same."""
    source = people(spark).selectExpr("if(age > 24, 70, age) AS age", "ssn")
    real = runner.pseudonymize

    def tampered(table: "DataFrame", *args: Any, **kwargs: Any) -> "DataFrame":
        return real(table, *args, **kwargs).selectExpr("age", f"{ROTATED.format(by='age')} AS ssn")

    monkeypatch.setattr(runner, "pseudonymize", tampered)
    columns = {"identifiers": {"ssn": {"pseudonym": {"key": "${KANON_KEY}"}}}, "other": "drop"}
    with pytest.raises(GuaranteeError, match=f"pseudonyms: .*no two alike; rows of 2 published tuples {OTHERS}"):
        world.run(world.job(QIS, sink=None, report=None, columns=columns), source)


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
    spark: "SparkSession", made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    job(made.world)

    def judge() -> "Check":
        loaded = load_config(made.world.folder / "job.yaml", keys_optional=True)
        verdict = verify_with_config(loaded, table=made.release.table, spark=spark)
        check = next(check for check in verdict.checks if check.name == "pseudonyms")
        assert all(other.passed for other in verdict.checks if other is not check)
        return check

    check = judge()
    assert check.passed
    assert check.detail == "ssn: 11 pseudonyms, no two alike; each is the keyed hash of its row's id"
    monkeypatch.delenv("KANON_KEY")
    check = judge()
    assert check.passed
    assert "every row with an id has one; whether they are the keyed hashes" in check.detail
    assert "was not checked for ssn: the key is not set" in check.detail
    monkeypatch.setenv("KANON_KEY", KEY + "?")
    assert not judge().passed, "another key"
