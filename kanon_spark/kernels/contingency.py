"""Contingency tables of the free rows around the signature that starts the next class, and similarities from them.

Idea: signatures stand in the order of their categorical QIs, few values first, and whoever starts a class is the first
that is still free. So the rows that share the starter's values in the first m QIs are a run of places, for each m one,
and these runs only ever move on. One table per m is enough: it is counted when its run begins, each signature that
leaves is taken off, and once the run has ended it is empty again, ready for the next.

Cost: each signature is counted once and taken off once per prefix and QI behind it: d²/2 steps in all, whatever the
number of classes. Similarities to a value cost one pass over the values of the QI and a sort of those that occur.

Source: the similarity measurement of the similarity-based clustering paper (SBCA).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit

Longs = NDArray[np.int64]


class Contingency(NamedTuple):
    """Free rows by the starter's prefixes; the prefix of length m is its values in the first m QIs."""

    counts: Longs  # prefix lengths by slots of values: free rows that share the prefix and hold the value
    held: Longs  # per prefix length: all free rows that share it
    end: Longs  # per prefix length: the place behind its run


@njit(cache=True)
def new_contingency(categoricals, slots):  # type: ignore[no-untyped-def]
    """Empty tables: the last of the categorical QIs is looked at under the values of all before it."""
    return Contingency(
        np.zeros((categoricals, slots), np.int64), np.zeros(categoricals, np.int64), np.zeros(categoricals, np.int64)
    )


@njit(cache=True)
def arrive(tables, slot, rows, here, first):  # type: ignore[no-untyped-def]
    """The first free signature starts a class: count the runs that begin with it."""
    counts, held, end = tables.counts, tables.held, tables.end
    for m in range(len(held)):
        if first < end[m]:
            continue
        limit = end[m - 1] if m else len(rows)
        i = first
        while i < limit and (m == 0 or slot[i, m - 1] == slot[first, m - 1]):
            if here[i]:
                held[m] += rows[i]
                for j in range(m, len(held)):
                    counts[m, slot[i, j]] += rows[i]
            i += 1
        end[m] = i


@njit(cache=True)
def leave(tables, slot, rows, s):  # type: ignore[no-untyped-def]
    """Signature s, which is no longer free, is taken off the runs that it stands in."""
    counts, held, end = tables.counts, tables.held, tables.end
    for m in range(len(held)):
        if s >= end[m]:
            break  # the runs of longer prefixes lie inside
        held[m] -= rows[s]
        for j in range(m, len(held)):
            counts[m, slot[s, j]] -= rows[s]


@njit(cache=True)
def longest_prefix(tables, k):  # type: ignore[no-untyped-def]
    """The longest prefix of the starter that at least k free rows share; none at all if everything is too few."""
    longest = 0
    for m in range(1, len(tables.held)):
        if tables.held[m] >= k:
            longest = m
    return longest


@njit(cache=True)
def rank_by_similarity(count, code, own, cardinality, rank):  # type: ignore[no-untyped-def]
    """Index of each value in the order of similarity to `own`, which comes first.

    The nearer a value's share of the rows is to that of `own`, the more similar it is; ties by code. All shares are of
    the same rows, so counts compare exactly what shares would.

    Args:
        count: Rows of each value that may occur, in code order.
        code: Its code among all values of the QI; those without an entry hold no rows, but take part in the order.
        own: Entry of the value that is compared with, which holds rows.
        cardinality: Values of the QI.
        rank: Receives the indices.
    """
    mine = count[own]
    occurs = np.empty(len(count), np.int64)
    away = np.empty(len(count), np.int64)
    size = 0
    nearer = 0
    for v in range(len(count)):
        if count[v] > 0 and v != own:
            occurs[size] = v
            away[size] = abs(count[v] - mine)
            nearer += away[size] < mine
            size += 1
    absent = cardinality - 1 - size
    order = np.argsort(away[:size], kind="mergesort")
    for at in range(size):
        rank[occurs[order[at]]] = 1 + at if at < nearer else 1 + at + absent
    # Values without rows are all as far away as `own` has rows; whatever occurs as far away stands among them, by code.
    tied = 0
    seen = 0
    for v in range(len(count)):
        if v == own:
            rank[v] = 0
            seen += 1
            continue
        if count[v] == 0 or abs(count[v] - mine) == mine:
            rank[v] = 1 + nearer + tied + (code[v] - seen)
        if count[v] > 0:
            seen += 1
            tied += abs(count[v] - mine) == mine
