"""Opening the source: a path in any format Spark reads, a table of a catalog or database; filtered, copied if asked."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from kanon_spark.errors import EmptyTableError, KanonError, MissingInputError, RequestError
from kanon_spark.io.backends import require_backend
from kanon_spark.io.delta_places import DELTA_LOG
from kanon_spark.io.files import FileStore, store_for
from kanon_spark.io.formats import refuse_unwritable_types
from kanon_spark.io.paths import is_pattern, join, name_of, parent_of, resolve
from kanon_spark.io.pins import open_pinned_path, open_pinned_table
from kanon_spark.io.postgres import jdbc_options, shown_address
from kanon_spark.io.quiet import condition_of, quiet_query_errors
from kanon_spark.logs import logger
from kanon_spark.signatures.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kanon_spark.config.models import PartitionSpec, SourceSpec
    from kanon_spark.releases.workdir import WorkDir

# What most csv files are: a header, quotes doubled inside quotes, types worth guessing. Options that are given win.
CSV_DEFAULTS = {"header": "true", "inferSchema": "true", "escape": '"'}
_ENDINGS = {
    ".parquet": "parquet", ".orc": "orc", ".csv": "csv", ".tsv": "csv",
    ".json": "json", ".jsonl": "json", ".ndjson": "json",
}  # fmt: skip
_COMPRESSED = {".gz", ".bz2", ".zst", ".snappy", ".lz4"}
_SECRET_WORDS = ("password", "secret", "token", "key", "credential")
_NEAR_LIMIT = 5
VERSIONED = ("delta", "iceberg")


@dataclass(frozen=True)
class Source:
    """The opened table, and what the manifest tells of it."""

    table: "DataFrame"
    description: dict[str, object]


def open_source(
    spark: "SparkSession",
    source: "SourceSpec",
    *,
    base_dir: Path,
    work: "WorkDir | None" = None,
    partition: "PartitionSpec | None" = None,
) -> Source:
    """Open the source of a configuration, or one partition of it.

    Raises `MissingInputError` with near names if it is not there and `RequestError` if Spark cannot read it so. With
    `snapshot: copy` the rows are copied into the run's work directory, and all passes read the copy.
    """
    if source.path is not None:
        opened = _open_path(spark, source, resolve(source.path, base_dir))
    elif source.table is not None:
        opened = _open_table(spark, source.table, source)
    else:
        opened = _open_database(spark, source)
    if not opened.table.columns:
        raise EmptyTableError("the source has no columns", where="source", fix="check the file and source.options")
    table, description = opened.table, dict(opened.description)
    if source.where is not None:
        table = _filtered(table, source.where)
    description["filtered"] = source.where is not None
    if partition is not None:
        table = _part(table, partition)
        description["partition"] = {"column": partition.column, "value": partition.value}
    description["snapshot"] = source.snapshot
    if source.snapshot == "copy":
        if work is None:
            raise RequestError(
                "a snapshot needs a work directory", where="source.snapshot", fix="run with a work directory"
            )
        table = _copied(spark, table, work.path("source"))
    return Source(table, description)


def infer_format(store: FileStore, path: str) -> str | None:
    """The format that a path's ending names, or else the files in the folder; None if neither tells."""
    named = _ending_format(name_of(path))
    if named is not None or not store.is_dir(path):
        return named
    if store.is_dir(join(path, DELTA_LOG)):
        return "delta"
    folder = path
    for _ in range(16):  # partitions are folders in folders
        names = [name for name in store.list(folder) if not name.startswith((".", "_"))]
        found = {kind for kind in map(_ending_format, names) if kind is not None}
        if found:
            return found.pop() if len(found) == 1 else None
        inner = next((name for name in names if store.is_dir(join(folder, name))), None)
        if inner is None:
            return None
        folder = join(folder, inner)
    return None


def _ending_format(name: str) -> str | None:
    suffixes = [suffix.lower() for suffix in PurePosixPath(name).suffixes]
    while suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    return _ENDINGS.get(suffixes[-1]) if suffixes else None


