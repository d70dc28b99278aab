"""Opening a published table by its path, its name or its sink."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kanon_spark.errors import GuaranteeError
from kanon_spark.io.delta_places import DELTA_LOG
from kanon_spark.io.files import store_for
from kanon_spark.io.formats import FORMATS, read_options
from kanon_spark.io.path_sink import path_facts, read_files
from kanon_spark.io.paths import join, resolve, scheme_of
from kanon_spark.io.pointer_sink import current_release
from kanon_spark.io.sources import open_source
from kanon_spark.io.table_names import facts_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kanon_spark.config.models import SinkSpec


@dataclass(frozen=True)
class PathRelease:
    """A release at a path: the folder with its files, and what it says of itself."""

    folder: str
    facts: dict[str, Any]

    def read(self, spark: "SparkSession") -> "DataFrame | None":
        """Its table, where it says how it was written, so that csv and json come back with their types."""
        from pyspark.sql.types import StructType

        schema = self.facts.get("schema")
        if not isinstance(schema, dict):
            return None
        return read_files(spark, self.folder, str(self.facts["format"]), StructType.fromJson(schema))

    def refuse_other_columns(self, spark: "SparkSession") -> None:
        """Refuse files that hold other columns than the release says of itself.

        `read` goes by the schema that was published, and would pass over a column that somebody has put beside it.
        Texts say nothing of types: there only names are compared.

        Raises:
            GuaranteeError: Columns were added, removed, renamed or changed their type.
        """
        from pyspark.errors import AnalysisException
        from pyspark.sql.types import StructType

        said = self.facts.get("schema")
        kind = str(self.facts.get("format"))
        if not isinstance(said, dict) or kind not in FORMATS:
            return
        typed = kind in ("parquet", "orc")
        if not typed and self.facts.get("rows") == 0:
            return  # texts without a row may be without a name, too
        published = {field.name: field.dataType.simpleString() for field in StructType.fromJson(said).fields}
        reader = spark.read.format(kind).options(**read_options(kind)).option("mergeSchema", "true")
        try:
            names = set(reader.load(self.folder).schema.names)
            inside = reader.option("recursiveFileLookup", "true").load(self.folder).schema  # no partition columns
        except AnalysisException as error:
            raise _changed("they have no columns at all", self.folder) from error
        wrong = [
            *(f"'{name}' is too many" for name in sorted(names - published.keys())),
            *(f"'{name}' is missing" for name in sorted(published.keys() - names)),
            *(
                f"'{field.name}' is {field.dataType.simpleString()}, not {published[field.name]}"
                for field in inside.fields
                if typed and published.get(field.name, "") not in ("", field.dataType.simpleString())
            ),
        ]
        if wrong:
            raise _changed(", ".join(wrong), self.folder)


def _changed(what: str, folder: str) -> GuaranteeError:
    return GuaranteeError(
        f"the files do not have the columns that were published: {what}",
        where=folder,
        fix="somebody has changed them since; publish the release again",
    )


def path_release(spark: "SparkSession", path: str) -> PathRelease | None:
    """The release at a path: a folder, one that a pointer names, or a Delta table; None if there is none of ours."""
    store = store_for(spark, path)
    pointed = current_release(store, path)
    if pointed is not None:
        return PathRelease(*pointed)
    facts = path_facts(spark, path)
    if facts is None and store.is_dir(join(path, DELTA_LOG)):
        found = facts_of(spark, f"delta.`{path}`")
        facts = None if found is None else found.release
    return None if facts is None else PathRelease(path, facts)


def open_release(spark: "SparkSession", place: str, *, base_dir: Path) -> "DataFrame":
    """The table at a path or under a catalog name.

    A release of ours says how it was written; anything else is opened like a source. A text without slash, ending or
    file of that name is taken for a table's name.
    """
    from kanon_spark.config.models import SourceSpec

    path = resolve(place, base_dir)
    looks_like_path = "/" in place or scheme_of(place) or Path(place).suffix in {".csv", ".json", ".parquet", ".orc"}
    if not looks_like_path and not store_for(spark, path).exists(path):
        return open_source(spark, SourceSpec(table=place), base_dir=base_dir).table
    found = path_release(spark, path)
    table = None if found is None else found.read(spark)
    return open_source(spark, SourceSpec(path=path), base_dir=base_dir).table if table is None else table


def open_published(spark: "SparkSession", sink: "SinkSpec", *, base_dir: Path) -> "DataFrame":
    """The release that stands at a sink."""
    from kanon_spark.config.models import SourceSpec
    from kanon_spark.io.sinks import target_of

    if sink.jdbc is not None:
        return open_source(spark, SourceSpec(jdbc=sink.jdbc), base_dir=base_dir).table
    return open_release(spark, target_of(spark, sink, base_dir), base_dir=base_dir)
