"""Risks by class sizes, coverage and matching, each against a brute-force twin."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kanon_spark.config.models import DateSpec, IntervalSpec, PrefixSpec, QiSpec
from kanon_spark.risk import matching
from kanon_spark.risk.coverage import Coverage, Reading
from kanon_spark.risk.matching import Matcher, Targets, label_names
from kanon_spark.risk.sizes import PopulationSize, Sizes, class_risk
from kanon_spark.verify.truth import Judge, judge_for

Rows = list[tuple[int, int]]
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=25)


@settings(max_examples=100, deadline=None)
@given(ROWS, st.sampled_from([0.05, 0.2, 0.5, 1.0]))
def test_risks_are_those_of_the_single_rows(rows: Rows, threshold: float) -> None:
    classes = Counter(rows)
    sizes = Sizes(len(rows), "rows", Counter(classes.values()), sum(n == 1 for n in classes.values()), len(rows))
    found = class_risk(sizes, thresholds=[threshold])
    each = [Fraction(1, classes[row]) for row in rows]
    assert found.prosecutor.highest == pytest.approx(float(max(each)))
    assert found.prosecutor.average == pytest.approx(float(sum(each) / len(rows)))
    assert found.prosecutor.above[0].share == pytest.approx(
        sum(1 / classes[row] > threshold for row in rows) / len(rows)
    )
    assert found.journalist == found.prosecutor
    assert found.against == "sample"
    assert found.marketer == pytest.approx(found.prosecutor.average)
    assert found.uniqueness == pytest.approx(sum(classes[row] == 1 for row in rows) / len(rows))


@settings(max_examples=100, deadline=None)
@given(ROWS, ROWS)
def test_a_population_is_counted_class_by_class(rows: Rows, others: Rows) -> None:
    classes, everyone = Counter(rows), Counter(rows + others)
    sizes = Sizes(len(rows), "rows", Counter(classes.values()), 0, len(rows))
    grouped: dict[int, list[int]] = {}
    for key, many in classes.items():
        grouped.setdefault(everyone[key], []).append(many)
    population = [PopulationSize(size, len(many), sum(many)) for size, many in grouped.items()]
    found = class_risk(sizes, thresholds=[0.2], population=population)
    marketer = sum(1 / everyone[row] for row in rows) / len(rows)
    assert found.journalist.highest == pytest.approx(max(1 / everyone[row] for row in rows))
    assert found.journalist.average == pytest.approx(
        max(marketer, len(classes) / sum(everyone[key] for key in classes))
    )
    assert found.marketer == pytest.approx(marketer)
    assert found.journalist.above[0].share == pytest.approx(
        sum(everyone[row] > 0 and 1 / everyone[row] > 0.2 for row in rows) / len(rows)
    )
    assert found.prosecutor.highest >= found.journalist.highest


# Coverage: one row of flags against the judge, value by value

NUMBERS = st.integers(-3, 12).map(str) | st.sampled_from(["2.5", "1.0E1", "oops", "Infinity"])
DAYS = st.sampled_from(["2023-12-31", "2024-01-01", "2024-03-31", "2024-04-01", "2029-12-31", "2030-01-01"])
TEXTS = st.sampled_from(["", "a", "b", "ab", "abc", "b, c", "{a}", "?", "*"])
SPANS = [
    *(f"[{low}, {high}]" for low in range(-2, 5) for high in range(low, 8, 3)),
    "[1, 5)", "(1, 5]", "< 3", ">= 3", "3", "3.0", "[5, 1]", "[1,5]", "many", "",
]  # fmt: skip
PERIODS = ["2024", "2024-Q1", "2024-03", "2020s", "2024-03-31", "[2024-01-01, 2024-03-31]", "spring"]
WORDS = ["a", "{a, b}", '{"b, c", a}', "a*", "ab*", "abc", "{}", "?", ""]
KINDS = {
    "range": (QiSpec(), "integer", NUMBERS, SPANS, True),
    "interval": (QiSpec(hierarchy=IntervalSpec(widths=(2, 4))), "real", NUMBERS, SPANS, True),
    "date": (QiSpec(hierarchy=DateSpec(levels=("month", "year"))), "date", DAYS, PERIODS, True),
    "days": (QiSpec(), "date", DAYS, PERIODS, True),
    "set": (QiSpec(), "text", TEXTS, WORDS, False),
    "prefix": (QiSpec(hierarchy=PrefixSpec(keep=(2, 1))), "text", TEXTS, WORDS, False),
}


def reading(name: str) -> tuple[Reading, Judge]:
    spec, kind, _, _, spans = KINDS[name]
    judge = judge_for(spec, kind=kind)
    return Reading(kind=kind, judge=judge, spans=spans), judge


@settings(max_examples=80, deadline=None)
@given(st.data(), st.sampled_from(sorted(KINDS)))
def test_a_row_of_flags_is_what_the_judge_says(data: st.DataObject, name: str) -> None:
    values = data.draw(st.lists(KINDS[name][2] | st.none(), min_size=1, max_size=8))
    how, judge = reading(name)
    coverage = Coverage(how, values)
    for label in [*KINDS[name][3], "*", None, *values]:
        expected = [label == "*" or judge.covers(value, label) for value in values]
        assert coverage.row(label).tolist() == expected, label


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_classes_cover_targets_where_every_cell_does(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3))
    readings, judges = zip(*(reading(name) for name in names), strict=True)
    target = st.tuples(*(KINDS[name][2] | st.none() for name in names))
    label = st.tuples(*(st.sampled_from([*KINDS[name][3], "*", None]) for name in names))
    targets = data.draw(st.lists(target, min_size=1, max_size=6))
    classes = data.draw(st.lists(label, min_size=1, max_size=12))
    weights = data.draw(st.lists(st.integers(1, 9), min_size=len(classes), max_size=len(classes)))
    secrets = data.draw(st.lists(st.integers(-2, 2), min_size=len(classes), max_size=len(classes)))
    covers = np.array(
        [
            [
                all(judge.covers(value, cell) for judge, value, cell in zip(judges, one, labels, strict=True))
                for one in targets
            ]
            for labels in classes
        ]
    )
    held = Targets(targets, readings)
    assert (Matcher(held).matches(list(zip(*classes, strict=True))) == covers).all()

    batch = pd.DataFrame(classes, columns=label_names(len(names)), dtype=object)
    batch = batch.assign(value=secrets, weight=weights, top=weights)
    cut = data.draw(st.integers(0, len(batch)))
    with pytest.MonkeyPatch.context() as patch:  # several parts, and sums that are handed on early
        patch.setattr(matching, "_FLAGS", 5 * len(targets))
        patch.setattr(matching, "_SUMS", 2 * len(targets))
        parts = list(matching._sums([batch[:cut], batch[cut:]], held, label_names(len(names))))
    found = pd.concat(parts).groupby(["target", "value"]).agg({"weight": "sum", "top": "max"}) if parts else None
    expected = {
        (place, secret): (
            sum(
                weight
                for weight, own, row in zip(weights, secrets, covers, strict=True)
                if own == secret and row[place]
            ),
            max(
                weight
                for weight, own, row in zip(weights, secrets, covers, strict=True)
                if own == secret and row[place]
            ),
        )
        for place in range(len(targets))
        for secret in set(secrets)
        if any(row[place] for own, row in zip(secrets, covers, strict=True) if own == secret)
    }
    got = (
        {}
        if found is None
        else {key: (row.weight, row.top) for key, row in zip(found.index, found.itertuples(), strict=True)}
    )
    assert got == expected
