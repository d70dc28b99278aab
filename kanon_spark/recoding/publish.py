"""From classes to what is published for each signature: node ids, ranges and sets where there is no hierarchy, numbers.

Pure numpy: it runs on the driver for small tables and inside the workers for blocks.
"""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kanon_spark.hierarchy.bounds import bounds_of
from kanon_spark.kernels.lattice import class_table
from kanon_spark.kernels.problem import OWN, Problem
from kanon_spark.recoding.grid import widen
from kanon_spark.signatures.codebook import Codebook, QiColumn

_NEEDS_QUOTES = re.compile(r'[,{}"\[\]]|^\s|\s$|^$')


@dataclass(frozen=True)
class Published:
    """What each signature publishes.

    Attributes:
        out: Packed node ids.
        labels: Label of every range or set QI, by its index; JSON texts of their members where arrays are published.
        losses: Loss of every range or set QI, by its index.
        numbers: `lo_<i>` and `hi_<i>`, or `mean_<i>`, of the QIs whose form asks for them; NaN where there is none.
    """

    out: NDArray[np.int64]
    labels: dict[int, NDArray[np.object_]]
    losses: dict[int, NDArray[np.float64]]
    numbers: dict[str, NDArray[np.float64]]


def publish(
    problem: Problem, class_of: NDArray[np.int32], codebook: Codebook, chosen_nodes: NDArray[np.int32] | None = None
) -> Published:
    """Generalize every class to its lowest common ancestors; a signature without a class publishes `*` everywhere.

    Args:
        problem: The signatures.
        class_of: Class of each; -1 for none.
        codebook: The QIs.
        chosen_nodes: What the method wants published instead (see `Solution.nodes`).
    """
    forest = problem.forest
    open_ = class_of < 0
    roots = np.array([column.tree.root for column in codebook.columns], dtype=np.int32)
    nodes = np.empty((problem.size, len(codebook.columns)), dtype=np.int32)
    nodes[open_] = roots
    table, _, _ = class_table(problem, class_of)
    of_class = forest.original[table]
    silenced = np.zeros(of_class.shape, dtype=bool)  # cells of ranges and sets that the method suppresses
    if chosen_nodes is not None and len(table):
        chosen_here = np.full_like(of_class, OWN)
        chosen_here[class_of[~open_]] = chosen_nodes[~open_]  # the same for all members of a class
        silenced = chosen_here == roots
        of_class = np.where(chosen_here == OWN, of_class, chosen_here)
    if len(table):
        nodes[~open_] = of_class[class_of[~open_]]
    labels: dict[int, NDArray[np.object_]] = {}
    losses: dict[int, NDArray[np.float64]] = {}
    numbers: dict[str, NDArray[np.float64]] = {}
    for index, column in enumerate(codebook.columns):
        if column.publish == "node" and not column.form.numbers:
            continue
        codes = forest.present[index][problem.codes[:, index]]
        if column.form.numbers and column.publish == "node":
            found = _of_nodes(column, of_class[:, index], codes, problem.rows, class_of)
            numbers |= _by_signature(found, index, class_of)
            continue
        label, loss = _own_values(column, codes, problem.rows, class_of, len(table))
        star = star_of(column)
        label[silenced[:, index]], loss[silenced[:, index]] = star, 1.0
        chosen = np.where(open_, 0, class_of)
        labels[index] = np.where(open_, star, label[chosen] if len(label) else star).astype(object)
        losses[index] = np.where(open_, 1.0, loss[chosen] if len(loss) else 1.0)
        labels[index][~open_] = label[class_of[~open_]]
        if column.form.numbers:
            numbers |= _by_signature(_of_ranges(column, label, codes, problem.rows, class_of), index, class_of)
    return Published(codebook.node_layout.pack(nodes), labels, losses, numbers)


def star_of(column: QiColumn) -> str:
    """What a suppressed cell holds: `*` (or what the method's form says), or an array of that."""
    return member_text([column.form.suppressed]) if column.form.members else column.form.suppressed


def _own_values(
    column: QiColumn, codes: NDArray[np.int32], rows: NDArray[np.int64], class_of: NDArray[np.int32], classes: int
) -> tuple[NDArray[np.object_], NDArray[np.float64]]:
    """Label and loss of each class from the values it really holds."""
    label = np.full(classes, star_of(column), dtype=object)
    loss = np.ones(classes)
    placed = class_of >= 0
    pairs, pair_of = np.unique(np.stack([class_of[placed], codes[placed]], axis=1), axis=0, return_inverse=True)
    if not len(pairs):
        return label, loss
    starts = np.flatnonzero(np.append(True, np.diff(pairs[:, 0]) != 0))
    ends = np.append(starts[1:], len(pairs))
    null = column.tree.null_leaf
    domain = column.tree.leaves - (null >= 0)
    span = column.span
    weights = np.bincount(pair_of.ravel(), weights=rows[placed]).astype(np.int64) if column.form.mean else rows
    for begin, end in zip(starts, ends, strict=True):
        group = int(pairs[begin, 0])
        held = pairs[begin:end, 1]
        if len(held) == 1:
            label[group], loss[group] = _one_value(column, int(held[0])), 0.0
        elif null >= 0 and held[-1] == null:
            continue  # null mixed with values: `*` at full cost
        elif column.publish == "range":
            low, high = int(held[0]), int(held[-1])
            least, largest = str(column.texts[low]), str(column.texts[high])
            width = float(column.positions[high] - column.positions[low])
            if column.form.grid:
                least, largest, width = widen(least, largest, column.kind)
            label[group] = f"[{least}, {largest}]"
            loss[group] = min(1.0, width / span) if span > 0 else 0.0
            if column.form.mean:
                label[group] = mean_label(column, held, weights[begin:end])
                loss[group] = 1.0 if label[group] == column.form.suppressed else loss[group]
        else:
            values = [str(column.texts[int(code)]) for code in held]
            label[group] = member_text(values) if column.form.members else set_label(values)
            loss[group] = len(held) / domain
    return label, loss


