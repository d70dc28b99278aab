"""Earth mover's distances between each class and the release, where values have an order or a hierarchy.

Both take the entries of the classes' histograms: `t1`, `t2`, `value`, `count`, `size` (persons of the class) and `all`
(persons that carry the value in the release); both give `t1`, `t2` and the distance `d0`.
"""

import csv
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kanon_spark.config.models import FileSpec, FlatSpec, PrefixSpec
from kanon_spark.errors import CoverageError, MissingInputError, RequestError
from kanon_spark.verify.facts import SUPPRESSED
from kanon_spark.verify.groups import TUPLE

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

_SPLIT = "\x1f"  # between the labels of a path: no label holds it
_WHOLE = ("tinyint", "smallint", "int", "bigint")


def ordered_distances(entries: "DataFrame") -> "DataFrame":
    """The area between the cumulative distributions of class and release, over the values that occur, null last.

    A class's own stays as high as it is from one of its values to the next, so that each entry answers for a stretch.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    # The domain, not the table: one row per value that occurs.
    domain = entries.groupBy("value").agg(F.first("all").alias("all"))
    places = domain.withColumn("place", F.row_number().over(Window.orderBy(F.col("value").asc_nulls_last())) - 1)
    # Bounded by the number of different sensitive values; no value is among them, only how many carry each.
    counts = places.orderBy("place").select("all").toArrow()["all"].to_numpy()
    heights = np.cumsum(counts) / max(1, counts.sum())
    known = places.select(F.col("value").alias("known"), "place")
    mine = Window.partitionBy(*TUPLE).orderBy("place")
    stretches = entries.join(known, F.col("value").eqNullSafe(F.col("known"))).select(
        *TUPLE,
        (F.sum("count").over(mine) / F.col("size")).alias("height"),
        F.col("place").cast("long").alias("place"),
        F.lead("place", 1, len(counts)).over(mine).cast("long").alias("following"),
        (F.row_number().over(mine) == 1).alias("first"),
    )
    areas = stretches.mapInArrow(partial(_areas, heights=heights), "t1 long, t2 long, area double")
    return areas.groupBy(*TUPLE).agg((F.sum("area") / max(1, len(counts) - 1)).alias("d0"))


def _areas(batches: "Iterable[pa.RecordBatch]", *, heights: NDArray[np.float64]) -> "Iterator[pa.RecordBatch]":
    """The area between the release and each stretch, and before a class's first value all that is below the release."""
    import pyarrow as pa

    before = np.concatenate([[0.0], np.cumsum(heights)])
    for batch in batches:
        height = batch.column("height").to_numpy()
        place, following = batch.column("place").to_numpy(), batch.column("following").to_numpy()
        first = batch.column("first").to_numpy(zero_copy_only=False)
        # Up to `cross` the release lies below the class, from there on above it.
        cross = np.clip(np.searchsorted(heights, height), place, following)
        below = height * (cross - place) - (before[cross] - before[place])
        above = before[following] - before[cross] - height * (following - cross)
        area = below + above + np.where(first, before[place], 0.0)
        yield pa.record_batch([batch.column("t1"), batch.column("t2"), pa.array(area)], ["t1", "t2", "area"])


def hierarchical_distances(
    entries: "DataFrame",
    hierarchy: object,
    *,
    everybody: int,
    where: str,
    base_dir: Path,
) -> "DataFrame":
    """The mean, over the levels below the root, of what nodes have too much.

    Two values lie as far apart as there are levels on which they stand under different nodes, over the height; so the
    work is the same on every level, and on each of them all nodes are equally far apart.
    """
    from pyspark.sql import functions as F

    placed, height = _with_nodes(entries, hierarchy, where=where, base_dir=base_dir)
    levels = F.array(
        *[F.struct(F.lit(level).alias("level"), F.col(f"node{level}").alias("node")) for level in range(height)]
    )
    each = placed.select(*TUPLE, "size", "count", F.inline(levels))
    mine = each.groupBy(*TUPLE, "level", "node").agg(F.sum("count").alias("count"), F.max("size").alias("size"))
    # The domain, not the table: one row per value that occurs.
    firsts = [F.first(f"node{level}").alias(f"node{level}") for level in range(height)]
    domain = placed.groupBy("value").agg(F.first("all").alias("all"), *firsts).select("all", F.inline(levels))
    known = domain.groupBy(F.col("level").alias("on"), F.col("node").alias("known")).agg(F.sum("all").alias("all"))
    same = (F.col("level") == F.col("on")) & F.col("node").eqNullSafe(F.col("known"))
    more = F.greatest(F.lit(0.0), F.col("count") / F.col("size") - F.col("all") / max(1, everybody))
    return mine.join(known, same).groupBy(*TUPLE).agg((F.sum(more) / height).alias("d0"))


