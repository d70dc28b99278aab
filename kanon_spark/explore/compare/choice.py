"""The configuration of a chosen cell, to be run as it stands: the job's own, with that method and that k.

The file may stand elsewhere than the one it came from, so relative paths are told from its own folder; `${NAME}` stays
as it was written.
"""

import copy
import os
import posixpath
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from kanon_spark.config.forms import to_form
from kanon_spark.config.loader import LoadedConfig
from kanon_spark.config.models import MethodSpec
from kanon_spark.explore.compare.result import Cell, Facts
from kanon_spark.io.paths import scheme_of
from kanon_spark.releases.workdir import DEFAULT_NAME

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
Move = Callable[[Any], Any]


def config_text(loaded: LoadedConfig, cell: Cell, spec: MethodSpec, facts: Facts, *, folder: Path) -> str:
    """The configuration as YAML, with a word on where it came from.

    Args:
        loaded: The configuration that was compared with.
        cell: The cell whose method and k it gets.
        spec: The cell's method.
        facts: What was compared on.
        folder: The folder that the file will stand in.
    """
    raw: dict[str, Any] = copy.deepcopy(dict(loaded.raw))
    raw["method"] = {"name": spec.name, **to_form(spec)}
    raw["privacy"] = {**(raw.get("privacy") or {}), "k": cell.k}
    moved = rebased(raw, base_dir=loaded.base_dir, folder=folder)
    return "".join(f"# {line}\n" for line in _about(cell, facts)) + yaml.safe_dump(
        moved, sort_keys=False, allow_unicode=True
    )


def _about(cell: Cell, facts: Facts) -> list[str]:
    lines = [f"Chosen by `kanon compare`: {cell.method} at k = {cell.k}."]
    if cell.gcp is not None:
        bound = "" if cell.gcp_bound is None else f" (no release can be below {cell.gcp_bound:.4f})"
        risk = "" if cell.risk is None else f", worst-case risk {cell.risk:.4f}"
        lines.append(f"Loss (GCP) {cell.gcp:.4f}{bound}{risk}, {cell.suppressed:,} rows suppressed.")
    if facts.share is not None:
        lines.append(f"Measured on a sample of {facts.rows:,} of {facts.whole:,} rows: the loss of all is less.")
    # A comment ends with its line: whatever a name holds must not begin a new one.
    return [" ".join(line.split()) for line in lines]


def rebased(raw: dict[str, Any], *, base_dir: Path, folder: Path) -> dict[str, Any]:
    """A configuration whose relative paths start from `folder` instead of `base_dir`.

    >>> moved = rebased({"source": "t.csv", "sink": "/out"}, base_dir=Path("/jobs"), folder=Path("/jobs/found"))
    >>> moved["source"], moved["sink"]
    ('../t.csv', '/out')
    """
    base, target = Path(base_dir).absolute(), Path(folder).absolute()
    if os.path.realpath(base) == os.path.realpath(target):
        return raw
    # Real paths: `..` of a link is not where the link stands.
    start, end = os.path.realpath(target), os.path.realpath(base)
    together = len(Path(os.path.commonpath([start, end])).parts) > 1  # else all that is common is the root
    way = os.path.relpath(end, start) if together else end

    def move(path: Any) -> Any:
        return posixpath.normpath(f"{way}/{path}") if isinstance(path, str) and _is_relative(path) else path

    moved = copy.deepcopy(raw)
    for section in ("source", "sink"):
        _change(moved, section, lambda place: move(place) if isinstance(place, str) else _with(place, "path", move))
    for section, name in (("report", "html"), ("report", "manifest"), ("execution", "work_dir")):
        moved |= {section: _with(moved[section], name, move)} if section in moved else {}
    # The folder of confidential files stays where it was: the next run tidies up after the last one there.
    execution = moved.get("execution") or {}
    moved["execution"] = {**execution, "work_dir": execution.get("work_dir") or move(DEFAULT_NAME)}
    schedule = moved.get("schedule") or {}
    _change(schedule, "ledger", lambda place: move(place) if "/" in str(place) else place)  # else it names a table
    privacy = moved.get("privacy") or {}
    _change(privacy, "k_map", lambda population: _with(population, "path", move))
    columns = moved.get("columns") or {}
    _change(columns, "quasi_identifiers", lambda named: _each(named, lambda spec: _quasi_identifier(spec, move)))
    _change(columns, "sensitive", lambda named: _each(named, lambda spec: _with(spec, "hierarchy", _hierarchy(move))))
    return moved


def _is_relative(path: str) -> bool:
    """Whether a path is told from the configuration's folder, as far as the environment lets it be known."""
    filled = _VARIABLE.sub(lambda match: os.environ.get(match.group(1), ""), path)
    return not (scheme_of(filled) or filled.startswith(("/", "~/")))


def _quasi_identifier(spec: Any, move: Move) -> Any:
    """A quasi-identifier may be its hierarchy alone."""
    return _hierarchy(move)(spec) if isinstance(spec, str) else _with(spec, "hierarchy", _hierarchy(move))


def _hierarchy(move: Move) -> Move:
    def change(hierarchy: Any) -> Any:
        if isinstance(hierarchy, str):
            return hierarchy if hierarchy == "flat" else move(hierarchy)
        return _with(hierarchy, "csv", lambda file: move(file) if isinstance(file, str) else _with(file, "path", move))

    return change


def _change(holder: dict[str, Any], name: str, change: Move) -> None:
    if holder.get(name) is not None:
        holder[name] = change(holder[name])


def _with(holder: Any, name: str, change: Move) -> Any:
    if not isinstance(holder, dict) or holder.get(name) is None:
        return holder
    return {**holder, name: change(holder[name])}


def _each(named: Any, change: Move) -> Any:
    return {name: change(spec) for name, spec in named.items()} if isinstance(named, dict) else named
