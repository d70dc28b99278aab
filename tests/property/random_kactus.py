"""Random labelled tables for `kactus`, and random trees with a literal way to prune them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st
from random_guards import Guarded, guarded
from random_measures import random_measured
from random_problems import random_problem, random_tree

from kanon_spark.hierarchy.tree import Tree
from kanon_spark.kernels.kactus_pruning import Asked, Holding, Loan, lendable, prune
from kanon_spark.kernels.problem import Problem
from kanon_spark.kernels.regions import Path
from kanon_spark.kernels.value_sums import ValueSums
from kanon_spark.methods.base import Piece, Solution
from kanon_spark.methods.kactus import Kactus


@dataclass
class World:
    """A random table of labelled signatures."""

    problem: Problem
    trees: tuple[Tree, ...]

    def solve(self, method: Kactus, path: Path = ()) -> Solution:
        problem, cost = self.problem, 1.0 * len(self.trees)
        return method.solve(Piece(problem, np.inf, problem.size, cost, 0, path=path, trees=self.trees))

    def part(self, members: np.ndarray) -> "World":
        given = self.problem
        assert given.labels is not None
        part = replace(
            given,
            codes=np.asfortranarray(given.codes[members]),
            rows=given.rows[members],
            persons=given.persons[members],
            labels=given.labels[members],
            guard=given.guard.take(members),
        )
        return World(part, self.trees)

    @property
    def roots(self) -> np.ndarray:
        return np.array([tree.root for tree in self.trees])

    def categorical(self, j: int) -> bool:
        measure = self.problem.measure
        assert measure is not None
        return measure.kinds[j] == "set" or bool(np.isnan(measure.positions[j]).all())


@st.composite
def worlds(draw: st.DrawFn, *, largest: int = 40) -> World:
    """One to four QIs of all kinds; some hierarchies are of words, some of numbers, and some values are null.

    Some labels follow a value, so that trees have something to find.
    """
    seed, width = draw(st.integers(0, 10**6)), draw(st.integers(1, 4))
    forbid = draw(st.sampled_from([False, False, True]))
    problem = random_measured(
        seed,
        size=draw(st.sampled_from([1, 4, largest // 4, largest // 2, largest])),
        width=width,
        k=draw(st.integers(1, 6)),
        forbid_root=forbid,
        labels=draw(st.sampled_from([1, 2, 2, 3])),
    )
    assert problem.labels is not None
    if draw(st.booleans()):
        sure = problem.codes.sum(axis=1) % problem.labels.shape[1]
        problem = replace(problem, labels=problem.rows[:, None] * (sure[:, None] == np.arange(problem.labels.shape[1])))
    rng = np.random.default_rng(seed)  # as random_problem draws them
    trees = tuple(random_tree(rng, int(rng.integers(1, 7)), forbid_root=forbid and j == 0) for j in range(width))
    assert problem.measure is not None
    words = draw(st.lists(st.booleans(), min_size=width, max_size=width))
    positions = tuple(
        np.full(len(position), np.nan) if kind == "set" or (kind == "node" and word) else position
        for kind, word, position in zip(problem.measure.kinds, words, problem.measure.positions, strict=True)
    )
    return World(replace(problem, measure=replace(problem.measure, positions=positions)), trees)


@dataclass
class RandomTree:
    """A tree whose leaves hold signatures, each with so many persons; `world` is there where more than k is asked."""

    children: list[list[int]]
    members: dict[int, list[int]]
    persons: list[int]
    k: int
    world: Guarded | None = None

    def guarded(self, seed: int) -> "RandomTree":
        """The same tree with random sensitive values and demands."""
        persons = np.array(self.persons, np.int64)
        codes = np.zeros((len(persons), 1), np.int32, order="F")
        forest = random_problem(0, size=1, width=1, k=1).forest
        return replace(self, world=guarded(Problem(forest, codes, persons, persons, self.k), seed))

    @property
    def asked(self) -> Asked:
        return Asked(self.k, None if self.world is None else self.world.problem.guard.demands)

    def good(self, held: Iterable[int]) -> bool:
        members = sorted(held)
        if self.world is not None:
            return self.world.good(members)
        return sum(self.persons[s] for s in members) >= self.k

    def values(self, members: Sequence[int]) -> ValueSums | None:
        if self.world is None:
            return None
        guard = self.world.problem.guard
        return ValueSums.of_members(guard.histograms, guard.demands, np.array(members, np.int64))

    def holding(self, node: int, members: Sequence[int]) -> Holding:
        persons = sum(self.persons[s] for s in members)
        loans = lendable([Loan(self.persons[s], s, self.values([s])) for s in members], self.k)
        return Holding(len(members), persons, (node,), (), loans, self.values(members))

    def below(self, node: int) -> list[int]:
        """The node and everything under it, in the order of the numbers."""
        found = [node]
        for each in found:
            found += self.children[each]
        return sorted(found)


@st.composite
def random_trees(draw: st.DrawFn) -> RandomTree:
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    nodes, k = draw(st.integers(1, 30)), draw(st.integers(1, 8))
    children: list[list[int]] = [[] for _ in range(nodes)]
    for node in range(1, nodes):
        children[int(rng.integers(max(0, node - 6), node))].append(node)
    leaves = [node for node in range(nodes) if not children[node]]
    persons = rng.integers(0, draw(st.integers(1, 14)) + 1, draw(st.integers(0, 80))).tolist()
    members: dict[int, list[int]] = {leaf: [] for leaf in leaves}
    for s in range(len(persons)):
        members[leaves[int(rng.integers(len(leaves)) ** 2 % len(leaves))]].append(s)
    return RandomTree(children, members, persons, k)


Found = tuple[set[tuple[int, frozenset[int]]], frozenset[int]]


def literal_prune(tree: RandomTree) -> Found:
    """The rules of the paper, word for word, on sets of signatures: the classes with their nodes, and what is left."""
    released: set[tuple[int, frozenset[int]]] = set()

    def count(held: set[int]) -> int:
        return sum(tree.persons[s] for s in held)

    def visit(node: int) -> set[int]:
        if not tree.children[node]:
            return set(tree.members[node])
        leaves = {child: visit(child) for child in tree.children[node]}
        complying = {child: held for child, held in leaves.items() if tree.good(held)}
        pruned: set[int] = set().union(*(held for child, held in leaves.items() if child not in complying))
        if pruned and not tree.good(pruned) and complying:
            for child in sorted(complying, key=lambda child: -count(complying[child])):
                lent: set[int] = set()
                for s in sorted(complying[child], key=lambda s: (tree.persons[s], s)):
                    if tree.persons[s] > 0 and count(lent) < tree.k and not tree.good(pruned | lent):
                        lent.add(s)
                if tree.good(pruned | lent) and tree.good(complying[child] - lent):
                    complying[child] -= lent
                    pruned |= lent
                    break
            else:
                smallest = sorted(complying, key=lambda child: count(complying[child]))
                for last in range(1, len(smallest) + 1):
                    joined = pruned.union(*(complying[child] for child in smallest[:last]))
                    if tree.good(joined):
                        pruned = joined
                        complying = {child: held for child, held in complying.items() if child not in smallest[:last]}
                        break
        released.update((child, frozenset(held)) for child, held in complying.items())
        return pruned

    left = visit(0)
    return released, frozenset(left)


def as_sets(tree: RandomTree, members: dict[int, list[int]], held: Holding, lent: set[int]) -> frozenset[int]:
    own = {s for leaf in held.leaves for s in members[leaf]}
    return frozenset((own - lent) | set(held.borrowed))


def found_by_prune(
    tree: RandomTree, children: list[list[int]], members: dict[int, list[int]], names: Sequence[int]
) -> Found:
    """What the kernel finds on a tree (or a part of it, whose nodes are renumbered), as sets of signatures."""
    pruned = prune(children, {leaf: tree.holding(leaf, held) for leaf, held in members.items()}, tree.asked)
    lent = {s for _, held in [*pruned.released, (0, pruned.left)] for s in held.borrowed}
    released = {(names[node], as_sets(tree, members, held, lent)) for node, held in pruned.released}
    return released, as_sets(tree, members, pruned.left, lent)
