"""Fixtures shared by all lanes. One Spark session serves all tests of a process: starting one costs seconds."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

# Workers must use this interpreter, and the compiled kernels must be cached where every worker finds them.
os.environ["PYSPARK_PYTHON"] = sys.executable


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """The only Spark session, small and quiet."""
    from kanon_spark.engine.session import get_spark

    home = tmp_path_factory.mktemp("spark")
    session = get_spark(
        "kanon-tests",
        graphs=True,
        brief=True,  # thousands of tiny plans: the optimizing compiler would never earn its time back
        extra={
            "spark.master": "local[2]",
            "spark.driver.memory": "2g",
            "spark.sql.shuffle.partitions": "2",  # tiny tables: more partitions are only overhead
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.warehouse.dir": str(home / "warehouse"),
            "spark.local.dir": str(home / "local"),
        },
    )
    yield session
    session.stop()


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
