"""Targets against published classes: for every target, how many stand behind the classes that cover it.

Idea: a class covers a target if each of its labels covers the target's value. A label's answer for all targets is a row
of bits, found once however many classes have the label; a class is the conjunction of one row per quasi-identifier.

Cost: classes x targets x quasi-identifiers bits, a batch at a time; the targets are bounded and travel with the
function, the classes stream through.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kanon_spark.risk.coverage import Coverage, Flags, Reading, unpacked
from kanon_spark.verify.truth import Text

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

# What a worker holds grows with the targets, so both are bounds on targets x something.
_FLAGS = 2_000_000  # of classes at once: two megabytes, and eight times as much where they are weighed
_SUMS = 2_000_000  # for sensitive values that are held before they are handed on: 32 megabytes, of two doubles each

Doubles = NDArray[np.float64]


def label_names(count: int) -> list[str]:
    """Names under which the published labels travel."""
    return [f"label{index}" for index in range(count)]


@dataclass(frozen=True)
class Targets:
    """What the attacker holds.

    Attributes:
        tuples: Per target its values, as texts, in the order of `readings`.
        readings: How the labels of each column are read.
    """

    tuples: Sequence[tuple[Text, ...]]
    readings: Sequence[Reading]

    def matcher(self) -> "Matcher":
        """What answers for batches of classes; made where the batches are."""
        return Matcher(self)


class Matcher:
    """Answers, batch by batch, which classes cover which targets."""

    def __init__(self, targets: Targets) -> None:
        self._columns = [
            Coverage(reading, [each[place] for each in targets.tuples])
            for place, reading in enumerate(targets.readings)
        ]
        self._count = len(targets.tuples)

    @property
    def at_once(self) -> int:
        """How many classes to ask for together."""
        return max(1, _FLAGS // max(1, self._count))

    @property
    def held(self) -> int:
        """For how many sensitive values sums may be held."""
        return max(1, _SUMS // max(1, self._count))

    def matches(self, labels: Sequence[Sequence[Text]]) -> Flags:
        """Classes x targets; `labels` holds one sequence per column."""
        found = np.full((len(labels[0]), -(-self._count // 8)), 255, np.uint8)
        for coverage, column in zip(self._columns, labels, strict=True):
            codes: dict[Text, int] = {}
            label_of = np.array([codes.setdefault(label, len(codes)) for label in column], np.int64)
            found &= coverage.packed(list(codes))[label_of]
        return unpacked(found, self._count)


def match_classes(classes: "DataFrame", targets: Targets) -> "DataFrame":
    """Sum what stands behind the classes that cover each target: `target`, `value`, `weight`, `top`.

    Args:
        classes: `label0`, `label1`, … (the published texts), `value` (a long to sum apart by), `weight` and `top` (0
            where the largest is of no interest).
        targets: The targets; `target` is their number.

    Returns:
        Per target and value with any: the sum of the weights and the largest `top` of the classes that cover it.
    """
    from pyspark.sql import functions as F

    names = label_names(len(targets.readings))

    def summed(batches: "Iterable[pd.DataFrame]") -> "Iterator[pd.DataFrame]":
        yield from _sums(batches, targets, names)

    found = classes.select(*names, "value", "weight", "top").mapInPandas(
        summed, "target int, value bigint, weight double, top double"
    )
    return found.groupBy("target", "value").agg(F.sum("weight").alias("weight"), F.max("top").alias("top"))


def _sums(batches: "Iterable[pd.DataFrame]", targets: Targets, names: Sequence[str]) -> "Iterator[pd.DataFrame]":
    """Sums over all batches of a partition, handed on early only where there are very many sensitive values."""
    matcher = targets.matcher()
    held: dict[int, tuple[Doubles, Doubles]] = {}
    for batch in batches:
        for start in range(0, len(batch), matcher.at_once):
            part = batch.iloc[start : start + matcher.at_once]
            # Arrow's nulls may come as NaN.
            labels = [[None if label != label else label for label in part[name]] for name in names]
            flags = matcher.matches(labels)
            weight, top = part["weight"].to_numpy(np.float64), part["top"].to_numpy(np.float64)
            for value, rows in _places(part["value"].to_numpy(np.int64)):
                if value not in held:
                    if len(held) >= matcher.held:
                        yield _table(held)
                        held = {}
                    held[value] = (np.zeros(flags.shape[1]), np.zeros(flags.shape[1]))
                total, most = held[value]
                mine = flags[rows]
                total += weight[rows] @ mine
                if top[rows].any():
                    np.maximum(most, np.where(mine, top[rows, None], 0.0).max(axis=0), out=most)
    if held:
        yield _table(held)


def _places(values: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Each distinct value, and where it stands."""
    order = np.argsort(values, kind="stable")
    distinct, starts = np.unique(values[order], return_index=True)
    yield from zip(distinct.tolist(), np.split(order, starts[1:]), strict=True)


def _table(held: Mapping[int, tuple[Doubles, Doubles]]) -> "pd.DataFrame":
    import pandas as pd

    parts = []
    for value, (weight, top) in held.items():
        some = np.flatnonzero(weight > 0)
        parts.append(
            pd.DataFrame({"target": some.astype(np.int32), "value": value, "weight": weight[some], "top": top[some]})
        )
    return pd.concat(parts, ignore_index=True)
