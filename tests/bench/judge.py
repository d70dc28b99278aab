"""The neutral judge: classes from the release alone, losses from the original values that met in each class.

It knows nothing of how a release was made and takes no published label at its word, so releases of any tool can be
compared by it. Per QI and class:

- set loss: (max - min) / range of the column for numbers; for others 0 if all are equal, else distinct values /
  distinct values of the column;
- hierarchy loss: of the lowest level on which all values of the class share one label, interval width / range of the
  column (at most 1) for numbers, leaves under the label / all leaves for others, 0 if the label stands for one leaf.

GCP is the mean over rows and QIs; a suppressed row costs 1. DM is the sum of squared class sizes, and a suppressed row
costs the number of all rows. CAVG = released rows / (classes * k).
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_INTERVAL = re.compile(r"\[(-?\d+(?:\.\d+)?)-(-?\d+(?:\.\d+)?)\]")


@dataclass(frozen=True)
class Judgement:
    """What the judge says of one release."""

    rows: int
    suppressed: int
    classes: int
    smallest: int
    gcp_hierarchy: float
    gcp_set: float
    dm: int
    cavg: float


@dataclass(frozen=True)
class Levels:
    """A hierarchy as the judge sees it: for each level and leaf, which label and what it costs.

    Attributes:
        leaf_of: Value (as text) to leaf number.
        label: Label number by level and leaf.
        loss: Loss by level and leaf.
    """

    leaf_of: dict[str, int]
    label: Ints
    loss: Floats


class _Classes:
    """Rows sorted by class, so that a class is a slice."""

    def __init__(self, class_of: Ints) -> None:
        self.order = np.argsort(class_of, kind="stable")
        ordered = class_of[self.order]
        self.begins = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(ordered) else np.zeros(0, int)
        self.sizes = np.diff(np.r_[self.begins, len(ordered)]).astype(np.int64)

    def least(self, values: NDArray[Any]) -> NDArray[Any]:
        return np.minimum.reduceat(values[self.order], self.begins)

    def most(self, values: NDArray[Any]) -> NDArray[Any]:
        return np.maximum.reduceat(values[self.order], self.begins)

    def distinct(self, codes: Ints) -> Ints:
        """How many different codes each class holds."""
        number = np.empty(len(codes), dtype=np.int64)
        number[self.order] = np.repeat(np.arange(len(self.sizes)), self.sizes)
        pairs = np.unique(number * (int(codes.max()) + 1) + codes)  # one number per pair sorts faster than two
        return np.bincount(pairs // (int(codes.max()) + 1), minlength=len(self.sizes))


def judge(
    original: pd.DataFrame,
    release: pd.DataFrame,
    *,
    qis: Sequence[str],
    k: int,
    row_id: str,
    hierarchies: Path,
    numeric: Collection[str],
) -> Judgement:
    """Judge a release that carries the row ids of the original.

    Args:
        original: The rows before, with `row_id`.
        release: The rows after; rows of the original that are missing count as suppressed.
        qis: The quasi-identifiers.
        k: What was asked for; only CAVG depends on it.
        row_id: The column both tables share.
        hierarchies: Folder with `<qi>.csv` for each QI.
        numeric: QIs that are numbers.
    """
    if not release[row_id].is_unique or not release[row_id].isin(original[row_id]).all():
        raise ValueError("the row ids of the release repeat, or are not those of the original")
    class_of = pd.Series(release.groupby(list(qis), dropna=False, sort=False).ngroup().to_numpy(), release[row_id])
    found = original[row_id].map(class_of)
    kept = original.loc[found.notna().to_numpy()]
    classes = _Classes(found.dropna().to_numpy(np.int64))
    suppressed = len(original) - len(kept)
    set_loss = hierarchy_loss = float(suppressed * len(qis))
    for qi in qis if len(kept) else ():
        ordered = qi in numeric
        span = float(original[qi].max() - original[qi].min()) if ordered else 0.0
        by_set = _range_losses(kept[qi], classes, span) if ordered else _set_losses(kept[qi], classes, original[qi])
        by_level = _level_losses(kept[qi], classes, read_levels(hierarchies / f"{qi}.csv", span if ordered else None))
        set_loss += float(by_set @ classes.sizes)
        hierarchy_loss += float(by_level @ classes.sizes)
    cells = len(original) * len(qis)
    return Judgement(
        rows=len(original),
        suppressed=suppressed,
        classes=len(classes.sizes),
        smallest=int(classes.sizes.min(initial=len(original))),
        gcp_hierarchy=hierarchy_loss / cells,
        gcp_set=set_loss / cells,
        dm=int((classes.sizes**2).sum()) + suppressed * len(original),
        cavg=len(kept) / (max(1, len(classes.sizes)) * k),
    )


def read_levels(path: Path, span: float | None) -> Levels:
    """Read `leaf;level1;...;*`; `span` is the range of a numeric column, None for others."""
    table = pd.read_csv(path, sep=";", header=None, dtype=str)
    labels, losses = [], []
    for level in range(table.shape[1]):
        codes, names = pd.factorize(table.iloc[:, level])
        if level == 0:
            cost = np.zeros(len(names))
        elif span is not None:
            cost = np.array([min(1.0, _width(str(name), span) / span) if span else 0.0 for name in names])
        else:
            under = np.bincount(codes)
            cost = np.where(under > 1, under / len(table), 0.0)
        labels.append(codes)
        losses.append(cost[codes])
    leaf_of = {str(leaf): number for number, leaf in enumerate(table[0])}
    return Levels(leaf_of, np.array(labels, dtype=np.int64), np.array(losses))


def _width(label: str, span: float) -> float:
    """Width of an interval's label; any other label stands for everything."""
    ends = _INTERVAL.fullmatch(label)
    return float(ends[2]) - float(ends[1]) if ends else span


def _range_losses(values: "pd.Series[float]", classes: _Classes, span: float) -> Floats:
    numbers = values.to_numpy(np.float64)
    widths: Floats = classes.most(numbers) - classes.least(numbers)
    return widths / (span or 1.0)


def _set_losses(values: "pd.Series[str]", classes: _Classes, column: "pd.Series[str]") -> Floats:
    distinct = classes.distinct(np.asarray(pd.factorize(values)[0], dtype=np.int64))
    return np.where(distinct > 1, distinct / column.nunique(), 0.0)


def _level_losses(values: "pd.Series[str]", classes: _Classes, levels: Levels) -> Floats:
    leaves = values.astype(str).map(levels.leaf_of)
    if leaves.isna().any():
        raise ValueError(f"the hierarchy misses values of '{values.name}'")
    leaf = leaves.to_numpy(np.int64)
    shared = np.array([classes.least(label[leaf]) == classes.most(label[leaf]) for label in levels.label])
    if not shared.any(axis=0).all():
        raise ValueError(f"the hierarchy of '{values.name}' has no single root")
    lowest = shared.argmax(axis=0)  # the first level on which a class shares one label
    return np.asarray(levels.loss[lowest, leaf[classes.order][classes.begins]], dtype=np.float64)
