"""What is written in each format reads back as it was: texts, numbers, times, nested values, odd names."""

import datetime
import random
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kanon_spark.config.models import SinkSpec
from kanon_spark.io.formats import FORMATS
from kanon_spark.io.path_sink import PathPublisher

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RUN = "20250101T000000_aaaaaaaa"
NASTY = [
    None, "", " ", "a", " lead", "trail ", "\t", "\n", "\r", "\r\n", "a\nb", "a\rb", "a\r\nb", "\n\n", '"', '""', '"""',
    'a"b', '"a"', '"a', 'a"', "\\", "\\\\",
    '\\"', '"\\', "a\\nb", "\\,", '",', ',"', '",\n"', "#x", "\u0000", "a\u0000",
    "a,b", ",", ";", "'", "null", "NULL", "\\N", "NaN", "-", "*", "[1, 2]", "\u2028", "\u0085", "é", "e\u0301", "日本",
    "😀", "\ufeffx", "\x1f", "=1+1", "true", "2020-01-01", "01234", "{}", "{a, b}",
]  # fmt: skip
SIMPLE = (
    "i int, d double, f float, wide decimal(38,18), whole decimal(38,0), ts timestamp, ntz timestamp_ntz, day date, "
    "yes boolean, tiny tinyint, small smallint, big bigint"
)


def publisher(spark: "SparkSession", folder: Path, **sink: Any) -> PathPublisher:
    spec = SinkSpec.model_validate({"path": "out/release", **sink})
    return PathPublisher(spark, spec, base_dir=folder, run_id=RUN, work_root=str(folder / "work"))


def write_and_read(spark: "SparkSession", table: "DataFrame", folder: Path, **sink: Any) -> "DataFrame":
    made = publisher(spark, folder, **sink)
    made.write(table)
    return made.read_staged(table.schema)


