"""Manifests on disk: JSON, written in one step, readable by their owner only (they may hold samples of raw rows)."""

import dataclasses
import datetime
import decimal
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kanon_spark.errors import MissingInputError, RequestError, TargetError
from kanon_spark.io.files import FileStore, LocalStore, store_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write_manifest(path: str | Path, manifest: Mapping[str, object], *, spark: "SparkSession | None" = None) -> None:
    """Write a manifest, replacing an older one in one step. With `spark`, the path may lie in any store it knows."""
    text = json.dumps(_plain(manifest), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        _store(path, spark).write_text(str(path), text, private=True)
    except OSError as error:
        raise TargetError(
            f"the manifest cannot be written ({error.strerror or error})",
            where=str(path),
            fix="choose another report.manifest",
        ) from None


def read_manifest(path: str | Path, *, spark: "SparkSession | None" = None) -> dict[str, Any]:
    """Read a manifest that `write_manifest` wrote."""
    try:
        found = json.loads(_store(path, spark).read_text(str(path)))
    except FileNotFoundError:
        raise MissingInputError("there is no such manifest", where=str(path), fix="check the path") from None
    except (OSError, ValueError):
        raise RequestError(
            "this is not a manifest", where=str(path), fix="name the JSON file that the run wrote"
        ) from None
    if not isinstance(found, dict) or "run_id" not in found:
        raise RequestError("this is not a manifest", where=str(path), fix="name the JSON file that the run wrote")
    return found


def _store(path: str | Path, spark: "SparkSession | None") -> FileStore:
    return LocalStore() if spark is None else store_for(spark, str(path))


def _plain(value: Any) -> Any:
    """The value as JSON can hold it: numpy's numbers as Python's, infinite ones and NaN as null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value, key=str) if isinstance(value, set | frozenset) else value
        return [_plain(item) for item in items]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain(dataclasses.asdict(value))
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    if isinstance(value, decimal.Decimal | Path):
        return str(value)
    if hasattr(value, "tolist"):  # numpy scalars and arrays
        return _plain(value.tolist())
    return str(value)
