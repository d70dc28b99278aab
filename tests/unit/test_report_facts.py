"""What the reports read out of a manifest."""

from typing import Any

import pytest

from kanon_spark.report import facts, risk_facts
from kanon_spark.report.figures import figures


def test_verdict_counts_persons_where_a_unit_is_named() -> None:
    manifest = {"outcome": "published", "privacy": {"unit": "id", "k": {"asked": 5, "achieved": 7}}}
    assert facts.verdict(manifest).text.endswith("at least 7 persons.")


def test_verdict_counts_persons_where_there_are_fewer_than_rows() -> None:
    manifest = {"persons": 8, "rows": {"input": 10}, "privacy": {"k": {"asked": 2, "achieved": 2}}}
    assert facts.unit_word(manifest) == "persons"
    assert facts.unit_word({**manifest, "persons": 10}) == "rows"


def test_verdict_is_bad_below_k() -> None:
    answer = facts.verdict({"outcome": "published", "privacy": {"k": {"asked": 5, "achieved": 4}}})
    assert not answer.good
    assert "Not 5-anonymous" in answer.text


def test_verdict_of_a_failed_run_says_why() -> None:
    answer = facts.verdict({"outcome": "failed", "error": {"message": "too few persons"}})
    assert answer == facts.Verdict(False, "Nothing was published: too few persons")


def test_figures_leave_out_what_is_missing() -> None:
    assert figures({}) == []
    names = [figure.name for figure in figures({"metrics": {"gcp": 0.1, "gcp_bound": None, "gcp_gap": None}})]
    assert names == ["loss"]


def test_every_figure_has_a_sentence(manifest: dict[str, object]) -> None:
    found = figures(manifest)
    assert len(found) == 11
    assert all(figure.sentence.endswith(".") and figure.value and figure.formula for figure in found)


def test_every_model_says_what_was_asked_and_what_the_worst_class_has(manifest: dict[str, Any]) -> None:
    diversity, population = facts.models(manifest)
    assert diversity.figure == facts.Figure(
        "l-diversity of diagnosis",
        "3.142",
        "Asked: values of an entropy of at least ln 3; every class has it, the worst as much as this.",
        "least exp(-Σ p ln p)",
    )
    assert (population.figure.name, population.figure.value) == ("k-map", "23")
    manifest["privacy"]["k_map"]["passed"] = False
    assert not facts.verdict(manifest).good
    assert facts.models({"privacy": {"k": {"asked": 3}, "odd": {"model": ["x"]}, "unit": "id"}}) == []


def test_risks_stand_side_by_side(manifest: dict[str, Any]) -> None:
    lines = {line.name: (line.before, line.after) for line in risk_facts.risk_lines(manifest)}
    assert lines["unique"] == ("42.0%", "0%")
    assert lines["prosecutor, highest"] == ("100.0%", "10.0%")
    assert lines["prosecutor, above 0.2"] == ("42.0%", "0%")
    attack = {line.name: (line.before, line.after) for line in risk_facts.attack_lines(manifest)}
    assert attack["expected success"] == ("61.0%", "5.50%")
    assert attack["its candidates"] == ("1", "11")
    assert attack["diagnosis: guessed right"] == ("93.0%", "47.0%")
    assert attack["diagnosis: base rate"] == ("31.0%", "31.0%")
    lines_of = [*risk_facts.risk_lines(manifest), *risk_facts.attack_lines(manifest)]
    assert all(line.sentence.endswith(".") and line.formula for line in lines_of)


def test_what_columns_tell_stands_side_by_side(manifest: dict[str, Any]) -> None:
    assert risk_facts.telling_columns(manifest) == [
        risk_facts.Telling("zip", ("900", "1.80%", "75.0%"), ("12", "0.02%", "75.0%"))
    ]
    del manifest["risk"]["after"]["combinations"]
    assert risk_facts.telling_combinations(manifest) == [
        risk_facts.Telling("age + zip", ("20.0%", "1,234.6"), ("-", "-"))
    ]
    assert risk_facts.telling_columns({"risk": {"before": {"columns": "text"}}}) == []


def test_every_kind_of_model_names_its_formula() -> None:
    kinds = [
        ("l_diversity", 3),
        ("l_diversity", {"l": 3, "kind": "recursive", "c": 2}),
        ("t_closeness", 0.2),
        ("t_closeness", {"t": 0.2, "distance": "ordered"}),
        ("t_closeness", {"t": 0.2, "distance": "hierarchical"}),
        ("alpha", {"alpha": 0.2, "values": ["x"]}),
        ("beta_likeness", {"beta": 1, "kind": "enhanced"}),
        ("beta_likeness", {"beta": 1, "kind": "basic"}),
        ("delta_disclosure", 1.5),
        ("personal_k", "wish"),
        ("k_map", 9),
    ]
    manifest = {"privacy": {str(place): {"model": model, "asked": asked} for place, (model, asked) in enumerate(kinds)}}
    formulas = [model.formula for model in facts.models(manifest)]
    assert len(set(formulas)) == len(kinds) and all(formulas)


def test_persons_who_are_left_out_are_told(manifest: dict[str, Any]) -> None:
    found = {figure.name: figure.value for figure in figures({**manifest, "persons_suppressed": 4})}
    assert (found["persons released"], found["persons suppressed"]) == ("42,650", "4")
    assert "persons released" not in {figure.name for figure in figures(manifest)}


@pytest.mark.parametrize(
    "broken", [None, "text", {}, {"before": None}, {"before": {"sizes": {}}, "after": None, "attack": {"before": {}}}]
)
def test_risks_of_an_incomplete_manifest(broken: object) -> None:
    lines = [*risk_facts.risk_lines({"risk": broken}), *risk_facts.attack_lines({"risk": broken})]
    assert all((line.before, line.after) == ("-", "-") for line in lines)
    assert risk_facts.risk_notes({"risk": broken}) == []


@pytest.mark.parametrize(
    ("size", "expected"),
    [("k..2k-1", "10 to 19"), ("16k..32k-1", "160 to 319"), ("<k", "<k"), ("many", "many"), ("ak..bk-1", "ak..bk-1")],
)
def test_class_sizes_work_out_k(size: str, expected: str) -> None:
    manifest = {"privacy": {"k": {"asked": 10}}, "class_sizes": {"histogram": {size: 3}}}
    assert facts.class_sizes(manifest) == [(expected, 3)]


def test_samples_pair_rows_and_keep_the_kept_columns(manifest: dict[str, object]) -> None:
    rows = facts.samples(manifest)
    assert rows is not None
    assert rows.qi == ("age", "sex", "zip")
    assert rows.kept == ("diagnosis", "cost")
    assert len(rows.before) == len(rows.after) == 3


@pytest.mark.parametrize("broken", [None, "text", [], [1, 2], {"before": []}, {"before": [{}], "after": []}])
def test_samples_that_are_none(broken: object) -> None:
    assert facts.samples({"samples": broken}) is None


def test_places_come_from_files_then_from_the_sink() -> None:
    assert facts.places({"sink": {"path": "out/x"}}) == [("release", "out/x")]
    files = {"release": "/a", "manifest": "/b", "report": None}
    assert facts.places({"files": files, "sink": {"path": "out/x"}}) == [("release", "/a"), ("manifest", "/b")]
    assert facts.places({"sink": None}) == []


def test_numbers_are_never_taken_from_booleans_or_text() -> None:
    assert facts.number({"a": {"b": True}}, "a", "b") is None
    assert facts.number({"a": {"b": "7"}}, "a", "b") is None
    assert facts.number({"a": 3}, "a", "b") is None
