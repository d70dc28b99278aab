"""Single-dimension suppression on Spark: what is suppressed in some class is suppressed in all."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kanon_spark.engine.pieces import Solver
from kanon_spark.engine.stages import RunContext
from kanon_spark.kernels.kactus_cells import lost_values
from kanon_spark.recoding.publish import star_of
from kanon_spark.signatures.codebook import Codebook, QiColumn

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def ends_of(code: "Column") -> "list[tuple[str, Column]]":
    """The least and the largest of some codes."""
    from pyspark.sql import functions as F

    return [("least", F.min(code)), ("most", F.max(code))]


def silences(book: Codebook) -> "list[Column]":
    """Per QI, whether an entry suppresses it. Wide ranges have the root of their search tree as node, but a label."""
    from pyspark.sql import functions as F

    found = []
    for j, column in enumerate(book.columns):
        root = book.node_layout.unpack_column(j, "out") == F.lit(column.tree.root)
        found.append(root if column.publish == "node" else root & F.col(f"label_{j}").eqNullSafe(star_of(column)))
    return found


def single_dimension(ctx: RunContext, solver: Solver, entries: "DataFrame", path: str) -> "DataFrame":
    """Entries in which every value that is suppressed in some class is suppressed in all."""
    entries.write.mode("overwrite").parquet(path)
    entries = ctx.spark.read.schema(entries.schema).parquet(path)
    lost = _lost(solver, entries)

    def silence(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            yield _silenced(solver, batch, lost)

    return entries.mapInPandas(silence, entries.schema)


def _lost(solver: Solver, entries: "DataFrame") -> list[NDArray[np.bool_]]:
    """Per QI and compact code, whether the value is suppressed everywhere."""
    from pyspark.sql import functions as F

    book = solver.codebook
    width = len(book.columns)
    coded = [book.layout.unpack_column(j).alias(f"code{j}") for j in range(width)]
    silent = [each.alias(f"silent{j}") for j, each in enumerate(silences(book))]
    released = entries.where("class_id >= 0").select("class_id", *coded, *silent)
    hidden = [
        F.struct(F.lit(j).alias("qi"), F.when(F.col(f"silent{j}"), F.col(f"code{j}")).alias("code"))
        for j in range(width)
    ]
    # Both tables are bounded by the values of all QIs, which the driver holds in the codebook.
    suppressed = released.select(F.inline(F.array(*hidden))).where("code IS NOT NULL").distinct()
    ends = [each.alias(f"{name}{j}") for j in range(width) for name, each in ends_of(F.col(f"code{j}"))]
    shown = [F.first(~F.col(f"silent{j}")).alias(f"shown{j}") for j in range(width)]
    spans = [
        F.struct(
            F.lit(j).alias("qi"),
            F.when(F.col(f"shown{j}"), F.col(f"least{j}")).alias("low"),
            F.col(f"most{j}").alias("high"),
        )
        for j in range(width)
    ]
    boxes = released.groupBy("class_id").agg(*ends, *shown).select(F.inline(F.array(*spans)))
    reached = boxes.where("low IS NOT NULL").groupBy("qi", "low").agg(F.max("high").alias("high"))
    gone, tops = suppressed.toPandas(), reached.toPandas()
    lost = []
    for j, compact in enumerate(solver.forest.compact):
        marked = np.zeros(int(solver.forest.leaves[j]), np.bool_)
        marked[compact[gone.loc[gone["qi"] == j, "code"]]] = True
        top = np.full(len(marked), -1, np.int32)
        mine = tops[tops["qi"] == j]
        top[compact[mine["low"]]] = compact[mine["high"]]
        lost.append(lost_values(marked, top))
    return lost


def _silenced(solver: Solver, batch: pd.DataFrame, lost: list[NDArray[np.bool_]]) -> pd.DataFrame:
    """A batch of entries without the values that are lost."""
    book = solver.codebook
    codes, released = solver.codes(batch), batch["class_id"].to_numpy() >= 0
    outs = book.node_layout.names("out")
    nodes = book.node_layout.unpack(batch[outs].to_numpy(np.int64))
    for j, column in enumerate(book.columns):
        gone = released & lost[j][codes[:, j]]
        nodes[gone, j] = column.tree.root
        for name, value in _suppressed(j, column).items():
            batch.loc[gone, name] = value
    batch[outs] = book.node_layout.pack(nodes)
    return batch


def _suppressed(j: int, column: QiColumn) -> dict[str, Any]:
    """What the columns of a QI hold in an entry that suppresses it."""
    own: dict[str, Any] = {} if column.publish == "node" else {f"label_{j}": star_of(column), f"loss_{j}": 1.0}
    return own | {f"{part}_{j}": np.nan for part in column.form.numbers}
