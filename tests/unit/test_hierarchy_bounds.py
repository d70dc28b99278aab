"""What labels say in numbers, told by the hierarchy and judged by the verifier."""

from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kanon_spark.config.models import CsvSpec, IntervalSpec, QiSpec
from kanon_spark.hierarchy.bounds import at_least, at_most, bounds_of, built_bounds, file_bounds
from kanon_spark.hierarchy.build import build_tree, load_static
from kanon_spark.hierarchy.tree import Domain
from kanon_spark.signatures.forms import Form
from kanon_spark.verify.facts import QiFacts
from kanon_spark.verify.forms import _FormJudge


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**38), max_value=10**38))
def test_doubles_never_cut_a_number_off(number: Decimal) -> None:
    low, high = at_most(str(number)), at_least(str(number))
    assert Decimal(repr(low)) <= number <= Decimal(repr(high))
    assert high == low or high == np.nextafter(low, np.inf)


@pytest.mark.parametrize("text", ["0.1", "39", "-7.25", "1.0E10", "0", "-0.0", "Infinity"])
def test_ordinary_numbers_are_what_they_read(text: str) -> None:
    assert at_most(text) == at_least(text) == float(text)
    assert np.signbit(at_most("-0.0")) == np.signbit(at_least("-0.0")) == False  # noqa: E712


def facts(spec: QiSpec, kind: str, csv_path: Path | None = None) -> QiFacts:
    form = Form(numbers=("lo", "hi"))
    return QiFacts("age", kind, spec, csv_path, (), (), "node", by_code=False, form=form)


@pytest.mark.parametrize("min_level", [0, 1])
@pytest.mark.parametrize("kind", ["integer", "real"])
def test_bounds_of_built_intervals(kind: str, min_level: int) -> None:
    spec = IntervalSpec(widths=[10, 20], bottom=10, top=90)
    values = np.array([5.0, 10, 12, 25, 39, 90, 99]) if min_level == 0 else np.array([5.0, 10, 20, 30, 90])
    texts = tuple(f"{value:.0f}" if kind == "integer" else f"{value}" for value in values)
    domain = Domain(kind, texts, values, np.ones(len(values), np.int64), has_null=True)  # type: ignore[arg-type]
    tree = build_tree(spec, domain, qi="age", min_level=min_level)
    bounds = built_bounds(tree)
    judge = _FormJudge(facts(QiSpec(hierarchy=spec), kind))
    for label, (low, high) in zip(tree.labels, bounds.tolist(), strict=True):
        given_low, given_high = (None if np.isnan(end) else end for end in (low, high))
        assert judge.bounded(label, given_low, given_high), (label, low, high)
        if label not in (None, "*"):
            assert not judge.bounded(label, None, None)
            assert not judge.bounded(label, 11.5, 11.75), "narrower than the label"
    assert np.isnan(bounds[tree.root]).all()
    assert np.isnan(bounds[tree.null_leaf]).all()


def test_bounds_of_a_file(tmp_path: Path) -> None:
    """`teen` recurs at another level: a reader sees the label alone, so both have the bounds of all its values."""
    lines = ["13;teen;young;all", "15;teen;young;all", "21;20-29;young;all", "28;20-29;young;all", "70;70;teen;all"]
    path = tmp_path / "ages.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    hierarchy = load_static(CsvSpec(path="ages.csv"), qi="age", base_dir=tmp_path, numeric=True)
    bounds = file_bounds(hierarchy.tree, hierarchy.lookup)
    found: dict[str | None, set[tuple[float, float]]] = {}
    for label, (low, high) in zip(hierarchy.tree.labels, bounds.tolist(), strict=True):
        found.setdefault(label, set()).add((low, high))
    assert found["13"] == {(13, 13)}
    assert found["teen"] == {(13, 70)}
    assert found["20-29"] == {(20, 29)}
    assert found["young"] == {(13, 28)}
    assert np.isnan(bounds[hierarchy.tree.root]).all() and np.isnan(bounds[hierarchy.tree.null_leaf]).all()
    judge = _FormJudge(facts(QiSpec(hierarchy=CsvSpec(path="ages.csv")), "integer", path))
    assert judge.bounded("teen", 13.0, 70.0) and judge.bounded("20-29", 20.0, 29.0) and judge.bounded("all", None, None)
    assert not judge.bounded("teen", 13.0, 15.0)
    assert not judge.bounded("all", 13.0, 70.0)
    assert not judge.bounded("young", None, None)


@pytest.mark.parametrize(
    ("label", "low", "high", "good"),
    [
        ("[20, 30]", 20.0, 30.0, True),
        ("[20, 30]", 21.0, 30.0, False),
        ("[20, 30]", 10.0, 30.0, False),
        ("[20, 30]", 20.0, None, False),
        ("[1.0, Infinity]", 1.0, np.inf, True),
        ("9007199254740993", 9007199254740992.0, 9007199254740994.0, True),
        ("9007199254740993", 9007199254740994.0, 9007199254740994.0, False),
        ("25", 25.0, 25.0, True),
        ("*", None, None, True),
        ("*", 20.0, 30.0, False),
        (None, None, None, True),
    ],
)
def test_bounds_of_ranges(label: str | None, low: float | None, high: float | None, good: bool) -> None:
    assert _FormJudge(facts(QiSpec(), "integer")).bounded(label, low, high) is good
    if good and label not in (None, "*"):
        assert bounds_of(label) == (low, high)
