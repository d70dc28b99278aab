"""Pseudonyms in the configuration: the key is asked for, long enough, and shown nowhere."""

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from kanon_spark.config.loader import LoadedConfig, load_config
from kanon_spark.config.models import Config
from kanon_spark.config.roles import assign_roles
from kanon_spark.config.schema import config_schema
from kanon_spark.errors import ConfigError
from kanon_spark.recoding.pseudonyms import pseudonym, pseudonym_key

KEY = "correct-horse-battery-staple"


def job(key: object = "${KANON_KEY}", **more: Any) -> dict[str, Any]:
    identifiers = {"name": {}, "ssn": {"pseudonym": {"key": key, **more}}}
    return {"columns": {"identifiers": identifiers, "quasi_identifiers": ["age"], "other": "keep"}}


def load(key: object = "${KANON_KEY}", *, value: str | None = KEY, optional: bool = False, **more: Any) -> LoadedConfig:
    env = {} if value is None else {"KANON_KEY": value}
    return load_config(job(key, **more), env=env, keys_optional=optional)


def test_the_key_comes_from_the_environment() -> None:
    spec = load(stable=True).config.columns.identifiers["ssn"].pseudonym
    assert spec is not None
    assert (spec.key_bytes, spec.stable, spec.salt("run")) == (KEY.encode(), True, "")
    other = load().config.columns.identifiers["ssn"].pseudonym
    assert other is not None
    assert (other.stable, other.salt("run")) == (False, "run")


@pytest.mark.parametrize(("value", "size"), [("fifteen bytes, x", 16), ("fifteen bytes,x", 15), ("", 0), ("ü" * 7, 14)])
def test_a_short_key_is_refused_and_not_shown(value: str, size: int) -> None:
    if size >= 16:
        load(value=value)
        return
    with pytest.raises(ConfigError) as refused:
        load(value=value)
    text = str(refused.value)
    assert refused.value.exit_code == 2
    assert f"columns.identifiers.ssn.pseudonym.key\n    the key has {size} bytes and needs at least 16" in text
    assert not value or value not in text


@pytest.mark.parametrize("key", [None, 1234567890123456, ["list"], "\udcff" * 20])
def test_a_key_that_is_no_text_is_refused_and_not_shown(key: object) -> None:
    with pytest.raises(ConfigError, match=r"columns\.identifiers\.ssn\.pseudonym\.key") as refused:
        load(key)
    assert "1234567890" not in str(refused.value)
    assert "udcff" not in ascii(str(refused.value))


def test_an_unset_key_is_refused_unless_one_only_looks(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the environment variable KANON_KEY is not set"):
        load(value=None)
    spec = load(value=None, optional=True).config.columns.identifiers["ssn"].pseudonym
    assert spec is not None
    assert spec.key_bytes is None
    known = load(optional=True).config.columns.identifiers["ssn"].pseudonym
    assert known is not None
    assert known.key_bytes == KEY.encode()
    # Only a key may be missing, and one that is there must be good.
    with pytest.raises(ConfigError, match="16"):
        load(value="short", optional=True)
    with pytest.raises(ConfigError, match="OTHER is not set"):
        load_config({**job(), "name": "${OTHER}"}, env={}, keys_optional=True)


def test_nothing_shows_the_key() -> None:
    loaded = load()
    assert KEY not in repr(loaded)
    assert KEY not in str(loaded.config)
    with pytest.raises(ValidationError) as refused:
        Config.model_validate(job("short-secret"))
    assert "short-secret" not in str(refused.value)


def test_the_hash_of_a_configuration_does_not_depend_on_a_key() -> None:
    assert load(KEY).sha256 == load(KEY + "2").sha256, "a hash would let others test guesses at a weak key"
    assert load(KEY).sha256 != load("${KANON_KEY}").sha256
    assert load(KEY).sha256 != load(KEY, stable=True).sha256


def test_a_configuration_loads_again_with_its_key() -> None:
    config = load(stable=True).config
    assert load_config(config).config == config


def test_roles() -> None:
    config = load().config
    roles = assign_roles(config, ["name", "ssn", "age", "note"])
    assert (roles.pseudonyms, roles.kept, roles.dropped) == (("ssn",), ("note",), ("name",))
    unit = load_config({**job(KEY), "privacy": {"unit": "ssn"}}).config
    assert assign_roles(unit, ["ssn", "age"]).dropped == ()
    assert assign_roles(unit, ["name", "age"]).missing == ("ssn",)


def test_a_pseudonym_cannot_partition_the_release() -> None:
    with pytest.raises(ConfigError, match="an identifier cannot partition"):
        load_config({**job(KEY), "sink": {"path": "out", "partition_by": ["ssn"]}})


def test_the_schema_knows_pseudonyms() -> None:
    spec = config_schema()["$defs"]["PseudonymSpec"]
    assert spec["required"] == ["key"]
    assert spec["properties"]["key"] == {"type": "string", "minLength": 1, "title": "Key"}, "${NAME} may be short"
    assert KEY not in json.dumps(spec)


def test_pseudonyms_are_what_the_documentation_says() -> None:
    """Step by step as in conf/README.md: those who hold the key rely on it."""
    run_key = hmac.new(KEY.encode(), b"kanon_spark pseudonym 1\0ssn\0run", hashlib.sha256).digest()
    expected = hmac.new(run_key, "Zoë".encode(), hashlib.sha256).hexdigest()[:32]
    assert pseudonym(pseudonym_key(KEY.encode(), column="ssn", salt="run"), "Zoë".encode()) == expected
