"""From a value to its leaf code in a hierarchy file, as Catalyst expressions over literals.

Three ways, by what the file holds: an array indexed by the number itself (integers and days close together), a perfect
hash table (texts), and a broadcast join (files too long for literals, and types whose text is not unique).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from kanon_spark.errors import HierarchyError
from kanon_spark.hierarchy.tree import Kind
from kanon_spark.signatures.perfect_hash import SHIFT, PerfectHash

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

LITERAL_LEAVES = 2_000  # beyond, planning the literals costs more than a join
LITERAL_SPAN = 10_000  # longest array of codes that is indexed by the number itself
_EPOCH = date(1970, 1, 1).toordinal()
_MOST_DIGITS = 400


@dataclass(frozen=True)
class IndexLookup:
    """Codes of the numbers low, low + 1, …; -1 where the file has none."""

    low: int
    codes: tuple[int, ...]

    def code(self, value: "Column", kind: Kind, *, miss: int) -> "Column":
        """The code, or `miss` (also for null)."""
        from pyspark.sql import functions as F

        number = F.unix_date(value) if kind == "date" else value
        # Clamped to one step beyond either end, so that no value, however large, overflows on the way to its index.
        below, above = F.lit(self.low - 1), F.lit(self.low + len(self.codes))
        index = (F.greatest(F.least(number, above), below) - below).cast("int")
        known = [code if code >= 0 else miss for code in self.codes]
        return F.get(literal_array([miss, *known, miss], "int"), index)


@dataclass(frozen=True)
class HashLookup:
    """Texts and their codes, in the slots of a perfect hash table."""

    table: PerfectHash
    texts: tuple[str, ...]
    codes: tuple[int, ...]

    def hashed(self, value: "Column") -> "Column":
        """First step: the text's hash as an unsigned number."""
        from pyspark.sql import functions as F

        return F.hash(value.cast("string")).cast("long").bitwiseAND(F.lit(0xFFFFFFFF))

    def slot(self, hashed: "Column") -> "Column":
        """Second step: where the text would lie."""
        from pyspark.sql import functions as F

        buckets, size = len(self.table.multipliers), len(self.table.slots)
        if buckets == 1:
            multiplier = F.lit(self.table.multipliers[0]).cast("long")
        else:
            bucket = hashed.bitwiseAND(F.lit(buckets - 1)).cast("int")
            multiplier = F.get(literal_array(self.table.multipliers, "bigint"), bucket)
        return F.shiftright(hashed * multiplier, SHIFT).bitwiseAND(F.lit(size - 1)).cast("int")

    def code(self, value: "Column", slot: "Column") -> "Column":
        """Third step: its code, or null if another text lies there."""
        from pyspark.sql import functions as F

        texts = literal_array([self.texts[at] if at >= 0 else None for at in self.table.slots], "string")
        codes = literal_array([self.codes[at] if at >= 0 else None for at in self.table.slots], "int")
        return F.when(F.get(texts, slot) == value.cast("string"), F.get(codes, slot))


@dataclass(frozen=True)
class JoinLookup:
    """Texts and their codes, joined by the value that each text spells in the column's type."""

    entries: tuple[tuple[str, int], ...]
    type_name: str

    def table(self, spark: "SparkSession", *, value: str, code: str) -> "DataFrame":
        """The small table to join with; its values come from the hierarchy file."""
        from pyspark.sql import functions as F

        texts = spark.createDataFrame(list(self.entries), "text string, code int")
        typed = F.expr(f"try_cast(text AS {self.type_name})")
        return texts.select(typed.alias(value), F.col("code").alias(code)).where(F.col(value).isNotNull())


Lookup = IndexLookup | HashLookup | JoinLookup


def literal_array(values: Sequence[object], element: str) -> "Column":
    """An array as one literal: a JSON text that the optimizer folds, a hundred times cheaper than a literal each."""
    from pyspark.sql import functions as F

    return F.from_json(F.lit(json.dumps(list(values))), f"array<{element}>")


def lookup_for(codes: Mapping[str, int], data_type: "DataType", kind: Kind, *, qi: str) -> Lookup:
    """The cheapest lookup for a file's values on a column of this type.

    Args:
        codes: Leaf code of each value in the file.
        data_type: The column's type.
        kind: What its values are.
        qi: Column name, for messages.

    Raises:
        HierarchyError: Two lines of the file mean the same value of this type (`7` and `07` in a column of integers).
    """
    spelt = _spellings(codes, data_type, kind, qi=qi)
    if kind in {"integer", "date"} and spelt:
        numbers = {_number(text, kind): code for text, code in spelt.items()}
        low, high = min(numbers), max(numbers)
        if high - low < LITERAL_SPAN:
            return IndexLookup(low, tuple(numbers.get(number, -1) for number in range(low, high + 1)))
    if kind in {"text", "integer", "date", "boolean"} and len(spelt) <= LITERAL_LEAVES:
        table = PerfectHash.of(tuple(spelt))
        if table is not None:
            return HashLookup(table, tuple(spelt), tuple(spelt.values()))
    return JoinLookup(tuple(spelt.items()), data_type.simpleString())


def spelling(text: str, data_type: "DataType", kind: Kind) -> str | None:
    """A file's text as Spark would print the value in this type (reals and timestamps: as written); None if it is none.

    >>> from pyspark.sql.types import IntegerType
    >>> spelling("07", IntegerType(), "integer"), spelling("x", IntegerType(), "integer")
    ('7', None)
    """
    from pyspark.sql.types import DecimalType

    match kind:
        case "text":
            return text
        case "boolean":
            lowered = text.strip().lower()
            return lowered if lowered in {"true", "false"} else None
        case "date":
            return _iso_day(text.strip())
        case "integer" | "real":
            number = _decimal(text)
            if number is None:
                return None
            if kind == "integer":
                return str(int(number)) if number == int(number) else None
            if isinstance(data_type, DecimalType) and number != round(number, data_type.scale):
                return None  # the cast would round it to another value
            return text.strip()
        case _:
            return text.strip()


def _spellings(codes: Mapping[str, int], data_type: "DataType", kind: Kind, *, qi: str) -> dict[str, int]:
    spelt: dict[str, int] = {}
    for text, code in codes.items():
        form = spelling(text, data_type, kind)
        if form is None:
            continue  # no value of this type can be meant
        if form in spelt:
            raise HierarchyError(
                f"two lines of the hierarchy file mean the same value of type {data_type.simpleString()}",
                where=f"columns.quasi_identifiers.{qi}",
                fix="remove one of the two lines (such as 7 and 07), or cast the column to string",
            )
        spelt[form] = code
    return spelt


def _number(text: str, kind: Kind) -> int:
    return date.fromisoformat(text).toordinal() - _EPOCH if kind == "date" else int(text)


def _iso_day(text: str) -> str | None:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        return None


def _decimal(text: str) -> Decimal | None:
    if "_" in text:  # Python reads 1_000, Spark does not
        return None
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    # No type of Spark's holds more digits, and writing out 1e999999999 would take all memory.
    return number if number.is_finite() and abs(number.adjusted()) < _MOST_DIGITS else None
