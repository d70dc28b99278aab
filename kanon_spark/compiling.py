"""`njit` for all compiled code: machine code is kept once per machine and version, not once per checkout.

Numba keeps what it compiled beside each source file, and asks only that file whether it is still good. So every clone
and every new environment would compile for minutes, workers on read-only installations each time, and a change in a
function that other files have inlined would go unnoticed. Here the code lies in one folder of the user's cache, named
by the contents of every compiled file.

`NUMBA_CACHE_DIR` or `KANON_CACHE` name another place; where none can be written, numba's own rules apply.
"""

import functools
import hashlib
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba import njit
from numba.core import caching

__all__ = ["njit"]

_PACKAGE = Path(__file__).parent
_MARK = b"kanon_spark.compiling import njit"


@functools.cache
def sources_digest() -> str | None:
    """What all compiled sources are, as one hash; None where they are not files (imported from a zip)."""
    digest = hashlib.sha256(numba.__version__.encode())
    found = False
    for path in sorted(_PACKAGE.rglob("*.py")):
        text = path.read_bytes()
        if _MARK in text:
            found = True
            digest.update(f"{path.relative_to(_PACKAGE)} {len(text)}\n".encode() + text)
    return digest.hexdigest()[:16] if found else None


def cache_folder() -> Path | None:
    """Where machine code of these sources is kept; None where no place is known."""
    digest = sources_digest()
    home = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("KANON_CACHE")
    if digest is None:
        return None
    if home is None:
        try:
            home = str(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kanon_spark")
        except RuntimeError:  # a user without a home, as in some containers
            return None
    return Path(home) / f"kernels-{digest}"


class _PackageCacheLocator(caching._CacheLocator):
    """Tells numba where functions of this package are kept."""

    def __init__(self, folder: Path, relative: str, line: int) -> None:
        self._folder = folder
        self._name = f"{zlib.crc32(relative.encode()):08x}-{line}"

    def get_cache_path(self) -> str:
        """The folder, the same for all."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """The folder is named by what it is made from."""
        return self._folder.name

    def get_disambiguator(self) -> str:
        """Functions of one name stand in several files."""
        return self._name

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> "_PackageCacheLocator | None":
        """A locator for a function of ours; None leaves the function to numba's own."""
        folder = cache_folder()
        if folder is None or not Path(py_file).is_relative_to(_PACKAGE):
            return None
        locator: Any = cls(folder, str(Path(py_file).relative_to(_PACKAGE)), py_func.__code__.co_firstlineno)
        try:
            locator.ensure_cache_path()
        except OSError:
            return None
        return locator  # type: ignore[no-any-return]


_locators: list[Any] = caching.CompileResultCacheImpl._locator_classes
if _PackageCacheLocator not in _locators:
    _locators.insert(0, _PackageCacheLocator)
