"""The published tuples of a recoding as arrays, in the order of their loss. No Spark."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kanon_spark.recoding.covering import Cover, Label, least_covering
from kanon_spark.recoding.kept import Kept, KeptColumn

LOSS = "loss"


@dataclass(frozen=True)
class Classes:
    """Distinct published tuples, those that lose least first; equal ones by their labels.

    Attributes:
        texts: Per QI, the labels that occur, in order (null first).
        labels: Number of the label, classes by QIs.
        losses: Loss in each QI, classes by QIs.
        total: Weighted loss of each class.
        numbers: The numbers that stand beside labels.
    """

    texts: tuple[tuple[Label, ...], ...]
    labels: NDArray[np.int32]
    losses: NDArray[np.float64]
    total: NDArray[np.float64]
    numbers: pd.DataFrame

    @classmethod
    def of(cls, entries: pd.DataFrame, kept: Kept, *, numbers: Sequence[str]) -> "Classes":
        """From entries of a recoding, each published tuple once or several times."""
        columns = kept.columns
        texts: list[tuple[Label, ...]] = []
        labels = np.zeros((len(entries), len(columns)), dtype=np.int32)
        losses = np.zeros((len(entries), len(columns)))
        for index, (label, loss) in enumerate(published_cells(entries, kept)):
            found = sorted({*label}, key=lambda text: (text is not None, text or ""))
            number = {text: at for at, text in enumerate(found)}
            texts.append(tuple(found))
            labels[:, index] = [number[text] for text in label]
            losses[:, index] = loss
        weights = np.array([column.weight for column in columns])
        total = (losses * weights).sum(axis=1) / weights.sum()
        # Equal sums may differ in their last digits: what decides must not.
        total = np.round(total, 12)
        order = np.lexsort((*labels.T[::-1], total))
        return cls(tuple(texts), labels[order], losses[order], total[order], entries[list(numbers)].iloc[order])

    def __len__(self) -> int:
        return len(self.labels)

    def match(self, tuples: NDArray[np.int32], covers: Sequence[Cover]) -> NDArray[np.int64]:
        """The class of least loss that covers each tuple of leaf codes; -1 where none does."""
        return least_covering(tuples, self.labels, covers)

    def cells(self, numbers: NDArray[np.int64]) -> pd.DataFrame:
        """What these classes publish: `label_<i>` and `loss_<i>` of every QI, their numbers, and the loss in all."""
        found: dict[str, object] = {}
        for index, texts in enumerate(self.texts):
            found[f"label_{index}"] = np.array(texts, dtype=object)[self.labels[numbers, index]]
            found[f"loss_{index}"] = self.losses[numbers, index]
        found |= {str(name): self.numbers[name].to_numpy(np.float64)[numbers] for name in self.numbers}
        found[LOSS] = self.total[numbers]
        return pd.DataFrame(found)


def published_cells(entries: pd.DataFrame, kept: Kept) -> list[tuple[NDArray[np.object_], NDArray[np.float64]]]:
    """Label and loss of each entry in each QI."""
    layout = kept.node_layout
    nodes = layout.unpack(entries[layout.names("out")].to_numpy(np.int64))
    return [_cells(entries, nodes[:, index], column, index) for index, column in enumerate(kept.columns)]


def _cells(
    entries: pd.DataFrame, nodes: NDArray[np.int32], column: KeptColumn, index: int
) -> tuple[NDArray[np.object_], NDArray[np.float64]]:
    if column.publish == "node":
        return np.array(column.labels, dtype=object)[nodes], np.array(column.losses)[nodes]
    own = entries[f"label_{index}"].astype(object)
    return own.where(own.notna(), None).to_numpy(object), entries[f"loss_{index}"].to_numpy(np.float64)
