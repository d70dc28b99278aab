"""How large the classes are that a recoding would publish: counted without writing the release.

A published class is what grouping the release by its quasi-identifiers gives, so two classes that publish the same
tuple are one, and so are two nodes that read alike. Tuples are told apart by numbers: labels of hierarchies by their
number among the column's labels, ranges, sets and numbers by a 64-bit hash.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kanon_spark.measure.tally import DRIVER_ENTRIES, Entries
from kanon_spark.signatures.codebook import Codebook

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class PublishedSizes:
    """Size → how many classes have it, smallest first.

    Attributes:
        rows: In rows.
        persons: In persons; the same where no unit is named.
    """

    rows: dict[int, int]
    persons: dict[int, int]


def published_sizes(
    entries: Entries, codebook: Codebook, *, count: int, pairs: "DataFrame | None" = None
) -> PublishedSizes:
    """Count the classes that these entries publish; suppressed ones are none.

    Args:
        entries: The recoding's entries, as a Spark table or collected.
        codebook: The quasi-identifiers.
        count: How many entries there are.
        pairs: With a unit: distinct (`h`, `unit`) of the source with `rows`, how many rows each stands for. A person
            counts once in each class he stands in; rows without a unit are persons of their own.
    """
    own = [f"label_{index}" for index, column in enumerate(codebook.columns) if column.publish != "node"]
    told = [*codebook.node_layout.names("out"), *own, *codebook.numbers]
    names = ["h", "rows", "class_id", *told]
    groups = [f"tuple_{place}" for place in range(len(told))]
    if not isinstance(entries, pd.DataFrame) and count > DRIVER_ENTRIES:
        return _in_spark(entries.select(*names), codebook, groups, pairs)
    frame = entries[names] if isinstance(entries, pd.DataFrame) else entries.select(*names).toPandas()
    frame = frame[frame["class_id"] >= 0]
    keys = pd.DataFrame(tuple_keys(frame, codebook), columns=groups)
    number = keys.groupby(groups, sort=False).ngroup().to_numpy()
    rows = _tallied(np.bincount(number, frame["rows"].to_numpy(np.float64)).astype(np.int64))
    if pairs is None:
        return PublishedSizes(rows, rows)
    class_of = pd.DataFrame({"h": frame["h"].to_numpy(np.int64), "class": number})
    placed = pairs.sparkSession.createDataFrame(class_of, "h long, class long")
    return PublishedSizes(rows, _persons(placed, pairs, ["class"]))


def tuple_keys(frame: pd.DataFrame, codebook: Codebook) -> NDArray[np.int64]:
    """Numbers by which published tuples are told apart, a row for each entry.

    Args:
        frame: Entries with their out words, labels and numbers.
        codebook: The quasi-identifiers.
    """
    layout = codebook.node_layout
    nodes = layout.unpack(frame[layout.names("out")].to_numpy(np.int64))
    hashed = []
    for index, column in enumerate(codebook.columns):
        if column.publish == "node":
            nodes[:, index] = _label_numbers(column.tree.labels)[nodes[:, index]]
        else:
            nodes[:, index] = 0
            hashed.append(pd.util.hash_array(frame[f"label_{index}"].to_numpy(object)).view(np.int64))
    for name in codebook.numbers:
        values = frame[name].to_numpy(np.float64)
        hashed.append(np.where(np.isnan(values), np.nan, values + 0.0).view(np.int64))
    return np.column_stack([layout.pack(nodes), *hashed])


def _label_numbers(labels: tuple[str | None, ...]) -> NDArray[np.int32]:
    """Each label by the number of the first node that reads so."""
    first: dict[str | None, int] = {}
    return np.array([first.setdefault(label, node) for node, label in enumerate(labels)], dtype=np.int32)


def _tallied(sizes: NDArray[np.int64]) -> dict[int, int]:
    found, many = np.unique(sizes, return_counts=True)
    return dict(zip(found.tolist(), many.tolist(), strict=True))


def _in_spark(entries: "DataFrame", codebook: Codebook, groups: list[str], pairs: "DataFrame | None") -> PublishedSizes:
    from pyspark.sql import functions as F

    def with_keys(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            keys = pd.DataFrame(tuple_keys(batch, codebook), columns=groups, index=batch.index)
            yield pd.concat([batch[["h", "rows"]], keys], axis=1)

    fields = ", ".join(f"{name} long" for name in ["h", "rows", *groups])
    placed = entries.where(F.col("class_id") >= 0).mapInPandas(with_keys, fields)
    rows = _sizes(placed.groupBy(*groups).agg(F.sum("rows").alias("size")))
    return PublishedSizes(rows, rows if pairs is None else _persons(placed, pairs, groups))


def _persons(placed: "DataFrame", pairs: "DataFrame", groups: list[str]) -> dict[int, int]:
    from pyspark.sql import functions as F

    joined = pairs.select("h", "unit", F.col("rows").alias("many")).join(placed.select("h", *groups), "h")
    each = joined.groupBy(*groups, "unit").agg(F.sum("many").alias("many"))
    weight = F.when(F.col("unit").isNull(), F.col("many")).otherwise(F.lit(1))
    return _sizes(each.groupBy(*groups).agg(F.sum(weight).alias("size")))


def _sizes(classes: "DataFrame") -> dict[int, int]:
    """Bounded: n rows have at most √(2n) different class sizes."""
    found = classes.groupBy("size").count().collect()
    return dict(sorted((int(row["size"]), int(row["count"])) for row in found))