def _with_nodes(entries: "DataFrame", hierarchy: object, *, where: str, base_dir: Path) -> "tuple[DataFrame, int]":
    """The entries with the node of their value on each level below the root, and how many levels there are.

    A null stands under the root alone: its nodes are null.
    """
    from pyspark.sql import functions as F

    if isinstance(hierarchy, FileSpec):
        return _nodes_of_file(entries, hierarchy, where=where, base_dir=base_dir)
    text = F.col("value").cast("string")
    if isinstance(hierarchy, PrefixSpec):
        kept = [F.substring(text, 1, keep) for keep in hierarchy.keep]
        nodes = [text, *kept]
    elif isinstance(hierarchy, FlatSpec):
        nodes = [text]
    else:
        raise RequestError(
            "the hierarchical distance needs a hierarchy file, prefixes or a flat hierarchy",
            where=where,
            fix="give the sensitive column one, or ask for the ordered distance of numbers and dates",
        )
    return entries.select("*", *[node.alias(f"node{level}") for level, node in enumerate(nodes)]), len(nodes)


def _nodes_of_file(entries: "DataFrame", spec: FileSpec, *, where: str, base_dir: Path) -> "tuple[DataFrame, int]":
    from pyspark.sql import functions as F

    paths = _read_paths(base_dir / Path(spec.path).expanduser(), spec.separator)
    height = len(paths[0]) - 1
    # A node is the path from it to the root: the same word may stand under two of them.
    lines = [(path[0], *(_SPLIT.join(path[level:]) for level in range(height))) for path in paths]
    names = [f"node{level}" for level in range(height)]
    table = entries.sparkSession.createDataFrame(lines, ", ".join(f"{name} string" for name in ("leaf", *names)))
    kind = entries.schema["value"].dataType.simpleString()
    leaf, value = _comparable(F.col("leaf"), kind), _comparable(F.col("value"), kind)
    if spec.stem is not None:
        value = F.substring(value, 1, spec.stem)
    joined = entries.join(F.broadcast(table), leaf == value, "left")
    strange = F.col("leaf").isNull() & F.col("value").isNotNull()
    if spec.unknown == "error":
        missing = joined.where(strange).select("value").distinct().count()
        if missing:
            raise CoverageError(
                f"the hierarchy file misses {missing:,} values of the sensitive column",
                where=where,
                fix="add them to the file",
            )
    # What a file misses is one value to it; under codes that are longer than the file's every value is its own.
    lost = F.lit("") if spec.stem is None else F.col("value")
    nodes = [F.when(strange, lost).otherwise(F.col(name)) for name in names]
    if spec.stem is not None:
        nodes.insert(0, F.col("value"))
    named = [node.alias(f"node{level}") for level, node in enumerate(nodes)]
    return joined.select(*entries.columns, *named), len(nodes)


def _read_paths(path: Path, separator: str) -> list[list[str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file, delimiter=separator) if any(field.strip() for field in row)]
    except OSError:
        raise MissingInputError(
            "the hierarchy file cannot be read", where=str(path), fix="name a readable file"
        ) from None
    if not rows or len({len(row) for row in rows}) > 1:
        raise RequestError(
            "the lines of the hierarchy file are not all equally long", where=str(path), fix="see hierarchies/README.md"
        )
    return rows if len(rows[0]) > 1 else [[*row, SUPPRESSED] for row in rows]


def _comparable(text: "Column", kind: str) -> "Column":
    """A value, or a file's spelling of it, so that 39 and 39.0 are the same number, TRUE and true the same truth."""
    if kind in _WHOLE or kind.startswith(("float", "double", "decimal")):
        return text.try_cast("double")
    if kind.startswith(("date", "timestamp", "boolean")):
        return text.try_cast(kind)
    return text.cast("string")
