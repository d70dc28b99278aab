"""`lattice`: close the cheapest group first, over all groups of the lattice; then polish, swap and steal.

Our own method, the default where hierarchies exist. See `kernels/lattice.py` for the idea, `kernels/polish.py` and
`kernels/annealing.py` for the refinement; this file only decides how much of each is done.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kanon_spark.kernels.annealing import anneal
from kanon_spark.kernels.bounds import simple_bound
from kanon_spark.kernels.lattice import (
    TIE_ORDERS,
    attach_rest,
    close_cheapest_first,
    count_misplaced,
    loss_of_each,
    total_loss,
)
from kanon_spark.kernels.measure import Measured
from kanon_spark.kernels.mending import mend
from kanon_spark.kernels.polish import polish
from kanon_spark.kernels.stealing import steal
from kanon_spark.methods.base import Effort, Leftover, Piece, Solution

# Refinement: steps of work per signature, the most for a whole table (some 10^8 a second), and the table size beyond
# which that would be spread too thinly to be worth its time.
_WORK: dict[Effort, float] = {"fast": 0.0, "normal": 40_000.0, "high": 2_400_000.0}
_MOST_WORK: dict[Effort, float] = {"fast": 0.0, "normal": 4.2e8, "high": 1e11}
_MOST_SIGNATURES: dict[Effort, int] = {"fast": 0, "normal": 100_000, "high": 2_000_000}
# Shares of that work: solving neighbourhoods again finds what swaps do not, and is dear; swaps are the finer tool.
_POLISH, _SWAP = 0.7, 0.25
_HEAT: dict[Effort, float] = {"fast": 0.0, "normal": 0.0, "high": 0.03}
_FEW = 0.01  # share of misplaced signatures below which other tie orders are not worth their listing


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
        whole = np.isinf(piece.stop)
        class_of = self._greedy(piece, ties=TIE_ORDERS[0])
        cap = None if whole else piece.stop
        bound = simple_bound(problem, ceiling=piece.suppressed, cap=cap, reached=loss_of_each(problem, class_of))
        if not self.refines(piece.whole_size):
            return Solution(class_of, bound)
        if count_misplaced(problem, class_of, bound) > _FEW * problem.size:
            # Ties swing the result by up to a percent. Where there is something to win, try several orders.
            others = [self._greedy(piece, ties=ties) for ties in TIE_ORDERS[1:]]
            class_of = min([class_of, *others], key=lambda each: _worth(piece, each))
        return Solution(self.refine(piece, class_of, bound), bound)

    def refines(self, whole_size: int) -> bool:
        """Refinement pays where its work is not spread too thinly."""
        return whole_size <= _MOST_SIGNATURES[self.effort]

    def refine(self, piece: Piece, class_of: NDArray[np.int32], bound: NDArray[np.float64]) -> NDArray[np.int32]:
        """Polish and swap in proportion to what is misplaced in this piece, then steal."""
        whole_work = min(_WORK[self.effort] * piece.whole_size, _MOST_WORK[self.effort])
        misplaced = count_misplaced(piece.problem, class_of, bound)
        work = whole_work * misplaced / max(1, piece.whole_size)
        heat, seed = _HEAT[self.effort], piece.seed
        class_of = polish(piece.problem, class_of, target=bound, work=_POLISH * work, seed=seed, heat=heat)
        measured = Measured.of(piece.problem)
        class_of = anneal(piece.problem, measured, class_of, work=_SWAP * work, seed=seed)
        stolen = steal(piece.problem, class_of, upto=1.0)
        # Stealing goes by nodes; ranges and sets are published tight, and may have been better off before.
        rows, suppressed = piece.problem.rows, piece.suppressed
        before = measured.total(class_of, rows, suppressed=suppressed)
        return stolen if measured.total(stolen, rows, suppressed=suppressed) <= before else class_of

    @staticmethod
    def _greedy(piece: Piece, *, ties: int) -> NDArray[np.int32]:
        """Close what lies below the stop; a piece that is solved to the end has its last few signatures attached."""
        class_of = close_cheapest_first(piece.problem, stop=piece.stop, ties=ties)
        return place_rest(piece, class_of) if np.isinf(piece.stop) else class_of


def place_rest(piece: Piece, class_of: NDArray[np.int32]) -> NDArray[np.int32]:
    """The last few signatures of a piece that is solved to the end join classes; with a guard these must stay good."""
    if piece.problem.guard.asks:
        return mend(piece.problem, class_of, suppressible=piece.suppressible)
    return attach_rest(piece.problem, class_of)


def _worth(piece: Piece, class_of: NDArray[np.int32]) -> float:
    """Loss of a piece; what stays open will cost the stop or more."""
    return total_loss(piece.problem, class_of, suppressed=min(piece.stop, piece.suppressed))
