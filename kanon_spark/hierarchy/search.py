"""Search trees for QIs without a hierarchy: they guide the search, and are never published.

Ordered values are halved by row counts (nested quantile intervals), sets by number of values in code order, which is
the order of frequency. What a class publishes is the tight range or set of its own values, at most as dear as the node.
"""

import numpy as np

from kanon_spark.hierarchy.assemble import ROOT, Longs, Skeleton
from kanon_spark.hierarchy.tree import ORDERED, Domain, Floats, Ints

BY_COUNTS = 16  # halvings by counts; after them by number of values, or one dominant value after the other makes a vine
WIDE = 1 << 18  # leaves above which each level halves twice: levels times leaves is what a tree weighs


def build_search_tree(domain: Domain) -> Skeleton:
    """A binary tree (above `WIDE` leaves: one of fan-out four) down to single values."""
    ordered = domain.kind in ORDERED
    count = len(domain.texts)
    weights = domain.counts if ordered else np.ones(count, dtype=np.int64)
    before = np.concatenate([[0.0], np.cumsum(weights, dtype=np.float64)])
    cuts = [np.array([0, count], dtype=np.int64)]  # borders of the segments, from the root down
    halvings = 0
    while count and len(cuts[-1]) < count + 1:
        borders = cuts[-1]
        for _ in range(2 if count > WIDE else 1):
            borders = _halve(borders, before if halvings < BY_COUNTS else np.arange(count + 1, dtype=np.float64))
            halvings += 1
        cuts.append(borders)
    return _from_cuts(domain, cuts, ordered=ordered)


def _halve(borders: Longs, before: Floats) -> Longs:
    """Cut every segment of two or more leaves where its weight is halved best."""
    start, end = borders[:-1], borders[1:]
    start, end = start[end - start > 1], end[end - start > 1]
    middle = (before[start] + before[end]) / 2
    right = np.clip(np.searchsorted(before, middle), start + 1, end - 1)
    left = np.maximum(right - 1, start + 1)
    cut = np.where(middle - before[left] <= before[right] - middle, left, right)
    return np.sort(np.concatenate([borders, cut]))


def _from_cuts(domain: Domain, cuts: list[Longs], *, ordered: bool) -> Skeleton:
    count = len(domain.texts)
    inner = 0
    rows: list[Ints] = [np.arange(count, dtype=np.int32)]
    widths: list[Floats] = [np.zeros(count)]
    for borders in cuts[-2:0:-1]:  # bottom-up, without the single values and the root
        start, end = borders[:-1], borders[1:]
        several = end - start > 1
        # A segment that the next cut down did not split cannot exist: each cut splits all segments of two or more.
        ids = np.where(several, count + inner + np.cumsum(several) - 1, start).astype(np.int32)
        inner += int(several.sum())
        rows.append(np.repeat(ids, end - start))
        widths.append(domain.positions[end[several] - 1] - domain.positions[start[several]])
    rows.append(np.full(count, count + inner, dtype=np.int32))
    widths.append(np.array([np.nan]))
    return Skeleton(
        labels=(*domain.texts, *([ROOT] * (inner + 1))),
        levels=np.vstack(rows).astype(np.int32),
        width=np.concatenate(widths) if ordered else None,
    )
