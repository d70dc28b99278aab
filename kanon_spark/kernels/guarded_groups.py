"""Many groups of signatures at once, held against a guard.

Idea: signatures are put in the order of their groups by counting, and each group's histogram is put together in the
guard's scratch. So a grouping costs what its members hold, without sorting all entries of the table.

Cost: one look at each entry of the members' histograms, and sorting the distinct values of each group.
"""

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.kernels.guard import Guard
from kanon_spark.privacy.demands import members_satisfy
from kanon_spark.privacy.histograms import Histograms, gather

Bools = NDArray[np.bool_]
Longs = NDArray[np.int64]


def good_groups(guard: Guard, group_of: NDArray[np.integer], large: Bools) -> Bools:
    """Which of the large groups satisfy everything that is asked; signatures of a negative group are left out.

    Args:
        guard: What is asked of the signatures' groups.
        group_of: Group of each signature.
        large: Per group, whether it has enough persons: no other is looked at.
    """
    if not guard.asks:
        return large
    order, first = _in_groups(group_of.astype(np.int64), len(large))
    found: Bools = _judge(guard, order, first, large)
    return found


def histograms_by_unit(guard: Guard, members: Longs, unit_of: Longs, units: int) -> Histograms:
    """Histograms of units that are made of some of the guard's signatures; `unit_of` gives the unit of each member."""
    order, first = _in_groups(unit_of, units)
    start, values, counts, persons = _merge(guard, members[order], first)
    return Histograms(guard.histograms.columns, start, values, counts, persons)


def guard_of_groups(guard: Guard, group_of: NDArray[np.integer], groups: int) -> Guard:
    """The guard of a table whose rows are these groups; it shares the room of the one it is made from."""
    if not guard.asks:
        return guard
    everybody = np.arange(len(group_of), dtype=np.int64)
    return guard._replace(histograms=histograms_by_unit(guard, everybody, group_of.astype(np.int64), groups))


def first_to_stay_good(guard: Guard, class_of: NDArray[np.integer], candidates: Longs) -> int:
    """The first of some classes that satisfies everything with all signatures that have no class; -1 if none does."""
    if not guard.asks:
        return int(candidates[0]) if len(candidates) else -1
    order, first = _in_groups(class_of.astype(np.int64), int(class_of.max(initial=-1)) + 1)
    return int(_first_good(guard, order, first, np.flatnonzero(class_of < 0), candidates))


@njit(cache=True)
def _in_groups(group_of, groups):  # type: ignore[no-untyped-def]
    """Places of the signatures, group by group in their order, and where each group begins."""
    first = np.zeros(groups + 1, np.int64)
    for g in group_of:
        if g >= 0:
            first[g + 1] += 1
    first = np.cumsum(first)
    order = np.empty(first[-1], np.int64)
    place = first[:-1].copy()
    for s in range(len(group_of)):
        g = group_of[s]
        if g >= 0:
            order[place[g]] = s
            place[g] += 1
    return order, first


@njit(cache=True)
def _judge(guard, order, first, large):  # type: ignore[no-untyped-def]
    found = np.zeros(len(large), np.bool_)
    for g in range(len(large)):
        if large[g]:
            members = order[first[g] : first[g + 1]]
            found[g] = members_satisfy(guard.demands, guard.histograms, members, guard.scratch)
    return found


@njit(cache=True)
def _merge(guard, members, first):  # type: ignore[no-untyped-def]
    columns, units = guard.histograms.columns, len(first) - 1
    room = 0
    for s in members:
        room += guard.histograms.start[(s + 1) * columns] - guard.histograms.start[s * columns]
    start = np.zeros(units * columns + 1, np.int64)
    values = np.empty(room, np.int32)
    counts = np.empty(room, np.int64)
    persons = np.empty(units, np.int64)
    used = 0
    for u in range(units):
        mine = members[first[u] : first[u + 1]]
        begin, held, numbers, persons[u] = gather(guard.histograms, mine, guard.demands.base, guard.scratch)
        for j in range(columns):
            start[u * columns + j] = used + begin[j]
        values[used : used + len(held)] = held
        counts[used : used + len(held)] = numbers
        used += len(held)
    start[units * columns] = used
    return start, values[:used].copy(), counts[:used].copy(), persons


@njit(cache=True)
def _first_good(guard, order, first, left, candidates):  # type: ignore[no-untyped-def]
    for c in candidates:
        members = np.concatenate((order[first[c] : first[c + 1]], left))
        if members_satisfy(guard.demands, guard.histograms, members, guard.scratch):
            return c
    return -1
