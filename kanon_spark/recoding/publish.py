"""From classes to what is published for each signature: node ids, or tight ranges and sets where there is no hierarchy.

Pure numpy: it runs on the driver for small tables and inside the workers for blocks.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kanon_spark.kernels.lattice import class_table
from kanon_spark.kernels.problem import Problem
from kanon_spark.signatures.codebook import Codebook, QiColumn

SUPPRESSED = "*"
_NEEDS_QUOTES = re.compile(r'[,{}"\[\]]|^\s|\s$|^$')


@dataclass(frozen=True)
class Published:
    """What each signature publishes: packed node ids, and label and loss of every range or set QI (by its index)."""

    out: NDArray[np.int64]
    labels: dict[int, NDArray[np.object_]]
    losses: dict[int, NDArray[np.float64]]


def publish(problem: Problem, class_of: NDArray[np.int32], codebook: Codebook) -> Published:
    """Generalize every class to its lowest common ancestors; a signature without a class publishes `*` everywhere."""
    forest = problem.forest
    open_ = class_of < 0
    roots = np.array([column.tree.root for column in codebook.columns], dtype=np.int32)
    nodes = np.empty((problem.size, len(codebook.columns)), dtype=np.int32)
    nodes[open_] = roots
    table, _, _ = class_table(problem, class_of)
    if len(table):
        nodes[~open_] = forest.original[table][class_of[~open_]]
    labels: dict[int, NDArray[np.object_]] = {}
    losses: dict[int, NDArray[np.float64]] = {}
    for index, column in enumerate(codebook.columns):
        if column.publish == "node":
            continue
        codes = forest.present[index][problem.codes[:, index]]
        label, loss = _own_values(column, codes, class_of, len(table))
        chosen = np.where(open_, 0, class_of)
        labels[index] = np.where(open_, SUPPRESSED, label[chosen] if len(label) else SUPPRESSED).astype(object)
        losses[index] = np.where(open_, 1.0, loss[chosen] if len(loss) else 1.0)
        labels[index][~open_] = label[class_of[~open_]]
    return Published(codebook.node_layout.pack(nodes), labels, losses)


def _own_values(
    column: QiColumn, codes: NDArray[np.int32], class_of: NDArray[np.int32], classes: int
) -> tuple[NDArray[np.object_], NDArray[np.float64]]:
    """Label and loss of each class from the values it really holds."""
    label = np.full(classes, SUPPRESSED, dtype=object)
    loss = np.ones(classes)
    placed = class_of >= 0
    pairs = np.unique(np.stack([class_of[placed], codes[placed]], axis=1), axis=0)
    if not len(pairs):
        return label, loss
    starts = np.flatnonzero(np.append(True, np.diff(pairs[:, 0]) != 0))
    ends = np.append(starts[1:], len(pairs))
    null = column.tree.null_leaf
    domain = column.tree.leaves - (null >= 0)
    span = column.span
    for begin, end in zip(starts, ends, strict=True):
        group = int(pairs[begin, 0])
        held = pairs[begin:end, 1]
        if len(held) == 1:
            label[group], loss[group] = column.texts[int(held[0])], 0.0
        elif null >= 0 and held[-1] == null:
            continue  # null mixed with values: `*` at full cost
        elif column.publish == "range":
            low, high = int(held[0]), int(held[-1])
            label[group] = f"[{column.texts[low]}, {column.texts[high]}]"
            loss[group] = (column.positions[high] - column.positions[low]) / span if span > 0 else 0.0
        else:
            label[group] = set_label([str(column.texts[int(code)]) for code in held])
            loss[group] = len(held) / domain
    return label, loss


def set_label(values: Sequence[str]) -> str:
    """The published form of a set: sorted, members quoted where they could be misread.

    >>> set_label(["b", "a"])
    '{a, b}'
    >>> set_label(["x, y", "z"])
    '{"x, y", z}'
    """
    members = [
        json.dumps(value, ensure_ascii=False) if _NEEDS_QUOTES.search(value) else value for value in sorted(values)
    ]
    return "{" + ", ".join(members) + "}"
