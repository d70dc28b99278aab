"""`lattice`: close the cheapest group first, over all groups of the lattice; then polish and steal.

Our own method, the default where hierarchies exist. See `kernels/lattice.py` for the idea and `kernels/polish.py` for the
refinement; this file only decides how much of each is done.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kanon_spark.kernels.bounds import simple_bound
from kanon_spark.kernels.lattice import attach_rest, close_cheapest_first, total_loss
from kanon_spark.kernels.polish import polish, steal
from kanon_spark.methods.base import Effort, Piece, Solution

# Polishing rounds per signature, and the table size beyond which a fixed number of rounds would be a drop in the ocean.
_ROUNDS: dict[Effort, float] = {"fast": 0.0, "normal": 0.06, "high": 4.0}
_MOST_SIGNATURES: dict[Effort, int] = {"fast": 0, "normal": 100_000, "high": 2_000_000}
_LEAST_ROUNDS = 50


@dataclass(frozen=True)
class Lattice:
    """The method with its options."""

    effort: Effort = "normal"
    name: str = "lattice"

    def solve(self, piece: Piece) -> Solution:
        """Greedy, then the rest attached where the piece is solved to the end, then refined."""
        problem = piece.problem
        whole = np.isinf(piece.stop)
        class_of = close_cheapest_first(problem, stop=piece.stop)
        if whole:
            class_of = attach_rest(problem, class_of)
            if self.effort == "high":
                class_of = self._other_order(piece, class_of)
        bound = simple_bound(problem, ceiling=piece.suppressed, cap=None if whole else piece.stop)
        rounds = self._rounds(piece)
        if rounds:
            class_of = polish(problem, class_of, target=bound, rounds=rounds, seed=piece.seed)
            class_of = steal(problem, class_of, upto=1.0)
        return Solution(class_of, bound)

    def _other_order(self, piece: Piece, first: NDArray[np.int32]) -> NDArray[np.int32]:
        """Ties swing the result by up to a percent: try them the other way round and keep the better."""
        second = attach_rest(piece.problem, close_cheapest_first(piece.problem, stop=piece.stop, reverse_ties=True))
        losses = [total_loss(piece.problem, found, suppressed=piece.suppressed) for found in (first, second)]
        return second if losses[1] < losses[0] else first

    def _rounds(self, piece: Piece) -> int:
        """Rounds by the size of the whole table, shared out by the size of the piece."""
        if piece.whole_size > _MOST_SIGNATURES[self.effort]:
            return 0
        size = piece.problem.size
        whole = max(_LEAST_ROUNDS, round(_ROUNDS[self.effort] * piece.whole_size))
        return round(whole * size / max(1, piece.whole_size)) if size else 0
