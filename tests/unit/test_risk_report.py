"""What the risk facts say of themselves, and how they look in a terminal."""

import json
from dataclasses import replace
from io import BytesIO, TextIOWrapper

import pytest
from rich.console import Console

from kanon_spark.report.risk_facts import attack_lines
from kanon_spark.risk.assessment import _attack_notes
from kanon_spark.risk.combinations import Told, column_sets, rank_columns, riskiest
from kanon_spark.risk.console import render_risk
from kanon_spark.risk.coverage import Reading
from kanon_spark.risk.facts import Attack, AttackSide, Guess, RiskReport, TableRisk
from kanon_spark.risk.sizes import Sizes, class_risk

TOLD = [Told((0,), 2, 0, 8), Told((1,), 4, 2, 2), Told((0, 1), 4, 3, 2)]
NAMES = ["sex", "zip [red]"]


def table(sizes: dict[int, int], unique: int) -> TableRisk:
    rows = sum(size * many for size, many in sizes.items())
    told = rank_columns(TOLD, NAMES, rows=5), riskiest(TOLD, NAMES, rows=5)
    return TableRisk(class_risk(Sizes(rows, "rows", sizes, unique, rows)), told[0], told[1], largest=2)


BEFORE = AttackSide("rows", 0.6, 1.0, 1.0, 0, (Guess("ill", 0.9, 0.8, 0.5, 1.0, 0.5),))
AFTER = AttackSide("rows", 0.1, 0.2, 5.0, 1, (Guess("ill", 0.6, 0.5, 0.5, 0.7, 0.5),))
ATTACK = Attack(("sex", "zip [red]"), 10, 9, 0, BEFORE, AFTER, k=5, unread={"sex": 1})
REPORT = RiskReport(table({1: 2, 3: 1}, 2), table({5: 1}, 0), ATTACK, notes=("mind this",))


def shown(report: RiskReport, *, encoding: str = "utf-8") -> str:
    out = TextIOWrapper(BytesIO(), encoding=encoding)
    render_risk(report, Console(file=out, width=160, highlight=False))
    out.flush()
    return out.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined, no-any-return]


def test_columns_and_combinations_are_ranked() -> None:
    ranks = rank_columns(TOLD, NAMES, rows=5)
    assert [(rank.name, rank.distinct, rank.distinction, round(rank.separation, 6)) for rank in ranks] == [
        ("zip [red]", 4, 0.8, 0.9),
        ("sex", 2, 0.4, 0.6),
    ]
    found = riskiest(TOLD, NAMES, rows=5)
    assert [each.columns for each in found] == [("zip [red]",), ("sex",), ("sex", "zip [red]")]
    assert [each.unique_share for each in found] == [0.4, 0.0, 0.6]
    assert [each.average_size for each in found] == [1.25, 2.5, 1.25]
    assert [each.columns for each in riskiest(TOLD, NAMES, rows=5, per_size=1)] == [
        ("zip [red]",),
        ("sex", "zip [red]"),
    ]


def test_estimates_are_scaled_for_several_columns_only() -> None:
    found = {each.columns: each for each in riskiest(TOLD, NAMES, rows=50, step=10)}
    assert found[("zip [red]",)].unique_share == pytest.approx(2 / 50)
    assert found[("sex", "zip [red]")].unique_share == pytest.approx(30 / 50)
    assert found[("sex", "zip [red]")].average_size == pytest.approx(50 / 40)


def test_one_row_separates_nothing() -> None:
    assert rank_columns([Told((0,), 1, 1, 0)], ["sex"], rows=1)[0].separation == 0.0


@pytest.mark.parametrize("count", [1, 5, 6, 14, 15, 31, 32, 63])
def test_combinations_stay_bounded_and_hold_every_column(count: int) -> None:
    sets = column_sets(count)
    assert len(sets) <= 512
    assert sets[:count] == [(place,) for place in range(count)]
    assert max(map(len, sets)) == (count if count <= 5 else 3 if count <= 14 else 2 if count <= 31 else 1)


def test_the_highest_risk_is_that_of_the_release() -> None:
    assert REPORT.highest == 0.2
    assert replace(REPORT, after=None, attack=replace(ATTACK, after=None)).highest == 1.0
    # The attack counts where it finds more than the class sizes tell.
    assert replace(REPORT, attack=replace(ATTACK, after=replace(AFTER, worst=0.5))).highest == 0.5
    assert replace(REPORT, attack=None).highest == 0.2


