"""k-map: each published tuple fits at least k persons of a population, whether or not they are in the table.

Unlike the other models it looks at what a class publishes, not at what its members carry: the population is coded like
the table, and a published label is the set of codes that it covers, as a few stretches [low, high). A node of a
hierarchy and a range are one stretch, a set of values several. It is union safe as long as the tuple of a union covers
both.

Cost: classes times population tuples, but a tuple is given up at the first QI that does not fit, and a class is done as
soon as `stop` persons were found.
Source: Sweeney: Computational Disclosure Control (thesis, MIT 2001); El Emam, Dankar: Protecting Privacy Using
k-Anonymity (JAMIA 2008).
"""

from typing import NamedTuple

import numpy as np

from kanon_spark.compiling import njit
from kanon_spark.privacy.base import Bools, Ints, Longs

NO_STOP = np.iinfo(np.int64).max


class Cover(NamedTuple):
    """Labels of all QIs as sets of codes: label i covers the stretches `start[i]` up to `start[i+1]`, ascending."""

    start: Longs
    low: Ints
    high: Ints


def fitting_persons(labels: Ints, cover: Cover, codes: Ints, persons: Longs, *, stop: int = NO_STOP) -> Longs:
    """Persons of the population that fit each published tuple.

    Args:
        labels: Published tuples, tuples by QIs: indexes into `cover`.
        cover: What each label covers.
        codes: Population tuples, tuples by QIs.
        persons: Persons of each.
        stop: Count no further once so many were found.
    """
    counted: Longs = _fitting(labels, cover, codes, persons, stop)
    return counted


def satisfied(fitting: Longs, k: int) -> Bools:
    """Which tuples fit at least k persons."""
    enough: Bools = fitting >= k
    return enough


@njit(cache=True)
def _fitting(labels, cover, codes, persons, stop):  # type: ignore[no-untyped-def]
    out = np.zeros(labels.shape[0], np.int64)
    for c in range(labels.shape[0]):
        for p in range(codes.shape[0]):
            fits = True
            for j in range(codes.shape[1]):
                if not _covers(cover, labels[c, j], codes[p, j]):
                    fits = False
                    break
            if fits:
                out[c] += persons[p]
                if out[c] >= stop:
                    break
    return out


@njit(cache=True)
def _covers(cover, label, code):  # type: ignore[no-untyped-def]
    first, end = cover.start[label], cover.start[label + 1]
    at = first + np.searchsorted(cover.high[first:end], code, side="right")
    return at < end and cover.low[at] <= code
