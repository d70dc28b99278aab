"""The parts of encoding that need no Spark session: hash tables, spellings, the choice of a lookup, misfits."""

import datetime

import pytest
from pyspark.sql import types as T

from kanon_spark.config.models import DateSpec, FlatSpec, IntervalSpec
from kanon_spark.errors import HierarchyError, UnsupportedTypeError
from kanon_spark.hierarchy.tree import Tree
from kanon_spark.signatures.codebook import Codebook, QiColumn
from kanon_spark.signatures.columns import kind_of, quoted
from kanon_spark.signatures.fingerprint import fingerprint_text
from kanon_spark.signatures.fit import misfit
from kanon_spark.signatures.lookups import HashLookup, IndexLookup, JoinLookup, lookup_for, spelling
from kanon_spark.signatures.perfect_hash import PerfectHash, xxhash64


@pytest.mark.parametrize("count", [0, 1, 2, 31, 32, 33, 500, 2000])
def test_a_perfect_hash_table_gives_every_key_a_slot_of_its_own(count: int) -> None:
    keys = [xxhash64(f"value {number}") for number in range(count)]
    table = PerfectHash.of(keys)
    assert table is not None
    assert [table.slots[table.slot_of(key)] for key in keys] == list(range(count))
    assert len(table.slots) <= max(4, 8 * count)


def test_keys_that_fold_to_the_same_number_have_no_table() -> None:
    assert PerfectHash.of([1, 1 << 32]) is None


def test_integers_close_together_are_found_by_index() -> None:
    lookup = lookup_for({"17": 0, "19": 1, "018": 2}, T.IntegerType(), "integer", qi="age")
    assert lookup == IndexLookup(17, (0, 2, 1))


def test_days_and_booleans_are_found_by_index() -> None:
    days = lookup_for({"1970-01-03": 1, "1970-01-02": 0}, T.DateType(), "date", qi="day")
    assert days == IndexLookup(1, (0, 1))
    assert lookup_for({"TRUE": 4, "false": 5}, T.BooleanType(), "boolean", qi="flag") == IndexLookup(0, (5, 4))


def test_texts_and_numbers_far_apart_are_found_by_hash() -> None:
    assert isinstance(lookup_for({"a": 0, "b": 1}, T.StringType(), "text", qi="job"), HashLookup)
    assert isinstance(lookup_for({"1": 0, "1000000": 1}, T.LongType(), "integer", qi="n"), HashLookup)


def test_long_files_and_reals_are_joined() -> None:
    many = {f"v{number}": number for number in range(2001)}
    assert isinstance(lookup_for(many, T.StringType(), "text", qi="zip"), JoinLookup)
    assert isinstance(lookup_for({"1.5": 0}, T.DoubleType(), "real", qi="x"), JoinLookup)
    assert isinstance(
        lookup_for({"1": 0, "99999999999999999999": 1}, T.DecimalType(38, 0), "integer", qi="x"), JoinLookup
    )


def test_two_lines_that_mean_one_value_are_refused_without_naming_it() -> None:
    with pytest.raises(HierarchyError, match="same value of type int") as error:
        lookup_for({"4711": 0, "04711": 1}, T.IntegerType(), "integer", qi="zip")
    assert error.value.where == "columns.quasi_identifiers.zip"
    assert "4711" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "data_type", "kind", "expected"),
    [
        (" 7", T.StringType(), "text", " 7"),
        ("7.0", T.IntegerType(), "integer", "7"),
        ("7.5", T.IntegerType(), "integer", None),
        ("1_000", T.IntegerType(), "integer", None),
        ("1e999999999", T.LongType(), "integer", None),
        ("nan", T.DoubleType(), "real", None),
        ("1.555", T.DecimalType(6, 2), "real", None),
        ("1.50", T.DecimalType(6, 1), "real", "1.50"),
        ("yes", T.BooleanType(), "boolean", None),
        ("2024-02-30", T.DateType(), "date", None),
        ("2024-02-29", T.DateType(), "date", datetime.date(2024, 2, 29).isoformat()),
    ],
)
def test_spellings(text: str, data_type: T.DataType, kind: str, expected: str | None) -> None:
    assert spelling(text, data_type, kind) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data_type", "kind"),
    [
        (T.StringType(), "text"),
        (T.VarcharType(5), "text"),
        (T.CharType(5), "text"),
        (T.ByteType(), "integer"),
        (T.LongType(), "integer"),
        (T.DecimalType(20, 0), "integer"),
        (T.DecimalType(20, 2), "real"),
        (T.FloatType(), "real"),
        (T.DateType(), "date"),
        (T.TimestampNTZType(), "timestamp"),
        (T.BooleanType(), "boolean"),
    ],
)
def test_kinds(data_type: T.DataType, kind: str) -> None:
    assert kind_of(data_type, qi="x") == kind


@pytest.mark.parametrize(
    "data_type",
    [
        T.ArrayType(T.StringType()),
        T.MapType(T.StringType(), T.StringType()),
        T.StructType(),
        T.BinaryType(),
        T.DayTimeIntervalType(),
        T.VariantType(),
    ],
)
def test_types_that_cannot_be_generalized(data_type: T.DataType) -> None:
    with pytest.raises(UnsupportedTypeError) as error:
        kind_of(data_type, qi="x y")
    assert error.value.exit_code == 3
    assert data_type.simpleString() in error.value.message
    assert error.value.where.endswith("x y")


def test_hierarchies_that_do_not_suit_their_column() -> None:
    assert misfit(FlatSpec(), "text", qi="x") is None
    assert misfit(IntervalSpec(widths=(5,)), "real", qi="x") is None
    wrong = misfit(IntervalSpec(widths=(5,)), "date", qi="x")
    assert wrong is not None
    assert "date" in wrong.fix
    assert misfit(DateSpec(levels=("month",)), "integer", qi="x") is not None


def test_names_are_quoted() -> None:
    assert quoted("a`b.c") == "`a``b.c`"


def test_the_layout_has_room_for_the_code_of_a_missing_leaf() -> None:
    import numpy as np

    tree = Tree.flat(["a", "b", "c", "d"])
    column = QiColumn("x", "text", 1.0, tree, "node", ("a", "b", "c", "d"), np.full(4, np.nan), static=True)
    codebook = Codebook((column,))
    assert column.miss == 4
    assert codebook.layout.bits == (3,)


def test_a_fingerprint_has_32_digits_whatever_the_signs() -> None:
    assert len(fingerprint_text(-5, 7)) == 32
    assert fingerprint_text(0, 1 << 32) == fingerprint_text(1, 0)
