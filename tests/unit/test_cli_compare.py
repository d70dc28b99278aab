"""`kanon compare`: what is asked of the engine, what is written, and what wrong requests end with."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from compared_world import a_comparison
from typer.testing import CliRunner

from kanon_spark.cli.main import app
from kanon_spark.config.loader import load_config
from kanon_spark.explore.compare.result import Comparison, Limits

Run = Callable[..., Any]


@pytest.fixture
def job(tmp_path: Path) -> str:
    path = tmp_path / "job.yaml"
    path.write_text("source: t.csv\ncolumns: {quasi_identifiers: [age]}\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The engine, played by a stand-in that keeps what it was asked."""
    seen: list[dict[str, Any]] = []

    def compare(loaded: Any, **arguments: Any) -> Comparison:
        seen.append({"loaded": loaded, **arguments})
        return a_comparison(Limits(arguments["max_gcp"], arguments["max_risk"]))

    monkeypatch.setattr("kanon_spark.explore.compare.compare", compare)
    return seen


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["compare", *arguments])


def test_everything_that_is_asked_arrives(asked: list[dict[str, Any]], job: str) -> None:
    done = run(
        job, "--methods", "lattice,mst:cut=paper", "--k", "2,5", "--sample", "0.1", "--max-gcp", "0.1",
        "--max-risk", "0.2", "--label", "ill", "--set", "privacy.unit=who",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    (seen,) = asked
    assert (seen["methods"], seen["k"], seen["sample"]) == ("lattice,mst:cut=paper", "2,5", "0.1")
    assert (seen["max_gcp"], seen["max_risk"], seen["label"]) == (0.1, 0.2, "ill")
    assert seen["loaded"].config.privacy.unit == "who"
    assert "lattice at k = 10 loses 8.00%" in done.stdout
    assert "--write-config" in done.stdout


def test_everything_is_written_into_a_folder(asked: list[dict[str, Any]], job: str, tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    done = run(job, "--max-gcp", "0.1", "--out", str(out), "--json")
    assert done.exit_code == 0, done.output
    last = json.loads(done.stdout.splitlines()[-1])
    assert (last["outcome"], last["fits"], last["choice"]["k"]) == ("compared", True, 10)
    assert sorted(last["files"]) == ["config", "csv", "html", "json"]
    assert sorted(path.name for path in out.iterdir()) == [
        "compare-choice.yaml",
        "compare.csv",
        "compare.html",
        "compare.json",
    ]
    assert all(path.stat().st_mode & 0o077 == 0 for path in out.iterdir())
    assert load_config(out / "compare-choice.yaml").config.privacy.k == 10
    assert json.loads((out / "compare.json").read_text())["choice"]["method"] == "lattice"


def test_an_earlier_choice_does_not_stay_where_nothing_fits(
    asked: list[dict[str, Any]], job: str, tmp_path: Path
) -> None:
    choice = tmp_path / "c.yaml"
    assert run(job, "--max-gcp", "0.1", "--write-config", str(choice), "--quiet").stdout == ""
    assert choice.exists()
    done = run(job, "--max-gcp", "0.0001", "--write-config", str(choice), "--json")
    assert done.exit_code == 0
    last = json.loads(done.stdout.splitlines()[-1])
    assert (last["fits"], last["choice"], last["nearest"]["k"]) == (False, None, 2)
    assert not choice.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--methods", "latice"), "did you mean 'lattice'"),
        (("--methods", "lattice:cut=paper"), "has no option 'cut'"),
        (("--k", "1"), "is no k"),
        (("--sample", "2.5"), "is no sample"),
        (("--max-gcp", "7"), "is no share"),
        (("--max-risk", "-0.1"), "is no share"),
    ],
)
def test_wrong_requests_end_with_2_before_spark_starts(arguments: tuple[str, ...], said: str, job: str) -> None:
    done = run(job, *arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    told = run(job, *arguments, "--json")
    assert told.exit_code == 2
    assert json.loads(told.stdout.splitlines()[-1])["exit_code"] == 2


def test_a_configuration_without_a_source(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("columns: {quasi_identifiers: [age]}\n", encoding="utf-8")
    done = run(str(path))
    assert done.exit_code == 2
    assert "names no source" in done.stderr


def test_what_cannot_be_written_is_refused_before_the_work(
    asked: list[dict[str, Any]], job: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    for place in (tmp_path / "file" / "page.html", tmp_path):
        done = run(job, "--html", str(place))
        assert done.exit_code == 2
        assert "choose another path" in done.stderr
    assert asked == []


def test_nothing_measured_at_all_is_told_by_the_exit_code(
    job: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = a_comparison()
    none = Comparison(found.cells[2::3], found.limits, found.facts, found.variants[2:], found._loaded)
    monkeypatch.setattr("kanon_spark.explore.compare.compare", lambda loaded, **arguments: none)
    done = run(job, "--quiet")
    assert done.exit_code == 2
    assert "no target" in done.stdout
