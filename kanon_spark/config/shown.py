"""A configuration as a report may show it: what could be a secret is left out."""

import re
from typing import Any

HIDDEN = "(not shown)"
# Options of sources and sinks are passed on to Spark, and hold user names, passwords and tokens of any spelling.
_HIDDEN_BELOW = {"options", "connection"}
_HIDDEN_KEYS = {"key", "password", "secret", "token", "user", "url"}
_VARIABLE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")


def shown_text(raw: Any) -> str:
    """The configuration as YAML. `${NAME}` stays as it was written: it names a secret and holds none.

    >>> print(shown_text({"source": {"path": "a.csv", "options": {"token": "s3cret"}}}), end="")
    source:
      path: a.csv
      options:
        token: (not shown)
    """
    import yaml

    return yaml.safe_dump(_shown(raw), sort_keys=False, allow_unicode=True)


def _shown(node: Any, *, hidden: bool = False) -> Any:
    if isinstance(node, dict):
        return {
            str(name): _shown(
                value, hidden=hidden or name in _HIDDEN_BELOW or (name in _HIDDEN_KEYS and _is_leaf(value))
            )
            for name, value in node.items()
        }
    if isinstance(node, list | tuple):
        return [_shown(value, hidden=hidden) for value in node]
    if hidden and not (isinstance(node, str) and _VARIABLE.fullmatch(node)):
        return HIDDEN
    return node if node is None or isinstance(node, bool | int | float | str) else str(node)


def _is_leaf(value: Any) -> bool:
    return not isinstance(value, dict | list | tuple)
