"""Aggregation against a Counter over Python tuples, on nasty data and nasty names."""

import datetime
import math
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kanon_spark.config.loader import load_config
from kanon_spark.engine.stages import RunContext
from kanon_spark.errors import (
    CoverageError,
    DataError,
    EmptyTableError,
    InternalError,
    SourceChangedError,
    UnsupportedTypeError,
)
from kanon_spark.signatures import columns, domains
from kanon_spark.signatures.aggregate import Signatures, aggregate
from kanon_spark.signatures.encoding import Encoding, prepare_encoding
from kanon_spark.signatures.lookups import LITERAL_LEAVES
from kanon_spark.signatures.perfect_hash import xxhash64

Row = tuple[object, ...]

# Every type that may be a QI, under names that break careless code: ours, SQL's, and unicode.
SCHEMA = (
    "`h` string, `t0` tinyint, `rows` smallint, `a.b` int, `c``d` bigint, `é ü` float, `g-x` double, "
    "`key0` decimal(5,2), `check` decimal(20,0), `unit` date, `v0` timestamp, `select` timestamp_ntz, "
    "`_kanon` boolean, `kept.one` string"
)
NAMES = ["h", "t0", "rows", "a.b", "c`d", "é ü", "g-x", "key0", "check", "unit", "v0", "select", "_kanon"]


def nasty_rows() -> list[Row]:
    day, moment = datetime.date(1582, 10, 14), datetime.datetime(2024, 2, 29, 23, 59, 59, 999_999)
    pool: list[Row] = [
        ("", 0, 0, 0, 0, 0.0, 0.0, Decimal("0.00"), Decimal(0), datetime.date(1970, 1, 1), moment, moment, True),
        (
            "ß\U0001f600",
            -128,
            -32768,
            -(2**31),
            -(2**63),
            -0.0,
            -0.0,
            Decimal("-999.99"),
            Decimal(10**19),
            day,
            moment,
            moment,
            False,
        ),
        (
            "z" * 100,
            127,
            32767,
            2**31 - 1,
            2**63 - 1,
            math.nan,
            math.nan,
            Decimal("1.50"),
            Decimal(-1),
            day,
            None,
            None,
            None,
        ),
        (None,) * 13,
        ("a", None, 1, None, 2, 1.5, math.inf, Decimal("1.50"), None, None, moment, None, True),
    ]
    picks = np.random.default_rng(5).integers(0, len(pool), size=(60, 13))
    mixed = [tuple(pool[pick][column] for column, pick in enumerate(row)) for row in picks]
    return [(*row, f"kept {n % 3}") for n, row in enumerate([*pool, *pool, *mixed, *mixed[:20]])]


def encode(
    spark: SparkSession, source: DataFrame, qis: object, folder: Path, **other: object
) -> tuple[RunContext, Encoding]:
    loaded = load_config({"columns": {"quasi_identifiers": qis, "other": "keep"}, **other})
    ctx = RunContext(spark)
    return ctx, prepare_encoding(ctx, source, loaded.config, base_dir=folder, folder=str(folder / "domains"))


def decoded(signatures: Signatures) -> dict[Row, dict[str, int]]:
    """Signatures by the values that their codes stand for."""
    encoding = signatures.encoding
    layout = encoding.codebook.layout
    idents = [
        {row["code"]: row["ident"] for row in encoding.idents(index).collect()}
        for index in range(len(encoding.codebook.columns))
    ]
    out: dict[Row, dict[str, int]] = {}
    for row in signatures.table.collect():
        words = np.array([[row[name] for name in layout.names()]])
        codes = layout.unpack(words)[0].tolist()
        key = tuple(idents[index][code] for index, code in enumerate(codes))
        assert key not in out
        out[key] = row.asDict()
    return out


def one_form(value: object) -> object:
    if isinstance(value, float):
        return None if math.isnan(value) else value + 0.0
    return value


