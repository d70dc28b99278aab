"""From a value to its leaf code in a hierarchy file, as Catalyst expressions over literals.

A value travels as its token: itself where it has a fixed width, a 64-bit hash where it is text (the verifier proves
later that every code stands for the very values that were in the row). Three ways lead from token to code, by what the
file holds: an array indexed by the number itself (integers and days close together), a perfect hash table (texts,
numbers far apart), and a broadcast join (files too long for literals, and types whose values Python cannot hash as
Spark does).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from kanon_spark.errors import HierarchyError
from kanon_spark.hierarchy.tree import Kind
from kanon_spark.signatures.perfect_hash import SHIFT, PerfectHash, xxhash64

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

LITERAL_LEAVES = 2_000  # beyond, planning the literals costs more than a join
LITERAL_SPAN = 10_000  # longest array of codes that is indexed by the number itself
_EPOCH = date(1970, 1, 1).toordinal()
_MOST_DIGITS = 400


def token(value: "Column", kind: Kind) -> "Column":
    """What a value of this kind is recognised by: a fixed-width value, which Spark aggregates without sorting."""
    from pyspark.sql import functions as F

    return F.when(value.isNotNull(), F.xxhash64(value)) if kind == "text" else value


@dataclass(frozen=True)
class IndexLookup:
    """Codes of the numbers low, low + 1, …; -1 where the file has none."""

    low: int
    codes: tuple[int, ...]

    def code(self, token: "Column", kind: Kind, *, miss: int) -> "Column":
        """The code, or `miss` (also for null)."""
        from pyspark.sql import functions as F

        number = _as_number(token, kind)
        # Clamped to one step beyond either end, so that no value, however large, overflows on the way to its index.
        below, above = F.lit(self.low - 1), F.lit(self.low + len(self.codes))
        index = (F.greatest(F.least(number, above), below) - below).cast("int")
        known = [code if code >= 0 else miss for code in self.codes]
        return F.get(literal_array([miss, *known, miss], "int"), index)


@dataclass(frozen=True)
class HashLookup:
    """Keys and their codes, in the slots of a perfect hash table."""

    table: PerfectHash
    keys: tuple[int, ...]
    codes: tuple[int, ...]

    def folded(self, token: "Column", kind: Kind) -> "Column":
        """First step: the token as a number of 32 bits."""
        from pyspark.sql import functions as F

        number = _as_number(token, kind).cast("long")
        return number.bitwiseXOR(F.shiftrightunsigned(number, 32)).bitwiseAND(F.lit(0xFFFFFFFF))

    def slot(self, folded: "Column") -> "Column":
        """Second step: where the value would lie."""
        from pyspark.sql import functions as F

        buckets, size = len(self.table.multipliers), len(self.table.slots)
        if buckets == 1:
            multiplier = F.lit(self.table.multipliers[0]).cast("long")
        else:
            bucket = folded.bitwiseAND(F.lit(buckets - 1)).cast("int")
            multiplier = F.get(literal_array(self.table.multipliers, "bigint"), bucket)
        return F.shiftright(folded * multiplier, SHIFT).bitwiseAND(F.lit(size - 1)).cast("int")

    def code(self, token: "Column", slot: "Column", kind: Kind) -> "Column":
        """Third step: its code, or null if another value lies there."""
        from pyspark.sql import functions as F

        keys = literal_array([self.keys[at] if at >= 0 else None for at in self.table.slots], "bigint")
        codes = literal_array([self.codes[at] if at >= 0 else None for at in self.table.slots], "int")
        return F.when(F.get(keys, slot) == _as_number(token, kind).cast("long"), F.get(codes, slot))


@dataclass(frozen=True)
class JoinLookup:
    """Values as the file spells them and their codes, for a join by token."""

    entries: tuple[tuple[str, int], ...]
    kind: Kind
    type_name: str

    def table(self, spark: "SparkSession", *, key: str, code: str) -> "DataFrame":
        """The small table to join with; its values come from the hierarchy file."""
        from pyspark.sql import functions as F

        texts = spark.createDataFrame(list(self.entries), "text string, code int")
        value = F.col("text") if self.kind == "text" else F.expr(f"try_cast(text AS {self.type_name})")
        keyed = texts.select(token(value, self.kind).alias(key), F.col("code").alias(code))
        # Two numbers that are one value of a narrower type, or one hash, must not double the rows they meet.
        return keyed.where(F.col(key).isNotNull()).groupBy(key).agg(F.min(code).alias(code))


Lookup = IndexLookup | HashLookup | JoinLookup


def _as_number(token: "Column", kind: Kind) -> "Column":
    from pyspark.sql import functions as F

    match kind:
        case "date":
            return F.unix_date(token)
        case "boolean":
            return token.cast("int")
        case _:
            return token


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
    from pyspark.sql.types import DecimalType

    spelt = _spellings(codes, data_type, kind, qi=qi)
    keys = {_key(text, kind): code for text, code in spelt.items()} if kind not in {"real", "timestamp"} else {}
    if keys and kind != "text":
        low, high = min(keys), max(keys)
        if high - low < LITERAL_SPAN:
            return IndexLookup(low, tuple(keys.get(number, -1) for number in range(low, high + 1)))
    fits = all(-(1 << 63) <= key < 1 << 63 for key in keys) and not isinstance(data_type, DecimalType)
    if keys and fits and len(keys) == len(spelt) <= LITERAL_LEAVES:
        table = PerfectHash.of(tuple(keys))
        if table is not None:
            return HashLookup(table, tuple(keys), tuple(keys.values()))
    return JoinLookup(tuple(spelt.items()), kind, data_type.simpleString())


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


def same_text(text: str, kind: Kind) -> str:
    """One spelling for all texts that mean the same value; what means none stays as it is.

    >>> [same_text(text, "real") for text in ("1", "1.0", "1E2", "-0.00", "0.50")]
    ['1', '1', '100', '0', '0.5']
    >>> same_text("TRUE", "boolean"), same_text("07", "text")
    ('true', '07')
    """
    if kind in ("integer", "real"):
        number = _decimal(text)
        if number is None:
            return text
        digits = f"{number:f}"  # all of them: sums would be rounded
        digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
        return "0" if digits == "-0" else digits
    if kind == "boolean":
        return text.strip().lower()
    if kind == "date":
        return _iso_day(text.strip()) or text
    if kind == "timestamp":
        try:
            moment = datetime.fromisoformat(text.strip())
        except ValueError:
            return text
        return (moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)).isoformat()
    return text


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


def _key(text: str, kind: Kind) -> int:
    """The token of a spelt value as a number."""
    match kind:
        case "text":
            return xxhash64(text)
        case "date":
            return date.fromisoformat(text).toordinal() - _EPOCH
        case "boolean":
            return int(text == "true")
        case _:
            return int(text)


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
