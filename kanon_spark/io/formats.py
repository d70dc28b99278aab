"""How each file format is written and read so that every value survives, and which types cannot.

The release is verified by reading back what was written, so a value that does not survive would be found. This room
makes sure that ordinary values do, and says beforehand which types never will.

- parquet, orc: Spark's own settings. (ORC shifts times before 1970 that have a fraction of a second, and days that the
  Julian calendar lacks, in October 1582; the verification refuses a release that holds such values.)
- csv: RFC 4180 with a header. Null is nothing between two commas, the empty string is `""` (as in PostgreSQL); line
  breaks stand inside quotes; a quote is doubled; a backslash is just that; times keep microseconds. To read it
  in Spark use `read_options("csv")` and the schema.
- json: one object per line, nulls written as null.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kanon_spark.errors import TargetError, UnsupportedTypeError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

FORMATS = ("parquet", "orc", "csv", "json")

# Spark's CSV reader puts this text where a field is empty without quotes, then takes it for null. It never stands in a
# file; any text that no cell holds would do. With the default, the empty text, empty strings would become null.
CSV_NULL = "__kanon_null__"

# Spark's own patterns cut times to milliseconds.
_TIMES = {
    "dateFormat": "yyyy-MM-dd",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_CSV = {
    "header": "true",
    "escape": '"',
    "charToEscapeQuoteEscaping": '"',  # Spark's default is the character NUL, which would then vanish from texts
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
    **_TIMES,
}

_WRITE: dict[str, dict[str, str]] = {
    "parquet": {},
    "orc": {},
    "csv": {**_CSV, "nullValue": "", "emptyValue": '""'},
    "json": {**_TIMES, "ignoreNullFields": "false"},
}
_READ: dict[str, dict[str, str]] = {
    "parquet": {},
    "orc": {},
    "csv": {**_CSV, "nullValue": CSV_NULL, "emptyValue": "", "multiLine": "true", "mode": "FAILFAST"},
    "json": {**_TIMES, "mode": "FAILFAST"},
}

_SIMPLE = frozenset(
    {"string", "byte", "short", "integer", "long", "float", "double", "decimal", "boolean"}
    | {"date", "timestamp", "timestamp_ntz"}
)
_NESTED = frozenset({"array", "map", "struct"})
_WRITABLE: dict[str, frozenset[str]] = {
    "parquet": _SIMPLE | _NESTED | {"binary", "daytimeinterval", "yearmonthinterval", "variant"},
    "orc": _SIMPLE | _NESTED | {"binary", "daytimeinterval", "yearmonthinterval"},
    "csv": _SIMPLE,
    "json": _SIMPLE | _NESTED | {"binary"},
    "delta": _SIMPLE | _NESTED | {"binary"},
    # Iceberg has no whole numbers under 32 bits, PostgreSQL none under 16; they would come back as wider ones.
    "iceberg": (_SIMPLE | _NESTED | {"binary"}) - {"byte", "short"},
    "postgresql": (_SIMPLE | {"binary", "array"}) - {"byte"},
}
_IN_ARRAYS = {"postgresql": frozenset({"string", "integer", "long", "double", "boolean"})}
_DELTA_NAMES = frozenset(" ,;{}()\n\t=")
_PARTITION = frozenset({"string", "byte", "short", "integer", "long", "boolean", "date"})


def write_options(file_format: str) -> dict[str, str]:
    """Spark's writer options for a format."""
    return dict(_WRITE[file_format])


def read_options(file_format: str) -> dict[str, str]:
    """Spark's reader options that give back what `write_options` wrote; csv and json also need the schema.

    >>> read_options("csv")["multiLine"], read_options("parquet")
    ('true', {})
    """
    return dict(_READ[file_format])


def refuse_unwritable_types(schema: "StructType", file_format: str) -> None:
    """Raise `UnsupportedTypeError` that names every column whose type would not survive in the format."""
    bad = []
    for field in schema.fields:
        kinds = [kind for kind in _kinds(field.dataType, file_format) if kind not in _WRITABLE[file_format]]
        if kinds:
            bad.append(f"{field.name} ({', '.join(dict.fromkeys(kinds))})")
        elif file_format == "orc" and "`" in field.name:
            bad.append(f"{field.name} (ORC loses columns with a backtick in the name)")
        elif file_format == "delta" and _DELTA_NAMES & set(field.name):
            bad.append(f"{field.name} (Delta takes no blanks and none of ,;{{}}()= in names)")
    if bad:
        raise UnsupportedTypeError(
            f"{file_format} cannot hold these columns so that they read back as they were: {'; '.join(bad)}",
            where="sink.format",
            fix="use format: parquet, or drop the columns",
        )


def refuse_unwritable_layout(schema: "StructType", file_format: str, partition_by: tuple[str, ...]) -> None:
    """Raise `TargetError` where `partition_by` does not fit the table, or a csv file could lose whole rows."""
    types = {field.name: field.dataType.typeName() for field in schema.fields}
    missing = [name for name in partition_by if name not in types]
    if missing:
        raise TargetError(
            f"the release has no column {', '.join(missing)}",
            where="sink.partition_by",
            fix=f"its columns are {', '.join(types)}",
        )
    unfit = [f"{name} ({types[name]})" for name in partition_by if types[name] not in _PARTITION]
    if unfit:
        raise TargetError(
            f"folder names cannot hold the values of {', '.join(unfit)}",
            where="sink.partition_by",
            fix="partition by text, whole numbers, booleans or dates",
        )
    inside = len(types) - len(partition_by)
    if inside < 1:
        raise TargetError(
            "all columns are partition columns",
            where="sink.partition_by",
            fix="leave at least one column for the files",
        )
    if file_format == "csv" and inside == 1:
        # A null would be an empty line, and every reader skips those.
        raise TargetError(
            "a csv file with one column loses the rows that are null",
            where="sink.format",
            fix="use format: parquet or json",
        )


def _kinds(data_type: "DataType", file_format: str) -> Iterator[str]:
    """The names of all types inside a type; what a format treats specially gets a name that no format allows."""
    from pyspark.sql import types as T

    name = _type_name(data_type)
    yield name
    if isinstance(data_type, T.ArrayType):
        yield from _kinds(data_type.elementType, file_format)
        allowed = _IN_ARRAYS.get(file_format)
        if allowed is not None and _type_name(data_type.elementType) not in allowed:
            yield f"array of {data_type.elementType.simpleString()}"
    elif isinstance(data_type, T.MapType):
        yield from _kinds(data_type.keyType, file_format)
        yield from _kinds(data_type.valueType, file_format)
        if file_format == "json" and not isinstance(data_type.keyType, T.StringType):
            yield "map with keys that are not text"
    elif isinstance(data_type, T.StructType):
        for field in data_type.fields:
            yield from _kinds(field.dataType, file_format)
    elif isinstance(data_type, T.StringType) and file_format == "orc" and "collate" in data_type.simpleString():
        yield "string with a collation"


def _type_name(data_type: "DataType") -> str:
    """The type's plain name without parameters, the same for all Spark versions."""
    name = type(data_type).__name__
    known = {"TimestampNTZType": "timestamp_ntz", "NullType": "void", "CharType": "string", "VarcharType": "string"}
    return known.get(name, name.removesuffix("Type").lower())
