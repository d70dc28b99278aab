"""The papers' verdicts on invented cells, their table, and the command line's refusals."""

import builtins
import io
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from papers import graph_recoding, k_member, privacy_gain, similarity, suppression
from papers.__main__ import PAPERS, app
from papers.cells import off_majority, sample, split
from papers.charts import need_altair, svg_of
from papers.paper import Comparison, Finding, Plot, World, compare, worst
from papers.show import findings_table, summary
from rich.console import Console
from typer.testing import CliRunner


def _cells(values: dict[str, list[float]], *, value: str = "loss") -> pd.DataFrame:
    rows = [{"method": name, "k": k, value: each} for name, one in values.items() for k, each in enumerate(one)]
    return pd.DataFrame(rows)


def test_a_method_is_compared_setting_by_setting() -> None:
    cells = _cells({"a": [1.0, 2.0, 3.0, 0.0], "b": [2.0, 2.0, 1.5, 0.0]})
    found = compare(cells, "loss", "a", "b", by=["k"])
    assert (found.better, found.settings) == (3, 4)
    assert found.ratio == 1.0
    assert found.holds == "no"
    assert "3 of 4" in str(found)


@pytest.mark.parametrize(("better", "holds"), [(10, "yes"), (8, "mostly"), (7, "no"), (0, "no")])
def test_mostly_is_four_of_five(better: int, holds: str) -> None:
    assert Comparison(better, 10, 1.0).holds == holds


def test_the_weakest_verdict_counts() -> None:
    assert worst(["yes", "yes"]) == "yes"
    assert worst(["mostly", "no"]) == "no"


def _holds(verdicts: Callable[[pd.DataFrame], list[Finding]], cells: pd.DataFrame) -> list[str]:
    return [finding.holds for finding in verdicts(cells)]


def _graph(paper_cut: float) -> pd.DataFrame:
    values = {graph_recoding.PAPER_CUT: paper_cut, graph_recoding.LOSS_CUT: 0.5}
    values |= {graph_recoding.MONDRIAN: 1.0, graph_recoding.KMEMBER: 1.0}
    return pd.DataFrame(
        {"method": name, "k": k, "qis": 5, "gcp_hierarchy": each, "dm": each, "cavg": each, "largest": 7}
        for name, each in values.items()
        for k in (3, 6)
    )


def test_graph_recoding_holds_only_where_its_own_rule_is_the_least() -> None:
    assert _holds(graph_recoding.verdicts, _graph(0.9)) == ["yes"] * 4
    refuted = graph_recoding.verdicts(_graph(1.1))
    assert [finding.holds for finding in refuted] == ["no", "no", "no", "yes"]
    assert all(finding.why for finding in refuted)


def _scores(kactus: float, others: float) -> pd.DataFrame:
    rows = []
    for name in (suppression.KACTUS, suppression.SINGLE, *suppression.OTHERS):
        accuracy = kactus if name == suppression.KACTUS else others
        rows.append(
            {
                "part": "scores",
                "method": name,
                "k": 10,
                "split": 0,
                "majority": 0.75,
                "gcp_published": 0.3,
                "suppressed_cells": 0.4,
                **{f"{short}_release_accuracy": accuracy for short in ("tree", "nb")},
                **{f"{short}_original_accuracy": 0.83 for short in ("tree", "nb")},
            }
        )
    growth = [
        {"part": "growth", "method": suppression.KACTUS, "k": 10, "rows": rows, "cpu_seconds": rows / 1000}
        for rows in (1000, 4000)
    ]
    return pd.DataFrame(rows + growth)


def test_kactus_must_be_ahead_of_the_best_of_the_others() -> None:
    assert _holds(suppression.verdicts, _scores(0.82, 0.80)) == ["yes", "yes", "yes", "yes", "yes"]
    assert _holds(suppression.verdicts, _scores(0.805, 0.81)) == ["mostly", "mostly", "mostly", "yes", "yes"]
    behind = suppression.verdicts(_scores(0.76, 0.80))
    assert [finding.holds for finding in behind] == ["no", "no", "no", "mostly", "yes"]
    assert "40% of its cells" in behind[0].why
    assert "ahead at 0 of 1" in behind[0].why


def _bayes(release: float, build: float) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "qis": width,
            "k": k,
            "nb_original_accuracy": 0.8,
            "nb_original_seen": 0.81,
            "nb_release_accuracy": release,
            "build_original_seconds": 0.2,
            "build_release_seconds": build,
        }
        for width in (2, 3)
        for k in (2, 3, 4)
    )


def test_privacy_gain_is_held_to_the_shares_it_printed() -> None:
    assert _holds(privacy_gain.verdicts, _bayes(0.79, 0.1)) == ["no", "yes", "yes", "yes", "yes"]
    assert _holds(privacy_gain.verdicts, _bayes(0.75, 0.2)) == ["no", "no", "no", "no", "no"]
    shown = privacy_gain.verdicts(_bayes(0.79, 0.1))[1]
    assert "97.06 / 97.19 / 97.12" in shown.theirs
    assert "98.75%" in shown.ours


