"""The join back: every row gets what its signature publishes, in one Catalyst plan.

Rows are matched by `h`, one long; node ids become labels by an array lookup where the labels come from a hierarchy
file, and by a small broadcast join where they were made from the data, so that no raw value ever stands in a plan.
Numbers beside a label come from the entries. All other columns pass through with name, type, value and order unchanged.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from kanon_spark.signatures.codebook import Codebook, QiColumn
from kanon_spark.signatures.columns import quoted
from kanon_spark.signatures.encoding import ROW_HASH

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BROADCAST_ENTRIES = 2_000_000  # beyond, both sides are shuffled: a bigger map would not fit a small executor
LITERAL_NODES = 2_000  # a literal array beyond this costs more to plan than a join

_NODE = "_kanon_node_{}"
_LABEL = "_kanon_label_{}"
_NUMBER = "_kanon_{}"


def recode(
    rows: "DataFrame",
    entries: "DataFrame",
    codebook: Codebook,
    *,
    columns: Sequence[str],
    entry_count: int,
    star: bool,
) -> "DataFrame":
    """Rows with their published values.

    Args:
        rows: Source rows with the column `_kanon_h` added.
        entries: The recoding's entries.
        codebook: The QIs.
        columns: The columns to publish, in order; QIs among them are replaced, and numbers beside them are added.
        entry_count: How many entries there are: decides between broadcast and shuffle.
        star: Publish suppressed rows as rows of `*` instead of dropping them.
    """
    from pyspark.sql import functions as F

    if not star:
        entries = entries.where(F.col("class_id") >= 0)
    layout = codebook.node_layout
    picked: list[Column] = [F.col("h").alias(ROW_HASH), *[F.col(name) for name in layout.names("out")]]
    for index, column in enumerate(codebook.columns):
        if column.publish != "node":
            label = F.col(f"label_{index}")
            # Once per entry, not per row: the rows only receive the array.
            own = F.from_json(label, "array<string>") if column.form.members else label
            picked.append(own.alias(_LABEL.format(index)))
    # Arrow writes NaN as null, other ways do not.
    picked += [F.nullif(F.col(name), F.lit(float("nan"))).alias(_NUMBER.format(name)) for name in codebook.numbers]
    table = entries.select(*picked)
    table = F.broadcast(table) if entry_count <= BROADCAST_ENTRIES else table.hint("shuffle_hash")
    joined = rows.join(table, ROW_HASH, "inner")
    published: dict[str, Column] = {added: F.col(_NUMBER.format(name)) for name, added in codebook.numbers.items()}
    for index, column in enumerate(codebook.columns):
        if column.publish != "node":
            published[column.name] = F.col(_LABEL.format(index))
        elif column.static and column.tree.nodes <= LITERAL_NODES:
            labels = F.array(*[F.lit(label).cast("string") for label in column.tree.labels])
            published[column.name] = F.get(labels, layout.unpack_column(index, "out"))
        else:
            joined = joined.withColumn(_NODE.format(index), layout.unpack_column(index, "out"))
            joined = joined.join(F.broadcast(_label_table(rows, column, index)), _NODE.format(index), "left")
            published[column.name] = F.col(_LABEL.format(index))
    return joined.select(
        *[published[name].alias(name) if name in published else F.col(quoted(name)) for name in columns]
    )


def _label_table(rows: "DataFrame", column: QiColumn, index: int) -> "DataFrame":
    frame = pd.DataFrame(
        {
            _NODE.format(index): range(column.tree.nodes),
            _LABEL.format(index): pd.Series(column.tree.labels, dtype=object),
        }
    )
    return rows.sparkSession.createDataFrame(frame, f"{_NODE.format(index)} int, {_LABEL.format(index)} string")


def spread(published: "DataFrame", *, qis: Sequence[str]) -> "DataFrame":
    """Order the rows by what they publish, so that neither file nor position says where a row came from.

    Rows go to a partition by a hash of their published tuple (and a little of their other content, so that one huge
    class does not make one huge task) and are sorted there by content alone.
    """
    from pyspark.sql import functions as F

    from kanon_spark.io.content import content_hash

    by_tuple = content_hash(published, list(qis))
    by_row = content_hash(published, published.columns)
    return published.repartition(by_tuple, F.pmod(by_row, F.lit(16))).sortWithinPartitions(by_tuple, by_row)
