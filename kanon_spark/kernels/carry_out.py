"""Carry out a choice of level vectors: good groups are released in turn, and what is left may join them.

Idea: vector by vector, the signatures that are left are grouped at the vector's levels; groups of at least k persons
that satisfy what is asked beyond k become classes, published at exactly these nodes. A signature that is left in the
end joins the class where the loss rises least, taking the classes as they were before anybody joined: so the answer
depends neither on the order in which signatures are asked nor on who asks. A class that was joined is published at the
lowest common ancestors of its nodes and its new members. A class takes nobody who would spoil it (`admission.py`): who
was refused asks again, a few times, among the classes that have not refused anybody.

Cost: one grouping of what is left per vector; the join looks at every class for every signature that is left, and stops
looking at a class as soon as it is dearer than the best so far.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.hierarchy.tree import Tree
from kanon_spark.kernels.admission import ROUNDS, admitted
from kanon_spark.kernels.guarded_groups import good_groups, guard_of_groups
from kanon_spark.kernels.ladders import Ladders
from kanon_spark.kernels.lattice import joined_cost
from kanon_spark.kernels.level_counts import LevelVector, number_groups
from kanon_spark.kernels.problem import OWN, Problem

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FlatTrees:
    """The full trees of all QIs one after the other, as compiled code sees them; losses hold the weights."""

    start: Longs
    parent: Ints
    lo: Ints
    hi: Ints
    loss: Floats

    @classmethod
    def of(cls, trees: Sequence[Tree], weights: Floats) -> "FlatTrees":
        """Put the trees behind each other."""
        start = np.concatenate([[0], np.cumsum([tree.nodes for tree in trees])]).astype(np.int64)
        parents = [np.where(tree.parent < 0, -1, tree.parent + base) for tree, base in zip(trees, start, strict=False)]
        return cls(
            start,
            np.concatenate(parents).astype(np.int32),
            np.concatenate([tree.lo for tree in trees]).astype(np.int32),
            np.concatenate([tree.hi for tree in trees]).astype(np.int32),
            np.concatenate([tree.loss * weight for tree, weight in zip(trees, weights, strict=True)]),
        )

    def cheapest(self, nodes: Ints, class_rows: Longs, codes: Ints, rows: Longs) -> tuple[Longs, Floats]:
        """For each signature the class that takes it at the least rise of the loss (the first of equals), and the rise.

        Args:
            nodes: Nodes of each class, classes by QIs.
            class_rows: Rows of each class.
            codes: Full leaf codes, signatures by QIs.
            rows: Rows of each signature.

        Returns:
            -1 and infinity where no class may take a signature.
        """
        everywhere = np.ascontiguousarray(nodes + self.start[:-1], dtype=np.int32)
        held = np.ascontiguousarray(codes)
        return _cheapest(everywhere, class_rows, held, rows, self.parent, self.lo, self.hi, self.loss)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Released:
    """Classes that a choice has made.

    Attributes:
        class_of: Class of each signature, numbered in the order of vectors and nodes; -1: left.
        nodes: Classes by QIs: the nodes at which each was released.
        published: The same once others have joined: the lowest nodes that cover them too.
        vectors: Number of the vector that released each class.
    """

    class_of: Ints
    nodes: Ints
    published: Ints
    vectors: Ints

    def of_each(self, of_class: Ints) -> Ints:
        """What a class publishes as what each signature publishes; OWN where it has no class."""
        out = np.full((len(self.class_of), of_class.shape[1]), OWN, np.int32)
        placed = self.class_of >= 0
        out[placed] = of_class[self.class_of[placed]]
        return out


def release_groups(ladders: Ladders, problem: Problem, vectors: Sequence[LevelVector]) -> Released:
    """Release good groups, vector by vector."""
    class_of = np.full(problem.size, -1, np.int32)
    made, by = [np.zeros((0, problem.forest.width), np.int32)], [np.zeros(0, np.int32)]
    left = np.flatnonzero(ladders.open(problem.codes))
    classes = 0
    for turn, levels in enumerate(vectors):
        codes = problem.codes[left]
        group_of, first = number_groups(ladders.places(codes, levels), ladders.sizes(levels))
        everybody = np.full(problem.size, -1, np.int64)
        everybody[left] = group_of
        large = np.bincount(group_of, problem.persons[left], len(first)) >= problem.k
        good = good_groups(problem.guard, everybody, large)
        number = np.where(good, classes + np.cumsum(good) - 1, -1)
        class_of[left] = number[group_of]
        made.append(ladders.nodes(codes[first[good]], levels))
        by.append(np.full(int(good.sum()), turn, np.int32))
        classes += int(good.sum())
        left = left[~good[group_of]]
    nodes = np.concatenate(made)
    return Released(class_of, nodes, nodes, np.concatenate(by))


def join_left(trees: Sequence[Tree], flat: FlatTrees, problem: Problem, released: Released) -> Released:
    """Let the signatures without a class join one, where one may take them and stays good."""
    left = np.flatnonzero(released.class_of < 0)
    placed = np.flatnonzero(released.class_of >= 0)
    if not len(left) or not len(placed):
        return released
    classes = len(released.nodes)
    class_rows = np.bincount(released.class_of[placed], problem.rows[placed], classes).astype(np.int64)
    class_of = released.class_of.copy()
    taking = np.arange(classes)  # classes that have not refused anybody
    asking = left
    for _ in range(ROUNDS):
        codes = full_codes(problem, asking)
        found, rise = flat.cheapest(released.nodes[taking], class_rows[taking], codes, problem.rows[asking])
        able = np.flatnonzero(found >= 0)
        able = able[np.argsort(rise[able], kind="stable")]  # those whose joining costs least are asked first
        asking, wanted = asking[able], taking[found[able]]
        taken = _taken(problem, class_of, classes, asking, wanted)
        class_of[asking[taken]] = wanted[taken]
        taking = np.setdiff1d(taking, wanted[~taken])
        asking = np.sort(asking[~taken])
        if not len(asking) or not len(taking):
            break
    joined = left[class_of[left] >= 0]
    published = widen(trees, released.nodes, class_of[joined], full_codes(problem, joined))
    return replace(released, class_of=class_of, published=published)


def _taken(problem: Problem, class_of: Ints, classes: int, asking: Longs, wanted: Longs) -> NDArray[np.bool_]:
    """Which signatures are taken by the classes that they want, whoever has joined them before."""
    if not problem.guard.asks:
        return np.ones(len(asking), np.bool_)
    number = class_of.astype(np.int64)
    number[asking] = classes + np.arange(len(asking))
    guard = guard_of_groups(problem.guard, number, classes + len(asking))
    return admitted(guard, np.arange(classes), wanted, classes + np.arange(len(asking)))


def widen(trees: Sequence[Tree], nodes: Ints, joined: NDArray[np.integer], codes: Ints) -> Ints:
    """Nodes of classes once signatures (full leaf codes) have joined them."""
    out = nodes.copy()
    touched = np.unique(joined)
    for j, tree in enumerate(trees):
        least = np.full(len(nodes), tree.leaves, np.int32)
        most = np.full(len(nodes), -1, np.int32)
        np.minimum.at(least, joined, codes[:, j])
        np.maximum.at(most, joined, codes[:, j])
        out[touched, j] = tree.lca(out[touched, j], tree.covering(least[touched], most[touched]))
    return out


def own_values(kinds: Sequence[str], roots: Sequence[int], nodes: Ints, published: Ints) -> Ints:
    """Nodes where there is a hierarchy; ranges and sets of a class's own values elsewhere, nothing above their root.

    Args:
        kinds: How each QI is measured.
        roots: Root of each QI's full tree.
        nodes: Nodes at which each class (or signature) was released: the root silences a range or set.
        published: The same once others have joined.
    """
    out = published.copy()
    for j, (kind, root) in enumerate(zip(kinds, roots, strict=True)):
        if kind != "node":
            out[:, j] = np.where(nodes[:, j] == root, root, OWN)
    return out


def full_codes(problem: Problem, members: Longs) -> Ints:
    """Full leaf codes of some signatures."""
    present = problem.forest.present
    return np.stack([present[j][problem.codes[members, j]] for j in range(problem.forest.width)], axis=1)


@njit(cache=True, nogil=True)
def _cheapest(nodes, class_rows, codes, rows, parent, lo, hi, loss):  # type: ignore[no-untyped-def]
    count, width = nodes.shape
    cost = np.zeros(count)
    for c in range(count):
        for j in range(width):
            cost[c] += loss[nodes[c, j]]
    best = np.full(len(rows), -1, np.int64)
    least = np.full(len(rows), np.inf)
    for s in range(len(rows)):
        for c in range(count):
            # rise < least  =>  new < limit; a little more, so that rounding never decides what is looked at.
            limit = (least[s] + class_rows[c] * cost[c]) / (class_rows[c] + rows[s]) * (1 + 1e-9) + 1e-9
            new = joined_cost(nodes[c], codes, s, parent, lo, hi, loss, limit)
            rise = class_rows[c] * (new - cost[c]) + rows[s] * new
            if rise < least[s]:
                least[s] = rise
                best[s] = c
    return best, least
