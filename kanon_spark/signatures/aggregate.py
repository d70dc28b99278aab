"""Rows to signatures: one pass over the source, one small table out.

Rows are grouped by one long, the hash `h` of their QI values. What is needed to tell the values apart travels along as
fixed-width tokens (see lookups.py), so that Spark hashes, compares and shuffles a few longs per row instead of texts,
and only signatures, not rows, are encoded. Two tuples that share a hash are found by a second one; then the next seed
is tried. That no two signatures share their key words is proved by the verifier, which decodes them and hashes the
values again.

Where a privacy model asks for the sensitive values of classes, rows are grouped by these as well in the same pass, and
what each signature holds of them is put together from those groups (`histograms.py` says in which form).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kanon_spark.engine.session import merging_sorted
from kanon_spark.engine.stages import RunContext
from kanon_spark.errors import CoverageError, EmptyTableError, InternalError, SourceChangedError
from kanon_spark.io.content import hash_sums
from kanon_spark.signatures.codebook import Codebook
from kanon_spark.signatures.coverage import Missing, find_missing
from kanon_spark.signatures.encoding import SEEDS, Encoding
from kanon_spark.signatures.fingerprint import fingerprint_sums, fingerprint_text
from kanon_spark.signatures.histograms import CODE_BITS, HISTOGRAM
from kanon_spark.signatures.persons import persons_by_hash

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession

Mask = NDArray[np.bool_]

BITMAP_BITS = 32_768  # size of Spark's bitmap aggregate
SENSITIVE_PREFIX = "s_"
_TRIES = 4  # two signatures of a billion share a 64-bit hash with a chance of 3%; four seeds in a row: never


@dataclass(frozen=True)
class Signatures:
    """The aggregated table.

    Attributes:
        table: key words, `h`, `rows`, `persons`, `g_hi`, `g_lo`, and `sensitive` where histograms were wanted; one row
            per signature.
        count: Signatures.
        rows: Rows of the source.
        persons: Persons of the source (rows, where no unit is named).
        present: Per QI, which leaf codes occur.
        source_hash: Fingerprint of the source: QI values and kept columns, whatever their order.
        encoding: The encoding as it was used: its seed may have moved on, and losses of numeric hierarchy files are
            taken over the data's range.
    """

    table: "DataFrame"
    count: int
    rows: int
    persons: int
    present: list[Mask]
    source_hash: str
    encoding: Encoding

    @property
    def codebook(self) -> Codebook:
        """The final codebook."""
        return self.encoding.codebook


def aggregate(
    ctx: RunContext,
    source: "DataFrame",
    encoding: Encoding,
    *,
    unit: str | None,
    kept: Sequence[str],
    path: str,
    sensitive: Encoding | None = None,
) -> Signatures:
    """Group the source by its encoded QIs (stage `signatures`) and write the result to `path` as parquet.

    Args:
        ctx: The run.
        source: The table.
        encoding: How its QIs are encoded.
        unit: Column of the protected person.
        kept: Columns that are published as they are.
        path: Where the signatures are written.
        sensitive: How the columns are encoded whose values classes are judged by; None if there are none.

    Raises:
        EmptyTableError: The source has no rows.
        CoverageError: A hierarchy file misses values; the message names every such column.
        SourceChangedError: A value turned up that was not there when the values were listed.
    """
    with ctx.stage("signatures"):
        for _ in range(_TRIES):
            table = _write(ctx.spark, source, encoding, unit=unit, kept=kept, path=path, sensitive=sensitive)
            totals, present = _totals(table, encoding.codebook)
            count = int(totals["count"])
            if count == 0:
                raise EmptyTableError(
                    "the table has no rows",
                    where="source",
                    fix="check the path, `source.where` and `schedule.partition`",
                )
            _refuse_missing(source, encoding, present)
            if not int(totals["collided"]):
                break
            ctx.note("two signatures share a hash; trying the next seed")
            encoding = replace(encoding, seed=(encoding.seed + 1) % SEEDS)
        else:
            raise InternalError(f"the signatures' hashes collided under {_TRIES} seeds in a row")
        masks = [mask[: column.tree.leaves] for mask, column in zip(present, encoding.codebook.columns, strict=True)]
        ctx.note(f"{int(totals['rows'])} rows, {count} signatures")
        return Signatures(
            table=table.drop("collided"),
            count=count,
            rows=int(totals["rows"]),
            persons=int(totals["persons"]),
            present=masks,
            source_hash=fingerprint_text(int(totals["hash_hi"]), int(totals["hash_lo"])),
            encoding=encoding.with_spans(masks),
        )


def _write(
    spark: "SparkSession",
    source: "DataFrame",
    encoding: Encoding,
    *,
    unit: str | None,
    kept: Sequence[str],
    path: str,
    sensitive: Encoding | None,
) -> "DataFrame":
    from pyspark.sql import functions as F

    also = sensitive.row_tokens(source, prefix=SENSITIVE_PREFIX) if sensitive is not None else {}
    rows = encoding.rows(source, kept=kept, unit=unit, also=also)
    g_hi, g_lo = hash_sums(F.col("g"))
    measures = [
        F.count(F.lit(1)).alias("rows"),
        g_hi.alias("g_hi"),
        g_lo.alias("g_lo"),
        F.min("check").alias("least"),
        F.max("check").alias("most"),
        *[F.max(name).alias(name) for name in encoding.token_names],
        *([F.count(F.when(F.col("unit").isNull(), 1)).alias("nobody")] if unit is not None else []),
    ]
    if sensitive is None:
        grouped = encoding.key_words(rows.groupBy("h").agg(*measures))
    else:
        grouped = _with_histograms(rows, measures, encoding, sensitive, list(also), unit=unit)
    persons: Column = F.col("rows")
    if unit is not None:
        known = persons_by_hash(encoding.identities(source, unit=unit))
        grouped = grouped.join(known, F.col("h") == F.col("person_h"), "left")
        persons = F.col("nobody") + F.coalesce(F.col("chosen"), F.lit(0))
    grouped = grouped.withColumns({"persons": persons, "collided": F.col("least") != F.col("most")})
    carried = [HISTOGRAM] if sensitive is not None else []
    names = [*encoding.codebook.layout.names(), "h", "rows", "persons", "g_hi", "g_lo", *carried, "collided"]
    result = grouped.select(*names)
    with merging_sorted(spark):
        result.write.mode("overwrite").parquet(path)
    return spark.read.schema(result.schema).parquet(path)


def _with_histograms(
    rows: "DataFrame",
    measures: "list[Column]",
    encoding: Encoding,
    sensitive: Encoding,
    values: list[str],
    *,
    unit: str | None,
) -> "DataFrame":
    """Rows grouped by `h`, with key words and the histogram of their sensitive values: persons, rows without a unit.

    A person who stands in several rows counts once for each combination of values.
    """
    from pyspark.sql import functions as F

    def again(carried: Sequence[str]) -> "list[Column]":
        return [
            *[F.sum(name).alias(name) for name in ["rows", "g_hi", "g_lo", *(["nobody"] if unit is not None else [])]],
            F.min("least").alias("least"),
            F.max("most").alias("most"),
            *[F.max(name).alias(name) for name in carried],
        ]

    if unit is None:
        held = rows.groupBy("h", *values).agg(*measures)
    else:
        known = (F.count("unit") + F.sum("nobody")).alias("number")
        each = rows.groupBy("h", *values, "unit").agg(*measures)
        held = each.groupBy("h", *values).agg(*again(encoding.token_names), known)
    # Packed before they are put together: what travels then is a few words wide, not a long for each QI.
    held = encoding.key_words(held).drop(*encoding.token_names)
    held = sensitive.with_codes(held, prefix=SENSITIVE_PREFIX)
    number = F.col("rows" if unit is None else "number")
    pairs = []
    for index in range(len(values)):
        pairs += [F.lit(index << CODE_BITS) + F.col(f"{SENSITIVE_PREFIX}c{index}").cast("long"), number]
    # Sorted: the same table must give the same signatures, whatever the order in which groups arrive.
    histogram = F.flatten(F.array_sort(F.collect_list(F.array(*pairs)))).alias(HISTOGRAM)
    # Lists are collected by sorting, on both sides of a shuffle: once is enough, and before it nothing gets fewer.
    held = held.repartition("h").sortWithinPartitions("h")
    return held.groupBy("h").agg(*again(encoding.codebook.layout.names()), histogram)


def _totals(table: "DataFrame", codebook: Codebook) -> "tuple[Row, list[Mask]]":
    """Sums over all signatures, and which codes occur in each QI (the code of a missing leaf included), in one job."""
    from pyspark.sql import functions as F

    layout = codebook.layout
    sizes = [1 << bits for bits in layout.bits]
    measures = [
        F.count(F.lit(1)).alias("count"),
        F.coalesce(F.sum("rows"), F.lit(0)).alias("rows"),
        F.coalesce(F.sum("persons"), F.lit(0)).alias("persons"),
        F.count(F.when(F.col("collided"), 1)).alias("collided"),
        *fingerprint_sums(),
    ]
    small = [index for index, size in enumerate(sizes) if size <= BITMAP_BITS]
    measures += [
        F.bitmap_construct_agg(layout.unpack_column(index).cast("long")).alias(f"bits{index}") for index in small
    ]
    totals = table.agg(*measures).collect()[0]  # one row
    masks = []
    for index, size in enumerate(sizes):
        mask = np.zeros(size, dtype=np.bool_)
        if index in small:
            bits = np.unpackbits(np.frombuffer(totals[f"bits{index}"], dtype=np.uint8), bitorder="little")
            mask[:] = bits[:size].astype(np.bool_)
        else:  # at most DOMAIN_LIMIT codes
            codes = table.select(layout.unpack_column(index).alias("code")).distinct().toArrow()["code"]
            mask[codes.to_numpy()] = True
        masks.append(mask)
    return totals, masks


def _refuse_missing(source: "DataFrame", encoding: Encoding, present: Sequence[Mask]) -> None:
    missed = [
        index
        for index, (column, mask) in enumerate(zip(encoding.codebook.columns, present, strict=True))
        if column.miss == column.tree.leaves and mask[column.miss]
    ]
    static = [index for index in missed if encoding.codebook.columns[index].static]
    if static:
        raise coverage_error(find_missing(source, encoding, static))
    if missed:
        raise SourceChangedError(
            "a value turned up that was not there when the values were listed",
            where="source",
            fix="run again when the source is at rest, or set source.snapshot: copy",
        )


def coverage_error(missing: Sequence[Missing]) -> CoverageError:
    """One error for all columns whose hierarchies miss values."""
    listed = "; ".join(f"{each.name}: {each}" for each in missing)
    return CoverageError(
        f"hierarchy files miss values of the table: {listed}",
        where="columns.quasi_identifiers",
        fix="add the values to the files, or set {csv: {path: …, unknown: root}} (reference taxonomies: "
        "{reference: {name: …, unknown: root}}) to publish them as * (`kanon check --show-values` lists them)",
    )
