"""Manifests on disk."""

import datetime
import json
import stat
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from kanon_spark.errors import MissingInputError, RequestError, TargetError
from kanon_spark.releases.manifest import read_manifest, write_manifest


def test_a_manifest_survives_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "out" / "manifest.json"
    write_manifest(path, {"run_id": "x", "rows": {"input": np.int64(3)}, "name": "Zürich"})
    write_manifest(path, {"run_id": "y", "rows": {"input": np.int64(4)}, "sizes": np.array([1, 2]), "name": "Zürich"})
    assert read_manifest(path) == {"run_id": "y", "rows": {"input": 4}, "sizes": [1, 2], "name": "Zürich"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_numbers_that_json_lacks_become_null(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    write_manifest(path, {"run_id": "x", "gap": float("nan"), "bound": np.float64("inf"), "share": np.float64(0.5)})
    found = read_manifest(path)
    assert (found["gap"], found["bound"], found["share"]) == (None, None, 0.5)


def test_dates_decimals_paths_and_sets(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    day = datetime.date(2025, 1, 2)
    write_manifest(path, {"run_id": "x", 1: (day, Decimal("1.10")), "p": Path("a/b"), "s": {"b", "a"}})
    assert json.loads(path.read_text()) == {
        "run_id": "x", "1": ["2025-01-02", "1.10"], "p": "a/b", "s": ["a", "b"],
    }  # fmt: skip


def test_missing_wrong_and_unwritable(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError):
        read_manifest(tmp_path / "none.json")
    for text in ("{", "[]", '{"k": 5}'):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(RequestError, match="not a manifest"):
            read_manifest(tmp_path / "bad.json")
    with pytest.raises(TargetError, match="cannot be written"):
        write_manifest(tmp_path / "bad.json" / "m.json", {"run_id": "x"})
