"""Make classes cheaper: a cheap group that no class uses is filled with signatures that dearer classes can spare.

Cost: one listing of the cheap groups, and a pass over them in the order of their loss.
"""

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.kernels.guard import accepts, asks
from kanon_spark.kernels.lattice import _class_table
from kanon_spark.kernels.listing import list_groups
from kanon_spark.kernels.problem import Problem

Ints = NDArray[np.int32]

_MOST_MEMBERS = 50_000_000  # of all cheap groups together; where there are more, nothing is stolen


def steal(problem: Problem, class_of: Ints, *, upto: float) -> Ints:
    """Fill cheap groups with signatures that dearer classes can spare; the loss never rises.

    Args:
        problem: What is being solved.
        class_of: Class of each signature (FREE ones stay out).
        upto: What a group may cost to be called cheap.
    """
    if class_of.max(initial=-1) < 1:
        return class_of
    forest = problem.forest
    placed = np.flatnonzero(class_of >= 0).astype(np.int32)
    groups = list_groups(problem, placed, above=-1.0, upto=upto, limit=_MOST_MEMBERS)
    if not groups.complete:
        return class_of
    order = np.lexsort((np.arange(groups.count), groups.cost)).astype(np.int64)
    return _steal(  # type: ignore[no-any-return]
        class_of.copy(), order, groups.cost, groups.offset, groups.members,
        problem.codes, problem.rows, problem.persons, problem.k, problem.guard.compiled,
        forest.start, forest.parent, forest.hi, forest.loss,
    )  # fmt: skip


@njit(cache=True)
def box_nodes(members, count, codes, start, parent, hi, out):  # type: ignore[no-untyped-def]
    """Lowest common ancestors of members[:count] into out."""
    for j in range(codes.shape[1]):
        least = codes[members[0], j]
        most = least
        for i in range(1, count):
            x = codes[members[i], j]
            if x < least:
                least = x
            elif x > most:
                most = x
        v = start[j] + least
        while hi[v] <= most:
            v = parent[v]
        out[j] = v


@njit(cache=True)
def _donors_stay_good(guard, picked, class_of, head, link, leaving, left):  # type: ignore[no-untyped-def]
    """Whether every class that gives up some of the picked signatures is still accepted."""
    for s in picked:
        leaving[s] = True
    good = True
    for i in range(len(picked)):
        c = class_of[picked[i]]
        size = 0
        x = head[c]
        while x >= 0:
            if not leaving[x]:
                left[size] = x
                size += 1
            x = link[x]
        if not accepts(guard, left[:size]):
            good = False
            break
    for s in picked:
        leaving[s] = False
    return good


@njit(cache=True, nogil=True)
def _steal(  # type: ignore[no-untyped-def]
    class_of, order, group_cost, offset, members, codes, rows, persons, k, guard, start, parent, hi, loss
):
    m, width = codes.shape
    count = 0
    for s in range(m):
        count = max(count, class_of[s] + 1)
    capacity = count + m
    first_nodes, _, first_persons = _class_table(class_of, count, codes, rows, persons, start, parent, hi)
    held = np.zeros(capacity, np.int64)
    held[:count] = first_persons
    cost = np.zeros(capacity)
    head = np.full(capacity, -1, np.int32)
    link = np.full(m, -1, np.int32)
    back = np.full(m, -1, np.int32)
    for c in range(count):
        for j in range(width):
            cost[c] += loss[first_nodes[c, j]]
    for s in range(m):
        c = class_of[s]
        if c >= 0:
            link[s] = head[c]
            if head[c] >= 0:
                back[head[c]] = s
            head[c] = s
    taken = np.zeros(capacity, np.int64)
    picked = np.empty(m, np.int32)
    box = np.empty(width, np.int32)
    asked = asks(guard)
    leaving = np.zeros(m if asked else 0, np.bool_)
    left = np.empty(m if asked else 0, np.int32)
    for g in order:
        # 1. Members whose class is dearer than the group and can spare them.
        n = 0
        gathered = 0
        for i in range(offset[g], offset[g + 1]):
            s = members[i]
            c = class_of[s]
            if cost[c] > group_cost[g] + 1e-12 and held[c] - taken[c] - persons[s] >= k:
                taken[c] += persons[s]
                picked[n] = s
                n += 1
                gathered += persons[s]
        for i in range(n):
            taken[class_of[picked[i]]] = 0
        if gathered < k or n == 0 or not accepts(guard, picked[:n]):
            continue
        if asked and not _donors_stay_good(guard, picked[:n], class_of, head, link, leaving, left):
            continue
        # 2. They become a class of their own; the classes they left can only get cheaper.
        new = count
        count += 1
        for i in range(n):
            s = picked[i]
            c = class_of[s]
            held[c] -= persons[s]
            if back[s] >= 0:
                link[back[s]] = link[s]
            else:
                head[c] = link[s]
            if link[s] >= 0:
                back[link[s]] = back[s]
        for i in range(n):
            c = class_of[picked[i]]
            inside = 0
            x = head[c]
            while x >= 0:
                picked[n + inside] = x
                inside += 1
                x = link[x]
            box_nodes(picked[n:], inside, codes, start, parent, hi, box)
            cost[c] = 0.0
            for j in range(width):
                cost[c] += loss[box[j]]
        box_nodes(picked, n, codes, start, parent, hi, box)
        for j in range(width):
            cost[new] += loss[box[j]]
        held[new] = gathered
        for i in range(n):
            s = picked[i]
            class_of[s] = new
            back[s] = -1
            link[s] = head[new]
            if head[new] >= 0:
                back[head[new]] = s
            head[new] = s
    return class_of
