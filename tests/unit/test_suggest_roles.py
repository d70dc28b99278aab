"""Profile in, roles out: every rule of `kanon suggest`, without Spark."""

import random
from datetime import date, datetime, timedelta
from typing import Any

import pytest
from suggest_profiles import column, table

from kanon_spark.explore.suggest.profile import ColumnProfile
from kanon_spark.explore.suggest.roles import ENOUGH, MOST, Verdict, decide_roles, unit_candidates

ROWS = 400
LUCK = random.Random(5)
SENTENCES = [" ".join(LUCK.choices(["the", "and", "went", "home", "with", "card"], k=8)) for _ in range(ROWS)]


def judge(name: str, values: list[Any], *, k: int = 5, **options: Any) -> Verdict:
    (verdict,) = decide_roles(table(column(name, values, **options)), k=k)
    return verdict


def told(name: str, values: list[Any], **options: Any) -> tuple[str, str]:
    verdict = judge(name, values, **options)
    return verdict.role, verdict.rule


def numbered(pattern: str) -> list[str]:
    return [pattern.format(n) for n in range(ROWS)]


@pytest.mark.parametrize(
    "pattern",
    [
        "ann{}@example.org", "+49 30 1{:06d}", "030/1{:06d}", "(212) 555-{:04d}", "212-555-{:04d}",
        "DE89 3704 0044 0532 {:04d} 00", "GB29NWBK6016133192{:04d}", "123-45-{:04d}", "4111 1111 1111 {:04d}",
        "10.0.1.{:d}", "2001:0db8:85a3:0000:0000:8a2e:0370:{:04x}", "fe80::{:x}", "00:1b:44:11:3a:{:02d}",
        "00000000-0000-4000-8000-{:012d}", "{:064x}", "https://example.org/{}", "48.1371{:03d}, 11.5754",
    ],
)  # fmt: skip
def test_shapes_that_identify(pattern: str) -> None:
    values = [pattern.format(n % 100) for n in range(ROWS)]
    assert told("x", values) == ("identifier", "pattern")
    assert told("diagnosis", values)[0] == "identifier", "whatever the name says"


