"""Loading: files, overrides, the environment, and every problem in one pass."""

from pathlib import Path
from typing import Any

import pytest

from kanon_spark.config.loader import config_from_kwargs, load_config
from kanon_spark.config.models import IntervalSpec
from kanon_spark.config.overrides import parse_override
from kanon_spark.config.problems import SHOWN_PROBLEMS
from kanon_spark.errors import ConfigError, MissingInputError

GOOD: dict[str, Any] = {
    "columns": {"quasi_identifiers": {"age": {}, "zip": {}}, "sensitive": ["ill"]},
    "privacy": {"k": 5},
}


def write(folder: Path, text: str) -> Path:
    path = folder / "job.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def problems_of(config: Any, **options: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(config, **options)
    return str(caught.value)


def test_a_file_knows_its_folder_and_its_hash(tmp_path: Path) -> None:
    path = write(tmp_path, "columns: {quasi_identifiers: [age], sensitive: [ill]}\nprivacy: {k: 3}\n")
    loaded = load_config(path)
    assert loaded.config.privacy.k == 3
    assert loaded.base_dir == tmp_path
    assert loaded.resolve("x/../y.csv") == str(tmp_path / "y.csv")
    same = {"privacy": {"k": 3}, "columns": {"sensitive": ["ill"], "quasi_identifiers": ["age"]}}
    assert load_config(same).sha256 == loaded.sha256
    assert load_config(same, overrides=["privacy.k=4"]).sha256 != loaded.sha256


@pytest.mark.parametrize("path", ["/abs/x", "s3a://bucket/x", "hdfs://host/x"])
def test_absolute_paths_stay(path: str) -> None:
    assert load_config(GOOD).resolve(path) == path


def test_a_missing_file_names_its_neighbours(tmp_path: Path) -> None:
    write(tmp_path, "")
    with pytest.raises(MissingInputError, match=r"no such configuration file.*\n.*job\.yaml"):
        load_config(tmp_path / "jib.yaml")
    with pytest.raises(MissingInputError, match="folder"):
        load_config(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("- a", "must be a mapping"),
        ("a: [1\nb: 2", "line 2"),
        ("columns: {quasi_identifiers: [a]}\nprivacy:\n  k: 2\n  k: 3", "lines 3 and 4"),
        ("columns: {quasi_identifiers: {no: {}}}", "put it in quotes"),
        ("columns: {quasi_identifiers: [2020-13-45]}", "in quotes"),
        ("columns: {quasi_identifiers: [yes]}", "put it in quotes"),
    ],
)
def test_unreadable_yaml_says_where_and_what(tmp_path: Path, text: str, message: str) -> None:
    assert message in problems_of(write(tmp_path, text))


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_bytes(b"name: \xff\xfe")
    assert "UTF-8" in problems_of(path)


def test_yaml_anchors_and_merges_are_no_duplicates(tmp_path: Path) -> None:
    text = "columns:\n  quasi_identifiers:\n    a: &base {weight: 2}\n    b: {<<: *base, weight: 3}\n"
    specs = load_config(write(tmp_path, text)).config.columns.quasi_identifiers
    assert (specs["a"].weight, specs["b"].weight) == (2, 3)


def test_all_problems_come_in_one_pass_grouped_by_path() -> None:
    text = problems_of(
        {
            "versin": 1,
            "source": {"path": "a", "table": "b"},
            "columns": {
                "identifiers": ["name", "age"],
                "quasi_identifiers": {
                    "age": {"hierarchy": {"interval": {"widths": [5, 12], "orign": 1}}},
                    "zip": {"hierarchy": {"prefx": {"keep": [4]}}, "wieght": 2},
                },
                "sensitive": ["name"],
            },
            "privacy": {"k": 1, "unit": "zip"},
            "schedule": {"repeat": "again"},
            "method": "latice",
            "sink": {"path": "out", "format": "delta", "partition_by": ["age"]},
        },
        overrides=["execution.seed=many", "nonsense"],
    )
    for part in (
        "15 problems",
        "did you mean 'version'?",
        "exactly one of path, table or jdbc",
        "columns.quasi_identifiers.age.hierarchy.interval.widths\n    widths must nest",
        "did you mean 'origin'?",
        "did you mean 'prefix'?",
        "did you mean 'weight'?",
        "columns.quasi_identifiers.age\n    the column already stands in columns.identifiers",
        "columns.sensitive.name\n    the column already stands in columns.identifiers",
        "privacy.k\n    must be at least 2 (found 1)",
        "schedule.repeat\n    ",
        "privacy.unit\n    the person's column cannot be a quasi-identifier",
        "did you mean 'lattice'? (found 'latice')",
        "sink.partition_by[0]\n    a quasi-identifier",
        "execution.seed\n    a whole number is expected (found 'many')",
        "--set nonsense\n    must be written as a.b=value",
    ):
        assert part in text, part


