"""Which types and layouts are refused, per format. What survives is tested with Spark, in tests/spark."""

import pytest

from kanon_spark.errors import TargetError, UnsupportedTypeError
from kanon_spark.io.formats import FORMATS, refuse_unwritable_layout, refuse_unwritable_types

T = pytest.importorskip("pyspark.sql.types")


def schema(**fields: object) -> object:
    return T.StructType([T.StructField(name, data_type) for name, data_type in fields.items()])


SIMPLE = {
    "a": T.StringType(), "b": T.IntegerType(), "c": T.DecimalType(38, 18), "d": T.DateType(), "e": T.TimestampType(),
    "f": T.TimestampNTZType(), "g": T.BooleanType(), "h": T.ByteType(), "i": T.ShortType(), "j": T.LongType(),
    "k": T.FloatType(), "l": T.DoubleType(),
}  # fmt: skip


@pytest.mark.parametrize("file_format", FORMATS)
def test_simple_types_go_everywhere(file_format: str) -> None:
    refuse_unwritable_types(schema(**SIMPLE), file_format)


@pytest.mark.parametrize(
    ("data_type", "refused_by"),
    [
        (T.ArrayType(T.IntegerType()), {"csv"}),
        (T.StructType([T.StructField("x", T.StringType())]), {"csv"}),
        (T.MapType(T.StringType(), T.StringType()), {"csv"}),
        (T.MapType(T.IntegerType(), T.StringType()), {"csv", "json"}),
        (T.ArrayType(T.MapType(T.LongType(), T.StringType())), {"csv", "json"}),
        (T.BinaryType(), {"csv"}),
        (T.DayTimeIntervalType(), {"csv", "json"}),
        (T.YearMonthIntervalType(), {"csv", "json"}),
        (T.StructType([T.StructField("x", T.DayTimeIntervalType())]), {"csv", "json"}),
        (T.CalendarIntervalType(), {"csv", "json", "orc", "parquet"}),
        (T.NullType(), {"csv", "json", "orc", "parquet"}),
        (T.VariantType(), {"csv", "json", "orc"}),
        (T.StringType("UTF8_LCASE"), {"orc"}),
    ],
    ids=str,
)
def test_types_that_would_not_survive_are_refused_by_name(data_type: object, refused_by: set[str]) -> None:
    for file_format in FORMATS:
        if file_format not in refused_by:
            refuse_unwritable_types(schema(fine=T.StringType(), odd=data_type), file_format)
            continue
        with pytest.raises(UnsupportedTypeError, match="odd") as caught:
            refuse_unwritable_types(schema(fine=T.StringType(), odd=data_type), file_format)
        assert "fine" not in caught.value.message
        assert caught.value.exit_code == 3


def test_orc_loses_columns_with_a_backtick() -> None:
    with pytest.raises(UnsupportedTypeError, match="backtick"):
        refuse_unwritable_types(schema(**{"a`b": T.StringType()}), "orc")
    refuse_unwritable_types(schema(**{"a`b": T.StringType()}), "csv")


@pytest.mark.parametrize(
    ("file_format", "partition_by", "message"),
    [
        ("parquet", ("nope",), "no column nope"),
        ("parquet", ("l",), "cannot hold the values of l"),
        ("parquet", tuple(SIMPLE), "cannot hold"),
        ("csv", tuple(name for name in "abdghij"), None),
        ("json", (), None),
    ],
)
def test_partitions_must_fit(file_format: str, partition_by: tuple[str, ...], message: str | None) -> None:
    if message is None:
        refuse_unwritable_layout(schema(**SIMPLE), file_format, partition_by)
        return
    with pytest.raises(TargetError, match=message):
        refuse_unwritable_layout(schema(**SIMPLE), file_format, partition_by)


def test_some_column_must_be_left_for_the_files() -> None:
    two = schema(a=T.StringType(), b=T.StringType())
    with pytest.raises(TargetError, match="all columns"):
        refuse_unwritable_layout(two, "parquet", ("a", "b"))
    with pytest.raises(TargetError, match="one column"):
        refuse_unwritable_layout(two, "csv", ("a",))
    refuse_unwritable_layout(two, "json", ("a",))
