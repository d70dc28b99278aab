"""Paths as the configuration writes them: local, `file:`, or with the scheme of any store that Hadoop knows."""

import os
import posixpath
import re
from fnmatch import fnmatchcase
from pathlib import Path

# Two letters at least, so that a Windows drive is not taken for a scheme.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):")
_PATTERN = re.compile(r"[*?\[\]{}]")


def scheme_of(path: str) -> str:
    """The scheme in lower case, empty where there is none.

    >>> scheme_of("s3a://bucket/x"), scheme_of("data/x")
    ('s3a', '')
    """
    match = _SCHEME.match(path)
    return match.group(1).lower() if match else ""


def resolve(path: str, base_dir: Path) -> str:
    """The absolute form of a path in a configuration file that stands in `base_dir`.

    >>> resolve("out/a/../b/", Path("/jobs")), resolve("hdfs://host/x/", Path("/jobs"))
    ('/jobs/out/b', 'hdfs://host/x')
    """
    scheme = scheme_of(path)
    if scheme == "file":
        return "file://" + posixpath.normpath("/" + local_part(path).lstrip("/"))
    if scheme:
        return path.rstrip("/")
    joined = Path(path).expanduser() if path.startswith("~/") else Path(base_dir).absolute() / path
    return posixpath.normpath(str(joined))


def on_volume(path: str) -> bool:
    """True for a folder of Unity Catalog on Databricks, which Python and Spark see under the same name."""
    return "DATABRICKS_RUNTIME_VERSION" in os.environ and path.startswith("/Volumes/")


def local_part(path: str) -> str:
    """A `file:` path without its scheme; other paths as they are."""
    if scheme_of(path) != "file":
        return path
    rest = path[len("file:") :]
    return "/" + rest.lstrip("/") if rest.startswith("/") else rest


def join(folder: str, name: str) -> str:
    """The path of `name` inside `folder`."""
    return f"{folder.rstrip('/')}/{name}"


def name_of(path: str) -> str:
    """The last part of a path; empty for a store's root."""
    return "" if _is_root(path) else path.rstrip("/").rsplit("/", 1)[-1]


def parent_of(path: str) -> str:
    """The folder that holds a path; a root is its own parent."""
    if _is_root(path):
        return path
    return path.rstrip("/").rsplit("/", 1)[0] or "/"


def _is_root(path: str) -> bool:
    rest = re.sub(r"^[A-Za-z][A-Za-z0-9+.\-]+:(//[^/]*)?", "", path)
    return not rest.strip("/")


def is_pattern(path: str) -> bool:
    """True where Spark would read the path as a pattern over several files."""
    return bool(_PATTERN.search(path))


def is_same_or_inside(inner: str, outer: str) -> bool:
    """True if `inner` is `outer` or lies somewhere below it (symbolic links of local paths are followed).

    >>> is_same_or_inside("/a/b/c", "/a/b"), is_same_or_inside("/a/bc", "/a/b")
    (True, False)
    """
    low, high = _canonical(inner), _canonical(outer)
    return low == high or low.startswith(high.rstrip("/") + "/")


def overlaps(path: str, source: str) -> bool:
    """True if writing `path` could touch what is read from `source`, which may be a pattern."""
    if not is_pattern(source):
        return is_same_or_inside(path, source) or is_same_or_inside(source, path)
    fixed = source[: _PATTERN.search(source).start()].rsplit("/", 1)[0]  # type: ignore[union-attr]
    if fixed and is_same_or_inside(fixed, path):
        return True
    here = path
    while not _is_root(here):
        if fnmatchcase(here, source):
            return True
        here = parent_of(here)
    return False


def _canonical(path: str) -> str:
    if scheme_of(path) in {"", "file"}:
        return str(Path(local_part(path)).resolve())
    scheme, _, rest = path.partition("://")
    return f"{scheme.lower()}://{posixpath.normpath(rest)}"