def _open_path(spark: "SparkSession", source: "SourceSpec", path: str) -> Source:
    store = store_for(spark, path)
    if not is_pattern(path) and not store.exists(path):
        raise _missing_path(store, path)
    file_format = _format_for(store, source, path)
    options = dict(source.options)
    defaults = CSV_DEFAULTS if file_format == "csv" else {}
    if file_format == "csv" and path.lower().endswith((".tsv", ".tsv.gz")):
        defaults = {**defaults, "sep": "\t"}
    assumed = {key: value for key, value in defaults.items() if key.lower() not in {name.lower() for name in options}}
    if assumed:
        logger.info(
            "csv options not given are taken as %s", ", ".join(f"{key}={value}" for key, value in assumed.items())
        )
    if file_format in VERSIONED:
        with _readable("source.path", path, file_format):
            table, pinned = open_pinned_path(spark, path, file_format, options, version=source.version)
        return Source(table, {"path": path, "format": file_format, "options": _shown(options), **pinned})
    with _readable("source.path", path, file_format):
        table = spark.read.format(file_format).options(**{**assumed, **options}).load(path)
        columns = table.columns  # Spark Connect looks at the files only when it is asked
    if file_format == "json" and columns == ["_corrupt_record"]:
        raise RequestError(
            "none of its lines is a JSON object",
            where="source.path",
            fix="write one object a line, or set options: {multiLine: true}",
        )
    return Source(table, {"path": path, "format": file_format, "options": _shown(options), "assumed_options": assumed})


def _format_for(store: FileStore, source: "SourceSpec", path: str) -> str:
    from kanon_spark.config.models import format_of

    named = _ending_format(name_of(path)) if is_pattern(path) else infer_format(store, path)
    # The configuration takes parquet for granted where it knows no ending; here the folder's files can be asked.
    granted = source.format in {None, "parquet"} and format_of(path) == "parquet"
    found = named or source.format if granted else source.format
    if found is None:
        raise RequestError(
            "the format can be told neither from the path's ending nor from the files in the folder",
            where="source.format",
            fix="name it: parquet, orc, csv or json",
        )
    return found


def _open_table(spark: "SparkSession", name: str, source: "SourceSpec") -> Source:
    if source.format is not None:
        require_backend(spark, source.format, where="source.format")
    with quiet_query_errors():
        try:
            known = spark.catalog.tableExists(name)
        except Exception as error:
            raise RequestError(
                f"this is not a table's name ({condition_of(error)})", where="source.table", fix="write database.table"
            ) from None
    if not known:
        raise MissingInputError(f"there is no table {name}", where="source.table", fix=_near_tables(spark, name))
    with _readable("source.table", name, "table"):
        table, description = open_pinned_table(spark, name, version=source.version)
    return Source(table, description)


def _open_database(spark: "SparkSession", source: "SourceSpec") -> Source:
    jdbc = source.jdbc
    assert jdbc is not None  # the configuration names one place
    require_backend(spark, "postgresql", where="source.jdbc")
    place = shown_address(jdbc)
    what = {"dbtable": jdbc.table} if jdbc.table is not None else {"query": str(jdbc.query)}
    with _readable("source.jdbc", f"{jdbc.table or 'the query'} of {place}", "a table"):
        table = spark.read.format("jdbc").options(**jdbc_options(jdbc), **what).load()
        table.columns  # noqa: B018  Spark Connect looks at it only when it is asked
    # A query may hold values.
    return Source(table, {"jdbc": place, "table": jdbc.table, "query": jdbc.query is not None})


