"""A table as groups of equal tuples, and a fingerprint of them that does not depend on their order.

Tuples are told apart by two 64-bit hashes with different seeds, not by their texts: grouping ten columns of text costs
several times as much. That two different tuples of a table share both is as good as impossible (one chance in 10^26 for
a million groups), and the contents are compared by hashes too.

Both sides of the multiset check come through here: the rows that were written, grouped by their QI columns, and the
recoding's entries, grouped by the tuple each of them publishes. Two sides are equal if the sums over their groups of a
hash of (tuple, rows, content sums) are equal; no join is needed to see that.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kanon_spark.io.content import content_hash, hash_sums, hashable, null_masks
from kanon_spark.verify.facts import SUPPRESSED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TUPLE = ("t1", "t2")
_COMPARED = ("rows", "g_hi", "g_lo")


def quoted(name: str) -> str:
    """A column name as Spark must read it, whatever characters it holds."""
    return "`" + name.replace("`", "``") + "`"


def tuple_columns(count: int) -> list[str]:
    """Names under which the published tuple travels: the users' own names could clash with ours."""
    return [f"pub{index}" for index in range(count)]


def tuple_hashes(columns: "Sequence[Column]") -> "list[Column]":
    """Two independent hashes of a published tuple: `t1`, `t2`."""
    from pyspark.sql import functions as F

    parts = [*columns, *null_masks(columns)]
    return [F.xxhash64(F.lit(seed), *parts).alias(name) for seed, name in enumerate(TUPLE, start=1)]


