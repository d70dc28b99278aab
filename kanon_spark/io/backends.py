"""What tables of Delta, Iceberg and PostgreSQL need in a session, and what to add where it is missing."""

import importlib.util
import os
from typing import TYPE_CHECKING, NoReturn

from kanon_spark.engine.session import DELTA_CATALOG, EXTENSIONS, has_class
from kanon_spark.errors import PlatformError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COORDINATES = {
    "delta": "io.delta:delta-spark_2.13:4.0.1",
    "iceberg": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",
    "postgresql": "org.postgresql:postgresql:42.7.4",
}
_NAMES = {"delta": "Delta", "iceberg": "Iceberg", "postgresql": "PostgreSQL"}
_CLASSES = {
    "delta": EXTENSIONS["delta"],
    "iceberg": "org.apache.iceberg.spark.SparkCatalog",
    "postgresql": "org.postgresql.Driver",
}


def require_backend(spark: "SparkSession", kind: str, *, where: str) -> None:
    """Raise `PlatformError` unless the session can read and write tables of this kind.

    Args:
        spark: The session.
        kind: `delta`, `iceberg` or `postgresql`.
        where: The key that asks for it.
    """
    if "DATABRICKS_RUNTIME_VERSION" in os.environ:
        return  # it brings all of them, under settings of its own
    if has_class(spark, _CLASSES[kind]) is False:
        _refuse(kind, where, "its jar is not on the session's class path", f"--packages {COORDINATES[kind]}")
    if kind not in EXTENSIONS:
        return
    settings = {"spark.sql.extensions": EXTENSIONS[kind]}
    if kind == "delta":
        settings["spark.sql.catalog.spark_catalog"] = DELTA_CATALOG
    absent = [key for key, value in settings.items() if value not in str(spark.conf.get(key, "") or "")]
    if absent:
        more = " ".join(f"--conf {key}={settings[key]}" for key in absent)
        _refuse(kind, where, f"the session is started without {' and '.join(absent)}", more)


def _refuse(kind: str, where: str, missing: str, option: str) -> NoReturn:
    raise PlatformError(
        f"{_NAMES[kind]} is asked for and cannot be used: {missing}",
        where=where,
        fix=f"start the session with {option} (in a checkout, scripts/setup fetches the jars of local sessions)",
    )


def require_psycopg(*, where: str) -> None:
    """Raise `PlatformError` unless psycopg, by which releases are swapped in, is installed."""
    if importlib.util.find_spec("psycopg") is None:
        raise PlatformError(
            "releases are swapped into PostgreSQL by psycopg, which is not installed",
            where=where,
            fix="pip install 'kanon-spark[postgres]'",
        )
