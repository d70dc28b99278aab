"""`kanon run`, `demo`, `schema` and `gc`, with the engine played by stand-ins."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from kanon_spark.cli.main import app, invoke
from kanon_spark.engine.stages import StageEvent
from kanon_spark.errors import CoverageError, GuaranteeError, KanonError, LockedError

MANIFEST = {
    "run_id": "r1",
    "outcome": "released",
    "rows": {"released": 3},
    "samples": {"before": [["Ada"]]},
    "details": {"sensitive": {"columns": [{"values": [{"label": "Ada's own illness"}]}]}},
}
Stand = Callable[..., None]


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Stand:
    """Put functions in place of a module that would need Spark."""

    def put(module: str, **functions: Any) -> None:
        fake = ModuleType(module)
        for name, function in functions.items():
            setattr(fake, name, function)
        monkeypatch.setitem(sys.modules, module, fake)

    return put


@pytest.fixture
def job(tmp_path: Path) -> str:
    path = tmp_path / "job.yaml"
    path.write_text("columns: {quasi_identifiers: [age]}\nprivacy: {k: 5}\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def good_engine(stand_in: Stand) -> list[Any]:
    seen: list[Any] = []

    def run(loaded: Any, *, listeners: Any) -> Any:
        seen.append(loaded)
        for listener in listeners:
            listener(StageEvent("solve", "start", "form classes"))
            listener(StageEvent("solve", "note", "12 [open] classes"))
            listener(StageEvent("solve", "end", "form classes", 1.5))
        return SimpleNamespace(manifest=MANIFEST)

    stand_in("kanon_spark.engine.runner", run=run)
    stand_in("kanon_spark.report.console", render_summary=lambda manifest, console: console.print(manifest["run_id"]))
    return seen


def failing(error: BaseException) -> Callable[..., Any]:
    def run(*_: Any, **__: Any) -> Any:
        raise error

    return run


def test_run_shows_progress_on_stderr_and_the_summary_on_stdout(job: str, good_engine: list[Any]) -> None:
    result = CliRunner().invoke(app, ["run", job, "--set", "privacy.k=9"])
    assert result.exit_code == 0
    assert result.stdout == "r1\n"
    assert "form classes" in result.stderr
    assert "12 [open] classes" in result.stderr
    assert good_engine[0].config.privacy.k == 9


def test_json_is_one_object_per_line_and_holds_no_rows(job: str, good_engine: list[Any]) -> None:
    result = CliRunner().invoke(app, ["run", job, "--json"])
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert [event["event"] for event in events] == ["stage", "stage", "stage", "outcome"]
    assert events[-1]["outcome"] == "released"
    assert events[-1]["exit_code"] == 0
    assert events[-1]["manifest"]["rows"] == {"released": 3}
    assert "Ada" not in result.stdout
    assert result.stderr == ""


def test_quiet_says_nothing(job: str, good_engine: list[Any]) -> None:
    result = CliRunner().invoke(app, ["run", job, "--quiet"])
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CoverageError("b"), 3),
        (GuaranteeError("c"), 4),
        (LockedError("d"), 5),
        (KanonError("e"), 1),
    ],
)
def test_errors_end_with_their_exit_code_and_no_trace(job: str, stand_in: Stand, error: KanonError, code: int) -> None:
    error.where, error.fix = "here [bold]", "do that"
    stand_in("kanon_spark.engine.runner", run=failing(error))
    result = CliRunner().invoke(app, ["run", job])
    assert result.exit_code == code
    assert f"error {error.code}: here [bold]: {error.message}\n  fix: do that\n" == result.stderr
    last = json.loads(CliRunner().invoke(app, ["run", job, "--json"]).stdout.splitlines()[-1])
    assert (last["event"], last["outcome"], last["exit_code"], last["code"]) == ("outcome", "failed", code, error.code)


def test_an_unexpected_error_hides_its_text_and_keeps_the_trace(
    job: str, stand_in: Stand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("KANON_DEBUG", raising=False)
    stand_in("kanon_spark.engine.runner", run=failing(ValueError("raw value Ada")))
    result = CliRunner().invoke(app, ["run", job])
    assert result.exit_code == 1
    assert "Ada" not in result.stderr
    assert "Traceback" not in result.stderr
    (trace,) = tmp_path.glob("kanon_error_*.log")
    assert str(trace) in result.stderr
    assert "raw value Ada" in trace.read_text(encoding="utf-8")
    assert trace.stat().st_mode & 0o077 == 0


def test_debug_lets_the_trace_through(job: str, stand_in: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KANON_DEBUG", "1")
    stand_in("kanon_spark.engine.runner", run=failing(ValueError("whole")))
    assert isinstance(CliRunner().invoke(app, ["run", job]).exception, ValueError)


def test_an_interrupt_is_130(job: str, stand_in: Stand) -> None:
    stand_in("kanon_spark.engine.runner", run=failing(KeyboardInterrupt()))
    result = CliRunner().invoke(app, ["run", job, "--json"])
    assert result.exit_code == 130
    assert json.loads(result.stdout)["outcome"] == "interrupted"
    assert "nothing was published" in result.stderr


def test_sparks_complaint_about_the_request_is_short(job: str, stand_in: Stand) -> None:
    class AnalysisException(Exception):
        pass

    stand_in(
        "kanon_spark.engine.runner", run=failing(AnalysisException("[UNRESOLVED_COLUMN] no `x`\nJVM stacktrace:\n…"))
    )
    result = CliRunner().invoke(app, ["run", job])
    assert result.exit_code == 2
    assert "UNRESOLVED_COLUMN" in result.stderr
    assert "stacktrace" not in result.stderr


@pytest.mark.parametrize(("condition", "code"), [("CAST_INVALID_INPUT", 3), ("INVALID_FRACTION_OF_SECOND", 1)])
def test_sparks_run_time_errors_show_their_condition_only(
    job: str, stand_in: Stand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, condition: str, code: int
) -> None:
    """What an expression of the configuration makes of a value is told as such; anything else is unexpected."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    class SparkDateTimeException(Exception):
        def getCondition(self) -> str:
            return condition

    SparkDateTimeException.__module__ = "pyspark.errors.exceptions.captured"
    stand_in("kanon_spark.engine.runner", run=failing(SparkDateTimeException("the value 'Ada' cannot be cast")))
    result = CliRunner().invoke(app, ["run", job])
    assert result.exit_code == code
    assert condition in result.stderr
    assert "Ada" not in result.stderr


