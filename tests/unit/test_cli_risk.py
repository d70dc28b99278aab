"""`kanon risk`: which tables are looked at with which question, and how the answer reads."""

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pyspark.sql import types as T
from typer.testing import CliRunner

from kanon_spark.cli import risk as command
from kanon_spark.cli.main import app
from kanon_spark.risk.facts import RiskReport, TableRisk
from kanon_spark.risk.sizes import Sizes, class_risk

REPORT = RiskReport(TableRisk(class_risk(Sizes(10, "rows", {5: 2}, 0, 10)), (), (), largest=1), notes=("a note",))


class Frame:
    """Stands in for a table."""

    def __init__(self, name: str, *columns: str) -> None:
        self.name = name
        self.columns = list(columns)
        self.schema = T.StructType([T.StructField(column, T.IntegerType()) for column in columns])


class Asked:
    """What the stand-ins were called with."""

    def __init__(self) -> None:
        self.tables: list[tuple[str, str | None, list[str]]] = []
        self.questions: list[dict[str, Any]] = []
        self.released: str | None = "run"

    @property
    def question(self) -> dict[str, Any]:
        (found,) = self.questions
        return found


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    seen = Asked()

    def put(module: str, **functions: Any) -> None:
        fake = ModuleType(module)
        for name, stand_in in functions.items():
            setattr(fake, name, stand_in)
        monkeypatch.setitem(sys.modules, module, fake)

    def opened(spark: Any, table: str, *, format: str | None, options: Any) -> Frame:
        seen.tables.append((table, format, list(options)))
        return Frame(table, "age", "zip", "age_lo")

    def assess(original: Frame, release: Frame | None, **question: Any) -> RiskReport:
        seen.questions.append({"original": original.name, "release": release and release.name, **question})
        return REPORT

    class Source:
        table = Frame("source", "age", "zip")

    put("kanon_spark.engine.session", get_spark=lambda **_: "spark")
    put("kanon_spark.io.sources", open_source=lambda spark, source, **_: Source)
    released = Frame("/out/release", "age", "zip", "age_lo")
    put("kanon_spark.io.released", open_published=lambda spark, sink, base_dir: released)
    put(
        "kanon_spark.io.sinks",
        standing_run_id=lambda spark, sink, base_dir: seen.released,
        target_of=lambda spark, sink, base_dir: "/out/release",
    )
    monkeypatch.setattr(command, "open_table", opened)
    monkeypatch.setattr("kanon_spark.risk.assess", assess)
    return seen


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["risk", *arguments])


