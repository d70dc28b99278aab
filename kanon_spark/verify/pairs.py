"""Distinct (leaf, node) pairs of every QI over all entries: what has to be judged for truth.

Millions of entries share a few thousand pairs, so that each pair is judged once instead of each cell. The pairs are
found by numpy on the packed words: on the driver for small recodings (a cold Python worker costs seconds), else in the
workers.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kanon_spark.signatures.layout import Layout
from kanon_spark.verify.facts import Evidence

if TYPE_CHECKING:
    import pyarrow as pa

DRIVER_ENTRIES = 500_000  # packed words of this many entries are a few megabytes
DRIVER_PAIRS = 2_000_000  # pairs that the driver judges itself, a few seconds
_FLAG_BITS = 22  # pairs of at most this many bits are marked in one array, else sorted

Longs = NDArray[np.int64]


def node_pairs(evidence: Evidence, *, entries: int) -> dict[int, tuple[Longs, Longs]] | None:
    """Per QI that publishes nodes: the distinct leaves and nodes that meet in a released entry.

    None if there are more than `DRIVER_PAIRS` of them; then they are judged in the workers.
    """
    indexes = tuple(index for index, qi in enumerate(evidence.qis) if qi.publish == "node")
    if not indexes:
        return {}
    words = [*evidence.layout.names("key"), *evidence.node_layout.names("out")]
    released = evidence.entries.where("class_id >= 0").select(*words)
    find = partial(distinct_pairs, layout=evidence.layout, node_layout=evidence.node_layout, indexes=indexes)
    if entries <= DRIVER_ENTRIES:
        batches = list(find(released.toArrow().to_batches()))
    else:
        found = released.mapInArrow(find, "qi int, leaf long, node long").distinct()
        batches = found.limit(DRIVER_PAIRS + 1).toArrow().to_batches()
    if sum(batch.num_rows for batch in batches) > DRIVER_PAIRS:
        return None
    qi, leaf, node = (
        np.concatenate([np.zeros(0, np.int64), *(batch.column(name).to_numpy() for batch in batches)])
        for name in ("qi", "leaf", "node")
    )
    return {index: (leaf[qi == index], node[qi == index]) for index in indexes}


def distinct_pairs(
    batches: "Iterable[pa.RecordBatch]", *, layout: Layout, node_layout: Layout, indexes: Sequence[int]
) -> "Iterator[pa.RecordBatch]":
    """Distinct pairs over all batches of packed words (key words first, then out words), one batch per QI."""
    import pyarrow as pa

    collected = [_Pairs(layout.bits[index], node_layout.bits[index]) for index in indexes]
    for batch in batches:
        words = np.column_stack([column.to_numpy() for column in batch.columns])
        leaves = layout.unpack(words[:, : layout.words])
        nodes = node_layout.unpack(words[:, layout.words :])
        for pairs, index in zip(collected, indexes, strict=True):
            pairs.add(leaves[:, index], nodes[:, index])
    for pairs, index in zip(collected, indexes, strict=True):
        leaf, node = pairs.result()
        yield pa.record_batch(
            [pa.array(np.full(len(leaf), index, np.int32)), pa.array(leaf), pa.array(node)], ["qi", "leaf", "node"]
        )


class _Pairs:
    """Distinct (leaf, node) pairs, kept as flags where the domains are small and as sorted numbers where not."""

    def __init__(self, leaf_bits: int, node_bits: int) -> None:
        self._shift = node_bits
        small = leaf_bits + node_bits <= _FLAG_BITS
        self._flags = np.zeros(1 << (leaf_bits + node_bits), dtype=np.bool_) if small else None
        self._seen = np.zeros(0, dtype=np.int64)

    def add(self, leaf: NDArray[np.int32], node: NDArray[np.int32]) -> None:
        pair = (leaf.astype(np.int64) << self._shift) | node
        if self._flags is not None:
            self._flags[pair] = True
        else:
            self._seen = np.union1d(self._seen, pair)

    def result(self) -> tuple[Longs, Longs]:
        pair = self._seen if self._flags is None else np.flatnonzero(self._flags).astype(np.int64)
        return pair >> self._shift, pair & ((1 << self._shift) - 1)