def test_a_flood_of_problems_fits_a_screen() -> None:
    text = problems_of({**GOOD, "privacy": {f"x{number}": 1 for number in range(50)}})
    assert f"and {50 - SHOWN_PROBLEMS} more" in text
    assert len(text.splitlines()) < 50


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"sink": {"path": "data/a"}, "source": {"path": "data/a/"}}, "sink.path"),
        ({"sink": {"path": "data"}, "source": {"path": "data/a"}}, "sink.path"),
        ({"sink": {"path": "data/a/b"}, "source": {"path": "data/a"}}, "sink.path"),
        ({"sink": {"table": "t"}, "source": {"table": "t"}}, "sink.table"),
        ({"sink": {"path": "out"}, "execution": {"work_dir": "out/work"}}, "execution.work_dir"),
        ({"sink": {"path": "work/out"}, "execution": {"work_dir": "work"}}, "sink.path"),
        ({"sink": {"path": "out"}, "report": {"manifest": "out/m.json"}}, "report.manifest"),
        ({"sink": {"path": "out", "partition_by": ["zip"]}}, "sink.partition_by[0]"),
        ({"privacy": {"unit": "ill"}}, "privacy.unit"),
        ({"method": {"name": "lattice", "cut": "paper"}}, "method.cut"),
        ({"method": {"name": "mst", "order": "paper"}}, "method.order"),
    ],
)
def test_rules_across_sections(change: dict[str, Any], path: str) -> None:
    assert f"  {path}\n" in problems_of({**GOOD, **change})


def test_the_unit_may_be_an_identifier() -> None:
    columns = {**GOOD["columns"], "identifiers": ["person"]}
    assert load_config({"columns": columns, "privacy": {"unit": "person"}}).config.privacy.unit == "person"


JDBC = {"url": "jdbc:postgresql://db/house", "table": "T"}


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"sink": {"jdbc": {**JDBC, "url": "jdbc:mysql://db/house"}}}, "only PostgreSQL is served"),
        ({"source": {"jdbc": {**JDBC, "url": "jdbc:postgresql://db/x?user=me&password=hush"}}}, "keys of their own"),
        ({"source": {"jdbc": {**JDBC, "query": "SELECT 1"}}}, "exactly one of table and query"),
        ({"source": {"jdbc": {**JDBC, "options": {"Password": "hush"}}}}, "not an option"),
        ({"source": {"jdbc": JDBC, "version": 3}}, "only Delta and Iceberg tables have versions"),
        ({"source": {"jdbc": JDBC, "format": "delta"}}, "a database has no format"),
        ({"source": {"table": "a.b", "format": "csv"}}, "format belongs to a path"),
        ({"sink": {"jdbc": {"url": JDBC["url"], "query": "SELECT 1"}}}, "not to a query"),
        ({"sink": {"jdbc": JDBC, "partition_by": ["x"]}}, "neither format nor partition_by"),
        ({"sink": {"jdbc": {**JDBC, "table": 'a"; drop'}}}, "name or schema.name"),
        ({"sink": {"path": "out", "format": "iceberg"}}, "table of a catalog"),
        ({"sink": {"table": "a.b", "format": "csv"}}, "parquet, delta or iceberg"),
        ({"sink": {"table": "a.b", "layout": "pointer"}}, "layout belongs to a path"),
    ],
)
def test_warehouse_places_that_make_no_sense(section: dict[str, Any], words: str) -> None:
    text = problems_of({**GOOD, **section})
    assert words in text
    assert "hush" not in text


def test_a_password_is_neither_shown_nor_hashed() -> None:
    one, two = (
        load_config({**GOOD, "sink": {"jdbc": {**JDBC, "user": "me", "password": word}}}) for word in ("hush", "hash")
    )
    assert one.sha256 == two.sha256
    assert "hush" not in one.text + repr(one.config)
    assert one.config.sink is not None and one.config.sink.jdbc is not None
    assert (one.config.sink.jdbc.table, one.config.sink.jdbc.password) == ("t", "hush")


