"""Many classes at once, for people: which satisfy each demand, what each achieves, and what holds for all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kanon_spark.privacy.base import DELTA, EPSILON, RECURSIVE, Bools, Floats, Model, at_least
from kanon_spark.privacy.columns import Column
from kanon_spark.privacy.demands import Demands, all_achieved
from kanon_spark.privacy.histograms import Histograms


@dataclass(frozen=True)
class Judgement:
    """One model on one column, over all classes.

    Attributes:
        column: The sensitive column.
        model: What was asked.
        achieved: What each class achieves.
        satisfied: Which classes satisfy it.
    """

    column: str
    model: Model
    achieved: Floats
    satisfied: Bools

    @property
    def worst(self) -> float:
        """What the release as a whole achieves: the value of its worst class (NaN without a class)."""
        if not len(self.achieved):
            return float("nan")
        return float(self.achieved.min() if at_least(self.model.code) else self.achieved.max())

    @property
    def failing(self) -> int:
        """Classes that do not satisfy it."""
        return int(np.count_nonzero(~self.satisfied))


def judge(
    columns: Sequence[Column], models: Mapping[str, Sequence[Model]], histograms: Histograms
) -> tuple[Judgement, ...]:
    """Judge classes by every model that is asked.

    Args:
        columns: The sensitive columns, in the histograms' order.
        models: What is asked of each.
        histograms: One unit per class.

    >>> from kanon_spark.privacy.histograms import histograms_of
    >>> from kanon_spark.privacy.l_diversity import Distinct
    >>> rows = np.array([[0], [1], [0]], np.int32)
    >>> classes = histograms_of(np.array([0, 0, 1]), rows, np.ones(3, np.int64), units=2)
    >>> (found,) = judge([Column("ill", np.array([2, 1]))], {"ill": [Distinct(2)]}, classes)
    >>> found.achieved.tolist(), found.satisfied.tolist(), found.worst
    ([2.0, 1.0], [True, False], 1.0)
    """
    values = all_achieved(Demands.of(columns, models), histograms)
    asked = [(column.name, model) for column in columns for model in models.get(column.name, ())]
    return tuple(
        Judgement(name, model, values[:, d], good_enough(model, values[:, d])) for d, (name, model) in enumerate(asked)
    )


def good_enough(model: Model, values: Floats) -> Bools:
    """Which achieved values satisfy a model."""
    if model.code in (RECURSIVE, DELTA):
        strictly: Bools = values < model.bound
        return strictly
    reached: Bools = values >= model.bound - EPSILON if at_least(model.code) else values <= model.bound + EPSILON
    return reached
