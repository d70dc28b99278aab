"""From signatures or trees to classes: three ways to cut, and the splitting of what came out too large.

- `merge_by_loss`: components under k unite with the partner that adds the least row-weighted loss, two at a time, where
  each is the other's choice; rounds until none is under k. Twice as good as any cut of the tree (algorithm and rule of
  the choices: ours).
- `grow_balanced`: tree edges, shortest first, unite while one side is under k.
- `cut_longest`: the paper's rule (graph based local recoding): without its n/k - 1 longest edges the tree falls into
  classes; those under k join the class with which their union loses least.
- `split_along_trees`: a class of 2k and more falls in two along its own tree wherever that is cheaper.

Where a guard asks more than k, "under k" means: under k, or not accepted.
"""

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.kernels.guard import Guard, accepts, asks
from kanon_spark.kernels.lattice import FREE, class_table, joined_node
from kanon_spark.kernels.levels import Levels
from kanon_spark.kernels.partners import cheapest_partners
from kanon_spark.kernels.problem import Forest, Problem
from kanon_spark.kernels.spanning import Edges, _find, _prim, _roots, components

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

_SPLIT_LIMIT = 4_096  # signatures of one class whose tree is worth building


def merge_by_loss(problem: Problem, *, stop: float = np.inf) -> Ints:
    """Classes by rounds of mutual choices; FREE is what no class below the stop could take.

    Args:
        problem: Signatures and trees.
        stop: In a block: the loss at which unions begin to leave it. A choice counts only where nothing outside could
            be cheaper; components that end under k stay open.
    """
    boxes = (problem.codes + problem.forest.start[:-1]).astype(np.int32)
    return merge_boxes(problem.forest, problem.k, boxes, problem.rows, problem.persons, problem.guard, stop=stop)


def merge_boxes(
    forest: Forest, k: int, nodes: Ints, rows: Longs, persons: Longs, guard: Guard, *, stop: float = np.inf
) -> Ints:
    """The same for boxes (one tree node per QI each), which are the guard's units."""
    component = np.arange(len(nodes), dtype=np.int32)
    while True:
        asking = np.flatnonzero(~good_components(k, guard, persons)).astype(np.int32)
        partner, added = cheapest_partners(forest, nodes, rows, asking)
        if np.isfinite(stop):
            outside = (stop - forest.loss[nodes[asking]].sum(axis=1)) * rows[asking]
            partner = np.where(added <= outside, partner, -1).astype(np.int32)
        pairs = _mutual(asking, partner, added, len(nodes))
        if not len(pairs):
            break
        name, nodes, rows, persons = _united(pairs, nodes, rows, persons, forest.parent, forest.lo, forest.hi)
        guard = guard.merged(name, len(nodes))
        component = name[component]
    closed = good_components(k, guard, persons)
    number = np.where(closed, np.cumsum(closed) - 1, FREE)
    return number[component].astype(np.int32)


def good_components(k: int, guard: Guard, persons: Longs) -> NDArray[np.bool_]:
    """Which components have k persons and are accepted; they are the guard's units."""
    good: NDArray[np.bool_] = persons >= k
    if guard.asks:
        good &= guard.satisfied(np.arange(len(persons)), len(persons))
    return good


def grow_balanced(problem: Problem, tree: Edges) -> Ints:
    """Classes along the tree, shortest edges first, while one of the two sides is under k or not accepted."""
    root = _grow(tree.a, tree.b, problem.persons.copy(), problem.k, problem.guard.compiled)
    return _numbered(root, problem)


