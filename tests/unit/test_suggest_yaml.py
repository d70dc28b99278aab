"""The draft as YAML: it reads back as the configuration it is, whatever columns are called, and tells no value."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from suggest_profiles import column, table

from kanon_spark.config.loader import load_config
from kanon_spark.config.yaml_text import parse_yaml
from kanon_spark.errors import RequestError
from kanon_spark.explore.suggest.hierarchies import draft_hierarchy
from kanon_spark.explore.suggest.places import places_of
from kanon_spark.explore.suggest.profile import ColumnProfile
from kanon_spark.explore.suggest.roles import decide_roles
from kanon_spark.explore.suggest.suggestion import Places, Suggestion
from kanon_spark.explore.suggest.uniqueness import Uniqueness
from kanon_spark.explore.suggest.yaml_draft import flow, scalar
from kanon_spark.risk.facts import ColumnRank, Combination

PLACES = Places("t", {"path": "/data/t.parquet"}, "out/t/release", "out/t")


def draft(*columns: ColumnProfile, unit: str | None = None, places: Places = PLACES, show: bool = False) -> Suggestion:
    """What `suggest` would put together of these columns, the counting aside."""
    profile = table(*columns)
    verdicts = decide_roles(profile, k=5)
    drafts = {
        verdict.column: drafted
        for verdict in verdicts
        if verdict.role == "quasi-identifier" and (drafted := draft_hierarchy(verdict)) is not None
    }
    ranks = tuple(ColumnRank(name, 7, 0.1, 0.5) for name in drafts)
    worst = (Combination(tuple(drafts), 0.25, 4.0),)
    counted = "persons" if unit else "rows"
    found = Uniqueness(profile.rows, counted, profile.rows // 2, 0.75, ranks, worst)
    return Suggestion(verdicts, drafts, unit, 5, profile, found, places, show)


def usual() -> list[ColumnProfile]:
    return [
        column("patient_id", [n // 2 for n in range(200)]),
        column("age", [20 + n % 60 for n in range(200)]),
        column("diagnosis", ["flu", "asthma", "stroke", "gout"] * 50),
        column("cost", [n + 0.25 for n in range(200)]),
    ]


def test_a_draft_loads_and_says_what_was_found() -> None:
    made = draft(*usual(), unit="patient_id")
    config = load_config(yaml.safe_load(made.yaml)).config
    assert list(config.columns.identifiers) == ["patient_id"]
    assert list(config.columns.quasi_identifiers) == ["age"]
    assert list(config.columns.sensitive) == ["diagnosis"]
    assert (config.columns.other, config.privacy.k, config.privacy.unit) == ("drop", 5, "patient_id")
    assert config.privacy.max_suppression == 0
    text = made.yaml
    assert "50.0% of the persons are the only ones with their age; 75.0% share it with fewer than 4 others" in text
    assert "Please decide:" in text
    assert "- cost: Nearly every row has its own number" in text
    assert "l_diversity: 2 would keep classes" in text
    assert max(map(len, text.splitlines())) <= 120


def test_without_a_source_it_is_for_a_dataframe() -> None:
    made = draft(*usual(), places=Places("release"))
    assert {"source", "sink", "report"}.isdisjoint(yaml.safe_load(made.yaml))
    assert made.yaml.endswith("coarse.\n")


NAMES = st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=12)
ODD = [
    "no", "1", "1.5", "2020-01-01", "a: b", "# c", "a.b", "x\ny", "${HOME}", "$${HOME}", "<<", "a\u2028b", "é", "👩‍⚕️",
    '"', "~",
]  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_odd_names(name: str) -> None:
    assert_reads_back([name, f"{name} id", f"{name} age", f"{name}/diagnosis"])


@given(st.lists(NAMES, min_size=1, max_size=4, unique_by=str.lower))
@settings(max_examples=150, deadline=None)
def test_any_names(names: list[str]) -> None:
    assert_reads_back(names)


def assert_reads_back(names: list[str]) -> None:
    """As every role: the text is read as the dict, and the dict as the configuration meant."""
    columns = [column(name, [f"v{n % 3}" for n in range(90)]) for name in names]
    columns += [column("the_user_id", [n // 2 for n in range(90)]), column("age", [20 + n % 8 for n in range(90)])]
    within = names[0].replace("/", "_")  # the release lies in a folder of its own, beside the report
    places = Places(names[0], {"path": f"/data/{names[0]}"}, f"out/of {within}", "out")
    made = draft(*columns, unit="the_user_id", places=places)
    raw, problems = parse_yaml(made.yaml, origin="test")
    assert problems == []
    assert raw == made.config
    config = load_config(raw, env={}).config
    assert set(config.columns.quasi_identifiers) == {n for n, role in made.roles.items() if role == "quasi-identifier"}
    assert set(config.columns.identifiers) == {n for n, role in made.roles.items() if role == "identifier"}
    assert config.source is not None
    assert (config.name, config.source.path) == (names[0], f"/data/{names[0]}")


def test_a_unit_that_looks_like_a_variable_stays_what_it_is() -> None:
    made = draft(*usual(), column("${user_id}", [n // 2 for n in range(200)]), unit="${user_id}")
    assert load_config(yaml.safe_load(made.yaml), env={}).config.privacy.unit == "${user_id}"


PLAIN = st.recursive(
    st.one_of(st.integers(), st.booleans(), st.none(), NAMES, st.floats(allow_nan=False, allow_infinity=False)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)


@given(PLAIN)
@settings(max_examples=100, deadline=None)
def test_flow_reads_back(value: Any) -> None:
    assert yaml.safe_load(flow(value)) == value


def test_scalars_stand_on_one_line() -> None:
    assert scalar("two words " * 40).count("\n") == 0
    assert yaml.safe_load(scalar("a\tb\nc")) == "a\tb\nc"


def canaries() -> tuple[list[ColumnProfile], list[str]]:
    rare = ["CANARY-name", "canary@example.org", "CANARY-illness", "987654", "CANARY-town"]
    columns = [
        column("name", [*[f"n{n}" for n in range(199)], rare[0]]),
        column("email", [*[f"e{n}@example.org" for n in range(199)], rare[1]]),
        column("diagnosis", [*["flu"] * 199, rare[2]]),
        column("age", [*[20 + n % 60 for n in range(199)], int(rare[3])]),
        column("city", [*[f"town {'abcdefg'[n % 7]}" for n in range(199)], rare[4]]),
    ]
    return columns, rare


def test_no_value_is_told_unless_asked_for() -> None:
    columns, rare = canaries()
    made = draft(*columns)
    assert made.roles["diagnosis"] == "sensitive"
    for text in (made.yaml, str(made.to_json()), repr(made)):
        assert not [value for value in rare if value in text]
        assert "flu" not in text
        assert "town" not in text
    shown = draft(*columns, show=True)
    assert '"flu"' in shown.yaml
    assert '"town a"' in shown.yaml
    assert yaml.safe_load(shown.yaml) == yaml.safe_load(made.yaml)
    assert shown.to_json()["columns"][2]["values"] == ["flu", rare[2]]


def test_hostile_values_cannot_leave_their_comment() -> None:
    hostile = "x\nprivacy: {k: 1}\u2028version: 9\x85sink: {}"
    made = draft(column("city", [hostile, "b", "c", "d", "e", "f"] * 20), show=True)
    assert yaml.safe_load(made.yaml) == made.config


def test_json_has_every_column() -> None:
    made = draft(*usual(), unit="patient_id")
    told = made.to_json()
    assert [entry["name"] for entry in told["columns"]] == ["patient_id", "age", "diagnosis", "cost"]
    first = told["columns"][0]
    assert (first["role"], first["unit"], first["rule"]) == ("identifier", True, "person id")
    assert told["columns"][1]["hierarchy"] == {"reference": "ages"}
    assert told["uniqueness"]["share"] == 0.5
    assert told["config"] == made.config


def test_writing(tmp_path: Path) -> None:
    made = draft(*usual(), column("größe", [150 + n % 50 for n in range(200)]))
    made.write(tmp_path / "c.yaml")
    assert load_config(tmp_path / "c.yaml").config.columns.quasi_identifiers.keys() == {"age", "größe"}


class TestPlaces:
    """Paths that are right wherever the file is put."""

    def test_source_absolute_and_release_beside_the_file(self, tmp_path: Path) -> None:
        places = places_of({"path": "data/t.csv.gz"}, base_dir=tmp_path, name=None, sink=None)
        assert places == Places("t", {"path": f"{tmp_path}/data/t.csv.gz"}, "out/t/release", "out/t")

    def test_a_catalog_table(self, tmp_path: Path) -> None:
        places = places_of({"table": "main.people"}, base_dir=tmp_path, name=None, sink=None)
        assert (places.name, places.source, places.sink) == ("people", {"table": "main.people"}, "out/people/release")

    def test_a_sink_that_is_asked_for(self, tmp_path: Path) -> None:
        places = places_of({"path": "t.parquet"}, base_dir=tmp_path, name="a b", sink="pub/x")
        assert (places.name, places.sink, places.reports) == ("a b", f"{tmp_path}/pub/x", f"{tmp_path}/pub/x_report")
        with pytest.raises(RequestError, match="its own source"):
            places_of({"path": "t.parquet"}, base_dir=tmp_path, name=None, sink="t.parquet/inner")

    def test_the_release_never_touches_its_source(self, tmp_path: Path) -> None:
        (tmp_path / "out" / "t").mkdir(parents=True)
        assert places_of({"path": "out/t"}, base_dir=tmp_path, name=None, sink=None).sink == "out/t_2/release"
        inside = places_of({"path": "."}, base_dir=tmp_path / "out", name="all", sink=None)
        assert inside.sink == f"{tmp_path}/all_anonymous/release"
        assert places_of({"path": "t"}, base_dir=tmp_path, name="../../x y", sink=None).sink == "out/_.._x_y/release"
