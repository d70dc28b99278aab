"""The models: short forms, bounds, and the way back to YAML."""

from typing import Any

import pytest
from pydantic import ValidationError

from kanon_spark.config.models import (
    Config,
    CsvSpec,
    DateSpec,
    FlatSpec,
    IntervalSpec,
    PrefixSpec,
    QiSpec,
    ReferenceSpec,
    SourceSpec,
)
from kanon_spark.config.roles import assign_roles


def config(**sections: Any) -> Config:
    return Config.model_validate({"columns": {"quasi_identifiers": ["age"]}, **sections})


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("a/age.csv", CsvSpec(path="a/age.csv")),
        ("flat", FlatSpec()),
        ({"flat": None}, FlatSpec()),
        ({"csv": "flat"}, CsvSpec(path="flat")),
        ({"csv": {"path": "x", "unknown": "root"}}, CsvSpec(path="x", unknown="root")),
        ({"interval": {"widths": [5, 10]}}, IntervalSpec(widths=(5, 10))),
        ({"interval": {"widths": [0.1, 0.3], "bottom": 0, "top": 9}}, IntervalSpec(widths=(0.1, 0.3), bottom=0, top=9)),
        ({"prefix": {"keep": [4, 2]}}, PrefixSpec(keep=(4, 2))),
        ({"date": {"levels": ["month", "year"]}}, DateSpec(levels=("month", "year"))),
        ({"reference": "icd10"}, ReferenceSpec(name="icd10")),
        ({"reference": {"name": "icd10", "unknown": "root"}}, ReferenceSpec(name="icd10", unknown="root")),
        ({"reference": "us_zip"}, PrefixSpec(keep=(3, 1))),
        (None, None),
    ],
)
def test_hierarchy_forms_are_read_and_written_back(written: object, meant: object) -> None:
    read = config(columns={"quasi_identifiers": {"q": {"hierarchy": written}}})
    assert read.columns.quasi_identifiers["q"].hierarchy == meant
    assert Config.model_validate(read.to_dict()) == read


@pytest.mark.parametrize(
    "wrong",
    [
        {"interval": {"widths": [5, 12]}},
        {"interval": {"widths": [10, 5]}},
        {"interval": {"widths": []}},
        {"interval": {"widths": [0]}},
        {"interval": {"widths": [5], "bottom": 9, "top": 9}},
        {"prefix": {"keep": [3, 4]}},
        {"prefix": {"keep": [3, 3]}},
        {"prefix": {"keep": [1, 0]}},
        {"date": {"levels": ["year", "month"]}},
        {"date": {"levels": ["week"]}},
        {"csv": {}},
        {"csv": {"path": "a", "unknown": "skip"}},
        {"reference": "planets"},
        {"reference": {"unknown": "root"}},
        {"reference": {"name": "us_zip", "unknown": "root"}},
        {"interval": {"widths": [5]}, "flat": None},
        {"intervall": {"widths": [5]}},
        "",
        7,
    ],
)
def test_wrong_hierarchies_are_refused(wrong: object) -> None:
    with pytest.raises(ValidationError):
        QiSpec.model_validate({"hierarchy": wrong})


@pytest.mark.parametrize(
    "wrong",
    [
        {"privacy": {"k": 1}},
        {"privacy": {"k": True}},
        {"privacy": {"k": 2.5}},
        {"privacy": {"max_suppression": 1.01}},
        {"privacy": {"max_suppression": -0.1}},
        {"columns": {"quasi_identifiers": {}}},
        {"columns": {"quasi_identifiers": ["a", "a"]}},
        {"columns": {"quasi_identifiers": [1]}},
        {"columns": {"quasi_identifiers": {"a": {"weight": 0}}}},
        {"columns": {"quasi_identifiers": {"a": {"weight": float("inf")}}}},
        {"columns": {"quasi_identifiers": {"a": {"hierarchy": "a.csv", "min_level": 2, "max_level": 1}}}},
        {"columns": {"quasi_identifiers": {"a": {"min_level": 1}}}},
        {"columns": {"quasi_identifiers": {"a": {"hierarchy": "flat", "min_level": 1}}}},
        {"columns": {"quasi_identifiers": {"a": {"hierarchy": "flat", "max_level": 2}}}},
        {"source": {"path": "a", "table": "b"}},
        {"source": {}},
        {"source": {"table": "b", "options": {"header": True}}},
        {"sink": {"format": "csv"}},
        {"sink": {"table": "b", "format": "csv"}},
        {"version": 2},
        {"execution": {"lease": 0}},
        {"nonsense": 1},
    ],
)
def test_wrong_values_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        config(**wrong)


def test_defaults_are_the_documented_ones() -> None:
    read = config()
    assert (read.privacy.k, read.privacy.max_suppression, read.columns.other) == (5, 0.0, "error")
    assert (read.method.name, read.resolved_method, read.method.effort) == ("auto", "kmember", "normal")
    assert (read.execution.seed, read.execution.lease, read.execution.bound) == (0, 60.0, "auto")
    assert read.to_dict() == {"version": 1, "columns": {"quasi_identifiers": {"age": {}}}}


def test_models_are_frozen() -> None:
    with pytest.raises(ValidationError):
        config().privacy.k = 3


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.csv", "csv"),
        ("A.CSV.gz", "csv"),
        ("a.json", "json"),
        ("a.orc", "orc"),
        ("a", "parquet"),
        ("a.parquet", "parquet"),
    ],
)
def test_the_format_follows_the_ending(path: str, expected: str) -> None:
    assert SourceSpec(path=path).format == expected
    assert SourceSpec(path=path, format="json").format == "json"
    assert SourceSpec(table=path).format is None


def test_reader_options_become_text() -> None:
    read = config(source={"path": "a.csv", "options": {"header": True, "maxColumns": 5, "sep": ";"}})
    assert read.source is not None
    assert read.source.options == {"header": "true", "maxColumns": "5", "sep": ";"}


def test_short_forms_of_sections_equal_their_long_forms() -> None:
    short = config(source="a.parquet", sink="out", method="lattice", columns={"quasi_identifiers": {"age": "age.csv"}})
    long = config(
        source={"path": "a.parquet"},
        sink={"path": "out"},
        method={"name": "lattice"},
        columns={"quasi_identifiers": {"age": {"hierarchy": {"csv": {"path": "age.csv"}}}}},
    )
    assert short == long


def test_roles_follow_the_configuration_and_the_unit_is_never_published() -> None:
    columns = {"identifiers": ["name"], "quasi_identifiers": ["zip", "age"], "sensitive": ["ill"]}
    table = ["ill", "age", "name", "person", "note", "zip"]
    roles = assign_roles(config(columns={**columns, "other": "keep"}, privacy={"unit": "person"}), table)
    assert roles.quasi_identifiers == ("zip", "age")
    assert roles.kept == ("ill", "note")
    assert roles.dropped == ("name", "person")
    assert assign_roles(config(columns=columns), table).without_role == ("person", "note")
    assert assign_roles(config(columns=columns), ["age"]).missing == ("name", "zip", "ill")
