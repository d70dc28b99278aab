"""Draft hierarchies: human numbers that nest, and no value that is missed."""

from datetime import date, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from suggest_profiles import column, spread_of, table

from kanon_spark.config.models import QiSpec
from kanon_spark.explore.suggest.hierarchies import Drafted, draft_hierarchy
from kanon_spark.explore.suggest.profile import ColumnProfile
from kanon_spark.explore.suggest.roles import Verdict, decide_roles
from kanon_spark.explore.suggest.steps import open_ends, widths
from kanon_spark.explore.suggest.words import read_name
from kanon_spark.hierarchy.build import build_tree
from kanon_spark.hierarchy.reference import reference
from kanon_spark.hierarchy.tree import Domain


def drafted(name: str, values: list[Any], **options: Any) -> Drafted:
    profile = column(name, values, **options)
    found = draft_hierarchy(Verdict(profile, read_name(name), "quasi-identifier", "name", ""))
    assert found is not None
    return found


DAYS = [date(2024, 1, 1) + timedelta(days=n) for n in range(300)]


@pytest.mark.parametrize(
    ("name", "values", "hierarchy"),
    [
        ("age", list(range(18, 91)), {"reference": "ages"}),
        ("age", [*range(18, 91), 130], {"interval": {"widths": [5, 10, 20, 40]}}),
        ("age", [*range(18, 91)] * 20 + [9_999], {"interval": {"widths": [5, 10, 20, 40], "top": 95}}),
        ("age", [*range(18, 91), 9_999], {"interval": {"widths": [5, 10, 20, 40], "top": 175}}),
        ("birth_year", list(range(1930, 2006)), {"interval": {"widths": [5, 10, 20, 40]}}),
        ("children", [0, 1, 2, 3], None),
        ("sex", [1, 2] * 50, "flat"),
        ("marital", [True, False], "flat"),
        ("zip", [10_115 + 100 * n for n in range(90)], {"prefix": {"keep": [4, 3, 2, 1]}}),
        ("zip", [501, 10_115, 90_210], {"interval": {"widths": [10, 100, 1000, 10000]}}),
        ("zip", ["01067", "10115"], {"prefix": {"keep": [4, 3, 2, 1]}}),
        ("postcode", ["W1A 1AA", "SW1A 2AA"], {"prefix": {"keep": [6, 4, 3, 1]}}),
        ("cell", [f"C{n:04d}" for n in range(90)], {"prefix": {"keep": [4, 3, 2, 1]}}),
        ("state", ["CA", "NY", "TX"], {"reference": "us_states_code"}),
        ("state", ["CA", "NY", "XX"], "flat"),
        ("nationality", ["DE", "FR"], {"reference": "countries_alpha2"}),
        ("Geburtsland", ["DE", "FR", "IT", "GB", "ES"], {"reference": "countries_alpha2"}),
        ("isco_code", ["2211", "2221"], {"reference": "isco08"}),
        ("cell", ["2211", "2221", "1111", "1112", "1113", "1114"], {"prefix": {"keep": [3, 2, 1]}}),
        ("district", ["E10", "E11", "N18", "N19", "B15", "B16"], {"prefix": {"keep": [2, 1]}}),
        ("job", [f"job {'abcdefgh'[n % 8]}" for n in range(90)], None),
        ("race", ["a", "b", "c", "d"], "flat"),
        ("visit", DAYS[:40], None),
        ("visit", DAYS, {"date": {"levels": ["month", "quarter", "year"]}}),
        ("birth", [day - timedelta(days=90 * n) for n, day in enumerate(DAYS)],
         {"date": {"levels": ["month", "year", "decade"]}}),
        ("at", [datetime(2024, 1, 1, n % 24) for n in range(90)], {"date": {"levels": ["day"]}}),
        ("seen", [str(day) for day in DAYS], {"prefix": {"keep": [7, 4]}}),
        ("seen", [f"{day}T12:00:00" for day in DAYS], {"prefix": {"keep": [10, 7, 4]}}),
    ],
)  # fmt: skip
def test_drafts(name: str, values: list[Any], hierarchy: object) -> None:
    found = drafted(name, values)
    assert found.hierarchy == hierarchy
    QiSpec.model_validate(found.spec())


