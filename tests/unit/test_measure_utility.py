"""Classifier utility without Spark: how cells are read, what classifiers make of them, and what is refused."""

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kanon_spark.config.models import QiSpec
from kanon_spark.errors import DataError, PlatformError
from kanon_spark.measure import features
from kanon_spark.measure.attributes import Attribute, attribute_of, domain_of, position_of
from kanon_spark.measure.classifiers import DecisionTree, NaiveBayes, scores
from kanon_spark.measure.features import Features, Reader, members_of
from kanon_spark.measure.utility import classifier_utility
from kanon_spark.recoding.publish import member_text, set_label

JOBS = "nurse;care;*\ndoctor;care;*\npilot;travel;*\ndriver;travel;*\n"


@pytest.fixture
def job(tmp_path: Path) -> Attribute:
    (tmp_path / "job.csv").write_text(JOBS)
    spec = QiSpec(hierarchy="job.csv")
    return attribute_of("job", pd.Series([], dtype=object), "text", spec, base_dir=tmp_path)


def _age(**spec: Any) -> Attribute:
    ages = pd.Series([str(age) for age in range(20, 60)])
    return attribute_of("age", ages, "integer", QiSpec(**spec) if spec else None)


def _read(attribute: Attribute, cell: object, *, raw: bool = False) -> list[float]:
    return Reader(attribute).read(pd.Series([cell], dtype=object), raw=raw).values[0].tolist()


def _missing(attribute: Attribute, cell: object, *, raw: bool = False) -> bool:
    return not Reader(attribute).read(pd.Series([cell], dtype=object), raw=raw).known[0]


@settings(max_examples=100, deadline=None)
@given(st.sets(st.text(alphabet='ab ,{}"[]\\é', max_size=5), min_size=2, max_size=4))
def test_sets_are_read_as_they_were_written(values: set[str]) -> None:
    assert members_of(set_label(sorted(values))) == sorted(values)
    assert members_of(member_text(sorted(values))) == sorted(values)


def test_a_label_shares_its_values_and_a_raw_value_has_its_own(job: Attribute) -> None:
    own = {value: _read(job, value, raw=True) for value in job.values}
    assert sorted(map(sum, own.values())) == [1.0] * 4
    both = np.add(own["nurse"], own["doctor"]) / 2
    assert _read(job, "care") == both.tolist()
    assert _read(job, "{doctor, nurse}") == both.tolist()
    assert _read(job, ["nurse", "doctor"]) == both.tolist()
    assert _read(job, "nurse") == own["nurse"]


@pytest.mark.parametrize("cell", ["*", "?", None, "{doctor, driver, nurse, pilot}", "juggler"])
def test_what_says_nothing_is_missing(job: Attribute, cell: str | None) -> None:
    assert _missing(job, cell)


def test_raw_values_are_never_taken_for_labels(job: Attribute) -> None:
    assert _missing(job, "care", raw=True)
    assert not _missing(job, "nurse", raw=True)


@pytest.mark.parametrize(
    ("label", "place"), [("31", 31.0), ("[30, 39]", 34.5), ("[20, 60)", 40.0), ("37.5", 37.5), ("[-4, 4]", 0.0)]
)
def test_intervals_stand_for_their_midpoint(label: str, place: float) -> None:
    assert _read(_age(), label) == [place]


@pytest.mark.parametrize("cell", ["*", "?", None, "nonsense"])
def test_numbers_that_say_nothing_are_missing(cell: str | None) -> None:
    assert _missing(_age(), cell)


def test_labels_that_are_no_interval_stand_for_the_values_under_them(tmp_path: Path) -> None:
    rows = [f"{age};{'young' if age < 30 else 'old'};everyone" for age in range(20, 60)]
    (tmp_path / "age.csv").write_text("\n".join(rows))
    age = attribute_of("age", pd.Series([], dtype=object), "integer", QiSpec(hierarchy="age.csv"), base_dir=tmp_path)
    assert _read(age, "young") == [24.5]
    assert _missing(age, "everyone")


def test_open_intervals_and_masked_codes_cover_what_the_data_holds() -> None:
    age = _age(hierarchy={"interval": {"widths": [10], "top": 50}})
    assert _read(age, "[30, 39]") == [34.5]
    assert _read(age, ">= 50") == [54.5]
    zips = pd.Series(["1011", "2011", "2011", "1012"])  # frequency must not part what shares a prefix
    code = attribute_of("zip", zips, "text", QiSpec(hierarchy={"prefix": {"keep": [3]}}))
    assert sorted(_read(code, "101*")) == [0.0, 0.5, 0.5]


