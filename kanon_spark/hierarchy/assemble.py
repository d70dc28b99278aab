"""From levels over the leaves to a finished tree.

Builders only say which node each leaf has at each level, what the nodes are called and how wide they are. All else
(parents, leaf intervals, losses, the null and unknown leaf, `max_level`) follows from that, in one place.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kanon_spark.errors import HierarchyError
from kanon_spark.hierarchy.tree import Floats, Ints, Tree

Longs = NDArray[np.int64]
ROOT = "*"


@dataclass(frozen=True)
class Level:
    """One level over leaves in code order.

    Attributes:
        group: Number of each leaf's group, counted 0, 1, 2 … along the leaves.
        labels: Label of each group.
        width: Interval width of each group, None for categorical hierarchies.
    """

    group: Ints
    labels: Sequence[str]
    width: Floats | None = None


@dataclass(frozen=True)
class Skeleton:
    """A tree before the null and unknown leaf: leaves first, inner nodes bottom-up, the root last.

    Attributes:
        labels: Label of each node.
        levels: levels[l, x] is leaf x's node at level l.
        width: Interval width of each node (NaN at the root), None for categorical trees.
        weight: How many of the hierarchy's values each leaf stands for; 1 each if None.
        leaf_loss: Loss of each leaf, where its weight does not tell it (its label may speak of more values).
        singles_free: A node over a single value costs nothing. Not so where a leaf is itself a group of unknown size.
        outside: Leaves that the hierarchy does not know: they are published as the root, and cost what it costs.
    """

    labels: tuple[str, ...]
    levels: Ints
    width: Floats | None = None
    weight: Longs | None = None
    leaf_loss: Floats | None = None
    singles_free: bool = True
    outside: NDArray[np.bool_] | None = None

    @property
    def leaves(self) -> int:
        """Number of leaves."""
        return int(self.levels.shape[1])


def number_runs(*keys: NDArray[np.generic]) -> Ints:
    """Number the runs of equal keys along the leaves, from 0 upwards.

    >>> number_runs(np.array([7, 7, 3, 7])).tolist()
    [0, 0, 1, 2]
    """
    if len(keys[0]) == 0:
        return np.zeros(0, dtype=np.int32)
    changes = np.zeros(len(keys[0]), dtype=bool)
    for key in keys:
        changes[1:] |= key[1:] != key[:-1]
    return np.cumsum(changes).astype(np.int32)


def run_starts(group: Ints) -> Longs:
    """First leaf of each group."""
    if len(group) == 0:
        return np.zeros(0, dtype=np.int64)
    return np.concatenate([[0], np.flatnonzero(np.diff(group)) + 1]).astype(np.int64)


def stack(leaf_labels: Sequence[str], levels: Sequence[Level], *, leaf_width: Floats | None = None) -> Skeleton:
    """Put nested levels and a root over the leaves; a group that only repeats the node below it is that node."""
    count = len(leaf_labels)
    labels = list(leaf_labels)
    widths = [leaf_width] if leaf_width is not None else []
    rows = [np.arange(count, dtype=np.int32)]
    below_sizes = np.ones(count, dtype=np.int64)  # of the group below that starts where a leaf stands
    for level in levels:
        starts = run_starts(level.group)
        sizes = np.diff(np.append(starts, count))
        below = rows[-1][starts]
        fresh = sizes != below_sizes[starts]
        for index in np.flatnonzero(~fresh).tolist():
            fresh[index] = labels[below[index]] != level.labels[index]
        ids = np.where(fresh, len(labels) + np.cumsum(fresh) - 1, below).astype(np.int32)
        labels.extend(level.labels[index] for index in np.flatnonzero(fresh).tolist())
        if level.width is not None:
            widths.append(level.width[fresh])
        rows.append(ids[level.group])
        below_sizes[starts] = sizes
    rows.append(np.full(count, len(labels), dtype=np.int32))
    labels.append(ROOT)
    levels_of_leaves = np.vstack(rows).astype(np.int32)
    width = None
    if leaf_width is not None:
        width = never_narrower(np.concatenate([*widths, [np.nan]]), levels_of_leaves)
    return Skeleton(labels=tuple(labels), levels=levels_of_leaves, width=width)


def never_narrower(width: Floats, levels: Ints) -> Floats:
    """Widths that do not shrink on the way up: labels are read by people, and may say less than their children."""
    out = width.copy()
    out[-1] = np.inf  # not a number, which `fmax` would overwrite
    for below, above in pairwise(levels):
        np.fmax.at(out, above, out[below])
    out[-1] = np.nan
    return out


def grow(
    skeleton: Skeleton,
    *,
    span: float,
    null: bool,
    unknown: bool = False,
    max_level: int | None = None,
) -> Tree:
    """The finished tree.

    Args:
        skeleton: What a builder made.
        span: Domain range that widths are measured against.
        null: Add the null leaf.
        unknown: Add the leaf for values that the hierarchy misses.
        max_level: Highest row of the levels that may be published.
    """
    real, extra = skeleton.leaves, int(null) + int(unknown)
    leaves, nodes = real + extra, len(skeleton.labels) + extra
    height, root = skeleton.levels.shape[0] - 1, nodes - 1
    levels = np.empty((height + 1, leaves), dtype=np.int32)
    levels[:, :real] = np.where(skeleton.levels < real, skeleton.levels, skeleton.levels + extra)
    levels[:, real:] = np.arange(real, leaves, dtype=np.int32)  # they stay themselves until the root
    levels[height, real:] = root

    parent = np.full(nodes, -1, dtype=np.int32)
    lo = np.full(nodes, leaves, dtype=np.int32)
    hi = np.zeros(nodes, dtype=np.int32)
    lo[root], hi[root] = 0, leaves
    lowest = np.full(nodes, height, dtype=np.int32)
    codes = np.arange(leaves, dtype=np.int32)
    for row in range(height, -1, -1):
        here = levels[row]
        np.minimum.at(lo, here, codes)
        np.maximum.at(hi, here, codes + 1)
        lowest[here] = row
        if row < height:
            climbs = here != levels[row + 1]
            parent[here[climbs]] = levels[row + 1][climbs]

    unknown_leaf = real if unknown else -1
    null_leaf = leaves - 1 if null else -1
    width = None
    if skeleton.width is not None:
        width = np.concatenate([skeleton.width[:real], np.zeros(extra), skeleton.width[real:]])
        loss = np.where(np.isnan(width), 1.0, 0.0)
        if unknown:
            width[unknown_leaf] = np.nan
    else:
        loss = _share_of_values(skeleton, lo, hi, extra)
    loss[root] = 1.0
    stars = np.zeros(nodes, dtype=np.bool_)  # leaves that are published as the root is
    if skeleton.outside is not None:
        stars[:real] = skeleton.outside
    if unknown:
        stars[unknown_leaf] = True
    loss[stars] = 1.0
    tree = Tree(
        labels=(
            *skeleton.labels[:real],
            *((ROOT,) if unknown else ()),
            *((None,) if null else ()),
            *skeleton.labels[real:],
        ),
        parent=parent,
        lo=lo,
        hi=hi,
        loss=loss,
        levels=levels,
        width=width,
        null_leaf=null_leaf,
        unknown_leaf=unknown_leaf,
        max_level=max_level if max_level is not None and max_level < height else None,
    ).with_span(span)
    if tree.max_level is not None:
        # A node is at least as high as its children: one short branch must not open the root to all the others.
        for below, above in pairwise(levels):
            np.maximum.at(lowest, above, lowest[below])
        tree.loss[lowest > tree.max_level] = np.inf
        tree.loss[stars] = tree.loss[root]
    return tree


def _share_of_values(skeleton: Skeleton, lo: Ints, hi: Ints, extra: int) -> Floats:
    """Categorical loss: values under the node over all values, nothing for a single one."""
    real = skeleton.leaves
    weight = np.ones(real, dtype=np.int64) if skeleton.weight is None else skeleton.weight
    if skeleton.outside is not None:
        weight = np.where(skeleton.outside, 0, weight)
    before = np.concatenate([[0], np.cumsum(weight), np.full(extra, weight.sum())])
    covered = before[hi] - before[lo]
    total = max(1, int(weight.sum()))
    share: Floats = covered / total
    if skeleton.singles_free:
        share[covered <= 1] = 0.0
    if skeleton.leaf_loss is not None:
        share[:real] = skeleton.leaf_loss
    return share


def check_levels(*, height: int, min_level: int, max_level: int | None, where: str) -> None:
    """Refuse levels that the hierarchy does not have; `height` is the level of the root."""
    if not 0 <= min_level < height:
        raise HierarchyError(
            f"min_level is {min_level}, but level {height} is already '*'",
            where=where,
            fix=f"choose a min_level below {height}, or drop the column",
        )
    if max_level is not None and not min_level <= max_level <= height:
        raise HierarchyError(
            f"max_level is {max_level}, but the levels from min_level to '*' are {min_level} to {height}",
            where=where,
            fix=f"choose max_level between {min_level} and {height}",
        )