def test_very_many_values_are_grouped_from_the_start_or_dropped() -> None:
    many: dict[str, Any] = {"rows": 9_000_000, "filled": 9_000_000, "distinct": 3_000_000, "counts": None}

    def huge(like: ColumnProfile) -> Drafted | None:
        profile = ColumnProfile(**{**vars(like), **many})
        return draft_hierarchy(Verdict(profile, read_name(like.name), "quasi-identifier", "name", ""))

    times = huge(column("at", [datetime(2024, 1, 1) + timedelta(hours=n) for n in range(3_000)]))
    assert times is not None
    assert times.spec()["min_level"] == 1
    assert huge(column("job", [f"job {'abcdefgh'[n % 8]}" for n in range(90)])) is None


SPREADS = st.lists(
    st.one_of(st.integers(-(10**9), 10**9), st.integers(0, 100), st.integers(0, 100)), min_size=2, max_size=60
)


@given(SPREADS, st.sampled_from([Fraction(2), Fraction(1, 50)]))
def test_widths_nest_and_are_human(numbers: list[int], finest: Fraction) -> None:
    found = widths(spread_of([float(number) for number in numbers]), finest=finest)
    assert all(large % small == 0 and large > small for small, large in pairwise(found))
    for width in found:
        assert width >= finest
        assert f"{float(width):.9e}".rstrip("0123456789").rstrip("e+-").rstrip("0").rstrip(".") in {"1", "2", "4", "5"}


@given(SPREADS)
@settings(deadline=None, max_examples=40)
def test_whole_numbers_all_find_an_interval(numbers: list[int]) -> None:
    """The drafted hierarchy is built over all values; each leaf has a path to the root."""
    found = drafted("height", [int(number) for number in numbers])
    spec = QiSpec.model_validate(found.spec()).hierarchy
    values = sorted(set(numbers))
    domain = Domain("integer", tuple(map(str, values)), np.array(values, dtype=float), np.ones(len(values), np.int64))
    tree = build_tree(spec, domain, qi="height")  # type: ignore[arg-type]
    assert tree.leaves == len(values)


@given(st.lists(st.floats(-1e12, 1e12), min_size=2, max_size=60))
@example([0.0, 1.11e-308])
@example([0.0, 5e-324, 1e12])
@settings(deadline=None, max_examples=40)
def test_real_numbers_all_find_an_interval(numbers: list[float]) -> None:
    found = drafted("height", [number + 0.0 for number in numbers], scale=None)
    if found.hierarchy is None:  # a spread that no exact intervals have
        assert found.words.startswith("ranges")
        return
    spec = QiSpec.model_validate(found.spec()).hierarchy
    values = sorted({number + 0.0 for number in numbers})
    domain = Domain("real", tuple(map(repr, values)), np.array(values), np.ones(len(values), np.int64))
    assert build_tree(spec, domain, qi="height").leaves == len(values)  # type: ignore[arg-type]


@given(st.lists(st.integers(0, 99_999), min_size=1, max_size=40))
@settings(deadline=None, max_examples=40)
def test_postal_codes_that_lost_their_zeros(codes: list[int]) -> None:
    spec = QiSpec.model_validate(drafted("zip", codes).spec()).hierarchy
    values = sorted(set(codes))
    domain = Domain("integer", tuple(map(str, values)), np.array(values, dtype=float), np.ones(len(values), np.int64))
    assert build_tree(spec, domain, qi="zip").leaves == len(values)  # type: ignore[arg-type]


def test_infinite_numbers_fall_into_open_ends() -> None:
    found = drafted("height", [*map(float, range(100)), float("inf"), float("-inf")], scale=None)
    assert isinstance(found.hierarchy, dict)
    assert {"bottom", "top"} <= set(found.hierarchy["interval"])


def test_open_ends_only_where_the_tails_are_long() -> None:
    assert open_ends(spread_of([float(n) for n in range(100)]), Fraction(5)) == (None, None)
    far = [-50_000.0, *[float(n) for n in range(1_000)], 70_000.0]
    assert open_ends(spread_of(far), Fraction(100)) == (0, 1_000)


def test_a_taxonomy_that_misses_a_value_is_not_taken() -> None:
    known = sorted(reference("us_states_code").values)
    assert drafted("state", known).hierarchy == {"reference": "us_states_code"}
    assert drafted("state", [*known, "ZZ"]).hierarchy is None


def test_two_letter_codes_of_something_else_are_no_states() -> None:
    (verdict,) = decide_roles(table(column("marital_status", ["MA", "SD", "WA", "DE", "CO"] * 40)), k=5)
    assert draft_hierarchy(verdict) == Drafted("flat", "each value, then *")
