"""The forms that `output` asks for: ranges on a grid, and the bounds or the mean beside a label.

That a label is true is decided elsewhere (`cells.py`). Here a range's ends must lie on a grid, bounds must be what the
label says (never narrower, or they would undo the generalization), and a mean must be that of the rows of its class.
All of it is decided from the labels and the decoded values, with none of the code that made them.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from kanon_spark.verify.facts import Check, Evidence, QiFacts
from kanon_spark.verify.groups import tuple_columns
from kanon_spark.verify.means import is_near
from kanon_spark.verify.published import leaf_texts
from kanon_spark.verify.steps import on_grid
from kanon_spark.verify.truth import Judge, judge_for

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

DRIVER_LABELS = 200_000  # distinct labels that the driver judges itself

Wrong = dict[str, int]


def form_checks(evidence: Evidence, published: "DataFrame") -> list[Check]:
    """The checks `ranges` and `numbers`, each where the configuration asks for what it speaks of."""
    checks = []
    grids = [index for index, qi in enumerate(evidence.qis) if qi.form.grid]
    bounds = [index for index, qi in enumerate(evidence.qis) if "lo" in qi.form.numbers]
    means = [index for index, qi in enumerate(evidence.qis) if "mean" in qi.form.numbers]
    off, narrow = _judged_labels(evidence, published, sorted({*grids, *bounds})) if grids or bounds else ({}, {})
    if grids:
        checks.append(_check("ranges", off, "labels whose ends are not on the grid", "every range ends on the grid"))
    if bounds:
        good = "all bounds are what the label beside them says"
        checks.append(_check("numbers", narrow, "bounds that are not what the label beside them says", good))
    if means:
        wrong = _wrong_means(evidence, published, means)
        checks.append(
            _check("numbers", wrong, "classes with another mean", "every mean is that of the rows of its class")
        )
    return checks


def _check(name: str, wrong: Mapping[str, int], what: str, good: str) -> Check:
    if wrong:
        listed = ", ".join(f"{column} ({count:,})" for column, count in wrong.items())
        return Check(name, False, f"{what}: {listed}")
    return Check(name, True, good)


def _judged_labels(evidence: Evidence, published: "DataFrame", indexes: list[int]) -> tuple[Wrong, Wrong]:
    """Per QI with any: labels off the grid, and distinct (label, bounds) that do not belong together."""
    from pyspark.sql import functions as F

    cells = []
    for index in indexes:
        bounded = "lo" in evidence.qis[index].form.numbers
        low, high = (_tuple_column(evidence, f"{part}_{index}") if bounded else F.lit(None) for part in ("lo", "hi"))
        label = F.col(tuple_columns(len(evidence.qis))[index])
        ends = [low.cast("double").alias("low"), high.cast("double").alias("high")]
        cells.append(F.struct(F.lit(index).alias("qi"), label.alias("label"), *ends))
    table = published.where("class_id >= 0").select(F.inline(F.array(*cells))).distinct()
    judges = {index: _FormJudge(evidence.qis[index]) for index in indexes}
    few = table.limit(DRIVER_LABELS + 1).toArrow()
    if few.num_rows <= DRIVER_LABELS:
        found = list(_judge_batches(few.to_batches(), judges=judges))
    else:
        counted = table.mapInArrow(partial(_judge_batches, judges=judges), "qi int, off long, narrow long")
        found = counted.toArrow().to_batches()  # one row per QI and batch of labels
    off: Wrong = {}
    narrow: Wrong = {}
    for batch in found:
        for row in batch.to_pylist():
            for wrong, count in ((off, row["off"]), (narrow, row["narrow"])):
                if count:
                    name = evidence.qis[row["qi"]].name
                    wrong[name] = wrong.get(name, 0) + count
    return off, narrow


def _tuple_column(evidence: Evidence, number: str) -> "Column":
    """One of the entries' numbers as it is published."""
    from pyspark.sql import functions as F

    place = len(evidence.qis) + list(evidence.numbers).index(number)
    return F.col(tuple_columns(len(evidence.columns))[place])