def test_a_table_and_its_options(asked: Asked) -> None:
    result = run(
        "t.csv", "--qi", 'age,"z,ip"', "--qi", "sex", "--unit", "who", "--threshold", "0.1", "--sensitive", "ill,pay",
        "--attack-qis", "age", "--targets", "50", "--seed", "3", "--format", "csv", "--option", "sep=;",
        "--population", "everyone", "--k", "4", "--show-values",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert asked.tables == [("t.csv", "csv", ["sep=;"]), ("everyone", None, [])]
    question = asked.question
    assert (question["original"], question["release"], question["population"].name) == ("t.csv", None, "everyone")
    assert question["qi"] == ("age", "z,ip", "sex")
    assert (question["unit"], question["sensitive"], question["attack_qi"]) == ("who", ("ill", "pay"), ("age",))
    assert (question["targets"], question["seed"], question["thresholds"]) == (50, 3, (0.1,))
    assert question["show_values"] is True
    assert question["k"] is None, "without a release there is nothing to hold k against"
    assert question["readings"] is None
    assert "prosecutor, highest" in result.stdout
    assert "- a note" in result.stdout


def test_defaults(asked: Asked) -> None:
    assert run("t", "--qi", "age", "--release", "r", "--k", "4").exit_code == 0
    question = asked.question
    assert [name for name, *_ in asked.tables] == ["t", "r"]
    assert (question["release"], question["k"], question["unit"], question["sensitive"]) == ("r", 4, None, ())
    assert (question["attack_qi"], question["targets"], question["thresholds"]) == (None, 1_000, (0.05, 0.2))
    assert (question["show_values"], question["population"], question["added"]) == (False, None, ())


def config(folder: Path, **sections: Any) -> str:
    body = {
        "source": {"path": "t.parquet", "snapshot": "copy"},
        "columns": {"quasi_identifiers": ["age", "zip"], "sensitive": ["ill"], "identifiers": ["who"]},
        "privacy": {"k": 7, "unit": "who"},
        "sink": {"path": "out"},
        "output": {"numeric": "bounds"},
        **sections,
    }
    path = folder / "job.yaml"
    path.write_text(json.dumps({key: value for key, value in body.items() if value is not None}), encoding="utf-8")
    return str(path)


def test_a_configuration_says_everything(asked: Asked, tmp_path: Path) -> None:
    result = run("--config", config(tmp_path))
    assert result.exit_code == 0, result.stderr
    assert asked.tables == []
    question = asked.question
    assert (question["original"], question["release"]) == ("source", "/out/release")
    assert (question["qi"], question["sensitive"], question["unit"]) == (("age", "zip"), ("ill",), "who")
    assert question["k"] == 7
    assert question["models"] == {}, "models speak of persons, an attacker's belief of rows"
    assert question["added"] == ("age_lo",), "numbers beside a label, where the release has them"
    assert {name: reading.kind for name, reading in question["readings"].items()} == {
        "age": "integer",
        "zip": "integer",
    }


def test_what_is_said_wins_over_the_configuration(asked: Asked, tmp_path: Path) -> None:
    path = config(tmp_path)
    assert (
        run("other", "--config", path, "--release", "r", "--qi", "zip", "--sensitive", "pay", "--k", "3").exit_code == 0
    )
    question = asked.question
    assert [name for name, *_ in asked.tables] == ["other", "r"]
    assert (question["qi"], question["sensitive"], question["k"]) == (("zip",), ("pay",), 3)


def test_models_are_known_from_the_configuration(asked: Asked, tmp_path: Path) -> None:
    path = config(tmp_path, privacy={"k": 7, "alpha": 0.4})
    assert run("--config", path).exit_code == 0
    assert run("--config", path, "--attack-qis", "pay").exit_code == 0
    first, second = asked.questions
    assert [model.alpha for model in first["models"]["ill"]] == [0.4]
    assert second["models"] == {}, "who knows more than quasi-identifiers cuts through the classes"


def test_before_the_first_release_the_source_is_looked_at(asked: Asked, tmp_path: Path) -> None:
    asked.released = None
    result = run("--config", config(tmp_path))
    assert result.exit_code == 0
    assert asked.question["release"] is None
    assert "no release stands at /out/release yet" in result.stdout
    asked.questions.clear()
    assert run("--config", config(tmp_path, sink=None)).exit_code == 0
    assert asked.question["release"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [([], "no table is named"), (["t"], "--qi must be given"), (["t", "--config", "no.yaml"], "no.yaml")],
)
def test_a_question_that_is_not_whole_is_2(asked: Asked, arguments: list[str], words: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert asked.tables == []


def test_a_configuration_without_a_source_needs_a_table(asked: Asked, tmp_path: Path) -> None:
    path = config(tmp_path, source=None)
    assert run("--config", path).exit_code == 2
    assert run("t", "--config", path).exit_code == 0


def test_a_risk_above_the_limit_is_4(asked: Asked) -> None:
    assert run("t", "--qi", "age", "--max-risk", "0.2").exit_code == 0
    refused = run("t", "--qi", "age", "--max-risk", "0.19", "--quiet")
    assert refused.exit_code == 4
    assert "the highest risk is 20.0%, 19.0% is allowed" in refused.stdout
    assert run("t", "--qi", "age", "--max-risk", "0.2", "--quiet").stdout == ""
    assert run("t", "--qi", "age", "--max-risk", "2").exit_code == 2


def test_machines_read_json(asked: Asked) -> None:
    told = json.loads(run("t", "--qi", "age", "--max-risk", "0.1", "--json").stdout)
    assert (told["event"], told["outcome"], told["exit_code"]) == ("outcome", "failed", 4)
    assert told["highest"] == 0.2
    assert told["before"]["sizes"]["classes"] == 2
    assert told["notes"] == ["a note"]
    assert json.loads(run("t", "--qi", "age", "--json").stdout)["outcome"] == "passed"
