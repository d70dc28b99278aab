"""Builders over the data's own values: exact labels, losses and refusals."""

from collections.abc import Sequence
from datetime import date

import numpy as np
import pytest

from kanon_spark.config.models import DateSpec, FlatSpec, IntervalSpec, PrefixSpec
from kanon_spark.errors import HierarchyError, InternalError
from kanon_spark.hierarchy.build import build_tree
from kanon_spark.hierarchy.check import check_tree
from kanon_spark.hierarchy.labels import interval_of
from kanon_spark.hierarchy.search import WIDE
from kanon_spark.hierarchy.tree import Domain, Kind, Tree

EPOCH = date(1970, 1, 1)


def numbers(kind: Kind, values: Sequence[float], *, has_null: bool = False) -> Domain:
    texts = tuple(str(int(v)) if kind == "integer" else repr(float(v)) for v in values)
    return Domain(kind, texts, np.array(values, dtype=float), np.ones(len(values), dtype=np.int64), has_null)


def words(values: Sequence[str], kind: Kind = "text") -> Domain:
    return Domain(kind, tuple(values), np.full(len(values), np.nan), np.ones(len(values), dtype=np.int64))


def days(values: Sequence[str], *, clock: bool = False) -> Domain:
    positions = np.array([(date.fromisoformat(v[:10]) - EPOCH).days for v in values], dtype=float)
    kind: Kind = "timestamp" if clock else "date"
    return Domain(kind, tuple(values), positions * (86_400 if clock else 1), np.ones(len(values), dtype=np.int64))


def paths(tree: Tree) -> list[list[str | None]]:
    check_tree(tree)
    return [[tree.labels[v] for v in tree.levels[:, x]] for x in range(tree.leaves)]


def losses(tree: Tree, leaf: int) -> list[float]:
    return [float(tree.loss[v]) for v in tree.levels[:, leaf]]


def test_integer_intervals_are_closed() -> None:
    tree = build_tree(IntervalSpec(widths=(5, 10)), numbers("integer", [-3, 15, 17, 22, 97], has_null=True), qi="age")
    assert paths(tree) == [
        ["-3", "[-5, -1]", "[-10, -1]", "*"],
        ["15", "[15, 19]", "[10, 19]", "*"],
        ["17", "[15, 19]", "[10, 19]", "*"],
        ["22", "[20, 24]", "[20, 29]", "*"],
        ["97", "[95, 99]", "[90, 99]", "*"],
        [None, None, None, "*"],
    ]
    assert losses(tree, 1) == [0, 0.04, 0.09, 1]


def test_real_intervals_are_half_open_and_true_to_their_bounds() -> None:
    values = [0.3, 0.7, 0.75, 1.1]
    tree = build_tree(IntervalSpec(widths=(0.1, 0.5)), numbers("real", values), qi="x")
    assert [row[1] for row in paths(tree)] == ["[0.3, 0.4)", "[0.7, 0.8)", "[0.7, 0.8)", "[1.1, 1.2)"]
    assert [row[2] for row in paths(tree)] == ["[0, 0.5)", "[0.5, 1)", "[0.5, 1)", "[1, 1.5)"]
    assert losses(tree, 0)[1] == pytest.approx(0.1 / 0.8)
    assert losses(tree, 0)[2] == pytest.approx(0.5 / 0.8)


def test_open_ends_nest_at_every_level_and_clip_their_neighbours() -> None:
    spec = IntervalSpec(widths=(5, 10, 20), bottom=15, top=90)
    tree = build_tree(spec, numbers("integer", [3, 14, 15, 21, 88, 90, 103]), qi="age")
    assert paths(tree) == [
        ["3", "< 15", "< 15", "< 15", "*"],
        ["14", "< 15", "< 15", "< 15", "*"],
        ["15", "[15, 19]", "[15, 19]", "[15, 19]", "*"],
        ["21", "[20, 24]", "[20, 29]", "[20, 39]", "*"],
        ["88", "[85, 89]", "[80, 89]", "[80, 89]", "*"],
        ["90", ">= 90", ">= 90", ">= 90", "*"],
        ["103", ">= 90", ">= 90", ">= 90", "*"],
    ]
    assert tree.labels.count("< 15") == tree.labels.count("[15, 19]") == 1
    assert losses(tree, 0)[1] == pytest.approx((14 - 3) / 100)
    assert losses(tree, 6)[1] == pytest.approx((103 - 90) / 100)


def test_interval_from_a_level_on() -> None:
    spec = IntervalSpec(widths=(5, 10, 20), top=90)
    tree = build_tree(spec, numbers("integer", [10, 20, 40, 90]), qi="age", min_level=2, max_level=3)
    assert paths(tree) == [
        ["[10, 19]", "[0, 19]", "*"],
        ["[20, 29]", "[20, 39]", "*"],
        ["[40, 49]", "[40, 59]", "*"],
        [">= 90", ">= 90", "*"],
    ]
    span = 90 + 19 - 10  # the tail is taken to be as wide as the widest interval
    assert losses(tree, 0) == [9 / span, 19 / span, np.inf]
    assert losses(tree, 3) == [19 / span, 19 / span, np.inf]
    assert tree.max_level == 1