def _clusters(greedy: float, slope: float) -> pd.DataFrame:
    rows = []
    losses = {k_member.MEDIAN: 2.0, k_member.GREEDY: greedy, k_member.MODIFIED: 1.04, k_member.STRICT: 1.5}
    for name, loss in (losses | {k_member.OURS: 0.9}).items():
        common = {"method": name, "dm": loss, "cavg": 1.1, "gcp_set": loss, "cpu_seconds": 3 - loss}
        off = 0.1 if name in (k_member.MODIFIED, k_member.STRICT) else 0.2
        rows += [{**common, "part": "by k", "k": k, "rows": 9, "total_il": loss, "off_majority": off} for k in (5, 10)]
        rows += [{**common, "part": "by rows", "k": 5, "rows": n, "total_il": loss * n**slope} for n in (100, 1000)]
    return pd.DataFrame(rows)


def test_k_member_is_judged_by_loss_sizes_purity_and_growth() -> None:
    assert _holds(k_member.verdicts, _clusters(1.0, 1.0)) == ["yes"] * 8
    assert _holds(k_member.verdicts, _clusters(2.5, 0.7)) == ["no", "yes", "no", "yes", "yes", "no", "no", "no"]


def _tuples(sbca: float, classes: int) -> pd.DataFrame:
    known = {similarity.SBCA: classes, similarity.MONDRIAN: 200, similarity.INCOGNITO: 20, similarity.DATAFLY: 10}
    return pd.DataFrame(
        {
            "method": name,
            "k": k,
            "gcp_published": sbca if name == similarity.SBCA else 0.15,
            "classes": count,
            "signatures": 900,
        }
        for name, count in known.items()
        for k in (2, 100)
    )


def test_similarity_is_judged_by_loss_and_tuples() -> None:
    assert _holds(similarity.verdicts, _tuples(0.1, 500)) == ["yes"] * 4
    level = _tuples(0.1, 500).replace({"classes": {20: 10}})  # equal is not less
    assert _holds(similarity.verdicts, level)[3] == "mostly"
    assert _holds(similarity.verdicts, _tuples(0.3, 150)) == ["no", "no", "no", "mostly"]


def test_every_paper_is_there_with_claims_and_plots() -> None:
    assert list(PAPERS) == ["000", "001", "002", "003", "004"]
    for paper in PAPERS.values():
        assert paper.plots
        assert paper.setting


def test_the_table_tells_claim_figures_verdict_and_reason() -> None:
    finding = Finding("a claim", "their 1", "our 2", "no", "a reason")
    console = Console(width=160, file=io.StringIO())
    console.print(findings_table(PAPERS["000"], [finding]))
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    for part in ("a claim", "their 1", "our 2", "no", "a reason", "Graph based"):
        assert part in shown
    assert summary([finding, Finding("", "", "", "yes")]) == "2 claims: 1 hold, 1 are refuted."


def test_charts_are_static_and_escape_nothing_to_a_network() -> None:
    cells = pd.DataFrame({"method": ["a", "a", "b", "b"], "k": [2, 3, 2, 3], "loss": [0.1, 0.2, 0.2, 0.3], "part": "x"})
    drawn = svg_of(Plot("p", "Loss", "k", "loss", where="part == 'x'"), cells)
    assert drawn.startswith("<svg")
    assert "Loss" in drawn
    assert "<script" not in drawn
    assert svg_of(Plot("p", "Loss", "k", "loss", panel="part"), cells).startswith("<svg")


def test_samples_and_splits_are_functions_of_the_seed() -> None:
    rows = pd.DataFrame({"rid": range(100)})
    assert sample(rows, 10, seed=1).equals(sample(rows, 10, seed=1))
    assert not sample(rows, 10, seed=1).equals(sample(rows, 10, seed=2))
    assert sample(rows, 200, seed=1) is rows
    train, test = split(rows, share=0.25, seed=0)
    assert len(test) == 25
    assert sorted([*train["rid"], *test["rid"]]) == list(range(100))


def test_rows_off_the_majority_of_their_class() -> None:
    rows = pd.DataFrame({"q": ["a"] * 3 + ["b"] * 2 + ["c"], "income": ["x", "x", "y", "y", "y", "x"]})
    released = rows[:5]
    assert off_majority(rows, released, ["q"]) == pytest.approx(2 / 6)  # one in class a, and one suppressed


def test_the_small_version_is_picked_only_when_asked() -> None:
    rows = pd.DataFrame()
    assert World(rows).pick(1, 2) == 1
    assert World(rows, small=True).pick(1, 2) == 2


def test_unknown_papers_and_missing_packages_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    result = CliRunner().invoke(app, ["--only", "007"])
    assert result.exit_code == 2
    assert "000, 001" in " ".join(result.output.split())
    real = builtins.__import__

    def without_altair(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("altair"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_altair)
    with pytest.raises(SystemExit, match=r"kanon-spark\[charts\]"):
        need_altair()
