"""The invariants that every tree keeps. Tests hold all builders to them; call it when a tree looks wrong."""

from itertools import pairwise

import numpy as np

from kanon_spark.errors import InternalError
from kanon_spark.hierarchy.tree import Tree


def check_tree(tree: Tree) -> None:
    """Raise `InternalError` naming the first invariant that a tree breaks."""
    for rule, holds in _rules(tree):
        if not holds:
            raise InternalError(f"broken tree: {rule}")


def _rules(tree: Tree) -> list[tuple[str, bool]]:
    nodes, leaves, root = tree.nodes, tree.leaves, tree.root
    codes = np.arange(leaves)
    inner = np.arange(nodes - 1)  # all but the root
    parent = tree.parent
    sizes = len({nodes, len(tree.labels), len(tree.lo), len(tree.hi), len(tree.loss)}) == 1
    if not sizes or (tree.width is not None and len(tree.width) != nodes):
        return [("arrays of equal length", False)]
    rules = [
        ("the root is last and has no parent", int(parent[root]) == -1),
        ("every other node has a larger parent", bool((parent[:root] > inner).all() and (parent[:root] < nodes).all())),
        ("leaf codes are node ids", bool((tree.lo[:leaves] == codes).all() and (tree.hi[:leaves] == codes + 1).all())),
        ("the root covers all leaves", int(tree.lo[root]) == 0 and int(tree.hi[root]) == leaves),
    ]
    if not all(holds for _, holds in rules):
        return rules
    return [*rules, *_order_rules(tree), *_level_rules(tree), *_leaf_rules(tree)]


def _order_rules(tree: Tree) -> list[tuple[str, bool]]:
    nodes, leaves, root = tree.nodes, tree.leaves, tree.root
    # Children sorted by their first leaf must follow each other without a gap and fill their parent.
    children = np.lexsort((tree.lo[:root], tree.parent[:root]))
    up, lo, hi = tree.parent[children], tree.lo[children], tree.hi[children]
    first = np.append(True, up[1:] != up[:-1]) if root else np.zeros(0, dtype=bool)
    last = np.append(up[1:] != up[:-1], True) if root else np.zeros(0, dtype=bool)
    fills = bool(
        (lo[first] == tree.lo[up[first]]).all()
        and (hi[last] == tree.hi[up[last]]).all()
        and (lo[~first] == np.roll(hi, 1)[~first]).all()
    )
    childless = set(range(leaves, nodes)) - set(tree.parent[:root].tolist())
    below, above = tree.loss[:root], tree.loss[tree.parent[:root]]
    finite = np.isfinite(tree.loss)
    rules = [
        ("children partition their parent", fills),
        ("only leaves have no children", not childless or (leaves == 0 and childless == {root})),
        ("losses never fall on the way up", bool((below <= above).all())),
        (
            "losses lie between 0 and 1, or are infinite",
            bool(((tree.loss[finite] >= 0) & (tree.loss[finite] <= 1)).all()),
        ),
        ("no loss is missing", not bool(np.isnan(tree.loss).any())),
        ("the root costs 1, or may not be published", tree.loss[root] in {1.0, np.inf}),
    ]
    if tree.width is not None:
        known = ~np.isnan(tree.width[:root]) & ~np.isnan(tree.width[tree.parent[:root]])
        narrower = tree.width[:root][known] > tree.width[tree.parent[:root]][known]
        rules.append(("widths never shrink on the way up", not bool(narrower.any())))
    return rules


def _level_rules(tree: Tree) -> list[tuple[str, bool]]:
    levels, root = tree.levels, tree.root
    codes = np.arange(tree.leaves)
    steps = all(bool(((below == above) | (tree.parent[below] == above)).all()) for below, above in pairwise(levels))
    return [
        ("level 0 are the leaves", bool((levels[0] == codes).all())),
        ("the last level is the root", bool((levels[-1] == root).all())),
        ("each level is the one below or its parent", steps),
        ("every node stands at some level", len(np.unique(levels)) == tree.nodes or tree.leaves == 0),
    ]


def _leaf_rules(tree: Tree) -> list[tuple[str, bool]]:
    null, unknown, root = tree.null_leaf, tree.unknown_leaf, tree.root
    rules = [
        ("only the null leaf has no label", [i for i, x in enumerate(tree.labels) if x is None] == [null] * (null >= 0))
    ]
    if null >= 0:
        rules.append(
            (
                "the null leaf is the last one, free, under the root",
                null == tree.leaves - 1 and tree.loss[null] == 0 and tree.parent[null] == root,
            )
        )
    if unknown >= 0:
        rules.append(
            (
                "the unknown leaf stands before the null leaf, under the root, and costs what the root costs",
                unknown == tree.leaves - 1 - (null >= 0)
                and tree.parent[unknown] == root
                and tree.loss[unknown] == tree.loss[root],
            )
        )
    return rules