def test_real_representatives_may_be_off_by_rounding() -> None:
    below = float(np.nextafter(0.6, 0))
    tree = build_tree(IntervalSpec(widths=(0.2, 0.4)), numbers("real", [below]), qi="x", min_level=1)
    assert paths(tree) == [["[0.6, 0.8)", "[0.4, 0.8)", "*"]]


@pytest.mark.parametrize(
    ("domain", "word"),
    [
        (days(["2024-03-05"]), "date"),
        (words(["a"]), "numeric"),
        (numbers("real", [1.0, np.inf]), "infinite"),
        (numbers("integer", [2.0**60]), "2^53"),
    ],
)
def test_intervals_refuse(domain: Domain, word: str) -> None:
    with pytest.raises(HierarchyError) as caught:
        build_tree(IntervalSpec(widths=(5,)), domain, qi="x")
    assert word in str(caught.value)
    assert caught.value.where == "columns.quasi_identifiers.x"
    assert caught.value.fix


def test_widths_are_checked_again() -> None:
    spec = IntervalSpec.model_construct(widths=(5.0, 12.0), origin=0.0, bottom=None, top=None)
    with pytest.raises(HierarchyError, match="nest"):
        build_tree(spec, numbers("integer", [1]), qi="x")


def test_huge_values_may_hide_in_an_open_end() -> None:
    tree = build_tree(IntervalSpec(widths=(5,), top=10), numbers("real", [1.0, 2.0, np.inf]), qi="x")
    assert [row[1] for row in paths(tree)] == ["[0, 5)", "[0, 5)", ">= 10"]
    assert losses(tree, 2) == [0, 1, 1]


def test_prefixes_are_padded_to_the_longest_value() -> None:
    tree = build_tree(PrefixSpec(keep=(4, 3, 1)), words(["12", "12301", "12345", "12346", "19"]), qi="zip")
    assert paths(tree) == [
        ["12", "12", "12", "1****", "*"],
        ["12301", "1230*", "123**", "1****", "*"],
        ["12345", "1234*", "123**", "1****", "*"],
        ["12346", "1234*", "123**", "1****", "*"],
        ["19", "19", "19", "1****", "*"],
    ]
    assert losses(tree, 0) == [0, 0, 0, 1, 1]
    assert losses(tree, 1) == [0, 0, 3 / 5, 1, 1]


def test_prefix_from_a_level_on_costs_its_share() -> None:
    tree = build_tree(PrefixSpec(keep=(4, 3)), words(["1230", "1234", "2000"]), qi="zip", min_level=1)
    assert paths(tree)[0] == ["1230*", "123**", "*"]
    assert losses(tree, 0) == [1 / 3, 2 / 3, 1]
    assert losses(tree, 2) == [1 / 3, 1 / 3, 1]


def test_prefix_of_numbers_needs_equal_lengths() -> None:
    assert paths(build_tree(PrefixSpec(keep=(1,)), numbers("integer", [12, 13, 21]), qi="z"))[1][1] == "1*"
    with pytest.raises(HierarchyError) as caught:
        build_tree(PrefixSpec(keep=(1,)), numbers("integer", [1, 2, 10]), qi="z")
    assert "cast the column to string" in caught.value.fix


def test_dates_climb_the_calendar() -> None:
    spec = DateSpec(levels=("day", "month", "quarter", "year", "decade"))
    tree = build_tree(spec, days(["1969-12-31", "2024-02-29", "2024-03-01"]), qi="visit")
    assert paths(tree)[0] == ["1969-12-31", "1969-12-31", "1969-12", "1969-Q4", "1969", "1960s", "*"]
    assert paths(tree)[1] == ["2024-02-29", "2024-02-29", "2024-02", "2024-Q1", "2024", "2020s", "*"]
    span = (date(2024, 3, 1) - date(1969, 12, 31)).days
    wanted = [0, 0, 28, 90, 365, (date(2029, 12, 31) - date(2020, 1, 1)).days]
    assert losses(tree, 1)[:-1] == [days_long / span for days_long in wanted]


def test_timestamps_have_days() -> None:
    domain = days(["2024-03-05 00:00:00", "2024-03-06 00:00:00", "2025-01-01 00:00:00"], clock=True)
    tree = build_tree(DateSpec(levels=("day", "year")), domain, qi="visit")
    assert paths(tree)[0] == ["2024-03-05 00:00:00", "2024-03-05", "2024", "*"]
    assert losses(tree, 0)[1] == pytest.approx(1 / 302)


