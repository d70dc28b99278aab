"""What each entry of the recoding publishes, as labels, in Catalyst."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kanon_spark.errors import InternalError
from kanon_spark.io.content import hashable
from kanon_spark.verify.facts import Evidence, QiFacts
from kanon_spark.verify.groups import tuple_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_LITERALS = 2_000  # beyond this a literal array makes a plan slower than the join it saves


def with_published(evidence: Evidence) -> "DataFrame":
    """The entries with the tuple they publish, `pub<i>`: the QIs, `*` for suppressed entries, then the numbers."""
    from pyspark.sql import functions as F

    frame = evidence.entries
    names = tuple_columns(len(evidence.columns))
    suppressed = F.col("class_id") < 0
    for index, (qi, name) in enumerate(zip(evidence.qis, names, strict=False)):
        if qi.form.members:
            label: Column = F.from_json(F.col(f"label_{index}"), "array<string>")
        elif qi.publish != "node":
            label = F.col(f"label_{index}")
        elif qi.static and fits_a_plan(qi.node_labels):
            label = F.get(literal_texts(qi.node_labels), evidence.node_layout.unpack_column(index, "out"))
        else:
            # Labels that come from the data never stand in a plan: they are joined.
            table = label_table(frame, qi.node_labels, code=f"node{index}", text=f"text{index}")
            node = evidence.node_layout.unpack_column(index, "out")
            frame = frame.join(F.broadcast(table), node == F.col(f"node{index}"), "left")
            label = F.col(f"text{index}")
        frame = frame.withColumn(name, F.when(suppressed, _star(qi)).otherwise(label))
    for number, name in zip(evidence.numbers, names[len(evidence.qis) :], strict=True):
        # NaN is what the recoding says for "none"; it may have been written as null.
        frame = frame.withColumn(name, F.when(~suppressed, F.nullif(F.col(number), F.lit(float("nan")))))
    return frame


def suppressed_tuple(evidence: Evidence) -> "list[Column]":
    """What a suppressed row publishes, in the form in which tuples are hashed: `*` throughout, and no numbers."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    texts = T.ArrayType(T.StringType())
    stars = [hashable(_star(qi), texts) if qi.form.members else _star(qi) for qi in evidence.qis]
    return [*stars, *[F.lit(None).cast("double") for _ in evidence.numbers]]


def _star(qi: QiFacts) -> "Column":
    from pyspark.sql import functions as F

    mark = F.lit(qi.form.suppressed)
    return F.array(mark) if qi.form.members else mark


def label_table(frame: "DataFrame", labels: tuple[str | None, ...], *, code: str, text: str) -> "DataFrame":
    """Labels as a table (code, text), in the session that `frame` belongs to."""
    import pyarrow as pa

    codes = pa.array(range(len(labels)), pa.int32())
    return frame.sparkSession.createDataFrame(pa.table({code: codes, text: pa.array(labels, pa.string())}))


def ident_table(entries: "DataFrame", qi: QiFacts) -> "DataFrame":
    """(code, ident): what each leaf stands for, in the type in which it is hashed."""
    from pyspark.sql import functions as F

    if qi.dictionary is not None:
        return qi.dictionary
    if qi.values is None:
        raise InternalError("the values behind the leaf codes were not given to the verifier", where=qi.name)
    texts = label_table(entries, qi.values, code="code", text="text")
    return texts.select("code", F.expr(f"try_cast(text AS {qi.value_type})").alias("ident"))


def leaf_texts(entries: "DataFrame", qi: QiFacts) -> "DataFrame":
    """(code, text): what each leaf stands for: the value as it was hashed, or the label it was generalized to."""
    from pyspark.sql import functions as F

    if qi.derived:
        return label_table(entries, qi.leaf_labels, code="code", text="text")
    return ident_table(entries, qi).select("code", F.col("ident").cast("string").alias("text"))


def fits_a_plan(texts: Sequence[str | None]) -> bool:
    """Whether these may stand as one literal."""
    return len(texts) <= _LITERALS


def literal_texts(texts: Sequence[str | None]) -> "Column":
    """An array of texts from a hierarchy file, as one literal.

    A JSON text that the optimizer folds is far cheaper to plan than a literal for each label.
    """
    from pyspark.sql import functions as F

    return F.from_json(F.lit(json.dumps(list(texts))), "array<string>")