def test_the_environment_is_filled_in_after_parsing_and_never_shown(tmp_path: Path) -> None:
    env = {"K": "7", "SECRET": "hunter22: {x: 1}", "COLUMN": "zipzip"}
    base = "columns: {quasi_identifiers: [age], sensitive: ['${COLUMN}']}\n"
    loaded = load_config(write(tmp_path, base + 'privacy: {k: "${K}"}\nname: "a ${SECRET} $${K}"\n'), env=env)
    assert loaded.config.privacy.k == 7
    assert loaded.config.name == "a hunter22: {x: 1} ${K}"
    assert list(loaded.config.columns.sensitive) == ["zipzip"]
    other = load_config(tmp_path / "job.yaml", env={**env, "SECRET": "other"})
    assert other.sha256 == loaded.sha256

    wrong = write(tmp_path, base + 'privacy: {k: "${SECRET}", unit: "${COLUMN}"}\nname: "${UNSET}"\n')
    text = problems_of(wrong, env=env)
    assert "the environment variable UNSET is not set" in text
    assert "(found '${SECRET}')" in text
    assert "hunter22" not in text
    assert "zipzip" not in text


@pytest.mark.parametrize(
    ("text", "parts", "value"),
    [
        ("privacy.k=10", ["privacy", "k"], 10),
        ("a=b=c", ["a"], "b=c"),
        ("a.b=[x, y]", ["a", "b"], ["x", "y"]),
        ('columns.quasi_identifiers."a.b = c".weight=2', ["columns", "quasi_identifiers", "a.b = c", "weight"], 2),
        ("columns.quasi_identifiers.'x y'.weight=2", ["columns", "quasi_identifiers", "x y", "weight"], 2),
        ("marital-status.größe=", ["marital-status", "größe"], None),
    ],
)
def test_overrides_are_parsed(text: str, parts: list[str], value: object) -> None:
    assert parse_override(text) == (parts, value)


@pytest.mark.parametrize("text", ["a", "=1", "a.=1", ".a=1", "a..b=1", 'a."b=1', "a=[1", "a={b: 1, b: 2}"])
def test_wrong_overrides_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"written as|YAML|twice"):
        parse_override(text)


def test_a_wrong_override_does_not_show_its_value() -> None:
    assert "hunter22" not in problems_of(GOOD, overrides=["source.jdbc.password=[hunter22"])


def test_overrides_reach_into_short_forms_and_new_sections() -> None:
    config = {"columns": {"quasi_identifiers": ["age", "a.b"]}, "method": "lattice", "source": "x.csv"}
    loaded = load_config(
        config,
        overrides=[
            "method.effort=high",
            "source.where=age > 3",
            'columns.quasi_identifiers."a.b".weight=2',
            "execution.block_size=100",
        ],
    ).config
    assert (loaded.method.name, loaded.method.effort) == ("lattice", "high")
    assert loaded.source is not None
    assert (loaded.source.path, loaded.source.where) == ("x.csv", "age > 3")
    assert loaded.columns.quasi_identifiers["a.b"].weight == 2
    assert loaded.execution.block_size == 100
    assert config["method"] == "lattice"  # the caller's dict stays as it was


def test_an_override_cannot_go_through_a_number() -> None:
    assert "not a mapping" in problems_of(GOOD, overrides=["privacy.k.x=1"])


def test_keyword_arguments_equal_the_nested_form() -> None:
    flat = config_from_kwargs(
        quasi_identifiers=["age", "sex"],
        hierarchies={"age": IntervalSpec(widths=(5, 10)), "sex": "flat"},
        sensitive=["ill"],
        identifiers=["name"],
        other="keep",
        k=10,
        unit="name",
        max_suppression=0.1,
        method="lattice",
        effort="high",
        block_size=50,
        sink={"path": Path("out")},
    )
    nested = load_config(
        {
            "columns": {
                "quasi_identifiers": {
                    "age": {"hierarchy": {"interval": {"widths": [5, 10]}}},
                    "sex": {"hierarchy": "flat"},
                },
                "sensitive": ["ill"],
                "identifiers": ["name"],
                "other": "keep",
            },
            "privacy": {"k": 10, "unit": "name", "max_suppression": 0.1},
            "method": {"name": "lattice", "effort": "high"},
            "execution": {"block_size": 50},
            "sink": {"path": "out"},
        }
    )
    assert flat.config == nested.config
    assert flat.sha256 == nested.sha256


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"quasi_identifier": ["a"]}, "did you mean 'quasi_identifiers'?"),
        ({"quasi_identifiers": ["a"], "k": 5, "privacy": {"k": 6}}, "given twice"),
        ({"quasi_identifiers": ["age"], "hierarchies": {"aeg": "flat"}}, "did you mean 'age'?"),
        ({"quasi_identifiers": ["age"], "hierarchies": ["flat"]}, "a mapping of column names"),
        ({}, "columns\n    is required"),
        ({"k": 5, "privacy": 3, "quasi_identifiers": ["a"]}, "privacy\n    a mapping is expected"),
    ],
)
def test_wrong_keyword_arguments(kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config_from_kwargs(**kwargs)
    assert message in str(caught.value)


def test_a_config_loads_to_itself() -> None:
    config = load_config(GOOD).config
    assert load_config(config).config == config