def test_a_few_addresses_among_other_texts() -> None:
    verdict = judge("kontakt", ["per Post"] * (ROWS - 20) + ["ann@example.org"] * 20)
    assert (verdict.role, verdict.rule, verdict.unsure) == ("identifier", "pattern", True)


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("patient_id", [n // 3 for n in range(ROWS)], ("identifier", "person id")),
        ("customer_no", numbered("C{}"), ("identifier", "person id")),
        ("name", ["Ann", "Bob"] * 200, ("identifier", "name")),
        ("street", ["Main Street 1", "Main Street 2"] * 200, ("identifier", "name")),
        ("phone_verified", [True, False] * 200, ("quasi-identifier", "separation")),
        ("last_login", [datetime(2024, 1, 1, n % 24) for n in range(ROWS)], ("quasi-identifier", "time")),
        ("visit_id", numbered("V{}"), ("identifier", "key")),
        ("store_id", [n % 7 for n in range(ROWS)], ("quasi-identifier", "name")),
        ("token", numbered("q{}w"), ("identifier", "unique")),
        ("sequence", list(range(1000, 1000 + ROWS)), ("identifier", "unique")),
        ("reading", [n * n * 7 for n in range(ROWS)], ("drop", "unique")),
        ("cost", [n + 0.25 for n in range(ROWS)], ("drop", "unique")),
        ("weird", [n // 2 for n in range(ROWS)], ("drop", "unsure")),
        ("age", [20 + n % 60 for n in range(ROWS)], ("quasi-identifier", "name")),
        ("admitted", [date(2024, 1, 1) + timedelta(days=n) for n in range(ROWS)], ("quasi-identifier", "time")),
        ("seen", [f"2024-01-{1 + n % 28:02d}" for n in range(ROWS)], ("quasi-identifier", "time")),
        ("Geburtsdatum", [f"{1 + n % 28}.12.1970" for n in range(ROWS)], ("drop", "time")),
        ("occupation", [f"trade {n}" for n in range(ROWS)], ("drop", "varied")),
        ("zip", [f"{10_000 + n}" for n in range(ROWS)], ("quasi-identifier", "name")),
        ("zip", [f"{n % 1000:03d}-3456" for n in range(ROWS)], ("quasi-identifier", "name")),
        ("comment", SENTENCES, ("drop", "free text")),
        ("diagnosis", SENTENCES, ("drop", "free text")),
        ("diagnosis", ["flu", "asthma", None, "stroke"] * 100, ("sensitive", "name")),
        ("income", [1000 * (n % 20) for n in range(ROWS)], ("sensitive", "name")),
        ("income", [1000 + n // 2 for n in range(ROWS)], ("drop", "sensitive but rare")),
        ("diagnosis", ["flu"] * 390 + ["flu, see ann@example.org"] * 10, ("drop", "sensitive but identifying")),
        ("diagnosis_date", [date(2024, 1, 1 + n % 28) for n in range(ROWS)], ("quasi-identifier", "time")),
        ("age_at_diagnosis", [20 + n % 60 for n in range(ROWS)], ("quasi-identifier", "name")),
        ("version", ["1"] * ROWS, ("drop", "constant")),
        ("nothing", [None] * ROWS, ("drop", "constant")),
        ("where_from", ["CA", "NY", "TX", "FL", "OH"] * 80, ("quasi-identifier", "reference")),
        ("zimmer", ["A15", "A16", "B15", "B16", "C18", "E10"] * 67, ("drop", "reference")),
        ("ursprung", ["DE", "FR", "IT", "GB", "ES"] * 80, ("quasi-identifier", "reference")),
        ("colour", ["red", "blue", "green"] * 134, ("quasi-identifier", "separation")),
    ],
)  # fmt: skip
def test_rules(name: str, values: list[Any], expected: tuple[str, str]) -> None:
    assert told(name, values) == expected


def test_types_that_cannot_be_made_coarser_are_dropped() -> None:
    nested = ColumnProfile("email", "struct<a:string>", None, rows=10, filled=10, distinct=0)
    (verdict,) = decide_roles(table(nested), k=2)
    assert (verdict.role, verdict.rule) == ("drop", "type")
    assert "a:string" not in verdict.reason


def test_what_is_sensitive_must_be_shared_by_k() -> None:
    values = [f"d{n % 80}" for n in range(ROWS)]
    assert told("disease", values, k=5) == ("sensitive", "name")
    assert told("disease", values, k=6)[0] == "drop"
    rare = judge("disease", ["flu"] * 390 + ["asthma"] * 7 + ["x", "y", "z"])
    assert rare.role == "sensitive"
    assert "in 3 rows one that fewer than 5 share" in rare.reason


def test_unknown_columns_join_by_separation_while_there_is_room() -> None:
    """The most separating first, up to six quasi-identifiers; nothing is ever kept."""
    known = [column("age", [n % 50 for n in range(ROWS)]), column("sex", ["f", "m"] * 200)]
    unknown = [column(f"q{size}", [f"v{n % size}" for n in range(ROWS)]) for size in (2, 3, 4, 5, 6, 7)]
    verdicts = decide_roles(table(*known, *unknown), k=5)
    roles = {verdict.column: verdict.role for verdict in verdicts}
    assert [name for name, role in roles.items() if role == "quasi-identifier"] == [
        "age",
        "sex",
        "q4",
        "q5",
        "q6",
        "q7",
    ]
    assert roles["q2"] == roles["q3"] == "drop"
    assert all(verdict.unsure for verdict in verdicts if verdict.column.startswith("q"))
    (left,) = [verdict.reason for verdict in verdicts if verdict.column == "q2"]
    assert f"there are {ENOUGH} quasi-identifiers without it" in left


def test_there_is_an_upper_bound_on_quasi_identifiers() -> None:
    dates = [column(f"t{n}", [date(2024, 1, 1 + i % 28) for i in range(ROWS)]) for n in range(MOST + 3)]
    last = column("age", [n % 50 for n in range(ROWS)])
    verdicts = decide_roles(table(*dates, last), k=5)
    kept = [verdict.column for verdict in verdicts if verdict.role == "quasi-identifier"]
    assert len(kept) == MOST
    assert "age" in kept, "what says most about a person comes first"
    assert {verdict.rule for verdict in verdicts if verdict.role == "drop"} == {"too many"}


def candidates(*columns: ColumnProfile, k: int = 5) -> list[str]:
    return unit_candidates(decide_roles(table(*columns), k=k), k=k)


def test_the_persons_id_comes_before_other_ids() -> None:
    calls = column("call_id", numbered("c{}"))
    phones = column("msisdn", [f"+43664{n // 4:07d}" for n in range(ROWS)])
    people = column("subscriber_id", [n // 4 for n in range(ROWS)])
    assert candidates(calls, phones, people) == ["subscriber_id", "msisdn"]
    assert candidates(calls, phones) == ["msisdn"]


def test_a_key_that_repeats_may_be_the_unit_but_names_are_none() -> None:
    names = column("name", [f"Ann {n // 2}" for n in range(ROWS)])
    keys = column("id", [f"k{n // 2}" for n in range(ROWS)])
    assert candidates(names, keys) == ["id"]
    assert candidates(names) == []


def test_ids_that_are_mostly_empty_or_few_are_no_unit() -> None:
    assert candidates(column("patient_id", [None] * 300 + list(range(100)))) == []
    assert candidates(column("patient", ["yes", "no"] * 200)) == []
    assert candidates(column("patient_id", [1, 2] * 200)) == ["patient_id"], "two patients: k is too large, and told so"


def test_reasons_hold_no_values() -> None:
    canary = "Zaphod-4242"
    rare = column("diagnosis", ["flu"] * 395 + [canary] * 5)
    names = column("name", [canary] * ROWS)
    numbers = column("age", [30 + n % 9 for n in range(ROWS - 1)] + [987654])
    for verdict in decide_roles(table(rare, names, numbers), k=5):
        assert canary not in verdict.reason
        assert "987654" not in verdict.reason
