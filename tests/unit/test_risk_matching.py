"""Targets against classes: what a worker holds is bounded by targets x values, not by values alone."""

import pandas as pd
import pytest

from kanon_spark.risk import matching as room
from kanon_spark.risk.coverage import Reading
from kanon_spark.risk.matching import Targets, _sums


def targets(count: int) -> Targets:
    return Targets([(str(number),) for number in range(count)], [Reading("integer")])


@pytest.mark.parametrize("count", [1, 1_000, 100_000])
def test_the_more_targets_the_less_is_held_at_once(count: int) -> None:
    # The values of the targets are of no interest here, only how many there are.
    matcher = Targets([("1",)] * count, [Reading("integer")]).matcher()
    assert matcher.at_once >= 1
    assert matcher.held >= 1
    assert matcher.at_once * count <= 2_000_000
    assert matcher.held * count * 2 * 8 <= 32_000_000


def test_sums_are_handed_on_value_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within one batch, too: a batch may bring more values than may be held."""
    classes = pd.DataFrame(
        {"label0": [f"[0, {row % 7}]" for row in range(300)], "value": [row % 50 for row in range(300)]}
    ).assign(weight=1.0, top=2.0)
    (whole,) = _sums([classes], targets(10), ["label0"])
    monkeypatch.setattr(room, "_SUMS", 30)
    monkeypatch.setattr(room, "_FLAGS", 1_000)
    parts = list(_sums([classes], targets(10), ["label0"]))
    assert max(part["value"].nunique() for part in parts) == 3
    assert len(parts) > 10
    key = ["target", "value"]
    added = pd.concat(parts).groupby(key).agg({"weight": "sum", "top": "max"}).reset_index()
    expected = whole.sort_values(key, ignore_index=True)
    pd.testing.assert_frame_equal(added.sort_values(key, ignore_index=True), expected, check_dtype=False)
