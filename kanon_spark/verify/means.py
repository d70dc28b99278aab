"""Means that stand in place of values (`numeric: mean` of the method kactus), each recomputed from the rows behind it.

A mean is a statistic of a class, not a value of its rows. So no single row can say whether it is right: the class as a
whole is asked, by the decoded values of its entries. A class of one value publishes that value, as it is.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kanon_spark.verify.facts import Evidence
from kanon_spark.verify.published import leaf_texts
from kanon_spark.verify.truth import Judge

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Means are sums of doubles in another order than the recoding's; beyond this share of the values they are others.
_ROUNDING = 1e-9


class MeanJudge(Judge):
    """Of a single row any number may be the mean; `look_at_means` tells whether it is the one of the row's class."""

    def _covers(self, raw: str, label: str) -> bool:
        del raw
        try:
            return float(label) == float(label)  # not NaN
        except ValueError:
            return False

    def _contains(self, inner: str, label: str) -> bool:
        return self._covers(inner, label)


@dataclass(frozen=True)
class Means:
    """What was found of the means.

    Attributes:
        wrong: Per QI with any: classes that publish another number than the mean of their rows, or their one value.
        cells: Distinct published cells that are means.
    """

    wrong: dict[str, int] = field(default_factory=dict)
    cells: int = 0


def is_near(mean: "Column", expected: "Column", size: "Column") -> "Column":
    """Whether a mean is the expected one, up to rounding; `size` is the mean of the values without their signs."""
    from pyspark.sql import functions as F

    # Two infinities are equal, and their difference is no number.
    return (mean == expected) | (F.abs(mean - expected) <= size * F.lit(_ROUNDING))


def look_at_means(evidence: Evidence, published: "DataFrame") -> Means:
    """Recompute the mean of every class in every QI that publishes means, in one pass over the entries."""
    from pyspark.sql import functions as F

    indexes = [index for index, qi in enumerate(evidence.qis) if qi.form.mean]
    if not indexes:
        return Means()
    frame = published.where("class_id >= 0")
    measures = []
    for index in indexes:
        table = leaf_texts(evidence.entries, evidence.qis[index]).select(
            F.col("code").alias(f"code{index}"), F.col("text").alias(f"text{index}")
        )
        code = evidence.layout.unpack_column(index)
        frame = frame.join(F.broadcast(table), code == F.col(f"code{index}"), "left")
        text = F.col(f"text{index}")
        value = text.try_cast("double")
        measures += [
            F.min(f"label_{index}").alias(f"label{index}"),
            (F.count_distinct(f"label_{index}") + F.max(F.col(f"label_{index}").isNull().cast("int"))).alias(
                f"labels{index}"
            ),
            F.min(text).alias(f"text{index}"),
            F.count_distinct(text).alias(f"texts{index}"),
            (F.sum(F.col("rows") * value) / F.sum("rows")).alias(f"mean{index}"),
            (F.sum(F.col("rows") * F.abs(value)) / F.sum("rows")).alias(f"size{index}"),
        ]
    classes = frame.groupBy("class_id").agg(*measures)
    sums = []
    for index in indexes:
        label = F.col(f"label{index}")
        silent = label.isNull() | (label == F.lit(evidence.qis[index].form.suppressed))
        alone = F.col(f"texts{index}") == 1
        near = is_near(label.try_cast("double"), F.col(f"mean{index}"), F.col(f"size{index}"))
        holds = F.when(silent, F.lit(True)).when(alone, label == F.col(f"text{index}")).otherwise(near)
        one = F.col(f"labels{index}") == 1
        sums += [
            F.count_if(~(one & F.coalesce(holds, F.lit(False)))).alias(f"wrong{index}"),
            F.count_distinct(F.when(~silent & ~alone, label)).alias(f"means{index}"),
        ]
    found = classes.agg(*sums).collect()[0]
    wrong = {evidence.qis[index].name: found[f"wrong{index}"] for index in indexes if found[f"wrong{index}"]}
    return Means(wrong, sum(found[f"means{index}"] for index in indexes))
