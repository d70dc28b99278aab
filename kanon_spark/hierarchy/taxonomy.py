"""A checked hierarchy file as a tree.

Equal labels that follow each other on a path are one node, so paths may be shorter than the file is wide. At one level
a label is one node: under two different parents it is an error. At different levels of different paths it may recur.
"""

from dataclasses import dataclass

import numpy as np

from kanon_spark.errors import HierarchyError
from kanon_spark.hierarchy.assemble import Longs, Skeleton, never_narrower
from kanon_spark.hierarchy.csv_file import HierarchyFile
from kanon_spark.hierarchy.labels import interval_of, number_of
from kanon_spark.hierarchy.tree import Floats, Ints


@dataclass(frozen=True)
class Taxonomy:
    """The tree of a file, from one of its levels upwards.

    Attributes:
        skeleton: The tree over the leaves.
        code_of_row: Leaf code of each row of the file.
        positions: Least number under each leaf, NaN for categorical hierarchies.
        span: Range of the file's numbers, 0 for categorical hierarchies.
    """

    skeleton: Skeleton
    code_of_row: Ints
    positions: Floats
    span: float


def taxonomy_of(file: HierarchyFile, *, numeric: bool, min_level: int = 0) -> Taxonomy:
    """Build the tree of a file; with `min_level` the leaves are the nodes of that level."""
    values = _numbers(file) if numeric else None
    paths = _paths(file)
    skeleton, order = _number_nodes(file, paths)
    code_of_row = np.empty(len(order), dtype=np.int32)
    code_of_row[order] = np.arange(len(order), dtype=np.int32)
    if values is None:
        positions, span = np.full(len(order), np.nan), 0.0
    else:
        positions, span = values[order], float(values.max() - values.min())
        skeleton = Skeleton(skeleton.labels, skeleton.levels, width=_widths(skeleton, positions))
    whole = Taxonomy(skeleton, code_of_row, positions, span)
    return _from_level(file, whole, min_level) if min_level else whole


def _numbers(file: HierarchyFile) -> Floats:
    values = np.empty(len(file.rows))
    first: dict[float, int] = {}
    for index, row in enumerate(file.rows):
        number = number_of(row[0])
        if number is None:
            raise HierarchyError(
                "the column is numeric, but the first label of this line is not a number",
                where=file.where(index),
                fix="write the column's own values in the first column, or cast the column to string",
            )
        if number in first:
            raise HierarchyError(
                f"duplicate leaves: the number of this line already stands on line {first[number]}",
                where=file.where(index),
                fix="remove one of the two lines",
            )
        first[number] = file.lines[index]
        values[index] = number
    return values


@dataclass
class _Node:
    label: str
    level: int  # the highest at which it stands
    parent: int


@dataclass
class _Paths:
    nodes: list[_Node]  # inner nodes, the root first
    of_row: list[list[int]]  # inner node of each row at level 1 … root


def _paths(file: HierarchyFile) -> _Paths:
    """Inner nodes and the path of every row, in the order of the file."""
    top = len(file.rows[0]) - 1
    nodes = [_Node(file.rows[0][top], top, -1)]
    seen: list[dict[str, tuple[int, int]]] = [{} for _ in range(top + 1)]  # level -> label -> (node, row)
    of_row: list[list[int]] = []
    for index, row in enumerate(file.rows):
        node, path = 0, [0]
        for level in range(top - 1, 0, -1):
            above, label = node, row[level]
            known = seen[level].get(label)
            if label == row[level + 1]:
                node = above
            elif known is None:
                node = len(nodes)
                nodes.append(_Node(label, level, above))
            else:
                node = known[0]
            if known is not None and (known[0] != node or (node != above and nodes[node].parent != above)):
                raise HierarchyError(
                    f"not a tree: label '{label}' at level {level} stands under '{row[level + 1]}' here "
                    f"and under '{file.rows[known[1]][level + 1]}' on line {file.lines[known[1]]}",
                    where=file.where(index),
                    fix="give the label one parent, or two different names",
                )
            seen[level].setdefault(label, (node, index))
            path.append(node)
        path.reverse()
        _check_no_return(file, index)
        of_row.append(path)
    return _Paths(nodes, of_row)


def _check_no_return(file: HierarchyFile, index: int) -> None:
    """Equal labels on a path are one node, so nothing may stand between them (leaves, always nodes, aside)."""
    labels = file.rows[index][1:]
    steps = [label for level, label in enumerate(labels) if level == 0 or label != labels[level - 1]]
    if len(set(steps)) < len(steps):
        raise HierarchyError(
            "not a tree: a label of this line comes back at a higher level, with another label in between",
            where=file.where(index),
            fix="use each label on one run of neighbouring levels only",
        )


