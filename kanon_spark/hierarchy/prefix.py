"""Prefix masking: codes such as zip codes, cut from the right and padded with `*`."""

import numpy as np

from kanon_spark.config.models import PrefixSpec
from kanon_spark.errors import HierarchyError
from kanon_spark.hierarchy.assemble import Level, Skeleton, number_runs, run_starts, stack
from kanon_spark.hierarchy.tree import Domain

MASK = "*"


def build_prefixes(spec: PrefixSpec, domain: Domain, *, where: str, min_level: int) -> Skeleton:
    """Levels of shorter and shorter prefixes over the domain, in the order of its codes.

    A value shorter than what a level keeps is a node of its own there. With `min_level` the entries are the prefixes
    kept at that level: how long the values were is no longer known, so labels are padded one beyond the longest prefix.
    """
    texts = domain.texts
    length = max(spec.keep) + 1 if min_level else max(map(len, texts), default=0)
    skipped = spec.keep[: max(0, min_level - 1)]
    levels = [_level(texts, keep, length, where) for keep in spec.keep[len(skipped) :]]
    if not min_level:
        return stack(texts, levels)
    base = levels[0]
    labels = [base.labels[group] for group in base.group.tolist()]
    whole = stack(labels, levels[1:])
    # Each leaf stands for a number of values that nobody counted, so it is not free: it costs its share of the leaves.
    return Skeleton(whole.labels, whole.levels, singles_free=False)


def _level(texts: tuple[str, ...], keep: int, length: int, where: str) -> Level:
    prefixes = [text[:keep] for text in texts]
    group = number_runs(np.array(prefixes, dtype=object))
    starts = run_starts(group).tolist()
    if len({prefixes[start] for start in starts}) < len(starts):
        raise HierarchyError(
            f"values that share their first {keep} characters do not lie next to each other when sorted as numbers",
            where=where,
            fix="cast the column to string (with leading zeros, so that all values are equally long)",
        )
    labels = [_mask(prefixes[start], keep, length) for start in starts]
    return Level(group, labels)


def _mask(prefix: str, keep: int, length: int) -> str:
    """`123` of five is `123**`; a value that was shorter than what is kept stays as it is."""
    return prefix if len(prefix) < keep else prefix.ljust(length, MASK)
