"""Cuts of one QI whose children satisfy what is asked beyond k, from the histograms of its values.

Idea: a child is a stretch of values in the order of their codes. For a threshold the histogram below it grows value by
value, and what lies above is the rest; both are held against the demands only where the threshold would be better than
the best so far.

Cost: for children one look at the entries; for thresholds one look at them, and per threshold that is tried one at the
different sensitive values of the region.
"""

import numpy as np

from kanon_spark.compiling import njit
from kanon_spark.privacy.demands import members_satisfy, satisfies


@njit(cache=True)
def children_are_good(guard, codes, bounds):  # type: ignore[no-untyped-def]
    """Whether each child between the bounds satisfies everything; the guard's units are the codes, in their order."""
    begin = 0
    for c in range(len(bounds) + 1):
        end = len(codes) if c == len(bounds) else np.searchsorted(codes, bounds[c])
        if not members_satisfy(guard.demands, guard.histograms, np.arange(begin, end), guard.scratch):
            return False
        begin = end
    return True


@njit(cache=True)
def at_good_median(guard, k, null, codes, persons):  # type: ignore[no-untyped-def]
    """The bound between two good stretches of k persons or more, as equal as can be; none if there is no such bound.

    Null, the last code, is cut off if that gives two good sides.
    """
    last = len(codes) - 1
    everybody = persons.sum()
    best = np.empty(0, np.int32)
    held, slot_of, tallies = _whole(guard)
    below = np.zeros_like(tallies)  # of each slot: persons, and values of the QI that hold it
    if codes[last] == null and persons[last] >= k and everybody - persons[last] >= k:
        for i in range(last):
            _add(guard, i, slot_of, below)
        if _both_good(guard, held, tallies, below, last):
            return codes[last:].copy()
        below[:] = 0
    least = everybody + 1
    under = 0
    for i in range(last):
        under += persons[i]
        over = everybody - under
        _add(guard, i, slot_of, below)
        better = under >= k and over >= k and abs(over - under) < least
        if better and _both_good(guard, held, tallies, below, i + 1):
            least = abs(over - under)
            best = codes[i + 1 : i + 2].copy()
    return best


@njit(cache=True)
def _whole(guard):  # type: ignore[no-untyped-def]
    """The slots (column and sensitive value) that are held, the number of each entry's slot, and the slots' tallies."""
    histograms, base = guard.histograms, guard.demands.base
    columns = histograms.columns
    slots = np.empty(len(histograms.values), np.int64)
    for place in range(len(histograms.start) - 1):
        for e in range(histograms.start[place], histograms.start[place + 1]):
            slots[e] = base[place % columns] + histograms.values[e]
    held = np.unique(slots)
    slot_of = np.searchsorted(held, slots)
    tallies = np.zeros((len(held), 2), np.int64)
    for unit in range(len(histograms.persons)):
        _add(guard, unit, slot_of, tallies)
    return held, slot_of, tallies


@njit(cache=True)
def _add(guard, unit, slot_of, tallies):  # type: ignore[no-untyped-def]
    histograms = guard.histograms
    columns = histograms.columns
    for e in range(histograms.start[unit * columns], histograms.start[(unit + 1) * columns]):
        tallies[slot_of[e], 0] += histograms.counts[e]
        tallies[slot_of[e], 1] += 1


@njit(cache=True)
def _both_good(guard, held, whole, below, units):  # type: ignore[no-untyped-def]
    """Whether the first units and the others satisfy everything."""
    under = guard.histograms.persons[:units].sum()
    over = guard.histograms.persons[units:].sum()
    return _good(guard.demands, held, below, under) and _good(guard.demands, held, whole - below, over)


@njit(cache=True)
def _good(demands, held, tallies, persons):  # type: ignore[no-untyped-def]
    columns = len(demands.base) - 1
    start = np.zeros(columns + 1, np.int64)
    values = np.empty(len(held), np.int32)
    counts = np.empty(len(held), np.int64)
    used = 0
    place = 0
    for j in range(columns):
        start[j] = used
        while place < len(held) and held[place] < demands.base[j + 1]:
            if tallies[place, 1] > 0:
                values[used] = held[place] - demands.base[j]
                counts[used] = tallies[place, 0]
                used += 1
            place += 1
    start[columns] = used
    return satisfies(demands, start, values[:used], counts[:used], persons)
