"""`--set a.b=c`: single keys of a configuration, changed from outside."""

import re
from typing import Any

from kanon_spark.config.privacy_specs import SHORT_FORMS
from kanon_spark.config.problems import Problem
from kanon_spark.config.yaml_text import parse_yaml
from kanon_spark.errors import ConfigError

# A name without dots, or anything in quotes.
_PART = re.compile(r"""\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[^."'=\s][^."'=]*?))\s*(?=[.=])""")


def parse_override(text: str) -> tuple[list[str], Any]:
    """Split `path=value`; the value is read as YAML, and names with dots stand in quotes.

    >>> parse_override('columns.quasi_identifiers."a.b".weight=2')
    (['columns', 'quasi_identifiers', 'a.b', 'weight'], 2)

    Raises:
        ValueError: The text is not of that form. (The message never holds the value, which may be a secret.)
    """
    parts: list[str] = []
    position = 0
    while True:
        match = _PART.match(text, position)
        if match is None:
            raise ValueError('must be written as a.b=value; names with dots stand in quotes: columns."a.b"=…')
        parts.append(next(group for group in match.groups() if group is not None))
        position = match.end() + 1
        if text[match.end()] == "=":
            break
    try:
        value, problems = parse_yaml(text[position:], origin=".".join(parts))
    except ConfigError:
        raise ValueError("the value is not readable as YAML; put it in quotes") from None
    if problems:
        raise ValueError("the value holds a key twice")
    return parts, value


def apply_override(raw: dict[str, Any], text: str) -> Problem | None:
    """Change `raw` in place; what stands in the way comes back as a problem."""
    path = f"--set {text.split('=')[0]}"
    try:
        parts, value = parse_override(text)
    except ValueError as error:
        return Problem(path, str(error))
    node: dict[str, Any] = raw
    for depth, part in enumerate(parts[:-1]):
        below = _opened(parts[: depth + 1], node.get(part))
        if not isinstance(below, dict):
            return Problem(path, f"'{part}' is not a mapping, so nothing can be set inside it")
        node[part] = below
        node = below
    node[parts[-1]] = value
    return None


def _opened(path: list[str], value: Any) -> Any:
    """Widen the short forms, so that a key can be set inside what was written in short."""
    if value is None:
        return {}
    model = path[0] == "privacy" or (path[:2] == ["columns", "sensitive"] and len(path) == 4)
    if model and path[-1] in SHORT_FORMS and isinstance(value, int | float | str) and not isinstance(value, bool):
        return {SHORT_FORMS[path[-1]]: value}
    if isinstance(value, list) and path[0] == "columns" and all(isinstance(item, str) for item in value):
        return {item: {} for item in value}
    if isinstance(value, str):
        if path == ["method"]:
            return {"name": value}
        if path in (["source"], ["sink"]):
            return {"path": value}
        if len(path) == 3 and path[:2] == ["columns", "quasi_identifiers"]:
            return {"hierarchy": value}
    return value
