"""Fixtures shared by all lanes. One Spark session serves all tests of a process: starting one costs seconds."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import pandas as pd
    from postgres_server import Server
    from pyspark.sql import DataFrame, SparkSession

# Workers must use this interpreter.
os.environ["PYSPARK_PYTHON"] = sys.executable

CONNECT = os.environ.get("KANON_TEST_CONNECT") == "1"  # scripts/test --connect
CONNECT_SKIPS = Path(__file__).with_name("connect_skips.txt")
SLOW_VARIANTS = Path(__file__).with_name("slow_variants.txt")


@pytest.hookimpl(tryfirst=True)  # before tests are left out by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the committed list slow; in the Connect lane, skip those of the other, each for its reason."""
    slow = set(SLOW_VARIANTS.read_text(encoding="utf-8").splitlines())
    for item in items:
        if item.nodeid.removeprefix("tests/") in slow:
            item.add_marker(pytest.mark.slow)
    if not CONNECT:
        return
    skips = dict(line.split(": ", 1) for line in CONNECT_SKIPS.read_text(encoding="utf-8").splitlines() if line)
    for item in items:
        name = item.nodeid.removeprefix("tests/spark/")
        reason = next(
            (why for test, why in skips.items() if name in (test,) or name.startswith((f"{test}::", f"{test}["))), None
        )
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=f"Spark Connect: {reason}"))


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """The only Spark session, small and quiet; over Spark Connect in the lane of that name."""
    from kanon_spark.engine.session import get_spark, is_connect

    home = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "2",  # tiny tables: more partitions are only overhead
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.local.dir": str(home / "local"),
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": str(home / "iceberg"),
    }
    if request.config.getoption("markexpr") == "not slow":
        # Compiling a plan takes longer than a hundred rows do: a third of a run. With --slow, on the cluster, in the
        # demo and wherever a test starts a process of its own, plans are compiled as everywhere.
        settings |= {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    if CONNECT:
        connect_session(settings)
    session = get_spark(
        "kanon-tests",
        graphs=True,
        warehouse=True,
        brief=True,  # thousands of tiny plans: the optimizing compiler would never earn its time back
        extra={"spark.master": "local[2]", **settings},
    )
    assert is_connect(session) == CONNECT
    yield session
    session.stop()


def connect_session(settings: dict[str, str]) -> None:
    """Start a Spark Connect server of the pip wheel on this machine, and make a session with it the active one."""
    from pyspark.sql import SparkSession

    from kanon_spark.engine.session import LOCAL, WAREHOUSE_JARS, cached_jars, jar_settings

    # So that the server takes a free port, not the usual one: two lanes may run side by side.
    os.environ["SPARK_TESTING"] = "1"
    builder = SparkSession.builder.remote("local[2]")
    log = "log4j2.configurationFile"
    quiet = (Path(__file__).parent.parent / "kanon_spark" / "engine" / "log4j2.properties").as_uri()
    options = {"spark.driver.extraJavaOptions": f"-D{log}={quiet} -XX:TieredStopAtLevel=1"}
    for key, value in {**LOCAL, **jar_settings(cached_jars(WAREHOUSE_JARS)), **settings, **options}.items():
        if key != "spark.master":
            builder = builder.config(key, value)
    builder.getOrCreate()
    del os.environ["SPARK_TESTING"]


@pytest.fixture(scope="session")
def server() -> "Iterator[Callable[[], Server]]":
    """A PostgreSQL server, started when the first test asks for it."""
    from postgres_server import running_server

    with ExitStack() as stack:
        yield cache(lambda: stack.enter_context(running_server()))


@pytest.fixture(scope="session", autouse=True)
def components_checked() -> "Iterator[None]":
    """Whatever GraphFrames answers in any test is held against scipy."""
    from kanon_spark.stitch.graph import Graphs

    asked = Graphs.components

    def checked(graphs: Graphs, vertices: "DataFrame", edges: "DataFrame") -> "DataFrame":
        found = asked(graphs, vertices, edges)
        assert_components(vertices.toPandas()["id"], edges.toPandas(), found.toPandas())
        return found

    patch = pytest.MonkeyPatch()
    patch.setattr(Graphs, "components", checked)
    yield
    patch.undo()


def assert_components(ids: "pd.Series[int]", edges: "pd.DataFrame", found: "pd.DataFrame") -> None:
    """Every id has one component, named by its least id, and they are scipy's."""
    import numpy as np
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    order = np.sort(ids.to_numpy(np.int64))
    src, dst = (np.searchsorted(order, edges[end].to_numpy(np.int64)) for end in ("src", "dst"))
    links = coo_matrix((np.ones(len(src)), (src, dst)), shape=(len(order), len(order)))
    _, number = connected_components(links, directed=False)
    _, first = np.unique(number, return_index=True)  # the first of an ascending order is the least
    got = found.sort_values("id")
    assert got["id"].tolist() == order.tolist()
    assert got["component"].tolist() == order[first][number].tolist()


@pytest.fixture(scope="session")
def repo() -> Path:
    """The checkout's root."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared(repo: Path) -> Path:
    """The folder with Adult beside the checkout, where there is one; tests that need it skip without it."""
    folder = repo.parent / "shared"
    if os.environ.get("CI") or not (folder / "data" / "adult.csv").exists():
        pytest.skip("the Adult table is not beside this checkout (or this is CI)")
    return folder
