"""What the tests of warehouse tables share: which backends are there, and how each is named and read."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from postgres_server import Server

from kanon_spark.engine.session import WAREHOUSE_JARS, cached_jars
from kanon_spark.io.backends import COORDINATES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def need_jar(kind: str) -> None:
    """Skip where the jar of a backend has not been fetched."""
    name = COORDINATES[kind].split(":")[1]
    if not any(name in jar.name for jar in cached_jars(WAREHOUSE_JARS)):
        pytest.skip(f"no jar of {COORDINATES[kind]} here: scripts/setup --jars")


@dataclass(frozen=True)
class Backend:
    """A sink, and how a reader who knows nothing of us reads it."""

    name: str
    sink: dict[str, Any]
    read: Callable[[], list[tuple[Any, ...]]]


def backend(kind: str, spark: "SparkSession", folder: Path, server: "Callable[[], Server]") -> Backend:
    """One of `delta path`, `delta table`, `iceberg`, `postgres` and `pointer`, under names of the folder's own."""
    unique = "t_" + "".join(each if each.isalnum() else "_" for each in folder.name.lower())
    if kind == "postgres":
        need_jar("postgresql")
        psycopg = pytest.importorskip("psycopg")
        found = server()
        jdbc = {"url": found.url, "table": unique, "user": found.user, "password": found.password}

        def select() -> list[tuple[Any, ...]]:
            with psycopg.connect(found.conninfo) as connection:
                return list(connection.execute(f"SELECT * FROM {unique}").fetchall())

        return Backend(kind, {"jdbc": jdbc}, select)
    if kind == "pointer":
        return Backend(kind, {"path": "out/release", "layout": "pointer"}, lambda: read_pointer(spark, folder))
    need_jar(kind.split()[0])
    if kind == "iceberg":
        spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.house")
        sink: dict[str, Any] = {"table": f"ice.house.{unique}", "format": "iceberg"}
    elif kind == "delta table":
        spark.sql("CREATE DATABASE IF NOT EXISTS house")
        sink = {"table": f"house.{unique}", "format": "delta"}
    else:
        sink = {"path": "out/release", "format": "delta"}
    name = sink.get("table") or f"delta.`{folder}/out/release`"

    def collect() -> list[tuple[Any, ...]]:
        if kind == "iceberg":
            spark.catalog.refreshTable(name)
        return [tuple(row) for row in spark.table(name).collect()]

    return Backend(kind, sink, collect)


def read_pointer(spark: "SparkSession", folder: Path) -> list[tuple[Any, ...]]:
    """As the documentation tells readers: the pointer first, then the folder it names."""
    import json

    target = folder / "out" / "release"
    facts = json.loads((target / "_current").read_text(encoding="utf-8"))
    return [tuple(row) for row in spark.read.parquet(str(target / facts["folder"])).collect()]