@pytest.mark.parametrize(
    ("text", "kind", "place"),
    [("1970-01-11", "date", 10.0), ("1970-01-01 00:00:01.5", "timestamp", 1.5), ("-2", "integer", -2.0)],
)
def test_positions_come_from_texts(text: str, kind: Any, place: float) -> None:
    assert position_of(text, kind) == place


def test_ranges_of_dates_stand_for_their_middle() -> None:
    days = attribute_of("day", pd.Series(["1970-01-01", "1970-01-11"]), "date")
    assert _read(days, "[1970-01-01, 1970-01-11]") == [5.0]
    assert _missing(days, "1970-13-01")


def test_domains_are_numbered_as_the_engine_does() -> None:
    assert domain_of(pd.Series(["10", "9", "9"]), "integer").texts == ("9", "10")
    found = domain_of(pd.Series(["b", "c", "a", "c", None]), "text")
    assert found.texts == ("c", "a", "b")
    assert found.has_null
    assert found.counts.tolist() == [2, 1, 1]
    assert domain_of(pd.Series(["b", "c", "a", "c"]), "text", by_count=False).texts == ("a", "b", "c")


def test_rare_values_share_a_feature(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "MOST_VALUES", 3)
    seen = pd.Series(["a", "b", "b", "c", "d", "d"])
    attribute = attribute_of("x", seen, "text")
    reader = Reader(attribute, seen)
    read = reader.read(pd.Series(["a", "b", "c", "d"]), raw=True).values
    assert read.shape == (4, 3)
    assert read[0].tolist() == read[2].tolist()
    assert len({tuple(row) for row in read}) == 3


def _column(*values: float, ordered: bool = False) -> Features:
    table = np.array(values, dtype=float)
    return Features(table[:, None] if ordered else np.stack([table, 1 - table], axis=1), ordered)


def test_naive_bayes_by_hand() -> None:
    # Label 0: value a three times of four; label 1: once of two. With one added to each count: 4/6 against 2/4.
    labels = np.array([0, 0, 0, 0, 1, 1])
    model = NaiveBayes()
    model.fit([_column(1, 1, 1, 0, 1, 0)], labels, classes=2)
    prior = np.log([5 / 8, 3 / 8])
    likely = prior + np.log([4 / 6, 2 / 4])
    assert model.predict([_column(1)])[0] == likely.argmax() == 0
    model.fit([_column(1, 1, 1, 1, 0, 0)], labels, classes=2)
    assert model.predict([_column(0, 1)]).tolist() == [1, 0]


def test_missing_cells_say_nothing_to_naive_bayes() -> None:
    labels = np.array([0, 0, 1, 1, 0])
    known = NaiveBayes()
    known.fit([_column(1, 1, 0, 0, 1)], labels, classes=2)
    with_gaps = NaiveBayes()
    nothing = _column(1, np.nan, 0, np.nan, 1)
    with_gaps.fit([nothing, _column(np.nan, np.nan, 1, 1, np.nan)], labels, classes=2)
    asked = [_column(0, np.nan), _column(1, 1)]
    assert with_gaps.predict(asked).tolist() == [1, 0]  # the second column never tells of label 0: it is left out


@pytest.mark.filterwarnings("error")
def test_a_constant_number_says_nothing_to_naive_bayes() -> None:
    labels = np.array([0, 0, 1, 1, 0])
    model = NaiveBayes()
    model.fit([_column(7, 7, 7, 7, 7, ordered=True), _column(1, 1, 0, 0, 1)], labels, classes=2)
    assert model.predict([_column(7, 30, ordered=True), _column(0, 1)]).tolist() == [1, 0]


def test_the_tree_follows_a_threshold_and_survives_gaps() -> None:
    numbers = np.arange(200.0)
    labels = (numbers >= 100).astype(np.int64)
    gaps = numbers.copy()
    gaps[::10] = np.nan
    tree = DecisionTree(seed=0)
    tree.fit([Features(gaps[:, None], True)], labels, classes=2)
    assert (tree.predict([Features(numbers[:, None], True)]) == labels).mean() > 0.98


def test_scores_by_hand() -> None:
    found = scores(np.array([0, 0, 0, 1]), np.array([0, 0, 2, 0]))
    assert found["accuracy"] == 0.5
    assert found["balanced_accuracy"] == pytest.approx((2 / 3 + 0) / 2)
    assert found["f1"] == pytest.approx((2 * 2 / (2 * 2 + 1 + 1) + 0) / 2)


def _world(rows: int = 600) -> tuple[pd.DataFrame, list[Attribute]]:
    rng = np.random.default_rng(3)
    age = rng.integers(20, 60, rows)
    kind = rng.choice(["nurse", "pilot"], rows)
    ill = np.where((age > 40) ^ (rng.random(rows) < 0.05), "yes", "no")
    table = pd.DataFrame({"age": age.astype(str), "job": kind, "ill": ill})
    return table, [_age(), attribute_of("job", table["job"], "text")]


