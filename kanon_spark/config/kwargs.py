"""Keyword arguments of `Anonymizer`: the sections of a configuration, and flat names for what is asked for most."""

from pathlib import Path
from typing import Any

from kanon_spark.config.forms import plain
from kanon_spark.config.loader import LoadedConfig, check_raw
from kanon_spark.config.models import ColumnsSpec, Config, ExecutionSpec, PrivacySpec
from kanon_spark.config.problems import Problem
from kanon_spark.config.words import did_you_mean

_FLAT: dict[str, str] = {
    **{name: "columns" for name in ColumnsSpec.model_fields},
    **{name: "privacy" for name in PrivacySpec.model_fields},
    **{name: "execution" for name in ExecutionSpec.model_fields},
    "effort": "method",
    "suppressed_rows": "output",
}
_SHORT = {"method": "name", "source": "path", "sink": "path"}


def config_from_kwargs(**kwargs: Any) -> LoadedConfig:
    """The configuration that keyword arguments describe; the same as the dict or YAML that nests them.

    Flat names (`k=10`, `quasi_identifiers=…`, `effort="high"`) go to their sections, and `hierarchies={"age": …}` adds
    hierarchies to quasi-identifiers given as a list.

    >>> loaded = config_from_kwargs(quasi_identifiers=["age", "sex"], hierarchies={"sex": "flat"}, k=10)
    >>> loaded.config.privacy.k, loaded.config.columns.quasi_identifiers["sex"].hierarchy
    (10, FlatSpec())
    """
    raw: dict[str, Any] = {}
    problems: list[Problem] = []
    for name in (name for name in kwargs if name in Config.model_fields):
        value = plain(kwargs[name])
        raw[name] = {_SHORT[name]: value} if name in _SHORT and isinstance(value, str) else value
    for name in (name for name in kwargs if name not in Config.model_fields and name != "hierarchies"):
        section = _FLAT.get(name)
        if section is None:
            known = [*Config.model_fields, *_FLAT, "hierarchies"]
            problems.append(Problem(name, f"unknown argument{did_you_mean(name, known)}"))
            continue
        place = raw.setdefault(section, {})
        if not isinstance(place, dict):
            continue  # the section itself is wrong, and the models say so
        if name in place:
            problems.append(Problem(name, f"given twice: as {name}= and inside {section}="))
        place[name] = plain(kwargs[name])
    if "hierarchies" in kwargs:
        problems += _add_hierarchies(raw, plain(kwargs["hierarchies"]))
    return check_raw(raw, base_dir=Path.cwd(), origin="arguments", problems=problems)


def _add_hierarchies(raw: dict[str, Any], hierarchies: object) -> list[Problem]:
    if not isinstance(hierarchies, dict):
        return [Problem("hierarchies", "a mapping of column names to hierarchies is expected")]
    columns = raw.get("columns")
    given = columns.get("quasi_identifiers") if isinstance(columns, dict) else None
    if isinstance(given, list):
        given = {name: {} for name in given}
    if not isinstance(given, dict) or not isinstance(columns, dict):
        return []  # the models say that the quasi-identifiers are missing or wrong
    columns["quasi_identifiers"] = given
    problems = []
    for name, hierarchy in hierarchies.items():
        if name not in given:
            guess = did_you_mean(name, given)
            problems.append(Problem("hierarchies", f"'{name}' is not among the quasi-identifiers{guess}"))
        elif given[name]:
            problems.append(Problem("hierarchies", f"'{name}' has its settings already; put the hierarchy there"))
        else:
            given[name] = {"hierarchy": hierarchy}
    return problems
