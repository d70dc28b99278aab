"""Every problem of a configuration in plain words: where, what is wrong, what was found, what is allowed or was meant.

Values are shown as they stand in the file: a `${NAME}` stays a `${NAME}`, and nothing from the environment is printed.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from pydantic import BaseModel

from kanon_spark.config.base import QUOTES
from kanon_spark.config.hierarchy_specs import BUILDERS
from kanon_spark.config.privacy_specs import SHORT_FORMS
from kanon_spark.config.words import did_you_mean

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Location = tuple[str | int, ...]

# A screen holds about this many; the rest is counted.
SHOWN_PROBLEMS = 20

# A bare value may stand for a mapping with one of these keys: `method: lattice`, `hierarchy: age.csv`, `alpha: 0.5`.
_SHORT_FORM_KEYS = frozenset({"name", "path", "csv", "hierarchy", *SHORT_FORMS.values()})

_SECRET_KEYS = frozenset({"password", "key", "user", "url", "query"})


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, at one place of the configuration."""

    path: str
    message: str
    found: str = ""

    def line(self) -> str:
        """The problem as one line under its path."""
        return f"{self.message} (found {self.found})" if self.found else self.message


def path_text(location: Sequence[str | int]) -> str:
    """A location as a user writes it.

    >>> path_text(("columns", "quasi_identifiers", "a.b", "widths", 0))
    'columns.quasi_identifiers."a.b".widths[0]'
    """
    text = ""
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if re.fullmatch(r"[\w-]+", part) else f'"{part}"'
            text += f".{name}" if text else name
    return text or "(the whole)"


def format_problems(problems: Iterable[Problem], *, origin: str) -> str:
    """All problems on one screen, grouped by path."""
    unique = list(dict.fromkeys(problems))
    by_path: dict[str, list[Problem]] = {}
    for problem in unique[:SHOWN_PROBLEMS]:
        by_path.setdefault(problem.path, []).append(problem)
    lines = [f"{origin}: {len(unique)} problem{'s' if len(unique) != 1 else ''}"]
    for path, group in by_path.items():
        lines.append(f"  {path}")
        lines += [f"    {problem.line()}" for problem in group]
    if len(unique) > SHOWN_PROBLEMS:
        lines.append(f"  and {len(unique) - SHOWN_PROBLEMS} more")
    return "\n".join(lines)


def problem_from(error: "ErrorDetails", raw: object, root: type[BaseModel]) -> Problem:
    """Say pydantic's error in our words; `raw` is the configuration before `${NAME}` was filled in."""
    location = error["loc"]
    kind, context = error["type"], error.get("ctx", {})
    found = shown(raw, location)
    if kind == "extra_forbidden":
        known = keys_at(root, location[:-1])
        message = f"unknown key; allowed here: {', '.join(known)}{did_you_mean(str(location[-1]), known)}"
        return Problem(path_text(location), message)
    if kind == "missing":
        return Problem(path_text(location), "is required, but missing")
    if kind == "literal_error":
        allowed = re.findall(r"'([^']*)'", context["expected"]) or [context["expected"]]
        value = _at(raw, location)
        guess = did_you_mean(value, allowed) if isinstance(value, str) else ""
        return Problem(path_text(location), f"allowed: {', '.join(allowed)}{guess}", found)
    return Problem(path_text(location), _message(kind, context, error["msg"]), found)


_EXPECTED = {
    "int": "a whole number is expected",
    "float": "a number is expected",
    "bool": "true or false is expected",
    "string": f"a text is expected; {QUOTES}",
    "dict": "a mapping is expected",
    "model": "a mapping is expected",
    "tuple": "a list is expected",
    "list": "a list is expected",
    "finite": "a finite number is expected",
}


def _message(kind: str, context: Mapping[str, object], fallback: str) -> str:
    match kind:
        case "rule":
            return str(context["text"])
        case "greater_than":
            return f"must be larger than {context['gt']:g}"
        case "greater_than_equal":
            return f"must be at least {context['ge']:g}"
        case "less_than_equal":
            return f"must be at most {context['le']:g}"
        case "string_too_short":
            return "must not be empty"
        case "string_too_long":
            return f"must be at most {context['max_length']} character long"
        case "too_short":
            return f"needs at least {context['min_length']} item"
    return _EXPECTED.get(kind.split("_")[0], fallback)


def keys_at(root: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    """The keys that the models know at a location."""
    models: list[type[BaseModel]] = [root]
    for part in location:
        name = str(part)
        fields = [model.model_fields[name] for model in models if name in model.model_fields]
        if fields:
            models = list(_models_in(fields[0].annotation))
        elif BUILDERS.get(name) in models:
            models = [BUILDERS[name]]
        # Otherwise the part is a column's name or a list index: the models below it are the ones at hand.
    return [name for model in models for name in model.model_fields]


def _models_in(annotation: object) -> Iterable[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def shown(raw: object, location: Sequence[str | int]) -> str:
    """What stands at a location, short and without secrets; empty where nothing does."""
    if any(part in _SECRET_KEYS for part in location if isinstance(part, str)):
        return ""
    value = _at(raw, location)
    if value is None:
        return ""
    if isinstance(value, Mapping):
        names = ", ".join(str(key) for key in value)
        return f"the keys {names}" if names and len(names) <= 60 else "a mapping"
    if isinstance(value, list | tuple):
        text = "[" + ", ".join(str(item) if isinstance(item, str | int | float) else "…" for item in value) + "]"
        return text if len(text) <= 60 else f"a list of {len(value)}"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = f"'{value}'" if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "…'"


def _at(raw: object, location: Sequence[str | int]) -> object:
    for part in location:
        if isinstance(raw, Mapping) and part in raw:
            raw = raw[part]
            continue
        if isinstance(raw, list | tuple) and isinstance(part, int) and part < len(raw):
            raw = raw[part]
        elif not (isinstance(raw, str | int | float) and part in _SHORT_FORM_KEYS):
            return None
    return raw
