"""The example files, their documentation and the schema keep together."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel

from kanon_spark.config.loader import load_config
from kanon_spark.config.models import Config, CsvSpec
from kanon_spark.config.schema import config_schema

CONF = Path(__file__).resolve().parents[2] / "conf"
FILES = sorted(CONF.rglob("*.yaml"))


pytestmark = pytest.mark.usefixtures("example_environment")


def test_there_are_examples() -> None:
    assert {"demo.yaml", "minimal.yaml", "lattice.yaml"} <= {path.name for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_example_round_trips_through_dict_yaml_and_arguments(path: Path, tmp_path: Path) -> None:
    from kanon_spark.config.loader import config_from_kwargs

    config = load_config(path).config
    form = config.to_dict()
    assert load_config(form).config == config
    written = tmp_path / "again.yaml"
    written.write_text(yaml.safe_dump(form, sort_keys=False), encoding="utf-8")
    assert load_config(written).config == config
    assert config_from_kwargs(**form).config == config


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_example_names_hierarchy_files_that_exist(path: Path) -> None:
    loaded = load_config(path)
    for spec in loaded.config.columns.quasi_identifiers.values():
        if isinstance(spec.hierarchy, CsvSpec):
            assert Path(loaded.resolve(spec.hierarchy.path)).is_file()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_example_fits_the_schema(path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(yaml.safe_load(path.read_text(encoding="utf-8")), config_schema())


@pytest.mark.parametrize(
    ("change", "fits"),
    [
        ({}, True),
        ({"method": "lattice"}, True),
        ({"method": "latice"}, False),
        ({"source": "a.parquet"}, True),
        ({"privacy": {"k": 1}}, False),
        ({"privacy": {"l_diversity": 3}}, True),
        ({"unknown": 1}, False),
        ({"columns": {"quasi_identifiers": {"a": "a.csv", "b": None, "c": {"hierarchy": {"csv": "x"}}}}}, True),
        ({"columns": {"quasi_identifiers": {"a": {"hierarchy": {"prefx": {}}}}}}, False),
        ({"columns": {}}, False),
    ],
)
def test_the_schema_knows_the_short_forms(change: dict[str, Any], fits: bool) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = config_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    config = {"columns": {"quasi_identifiers": ["age"]}, **change}
    assert jsonschema.Draft202012Validator(schema).is_valid(config) is fits


def test_the_schema_is_plain_json() -> None:
    assert json.loads(json.dumps(config_schema())) == config_schema()


def _keys(model: type[BaseModel]) -> Iterable[str]:
    for name, field in model.model_fields.items():
        yield name
        pending: list[object] = [field.annotation]
        while pending:
            kind = pending.pop()
            pending += get_args(kind)
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from _keys(kind)


def test_the_readme_documents_every_key() -> None:
    text = (CONF / "README.md").read_text(encoding="utf-8")
    code = " ".join(text.split("`")[1::2])
    missing = sorted({key for key in _keys(Config) if key not in code})
    assert missing == []


def test_every_method_has_an_example_of_its_own() -> None:
    from kanon_spark.config.models import MethodName

    shown = {path.stem: load_config(path).config.resolved_method for path in (CONF / "methods").glob("*.yaml")}
    assert shown == {name: name for name in get_args(MethodName) if name != "auto"}