def cut_longest(problem: Problem, tree: Edges) -> Ints:
    """The paper's classes: the tree without its longest edges, then what is under k merged at the least NCP."""
    cuts = max(0, min(int(problem.persons.sum()) // problem.k - 1, tree.count))
    kept = tree.count - cuts
    _, class_of = np.unique(components(tree.a[:kept], tree.b[:kept], problem.size), return_inverse=True)
    component = class_of.astype(np.int32)
    nodes, rows, persons = class_table(problem, component)
    guard = problem.guard.merged(component, len(nodes))
    forest = problem.forest
    while True:
        asking = np.flatnonzero(~good_components(problem.k, guard, persons)).astype(np.int32)
        partner, _ = cheapest_partners(forest, nodes, rows, asking, by_union=True)
        # The smallest first; whoever was touched in this round asks again in the next.
        touched = np.zeros(len(nodes), np.bool_)
        pairs = []
        for at in np.lexsort((asking, persons[asking])):
            one, other = int(asking[at]), int(partner[at])
            if other >= 0 and not touched[one] and not touched[other]:
                touched[[one, other]] = True
                pairs.append((one, other))
        if not pairs:
            break
        name, nodes, rows, persons = _united(
            np.array(pairs, np.int32), nodes, rows, persons, forest.parent, forest.lo, forest.hi
        )
        guard = guard.merged(name, len(nodes))
        component = name[component]
    return _numbered(component, problem)


def split_along_trees(problem: Problem, class_of: Ints, levels: Levels) -> Ints:
    """Split classes of 2k persons and more along the longest edge of their own tree that makes the two parts cheaper.

    Parts are tried again. No part is under k or refused by the guard, and the loss never rises.
    """
    _, _, persons = class_table(problem, class_of)
    out = class_of.copy()
    order = np.argsort(class_of, kind="stable").astype(np.int32)
    edges = np.searchsorted(class_of[order], np.arange(len(persons) + 1))
    count = len(persons)
    forest = problem.forest
    for number in np.flatnonzero(persons >= 2 * problem.k):
        members = order[edges[number] : edges[number + 1]]
        if not 1 < len(members) <= _SPLIT_LIMIT:
            continue
        part = _split(
            np.ascontiguousarray(problem.codes[members]), problem.rows[members], problem.persons[members], problem.k,
            problem.guard.compiled, members,
            levels.up, levels.begin, levels.height, levels.unit,
            forest.start, forest.parent, forest.hi, forest.loss,
        )  # fmt: skip
        out[members] = np.where(part == 0, number, count + part - 1)
        count += int(part.max())
    return out


def _numbered(component: Ints, problem: Problem) -> Ints:
    """Components as classes without gaps; those that are not good, or must not be published, are FREE."""
    _, inverse = np.unique(component, return_inverse=True)
    class_of = inverse.astype(np.int32)
    nodes, _, persons = class_table(problem, class_of)
    good = good_components(problem.k, problem.guard.merged(class_of, len(persons)), persons)
    closed = good & np.isfinite(problem.forest.loss[nodes].sum(axis=1))
    number = np.where(closed, np.cumsum(closed) - 1, FREE)
    return number[class_of].astype(np.int32)


def _mutual(asking: Ints, partner: Ints, added: NDArray[np.float64], count: int) -> Ints:
    """Pairs that choose each other; a component that does not ask takes its cheapest suitor."""
    choice = np.full(count, -1, np.int32)
    asks = np.zeros(count, np.bool_)
    asks[asking] = True
    choice[asking] = partner
    # Cheapest suitor of each: sorted by cost, the first one stays.
    order = np.lexsort((asking, added))
    order = order[partner[order] >= 0]
    wanted, first = np.unique(partner[order], return_index=True)
    suitor = np.full(count, -1, np.int32)
    suitor[wanted] = asking[order[first]]
    choice[~asks] = suitor[~asks]
    one = np.flatnonzero(choice >= 0)
    other = choice[one]
    mutual = (choice[other] == one) & (one < other)
    return np.stack([one[mutual], other[mutual]], axis=1).astype(np.int32)


@njit(cache=True)
def _united(pairs, nodes, rows, persons, parent, lo, hi):  # type: ignore[no-untyped-def]
    """Unite the pairs (no component is in two); new name of each old component, and the new components."""
    count, width = nodes.shape
    into = np.full(count, -1, np.int32)
    for i in range(len(pairs)):
        into[pairs[i, 1]] = pairs[i, 0]
    name = np.empty(count, np.int32)
    left = 0
    for c in range(count):
        if into[c] < 0:
            name[c] = left
            left += 1
    for c in range(count):
        if into[c] >= 0:
            name[c] = name[into[c]]
    new_nodes = np.empty((left, width), np.int32)
    new_rows = np.zeros(left, np.int64)
    new_persons = np.zeros(left, np.int64)
    for c in range(count):
        if into[c] < 0:
            new_nodes[name[c]] = nodes[c]
    for c in range(count):
        t = name[c]
        new_rows[t] += rows[c]
        new_persons[t] += persons[c]
        if into[c] >= 0:
            for j in range(width):
                new_nodes[t, j] = joined_node(new_nodes[t, j], nodes[c, j], parent, lo, hi)
    return name, new_nodes, new_rows, new_persons


@njit(cache=True)
def _grow(a, b, persons, k, guard):  # type: ignore[no-untyped-def]
    count = len(persons)
    root = np.arange(count).astype(np.int32)
    asked = asks(guard)
    # Members of each component in a ring, so that two rings become one by exchanging two links.
    ring = np.arange(count if asked else 0).astype(np.int32)
    buffer = np.empty(count if asked else 0, np.int32)
    good = persons >= k
    if asked:
        for s in range(count):
            buffer[0] = s
            good[s] = good[s] and accepts(guard, buffer[:1])
    for i in range(len(a)):
        x, y = _find(root, a[i]), _find(root, b[i])
        if x == y or (good[x] and good[y]):
            continue
        into = min(x, y)
        root[max(x, y)] = into
        persons[into] = persons[x] + persons[y]
        good[into] = persons[into] >= k
        if asked:
            ring[x], ring[y] = ring[y], ring[x]
            if good[into]:
                size = 0
                s = into
                while size == 0 or s != into:
                    buffer[size] = s
                    size += 1
                    s = ring[s]
                good[into] = accepts(guard, buffer[:size])
    return _roots(root)


@njit(cache=True)
def _box_loss(members, part, which, codes, rows, start, parent, hi, loss):  # type: ignore[no-untyped-def]
    """Row-weighted loss of the members of one part."""
    held = 0
    total = 0.0
    for j in range(codes.shape[1]):
        least, most = 2147483647, -1
        held = 0
        for s in members:
            if part[s] == which:
                held += rows[s]
                least = min(least, codes[s, j])
                most = max(most, codes[s, j])
        v = start[j] + least
        while hi[v] <= most:
            v = parent[v]
        total += loss[v]
    return held * total


@njit(cache=True, nogil=True)
def _split(codes, rows, persons, k, guard, ids, up, begin, height, unit, start, parent, hi, loss):  # type: ignore[no-untyped-def]
    size = codes.shape[0]
    asked = asks(guard)
    a, b, w = _prim(codes, up, begin, height, unit)
    order = np.argsort(-w, kind="mergesort")
    alive = np.ones(len(a), np.bool_)
    part = np.zeros(size, np.int32)
    everyone = np.arange(size)
    parts = 1
    current = 0
    side = np.empty(size, np.int32)
    while current < parts:
        inside = 0
        for s in range(size):
            if part[s] == current:
                inside += persons[s]
        found = False
        if inside >= 2 * k:
            before = _box_loss(everyone, part, current, codes, rows, start, parent, hi, loss)
            for e in order:
                if not alive[e] or part[a[e]] != current:
                    continue
                # Everything that hangs on b's end of this edge: spread over the living edges of the part.
                side[:] = part
                side[b[e]] = parts
                moved = True
                while moved:
                    moved = False
                    for f in range(len(a)):
                        if alive[f] and f != e and part[a[f]] == current:
                            x, y = a[f], b[f]
                            if side[x] == parts and side[y] == current:
                                side[y] = parts
                                moved = True
                            elif side[y] == parts and side[x] == current:
                                side[x] = parts
                                moved = True
                there = 0
                for s in range(size):
                    if side[s] == parts:
                        there += persons[s]
                if there < k or inside - there < k:
                    continue
                after = _box_loss(everyone, side, current, codes, rows, start, parent, hi, loss)
                after += _box_loss(everyone, side, parts, codes, rows, start, parent, hi, loss)
                if after < before - 1e-12:
                    if asked:
                        here, apart = ids[side == current], ids[side == parts]
                        if not accepts(guard, here) or not accepts(guard, apart):
                            continue
                    alive[e] = False
                    part[:] = side
                    parts += 1
                    found = True
                    break
        if not found:
            current += 1
    return part
