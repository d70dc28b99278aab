"""Which way blocks are stitched."""

from typing import Any

import pytest

from kanon_spark.engine.classes import stitch_for
from kanon_spark.engine.solving import Stitch


def session(module: str) -> Any:
    return type("SparkSession", (), {"__module__": module})()


@pytest.mark.parametrize("asked", ["auto", "local", "graphframes"])
def test_connect_is_stitched_locally_unless_graphframes_is_asked_for(asked: Stitch) -> None:
    assert stitch_for(session("pyspark.sql.session"), asked) == asked
    there = stitch_for(session("pyspark.sql.connect.session"), asked)
    assert there == ("local" if asked == "auto" else asked)
