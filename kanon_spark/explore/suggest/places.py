"""Where the draft's job reads and writes: paths that stay right wherever its file is put."""

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from kanon_spark.errors import RequestError
from kanon_spark.explore.suggest.suggestion import Places
from kanon_spark.io.paths import join, name_of, overlaps, parent_of, resolve

_TRIES = 100


def places_of(source: Mapping[str, Any], *, base_dir: Path, name: str | None, sink: str | None) -> Places:
    """The source made absolute; the release under `out/` beside the configuration, unless another place is asked for.

    Args:
        source: The section `source`, relative paths starting from `base_dir`.
        base_dir: The current folder.
        name: What the job is to be called; by default as the table.
        sink: Where the release is to go, from the current folder.

    Raises:
        RequestError: The release would replace its source, or stand inside it.
    """
    place = dict(source)
    path = place.get("path")
    if path is not None:
        path = place["path"] = resolve(path, base_dir)
    called = name or _stem(path if path is not None else str(place["table"]))
    if sink is not None:
        target = resolve(sink, base_dir)
        if path is not None and overlaps(target, path):
            raise RequestError(
                "the release would replace its own source, or stand inside it", where="--sink", fix="name another path"
            )
        folder = parent_of(target)
        return Places(called, place, target, join(folder, f"{name_of(target)}_report"))
    folder = _free_folder(called, path, base_dir)
    return Places(called, place, f"{folder}/release", folder)


def _free_folder(name: str, source: str | None, base_dir: Path) -> str:
    """A folder that does not touch the source: relative, so that it stands beside the configuration's file."""
    plain = re.sub(r"[^\w.-]+", "_", name).strip(".") or "release"
    if source is None:
        return f"out/{plain}"
    for number in range(1, _TRIES):
        folder = f"out/{plain}" if number == 1 else f"out/{plain}_{number}"
        if not overlaps(resolve(folder, base_dir), source):
            return folder
    return join(parent_of(source), f"{plain}_anonymous")  # the current folder is the source, or inside it


def _stem(path: str) -> str:
    """What a table is called: its file's name without endings, or the last part of a catalog name.

    >>> _stem("/data/people.csv.gz"), _stem("sales.customers"), _stem("/")
    ('people', 'customers', 'release')
    """
    last = name_of(path) if "/" in path else path
    known = {".parquet", ".orc", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".gz", ".bz2", ".zst"}
    while PurePosixPath(last).suffix.lower() in known:
        last = PurePosixPath(last).stem
    return (last if "/" in path else last.rsplit(".", 1)[-1]) or "release"
