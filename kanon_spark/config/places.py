"""Tables as a command line names them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kanon_spark.config.loader import check_raw, literal
from kanon_spark.config.models import VERSIONED, Config, SinkSpec, SourceSpec, format_of
from kanon_spark.errors import RequestError
from kanon_spark.io.paths import resolve

_FILE_ENDINGS = frozenset({".parquet", ".csv", ".tsv", ".json", ".jsonl", ".orc"})


def is_path(table: str, *, format: str | None = None) -> bool:
    """Whether a table's name reads as a path; else it is the name of a catalog table.

    >>> is_path("people.csv"), is_path("sales.people"), is_path("people", format="orc")
    (True, False, True)
    """
    return "/" in table or format is not None or Path(table).exists() or Path(table).suffix in _FILE_ENDINGS


def source_of(table: str, *, format: str | None, options: Mapping[str, str], origin: str) -> SourceSpec:
    """The section `source` that a table's name stands for, with the same checks and messages."""
    place: dict[str, Any] = {"path" if is_path(table, format=format) else "table": literal(table)}
    if format is not None:
        place["format"] = format
    if options:
        place["options"] = {name: literal(value) for name, value in options.items()}
    raw = {"source": place, "columns": {"quasi_identifiers": ["any"]}}
    source = check_raw(raw, base_dir=Path.cwd(), origin=origin).config.source
    if source is None:
        raise RequestError("no table is named", where=origin, fix="name a path or a catalog table")
    return source


def sink_of(target: str, *, format: str | None, origin: str) -> SinkSpec:
    """The section `sink` that a target's name stands for; a path's format is what its ending says.

    >>> sink_of("out/people.csv", format=None, origin="--to").format
    'csv'
    >>> sink_of("sales.people", format=None, origin="--to").table
    'sales.people'
    """
    by_path = is_path(target)
    # Absolute: the folder that relative paths start from is another one where a recoding is unpacked.
    place: dict[str, Any] = {"path": literal(resolve(target, Path.cwd()))} if by_path else {"table": literal(target)}
    place["format"] = format or (format_of(target) if by_path else "parquet")
    raw = {"sink": place, "columns": {"quasi_identifiers": ["any"]}}
    sink = check_raw(raw, base_dir=Path.cwd(), origin=origin).config.sink
    if sink is None:
        raise RequestError("no target is named", where=origin, fix="name a path or a catalog table")
    return sink


def needs_warehouse(config: Config | None, *tables: str | None) -> bool:
    """Whether a job reads or writes tables of Delta, Iceberg or PostgreSQL, or a folder is a Delta table."""
    places = [] if config is None else [place for place in (config.source, config.sink) if place is not None]
    if any(place.jdbc is not None or place.format in VERSIONED for place in places):
        return True
    named = [*tables, *(place.path for place in places)]
    return any(path is not None and Path(path, "_delta_log").is_dir() for path in named)
