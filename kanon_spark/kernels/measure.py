"""How each QI of a table is measured, and the rules by which compiled code builds classes (`box.py`).

    hierarchy   loss of the lowest common ancestor
    range       weight · (largest - smallest position) / span of the domain
    set         weight · distinct values / values of the domain; nothing for a single value
    null        mixed with values costs the full weight, alone nothing
    label       not a QI: a charge for rows whose class label is not that of their class's majority

Source: the loss of the k-member clustering paper (normalized certainty penalty) and its label-guarding variant.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kanon_spark.kernels.box import LABEL, NODE, RANGE, SET, Box, class_costs, new_box

if TYPE_CHECKING:
    from kanon_spark.kernels.problem import Forest, Problem

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Kind = Literal["node", "range", "set"]

_KINDS: dict[str, int] = {"node": NODE, "range": RANGE, "set": SET}
_FLAT = 64  # values of a set that are cut apart at once
_NARROW = 4096  # values of a QI; above, filling a table costs more than it saves


@dataclass(frozen=True)
class Measure:
    """How each QI of a table is measured; codes are the compact ones of its forest.

    Attributes:
        kinds: One of node, range, set per QI.
        weights: Weights of the QIs (the losses of a forest hold theirs already).
        positions: Per QI, where each value lies, in code order; used for ranges only.
        spans: Per QI, the range of the domain; used for ranges only.
        domains: Per QI, how many values the domain has, null apart; used for sets only.
        nulls: Per QI, the code of null, -1 where the data holds none. It is the largest code.
    """

    kinds: tuple[Kind, ...]
    weights: Floats
    positions: tuple[Floats, ...]
    spans: tuple[float, ...]
    domains: tuple[int, ...]
    nulls: tuple[int, ...]

    @classmethod
    def by_nodes(cls, forest: "Forest") -> "Measure":
        """Every QI by its hierarchy."""
        width = forest.width
        nothing = tuple(np.zeros(int(count)) for count in forest.leaves)
        kinds: tuple[Kind, ...] = tuple("node" for _ in range(width))
        return cls(kinds, np.ones(width), nothing, (0.0,) * width, (1,) * width, (-1,) * width)

    @property
    def only_nodes(self) -> bool:
        """Whether every QI has a hierarchy."""
        return all(kind == "node" for kind in self.kinds)

    @property
    def finite(self) -> bool:
        """Whether ranges cost here what they cost when published: an infinite value is only placed far outside."""
        ranges = [
            np.delete(self.positions[j], self.nulls[j]) if self.nulls[j] >= 0 else self.positions[j]
            for j, kind in enumerate(self.kinds)
            if kind == "range"
        ]
        return all(np.isfinite(position).all() for position in ranges)

    def crossing(self, forest: "Forest") -> Floats:
        """Per node of the forest: the least loss of a class with members under two different children of it.

        Where blocks are cut, the trees of QIs without a hierarchy are search trees whose losses nobody pays: two
        values of a set cost two shares of the domain wherever they stand, two neighbours on a range their distance.
        """
        least = forest.loss.copy()
        for j, kind in enumerate(self.kinds):
            first, end, leaves = int(forest.start[j]), int(forest.start[j + 1]), int(forest.leaves[j])
            if kind == "set":
                least[first:end] = self.weights[j] * min(1.0, 2 / max(1, self.domains[j]))  # or null and a value
            elif kind == "range":
                gap = np.append(np.diff(self._places(j)), np.inf)  # between a code and the next
                if 0 < self.nulls[j] <= len(gap) - 1:
                    gap[self.nulls[j] - 1] = self.weights[j]
                least[first : first + leaves] = 0.0
                least[first + leaves : end] = np.inf
                for v in range(first, end):
                    above = int(forest.parent[v])
                    if above >= 0 and forest.hi[v] < forest.hi[above]:
                        least[above] = min(least[above], float(gap[forest.hi[v] - 1]))
        return least

    def flat_sets(self, forest: "Forest") -> Ints:
        """Parents for cutting: values of a small set all stand under the root, so that a cut keeps no two together."""
        parent = forest.parent.copy()
        for j, kind in enumerate(self.kinds):
            first, end, leaves = int(forest.start[j]), int(forest.start[j + 1]), int(forest.leaves[j])
            if kind == "set" and 1 < leaves <= _FLAT:
                parent[first : end - 1] = -2  # inner nodes are under nothing
                parent[first : first + leaves] = end - 1
        return parent

    def _places(self, j: int) -> Floats:
        """Positions of QI j in units of its loss; infinite values lie one whole span outside."""
        position, span = self.positions[j], self.spans[j]
        if self.kinds[j] != "range" or span <= 0:
            return np.zeros(len(position))
        known = np.isfinite(position)
        low, high = position[known].min(), position[known].max()
        place = np.clip(np.nan_to_num(position, nan=0.0, posinf=np.inf, neginf=-np.inf), low - span, high + span)
        scaled: Floats = (place - low) / span * self.weights[j]
        return scaled


class Rules(NamedTuple):
    """A measure as compiled code sees it; values of QI j stand at base[j] + code."""

    kind: NDArray[np.int8]
    weight: Floats
    step: Floats  # loss of one value of a set
    null: Ints
    base: Ints
    place: Floats  # positions in units of the loss
    start: Ints  # the forest
    parent: Ints
    lo: Ints
    hi: Ints
    loss: Floats
    narrow: NDArray[np.bool_]  # QIs of few values: what each would add is tabulated for searches
    shares: Floats  # signatures by labels: rows of each label; no columns without a label
    penalty: float


@dataclass(frozen=True)
class Measured:
    """A problem as clustering kernels see it: row-major codes (the label last, if there is one) and rules."""

    codes: Ints
    rules: Rules

    @classmethod
    def of(cls, problem: "Problem", *, penalty: float = 0.0) -> "Measured":
        """Rules of a problem; a penalty above 0 needs labels."""
        forest = problem.forest
        measure = problem.measure or Measure.by_nodes(forest)
        kinds = [_KINDS[kind] for kind in measure.kinds]
        places = [measure._places(j) for j in range(forest.width)]
        leaves = [int(count) for count in forest.leaves]
        weights, domains, nulls = list(measure.weights), [max(1, count) for count in measure.domains], measure.nulls
        codes, shares = problem.codes, np.zeros((problem.size, 0))
        if penalty > 0 and problem.labels is not None and problem.labels.shape[1] > 1:
            shares = problem.labels.astype(np.float64)
            codes = np.column_stack([codes, shares.argmax(axis=1).astype(np.int32)])
            kinds, places, leaves = [*kinds, LABEL], [*places, np.zeros(shares.shape[1])], [*leaves, shares.shape[1]]
            weights, domains, nulls = [*weights, penalty], [*domains, 1], (*nulls, -1)
        rules = Rules(
            kind=np.array(kinds, np.int8),
            weight=np.array(weights, np.float64),
            step=np.array(weights, np.float64) / np.array(domains, np.float64),
            null=np.array(nulls, np.int32),
            base=_bases(leaves),
            place=np.concatenate(places).astype(np.float64),
            start=forest.start,
            parent=forest.parent,
            lo=forest.lo,
            hi=forest.hi,
            loss=forest.loss,
            narrow=np.array(leaves) <= _NARROW,
            shares=np.ascontiguousarray(shares),
            penalty=float(penalty),
        )
        return cls(np.ascontiguousarray(codes, dtype=np.int32), rules)

    def box(self) -> Box:
        """A box to build classes in, one after the other."""
        return new_box(self.rules)  # type: ignore[no-any-return]

    def costs(self, class_of: Ints, rows: Longs) -> tuple[Floats, Longs]:
        """Loss per row of each class, the charge for labels included, and its rows."""
        return class_costs(self.rules, self.codes, rows, class_of)  # type: ignore[no-any-return]

    def total(self, class_of: Ints, rows: Longs, *, suppressed: float) -> float:
        """Row-weighted loss of all signatures; a suppressed row costs `suppressed`."""
        cost, held = self.costs(class_of, rows)
        return float((cost * held)[held > 0].sum() + suppressed * rows[class_of < 0].sum())


def _bases(leaves: Sequence[int]) -> Ints:
    return np.concatenate([[0], np.cumsum(leaves)]).astype(np.int32)
