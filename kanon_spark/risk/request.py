"""What may be asked of a table: columns that are there, of types that can be compared."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kanon_spark.config.words import did_you_mean
from kanon_spark.errors import EmptyTableError, MissingInputError, RequestError, UnsupportedTypeError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def check_quasi_identifiers(qi: Sequence[str]) -> None:
    """Refuse a list of quasi-identifiers that is empty or names a column twice."""
    if not qi:
        raise RequestError("no quasi-identifier is named", where="qi", fix="name the columns that others may know")
    if len(set(qi)) < len(qi):
        raise RequestError("a quasi-identifier is named twice", where="qi", fix="name each column once")


def check_columns(table: "DataFrame", names: Sequence[str], *, where: str, what: str = "table") -> None:
    """Refuse columns that the table lacks, and types that Spark cannot compare."""
    for name in names:
        if name not in table.columns:
            listed = ", ".join(table.columns[:20]) + (", …" if len(table.columns) > 20 else "")
            raise MissingInputError(
                f"the {what} has no column '{name}'{did_you_mean(name, table.columns)}",
                where=where,
                fix=f"it has: {listed}",
            )
    for field in table.schema.fields:
        kind = field.dataType.simpleString()
        if field.name in names and ("map<" in kind or "variant" in kind):
            raise UnsupportedTypeError(
                f"values of type {kind} cannot be compared", where=field.name, fix="leave it out or cast it to string"
            )


def check_thresholds(thresholds: Sequence[float]) -> None:
    """Refuse thresholds that are no probabilities."""
    for threshold in thresholds:
        if not 0 <= threshold <= 1:
            raise RequestError(f"{threshold} is no probability", where="threshold", fix="give a number from 0 to 1")


def check_targets(targets: int, *, most: int) -> None:
    """Refuse a number of targets that cannot be drawn or held."""
    if not 1 <= targets <= most:
        raise RequestError(f"{targets} targets", where="targets", fix=f"ask for 1 to {most:,}")


def no_rows(what: str) -> EmptyTableError:
    """The error for a table without rows: nothing can be said of it."""
    return EmptyTableError(f"the {what} has no rows", where=what, fix="check the path, and any filter on it")