def _filtered(table: "DataFrame", condition: str) -> "DataFrame":
    """The rows that fulfil the condition. Its text may hold values, so neither our error nor Spark's log repeats it."""
    with quiet_query_errors():
        try:
            kept = table.where(condition)
            # Spark Connect looks at the condition only when it is asked, and knows the columns without a look.
            kept.selectExpr("1 AS looked").schema  # noqa: B018
        except Exception as error:
            raise RequestError(
                f"Spark cannot read this as a condition over the source's columns ({condition_of(error)})",
                where="source.where",
                fix=f"write it as in SQL's WHERE, text in 'single quotes'; the columns are {', '.join(table.columns)}",
            ) from None
    return kept


def _part(table: "DataFrame", partition: "PartitionSpec") -> "DataFrame":
    """The rows of one partition: those whose column, as text, is the value. Files of other partitions are not read."""
    from pyspark.sql import functions as F

    kinds = {field.name: field.dataType for field in table.schema.fields}
    kind = kinds.get(partition.column)
    if kind is None:
        raise MissingInputError(
            f"the source has no column {partition.column}",
            where="schedule.partition.column",
            fix=_near(partition.column, kinds, "its columns are"),
        )
    # Cast to the column's type, not the column to text: only so can Spark skip the other partitions' files.
    return table.where(F.col(quoted(partition.column)) == F.lit(partition.value).try_cast(kind))


def _copied(spark: "SparkSession", table: "DataFrame", path: str) -> "DataFrame":
    refuse_unwritable_types(table.schema, "parquet")
    table.write.mode("overwrite").parquet(path)
    return spark.read.schema(table.schema).parquet(path)


class _readable:
    """Turn Spark's errors on opening into ours, without its text, which may quote file contents."""

    def __init__(self, where: str, place: str, kind: str) -> None:
        self._where, self._place, self._kind = where, place, kind
        self._quiet = quiet_query_errors()

    def __enter__(self) -> None:
        self._quiet.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._quiet.__exit__(None, None, None)
        if not isinstance(error, Exception) or isinstance(error, KanonError):
            return
        condition = condition_of(error)
        if condition == "PATH_NOT_FOUND":
            raise MissingInputError(
                f"nothing is found at {self._place}", where=self._where, fix="check the path"
            ) from None
        if condition.startswith("UNABLE_TO_INFER_SCHEMA"):
            raise MissingInputError(
                f"{self._place} holds no {self._kind} files", where=self._where, fix="check the path and source.format"
            ) from None
        raise RequestError(
            f"Spark cannot read {self._place} as {self._kind} ({condition})",
            where=self._where,
            fix="check source.format and options",
        ) from None


def _missing_path(store: FileStore, path: str) -> MissingInputError:
    folder = parent_of(path)
    if not store.is_dir(folder):
        return MissingInputError(
            f"{path} does not exist, and neither does its folder",
            where="source.path",
            fix="check the path; relative paths are relative to the configuration file",
        )
    names = [name for name in store.list(folder) if not name.startswith(".")]
    return MissingInputError(
        f"{path} does not exist", where="source.path", fix=_near(name_of(path), names, f"in {folder} there is")
    )


def _near_tables(spark: "SparkSession", name: str) -> str:
    *database, table = name.split(".")
    try:
        # One row per table of the database.
        rows = spark.sql(f"SHOW TABLES{' IN ' + '.'.join(database) if database else ''}").collect()
    except Exception as error:
        return f"check the database's name ({condition_of(error)})"
    near = _near(table, [str(row["tableName"]) for row in rows], "the database has")
    return near if database else f"{near} (a file or folder here is named ./{name})"


def _near(name: str, names: Iterable[str], lead: str) -> str:
    known = sorted(names)
    near = get_close_matches(name, known, n=_NEAR_LIMIT, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(near)}?"
    more = f" and {len(known) - _NEAR_LIMIT} more" if len(known) > _NEAR_LIMIT else ""
    return f"{lead} {', '.join(known[:_NEAR_LIMIT]) or 'nothing'}{more}"


def _shown(options: Mapping[str, str]) -> dict[str, str]:
    """Options as the manifest may show them."""
    return {
        name: "(hidden)" if any(word in name.lower() for word in _SECRET_WORDS) else str(value)
        for name, value in options.items()
    }