def tuple_parts(frame: "DataFrame", names: Sequence[str]) -> "list[Column]":
    """Columns of a published tuple, ready to be hashed: a null inside an array must not go unnoticed."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    types = {field.name: field.dataType for field in frame.schema.fields}
    columns = [(F.col(quoted(name)), types.get(name)) for name in names]
    return [hashable(column, kind) if isinstance(kind, T.ArrayType) else column for column, kind in columns]


def group_rows(
    table: "DataFrame",
    *,
    qi: Sequence[str],
    kept: Sequence[str],
    unit: str | None = None,
    value: "Column | None" = None,
) -> "DataFrame":
    """The table grouped by its QI columns: `t1`, `t2`, `rows`, content sums and, with a unit, `persons`.

    `g_hi` and `g_lo` are sums over the kept columns, `c_hi` and `c_lo` over all. A null unit is a person of its own.
    With a `value`, groups are those of equal tuples and values: `regroup` makes the others of them.
    """
    from pyspark.sql import functions as F

    columns = tuple_hashes(tuple_parts(table, qi))
    columns += [] if value is None else [value.alias("value")]
    columns += [content_hash(table, kept).alias("g"), content_hash(table, table.columns).alias("c")]
    if unit is not None:
        columns.append(F.col(quoted(unit)).alias("unit"))
    g_hi, g_lo = hash_sums(F.col("g"))
    c_hi, c_lo = hash_sums(F.col("c"))
    measures = [
        F.count(F.lit(1)).alias("rows"),
        g_hi.alias("g_hi"),
        g_lo.alias("g_lo"),
        c_hi.alias("c_hi"),
        c_lo.alias("c_lo"),
    ]
    if unit is not None:
        nobody = F.count(F.when(F.col("unit").isNull(), 1))
        measures.append((F.count_distinct("unit") + nobody).alias("persons"))
    return table.select(*columns).groupBy(*TUPLE, *([] if value is None else ["value"])).agg(*measures)


def regroup(finer: "DataFrame") -> "DataFrame":
    """Groups of equal tuples from those of equal tuples and values."""
    from pyspark.sql import functions as F

    sums = [F.sum(name).alias(name) for name in finer.columns if name not in (*TUPLE, "value")]
    return finer.groupBy(*TUPLE).agg(*sums)


def group_entries(published: "DataFrame", *, width: int) -> "DataFrame":
    """Entries that carry their published tuple, grouped by it: `t1`, `t2`, `rows`, `g_hi`, `g_lo`."""
    from pyspark.sql import functions as F

    sums = [F.sum(name).alias(name) for name in _COMPARED]
    hashed = published.select(*tuple_hashes(tuple_parts(published, tuple_columns(width))), *_COMPARED)
    return hashed.groupBy(*TUPLE).agg(*sums)


@dataclass(frozen=True)
class Summary:
    """What the driver learns of a grouped table.

    Attributes:
        sizes: Rows in a group → how many groups have that many (all groups).
        starred: Rows of the group of suppressed rows (`*` in every column), 0 if there is none.
        fingerprint: Order-free hash of (tuple, rows, g sums) over all groups.
        content: Order-free hash of the rows as a whole; empty where the groups carry no c sums.
        persons: Least persons of a group, None where they were not counted.
        short: Groups with fewer than k persons (rows, where persons were not counted).
    """

    sizes: dict[int, int]
    starred: int
    fingerprint: str
    content: str
    persons: int | None
    short: int

    @property
    def rows(self) -> int:
        """Rows in all groups."""
        return sum(size * count for size, count in self.sizes.items())


def summarize(groups: "DataFrame", *, width: int, k: int, suppressed: "Sequence[Column] | None" = None) -> Summary:
    """One pass over a grouped table, brought to the driver as one row per group size.

    Bounded: n rows cannot have more than √(2n) distinct group sizes (and at most one group is starred).

    Args:
        groups: The groups.
        width: Columns of the tuple.
        k: Least persons of a group.
        suppressed: The tuple of a suppressed row; `*` throughout by default.
    """
    from pyspark.sql import functions as F

    star1, star2 = tuple_hashes([F.lit(SUPPRESSED)] * width if suppressed is None else suppressed)
    starred = (F.col("t1") == star1) & (F.col("t2") == star2)
    counted = "persons" in groups.columns
    whole = "c_hi" in groups.columns
    part = groups.withColumn("starred", starred).withColumn("hashed", F.xxhash64(*TUPLE, "rows", "g_hi", "g_lo"))
    hashed_hi, hashed_lo = hash_sums(F.col("hashed"))
    measures = [F.count(F.lit(1)).alias("groups"), hashed_hi.alias("hashed_hi"), hashed_lo.alias("hashed_lo")]
    if whole:
        # A group's own sums are longs; over billions of rows only a decimal holds their total.
        measures += [F.sum(F.col(name).cast("decimal(38,0)")).alias(name) for name in ("c_hi", "c_lo")]
    if counted:
        measures += [F.min("persons").alias("persons"), F.count(F.when(F.col("persons") < k, 1)).alias("short")]
    found = part.groupBy("rows", "starred").agg(*measures).toArrow().to_pylist()

    sizes: dict[int, int] = {}
    for row in found:
        sizes[row["rows"]] = sizes.get(row["rows"], 0) + row["groups"]
    short = sum(row["short"] for row in found) if counted else sum(n for size, n in sizes.items() if size < k)
    return Summary(
        sizes=dict(sorted(sizes.items())),
        starred=sum(row["rows"] * row["groups"] for row in found if row["starred"]),
        fingerprint=_combined(found, "hashed"),
        content=_combined(found, "c") if whole else "",
        persons=min((row["persons"] for row in found), default=0) if counted else None,
        short=short,
    )


def _combined(found: Iterable[Mapping[str, Any]], name: str) -> str:
    """Sums of high and low halves put together again: the sum of the hashes, as 32 hexadecimal digits."""
    total = sum((int(row[f"{name}_hi"]) << 32) + int(row[f"{name}_lo"]) for row in found)
    return f"{total % 2**128:032x}"


def differing_tuples(left: "DataFrame", right: "DataFrame") -> int:
    """How many tuples have other rows or other content on the two sides. Asked only when the fingerprints differ."""
    from pyspark.sql import functions as F

    negated = right.select(*TUPLE, *[(-F.col(name)).alias(name) for name in _COMPARED])
    # Each tuple comes at most once per side, so the two cancel exactly or the tuple differs.
    change = left.select(*TUPLE, *_COMPARED).unionByName(negated).groupBy(*TUPLE)
    sums = change.agg(*[F.sum(name).alias(name) for name in _COMPARED])
    return sums.where(" or ".join(f"{name} <> 0" for name in _COMPARED)).count()