def mean_label(column: QiColumn, codes: NDArray[np.int32], rows: NDArray[np.int64]) -> str:
    """The mean of a class in one QI as it is published in place of the range; a suppressed cell where it has none.

    Args:
        column: The QI.
        codes: The values that the class holds, each once, so that the mean does not hang on how they are spread over
            signatures.
        rows: Rows of each.
    """
    try:
        total = math.fsum(rows * column.positions[codes])
    except (OverflowError, ValueError):  # beyond doubles, or infinities of both signs
        return column.form.suppressed
    return repr(float(total / int(rows.sum())) + 0.0)


def _one_value(column: QiColumn, code: int) -> str | None:
    text = column.texts[code]
    return member_text([text]) if column.form.members and text is not None else text


def _of_nodes(
    column: QiColumn,
    nodes: NDArray[np.int32],
    codes: NDArray[np.int32],
    rows: NDArray[np.int64],
    class_of: NDArray[np.int32],
) -> dict[str, NDArray[np.float64]]:
    """The numbers of each class that publishes a node: the bounds of its label, or the mean of its rows."""
    if column.bounds is not None:
        return {"lo": column.bounds[nodes, 0], "hi": column.bounds[nodes, 1]}
    # The root says nothing, and no number beside it may.
    return {"mean": np.where(nodes == column.tree.root, np.nan, _means(column, codes, rows, class_of, len(nodes)))}


def _of_ranges(
    column: QiColumn,
    labels: NDArray[np.object_],
    codes: NDArray[np.int32],
    rows: NDArray[np.int64],
    class_of: NDArray[np.int32],
) -> dict[str, NDArray[np.float64]]:
    """The numbers of each class that publishes a range: its ends as they are published, or the mean of its rows."""
    silent = {column.form.suppressed, None}
    if "mean" in column.form.numbers:
        means = _means(column, codes, rows, class_of, len(labels))
        return {"mean": np.where([label in silent for label in labels], np.nan, means)}
    ends = np.array([(np.nan, np.nan) if label in silent else bounds_of(label) for label in labels]).reshape(-1, 2)
    return {"lo": ends[:, 0], "hi": ends[:, 1]}


def _means(
    column: QiColumn, codes: NDArray[np.int32], rows: NDArray[np.int64], class_of: NDArray[np.int32], classes: int
) -> NDArray[np.float64]:
    """Mean over the rows of each class; NaN where a value is null, so that such a class has none.

    Sums are rounded once, so that they do not depend on the order in which signatures arrive.
    """
    means = np.full(classes, np.nan)
    placed = np.flatnonzero(class_of >= 0)
    placed = placed[np.argsort(class_of[placed], kind="stable")]
    groups = class_of[placed]
    if not len(groups):
        return means
    starts = np.flatnonzero(np.append(True, np.diff(groups) != 0))
    weighed = rows[placed] * column.positions[codes[placed]]
    for begin, end in zip(starts, np.append(starts[1:], len(groups)), strict=True):
        try:
            total = math.fsum(weighed[begin:end])
        except (OverflowError, ValueError):  # beyond doubles, or infinities of both signs
            continue
        means[groups[begin]] = total / rows[placed[begin:end]].sum()
    return means + 0.0


def _by_signature(
    of_class: dict[str, NDArray[np.float64]], index: int, class_of: NDArray[np.int32]
) -> dict[str, NDArray[np.float64]]:
    """Numbers of the classes as columns of the entries; none for a signature without a class."""
    # One NaN behind the classes: that is where -1 points.
    return {f"{part}_{index}": np.append(values, np.nan)[class_of] for part, values in of_class.items()}


def member_text(values: Sequence[str]) -> str:
    r"""Members of a set as they travel to the rows, where they become an array: sorted, as a JSON text.

    >>> member_text(["b", 'say "a"'])
    '["b", "say \\"a\\""]'
    """
    return json.dumps(sorted(values), ensure_ascii=False)


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


def set_members(label: str) -> list[str]:
    """The members of what `set_label` wrote; none where a text is no set.

    >>> set_members('{"x, y", z}'), set_members("z")
    (['x, y', 'z'], [])
    """
    if not (label.startswith("{") and label.endswith("}")):
        return []
    members, rest, decoder = [], label[1:-1], json.JSONDecoder()
    while rest:
        if rest.startswith('"'):
            try:
                member, end = decoder.raw_decode(rest)
            except json.JSONDecodeError:
                return []
        else:
            end = rest.find(", ")
            end = len(rest) if end < 0 else end
            member = rest[:end]
        members.append(member)
        if end < len(rest) and not rest.startswith(", ", end):
            return []
        rest = rest[end + 2 :]
    return members
