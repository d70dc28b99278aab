"""Ranges on a grid: they hold what they held, their ends are round, and they are not much wider."""

from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kanon_spark.config.models import QiSpec
from kanon_spark.recoding.grid import widen
from kanon_spark.verify.steps import on_grid
from kanon_spark.verify.truth import judge_for

DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**30), max_value=10**30)
WHOLE = st.integers(-(10**18), 10**18).map(Decimal)
NEAR = st.tuples(WHOLE, st.integers(1, 2_000)).map(lambda pair: (pair[0], pair[0] + pair[1]))


def check(low: str, high: str, kind: str) -> tuple[str, str]:
    least, largest, width = widen(low, high, kind)  # type: ignore[arg-type]
    label = f"[{least}, {largest}]"
    judge = judge_for(QiSpec(), kind=kind)
    assert judge.covers(low, label) and judge.covers(high, label), (low, high, label)
    assert on_grid(label, kind), (low, high, label)
    assert width > 0
    return least, largest


@given(st.one_of(st.tuples(WHOLE, WHOLE), NEAR, st.tuples(DECIMALS, DECIMALS)))
@example((Decimal("0.5"), Decimal("0.7")))
def test_numbers(pair: tuple[Decimal, Decimal]) -> None:
    low, high = min(pair), max(pair)
    if low == high:
        return
    kind = "integer" if low == low.to_integral_value() and high == high.to_integral_value() else "real"
    least, largest = check(f"{low:f}", f"{high:f}", kind)
    assert Decimal(largest) - Decimal(least) < 3 * (high - low)
    if kind == "integer":
        assert "." not in least + largest


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
@example(5e-324, 1.7e308)
@example(-0.1, 0.2)
def test_doubles_of_any_size(one: float, other: float) -> None:
    low, high = min(one, other), max(one, other)
    if low != high:
        check(repr(low), repr(high), "real")


@given(st.dates(), st.one_of(st.integers(1, 40), st.integers(1, 1_000), st.integers(1, 500_000)))
def test_dates(low: date, days: int) -> None:
    try:
        high = low + timedelta(days=days)
    except OverflowError:
        return
    least, largest = check(low.isoformat(), high.isoformat(), "date")
    if "9999" not in largest and not least.startswith("0000"):
        assert (date.fromisoformat(largest) - date.fromisoformat(least)).days < 3 * days


SPANS = st.one_of(
    st.integers(1, 3 * 10**6), st.integers(1, 3 * 10**11), st.integers(1, 10**14), st.integers(1, 4 * 10**15)
)


@given(st.datetimes(min_value=datetime(1000, 1, 1), max_value=datetime(9000, 1, 1)), SPANS)
def test_timestamps(low: datetime, micros: int) -> None:
    high = low + timedelta(microseconds=micros)
    least, largest = check(str(low), str(high), "timestamp")
    wide = (datetime.fromisoformat(largest) - datetime.fromisoformat(least)) / timedelta(microseconds=1)
    assert wide < 3 * max(micros, 10**6)


@pytest.mark.parametrize(
    ("low", "high", "kind", "label"),
    [
        ("61", "68", "integer", "[60, 70]"),
        ("23", "24", "integer", "[23, 24]"),
        ("-3", "4", "integer", "[-5, 5]"),
        ("18", "65", "integer", "[0, 80]"),
        ("1.5", "2.5", "real", "[1, 3]"),
        ("0.30", "0.35", "real", "[0.3, 0.35]"),
        ("1.0E10", "1.7E10", "real", "[10000000000, 20000000000]"),
        ("9007199254740993", "9007199254740999", "integer", "[9007199254740990, 9007199254741000]"),
        ("-Infinity", "3.0", "real", "[-Infinity, 3.0]"),
        ("2024-03-05", "2024-03-07", "date", "[2024-03-05, 2024-03-07]"),
        ("2024-03-05", "2024-03-14", "date", "[2024-03-04, 2024-03-17]"),
        ("2024-02-29", "2024-04-20", "date", "[2024-02-01, 2024-04-30]"),
        ("2023-11-05", "2024-04-20", "date", "[2023-10-01, 2024-06-30]"),
        ("2019-12-31", "2023-01-01", "date", "[2019-01-01, 2023-12-31]"),
        ("1961-05-01", "1984-01-01", "date", "[1960-01-01, 1989-12-31]"),
        ("1899-05-01", "2024-01-01", "date", "[1800-01-01, 2099-12-31]"),
        ("2024-03-05 10:11:12.25", "2024-03-05 10:11:12.5", "timestamp", "[2024-03-05 10:11:12, 2024-03-05 10:11:13]"),
        ("2024-03-05 10:11:12", "2024-03-05 12:11:12", "timestamp", "[2024-03-05 10:00:00, 2024-03-05 13:00:00]"),
        ("2024-03-05 10:11:12", "2024-05-01 00:00:00", "timestamp", "[2024-03-01 00:00:00, 2024-05-01 00:00:00]"),
    ],
)
def test_examples(low: str, high: str, kind: str, label: str) -> None:
    least, largest, _ = widen(low, high, kind)  # type: ignore[arg-type]
    assert f"[{least}, {largest}]" == label
    assert on_grid(label, kind)


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("[61, 68]", "integer"),
        ("[60, 71]", "integer"),
        ("[0, 70]", "integer"),  # on a grid of 10, but so wide a range has a coarser one
        ("[0.31, 0.35]", "real"),
        ("[2024-03-02, 2024-03-31]", "date"),
        ("[2024-03-05, 2024-03-17]", "date"),
        ("[2024-03-01, 2025-03-30]", "date"),
        ("[2024-03-05 10:11:12, 2024-03-05 13:00:00]", "timestamp"),
        ("[2024-03-05 00:00:00, 2024-05-01 00:00:00]", "timestamp"),
        ("[low, high]", "integer"),
        ("[x, y]", "date"),
    ],
)
def test_other_ends_are_noticed(label: str, kind: str) -> None:
    assert not on_grid(label, kind)
