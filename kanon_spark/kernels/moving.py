"""Classes become cheaper by moves to where the neighbours stand; what is free joins them the same way.

Idea: where a guard is hard to satisfy, closing cheap groups uses up what would have balanced others, and the rest ends
in groups that cost nearly everything. But most of what is left has neighbours in good classes that can take it, one by
one, for much less. So every signature, the dearest first, looks at the classes of its neighbours, and moves to the one
where the loss of both classes falls most; sweeps follow each other until nothing moves. The loss of what has a class
never rises, and neither k nor the guard is ever broken on the way.

Cost: per signature, its neighbours' boxes and the members of its own class; of a large class the box is not measured
again for each that leaves it. A guard is asked only about moves that pay.
"""

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.kernels.guard import accepts, asks
from kanon_spark.kernels.kmember import neighbours
from kanon_spark.kernels.lattice import FREE, class_table, joined_cost, joined_node, loss_of_each
from kanon_spark.kernels.measure import Measured
from kanon_spark.kernels.problem import Problem
from kanon_spark.kernels.stealing import box_nodes
from kanon_spark.kernels.trie import plant

Ints = NDArray[np.int32]

# Neighbours at whose classes a free signature looks; more of them only where all the classes of fewer are too dear.
_NEIGHBOURS = (24, 192)
_SWEEPS = 4  # three of them find all but a few hundredths of a percent
_JOIN_SWEEPS = 2  # where only the free look for a class: those who came first look once more
_LARGE = 256  # members of a class whose box is taken to stay what it is when one of them leaves
_LOOKS = 20_000  # members that may be looked at per signature, all sweeps together
_LEAST = 1e-9  # gain that is worth a move


def move_to_neighbours(
    problem: Problem, class_of: Ints, near: Ints, *, open_cost: float = np.inf, sweeps: int | None = None
) -> Ints:
    """Good classes made cheaper; what no neighbour's class may take stays FREE.

    Args:
        problem: Signatures, trees, k and the guard.
        class_of: Class of each signature, all of them good; FREE for none.
        near: Neighbours of each signature, as `near_each` gives them; none for those that are to stay where they are.
        open_cost: What a row that stays FREE will cost elsewhere: it joins no class that would lose as much by it.
        sweeps: How often everyone is asked, at most; None: until hardly anything moves.
    """
    forest = problem.forest
    class_of = class_of.copy()
    looks = float(_LOOKS) * problem.size
    asking = near.max(axis=1, initial=-1) >= 0
    for _ in range(_SWEEPS if sweeps is None else sweeps):
        nodes, rows, persons = class_table(problem, class_of)
        # What is free, and what stands dearest, first; of these what many rows share.
        order = np.lexsort((-problem.rows, -loss_of_each(problem, class_of))).astype(np.int32)
        order = order[asking[order]]
        moved, looked = _sweep(
            order, near, problem.codes, problem.rows, problem.persons, problem.k, problem.guard.compiled,
            forest.start, forest.parent, forest.lo, forest.hi, forest.loss,
            class_of, nodes, rows, persons, (_LARGE, looks, open_cost),
        )  # fmt: skip
        looks -= looked
        if not moved or looks <= 0:
            break
    return class_of


def join_placed(problem: Problem, class_of: Ints, *, open_cost: float) -> Ints:
    """What is free joins classes of the placed signatures that are nearest to it; it stays FREE where that is too dear.

    Where a guard is hard to satisfy, the nearest of all are often free for the same reason, and of no help.

    Args:
        problem: Signatures, trees, k and the guard.
        class_of: Class of each signature, all of them good; FREE for none.
        open_cost: What a row that stays FREE costs.
    """
    measured = Measured.of(problem)
    for count in _NEIGHBOURS:
        free, placed = (np.flatnonzero(each).astype(np.int32) for each in (class_of == FREE, class_of != FREE))
        if not len(free) or not len(placed):
            break
        near = np.full((problem.size, count), -1, np.int32)
        near[free] = neighbours(measured, plant(measured, placed), free, problem.persons, count)
        class_of = move_to_neighbours(problem, class_of, near, open_cost=open_cost, sweeps=_JOIN_SWEEPS)
    return class_of


