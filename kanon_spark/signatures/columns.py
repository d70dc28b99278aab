"""Source columns as Catalyst expressions: what kind they are, one form per value, their text and their position."""

from typing import TYPE_CHECKING

from kanon_spark.errors import UnsupportedTypeError
from kanon_spark.hierarchy.tree import Kind
from kanon_spark.io.content import hashable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType


def quoted(name: str) -> str:
    """A column name as Spark must read it, whatever characters it holds.

    >>> quoted("a.b`c")
    '`a.b``c`'
    """
    return "`" + name.replace("`", "``") + "`"


def kind_of(data_type: "DataType", *, qi: str) -> Kind:
    """What a quasi-identifier of this type is.

    Raises:
        UnsupportedTypeError: Nested, binary, interval and other types have no values that could be generalized.
    """
    from pyspark.sql import types as T

    match data_type:
        case T.StringType() | T.CharType() | T.VarcharType():
            return "text"
        case T.ByteType() | T.ShortType() | T.IntegerType() | T.LongType():
            return "integer"
        case T.DecimalType():
            return "integer" if data_type.scale <= 0 else "real"
        case T.FloatType() | T.DoubleType():
            return "real"
        case T.DateType():
            return "date"
        case T.TimestampType() | T.TimestampNTZType():
            return "timestamp"
        case T.BooleanType():
            return "boolean"
    raise UnsupportedTypeError(
        f"a column of type {data_type.simpleString()} cannot be a quasi-identifier",
        where=f"columns.quasi_identifiers.{qi}",
        fix="make it text, a number, a date, a timestamp or a boolean (for nested types: one column per field), "
        "or give the column another role",
    )


def type_of(table: "DataFrame", name: str) -> "DataType":
    """Type of a column (names are never parsed, so that dots in them are harmless)."""
    return next(field.dataType for field in table.schema.fields if field.name == name)


def normalised(table: "DataFrame", name: str) -> "Column":
    """A column's values with one form each: NaN is null, -0.0 is 0.0, and no collation makes different texts equal."""
    return one_form(_column(name), type_of(table, name))


def one_form(value: "Column", data_type: "DataType") -> "Column":
    """The same for an expression of a known type."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    if isinstance(data_type, T.FloatType | T.DoubleType):
        zero = F.lit(0.0).cast(data_type)
        return F.when(F.isnan(value), F.lit(None)).when(value == zero, zero).otherwise(value)
    if isinstance(data_type, T.StringType):
        return hashable(value, data_type)
    return value


def position(value: "Column", kind: Kind) -> "Column":
    """Where a value lies on its axis, as a double: see `Domain.positions`; null for text and boolean."""
    from pyspark.sql import functions as F

    match kind:
        case "integer":
            return value.cast("double")
        case "real":
            # Through the text: a 32-bit 0.7 is published as 0.7, so that is where it lies, not at 0.699999988.
            return value.cast("string").cast("double")
        case "date":
            return F.unix_date(value).cast("double")
        case "timestamp":
            return F.unix_micros(value.cast("timestamp")) / F.lit(1e6)
        case _:
            return F.lit(None).cast("double")


def identity_hash(seed: int, idents: "list[Column]") -> "Column":
    """The hash `h` of a signature: of the seed, all values, and which of them are null."""
    from pyspark.sql import functions as F

    # One mask, an int up to 31 QIs and a long up to 63: the verifier computes the same by itself.
    mask = F.lit(0)
    for index, ident in enumerate(idents):
        mask = mask.bitwiseOR(F.when(ident.isNull(), F.lit(1 << index)).otherwise(F.lit(0)))
    return F.xxhash64(F.lit(seed), *idents, mask)


def _column(name: str) -> "Column":
    from pyspark.sql import functions as F

    return F.col(quoted(name))
