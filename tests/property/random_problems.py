"""Random small problems for kernels, and slow, obvious ways to look at them."""

from itertools import product

import numpy as np
from hypothesis import strategies as st

from kanon_spark.hierarchy.tree import Tree
from kanon_spark.kernels.problem import Forest, Problem


def random_tree(rng: np.random.Generator, leaves: int, *, forbid_root: bool = False) -> Tree:
    """A random tree over the leaves: neighbours are merged level by level; losses rise strictly on the way up."""
    nodes = [(x, x + 1) for x in range(leaves)]
    parent = [-1] * leaves
    loss = [0.0] * leaves
    levels = [list(range(leaves))]
    while len(set(levels[-1])) > 1:
        below = levels[-1]
        order = sorted(set(below), key=lambda v: nodes[v][0])
        current: dict[int, int] = {}
        group: list[int] = []
        for v in order:
            group.append(v)
            if rng.random() < 0.5 or v == order[-1]:
                made = len(nodes)
                nodes.append((nodes[group[0]][0], nodes[group[-1]][1]))
                parent.append(-1)
                loss.append(max(loss[u] for u in group) + float(rng.integers(1, 5)) / 16)
                for u in group:
                    parent[u] = made
                    current[u] = made
                group = []
        levels.append([current[v] for v in below])
    if forbid_root and leaves > 1:
        loss[-1] = np.inf
    return Tree(
        labels=tuple(f"n{v}" for v in range(len(nodes))),
        parent=np.array(parent, np.int32),
        lo=np.array([a for a, _ in nodes], np.int32),
        hi=np.array([b for _, b in nodes], np.int32),
        loss=np.array(loss),
        levels=np.array(levels, np.int32),
    )


def random_problem(seed: int, *, size: int, width: int, k: int, forbid_root: bool = False) -> Problem:
    """Distinct signatures with rows and (no more) persons over random trees."""
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, int(rng.integers(1, 7)), forbid_root=forbid_root and j == 0) for j in range(width)]
    codes = np.unique(np.stack([rng.integers(0, tree.leaves, size) for tree in trees], axis=1).astype(np.int32), axis=0)
    present = [np.isin(np.arange(tree.leaves), codes[:, j]) for j, tree in enumerate(trees)]
    forest = Forest.of(trees, np.array([1.0, 2.0, 0.5, 1.0][:width]), present)
    rows = rng.integers(1, 4, len(codes)).astype(np.int64)
    persons = np.minimum(rows, rng.integers(0, 4, len(codes))).astype(np.int64)
    return Problem(forest, np.asfortranarray(forest.encode(codes)), rows, persons, k)


@st.composite
def problems(draw: st.DrawFn, *, largest: int = 14, forbid_root: bool = False) -> Problem:
    """Problems of one to three QIs; with `forbid_root`, some whose first QI must not publish its root."""
    return random_problem(
        draw(st.integers(0, 10**6)),
        size=draw(st.integers(1, largest)),
        width=draw(st.integers(1, 3)),
        k=draw(st.integers(1, 5)),
        forbid_root=draw(st.booleans()) if forbid_root else False,
    )


def ancestors(forest: Forest, qi: int, code: int) -> list[int]:
    """A leaf's node and all nodes above it, lowest first."""
    found = [int(forest.start[qi] + code)]
    while forest.parent[found[-1]] >= 0:
        found.append(int(forest.parent[found[-1]]))
    return found


def lowest_common(forest: Forest, qi: int, codes: list[int]) -> int:
    """The lowest node that is an ancestor of all these leaves."""
    common = set(ancestors(forest, qi, codes[0]))
    for code in codes[1:]:
        common &= set(ancestors(forest, qi, code))
    return min(common)


def class_loss(problem: Problem, members: list[int]) -> float:
    """Loss per row of a class, from its members alone."""
    forest = problem.forest
    return sum(
        float(forest.loss[lowest_common(forest, j, [int(problem.codes[s, j]) for s in members])])
        for j in range(forest.width)
    )


def closed_groups(problem: Problem, members: list[int]) -> dict[tuple[int, ...], float]:
    """Every closed group of at least k persons among these signatures, by trying every tuple of nodes."""
    forest = problem.forest
    found: dict[tuple[int, ...], float] = {}
    ranges = [range(int(forest.start[j]), int(forest.start[j + 1])) for j in range(forest.width)]
    for nodes in product(*ranges):
        inside = tuple(
            s for s in members if all(forest.lo[v] <= problem.codes[s, j] < forest.hi[v] for j, v in enumerate(nodes))
        )
        if inside and problem.persons[list(inside)].sum() >= problem.k:
            found[inside] = class_loss(problem, list(inside))
    return found
