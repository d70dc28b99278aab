"""Edges between components that live in different blocks, found by lattice-group keys.

Two signatures that meet in a group at lattice node L are at most w(L) apart. So at each node the components that meet
in a group are linked to the first of them, a star per group, and no pair is ever formed that the group does not hold.
Workers reduce what they hold to one signature per group and component before anything travels. Where nearly everything
is one component already, a group matters only if something outside that component is in it, so that workers look the
keys of the few outside up and drop all others.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.kernels.levels import Levels, weight_between
from kanon_spark.signatures.layout import Layout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kanon_spark.engine.pieces import Solver

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Node = tuple[int, ...]

EDGE = "a long, b long, w long, x long, y long"  # the signatures a - b at distance w, in the components x and y


class NodesByWeight:
    """The lattice nodes from a weight on, lightest first; equal weights in the order of their levels."""

    def __init__(self, levels: Levels, *, start: int) -> None:
        self._levels = levels
        bottom = (0,) * len(levels.height)
        self._queue: list[tuple[int, Node]] = [(0, bottom)]
        self._seen = {bottom}
        self._start = start

    def take(self, most: int) -> list[tuple[int, Node]]:
        """The next nodes, at most so many but never only a part of those with the weight of the last."""
        found: list[tuple[int, Node]] = []
        while self._queue and (len(found) < most or self._queue[0][0] == found[-1][0]):
            weight, node = heapq.heappop(self._queue)
            for j, level in enumerate(node):
                if level < self._levels.height[j]:
                    after = (*node[:j], level + 1, *node[j + 1 :])
                    if after not in self._seen:
                        self._seen.add(after)
                        heapq.heappush(self._queue, (weight + int(self._levels.unit[j]), after))
            if weight >= self._start and any(node):
                found.append((weight, node))
        return found


@dataclass(frozen=True)
class Outside:
    """The signatures outside the largest component, where they are few."""

    largest: int
    codes: Ints


class _Filter:
    """The keys of the few at one lattice node: a bitmap that drops most others at once, then a search."""

    def __init__(self, keys: Longs) -> None:
        self._hashes = np.unique(_hashes(keys))
        bits = max(10, len(self._hashes).bit_length() + 4)
        self._shift = np.uint64(64 - bits)
        self._bitmap = np.zeros(1 << bits, np.bool_)
        self._bitmap[self._hashes >> self._shift] = True

    def holds(self, keys: Longs) -> NDArray[np.bool_]:
        """Which of these keys are among them (or, with a chance of 2^-40 or so, seem to be: that costs nothing)."""
        hashes = _hashes(keys)
        found: NDArray[np.bool_] = self._bitmap[hashes >> self._shift]
        asked = hashes[found]
        at = np.minimum(np.searchsorted(self._hashes, asked), len(self._hashes) - 1)
        found[found] = self._hashes[at] == asked
        return found


def _hashes(keys: Longs) -> NDArray[np.uint64]:
    mixed = np.zeros(len(keys), np.uint64)
    for word in range(keys.shape[1]):
        mixed = (mixed + keys[:, word].astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(32)
    return mixed * np.uint64(0xD1B54A32D192ED03)


@dataclass(frozen=True)
class _Grouping:
    """Keys of signatures at some lattice nodes."""

    solver: "Solver"
    levels: Levels
    nodes: Sequence[tuple[int, Node]]
    outside: Outside | None = None

    @property
    def words(self) -> int:
        """Numbers that tell groups apart at any of the nodes."""
        return Layout.of([int(size) for size in self.levels.sizes[:, 0]]).words

    @property
    def keys(self) -> list[str]:
        return [f"group{word}" for word in range(self.words)]

    def pairs(self, batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """(node, component, least signature, group): one row for each component in each group of a batch."""
        outside = self.outside
        filters: list[_Filter] = []
        for batch in batches:
            if outside is not None and not filters:
                filters = [_Filter(group_keys(outside.codes, node, self.levels, self.words)) for _, node in self.nodes]
            codes = self.solver.codes(batch)
            components, hashes = batch["component"].to_numpy(np.int64), batch["h"].to_numpy(np.int64)
            parts: list[Longs] = []  # one frame per batch: a frame costs milliseconds on its way, and nodes are many
            for number, (_, node) in enumerate(self.nodes):
                component, h = components, hashes
                keys = group_keys(codes, node, self.levels, self.words)
                if outside is not None:
                    met = filters[number].holds(keys) | (component != outside.largest)
                    keys, component, h = keys[met], component[met], h[met]
                    if not len(h):
                        continue
                order = np.lexsort((h, component, *keys.T))
                first = np.ones(len(order), np.bool_)
                first[1:] = (np.diff(keys[order], axis=0) != 0).any(axis=1) | (np.diff(component[order]) != 0)
                kept = order[first]
                parts.append(
                    np.column_stack([np.full(len(kept), number), component[kept], h[kept], keys[kept]]).astype(np.int64)
                )
            found = np.concatenate(parts) if parts else np.zeros((0, 3 + self.words), np.int64)
            yield pd.DataFrame(found, columns=["node", "component", "h", *self.keys])

    def stars(self, batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """Rows sorted by group, component and h to edges from the first component of each group to the others."""
        weights = np.array([weight for weight, _ in self.nodes], np.int64)
        held = np.zeros((0, 3 + self.words), np.int64)  # hub of the group that the last batch ended in
        names = ["component", "h", "node", *self.keys]
        for batch in batches:
            rows = np.concatenate([held, batch[names].to_numpy(np.int64)])
            fresh = np.ones(len(rows), np.bool_)
            fresh[1:] = (np.diff(rows[:, 2:], axis=0) != 0).any(axis=1)
            hub = rows[np.maximum.accumulate(np.where(fresh, np.arange(len(rows)), 0))]
            apart = hub[:, 0] != rows[:, 0]
            held = hub[-1:]
            a, b = hub[apart, 1], rows[apart, 1]
            yield pd.DataFrame(
                {
                    "a": np.minimum(a, b),
                    "b": np.maximum(a, b),
                    "w": weights[rows[apart, 2]],
                    "x": hub[apart, 0],
                    "y": rows[apart, 0],
                }
            )


def group_keys(codes: Ints, node: Node, levels: Levels, words: int) -> Longs:
    """The group of each signature at a lattice node, as so many numbers: equal ones mean the same group."""
    ancestors = np.empty(codes.shape, np.int32)
    for j, level in enumerate(node):
        ancestors[:, j] = levels.up[levels.begin[j, level] + codes[:, j]]
    packed = Layout.of([int(levels.sizes[j, level]) for j, level in enumerate(node)]).pack(ancestors)
    out = np.zeros((len(codes), words), np.int64)
    out[:, : packed.shape[1]] = packed
    return out


def cross_edges(
    vertices: "DataFrame",
    solver: "Solver",
    levels: Levels,
    nodes: Sequence[tuple[int, Node]],
    outside: Outside | None = None,
) -> "DataFrame":
    """Candidate edges (EDGE) between components, from the groups at these lattice nodes.

    Args:
        vertices: `h`, `component` and the key words of every signature.
        solver: Knows how to read the key words.
        levels: The hierarchies' levels.
        nodes: Lattice nodes with their weights.
        outside: What is not in the largest component, where that is little: only its groups are looked at.
    """
    grouping = _Grouping(solver, levels, nodes, outside)
    columns = ["h", "component", *solver.codebook.layout.names()]
    schema = "node long, component long, h long, " + ", ".join(f"{name} long" for name in grouping.keys)
    pairs = vertices.select(*columns).mapInPandas(grouping.pairs, schema)
    group = ["node", *grouping.keys]
    by_group = pairs.repartition(*group).sortWithinPartitions(*group, "component", "h")
    return by_group.mapInPandas(grouping.stars, EDGE)


def nearest_edges(vertices: "DataFrame", outside: pd.DataFrame, solver: "Solver", levels: Levels) -> "DataFrame":
    """The nearest signature of another component for each outside signature and partition (EDGE): one map-only pass.

    Args:
        vertices: `h`, `component` and the key words of every signature.
        outside: The same of a few signatures, those outside the largest component.
        solver: Knows how to read the key words.
        levels: The hierarchies' levels.
    """
    names = ["h", "component", *solver.codebook.layout.names()]
    asked = outside[names].sort_values("h").reset_index(drop=True)
    asking = solver.codes(asked)
    h, component = asked["h"].to_numpy(np.int64), asked["component"].to_numpy(np.int64)

    def nearest(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            found = nearest_in_other_component(
                asking, component, solver.codes(batch), batch["component"].to_numpy(np.int64), levels
            )
            place, at, weight = found
            other, home = batch["h"].to_numpy(np.int64)[at], batch["component"].to_numpy(np.int64)[at]
            mine = h[place]
            yield pd.DataFrame(
                {
                    "a": np.minimum(mine, other),
                    "b": np.maximum(mine, other),
                    "w": weight,
                    "x": component[place],
                    "y": home,
                }
            )

    return vertices.select(*names).mapInPandas(nearest, EDGE)


def nearest_in_other_component(
    asking: Ints, home: Longs, codes: Ints, component: Longs, levels: Levels
) -> tuple[Longs, Longs, Longs]:
    """For each asking signature and each other component among `codes`, the nearest: (asking, found, weight)."""
    both = np.asfortranarray(np.concatenate([asking, codes]))
    names, inside = np.unique(component, return_inverse=True)
    own = np.where(np.isin(home, names), np.searchsorted(names, home), -1)
    best, chosen = _nearest_each(
        both, len(asking), own, inside, len(names), levels.up, levels.begin, levels.height, levels.unit
    )
    place, which = np.nonzero(chosen >= 0)
    return place, chosen[place, which], best[place, which]


@njit(cache=True)
def _nearest_each(codes, asking, own, inside, components, up, begin, height, unit):  # type: ignore[no-untyped-def]
    far = np.int64(1) << 62
    best = np.full((asking, components), far, np.int64)
    chosen = np.full((asking, components), -1, np.int64)
    for s in range(asking):
        for t in range(len(inside)):
            c = inside[t]
            if c != own[s]:
                d = weight_between(codes, s, asking + t, up, begin, height, unit, best[s, c])
                if d < best[s, c]:
                    best[s, c] = d
                    chosen[s, c] = t
    return best, chosen
