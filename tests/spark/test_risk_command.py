"""`kanon risk` as a user meets it: a whole look from a configuration, and what a new user gets wrong."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from run_world import World

from kanon_spark.cli.main import invoke

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CANARY = "Zoltán-Canary"


@pytest.fixture(scope="module")
def world(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(spark, tmp_path_factory.mktemp("risk"))
    rows = [
        (20 + n % 9, ["nurse", "clerk", CANARY][n // 9 % 3], f"p{n // 2}", ["flu", "cold"][n % 2]) for n in range(60)
    ]
    world.save(spark.createDataFrame(rows, "age int, job string, who string, ill string"))
    world.save(spark.createDataFrame([], "age int, job string"), "empty")
    return world


def test_before_and_after_from_a_configuration(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    columns = {"identifiers": ["who"], "sensitive": ["ill"], "other": "error"}
    path = world.config_file(["age", "job"], k=5, columns=columns, privacy={"unit": "who"})
    assert invoke(["run", str(path), "--quiet"]) == 0
    assert invoke(["risk", "--config", str(path), "--json", "--max-risk", "0.2"]) == 0
    told = json.loads(capsys.readouterr().out)
    before, after, attack = told["before"], told["after"], told["attack"]
    assert before["sizes"]["counted"] == "persons"
    assert after["sizes"]["counted"] == "rows"
    assert after["sizes"]["prosecutor"]["highest"] <= 1 / 5 < before["sizes"]["prosecutor"]["highest"]
    assert (attack["k"], attack["holds"], attack["after"]["unmatched"]) == (5, True, 0)
    assert attack["after"]["expected"] < attack["before"]["expected"]
    assert attack["after"]["guesses"][0]["column"] == "ill"
    assert any("names no persons" in note for note in told["notes"])

    assert invoke(["risk", "--config", str(path), "--show-values", "--release", str(world.sink)]) == 0
    shown = capsys.readouterr().out
    for words in (
        "before",
        "after",
        "prosecutor, highest",
        "Linkage attack: 60 rows",
        "1/k = 20.0%",
        "easiest to find:",
    ):
        assert words in shown, words


def ask(world: World, *arguments: str) -> list[str]:
    return ["risk", *(str(world.folder / word) if word.startswith("data/") else word for word in arguments)]


BAD: dict[str, tuple[tuple[str, ...], int, list[str]]] = {
    "no such table": (("data/tabel", "--qi", "age"), 2, ["data/tabel", "table"]),
    "no such catalog table": (("nowhere", "--qi", "age"), 2, ["nowhere"]),
    "misspelt column": (("data/table", "--qi", "agge,job"), 2, ["agge", "did you mean 'age'"]),
    "misspelt sensitive column": (
        ("data/table", "--qi", "age", "--sensitive", "il"),
        2,
        ["'il'", "did you mean 'ill'"],
    ),
    "misspelt attack": (("data/table", "--qi", "age", "--attack-qis", "jobb"), 2, ["jobb", "did you mean 'job'"]),
    "no quasi-identifier": (("data/table",), 2, ["--qi must be given"]),
    "empty table": (("data/empty", "--qi", "age"), 3, ["no rows"]),
    "no such release": (("data/table", "--qi", "age", "--release", "data/no"), 2, ["data/no"]),
    "no such format": (("data/table", "--qi", "age", "--format", "parqet"), 2, ["allowed: parquet"]),
    "too many targets": (("data/table", "--qi", "age", "--targets", "1000000"), 2, ["1000000 targets", "100,000"]),
    "a risk above the limit": (
        ("data/table", "--qi", "age,job", "--unit", "who", "--max-risk", "0.01", "--quiet"),
        4,
        [],
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(world: World, capsys: pytest.CaptureFixture[str], case: str) -> None:
    arguments, code, words = BAD[case]
    assert invoke(ask(world, *arguments)) == code
    told = capsys.readouterr()
    assert "Traceback" not in told.err
    assert CANARY not in told.err + told.out
    for word in words:
        assert word in told.err, told.err


def test_values_are_shown_only_where_they_are_asked_for(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[Any] = [(30, "nurse")] * 4 + [(77, CANARY)]
    place = Path(world.save(world.spark.createDataFrame(rows, "age int, job string"), "alone"))
    assert invoke(["risk", str(place), "--qi", "age,job"]) == 0
    assert CANARY not in capsys.readouterr().out
    assert invoke(["risk", str(place), "--qi", "age,job", "--json", "--show-values"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["attack"]["worst_target"] == {"age": "77", "job": CANARY}
    assert told["before"]["combinations"][-1]["example"] == {"age": "77", "job": CANARY}
