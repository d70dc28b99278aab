"""Where compiled code is kept."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kanon_spark import compiling
from kanon_spark.kernels import box


def test_functions_of_the_package_share_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    folder = compiling.cache_folder()
    assert folder is not None
    assert folder.parent == tmp_path
    locator = compiling._PackageCacheLocator.from_function(box.rise.py_func, box.__file__)
    assert locator is not None
    assert locator.get_cache_path() == str(folder)
    assert folder.is_dir()


def test_a_place_that_cannot_be_written_leaves_it_to_numba(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    assert compiling._PackageCacheLocator.from_function(box.rise.py_func, box.__file__) is None


def test_functions_of_others_are_left_to_numba() -> None:
    assert compiling._PackageCacheLocator.from_function(shutil.copy, shutil.__file__) is None


def test_any_change_of_a_compiled_file_is_another_folder(repo: Path, tmp_path: Path) -> None:
    """Also a copy at another place has the same folder."""
    copy = tmp_path / "kanon_spark"
    shutil.copytree(repo / "kanon_spark", copy, ignore=shutil.ignore_patterns("__pycache__"))
    assert digest(tmp_path) == compiling.sources_digest()
    with (copy / "errors.py").open("a", encoding="utf-8") as plain:
        plain.write("# not compiled\n")
    assert digest(tmp_path) == compiling.sources_digest()
    with (copy / "kernels" / "box.py").open("a", encoding="utf-8") as compiled:
        compiled.write("# another\n")
    assert digest(tmp_path) != compiling.sources_digest()


def digest(folder: Path) -> str:
    code = "from kanon_spark.compiling import sources_digest; print(sources_digest())"
    done = subprocess.run(  # the current folder comes first on the path
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
