"""YAML to plain values. Duplicate keys, which YAML parsers silently let win, are refused with their lines."""

from collections.abc import Hashable
from typing import Any

import yaml

from kanon_spark.config.problems import Problem
from kanon_spark.errors import ConfigError


class _Loader(yaml.SafeLoader):
    """SafeLoader that notes keys standing twice in one mapping."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.problems: list[Problem] = []

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        lines: dict[Hashable, int] = {}
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge" or not isinstance(key_node, yaml.ScalarNode):
                continue
            line = key_node.start_mark.line + 1
            if key_node.value in lines:
                message = f"stands twice in one mapping, on lines {lines[key_node.value]} and {line}; keep one"
                self.problems.append(Problem(str(key_node.value), message))
            lines.setdefault(key_node.value, line)
        return super().construct_mapping(node, deep=deep)


def parse_yaml(text: str, *, origin: str) -> tuple[Any, list[Problem]]:
    """The values of a YAML text, and what is wrong with it short of being unreadable.

    Raises:
        ConfigError: The text is not YAML; the message names line and column.
    """
    loader = _Loader(text)
    try:
        return loader.get_single_data(), loader.problems
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{origin}, line {mark.line + 1}, column {mark.column + 1}" if mark else origin
        raise ConfigError(
            f"not readable as YAML: {error.problem or error.context}",
            where=place,
            fix="check indentation, colons and quotes there; texts with special characters need quotes",
        ) from None
    except (yaml.YAMLError, ValueError) as error:
        # ValueError: impossible dates such as 2020-13-45, which YAML tries to read as dates.
        reason = "it holds a character that YAML does not allow" if isinstance(error, yaml.YAMLError) else str(error)
        raise ConfigError(f"not readable as YAML: {reason}", where=origin, fix="put such texts in quotes") from None
    finally:
        loader.dispose()
