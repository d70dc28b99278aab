"""Stages: events, timings, failpoints; and what the outcome writes down."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kanon_spark.config.loader import load_config
from kanon_spark.engine import hadoop, stages
from kanon_spark.engine.outcome import read_reports, restore_reports, write_failure
from kanon_spark.engine.refuse import as_known, refuse_errors
from kanon_spark.engine.stages import STAGES, RunContext, StageEvent, failpoint, new_run_id
from kanon_spark.errors import DataError, InternalError, RequestError, SourceChangedError
from kanon_spark.releases.workdir import RUN_ID


@pytest.fixture
def ctx(monkeypatch: pytest.MonkeyPatch) -> RunContext:
    monkeypatch.setattr(stages, "describe_jobs", lambda spark, text: None)
    return RunContext(SimpleNamespace(version="4"))  # type: ignore[arg-type]


def test_listeners_hear_start_notes_and_end(ctx: RunContext) -> None:
    heard: list[StageEvent] = []
    ctx.listeners.append(heard.append)
    with ctx.stage("solve"):
        ctx.note("12 classes")
    with ctx.stage("solve"):
        pass
    assert [(event.stage, event.state) for event in heard] == [
        ("solve", "start"), ("solve", "note"), ("solve", "end"), ("solve", "start"), ("solve", "end"),
    ]  # fmt: skip
    assert heard[0].text == STAGES["solve"]
    assert ctx.seconds["solve"] >= heard[2].seconds + heard[4].seconds - 1e-9


def test_an_unknown_stage_is_a_bug(ctx: RunContext) -> None:
    with pytest.raises(KeyError), ctx.stage("slove"):
        pass


def test_a_failpoint_fails_at_the_end_of_its_stage(ctx: RunContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KANON_FAIL_AT", "write")
    done = []
    with ctx.stage("solve"):
        done.append("solve")
    with pytest.raises(InternalError, match="write"), ctx.stage("write"):
        done.append("write")
    assert done == ["solve", "write"]
    assert set(ctx.seconds) == {"solve", "write"}
    failpoint("publish:between")  # another point: nothing happens


def test_run_ids_are_what_the_work_directory_expects() -> None:
    import re

    ids = {new_run_id() for _ in range(50)}
    assert len(ids) == 50
    assert all(re.fullmatch(RUN_ID, each) for each in ids)


def test_all_findings_come_in_one_error() -> None:
    def finding(level: str, path: str, code: int | None = None) -> Any:
        return SimpleNamespace(level=level, path=path, message=f"about {path}", fix=f"mend {path}", exit_code=code)

    refuse_errors([finding("warning", "columns.x")])
    with pytest.raises(DataError, match=r"about columns\.a") as alone:
        refuse_errors([finding("error", "columns.a", 3), finding("warning", "columns.x")])
    assert (alone.value.where, alone.value.fix) == ("columns.a", "mend columns.a")
    with pytest.raises(RequestError) as both:
        refuse_errors([finding("error", "columns.a", 3), finding("error", "columns.b", 2)])
    assert "2 problems" in str(both.value)
    assert "mend columns.b" in str(both.value)


def test_a_source_file_that_went_away_is_the_sources_fault() -> None:
    text = "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file {}. File does not exist."
    gone = as_known(RuntimeError(text.format("file:///data/people/part-0.parquet")), run_id="R1")
    assert isinstance(gone, SourceChangedError)
    assert "people" not in str(gone)
    ours = as_known(RuntimeError(text.format("file:///w/.kanon/_kanon_R1_signatures/part-0")), run_id="R1")
    assert isinstance(ours, InternalError)
    other = as_known(ValueError("secret value"), run_id="R1")
    assert isinstance(other, InternalError)
    assert "secret" not in str(other)
    known = DataError("x")
    assert as_known(known, run_id="R1") is known


def test_reports_are_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hadoop, "default_scheme", lambda spark: "file")
    spark: Any = None
    manifest, report = tmp_path / "manifest.json", tmp_path / "report.html"
    manifest.write_text("old", encoding="utf-8")
    files = {"manifest": str(manifest), "report": str(report), "release": None}
    standing = read_reports(files, spark=spark)
    manifest.write_text("new", encoding="utf-8")
    report.write_text("new", encoding="utf-8")
    restore_reports(standing, spark=spark)
    assert manifest.read_text(encoding="utf-8") == "old"
    assert not report.exists()
    assert read_reports({"manifest": None, "report": None}, spark=spark) == {}


def test_a_failure_is_told_beside_the_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hadoop, "default_scheme", lambda spark: "file")
    config = tmp_path / "job.yaml"
    config.write_text("columns: {quasi_identifiers: [age]}\nreport: {manifest: out/run.json}\n", encoding="utf-8")
    write_failure(load_config(config), {"outcome": "failed", "run_id": "r"}, spark=None)  # type: ignore[arg-type]
    assert '"failed"' in (tmp_path / "out" / "run.failed.json").read_text(encoding="utf-8")
    assert not (tmp_path / "out" / "run.json").exists()
