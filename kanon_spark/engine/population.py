"""The population that `privacy.k_map` holds a release against."""

from typing import TYPE_CHECKING

from kanon_spark.config.loader import LoadedConfig
from kanon_spark.config.models import SourceSpec
from kanon_spark.errors import DataError, KanonError, MissingInputError
from kanon_spark.privacy.feasibility import impossible_k_map
from kanon_spark.signatures.columns import quoted
from kanon_spark.verify.asked import Asked, asked_by

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def open_population(spark: "SparkSession", loaded: LoadedConfig) -> "DataFrame | None":
    """The population, or None where none is named.

    Raises:
        MissingInputError: It is not there, or lacks a quasi-identifier.
    """
    from kanon_spark.io.sources import open_source

    named = loaded.config.privacy.k_map
    if named is None:
        return None
    place = {"path": named.path} if named.path is not None else {"table": named.table}
    try:
        table = open_source(spark, SourceSpec.model_validate(place), base_dir=loaded.base_dir).table
    except KanonError as error:
        raise type(error)(error.message, where="privacy.k_map", fix=error.fix) from None
    missing = [name for name in loaded.config.columns.quasi_identifiers if name not in table.columns]
    if missing:
        raise MissingInputError(
            f"the population has no column {', '.join(map(repr, missing))}",
            where="privacy.k_map",
            fix="give it the quasi-identifiers of the table, under the same names",
        )
    return table


def persons_of(population: "DataFrame", unit: str | None) -> int:
    """Persons of a population: distinct ones where it has the column of persons, else rows."""
    from pyspark.sql import functions as F

    if unit is None or unit not in population.columns:
        return population.count()
    known = F.col(quoted(unit))
    found = population.agg(F.count_distinct(known) + F.count(F.when(known.isNull(), 1))).first()
    return int(found[0]) if found is not None else 0


def refuse_small_population(population: "DataFrame", *, k: int, unit: str | None) -> None:
    """Stop where not even a row of `*` would fit k persons."""
    found = impossible_k_map(k, persons_of(population, unit))
    if found:
        raise DataError("; ".join(found), where="privacy.k_map.k", fix="lower k, or take a larger population")


def asked_of(spark: "SparkSession", loaded: LoadedConfig) -> Asked:
    """What a configuration asks of its release beyond k, for the verifier."""
    return asked_by(loaded.config, base_dir=loaded.base_dir, population=open_population(spark, loaded))
