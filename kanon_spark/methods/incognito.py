"""`incognito`: search the lattice of all level vectors breadth first, and publish the cheapest of the lowest that hold.

A vector *holds* if at most the allowed share of rows is in groups of under k persons. Generalizing a vector keeps it
holding, and so does leaving out columns. So subsets of one, two, … columns are searched in turn: a vector is looked at
only if it holds on all subsets that are one smaller (a priori pruning), in the order of its height, and whatever lies
above a vector that holds is not counted at all. Groups are counted from a table rolled up to the lowest vector that is
still open. Of the vectors of all columns that hold with nothing below them holding, the one of least loss is published;
equal ones by height, then by the levels of the columns as declared.

Where classes must satisfy more than k, a vector holds if at most the allowed share of rows is outside *good* groups,
and that is not monotone: a good group together with a bad one may be bad. But what holds in this sense holds by k
alone, on every subset of the columns. So subsets are pruned by k, and only the vectors over all columns are held
against the whole demand. There, too, whatever lies above a vector that holds is not looked at: it may hold or not, but
it has something below it that does, so that it is none of the lowest.

Source: LeFevre, DeWitt and Ramakrishnan, Incognito: Efficient Full-Domain K-Anonymity (2005). Suppression counts as in
Samarati's and Sweeney's methods. The number of vectors grows exponentially with the columns: that is the method.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanon_spark.errors import RequestError
from kanon_spark.kernels.level_counts import LevelVector, Scope, Tally
from kanon_spark.methods.base import Leftover
from kanon_spark.methods.full_domain import Choice, FullDomain, LevelCounts, most_suppressed

LATTICE_LIMIT = 5_000_000  # vectors over all subsets of columns: one byte each is kept, and most are counted
TOLD = 100  # minimal vectors that the trace names

Bits = NDArray[np.bool_]
Found = dict[LevelVector, Tally]


@dataclass(frozen=True)
class Incognito(FullDomain):
    """The method with its options."""

    max_suppression: float = 0.0
    name: str = "incognito"
    leftover: Leftover = "suppress"

    def choose(self, counts: LevelCounts) -> Choice:
        """One vector: the cheapest of the lowest that hold, or all columns at their tops if none does."""
        scope = counts.scope
        _refuse_large(scope)
        shape = [height + 1 for height in scope.heights]
        allowed = most_suppressed(self.max_suppression, scope.rows)
        holding: dict[tuple[int, ...], Bits] = {(): np.ones((), bool)}
        trace: list[Mapping[str, Any]] = []
        minimal: Found = {}
        by_k = counts.by_k_alone()
        for size in range(1, len(shape) + 1):
            subsets = list(combinations(range(len(shape)), size))
            nodes = sum(prod(shape[i] for i in qis) for qis in subsets)
            open_ = {qis: _candidates(holding, qis, tuple(shape[i] for i in qis)) for qis in subsets}
            holding = {qis: np.zeros(bits.shape, bool) for qis, bits in open_.items()}
            searched = [qis for qis in subsets if open_[qis].any()]
            floors = [_meet(open_[qis]) for qis in searched]
            looked_at = 0
            asked = counts if size == len(shape) else by_k
            for qis, rolled in zip(searched, asked.roll_up(list(zip(searched, floors, strict=True))), strict=True):
                holding[qis], minimal, looked = _search(rolled, open_[qis], allowed)
                looked_at += looked
            candidates = sum(int(bits.sum()) for bits in open_.values())
            held = sum(int(bits.sum()) for bits in holding.values())
            told = {"vectors": nodes, "pruned": nodes - candidates, "counted": looked_at, "holding": held}
            trace.append({"columns": size, "subsets": len(subsets), **told})
        if not holding[tuple(range(len(shape)))].any():
            return Choice((scope.heights,), (*trace, {"minimal": 0}))
        order = sorted(minimal, key=lambda levels: (_loss(scope, minimal[levels]), sum(levels), levels))
        return Choice((order[0],), (*trace, _told(scope, order, minimal)))


def _refuse_large(scope: Scope) -> None:
    vectors = prod(height + 2 for height in scope.heights) - 1
    if vectors > LATTICE_LIMIT:
        raise RequestError(
            f"incognito would search {vectors:,} level vectors, more than {LATTICE_LIMIT:,}",
            where="method.name",
            fix="give fewer quasi-identifiers, hierarchies of fewer levels or a max_level, or use datafly or lattice",
        )


def _candidates(holding: Mapping[tuple[int, ...], Bits], qis: tuple[int, ...], shape: LevelVector) -> Bits:
    """Vectors over these columns that hold wherever one of the columns is left out."""
    found = np.ones(shape, bool)
    for place in range(len(qis)):
        found &= np.expand_dims(holding[(*qis[:place], *qis[place + 1 :])], place)
    return found


def _meet(vectors: Bits) -> LevelVector:
    """The lowest level of each column in any of the vectors."""
    return tuple(int(levels.min()) for levels in np.nonzero(vectors))


def _search(counts: LevelCounts, candidates: Bits, allowed: int) -> tuple[Bits, Found, int]:
    """The vectors that hold or lie above one, the lowest of them with their counts, and how many were counted."""
    holds = np.zeros(candidates.shape, bool)
    height = np.indices(candidates.shape).sum(axis=0)
    minimal: Found = {}
    counted = 0
    for level in range(int(height.max()) + 1):
        todo: list[LevelVector] = [tuple(one) for one in np.argwhere(candidates & ~holds & (height == level)).tolist()]
        counted += len(todo)
        for vector, tally in zip(todo, counts.tally(todo), strict=True):
            if counts.scope.rows - tally.rows <= allowed:
                minimal[vector] = tally
                holds[tuple(slice(one, None) for one in vector)] = True
    return holds, minimal, counted


def _loss(scope: Scope, tally: Tally) -> int:
    return scope.total_loss(tally.rows, tally.loss)


def _told(scope: Scope, order: list[LevelVector], minimal: Found) -> Mapping[str, Any]:
    """What the trace says of the minimal vectors, the cheapest first."""
    named = [
        {
            "levels": dict(zip(scope.ladders.names, levels, strict=True)),
            "gcp": scope.gcp(minimal[levels].rows, minimal[levels].loss),
            "rows_left": scope.rows - minimal[levels].rows,
        }
        for levels in order[:TOLD]
    ]
    return {"minimal": len(order), "cheapest": named}
