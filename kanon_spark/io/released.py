"""Opening a published table by its path or name, as `kanon verify TABLE` is given it."""

from pathlib import Path
from typing import TYPE_CHECKING

from kanon_spark.io.files import store_for
from kanon_spark.io.path_sink import path_facts, read_files
from kanon_spark.io.paths import resolve, scheme_of
from kanon_spark.io.sources import open_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def open_release(spark: "SparkSession", place: str, *, base_dir: Path) -> "DataFrame":
    """The table at a path or under a catalog name.

    A release of ours says how it was written (`_kanon.json`), so that csv and json come back with their types; anything
    else is opened like a source. A text without slash, ending or file of that name is taken for a table's name.
    """
    from pyspark.sql.types import StructType

    from kanon_spark.config.models import SourceSpec

    path = resolve(place, base_dir)
    looks_like_path = "/" in place or scheme_of(place) or Path(place).suffix in {".csv", ".json", ".parquet", ".orc"}
    if not looks_like_path and not store_for(spark, path).exists(path):
        return open_source(spark, SourceSpec(table=place), base_dir=base_dir).table
    facts = path_facts(spark, path)
    if facts is not None and isinstance(facts.get("schema"), dict):
        return read_files(spark, path, str(facts["format"]), StructType.fromJson(facts["schema"]))
    return open_source(spark, SourceSpec(path=path), base_dir=base_dir).table