def test_dates_from_a_level_on() -> None:
    domain = days(["2024-01-01", "2024-03-01", "2025-03-01"])
    tree = build_tree(DateSpec(levels=("month", "year")), domain, qi="visit", min_level=1)
    assert paths(tree)[0] == ["2024-01", "2024", "*"]
    assert losses(tree, 0)[0] == pytest.approx(30 / ((date(2025, 3, 31) - date(2024, 1, 1)).days))


def test_dates_refuse_other_columns_and_orders() -> None:
    with pytest.raises(HierarchyError, match="date or timestamp"):
        build_tree(DateSpec(levels=("year",)), numbers("integer", [1]), qi="x")
    with pytest.raises(HierarchyError, match="fine to coarse"):
        build_tree(DateSpec.model_construct(levels=("year", "month")), days(["2024-01-01"]), qi="x")


def test_flat() -> None:
    assert paths(build_tree(FlatSpec(), words(["a", "b"]), qi="x")) == [["a", "*"], ["b", "*"]]
    with pytest.raises(HierarchyError, match="min_level"):
        build_tree(FlatSpec(), words(["a", "b"]), qi="x", min_level=1)


def test_search_tree_halves_rows_of_ordered_values() -> None:
    domain = Domain("integer", ("1", "2", "3", "9"), np.array([1.0, 2, 3, 9]), np.array([90, 5, 5, 9]), has_null=True)
    tree = build_tree(None, domain, qi="x")
    check_tree(tree)
    spans = {(int(tree.lo[v]), int(tree.hi[v])): float(tree.loss[v]) for v in range(tree.leaves, tree.nodes)}
    assert spans == {(0, 5): 1.0, (1, 4): 7 / 8, (1, 3): 1 / 8}
    assert set(tree.labels[tree.leaves :]) == {"*"}


def test_search_tree_of_words_counts_values() -> None:
    tree = build_tree(None, words(["often", "b", "c", "rare"]), qi="x")
    check_tree(tree)
    spans = {(int(tree.lo[v]), int(tree.hi[v])): float(tree.loss[v]) for v in range(tree.leaves, tree.nodes)}
    assert spans == {(0, 2): 0.5, (2, 4): 0.5, (0, 4): 1.0}


def test_search_tree_stays_shallow_under_skew_and_size() -> None:
    skewed = Domain("real", ("x",) * 200, np.arange(200.0), 2 ** np.minimum(np.arange(200, dtype=np.int64), 50))
    tree = build_tree(None, skewed, qi="x")
    check_tree(tree)
    assert tree.height <= 16 + 8
    count = WIDE + 1
    big = Domain("real", ("x",) * count, np.arange(float(count)), np.ones(count, dtype=np.int64))
    tree = build_tree(None, big, qi="x")
    check_tree(tree)
    assert tree.height <= 10
    assert int((tree.hi - tree.lo)[tree.levels[1]].max()) <= 4  # down to single values


def test_search_trees_have_no_levels_to_choose() -> None:
    with pytest.raises(HierarchyError, match="need a hierarchy"):
        build_tree(None, words(["a"]), qi="x", max_level=1)


@pytest.mark.parametrize("kind", ["text", "integer", "date"])
@pytest.mark.parametrize("has_null", [True, False])
def test_empty_domains_still_make_trees(kind: Kind, has_null: bool) -> None:
    domain = Domain(kind, (), np.zeros(0), np.zeros(0, dtype=np.int64), has_null)
    specs: dict[str, PrefixSpec | IntervalSpec | DateSpec] = {
        "text": PrefixSpec(keep=(1,)),
        "integer": IntervalSpec(widths=(5,)),
        "date": DateSpec(levels=("year",)),
    }
    for spec in (None, FlatSpec(), specs[kind]):
        for level in (0, 1) if spec is specs[kind] else (0,):
            tree = build_tree(spec, domain, qi="x", min_level=level)
            check_tree(tree)
            assert tree.leaves == int(has_null)


def test_check_tree_notices() -> None:
    tree = build_tree(PrefixSpec(keep=(1,)), words(["a1", "a2", "b1"]), qi="x")
    tree.loss[0] = 0.9
    with pytest.raises(InternalError, match="losses never fall"):
        check_tree(tree)


@pytest.mark.parametrize(
    ("label", "ends"),
    [
        ("[15-19]", (15, 19)),
        ("[15, 19]", (15, 19)),
        ("15-19", (15, 19)),
        ("[15;20[", (15, 20)),
        ("(1.5,2.5]", (1.5, 2.5)),
        ("[-20--10]", (-20, -10)),
        ("10..20", (10, 20)),
        ("<20", None),
        (">=80", None),
        ("20-10", None),
        ("2024-Q1", None),
        ("young", None),
    ],
)
def test_interval_labels(label: str, ends: tuple[float, float] | None) -> None:
    assert interval_of(label) == ends