def _number_nodes(file: HierarchyFile, paths: _Paths) -> tuple[Skeleton, Longs]:
    """Number leaves so that every node covers a run (children in order of first appearance), inner nodes bottom-up.

    Returns the skeleton and the row of each leaf code.
    """
    # Sorting rows by the first appearance of their nodes, from the root down, is preorder: a node is numbered when it
    # first appears, and so is a leaf. The two share one counter, or a leaf beside inner siblings would be misplaced.
    born: dict[int, int] = {}
    keys = []
    for index, path in enumerate(paths.of_row):
        down: list[tuple[int, int]] = []
        for node in reversed(path):
            born.setdefault(node, index)
            if not down or down[-1] != (born[node], node):
                down.append((born[node], node))
        keys.append([*down, (index, -1)])
    order = sorted(range(len(keys)), key=keys.__getitem__)

    leaves = len(order)
    first_leaf: dict[int, int] = {}
    for code, index in enumerate(order):
        for node in paths.of_row[index]:
            first_leaf.setdefault(node, code)
    ranked = sorted(range(len(paths.nodes)), key=lambda node: (paths.nodes[node].level, first_leaf[node]))
    number = np.empty(len(ranked), dtype=np.int32)
    number[ranked] = np.arange(leaves, leaves + len(ranked), dtype=np.int32)
    inner = number[np.array([paths.of_row[index] for index in order], dtype=np.int32)].T
    levels = np.vstack([np.arange(leaves, dtype=np.int32), inner]).astype(np.int32)
    labels = (*(file.rows[index][0] for index in order), *(paths.nodes[node].label for node in ranked))
    return Skeleton(labels=labels, levels=levels), np.array(order, dtype=np.int64)


def _widths(skeleton: Skeleton, positions: Floats) -> Floats:
    """Width of each node: what its label says if that holds all its numbers, else the range of its numbers."""
    count = len(skeleton.labels)
    least, largest = np.full(count, np.inf), np.full(count, -np.inf)
    for row in skeleton.levels:
        np.minimum.at(least, row, positions)
        np.maximum.at(largest, row, positions)
    width = largest - least
    for node in range(skeleton.leaves, count - 1):
        ends = interval_of(skeleton.labels[node])
        if ends is not None and ends[0] <= least[node] and largest[node] <= ends[1]:
            width[node] = ends[1] - ends[0]
    width[-1] = np.nan
    return never_narrower(width, skeleton.levels)


def _from_level(file: HierarchyFile, whole: Taxonomy, min_level: int) -> Taxonomy:
    """The same tree from a level upwards: its nodes become leaves, losses keep counting the file's values."""
    full = whole.skeleton
    base = full.levels[min_level][whole.code_of_row]  # each row's node at that level
    nodes, first_row, leaf_of_row = np.unique(base, return_index=True, return_inverse=True)
    by_row = np.argsort(first_row)
    rank = np.empty(len(nodes), dtype=np.int64)
    rank[by_row] = np.arange(len(nodes))
    kept = first_row[by_row]
    cut = HierarchyFile(
        path=file.path,
        rows=tuple(file.rows[row][min_level:] for row in kept.tolist()),
        lines=tuple(file.lines[row] for row in kept.tolist()),
    )
    skeleton, order = _number_nodes(cut, _paths(cut))
    code_of_cut = np.empty(len(order), dtype=np.int32)
    code_of_cut[order] = np.arange(len(order), dtype=np.int32)
    code_of_row = code_of_cut[rank[leaf_of_row]]
    node_of_code = nodes[by_row][order]
    positions = np.full(len(order), np.nan)
    if full.width is None:
        weight = np.bincount(code_of_row, minlength=len(order)).astype(np.int64)
        skeleton = Skeleton(skeleton.labels, skeleton.levels, weight=weight, leaf_loss=_shares(full)[node_of_code])
    else:
        np.fmin.at(positions, code_of_row, whole.positions[whole.code_of_row])
        width = np.zeros(len(skeleton.labels))
        for level in range(1, skeleton.levels.shape[0]):  # inner nodes are as wide as they were in the whole tree
            width[skeleton.levels[level][code_of_row]] = full.width[full.levels[level + min_level][whole.code_of_row]]
        width[: len(order)] = full.width[node_of_code]
        skeleton = Skeleton(skeleton.labels, skeleton.levels, width=never_narrower(width, skeleton.levels))
    return Taxonomy(skeleton, code_of_row, positions, whole.span)


def _shares(full: Skeleton) -> Floats:
    """Share of all values that lie under each node, nothing for a single one, 1 for the root."""
    low = np.full(len(full.labels), full.leaves, dtype=np.int64)
    high = np.zeros(len(full.labels), dtype=np.int64)
    for row in full.levels:
        np.minimum.at(low, row, np.arange(full.leaves))
        np.maximum.at(high, row, np.arange(1, full.leaves + 1))
    share = np.where(high - low > 1, (high - low) / full.leaves, 0.0)
    share[-1] = 1.0
    return share
