"""What a manifest's details say: levels, distributions, sensitive values over the classes, the method's own way.

As in `facts.py`, whatever is missing from a manifest is left out.
"""

from collections.abc import Mapping
from typing import Any

from kanon_spark.report.facts import Manifest, lookup, number, percent

_MOST_STEPS = 60  # lines of a method's trace
TreeLine = tuple[str, float, str]


def _maps(found: Any) -> list[Mapping[str, Any]]:
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list | tuple) else []


def published_levels(manifest: Manifest) -> list[tuple[str, str, str]]:
    """Per quasi-identifier its loss, and how its rows were published: level or form with its share of the rows.

    >>> published_levels({"metrics": {"per_qi": {"age": {"ncp": 0.5, "levels": {"0": 1, "2": 3}}}}})
    [('age', '50.0%', 'as it was 25.0%, level 2 75.0%')]
    """
    per_qi = lookup(manifest, "metrics", "per_qi")
    if not isinstance(per_qi, Mapping):
        return []
    lines = []
    for name, facts in per_qi.items():
        levels = lookup(facts, "levels")
        counts = {str(level): rows for level, rows in levels.items()} if isinstance(levels, Mapping) else {}
        whole = sum(counts.values())
        shown = [f"{_level(level)} {percent(rows / whole)}" for level, rows in counts.items() if rows]
        lines.append((str(name), percent(number(facts, "ncp")), ", ".join(shown)))
    return lines


def _level(level: str) -> str:
    words = {"0": "as it was", "exact": "as it was", "range": "a range", "set": "a set", "suppressed": "suppressed"}
    return words.get(level, f"level {level}")


def distributions(manifest: Manifest) -> list[dict[str, Any]]:
    """Per quasi-identifier: name, lines of the chart before and after, and the most frequent published labels."""
    found = []
    for column in _maps(lookup(manifest, "details", "quasi_identifiers", "columns")):
        bars, before, after = (column.get(key) or () for key in ("bars", "before", "after"))
        lines = [
            (str(name), float(one), float(two), f"{percent(one)} → {percent(two)}")
            for name, one, two in zip(bars, before, after, strict=False)
        ]
        labels = [(str(each.get("label")), percent(number(each, "share"))) for each in _maps(column.get("published"))]
        found.append({"name": str(column.get("name")), "lines": lines, "labels": labels})
    return found


def sampled(manifest: Manifest, part: str) -> int:
    """Of how many classes one was looked at for a part of the details."""
    return int(number(manifest, "details", part, "one_in") or 1)


def closings(manifest: Manifest) -> list[tuple[float, float]]:
    """Up to which loss of a row which share of the rows stands in classes."""
    points = _maps(lookup(manifest, "details", "quasi_identifiers", "closings"))
    return [(float(point["loss"]), float(point["share"])) for point in points if {"loss", "share"} <= set(point)]


def sensitive(manifest: Manifest) -> list[dict[str, Any]]:
    """Per sensitive column: its values with their share of the release, and what classes have of them."""
    found = []
    for column in _maps(lookup(manifest, "details", "sensitive", "columns")):
        lines = []
        for value in _maps(column.get("values")):
            whole, low, high, most = (number(value, key) or 0.0 for key in ("share", "low", "high", "most"))
            text = f"{percent(whole)} ({percent(low)} to {percent(high)})"
            lines.append((str(value.get("label")), whole, low, high, most, text))
        if lines:
            found.append({"name": str(column.get("name")), "lines": lines})
    return found


def tree_lengths(manifest: Manifest) -> list[TreeLine]:
    """Edges of the spanning tree by their length."""
    return [
        (f"{each['length']:.4g}", float(each["edges"]), f"{each['edges']:,}")
        for each in _maps(lookup(manifest, "details", "tree"))
        if isinstance(each.get("length"), int | float) and isinstance(each.get("edges"), int)
    ]


def trace(manifest: Manifest) -> tuple[list[str], list[list[str]]]:
    """The steps that the method told of, as a table: its columns and its lines."""
    steps = _maps(manifest.get("trace"))[:_MOST_STEPS]
    names = list(dict.fromkeys(str(name) for step in steps for name in step))
    return names, [[_cell(step.get(name)) for name in names] for step in steps]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_cell(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_cell, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def config_text(manifest: Manifest) -> str:
    """The configuration, as it was written."""
    text = lookup(manifest, "details", "config")
    return text if isinstance(text, str) else ""