@njit(cache=True, nogil=True)
def _sweep(  # type: ignore[no-untyped-def]
    order, near, codes, rows, persons, k, guard, start, parent, lo, hi, loss, class_of, nodes, held, people, limits
):
    """One look at every signature, in turn; the classes change in place. Returns moves and looks."""
    count, width = nodes.shape
    large, looks, open_cost = limits
    asked = asks(guard)
    cost = np.zeros(count)
    size = np.zeros(count, np.int64)
    head = np.full(count, FREE, np.int32)
    after = np.full(len(class_of), FREE, np.int32)
    before = np.full(len(class_of), FREE, np.int32)
    for c in range(count):
        for j in range(width):
            cost[c] += loss[nodes[c, j]]
    for s in range(len(class_of)):
        if class_of[s] >= 0:
            _enter(s, class_of[s], head, after, before, size)
    room = np.empty(len(class_of), np.int32)
    box = np.empty(width, np.int32)
    moved = 0
    looked = 0
    for s in order:
        own = class_of[s]
        left = 0.0  # loss per row of the class without it
        best = rows[s] * open_cost
        if looked > looks:
            break
        if own >= 0:
            if cost[own] <= 0.0 or people[own] - persons[s] < k or size[own] == 1:
                continue
            left = cost[own]
            box[:] = nodes[own]
            if size[own] <= large:
                box_nodes(room, _members(room, 0, head[own], after, s), codes, start, parent, hi, box)
                left = 0.0
                for j in range(width):
                    left += loss[box[j]]
                looked += size[own]
            best = held[own] * cost[own] - (held[own] - rows[s]) * left - _LEAST
        chosen = FREE
        for t in near[s]:
            c = class_of[t] if t >= 0 else FREE
            if c < 0 or c == own or c == chosen:  # noqa: SIM109 (numba compares no mixed tuple)
                continue
            # held·(new - old) + rows·new < best  ⇒  new < (best + held·old) / (held + rows)
            limit = (best + held[c] * cost[c]) / (held[c] + rows[s])
            new = joined_cost(nodes[c], codes, s, parent, lo, hi, loss, limit)
            rise = held[c] * (new - cost[c]) + rows[s] * new
            if rise < best:
                if asked:
                    room[0] = s
                    looked += size[c]
                    if not accepts(guard, room[: _members(room, 1, head[c], after, FREE)]):
                        continue
                best = rise
                chosen = c
        if chosen < 0:
            continue
        if own >= 0:
            if asked:
                looked += size[own]
                if not accepts(guard, room[: _members(room, 0, head[own], after, s)]):
                    continue
            _leave(s, own, head, after, before, size)
            held[own] -= rows[s]
            people[own] -= persons[s]
            cost[own] = left
            nodes[own] = box
        _enter(s, chosen, head, after, before, size)
        class_of[s] = chosen
        held[chosen] += rows[s]
        people[chosen] += persons[s]
        cost[chosen] = 0.0
        for j in range(width):
            nodes[chosen, j] = joined_node(nodes[chosen, j], start[j] + codes[s, j], parent, lo, hi)
            cost[chosen] += loss[nodes[chosen, j]]
        moved += 1
    return moved, looked


@njit(cache=True)
def _members(room, size, first, after, without):  # type: ignore[no-untyped-def]
    """Put the members of a class but one into the room, after the first `size` there; how many there are then."""
    while first >= 0:
        if first != without:
            room[size] = first
            size += 1
        first = after[first]
    return size


@njit(cache=True)
def _enter(s, c, head, after, before, size):  # type: ignore[no-untyped-def]
    before[s] = FREE
    after[s] = head[c]
    if head[c] >= 0:
        before[head[c]] = s
    head[c] = s
    size[c] += 1


@njit(cache=True)
def _leave(s, c, head, after, before, size):  # type: ignore[no-untyped-def]
    if before[s] >= 0:
        after[before[s]] = after[s]
    else:
        head[c] = after[s]
    if after[s] >= 0:
        before[after[s]] = before[s]
    size[c] -= 1
