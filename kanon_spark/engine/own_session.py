"""The session of a job that was given none: as big as its source asks, with the jars that its places need."""

from typing import TYPE_CHECKING

from kanon_spark.config.loader import LoadedConfig
from kanon_spark.config.places import needs_warehouse
from kanon_spark.engine.session import get_spark
from kanon_spark.io.files import local_size

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BRIEF_BYTES = 64_000_000  # a source file up to this size is anonymized in seconds


def own_session(loaded: LoadedConfig) -> "SparkSession":
    """The session of a job that was given none."""
    source = loaded.config.source
    size = local_size(loaded.resolve(source.path)) if source is not None and source.path is not None else None
    brief = size is not None and size <= BRIEF_BYTES
    stitch = loaded.config.execution.stitch
    # `auto` calls GraphFrames only on what no small file can hold.
    graphs = stitch == "graphframes" or (stitch == "auto" and not brief)
    return get_spark(
        f"kanon {loaded.config.name}", brief=brief, graphs=graphs, warehouse=needs_warehouse(loaded.config)
    )
