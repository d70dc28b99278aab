"""A release that nobody publishes: `Anonymizer.run(df)` without a sink. It stays in the work directory, verified."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from kanon_spark.releases.workdir import WorkDir


class UnpublishedRelease:
    """The same steps as a publisher's, without a target to swap."""

    def __init__(self, spark: "SparkSession", work: "WorkDir") -> None:
        self._spark = spark
        self._work = work
        self._path = work.path("release")

    def check_schema(self, schema: "StructType") -> None:
        """Parquet holds every type."""

    def published(self) -> None:
        """Nothing stands anywhere yet."""

    def earlier_stays(self) -> None:
        """There is no earlier release."""

    def write(self, table: "DataFrame") -> None:
        """Write the table into the work directory."""
        table.write.mode("error").parquet(self._path)

    def read_staged(self, schema: "StructType") -> "DataFrame":
        """Read back what was written."""
        return self._spark.read.schema(schema).parquet(self._path)

    def read_published(self, schema: "StructType") -> "DataFrame":
        """The same: there is no other place."""
        return self.read_staged(schema)

    def swap(self, facts: Mapping[str, object] | None = None) -> None:
        """There is nothing to swap."""

    def undo(self) -> None:
        """There is nothing to undo."""

    def finish(self) -> None:
        """There is no previous release."""

    def discard(self) -> None:
        """Remove what was written."""
        self._work.store.delete(self._path)

    def description(self) -> dict[str, object]:
        """What the manifest tells."""
        return {"path": None, "format": "parquet", "published": False}
