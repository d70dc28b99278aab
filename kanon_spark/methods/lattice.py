"""`lattice`: close the cheapest group first, over all groups of the lattice; then polish, swap and steal.

Our own method, the default where hierarchies exist. See `kernels/lattice.py` for the idea, `kernels/polish.py` and
`kernels/annealing.py` for the refinement, `kernels/moving.py` and `kernels/pouring.py` for what is done where classes
must satisfy more than k; this file only decides how much of each is done.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from kanon_spark.kernels.annealing import anneal, near_each
from kanon_spark.kernels.bounds import simple_bound
from kanon_spark.kernels.guard import NOTHING
from kanon_spark.kernels.lattice import (
    FREE,
    TIE_ORDERS,
    attach_rest,
    close_cheapest_first,
    count_misplaced,
    loss_of_each,
    total_loss,
)
from kanon_spark.kernels.measure import Measured
from kanon_spark.kernels.mending import mend
from kanon_spark.kernels.moving import join_placed, move_to_neighbours
from kanon_spark.kernels.polish import polish
from kanon_spark.kernels.pouring import pour
from kanon_spark.kernels.problem import Problem
from kanon_spark.kernels.stealing import steal
from kanon_spark.methods.base import Effort, Leftover, Piece, Solution

# Refinement: steps of work per signature, the most for a whole table (some 10^8 a second), and the table size beyond
# which that would be spread too thinly to be worth its time.
_WORK: dict[Effort, float] = {"fast": 0.0, "normal": 40_000.0, "high": 2_400_000.0}
_MOST_WORK: dict[Effort, float] = {"fast": 0.0, "normal": 4.2e8, "high": 1e11}
_MOST_SIGNATURES: dict[Effort, int] = {"fast": 0, "normal": 100_000, "high": 2_000_000}
# Shares of that work: solving neighbourhoods again finds what swaps do not, and is dear; swaps are the finer tool.
_POLISH, _SWAP = 0.7, 0.25
# Where there is a guard, a step takes two or three times as long, and swaps win more for their time.
_GUARDED_POLISH, _GUARDED_SWAP = 0.35, 0.6
# Polishing looks at every class for each neighbourhood, stealing and pouring at all groups and boxes: with so many of
# them swaps reach the same loss sooner, and most of it was won by moves before.
_GUARDED_SWAP_ALONE = 0.2
_CHEAP = 1.0  # what a group may cost that is filled by stealing
_ALONE = 54_000  # signatures that are no block: one process has them all
_HEAT: dict[Effort, float] = {"fast": 0.0, "normal": 0.0, "high": 0.03}
_FEW = 0.01  # share of misplaced signatures below which other tie orders are not worth their listing
# A guard is hard to satisfy if it leaves this share of the signatures open. What they cost then matters more than the
# order of ties, and at any effort so many steps per signature are spent on it, up to the most for a piece.
_MANY = 0.05
_POUR_WORK, _MOST_POUR_WORK = 10_000.0, 1e9
# Where there is a guard, what helps against one may not against another: spend these shares of the work one after
# another, each only if the one before lowered the loss by so much. Pouring what is still rough goes on in small steps
# and must be worth more, for refinement follows.
_PROBE, _GAIN = (0.1, 0.9), 2e-4
_STEPS, _ROUGH_GAIN = (0.1, 0.2, 0.3, 0.4), 1e-2

Neighbours = Callable[[], NDArray[np.int32]]


@dataclass(frozen=True)
class Lattice:
    """The method with its options."""

    effort: Effort = "normal"
    name: str = "lattice"
    tight: bool = False
    leftover: Leftover = "join"

    def solve(self, piece: Piece) -> Solution:
        """Greedy, then the rest attached where the piece is solved to the end, then refined."""
        problem = piece.problem
        near = _neighbours(problem)
        whole = np.isinf(piece.stop)
        class_of, hard = self._greedy(piece, near, ties=TIE_ORDERS[0])
        cap = None if whole else piece.stop
        bound = simple_bound(problem, ceiling=piece.suppressed, cap=cap, reached=loss_of_each(problem, class_of))
        if not self.refines(piece.whole_size):
            return Solution(class_of, bound)
        if not hard and count_misplaced(problem, class_of, bound) > _FEW * problem.size:
            # Ties swing the result by up to a percent. Where there is something to win, try several orders.
            others = [self._greedy(piece, near, ties=ties)[0] for ties in TIE_ORDERS[1:]]
            class_of = min([class_of, *others], key=lambda each: _worth(piece, each))
        return Solution(self._refine(piece, class_of, bound, near), bound)

    def refines(self, whole_size: int) -> bool:
        """Refinement pays where its work is not spread too thinly."""
        return whole_size <= _MOST_SIGNATURES[self.effort]

    def refine(self, piece: Piece, class_of: NDArray[np.int32], bound: NDArray[np.float64]) -> NDArray[np.int32]:
        """Polish and swap in proportion to what is misplaced in this piece, then steal, then pour."""
        return self._refine(piece, class_of, bound, _neighbours(piece.problem))

    def _refine(
        self, piece: Piece, class_of: NDArray[np.int32], bound: NDArray[np.float64], near: Neighbours
    ) -> NDArray[np.int32]:
        problem = piece.problem
        whole_work = min(_WORK[self.effort] * piece.whole_size, _MOST_WORK[self.effort])
        misplaced = count_misplaced(problem, class_of, bound)
        work = whole_work * misplaced / max(1, piece.whole_size)
        measured = Measured.of(problem)

        def swap(class_of: NDArray[np.int32], share: float) -> NDArray[np.int32]:
            known = near() if problem.guard.asks and (class_of >= 0).all() else None
            return anneal(problem, measured, class_of, work=share * work, seed=piece.seed, near=known)

        if _is_alone(piece) and self.effort != "high":
            class_of = swap(class_of, _GUARDED_SWAP_ALONE)
            return _better(piece, measured, class_of, self._pour(piece, class_of, work=work, rough=True))
        polishing, swapping = (_GUARDED_POLISH, _GUARDED_SWAP) if problem.guard.asks else (_POLISH, _SWAP)
        class_of = swap(self._polish(piece, class_of, bound, work=polishing * work), swapping)
        # Stealing and pouring go by nodes; ranges and sets are published tight, and may have been better off before.
        class_of = _better(piece, measured, class_of, steal(problem, class_of, upto=_CHEAP))
        return _better(piece, measured, class_of, self._pour(piece, class_of, work=work))

    def _polish(
        self, piece: Piece, class_of: NDArray[np.int32], bound: NDArray[np.float64], *, work: float
    ) -> NDArray[np.int32]:
        """Solve neighbourhoods again."""
        problem, heat = piece.problem, _HEAT[self.effort]

        def more(class_of: NDArray[np.int32], work: float, seed: int) -> NDArray[np.int32]:
            return polish(problem, class_of, target=bound, work=work, seed=seed, heat=heat)

        if problem.guard.asks:
            return _while_it_pays(piece, class_of, more, work=work)
        return more(class_of, work, piece.seed)

    @staticmethod
    def _pour(piece: Piece, class_of: NDArray[np.int32], *, work: float, rough: bool = False) -> NDArray[np.int32]:
        """Pour from dear classes into cheaper boxes, where a guard stands in the way of everything else."""
        problem = piece.problem

        def more(class_of: NDArray[np.int32], work: float, seed: int) -> NDArray[np.int32]:
            return pour(problem, class_of, work=work, seed=seed)

        return _while_it_pays(piece, class_of, more, work=work, rough=rough) if problem.guard.asks else class_of

    def _greedy(self, piece: Piece, near: Neighbours, *, ties: int) -> tuple[NDArray[np.int32], bool]:
        """Close what lies below the stop; a piece that is solved to the end has its last few signatures attached.

        Returns:
            The classes, and whether the guard has turned out to be hard to satisfy.
        """
        problem = piece.problem
        whole = np.isinf(piece.stop)
        class_of = close_cheapest_first(problem, stop=piece.stop, ties=ties)
        hard = _is_hard(piece, class_of)
        if hard and (class_of >= 0).any():
            if whole:
                class_of = move_to_neighbours(problem, class_of, near())
            elif not self.refines(piece.whole_size):
                # What a guard keeps open in every block is too much for any rest, and finds no better company there.
                return join_placed(problem, class_of, open_cost=piece.suppressed), hard
        if whole:
            class_of = place_rest(piece, class_of)
        if hard:
            price = min(piece.stop, piece.suppressed)
            work = min(_POUR_WORK * problem.size, _MOST_POUR_WORK)

            def more(class_of: NDArray[np.int32], work: float, seed: int) -> NDArray[np.int32]:
                return pour(problem, class_of, work=work, seed=seed, open_cost=price)

            class_of = _while_it_pays(piece, class_of, more, work=work, rough=True, open_cost=price)
        return class_of, hard


def _neighbours(problem: Problem) -> Neighbours:
    """Gives the neighbours of every signature, whatever its class; they are looked for once, when they are needed."""
    everyone = np.arange(problem.size, dtype=np.int32)
    return cache(lambda: near_each(problem, Measured.of(problem), everyone))


def _is_alone(piece: Piece) -> bool:
    """Whether a piece with a guard is larger than any block, so that one process has it all."""
    return piece.problem.guard.asks and piece.problem.size >= _ALONE


def _is_hard(piece: Piece, class_of: NDArray[np.int32]) -> bool:
    """Whether the guard keeps many signatures open that k alone, and the stop, would not."""
    problem = piece.problem
    left = np.flatnonzero(class_of == FREE).astype(np.int32)
    many = _MANY * problem.size
    if not problem.guard.asks or len(left) <= many:
        return False
    if np.isfinite(piece.stop):
        alone = close_cheapest_first(problem.part(left, NOTHING), stop=piece.stop)
        return int((alone >= 0).sum()) > many
    return True


def _while_it_pays(
    piece: Piece,
    class_of: NDArray[np.int32],
    more: Callable[[NDArray[np.int32], float, int], NDArray[np.int32]],
    *,
    work: float,
    rough: bool = False,
    open_cost: float = 0.0,
) -> NDArray[np.int32]:
    """Do more of something, a little at first, and go on as long as that was worth the while."""
    shares, gain = (_STEPS, _ROUGH_GAIN) if rough else (_PROBE, _GAIN)
    before = total_loss(piece.problem, class_of, suppressed=open_cost)
    for number, share in enumerate(shares):
        class_of = more(class_of, share * work, piece.seed + number)
        after = total_loss(piece.problem, class_of, suppressed=open_cost)
        if after > (1 - gain) * before:
            break
        before = after
    return class_of


def place_rest(piece: Piece, class_of: NDArray[np.int32]) -> NDArray[np.int32]:
    """The last few signatures of a piece that is solved to the end join classes; with a guard these must stay good."""
    if piece.problem.guard.asks:
        return mend(piece.problem, class_of, suppressible=piece.suppressible)
    return attach_rest(piece.problem, class_of)


def _better(piece: Piece, measured: Measured, one: NDArray[np.int32], other: NDArray[np.int32]) -> NDArray[np.int32]:
    """The other classes, unless they cost more."""
    if other is one:
        return one
    rows, suppressed = piece.problem.rows, piece.suppressed
    before = measured.total(one, rows, suppressed=suppressed)
    return other if measured.total(other, rows, suppressed=suppressed) <= before else one


def _worth(piece: Piece, class_of: NDArray[np.int32]) -> float:
    """Loss of a piece; what stays open will cost the stop or more."""
    return total_loss(piece.problem, class_of, suppressed=min(piece.stop, piece.suppressed))
