"""Sparse histograms: for each signature or class, and each sensitive column, the values it holds and their persons.

One flat table for everything: the entries of unit u in column j are `start[u * columns + j]` up to (not with)
`start[u * columns + j + 1]`, codes ascending. So a column of 10,000 values costs what is really there.
"""

from typing import NamedTuple

import numpy as np

from kanon_spark.compiling import njit
from kanon_spark.privacy.base import Bools, Ints, Longs


class Histograms(NamedTuple):
    """Histograms of many units (signatures, classes) over several columns.

    Attributes:
        columns: How many columns there are.
        start: Where the entries of each unit and column begin; one more than units times columns.
        values: Code of each entry.
        counts: Persons of each entry. May be 0: a value that stands there, but whose persons count elsewhere.
        persons: Persons of each unit. A person who carries several values counts in several entries, but here once.
    """

    columns: int
    start: Longs
    values: Ints
    counts: Longs
    persons: Longs

    @property
    def units(self) -> int:
        """How many units there are."""
        return len(self.persons)


def histograms_of(unit: Longs, codes: Ints, weight: Longs, *, units: int, persons: Longs | None = None) -> Histograms:
    """Histograms of rows.

    Args:
        unit: Unit of each row.
        codes: Sensitive codes of each row, rows by columns.
        weight: Persons that each row stands for.
        units: How many units there are.
        persons: Persons of each unit; by default the sum of the weights.

    >>> found = histograms_of(np.array([0, 1, 0]), np.array([[2], [0], [2]]), np.array([1, 1, 1]), units=2)
    >>> found.start.tolist(), found.values.tolist(), found.counts.tolist(), found.persons.tolist()
    ([0, 1, 2], [2, 0], [2, 1], [2, 1])
    """
    columns = codes.shape[1]
    place = (unit[:, None].astype(np.int64) * columns + np.arange(columns)).ravel()
    if persons is None:
        persons = np.bincount(unit, weights=weight, minlength=units).astype(np.int64)
    return sum_entries(place, codes.ravel(), np.repeat(weight, columns), persons, columns)


def merge(histograms: Histograms, class_of: Longs, *, classes: int) -> Histograms:
    """Histograms of classes from those of their members; units with a negative class are left out."""
    columns = histograms.columns
    inside = np.flatnonzero(class_of >= 0)
    owner = np.repeat(np.arange(histograms.units * columns), np.diff(histograms.start))
    into = class_of[owner // columns]
    kept = into >= 0
    place = into[kept].astype(np.int64) * columns + owner[kept] % columns
    persons = np.bincount(class_of[inside], weights=histograms.persons[inside], minlength=classes).astype(np.int64)
    return sum_entries(place, histograms.values[kept], histograms.counts[kept], persons, columns)


def sum_entries(place: Longs, values: Ints, counts: Longs, persons: Longs, columns: int) -> Histograms:
    """Histograms from single entries in any order: `place` is unit * columns + column; equal values are added up."""
    order = np.lexsort((values, place))
    place, values, counts = place[order], values[order], counts[order]
    new = np.ones(len(place), np.bool_)
    new[1:] = (place[1:] != place[:-1]) | (values[1:] != values[:-1])
    first = np.flatnonzero(new)
    sums = np.add.reduceat(counts, first) if len(first) else counts
    start = np.searchsorted(place[first], np.arange(len(persons) * columns + 1))
    return Histograms(columns, start.astype(np.int64), values[first].astype(np.int32), sums.astype(np.int64), persons)


class Scratch(NamedTuple):
    """Room in which the histogram of one class is put together; all 0 and unmarked between two classes."""

    tally: Longs  # persons by column and code
    marked: Bools
    touched: Longs  # which entries of the two are in use


@njit(cache=True)
def new_scratch(base):  # type: ignore[no-untyped-def]
    """Room for columns whose codes begin at `base` (`Demands.base`)."""
    size = base[-1]
    return Scratch(np.zeros(size, np.int64), np.zeros(size, np.bool_), np.zeros(size, np.int64))


@njit(cache=True)
def gather(histograms, members, base, scratch):  # type: ignore[no-untyped-def]
    """Histogram of one class as (start, values, counts, persons), from those of its members."""
    columns = histograms.columns
    used = 0
    persons = 0
    for u in members:
        persons += histograms.persons[u]
        for j in range(columns):
            place = u * columns + j
            for i in range(histograms.start[place], histograms.start[place + 1]):
                slot = base[j] + histograms.values[i]
                if not scratch.marked[slot]:
                    scratch.marked[slot] = True
                    scratch.touched[used] = slot
                    used += 1
                scratch.tally[slot] += histograms.counts[i]
    slots = np.sort(scratch.touched[:used])  # by column, then by code
    start = np.zeros(columns + 1, np.int64)
    values = np.empty(used, np.int32)
    counts = np.empty(used, np.int64)
    j = 0
    for i in range(used):
        slot = slots[i]
        while slot >= base[j + 1]:
            j += 1
            start[j] = i
        values[i] = slot - base[j]
        counts[i] = scratch.tally[slot]
        scratch.tally[slot] = 0
        scratch.marked[slot] = False
    for rest in range(j + 1, columns + 1):
        start[rest] = used
    return start, values, counts, persons
