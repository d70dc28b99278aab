"""`kanon check`: findings from the table and the target, their order and their exit codes."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from kanon_spark import Anonymizer
from kanon_spark.cli.main import app
from kanon_spark.errors import TargetError


@dataclass(frozen=True)
class Finding:
    """What the pre-flight finds."""

    level: str
    path: str
    message: str
    fix: str
    exit_code: int | None = None


class World:
    """What the stand-ins answer, and what they saw."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.target: TargetError | None = None
        self.sources: list[Any] = []
        self.options: dict[str, Any] = {}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    seen = World()

    def put(module: str, **names: Any) -> None:
        fake = ModuleType(module)
        for name, value in names.items():
            setattr(fake, name, value)
        monkeypatch.setitem(sys.modules, module, fake)

    def check_table(spark: Any, loaded: Any, table: Any, **options: Any) -> list[Finding]:
        seen.options = {"table": table, **options}
        return seen.findings

    def open_source(spark: Any, source: Any, **_: Any) -> Any:
        seen.sources.append(source)
        return SimpleNamespace(table="frame")

    class Publisher:
        def published(self) -> None:
            """Nothing stands at the target."""

        def check(self, source: Any) -> None:
            if seen.target is not None:
                raise seen.target

    put("kanon_spark.config.preflight", check_table=check_table, Finding=Finding)
    monkeypatch.setattr("kanon_spark.engine.session.get_spark", lambda **_: "spark")
    put("kanon_spark.io.sources", open_source=open_source)
    put("kanon_spark.io.sinks", publisher_for=lambda *_, **__: Publisher())
    put("kanon_spark.releases.workdir", work_dir_path=lambda *_: "/work")
    return seen


@pytest.fixture
def job(tmp_path: Path) -> str:
    path = tmp_path / "job.yaml"
    path.write_text(
        "source: {path: a.parquet, snapshot: copy}\ncolumns: {quasi_identifiers: [age]}\nsink: out\n", encoding="utf-8"
    )
    return str(path)


def test_all_is_well(world: World, job: str) -> None:
    result = CliRunner().invoke(app, ["check", job])
    assert (result.exit_code, world.options) == (0, {"table": "frame", "show_values": False})
    assert "all is well" in result.stdout
    assert world.sources[0].snapshot == "none"  # a look copies nothing


def test_findings_are_grouped_errors_first(world: World, job: str) -> None:
    world.findings = [
        Finding("warning", "columns.sensitive", "a kept column acts as a quasi-identifier", ""),
        Finding("error", "columns.quasi_identifiers.age", "3 [bold]values[/bold] are missing", "add them"),
        Finding("error", "columns.quasi_identifiers.age", "one value only", "drop it"),
    ]
    result = CliRunner().invoke(app, ["check", job, "--show-values"])
    assert result.exit_code == 3
    assert world.options["show_values"] is True
    lines = result.stdout.splitlines()
    assert lines[0].endswith("2 errors, 1 warning")
    assert [line.strip() for line in lines[1:]] == [
        "columns.quasi_identifiers.age",
        "error    3 [bold]values[/bold] are missing",
        "fix: add them",
        "error    one value only",
        "fix: drop it",
        "columns.sensitive",
        "warning  a kept column acts as a quasi-identifier",
    ]


def test_warnings_alone_are_0(world: World, job: str) -> None:
    world.findings = [Finding("warning", "privacy.unit", "an identifier repeats", "name a unit")]
    result = CliRunner().invoke(app, ["check", job, "--json"])
    assert result.exit_code == 0
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert [event["event"] for event in events] == ["finding", "outcome"]
    assert events[0]["message"] == "an identifier repeats"


def test_a_wrong_request_comes_before_data_that_does_not_fit(world: World, job: str) -> None:
    world.findings = [Finding("error", "privacy.k", "k is larger than the persons", "")]
    world.target = TargetError("cannot be written", where="sink.path", fix="choose another")
    result = CliRunner().invoke(app, ["check", job])
    assert result.exit_code == 2
    assert "cannot be written" in result.stdout
    assert "k is larger" in result.stdout


def test_a_finding_may_know_its_exit_code(world: World, job: str) -> None:
    world.findings = [Finding("error", "columns.quasi_identifiers.aeg", "no such column", "", exit_code=2)]
    assert CliRunner().invoke(app, ["check", job]).exit_code == 2


def test_quiet_speaks_only_of_errors(world: World, job: str) -> None:
    assert CliRunner().invoke(app, ["check", job, "--quiet"]).stdout == ""
    world.findings = [Finding("error", "privacy.k", "too large", "")]
    assert "too large" in CliRunner().invoke(app, ["check", job, "--quiet"]).stdout


def test_a_job_without_source_is_2(world: World, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("columns: {quasi_identifiers: [age]}\n", encoding="utf-8")
    result = CliRunner().invoke(app, ["check", str(path)])
    assert result.exit_code == 2
    assert "names no source" in result.stderr


def test_python_checks_the_table_it_is_given(world: World) -> None:
    world.findings = [Finding("warning", "x", "y", "")]
    table = SimpleNamespace(sparkSession="spark")
    assert Anonymizer(quasi_identifiers=["age"]).check(table) == world.findings  # type: ignore[arg-type, comparison-overlap]
    assert world.options["table"] is table
