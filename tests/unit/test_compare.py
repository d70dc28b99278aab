"""What is compared, which point is chosen, and how it reads as a table and as a configuration."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from compared_world import KS, a_cell, a_comparison, a_job

from kanon_spark.config.loader import load_config
from kanon_spark.errors import RequestError
from kanon_spark.explore.compare.choice import rebased
from kanon_spark.explore.compare.request import (
    DEFAULT_KS,
    DEFAULT_METHODS,
    METHODS,
    Sample,
    sample_of,
    values_of_k,
    variants,
)
from kanon_spark.explore.compare.result import Cell, Limits, choose, nearest
from kanon_spark.explore.compare.words import answer, rule_text


def test_methods_keep_what_the_configuration_says_of_them() -> None:
    config = a_job(method={"name": "mst", "cut": "balanced", "effort": "fast"}).config
    found = variants("lattice, mst,mst:cut=paper:effort=high,prgain:beam=2,auto", config)
    assert [each.name for each in found] == ["lattice", "mst", "mst:cut=paper:effort=high", "prgain:beam=2", "lattice"]
    assert [each.spec.effort for each in found] == ["fast", "fast", "high", "fast", "fast"]
    assert [each.spec.cut for each in found] == [None, "balanced", "paper", None, None]
    assert found[3].spec.beam == 2
    assert [each.name for each in variants("lattice,lattice", config)] == ["lattice"]
    assert tuple(each.name for each in variants(None, config)) == DEFAULT_METHODS
    assert tuple(each.name for each in variants("all", config)) == METHODS
    assert variants(["kactus"], config, label="ill")[0].spec.target == "ill"
    assert variants("kactus:target=age", config, label="ill")[0].spec.target == "age"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("latice", "no method 'latice'; did you mean 'lattice'"),
        ("", "no method is named"),
        (" , ", "no method is named"),
        ("lattice:cut=paper", "lattice has no option 'cut'"),
        ("mst:cut", "'cut' is no option"),
        ("mst:cut=loud", "mst:cut=loud': cut"),
        ("prgain:beam=0", "beam"),
        ("prgain:beam=[1", "not readable as YAML"),
    ],
)
def test_methods_that_are_none(text: str, message: str) -> None:
    with pytest.raises(RequestError) as refused:
        variants(text, a_job().config)
    assert message in str(refused.value)
    assert refused.value.exit_code == 2


def test_values_of_k() -> None:
    assert values_of_k(None) == DEFAULT_KS
    assert values_of_k("50, 5,5") == (5, 50)
    assert values_of_k(7) == (7,)
    assert values_of_k([20, 10]) == (10, 20)
    for wrong in ("1", "0", "x", "2.5", "-3", "", [True], ["ten"]):
        with pytest.raises(RequestError):
            values_of_k(wrong)  # type: ignore[arg-type]


def test_samples() -> None:
    assert sample_of(None) is None
    assert sample_of("none") == sample_of("ALL") == Sample()
    assert sample_of("10_000") == sample_of(10_000) == Sample(rows=10_000)
    assert sample_of("0.25") == sample_of(0.25) == sample_of("25%") == Sample(share=0.25)
    for wrong in ("0", "1", "1.5", "-1", "half", "100%", "", 0, 1.0):
        with pytest.raises(RequestError, match="no sample"):
            sample_of(wrong)


CELLS = [
    a_cell("a", 5, 0.05),
    a_cell("b", 5, 0.04),
    a_cell("a", 10, 0.09),
    a_cell("b", 10, 0.08, risk=0.05),
    a_cell("c", 10, 0.08, risk=0.04),
    Cell("d", 10, reason="no"),
    a_cell("a", 50, 0.2),
]


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (Limits(), None),
        (Limits(max_gcp=0.1), ("c", 10)),  # the largest k that fits, then the least loss, then the lower risk
        (Limits(max_gcp=0.2), ("a", 50)),
        (Limits(max_gcp=0.04), ("b", 5)),
        (Limits(max_gcp=0.03), None),
        (Limits(max_risk=0.2), ("b", 5)),  # the least loss that fits
        (Limits(max_risk=0.1), ("c", 10)),
        (Limits(max_risk=0.03), ("a", 50)),
        (Limits(max_risk=0.01), None),
        (Limits(max_gcp=0.3, max_risk=0.2), ("b", 5)),  # both hold: the risk is enough, so the least loss
        (Limits(max_gcp=0.1, max_risk=0.045), ("c", 10)),
        (Limits(max_gcp=0.1, max_risk=0.03), None),
    ],
)
def test_the_rule_of_choice(limits: Limits, expected: tuple[str, int] | None) -> None:
    found = choose(CELLS, limits)
    assert (None if found is None else (found.method, found.k)) == expected


def test_equals_go_to_fewer_suppressed_rows_and_then_to_the_first() -> None:
    a, b = a_cell("a", 5, 0.1, suppressed=3), a_cell("b", 5, 0.1, suppressed=2)
    assert choose([a, b], Limits(max_gcp=0.1)) is b
    same = a_cell("c", 5, 0.1, suppressed=2)
    assert choose([a, b, same], Limits(max_gcp=0.1)) is b


def test_what_comes_nearest() -> None:
    found = nearest(CELLS, Limits(max_gcp=0.03))
    assert (found.method, found.k) == ("b", 5) if found else False
    found = nearest(CELLS, Limits(max_gcp=0.1, max_risk=0.03))  # 0.04 is beyond by 0.01, a loss of 0.2 by 0.1
    assert (found.method, found.k) == ("c", 10) if found else False
    assert nearest([Cell("d", 10, reason="no")], Limits(max_gcp=0.1)) is None


def test_the_answer_in_words() -> None:
    assert answer(a_comparison()).text == (
        "lattice loses least at every k: from 2.00% of the detail at k = 2 to 15.0% at k = 50."
    )
    fits = a_comparison(Limits(max_gcp=0.1))
    assert answer(fits).good is True
    assert answer(fits).text.startswith("lattice at k = 10 loses 8.00% of the detail, and nobody is found")
    assert rule_text(fits).startswith("Of 3 points that fit a loss of at most 10.0%")
    none = a_comparison(Limits(max_gcp=0.001, max_risk=0.5))
    assert answer(none).good is False
    assert "Nothing fits a loss of at most 0.10% and a worst-case risk of at most 50.0%" in answer(none).text
    assert "No method can: at least 1.00% is lost at these k. Nearest: lattice at k = 2" in answer(none).text
    assert "No method can" not in answer(a_comparison(Limits(max_gcp=0.015))).text
    assert rule_text(none) == ""


def test_table_csv_and_json_say_the_same() -> None:
    comparison = a_comparison(Limits(max_gcp=0.1))
    table = comparison.table
    assert list(table.columns[:4]) == ["method", "k", "gcp", "gcp_bound"]
    assert table["k"].tolist() == [k for k in KS for _ in range(3)]
    assert table[table["chosen"]][["method", "k"]].to_numpy().tolist() == [["lattice", 10]]
    lines = list(csv.DictReader(io.StringIO(comparison.to_csv())))
    assert [line["method"] for line in lines] == table["method"].tolist()
    assert lines[2]["reason"] == "no target"
    assert lines[2]["gcp"] == ""
    told = json.loads(json.dumps(comparison.to_json()))
    assert told["fits"] is True
    assert (told["choice"]["method"], told["choice"]["k"], told["nearest"]) == ("lattice", 10, None)
    assert [cell["gcp"] for cell in told["cells"][:3]] == [0.02, 0.05, None]
    assert told["k"] == list(KS)
    nothing = a_comparison(Limits(max_gcp=0.001)).to_json()
    assert (nothing["fits"], nothing["choice"]) == (False, None)
    assert nothing["nearest"]["k"] == 2
    assert a_comparison().to_json()["fits"] is None


def test_other_limits_need_no_new_comparison() -> None:
    comparison = a_comparison()
    assert comparison.best is None
    found = comparison.choose(max_risk=0.02)
    assert found.cells is comparison.cells
    assert found.best is not None
    assert (found.best.method, found.best.k) == ("lattice", 50)
    with pytest.raises(RequestError, match="no share"):
        comparison.choose(max_gcp=5)
    with pytest.raises(RequestError, match="no choice"):
        comparison.config_text()


def test_only_a_comparison_without_any_figure_fails() -> None:
    comparison = a_comparison()
    assert comparison.exit_code == 0
    lost = a_comparison()
    none = type(lost)(lost.cells[2::3], lost.limits, lost.facts, lost.variants, lost._loaded)
    assert none.exit_code == 2
    assert answer(none).good is False


EVERY_PATH: dict[str, Any] = {
    "name": "j",
    "source": {"path": "data/t.csv", "options": {"header": True}},
    "columns": {
        "quasi_identifiers": {
            "a": "trees/a.csv",
            "b": {"hierarchy": "trees/b.csv"},
            "c": {"hierarchy": {"csv": {"path": "trees/c.csv", "unknown": "root"}}},
            "d": {"hierarchy": {"csv": "trees/d.csv"}},
            "e": "flat",
            "f": {"hierarchy": {"interval": {"widths": [5]}}},
            "g": None,
            "h": "/far/h.csv",
            "i": {"hierarchy": {"reference": "icd10"}},
        },
        "sensitive": {"s": {"hierarchy": "trees/s.csv", "l_diversity": 2}},
    },
    "privacy": {"k": 3, "k_map": {"k": 5, "path": "people.parquet"}},
    "execution": {"work_dir": "work"},
    "sink": "out/release",
    "report": {"html": "out/r.html", "manifest": "s3a://bucket/m.json"},
    "schedule": {"ledger": "./ledger"},
}


def test_a_moved_configuration_names_the_same_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs, found = tmp_path / "jobs", tmp_path / "found" / "deep"
    jobs.mkdir()
    found.mkdir(parents=True)
    (jobs / "j.yaml").write_text(yaml.safe_dump(EVERY_PATH), encoding="utf-8")
    here = load_config(jobs / "j.yaml")
    (found / "j.yaml").write_text(
        yaml.safe_dump(rebased(dict(here.raw), base_dir=here.base_dir, folder=found)), encoding="utf-8"
    )
    there = load_config(found / "j.yaml")

    def places(loaded: Any) -> list[Any]:
        config = loaded.config
        qis = [
            loaded.resolve(spec.hierarchy.path) if hasattr(spec.hierarchy, "path") else spec.hierarchy
            for spec in config.columns.quasi_identifiers.values()
        ]
        sensitive = loaded.resolve(config.columns.sensitive["s"].hierarchy.path)
        named = [config.source.path, config.sink.path, config.report.html, config.report.manifest]
        named += [config.privacy.k_map.path, config.execution.work_dir, config.schedule.ledger]
        return [*qis, sensitive, *map(loaded.resolve, named)]

    assert places(there) == places(here)
    assert not any(str(tmp_path) in line for line in (found / "j.yaml").read_text().splitlines())
    assert rebased(dict(here.raw), base_dir=jobs, folder=jobs) == here.raw


def test_variables_and_default_folders_move_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TABLES", "/tables")
    monkeypatch.setenv("TREES", "trees")
    raw = {"source": "${TABLES}/t.csv", "columns": {"quasi_identifiers": {"a": "${TREES}/a.csv"}}}
    moved = rebased(raw, base_dir=tmp_path / "a", folder=tmp_path / "b")
    assert moved["source"] == "${TABLES}/t.csv"
    assert moved["columns"]["quasi_identifiers"]["a"] == "../a/${TREES}/a.csv"
    assert moved["execution"]["work_dir"] == "../a/.kanon"
    assert rebased({"schedule": {"ledger": "runs"}}, base_dir=tmp_path, folder=tmp_path / "b")["schedule"] == {
        "ledger": "runs"
    }, "the name of a table"
    far = rebased({"source": "t.csv"}, base_dir=Path("/jobs"), folder=Path("/tmp/x"))
    assert far["source"] == "/jobs/t.csv"


def test_the_chosen_configuration_is_the_job_with_that_method_and_k(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    comparison = a_comparison(Limits(max_gcp=0.1))
    path = comparison.write_config(tmp_path / "found" / "choice.yaml")
    assert path.stat().st_mode & 0o077 == 0
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# Chosen by `kanon compare`: lattice at k = 10.\n# Loss (GCP) 0.0800 (no release")
    found = load_config(path)
    assert (found.config.privacy.k, found.config.method.name) == (10, "lattice")
    job = load_config({**a_job().raw})
    assert found.config.columns.sensitive == job.config.columns.sensitive
    assert found.resolve(str(found.config.source and found.config.source.path)) == str(tmp_path / "data" / "t.parquet")
    other = comparison.write_config(tmp_path / "m.yaml", cell=comparison.cells[1])
    assert load_config(other).config.method.name == "mondrian"