@pytest.mark.parametrize("arguments", [["run"], ["run", "a", "--nonsense"], ["nonsense"], ["run", "missing.yaml"]])
def test_wrong_command_lines_are_2(arguments: list[str]) -> None:
    assert CliRunner().invoke(app, arguments).exit_code == 2
    assert invoke(arguments) == 2


def test_a_wrong_configuration_is_2_and_lists_all(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("columns: {quasi_identifiers: [age]}\nprivacy: {k: 0, kk: 2}\n", encoding="utf-8")
    result = CliRunner().invoke(app, ["run", str(path)])
    assert result.exit_code == 2
    assert "2 problems" in result.stderr


def test_demo_runs_where_it_is_told(stand_in: Stand, good_engine: list[Any], tmp_path: Path) -> None:
    seen: list[Path] = []

    def run_demo(out_dir: Path, listeners: Any, *, rows: int) -> Any:
        seen.append(out_dir)
        assert rows == 700
        return SimpleNamespace(manifest=MANIFEST)

    stand_in("kanon_spark.demo", run_demo=run_demo)
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path), "--rows", "700"])
    assert (result.exit_code, seen) == (0, [tmp_path])
    assert result.stdout == "r1\n"


def test_schema_prints_json() -> None:
    result = CliRunner().invoke(app, ["schema"])
    assert json.loads(result.stdout)["title"] == "kanon_spark configuration"


def test_gc_says_what_it_removed(job: str, stand_in: Stand) -> None:
    stand_in("kanon_spark.engine.session", get_spark=lambda **_: "spark")
    stand_in("kanon_spark.releases.gc", collect_garbage=lambda spark, loaded: ["/w/_kanon_x_signatures"])
    result = CliRunner().invoke(app, ["gc", job])
    assert "removed 1 leftover\n  /w/_kanon_x_signatures" in result.stdout
    assert json.loads(CliRunner().invoke(app, ["gc", job, "--json"]).stdout)["removed"] == ["/w/_kanon_x_signatures"]


def test_version() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout.startswith("kanon 0.")


def test_the_job_for_spark_submit_is_run_with_the_same_options(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import runpy

    entry = runpy.run_path(str(repo / "jobs" / "anonymize.py"))
    words = entry["arguments"](["--config", "c.yaml", "--set", "a.b=c", "--set", "d=e", "--json"])
    assert words == ["run", "--set", "a.b=c", "--set", "d=e", "--json", "--", "c.yaml"]
    monkeypatch.setattr(sys, "argv", ["anonymize.py", "--config", "missing.yaml"])
    assert entry["main"]() == 2