def _judge_batches(
    batches: "Iterable[pa.RecordBatch]", *, judges: "Mapping[int, _FormJudge]"
) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    for batch in batches:
        off, narrow = dict.fromkeys(judges, 0), dict.fromkeys(judges, 0)
        for cell in batch.to_pylist():
            judge = judges[cell["qi"]]
            off[cell["qi"]] += not judge.on_grid(cell["label"])
            narrow[cell["qi"]] += not judge.bounded(cell["label"], cell["low"], cell["high"])
        columns = [
            pa.array(list(judges), pa.int32()),
            *(pa.array(list(each.values()), pa.int64()) for each in (off, narrow)),
        ]
        yield pa.record_batch(columns, ["qi", "off", "narrow"])


class _FormJudge:
    """Decides for one quasi-identifier."""

    def __init__(self, qi: QiFacts) -> None:
        self._grid = qi.form.grid
        self._bounds = "lo" in qi.form.numbers
        self._kind = qi.kind
        # A label of a file may be read as an interval that is wider than the file's values; one of ours says it all.
        self._wider = qi.csv_path is not None
        self._suppressed = qi.form.suppressed
        self._judge: Judge = judge_for(qi.spec, kind=qi.kind, csv_path=qi.csv_path, suppressed=qi.form.suppressed)

    def on_grid(self, label: str | None) -> bool:
        """True if the ends of a range are on the grid, or the label is no range."""
        return not self._grid or label is None or not label.startswith("[") or on_grid(label, self._kind)

    def bounded(self, label: str | None, low: float | None, high: float | None) -> bool:
        """True if the bounds are those of the label."""
        if not self._bounds:
            return True
        span = None if label is None or label == self._suppressed else self._judge.extent(label)
        if span is None:
            return low is None and high is None
        return self._end(span.low, low, -1) and self._end(span.high, high, 1)

    def _end(self, said: Any, bound: float | None, outward: int) -> bool:
        """One end: the double that spells it, or the next one outward; any further one only for labels of a file."""
        if said is None or bound is None:
            return said is None and bound is None
        spelt = Decimal(repr(bound))
        if spelt < said if outward > 0 else spelt > said:
            return False
        return self._wider or bound in {float(said), math.nextafter(float(said), outward * math.inf)}


def _wrong_means(evidence: Evidence, published: "DataFrame", indexes: list[int]) -> Wrong:
    """Per QI with any: classes whose mean is not that of their rows, in one pass over the entries."""
    from pyspark.sql import functions as F

    frame = published.where("class_id >= 0")
    measures = []
    for index in indexes:
        qi = evidence.qis[index]
        table = leaf_texts(evidence.entries, qi).select(
            F.col("code").alias(f"code{index}"), F.col("text").try_cast("double").alias(f"value{index}")
        )
        code = evidence.layout.unpack_column(index)
        frame = frame.join(F.broadcast(table), code == F.col(f"code{index}"), "left")
        label, mean = F.col(tuple_columns(len(evidence.qis))[index]), _tuple_column(evidence, f"mean_{index}")
        root = evidence.node_layout.unpack_column(index, "out") == F.lit(len(qi.node_labels) - 1)
        silent = label.isNull() | (label == qi.form.suppressed) | (root if qi.publish == "node" else F.lit(False))
        value = F.col(f"value{index}")
        measures += [
            F.max(silent).alias(f"silent{index}"),
            (F.sum(F.col("rows") * value) / F.sum("rows")).alias(f"is{index}"),
            (F.sum(F.col("rows") * F.abs(value)) / F.sum("rows")).alias(f"size{index}"),
            F.min(mean).alias(f"least{index}"),
            F.max(mean).alias(f"largest{index}"),
            F.count_if(mean.isNull()).alias(f"none{index}"),
        ]
    classes = frame.groupBy("class_id").agg(*measures)
    found = classes.agg(*[F.count_if(~_mean_holds(index)).alias(f"wrong{index}") for index in indexes]).collect()[0]
    return {evidence.qis[index].name: found[f"wrong{index}"] for index in indexes if found[f"wrong{index}"]}


def _mean_holds(index: int) -> "Column":
    """True of a class whose mean is right: none where the label says nothing or the sum has no value."""
    from pyspark.sql import functions as F

    least, largest, expected = (F.col(f"{name}{index}") for name in ("least", "largest", "is"))
    without = F.col(f"silent{index}") | expected.isNull() | F.isnan(expected)
    near = [is_near(end, expected, F.col(f"size{index}")) for end in (least, largest)]
    return F.coalesce(
        F.when(without, least.isNull()).otherwise((F.col(f"none{index}") == 0) & near[0] & near[1]), F.lit(False)
    )
