"""The few file operations that publishing, locking and cleaning need, on local files or any Hadoop store."""

import os
import shutil
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kanon_spark.io.paths import join, local_part, on_volume, parent_of, scheme_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DELETE_ATTEMPTS = 20
_DELETE_PAUSE = 0.1


class FileStore(Protocol):
    """File operations on one store. Everything that goes wrong is an `OSError`."""

    def exists(self, path: str) -> bool:
        """True for a file or a folder (or a dangling link)."""

    def is_dir(self, path: str) -> bool:
        """True for a folder."""

    def list(self, path: str) -> list[str]:
        """The names in a folder, sorted; hidden ones too. None if there is no such folder: an empty list."""

    def rename(self, source: str, target: str) -> None:
        """Move a file or folder in one step; the target must not exist."""

    def delete(self, path: str) -> bool:
        """Delete a file or a whole folder; False if it was not there."""

    def mkdirs(self, path: str, *, mode: int | None = None) -> None:
        """Make a folder and its parents; `mode` is given to the folder itself if it is new."""

    def create_exclusive(self, path: str, text: str) -> bool:
        """Make a file that must not exist yet; False if somebody else was first. Parents are made."""

    def read_text(self, path: str) -> str:
        """The whole file as text; `FileNotFoundError` if it is not there."""

    def write_text(self, path: str, text: str, *, private: bool = False) -> None:
        """Write or replace a file in one step: readers see the old text or the new one, never a part."""

    def modified_time(self, path: str) -> float:
        """When it was last written, in seconds since 1970."""


class LocalStore:
    """The driver's own file system."""

    def exists(self, path: str) -> bool:
        """True for a file, a folder or a link."""
        return os.path.lexists(local_part(path))

    def is_dir(self, path: str) -> bool:
        """True for a folder."""
        return Path(local_part(path)).is_dir()

    def list(self, path: str) -> list[str]:
        """The names in a folder, sorted."""
        folder = Path(local_part(path))
        return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []

    def rename(self, source: str, target: str) -> None:
        """Move in one step. Renaming onto an empty folder would succeed silently, so that is refused here."""
        if self.exists(target):
            raise FileExistsError(f"{target} already exists")
        Path(local_part(source)).rename(local_part(target))

    def delete(self, path: str) -> bool:
        """Delete a file, a link (not what it leads to) or a folder."""
        if not self.exists(path):
            return False
        here = Path(local_part(path))
        if here.is_symlink() or not here.is_dir():
            here.unlink(missing_ok=True)
            return True
        for attempt in range(_DELETE_ATTEMPTS):
            try:
                shutil.rmtree(here)
                return True
            except FileNotFoundError:
                if not here.exists():
                    return True
            except OSError:
                # The Java half of a killed run may write for a moment longer: a folder that fills cannot be removed.
                if attempt == _DELETE_ATTEMPTS - 1:
                    raise
            time.sleep(_DELETE_PAUSE)
        return not here.exists()

    def mkdirs(self, path: str, *, mode: int | None = None) -> None:
        """Make a folder and its parents."""
        folder = Path(local_part(path))
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            folder.mkdir(mode=0o777 if mode is None else mode)
        except FileExistsError:
            if not folder.is_dir():
                raise
            return
        if mode is not None:
            folder.chmod(mode)  # mkdir's mode is cut by the umask

    def create_exclusive(self, path: str, text: str) -> bool:
        """Make a new file. It appears with its text in it, because a link is made to a file that is already written."""
        target = Path(local_part(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = self._draft(target, text, private=False)
        try:
            target.hardlink_to(draft)
        except FileExistsError:
            return False
        except OSError:
            # File systems without hard links: the file is exclusive all the same, its text comes a moment later.
            return _create_in_place(target, text)
        finally:
            draft.unlink(missing_ok=True)
        return True

    def read_text(self, path: str) -> str:
        """The whole file as text."""
        return Path(local_part(path)).read_text(encoding="utf-8")

    def write_text(self, path: str, text: str, *, private: bool = False) -> None:
        """Write or replace in one step."""
        target = Path(local_part(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = self._draft(target, text, private=private)
        try:
            draft.replace(target)
        except OSError:
            draft.unlink(missing_ok=True)
            raise

    def modified_time(self, path: str) -> float:
        """When it was last written."""
        return Path(local_part(path)).stat().st_mtime

    @staticmethod
    def _draft(target: Path, text: str, *, private: bool) -> Path:
        draft = target.with_name(f"{target.name}.{uuid.uuid4().hex}.tmp")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        return draft


def _create_in_place(target: Path, text: str) -> bool:
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return False
    return True


def store_for(spark: "SparkSession", path: str) -> FileStore:
    """The store that holds `path`: the driver's own files where Spark would look there too, else Hadoop's client."""
    from kanon_spark.engine.hadoop import HadoopStore, default_scheme

    if on_volume(path):
        return LocalStore()
    # The default decides for paths without a scheme, and on Spark Connect it also says whether files are within reach.
    default = default_scheme(spark)
    return LocalStore() if (scheme_of(path) or default) == "file" else HadoopStore(spark, path)


def probe_writable(store: FileStore, folder: str, name: str) -> None:
    """Write and remove a file in a folder, or in the nearest one above it that exists; `OSError` if that fails."""
    while not store.exists(folder) and parent_of(folder) != folder:
        folder = parent_of(folder)
    if not store.is_dir(folder):
        raise NotADirectoryError(20, f"{folder} is not a folder")
    probe = join(folder, name)
    store.create_exclusive(probe, "")
    store.delete(probe)


def local_size(path: str) -> int | None:
    """Bytes of a local file or folder; None where it is not local or not there."""
    if scheme_of(path) not in {"", "file"}:
        return None
    place = Path(local_part(path))
    if place.is_file():
        return place.stat().st_size
    return sum(each.stat().st_size for each in place.rglob("*") if each.is_file()) if place.is_dir() else None
