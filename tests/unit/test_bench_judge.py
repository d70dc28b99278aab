"""The bench's judge, on tables small enough to judge by hand."""

from pathlib import Path

import pandas as pd
import pytest
from bench.judge import Judgement, judge

JOBS = "nurse;care;*\ndoctor;care;*\npilot;travel;*\ndriver;travel;*\n"
AGES = "".join(f"{age};[{age // 10 * 10}-{age // 10 * 10 + 9}];*\n" for age in range(20, 60))


@pytest.fixture
def hierarchies(tmp_path: Path) -> Path:
    (tmp_path / "job.csv").write_text(JOBS)
    (tmp_path / "age.csv").write_text(AGES)
    return tmp_path


@pytest.fixture
def original() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "rid": range(6),
            "age": [20, 24, 31, 40, 40, 50],
            "job": ["nurse", "doctor", "pilot", "pilot", "pilot", "driver"],
        }
    )


def _judge(original: pd.DataFrame, classes: dict[int, str], folder: Path) -> Judgement:
    """The release is nothing but class names: the judge must not believe labels."""
    release = pd.DataFrame({"rid": list(classes), "age": list(classes.values()), "job": "x"})
    return judge(original, release, qis=["age", "job"], k=2, row_id="rid", hierarchies=folder, numeric={"age"})


def test_by_hand(original: pd.DataFrame, hierarchies: Path) -> None:
    found = _judge(original, {0: "a", 1: "a", 2: "b", 5: "b", 3: "c", 4: "c"}, hierarchies)
    # a: ages 20, 24 share [20-29] of width 9 in a range of 30; nurse and doctor share care, 2 leaves of 4.
    # b: ages 31, 50 share only *; pilot and driver share travel. c: equal rows.
    assert found.gcp_hierarchy == pytest.approx((2 * (9 / 30 + 2 / 4) + 2 * (1 + 2 / 4)) / 12)
    # All four jobs occur in the column.
    assert found.gcp_set == pytest.approx((2 * (4 / 30 + 2 / 4) + 2 * (19 / 30 + 2 / 4)) / 12)
    assert (found.classes, found.smallest, found.suppressed, found.dm) == (3, 2, 0, 12)
    assert found.cavg == pytest.approx(1.0)


def test_rows_that_are_missing_cost_everything(original: pd.DataFrame, hierarchies: Path) -> None:
    found = _judge(original, {3: "c", 4: "c"}, hierarchies)
    assert found.suppressed == 4
    assert found.gcp_hierarchy == found.gcp_set == pytest.approx(4 / 6)
    assert found.dm == 4 + 4 * 6


def test_an_empty_release_is_all_loss(original: pd.DataFrame, hierarchies: Path) -> None:
    found = _judge(original, {}, hierarchies)
    assert (found.gcp_hierarchy, found.gcp_set, found.classes) == (1.0, 1.0, 0)


def test_a_label_for_one_leaf_costs_nothing(tmp_path: Path, original: pd.DataFrame) -> None:
    (tmp_path / "job.csv").write_text("nurse;care;*\ndoctor;other;*\npilot;travel;*\ndriver;travel;*\n")
    (tmp_path / "age.csv").write_text(AGES)
    found = _judge(original.iloc[:1], {0: "a"}, tmp_path)
    assert found.gcp_hierarchy == 0.0


def test_an_interval_wider_than_the_data_costs_one_at_most(tmp_path: Path) -> None:
    (tmp_path / "job.csv").write_text("nurse;*\n")
    (tmp_path / "age.csv").write_text("20;[0-99];*\n21;[0-99];*\n")
    rows = pd.DataFrame({"rid": [0, 1], "age": [20, 21], "job": "nurse"})
    assert _judge(rows, {0: "a", 1: "a"}, tmp_path).gcp_hierarchy == pytest.approx(1 / 2)


@pytest.mark.parametrize("ids", [[0, 0], [0, 9]])
def test_row_ids_must_be_those_of_the_original(original: pd.DataFrame, hierarchies: Path, ids: list[int]) -> None:
    release = pd.DataFrame({"rid": ids, "age": "x", "job": "x"})
    with pytest.raises(ValueError, match="row ids"):
        judge(original, release, qis=["age", "job"], k=2, row_id="rid", hierarchies=hierarchies, numeric={"age"})


def test_values_beyond_the_hierarchy_are_refused(original: pd.DataFrame, hierarchies: Path) -> None:
    original.loc[0, "job"] = "juggler"
    with pytest.raises(ValueError, match="misses values of 'job'"):
        _judge(original, {0: "a", 1: "a"}, hierarchies)