def test_an_attack_holds_up_to_one_in_k() -> None:
    assert ATTACK.limit == 0.2
    assert ATTACK.holds
    assert not replace(ATTACK, after=replace(AFTER, worst=0.25)).holds
    assert not replace(ATTACK, k=6).holds
    assert replace(ATTACK, k=None).holds
    assert replace(ATTACK, after=None).holds


def test_everything_is_plain_json() -> None:
    plain = json.loads(json.dumps(REPORT.to_json()))
    assert plain["attack"]["limit"] == 0.2
    assert plain["attack"]["after"]["guesses"][0]["column"] == "ill"
    assert plain["before"]["sizes"]["prosecutor"] == {
        "highest": 1.0,
        "average": 0.6,
        "above": [{"threshold": 0.05, "share": 1.0}, {"threshold": 0.2, "share": 1.0}],
    }
    assert plain["before"]["combinations"][0]["example"] is None
    assert plain["notes"] == ["mind this"]


def test_the_terminal_shows_before_and_after_and_reads_no_markup() -> None:
    text = shown(REPORT)
    for words in (
        "before",
        "after",
        "zip [red]",
        "prosecutor, highest",
        "100.0%",
        "20.0%",
        "mind this",
        "ill: base rate",
    ):
        assert words in text, words
    assert "at most 1/k = 20.0% is allowed" in text
    assert "easiest to find:" not in text


def test_a_terminal_of_few_characters_shows_the_same_numbers() -> None:
    assert "20.0%" in shown(replace(REPORT, notes=("naïve…",)), encoding="ascii")


def test_values_are_shown_where_they_are_there_and_cleaned() -> None:
    combination = replace(REPORT.before.combinations[0], example={"zip [red]": "12\x1b[31m345"})
    told = replace(REPORT, before=replace(REPORT.before, combinations=(combination,)))
    told = replace(told, attack=replace(ATTACK, worst_target={"sex": "f", "zip [red]": None}))
    text = shown(told)
    assert "12?[31m345" in text
    assert "easiest to find: sex = f, zip [red] = null" in text
    assert "\x1b" not in text


def test_one_table_alone_has_one_column_of_numbers() -> None:
    text = shown(replace(REPORT, after=None, attack=replace(ATTACK, after=None, k=None), notes=()))
    assert "before" not in text
    assert "on the table" in text
    assert "allowed" not in text


def test_the_most_certain_guess_stands_beside_what_limits_it() -> None:
    text = shown(REPORT)
    assert "ill: most sure" in text
    assert "70.0%" in text
    assert "50.0% of all rows have the most frequent value" in text
    told = replace(AFTER.guesses[0], limit=0.75, limited_by="alpha = 0.75")
    limited = replace(REPORT, attack=replace(ATTACK, after=replace(AFTER, guesses=(told,))))
    assert "alpha = 0.75 allows at most 75.0%" in shown(limited)

    privacy = {"alpha(ill)": {"model": "alpha", "column": "ill", "words": "alpha of 0.75"}}
    lines = {line.name: line for line in attack_lines({"privacy": privacy, "risk": limited.to_json()})}
    assert (lines["ill: most sure"].before, lines["ill: most sure"].after) == ("100.0%", "70.0%")
    assert "Asked: every class has alpha of 0.75." in lines["ill: most sure"].sentence
    assert "alpha = 0.75 allows at most 75.0% on the release." in lines["ill: most sure"].sentence
    assert "Asked" not in lines["ill: how sure"].sentence, "a mean is not what models limit"
    assert lines["ill: most sure"].formula == "largest share of the candidates"

    without = {line.name: line for line in attack_lines({"privacy": privacy, "risk": REPORT.to_json()})}
    assert "That sets no limit to this share. Of all its rows 50.0%" in without["ill: most sure"].sentence
    unasked = {line.name: line for line in attack_lines({"risk": REPORT.to_json()})}
    assert "no limit" not in unasked["ill: most sure"].sentence


def test_notes_tell_of_means_and_ask_for_a_configuration_only_where_there_is_none() -> None:
    read = {"sex": Reading("text"), "zip [red]": Reading("text")}
    (known,) = _attack_notes(ATTACK, read)
    assert "their rows were not published; nothing published covers their value of 'sex' (1)" in known
    (blind,) = _attack_notes(ATTACK, {"zip [red]": read["zip [red]"]})
    assert "give --config, so that hierarchies and means are known" in blind
    whole = replace(ATTACK, after=replace(AFTER, unmatched=0), unread={})
    assert _attack_notes(whole, read) == []
    (means,) = _attack_notes(whole, {**read, "sex": Reading("integer", mean=True)})
    assert means.startswith("'sex': published as means")
    assert "'prosecutor, highest'" in means