@dataclass(frozen=True)
class Nasty:
    """The nasty table, aggregated once for all tests of this file."""

    ctx: RunContext
    source: DataFrame
    encoding: Encoding
    found: Signatures


@pytest.fixture(scope="module")
def nasty(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Nasty:
    folder = tmp_path_factory.mktemp("nasty")
    source = spark.createDataFrame(nasty_rows(), SCHEMA).repartition(3)
    ctx, encoding = encode(spark, source, NAMES, folder)
    found = aggregate(ctx, source, encoding, unit=None, kept=["kept.one"], path=str(folder / "signatures"))
    return Nasty(ctx, source, encoding, found)


def test_signatures_are_what_a_counter_counts(nasty: Nasty) -> None:
    rows, found = nasty_rows(), nasty.found
    expected = Counter(tuple(one_form(value) for value in row[:13]) for row in rows)
    table = decoded(found)
    assert {key: row["rows"] for key, row in table.items()} == expected
    assert {key: row["persons"] for key, row in table.items()} == expected
    assert (found.count, found.rows, found.persons) == (len(expected), len(rows), len(rows))
    assert len({row["h"] for row in table.values()}) == len(expected)
    assert found.table.columns == [*found.codebook.layout.names(), "h", "rows", "persons", "g_hi", "g_lo"]
    for mask, column in zip(found.present, found.codebook.columns, strict=True):
        assert mask.all()
        assert len(mask) == column.tree.leaves
    assert nasty.ctx.seconds.keys() == {"domains", "signatures"}


def test_rows_find_their_signature_and_the_source_its_fingerprint(nasty: Nasty) -> None:
    source, encoding, found = nasty.source, nasty.encoding, nasty.found
    with_h = encoding.with_identity(source, name="_kanon_h")
    assert with_h.columns == [*source.columns, "_kanon_h"]
    counted = with_h.groupBy("_kanon_h").count().toDF("h", "rows")
    assert_df_equality(counted, found.table.select("h", "rows"), ignore_row_order=True, ignore_nullable=True)
    assert encoding.source_hash(source.repartition(5), ["kept.one"]) == found.source_hash
    kept = F.col("`kept.one`")
    changed = source.withColumn("kept.one", F.when(kept == "kept 0", "new").otherwise(kept))
    assert encoding.source_hash(changed, ["kept.one"]) != found.source_hash


def test_codes_follow_the_order_of_values_and_sets_the_frequency(spark: SparkSession, tmp_path: Path) -> None:
    rows = [(10, "b"), (9, "b"), (-1, "a"), (9, "c"), (None, "c"), (100, "c"), (2, None)]
    source = spark.createDataFrame(rows, "n int, s string")
    _, encoding = encode(spark, source, ["n", "s"], tmp_path)
    number, text = encoding.codebook.columns
    assert number.texts == ("-1", "2", "9", "10", "100", None)
    assert number.positions[:5].tolist() == [-1, 2, 9, 10, 100]
    assert (number.publish, text.publish) == ("range", "set")
    assert text.texts == ("c", "b", "a", None)
    assert (number.tree.null_leaf, text.tree.null_leaf) == (5, 3)


TOWNS = "Bern;South;*\nOslo;North;*\nRiga;North;*\n"


def test_files_of_every_type_find_their_codes(spark: SparkSession, tmp_path: Path) -> None:
    """Each way of looking a value up gives the same codes as the file's lines say."""
    cases: dict[str, tuple[str, list[object], list[str]]] = {
        "text": ("string", ["Bern", "Ürümqi", "", "x" * 40, None], ["Ürümqi", "Bern", "", "x" * 40]),
        "near": ("int", [17, -3, 90, None], ["90", "017", "-3"]),
        "far": ("bigint", [1, 2**40, -(2**62), None], [str(2**40), "1", str(-(2**62))]),
        "huge": ("decimal(38,0)", [Decimal(1), Decimal(10**37), None], [str(10**37), "1"]),
        "money": ("decimal(6,2)", [Decimal("1.50"), Decimal("2.00"), None], ["1.5", "2"]),
        "real": ("double", [1.5, 2.0, -0.0, math.nan, None], ["2", "1.50", "0"]),
        "small": ("float", [0.1, 7.0, None], ["0.1", "7"]),
        "day": ("date", [datetime.date(2024, 2, 29), datetime.date(1900, 1, 1), None], ["1900-01-01", "2024-02-29"]),
        "seen": ("timestamp", [datetime.datetime(2024, 1, 2, 3, 4, 5), None], ["2024-01-02 03:04:05"]),
        "flag": ("boolean", [True, False, None], ["false", "TRUE"]),
    }
    for name, (_, _, lines) in cases.items():
        (tmp_path / f"{name}.csv").write_text("".join(f'"{line}";*\n' for line in lines), encoding="utf-8")
    size = max(len(values) for _, values, _ in cases.values())
    rows = [tuple(values[n % len(values)] for _, values, _ in cases.values()) for n in range(2 * size * 3)]
    source = spark.createDataFrame(rows, ", ".join(f"`{name}` {kind}" for name, (kind, _, _) in cases.items()))
    ctx, encoding = encode(spark, source, {name: {"hierarchy": f"{name}.csv"} for name in cases}, tmp_path)
    found = aggregate(ctx, source, encoding, unit=None, kept=[], path=str(tmp_path / "signatures"))
    expected = Counter(tuple(one_form(value) for value in row) for row in source.collect())
    assert {key: row["rows"] for key, row in decoded(found).items()} == expected


def test_a_file_too_long_for_literals(spark: SparkSession, tmp_path: Path) -> None:
    texts = [f"zip {n:05d}" for n in range(LITERAL_LEAVES + 50)]
    (tmp_path / "zip.csv").write_text("".join(f"{text};{text[:6]};*\n" for text in texts))
    values = [*texts[::37], None, texts[0]]
    source = spark.createDataFrame([(text,) for text in values], "zip string")
    ctx, encoding = encode(spark, source, {"zip": {"hierarchy": "zip.csv"}}, tmp_path)
    found = aggregate(ctx, source, encoding, unit=None, kept=[], path=str(tmp_path / "signatures"))
    assert {key[0]: row["rows"] for key, row in decoded(found).items()} == Counter(values)
    assert int(found.present[0].sum()) == len(set(values))


def test_missing_values_are_counted_for_every_column_and_never_shown(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "town.csv").write_text(TOWNS)
    (tmp_path / "age.csv").write_text("1;*\n2;*\n")
    rows = [("Bern", 1), ("Secretville", 2), ("Secretville", 7), ("Hidden", 7), (None, None)]
    source = spark.createDataFrame(rows, "town string, age int")
    ctx, encoding = encode(
        spark, source, {"town": {"hierarchy": "town.csv"}, "age": {"hierarchy": "age.csv"}}, tmp_path
    )
    with pytest.raises(CoverageError) as error:
        aggregate(ctx, source, encoding, unit=None, kept=[], path=str(tmp_path / "signatures"))
    assert "town: 2 distinct values in 3 rows" in str(error.value)
    assert "age: 1 distinct value in 2 rows" in str(error.value)
    assert "Secretville" not in str(error.value)


def test_unknown_values_go_to_the_root_and_are_one_signature(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "town.csv").write_text(TOWNS)
    source = spark.createDataFrame([("Bern",), ("Paris",), ("Rome",), (None,)], "town string")
    qis = {"town": {"hierarchy": {"csv": {"path": "town.csv", "unknown": "root"}}}}
    ctx, encoding = encode(spark, source, qis, tmp_path)
    found = aggregate(ctx, source, encoding, unit=None, kept=[], path=str(tmp_path / "signatures"))
    column = found.codebook.columns[0]
    assert column.by_code
    rows = {column.texts[code[0]]: row["rows"] for code, row in decoded(found).items()}  # type: ignore[call-overload]
    assert rows == {"Bern": 1, "*": 2, None: 1}
    early = encoding.early(source, 0)
    assert early is not None
    assert {(row["value"], column.texts[row["code"]]) for row in early.collect()} == {
        ("Bern", "Bern"), ("Paris", "*"), ("Rome", "*"), (None, None)
    }  # fmt: skip


def test_losses_of_numeric_files_are_taken_over_the_data(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "age.csv").write_text("".join(f"{n};[{n // 5 * 5}-{n // 5 * 5 + 4}];*\n" for n in range(100)))
    source = spark.createDataFrame([(20,), (60,), (None,)], "age int")
    ctx, encoding = encode(spark, source, {"age": {"hierarchy": "age.csv"}}, tmp_path)
    found = aggregate(ctx, source, encoding, unit=None, kept=[], path=str(tmp_path / "signatures"))
    tree = found.codebook.columns[0].tree
    assert tree.loss[tree.parent[20]] == pytest.approx(4 / 40)
    assert found.present[0].nonzero()[0].tolist() == [20, 60, 100]


@pytest.mark.parametrize(
    ("kind", "spec", "level", "values", "expected"),
    [
        (
            "int",
            {"interval": {"widths": [5, 10], "origin": 2, "bottom": 15, "top": 60}},
            1,
            [-(2**31), 14, 15, 16, 17, 21, 22, 59, 60, 2**31 - 1, None],
            [14, 14, 15, 15, 17, 17, 22, 57, 60, 60, None],
        ),
        ("bigint", {"interval": {"widths": [10]}}, 1, [-1, 0, 9, 10, None], [-10, 0, 0, 10, None]),
        ("double", {"interval": {"widths": [0.1]}}, 1, [0.3, 0.6, 0.7, 1.1, -0.05], [0.3, 0.6, 0.7, 1.1, -0.1]),
        ("decimal(38,0)", {"interval": {"widths": [10]}}, 1, [Decimal(-1), Decimal(15)], [-10.0, 10.0]),
        ("string", {"prefix": {"keep": [3, 1]}}, 2, ["53715", "5", "", None], ["5", "5", "", None]),
        (
            "timestamp",
            {"date": {"levels": ["day", "month", "quarter", "decade"]}},
            4,
            [datetime.datetime(1969, 12, 31, 23), datetime.datetime(2020, 1, 1)],
            [datetime.date(1960, 1, 1), datetime.date(2020, 1, 1)],
        ),
        (
            "date",
            {"date": {"levels": ["month", "quarter"]}},
            2,
            [datetime.date(2024, 5, 31), datetime.date(2024, 12, 31), None],
            [datetime.date(2024, 4, 1), datetime.date(2024, 10, 1), None],
        ),
    ],
)
def test_representatives(
    spark: SparkSession,
    tmp_path: Path,
    kind: str,
    spec: object,
    level: int,
    values: list[object],
    expected: list[object],
) -> None:
    source = spark.createDataFrame([(value,) for value in values], f"x {kind}")
    ctx, encoding = encode(spark, source, {"x": {"hierarchy": spec, "min_level": level}}, tmp_path)
    found = aggregate(ctx, source, encoding, unit=None, kept=[], path=str(tmp_path / "signatures"))
    assert {key[0]: row["rows"] for key, row in decoded(found).items()} == Counter(expected)


def test_an_empty_table(spark: SparkSession, tmp_path: Path) -> None:
    source = spark.createDataFrame([], "n int, s string, z string")
    ctx, encoding = encode(spark, source, {"n": {}, "s": {}, "z": {"hierarchy": {"prefix": {"keep": [1]}}}}, tmp_path)
    with pytest.raises(EmptyTableError):
        aggregate(ctx, source, encoding, unit=None, kept=[], path=str(tmp_path / "signatures"))


def test_a_source_that_grew_between_the_passes(spark: SparkSession, tmp_path: Path) -> None:
    source = spark.createDataFrame([("a",), ("b",)], "s string")
    ctx, encoding = encode(spark, source, ["s"], tmp_path)
    grown = source.union(spark.createDataFrame([("c",)], "s string"))
    with pytest.raises(SourceChangedError):
        aggregate(ctx, grown, encoding, unit=None, kept=[], path=str(tmp_path / "signatures"))


def test_too_many_values_name_the_fix(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domains, "DOMAIN_LIMIT", 10)
    with pytest.raises(DataError, match="more than 10 distinct values") as error:
        encode(spark, spark.range(12).toDF("n"), ["n"], tmp_path)
    assert "min_level" in error.value.fix


def test_many_values_are_collected_column_by_column(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = spark.createDataFrame([(1, "a"), (2, None), (2, "b"), (3, "")], "n int, s string")
    _, together = encode(spark, source, ["n", "s"], tmp_path / "together")
    monkeypatch.setattr(domains, "_COLLECTED_AT_ONCE", 6)
    _, apart = encode(spark, source, ["n", "s"], tmp_path / "apart")
    assert [column.texts for column in apart.codebook.columns] == [column.texts for column in together.codebook.columns]
    assert [len(column.texts) for column in apart.codebook.columns] == [3, 4]


def test_two_texts_with_one_hash_are_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(F, "xxhash64", lambda *_: F.lit(7).cast("long"))
    with pytest.raises(InternalError, match="share a 64-bit hash"):
        encode(spark, spark.createDataFrame([("a",), ("b",)], "s string"), ["s"], tmp_path)


def test_nested_types_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedTypeError, match="array<int>"):
        encode(spark, spark.createDataFrame([([1],)], "a array<int>"), ["a"], tmp_path)


def test_a_hash_collision_moves_on_to_the_next_seed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = columns.identity_hash
    monkeypatch.setattr(
        "kanon_spark.signatures.encoding.identity_hash",
        lambda seed, idents: F.lit(7).cast("long") if seed == 3 else real(seed, idents),
    )
    source = spark.createDataFrame([("a",), ("b",), ("b",)], "s string")
    ctx, encoding = encode(spark, source, ["s"], tmp_path, execution={"seed": 3})
    found = aggregate(ctx, source, encoding, unit=None, kept=[], path=str(tmp_path / "signatures"))
    assert found.encoding.seed == 4
    assert {key[0]: row["rows"] for key, row in decoded(found).items()} == {"a": 1, "b": 2}


def test_a_wide_domain_is_marked_without_bitmaps(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kanon_spark.signatures.aggregate.BITMAP_BITS", 64)
    source = spark.range(100).selectExpr("id AS n", "id % 3 AS x")
    ctx, encoding = encode(spark, source, ["n", "x"], tmp_path)
    found = aggregate(ctx, source.where("n % 2 = 0"), encoding, unit=None, kept=[], path=str(tmp_path / "signatures"))
    assert found.present[0].nonzero()[0].tolist() == list(range(0, 100, 2))
    assert found.present[1].all()


def test_values_of_the_data_never_stand_in_a_plan(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = spark.createDataFrame([("Secretville", "53715")], "s string, z string").repartition(1)
    _, encoding = encode(spark, source, {"s": {}, "z": {"hierarchy": {"prefix": {"keep": [3]}}}}, tmp_path)
    encoding.key_words(encoding.rows(source, kept=[])).explain(True)
    plan = capsys.readouterr().out
    assert "BroadcastHashJoin" in plan
    assert "Secretville" not in plan
    assert "53715" not in plan


def test_our_hash_is_sparks(spark: SparkSession) -> None:
    texts = ["", "a", "Spark", "1234567", "12345678", "ß\U0001f600é", "x" * 31, "y" * 32, "z" * 33, "0123456789" * 9]
    table = spark.createDataFrame([(text,) for text in texts], "s string").select("s", F.xxhash64("s").alias("h"))
    assert {row["s"]: row["h"] for row in table.collect()} == {text: xxhash64(text) for text in texts}
