"""Tables that have versions are read at one version, so that every pass of a run sees the same rows."""

from typing import TYPE_CHECKING

from kanon_spark.errors import MissingInputError
from kanon_spark.io.backends import require_backend
from kanon_spark.io.delta_sink import latest_version
from kanon_spark.io.iceberg_table import current_snapshot
from kanon_spark.io.quiet import condition_of
from kanon_spark.io.table_names import facts_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def open_pinned_table(
    spark: "SparkSession", name: str, *, version: int | None = None
) -> "tuple[DataFrame, dict[str, object]]":
    """A catalog table at its newest version, or the one asked for; any other table as it is.

    Returns:
        The table, and what the manifest tells of it: `format` and `version` (of Iceberg, the snapshot's id).
    """
    found = facts_of(spark, name)
    kind = "" if found is None else found.kind
    pinned: int | None = None
    if kind == "delta":
        pinned = latest_version(spark, name) if version is None else version
    elif kind == "iceberg":
        spark.catalog.refreshTable(name)  # a catalog may keep tables in memory
        pinned = current_snapshot(spark, name) if version is None else version
    elif version is not None:
        raise MissingInputError(
            f"{name} is neither a Delta nor an Iceberg table, and has no versions",
            where="source.version",
            fix="leave it out",
        )
    if pinned is None:
        return spark.table(name), {"table": name}
    return _at(spark, name, pinned), {"table": name, "format": kind, "version": pinned}


def open_pinned_path(
    spark: "SparkSession", path: str, file_format: str, options: dict[str, str], *, version: int | None = None
) -> "tuple[DataFrame, dict[str, object]]":
    """A Delta or Iceberg table at a path, at its newest version or the one asked for."""
    require_backend(spark, file_format, where="source.format")
    if any(name.lower() in {"versionasof", "timestampasof", "snapshot-id", "as-of-timestamp"} for name in options):
        return spark.read.format(file_format).options(**options).load(path), {}
    if file_format == "delta":
        pinned: int | None = latest_version(spark, f"delta.`{path}`") if version is None else version
        key = "versionAsOf"
    else:
        pinned, key = _newest_snapshot(spark, path) if version is None else version, "snapshot-id"
    if pinned is None:
        return spark.read.format(file_format).options(**options).load(path), {}
    reader = spark.read.format(file_format).options(**options).option(key, str(pinned))
    return reader.load(path), {"version": pinned}


def _newest_snapshot(spark: "SparkSession", path: str) -> int | None:
    from pyspark.sql import functions as F

    history = spark.read.format("iceberg").load(f"{path}#history")
    row = history.orderBy(F.col("made_current_at").desc()).select("snapshot_id").first()
    return None if row is None else int(row[0])


def _at(spark: "SparkSession", name: str, version: int) -> "DataFrame":
    try:
        table = spark.sql(f"SELECT * FROM {name} VERSION AS OF {version}")
        table.columns  # noqa: B018  Spark Connect looks at it only when it is asked
    except Exception as error:
        raise MissingInputError(
            f"{name} has no version {version} ({condition_of(error)})",
            where="source.version",
            fix="name a version that the table still has",
        ) from None
    return table
