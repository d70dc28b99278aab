"""Content hashes: one long per row that changes whenever a value does, and sums of it that no order can change.

Three things that Spark's `xxhash64` alone gets wrong are put right here: it skips nulls, so (null, a) looks like (a,
null), also inside arrays and structs; it refuses maps, whose entries have no order; and a plain sum of its results
overflows.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

MASK_BITS = 31  # null flags of so many columns share one integer


def content_hash(table: "DataFrame", columns: Sequence[str]) -> "Column":
    """Hash of the given columns of a row (long). The order of the names counts, not that of the table.

    >>> # table.select(content_hash(table, ["disease", "cost"]).alias("g"))
    """
    from pyspark.sql import functions as F

    if not columns:
        return F.lit(0).cast("long")
    types = {field.name: field.dataType for field in table.schema.fields}
    values = [F.col("`" + name.replace("`", "``") + "`") for name in columns]
    parts = [hashable(value, types[name]) for value, name in zip(values, columns, strict=True)]
    return F.xxhash64(*parts, *null_masks(values))


def null_masks(values: "Sequence[Column]") -> "list[Column]":
    """Which values are null, as integers of 31 flags each."""
    from pyspark.sql import functions as F

    masks: list[Column] = []
    for start in range(0, len(values), MASK_BITS):
        mask = F.lit(0)
        for index, value in enumerate(values[start : start + MASK_BITS]):
            mask = mask.bitwiseOR(F.when(value.isNull(), 1 << index).otherwise(0))
        masks.append(mask)
    return masks


def hash_sums(value: "Column") -> "list[Column]":
    """Sums of the high and the low half of a hash: [g_hi, g_lo]. They cannot overflow below two billion rows."""
    from pyspark.sql import functions as F

    return [F.sum(F.shiftright(value, 32)), F.sum(value.bitwiseAND(F.lit(0xFFFFFFFF)))]


def fingerprint(table: "DataFrame", columns: Sequence[str]) -> str:
    """Number of rows and sum of their hashes: the same for the same rows, in whatever order and wherever they stand."""
    from pyspark.sql import functions as F

    total = F.sum(content_hash(table, columns).cast("decimal(38,0)"))
    row = table.agg(F.count(F.lit(1)), total).first()
    assert row is not None  # an aggregate has one row
    return f"{row[0]}:{row[1] or 0}"


def hashable(value: "Column", data_type: "DataType") -> "Column":
    """The value in a form that `xxhash64` reads whole: nulls inside it flagged, maps as sorted entries."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    if isinstance(data_type, T.StringType):
        # A collation would make texts equal that are not the same text.
        return value if _is_binary(data_type) else F.collate(value, "UTF8_BINARY")
    if isinstance(data_type, T.VariantType):
        return value.cast("string")
    if isinstance(data_type, T.ArrayType):
        return F.transform(value, lambda each: _flagged(each, data_type.elementType))
    if isinstance(data_type, T.MapType):
        entries = F.transform(
            F.map_entries(value),
            lambda entry: F.struct(
                hashable(entry["key"], data_type.keyType).alias("key"),
                _flagged(entry["value"], data_type.valueType).alias("value"),
            ),
        )
        return F.array_sort(entries)
    if isinstance(data_type, T.StructType):
        # By position, not by name: names inside structs may hold anything.
        fields = [
            _flagged(value.getField(field.name), field.dataType).alias(f"f{index}")
            for index, field in enumerate(data_type.fields)
        ]
        return F.struct(*fields) if fields else F.lit(0)
    return value


def _flagged(value: "Column", data_type: "DataType") -> "Column":
    from pyspark.sql import functions as F

    return F.struct(value.isNull().alias("null"), hashable(value, data_type).alias("value"))


def _is_binary(data_type: "DataType") -> bool:
    return getattr(data_type, "collation", "UTF8_BINARY") in (None, "UTF8_BINARY")