def texts(table: "DataFrame") -> list[tuple[Any, ...]]:
    """All rows, sorted; values as Spark prints them, because Python's types lose some (NaN, microseconds)."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    def shown(field: Any) -> Any:
        column = F.col("`" + field.name.replace("`", "``") + "`")
        if isinstance(field.dataType, T.BinaryType):
            return F.hex(column)  # bytes are no text, and Spark Connect carries texts as such
        # The order of a map's entries means nothing, and ORC changes it.
        is_map = isinstance(field.dataType, T.MapType)
        return (F.array_sort(F.map_entries(column)) if is_map else column).cast("string")

    rows = table.select(*(shown(field) for field in table.schema.fields)).collect()
    return sorted((tuple(row) for row in rows), key=repr)


def assert_same(back: "DataFrame", table: "DataFrame") -> None:
    assert [field.dataType.simpleString() for field in back.schema] == [f.dataType.simpleString() for f in table.schema]
    assert back.columns == table.columns
    assert texts(back) == texts(table)


@pytest.mark.parametrize("file_format", FORMATS)
def test_nasty_texts_survive_side_by_side(spark: "SparkSession", tmp_path: Path, file_format: str) -> None:
    # Neighbours can only disturb each other where a row is one line of text.
    seconds = NASTY if file_format in {"csv", "json"} else NASTY[:2]
    pairs = [(first, second) for first in NASTY for second in seconds]
    table = spark.createDataFrame(pairs, "a string, b string").repartition(2)
    back = write_and_read(spark, table, tmp_path, format=file_format)
    assert_same(back, table)
    assert_same(back.select("b"), table.select("b"))  # Spark then parses only a part of each row
    assert back.count() == len(pairs)


@pytest.mark.parametrize("file_format", ["csv", "json"])
def test_random_texts_survive(spark: "SparkSession", tmp_path: Path, file_format: str) -> None:
    dice = random.Random(7)
    alphabet = ["", '"', "\\", "\n", "\r", ",", " ", "a", "\t", "#", "'", "ü", "\u0000"]

    def text() -> str | None:
        return None if dice.random() < 0.1 else "".join(dice.choices(alphabet, k=dice.randrange(6)))

    table = spark.createDataFrame([(text(), text(), text()) for _ in range(3000)], "a string, b string, c string")
    assert_same(write_and_read(spark, table, tmp_path, format=file_format), table)


def simple_rows(*, orc: bool) -> list[tuple[Any, ...]]:
    stamp, nan, inf = datetime.datetime, float("nan"), float("inf")
    fraction = stamp(2020, 1, 1, 1, 2, 3, 456789)
    old = stamp(1969, 12, 31) if orc else stamp(1969, 12, 31, 23, 59, 59, 999999)  # ORC's own fault, see io/formats.py
    gap = datetime.date(1582, 10, 4 if orc else 10)
    least, most = Decimal("0.000000000000000001"), Decimal("9" * 38)
    return [
        (0, *(None,) * 11),
        (1, nan, nan, least, most, fraction, fraction, datetime.date(2020, 2, 29), True, -128, -(2**15), -(2**63)),
        (2, inf, -inf, -least, Decimal("-" + "9" * 38), old, old, gap, False, 127, 2**15 - 1, 2**63 - 1),
        (3, -0.0, 0.0, Decimal(0), Decimal(0), fraction, fraction, datetime.date(1, 1, 1), True, 0, 0, 0),
        (4, 5e-324, 1e-45, least, most, fraction, stamp(9999, 12, 31, 23, 59, 59, 999999), gap, True, 0, 0, 0),
        (5, 0.1 + 0.2, 0.1, Decimal("1e-10"), Decimal(10) ** 37, fraction, stamp(1, 1, 1), gap, True, 0, 0, 0),
        (
            6,
            1.7976931348623157e308,
            3.4e38,
            least,
            most,
            fraction,
            fraction,
            datetime.date(9999, 12, 31),
            True,
            1,
            1,
            1,
        ),
    ]


@pytest.mark.parametrize("file_format", FORMATS)
def test_numbers_and_times_survive_to_the_last_digit(spark: "SparkSession", tmp_path: Path, file_format: str) -> None:
    table = spark.createDataFrame(simple_rows(orc=file_format == "orc"), SIMPLE)
    assert_same(write_and_read(spark, table, tmp_path, format=file_format), table)


@pytest.mark.parametrize("file_format", ["parquet", "orc", "json"])
def test_nested_values_survive(spark: "SparkSession", tmp_path: Path, file_format: str) -> None:
    table = spark.sql("""
      SELECT 1 AS i, X'00ff' AS b, array(1, null) AS a, array(cast(null AS string), '') AS s,
        map('x', 1, '', null) AS m, named_struct('x', 1, 'y', cast(null AS string)) AS t,
        array(named_struct('q', timestamp'2020-01-01 00:00:00.000001')) AS n
      UNION ALL SELECT 2, X'', array(), array(), map(), named_struct('x', cast(null AS int), 'y', ''), array(null)
      UNION ALL SELECT 3, null, null, null, null, null, null""")
    assert_same(write_and_read(spark, table, tmp_path, format=file_format), table)


@pytest.mark.parametrize("file_format", FORMATS)
def test_odd_column_names_survive(spark: "SparkSession", tmp_path: Path, file_format: str) -> None:
    names = ["a.b", "a b", "a-b", "ü", "a,b", 'a"b', "a;b", "a{b", "a(b)", "a=b", "a\nb", "a:b"]
    table = spark.createDataFrame([tuple("xy"[n % 2] for n in range(len(names)))], [*names])
    assert_same(write_and_read(spark, table, tmp_path, format=file_format), table)


@pytest.mark.parametrize("file_format", FORMATS)
def test_partitions_keep_order_types_and_nulls(spark: "SparkSession", tmp_path: Path, file_format: str) -> None:
    rows = [(n, text, f"v{n}", n % 3, "z") for n, text in enumerate(["a b", "a/b", None, "01", "x=y", "%", "ü", "a:b"])]
    table = spark.createDataFrame(rows, "i int, `p.q` string, v string, n int, z string")
    back = write_and_read(spark, table, tmp_path, format=file_format, partition_by=["p.q", "n"])
    assert_same(back, table)


@pytest.mark.parametrize("file_format", FORMATS)
def test_an_empty_release_reads_back_empty(spark: "SparkSession", tmp_path: Path, file_format: str) -> None:
    table = spark.createDataFrame([], "a string, b int")
    assert_same(write_and_read(spark, table, tmp_path, format=file_format), table)


def test_a_person_can_read_the_csv(spark: "SparkSession", tmp_path: Path) -> None:
    rows = [("[20, 29]", None, 'say "hi"'), ("30", "", "two\nlines")]
    made = publisher(spark, tmp_path, format="csv")
    made.write(spark.createDataFrame(rows, "age string, city string, note string").coalesce(1))
    (file,) = Path(made.staged_path).glob("*.csv")
    assert file.read_text() == 'age,city,note\n"[20, 29]",,"say ""hi"""\n30,"","two\nlines"\n'
