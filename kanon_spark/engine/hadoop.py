"""Files behind Hadoop's client (hdfs, s3a, abfs …). Like `session.py`, this file may touch the JVM."""

import stat
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from kanon_spark.engine.session import is_connect, is_local
from kanon_spark.errors import PlatformError
from kanon_spark.io.paths import parent_of, scheme_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")


def default_scheme(spark: "SparkSession") -> str:
    """The scheme of paths that name none: `file` on one machine, often `hdfs` on a cluster."""
    if is_connect(spark):
        if is_local(spark):
            return "file"
        raise _no_files_over_connect()
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    return scheme_of(str(configuration.get("fs.defaultFS", "file:///"))) or "file"


def hadoop_filesystem(spark: "SparkSession", path: str) -> Any:
    """Hadoop's `FileSystem` object for a path; `PlatformError` where the session or its jars cannot give one."""
    if is_connect(spark):
        raise _no_files_over_connect()
    try:
        found = _path(spark, path).getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    except Exception as error:
        raise PlatformError(
            f"Spark cannot open the file system of '{scheme_of(path) or 'the default store'}' ({_java_name(error)})",
            where=path,
            fix="add the store's connector to spark.jars.packages and its credentials to the Spark configuration",
        ) from None
    # Hadoop's local file system keeps checksum files that Python does not know of; the raw one below it does not.
    return found.getRawFileSystem() if scheme_of(str(found.getUri().toString())) == "file" else found


class HadoopStore:
    """`FileStore` over Hadoop's client. Renames are as atomic as the store's own: hdfs yes, object stores no."""

    def __init__(self, spark: "SparkSession", path: str) -> None:
        self._spark = spark
        self._files = hadoop_filesystem(spark, path)

    def exists(self, path: str) -> bool:
        """True for a file or a folder."""
        return bool(self._call(lambda: self._files.exists(self._path(path))))

    def is_dir(self, path: str) -> bool:
        """True for a folder."""
        return self.exists(path) and bool(self._call(lambda: self._files.getFileStatus(self._path(path)).isDirectory()))

    def list(self, path: str) -> list[str]:
        """The names in a folder, sorted."""
        if not self.is_dir(path):
            return []
        return sorted(
            entry.getPath().getName() for entry in self._call(lambda: self._files.listStatus(self._path(path)))
        )

    def rename(self, source: str, target: str) -> None:
        """Move in one step. Hadoop moves into a target that is a folder, so an existing target is refused first."""
        if self.exists(target):
            raise FileExistsError(f"{target} already exists")
        if not self._call(lambda: self._files.rename(self._path(source), self._path(target))):
            raise OSError(f"{source} could not be renamed to {target}")

    def delete(self, path: str) -> bool:
        """Delete a file or a whole folder."""
        return bool(self._call(lambda: self._files.delete(self._path(path), True)))

    def mkdirs(self, path: str, *, mode: int | None = None) -> None:
        """Make a folder and its parents. Stores without permissions, such as object stores, ignore the mode."""
        if self.is_dir(path):
            return
        if not self._call(lambda: self._files.mkdirs(self._path(path))):
            raise OSError(f"{path} could not be made")
        if mode is not None:
            permission = self._jvm.org.apache.hadoop.fs.permission.FsPermission(format(stat.S_IMODE(mode), "o"))
            self._call(lambda: self._files.setPermission(self._path(path), permission))

    def create_exclusive(self, path: str, text: str) -> bool:
        """Make a new file; the name node decides who was first (object stores only check before they write)."""
        self.mkdirs(parent_of(path))
        try:
            self._write(path, text, overwrite=False)
        except FileExistsError:
            return False
        return True

    def read_text(self, path: str) -> str:
        """The whole file as text."""
        stream = self._call(lambda: self._files.open(self._path(path)))
        try:
            return str(self._call(lambda: self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")))
        finally:
            stream.close()

    def write_text(self, path: str, text: str, *, private: bool = False) -> None:
        """Write or replace a file; in one step where the store can rename onto a file."""
        self.mkdirs(parent_of(path))
        draft = f"{path}.{uuid.uuid4().hex}.tmp"
        self._write(draft, text, overwrite=True)
        if private:
            permission = self._jvm.org.apache.hadoop.fs.permission.FsPermission("600")
            self._call(lambda: self._files.setPermission(self._path(draft), permission))
        try:
            self._replace(draft, path)
        except OSError:
            # An object store shows a file only once it is whole, so writing it directly is one step there.
            self.delete(draft)
            self._write(path, text, overwrite=True)

    def modified_time(self, path: str) -> float:
        """When it was last written."""
        return float(self._call(lambda: self._files.getFileStatus(self._path(path)).getModificationTime())) / 1000.0

    def _replace(self, draft: str, path: str) -> None:
        ways_type = getattr(self._jvm.org.apache.hadoop.fs, "Options$Rename")
        with _as_os_error():
            ways = self._spark.sparkContext._gateway.new_array(ways_type, 1)  # type: ignore[union-attr]
            ways[0] = ways_type.OVERWRITE
            context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(
                self._files.getUri(), self._files.getConf()
            )
            context.rename(self._path(draft), self._path(path), ways)

    def _write(self, path: str, text: str, *, overwrite: bool) -> None:
        stream = self._call(lambda: self._files.create(self._path(path), overwrite))
        try:
            self._call(lambda: stream.write(bytearray(text.encode("utf-8"))))
        finally:
            self._call(stream.close)

    @property
    def _jvm(self) -> Any:
        return self._spark.sparkContext._jvm

    def _path(self, path: str) -> Any:
        return _path(self._spark, path)

    @staticmethod
    def _call(action: Callable[[], T]) -> T:
        with _as_os_error():
            return action()


def _path(spark: "SparkSession", path: str) -> Any:
    return spark.sparkContext._jvm.org.apache.hadoop.fs.Path(path)  # type: ignore[union-attr]


@contextmanager
def _as_os_error() -> Iterator[None]:
    """Java's file errors as Python's, without Java's stack."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        name = _java_name(error)
        kind = {"FileNotFoundException": FileNotFoundError, "FileAlreadyExistsException": FileExistsError}.get(
            name, OSError
        )
        raise kind(f"the file system refused ({name})") from None


def _java_name(error: Exception) -> str:
    java = getattr(error, "java_exception", None)
    return str(java.getClass().getSimpleName()) if java is not None else type(error).__name__


def _no_files_over_connect() -> PlatformError:
    return PlatformError(
        "a Spark Connect session gives no access to the server's files",
        where="spark",
        fix="run with a classic session (spark-submit, or a notebook on the cluster itself)",
    )
