"""What a published label of a numeric quasi-identifier says in numbers: its least and its largest value.

Bounds are taken from the label, never from the class that publishes it, so that they cannot undo the generalization:
equal labels have equal bounds. A label of a hierarchy file that is no interval (`young`) has the bounds of the file's
own values under it. The root, null and open ends (`>= 90` has no end) have none.

Bounds are doubles. Where a double cannot spell a number (beyond 2^53, or more than 17 digits) the next one outward is
taken, so that bounds always hold what the label holds.
"""

import math
from collections.abc import Mapping
from decimal import Decimal

import numpy as np

from kanon_spark.hierarchy.labels import interval_of, number_of
from kanon_spark.hierarchy.tree import Floats, Tree

NONE = math.nan


def at_most(text: str) -> float:
    """The number that a text spells, as the double just below it where none spells it.

    >>> at_most("0.1"), at_most("9007199254740993")
    (0.1, 9007199254740992.0)
    """
    number = float(text) + 0.0  # no sign on zero
    return math.nextafter(number, -math.inf) if Decimal(repr(number)) > Decimal(text) else number


def at_least(text: str) -> float:
    """The number that a text spells, as the double just above it where none spells it."""
    return -at_most(text[1:] if text.startswith("-") else f"-{text.removeprefix('+')}") + 0.0


def bounds_of(label: str) -> tuple[float, float]:
    """Bounds of a label that we made: `[15, 19]`, `[15, 20)`, `< 10`, `>= 90`, or a number.

    >>> bounds_of("[15, 20)"), bounds_of("1.5"), bounds_of(">= 90")
    ((15.0, 20.0), (1.5, 1.5), (90.0, nan))
    """
    if label.startswith("< "):
        return NONE, at_least(label[2:])
    if label.startswith(">= "):
        return at_most(label[3:]), NONE
    if label.startswith("["):
        low, high = label[1:-1].split(", ")
        return at_most(low), at_least(high)
    return at_most(label), at_least(label)


def built_bounds(tree: Tree) -> Floats:
    """Bounds (nodes by 2) of a tree that was built over numbers; NaN where there are none."""
    bounds = np.full((tree.nodes, 2), NONE)
    for node, label in enumerate(tree.labels[: tree.root]):
        if label is not None:
            bounds[node] = bounds_of(label)
    return bounds


def file_bounds(tree: Tree, lookup: Mapping[str, int]) -> Floats:
    """Bounds (nodes by 2) of a hierarchy file of numbers.

    Args:
        tree: Its tree.
        lookup: Leaf code of each value in the file.
    """
    least, largest = np.full(tree.leaves, np.inf), np.full(tree.leaves, -np.inf)
    for text, code in lookup.items():
        number = number_of(text)
        if number is not None:
            least[code], largest[code] = min(least[code], number), max(largest[code], number)
    extents: dict[str | None, tuple[float, float]] = {}
    for node, label in enumerate(tree.labels[: tree.root]):
        # A label may stand on several nodes of a file; a reader sees the label alone.
        low, high = extents.get(label, (np.inf, -np.inf))
        under = slice(tree.lo[node], tree.hi[node])
        extents[label] = min(low, float(least[under].min())), max(high, float(largest[under].max()))
    extents.pop(tree.labels[tree.root], None)
    extents.pop(None, None)
    bounds = np.full((tree.nodes, 2), NONE)
    for node, label in enumerate(tree.labels[: tree.root]):
        low, high = extents.get(label, (np.inf, -np.inf))
        if label is None or low > high:
            continue
        said = interval_of(label)
        holds = said is not None and said[0] <= low and high <= said[1]
        bounds[node] = said if said is not None and holds else (low, high)
    return bounds + 0.0
