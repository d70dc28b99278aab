"""`kanon suggest`: what is asked of the door, and what goes where."""

import json
from typing import Any

import pytest
from test_suggest_yaml import draft, usual
from typer.testing import CliRunner

from kanon_spark.cli.main import app
from kanon_spark.errors import DataError


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    seen: list[dict[str, Any]] = []

    def look(table: str, **question: Any) -> Any:
        question.pop("tell")("look at every column")
        seen.append({"table": table, **question})
        if table == "nothing":
            raise DataError("no column was found", where="columns", fix="name one")
        return draft(*usual(), unit="patient_id")

    monkeypatch.setattr("kanon_spark.explore.suggest.suggest", look)
    return seen


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["suggest", *arguments])


def test_options(asked: list[dict[str, Any]]) -> None:
    arguments = ("--format", "csv", "--option", "sep=;", "--k", "7", "--sink", "out/x", "--name", "n", "--show-values")
    assert run("t", *arguments).exit_code == 0
    assert asked == [
        {
            "table": "t",
            "format": "csv",
            "options": {"sep": ";"},
            "k": 7,
            "sink": "out/x",
            "name": "n",
            "show_values": True,
        }
    ]


def test_standard_output_is_the_yaml_alone(asked: list[dict[str, Any]]) -> None:
    result = run("t")
    assert result.stdout == draft(*usual(), unit="patient_id").yaml
    assert "look at every column" in result.stderr
    assert run("t", "--quiet").stderr == ""
    assert asked[0]["k"] == 5


def test_machines_read_json(asked: list[dict[str, Any]]) -> None:
    result = run("t", "--json")
    told = json.loads(result.stdout)
    assert (told["event"], told["outcome"], told["exit_code"]) == ("outcome", "done", 0)
    assert told["columns"][0]["name"] == "patient_id"
    assert result.stderr == ""


@pytest.mark.parametrize("arguments", [[], ["t", "--k", "1"], ["t", "--option", "sep"]])
def test_a_wrong_request_is_2(asked: list[dict[str, Any]], arguments: list[str]) -> None:
    assert run(*arguments).exit_code == 2
    assert asked == []


def test_data_that_does_not_fit_is_3_and_nothing_is_printed(asked: list[dict[str, Any]]) -> None:
    result = run("nothing")
    assert result.exit_code == 3
    assert result.stdout == ""
    assert "no column was found" in result.stderr
