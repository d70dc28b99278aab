"""How far a class is from being accepted by its guard, and which sensitive values would bring it nearer.

Idea: each demand that is not met has a gap: the share of what is asked that is still missing (for delta-disclosure, the
mean over all values: its maximum says nothing about the way). The *shortfall* of a class is the sum over all demands, 0
exactly where it is accepted. How much one more person of each value would take off it is found by trying; whoever
grows the class (`extending.py`, `regrowing.py`) takes what is near and helps much.

The histogram of the class is kept sorted while signatures enter, so that a trial with one more is one merge.

Cost: per trial, the values that the class holds; per `weigh_values`, one trial for each value of the domain.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.privacy.base import DELTA, DISTINCT, ENTROPY, PERSONAL, RECURSIVE
from kanon_spark.privacy.demands import achieved, meets

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

_WIDE = 256  # in a wider domain, all values that a class lacks are judged by the most frequent of them
_LEAST_GAP = 1e-6  # of a bound that has been reached, where it must not be


class Tally(NamedTuple):
    """Histogram of a class that is being built (row 0), and room for the same class with something more (row 1)."""

    start: Longs  # rows by columns: where the entries of each column begin
    values: Ints
    counts: Longs
    persons: Longs


@njit(cache=True)
def new_tally(guard):  # type: ignore[no-untyped-def]
    """Room for one class of a guard, empty; None where nothing is asked."""
    if guard is None:
        return None
    base = guard.demands.base
    return Tally(
        np.zeros((2, len(base)), np.int64),
        np.zeros((2, base[-1] + 1), np.int32),
        np.zeros((2, base[-1] + 1), np.int64),
        np.zeros(2, np.int64),
    )


@njit(cache=True)
def recount(guard, tally, members):  # type: ignore[no-untyped-def]
    """Start again with these signatures."""
    if guard is None:
        return
    tally.start[0, :] = 0
    tally.persons[0] = 0
    for s in members:
        count(guard, tally, s)


@njit(cache=True)
def count(guard, tally, s):  # type: ignore[no-untyped-def]
    """Signature s enters the class."""
    if guard is None:
        return
    _join(guard.histograms, tally, s)
    start, values, counts = tally.start, tally.values, tally.counts
    for j in range(start.shape[1]):
        start[0, j] = start[1, j]
    for i in range(start[1, start.shape[1] - 1]):
        values[0, i] = values[1, i]
        counts[0, i] = counts[1, i]
    tally.persons[0] = tally.persons[1]


@njit(cache=True)
def shortfall(guard, tally):  # type: ignore[no-untyped-def]
    """How much the class lacks; 0: it is accepted."""
    if guard is None:
        return 0.0
    return _all_gaps(guard.demands, tally, 0)


@njit(cache=True)
def shortfall_with(guard, tally, s):  # type: ignore[no-untyped-def]
    """How much it would lack with signature s."""
    if guard is None:
        return 0.0
    _join(guard.histograms, tally, s)
    return _all_gaps(guard.demands, tally, 1)


@njit(cache=True)
def new_gain(guard):  # type: ignore[no-untyped-def]
    """Room for the gain of each sensitive value, by column and code."""
    if guard is None:
        return np.zeros(0)
    return np.zeros(guard.demands.base[-1])


@njit(cache=True)
def weigh_values(guard, tally, gain):  # type: ignore[no-untyped-def]
    """Put into `gain`, by column and code, how much less the class would lack with one person more of each value.

    Returns:
        The most that one person can gain, over all columns together.
    """
    if guard is None:
        return 0.0
    demands = guard.demands
    start, values, counts = tally.start, tally.values, tally.counts
    most = 0.0
    for j in range(len(demands.base) - 1):
        first, end = demands.base[j], demands.base[j + 1]
        gain[first:end] = 0.0
        a, b = start[0, j], start[0, j + 1]
        lacks = _gaps(demands, j, values[0, a:b], counts[0, a:b], tally.persons[0])
        if lacks == 0.0:
            continue
        wide = end - first > _WIDE
        frequent = first + np.argmax(demands.share[first:end])
        best = 0.0
        i = a
        for slot in range(first, end):
            v = slot - first
            while i < b and values[0, i] < v:
                i += 1
            held = i < b and values[0, i] == v
            if not held and (demands.share[slot] == 0.0 or (wide and slot != frequent)):
                continue
            size = _with_one_more(values, counts, a, b, i, v, held)
            gain[slot] = lacks - _gaps(demands, j, values[1, :size], counts[1, :size], tally.persons[0] + 1)
            best = max(best, gain[slot])
        if wide:
            _spread(values[0, a:b], gain[first:end], frequent - first)
        most += best
    return most


@njit(cache=True)
def gain_of(guard, gain, s):  # type: ignore[no-untyped-def]
    """What one person of signature s gains in the mean, from the gains of values."""
    if guard is None:
        return 0.0
    histograms, base = guard.histograms, guard.demands.base
    total = 0.0
    for j in range(histograms.columns):
        place = s * histograms.columns + j
        persons = 0
        gained = 0.0
        for e in range(histograms.start[place], histograms.start[place + 1]):
            persons += histograms.counts[e]
            gained += histograms.counts[e] * gain[base[j] + histograms.values[e]]
        if persons > 0:
            total += gained / persons
    return total


@njit(cache=True)
def _with_one_more(values, counts, a, b, at, v, held):  # type: ignore[no-untyped-def]
    """Row 1 becomes entries a … b of row 0 and one person more of value v, whose place is `at`; how many they are."""
    size = 0
    for i in range(a, at):
        values[1, size] = values[0, i]
        counts[1, size] = counts[0, i]
        size += 1
    values[1, size] = v
    counts[1, size] = 1 + (counts[0, at] if held else 0)
    size += 1
    for i in range(at + 1 if held else at, b):
        values[1, size] = values[0, i]
        counts[1, size] = counts[0, i]
        size += 1
    return size


@njit(cache=True)
def _spread(held, gain, frequent):  # type: ignore[no-untyped-def]
    """Values that the class lacks gain what the most frequent one does."""
    i = 0
    for v in range(len(gain)):
        while i < len(held) and held[i] < v:
            i += 1
        if i == len(held) or held[i] != v:
            gain[v] = gain[frequent]


@njit(cache=True)
def _join(histograms, tally, s):  # type: ignore[no-untyped-def]
    """Row 1 becomes row 0 and signature s."""
    columns = histograms.columns
    start, values, counts = tally.start, tally.values, tally.counts
    size = 0
    for j in range(columns):
        start[1, j] = size
        i, end = start[0, j], start[0, j + 1]
        place = s * columns + j
        x, last = histograms.start[place], histograms.start[place + 1]
        while i < end or x < last:
            if x == last or (i < end and values[0, i] < histograms.values[x]):
                values[1, size] = values[0, i]
                counts[1, size] = counts[0, i]
                i += 1
            else:
                values[1, size] = histograms.values[x]
                counts[1, size] = histograms.counts[x]
                if i < end and values[0, i] == values[1, size]:
                    counts[1, size] += counts[0, i]
                    i += 1
                x += 1
            size += 1
    start[1, columns] = size
    tally.persons[1] = tally.persons[0] + histograms.persons[s]


@njit(cache=True)
def _all_gaps(demands, tally, row):  # type: ignore[no-untyped-def]
    missing = 0.0
    for j in range(len(demands.base) - 1):
        a, b = tally.start[row, j], tally.start[row, j + 1]
        missing += _gaps(demands, j, tally.values[row, a:b], tally.counts[row, a:b], tally.persons[row])
    return missing


@njit(cache=True)
def _gaps(demands, j, values, counts, persons):  # type: ignore[no-untyped-def]
    """What is missing in column j."""
    missing = 0.0
    for d in range(len(demands.code)):
        if demands.column[d] == j:
            value = achieved(demands, d, values, counts, persons)
            if not meets(demands, d, value):
                missing += max(_LEAST_GAP, _gap(demands, d, value, values, counts))
    return missing


@njit(cache=True)
def _gap(demands, d, value, values, counts):  # type: ignore[no-untyped-def]
    """What is missing of a demand that is not met."""
    code, bound = demands.code[d], demands.bound[d]
    if code in (DISTINCT, ENTROPY, PERSONAL):
        return 1.0 - value / bound
    if code == DELTA:
        return _mean_excess(demands, demands.column[d], bound, values, counts)
    if np.isfinite(value):
        return 1.0 - bound / value
    if code == RECURSIVE:  # it waits for more values
        return 1.0 + max(0.0, 1.0 - (counts > 0).sum() / demands.tail[d])
    return 1.0


@njit(cache=True)
def _mean_excess(demands, j, bound, values, counts):  # type: ignore[no-untyped-def]
    """Mean, over the values of the release, of how far each is beyond the bound; 1 for one that is missing."""
    first = demands.base[j]
    persons = counts.sum()
    missing = float(demands.present[j])
    for i in range(len(values)):
        here = demands.share[first + values[i]]
        if counts[i] > 0 and here > 0.0:
            change = abs(math.log(counts[i] / persons / here))
            missing -= 1.0 if change < bound else bound / change
    return missing / max(1, demands.present[j])