def test_a_release_that_tells_everything_is_as_good_and_one_that_tells_nothing_is_the_majority() -> None:
    table, attributes = _world()
    train, test = table[:400], table[400:]
    same = classifier_utility(train, train, test, attributes=attributes, target="ill")
    for name in ("naive_bayes", "decision_tree"):
        assert same[name]["original"] == same[name]["release"]
        assert same[name]["original"]["accuracy"] > 0.85
    stars = train.assign(age="*", job="?")
    blind = classifier_utility(train, stars, test, attributes=attributes, target="ill")
    for name in ("naive_bayes", "decision_tree"):
        assert blind[name]["release"]["accuracy"] == blind["majority"] < 0.7
        assert blind[name]["release"]["balanced_accuracy"] == 0.5
    assert blind["rows"] == {"original": 400, "release": 400, "test": 200}


def test_coarse_ages_still_tell() -> None:
    table, attributes = _world()
    train, test = table[:400], table[400:]
    coarse = train["age"].astype(int) > 40
    released = train.assign(age=np.where(coarse, "[41, 59]", "[20, 40]"))
    found = classifier_utility(train, released, test, attributes=attributes, target="ill")
    assert found["decision_tree"]["release"]["accuracy"] > 0.85
    again = classifier_utility(train, released, test, attributes=attributes, target="ill")
    assert found == again


def test_cells_are_drawn_from_what_they_cover(job: Attribute) -> None:
    rng = np.random.default_rng(0)
    cells = pd.Series(["care"] * 400 + ["pilot"] * 100 + ["*"] * 500, dtype=object)
    drawn = Reader(job).read(cells).drawn(rng).values
    own = {value: int(np.argmax(_read(job, value))) for value in job.values}
    assert (drawn.sum(axis=1) == 1).all()
    often = drawn[:400].sum(axis=0)
    assert often[own["pilot"]] == often[own["driver"]] == 0
    assert 150 < often[own["nurse"]] < 250
    assert drawn[400:500, own["pilot"]].all()
    assert 60 < drawn[500:, own["pilot"]].sum() < 140  # a fifth of what the other rows tell
    assert drawn[500:, own["driver"]].sum() == 0
    ages = Reader(_age()).read(pd.Series(["[30, 39]"] * 300 + ["50", "*"])).drawn(rng).values[:, 0]
    assert 30 <= ages[:300].min() < 31 < 38 < ages[:300].max() <= 39
    assert ages[300] == 50
    assert 30 <= ages[301] <= 50
    assert Reader(job).read(pd.Series(["pilot", "nurse"])).exact
    assert Reader(_age()).read(pd.Series(["31", "32"])).exact
    assert not Reader(job).read(pd.Series(["pilot", "care"])).exact
    assert not Reader(_age()).read(pd.Series(["[31, 32]"])).exact
    nothing = Reader(_age()).read(pd.Series(["*", "?"]))
    assert not nothing.exact
    assert not nothing.drawn(rng).known.any()


def test_a_tree_does_not_learn_from_what_was_suppressed() -> None:
    table, attributes = _world()
    train, test = table[:400], table[400:]
    # Suppression by the label gives the label of released rows away, and says nothing of rows that keep everything.
    released = train.assign(job=np.where(train["ill"] == "yes", "?", train["job"]))
    found = classifier_utility(train, released, test, attributes=attributes, target="ill")
    assert found["decision_tree"]["release"]["accuracy"] > 0.85


def test_the_order_of_the_rows_changes_nothing() -> None:
    table, attributes = _world()
    train, test = table[:400], table[400:]
    released = train.assign(age="[20, 59]", job=np.where(train["job"] == "pilot", "{nurse, pilot}", "*"))
    mixed = released.sample(frac=1, random_state=1)
    one, other = (
        classifier_utility(train, each, test, attributes=attributes, target="ill") for each in (released, mixed)
    )
    assert one == other


def test_what_cannot_be_measured_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    table, attributes = _world()
    with pytest.raises(DataError, match="no row"):
        classifier_utility(table, table[:0], table, attributes=attributes, target="ill")
    with pytest.raises(DataError, match="one value only"):
        one = table.assign(ill="no")
        classifier_utility(one, one, one, attributes=attributes, target="ill")
    real = builtins.__import__

    def without_sklearn(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("sklearn"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_sklearn)
    with pytest.raises(PlatformError, match=r"kanon-spark\[utility\]"):
        classifier_utility(table, table, table, attributes=attributes, target="ill")
