"""Connected components by GraphFrames: who belongs together across the cluster.

The only file that calls GraphFrames. What it is handed is written to parquet first, with long ids (text ids have been
merged wrongly under adaptive execution), and its result, which comes back persisted, is written and let go.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kanon_spark.engine.session import is_connect
from kanon_spark.errors import PlatformError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CHECKPOINT_EVERY = 2  # rounds; 5 made the same calls ten times slower


@dataclass
class Graphs:
    """Calls GraphFrames, and counts the calls for the manifest.

    Attributes:
        spark: The session.
        folder: Gives a path under the work folder for a name: what lies there is raw.
        calls: How often GraphFrames was called.
    """

    spark: "SparkSession"
    folder: Callable[[str], str]
    calls: int = 0

    def components(self, vertices: "DataFrame", edges: "DataFrame") -> "DataFrame":
        """(id, component) of every vertex; a component is named by its least id.

        Args:
            vertices: One column `id` (long).
            edges: `src` and `dst` (long), both among the ids.
        """
        require_graphframes(self.spark)
        from graphframes import GraphFrame

        self.calls += 1
        kept = self._written(vertices.select("id"), "vertices")
        links = self._written(edges.select("src", "dst"), "edges")
        context = self.spark.sparkContext
        if context.getCheckpointDir() is None:
            context.setCheckpointDir(self.folder("checkpoints"))
        found = GraphFrame(kept, links).connectedComponents(
            algorithm="graphframes", checkpointInterval=_CHECKPOINT_EVERY
        )
        result = self._written(found.select("id", "component"), "components")
        found.unpersist()
        return result

    def _written(self, table: "DataFrame", what: str) -> "DataFrame":
        path = self.folder(f"graph_{self.calls}_{what}")
        table.write.mode("overwrite").parquet(path)
        return self.spark.read.parquet(path)


def missing_graphframes(spark: "SparkSession") -> str | None:
    """What keeps GraphFrames from being called here; None if nothing does."""
    if is_connect(spark):
        return "a Spark Connect session cannot call it without a plug-in on the server"
    try:
        import graphframes  # noqa: F401 (only whether it is there)
    except ImportError:
        return "the Python package graphframes-py is not installed"
    jvm: Any = spark.sparkContext._jvm
    try:
        loader = jvm.Thread.currentThread().getContextClassLoader()
        jvm.java.lang.Class.forName("org.graphframes.GraphFrame", False, loader)
    except Exception:  # whatever the gateway raises for a class that is not there
        return "its jar is not on the session's class path"
    return None


def require_graphframes(spark: "SparkSession") -> None:
    """Raise with what to add, unless GraphFrames can be called."""
    missing = missing_graphframes(spark)
    if missing is not None:
        raise PlatformError(
            f"GraphFrames is needed and cannot be called: {missing}",
            where="execution.stitch",
            fix="start the session with --packages io.graphframes:graphframes-spark4_2.13:0.9.3 and install "
            "kanon-spark[graphframes], or set execution.stitch: local",
        )
