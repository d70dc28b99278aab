"""`kmember`: greedy k-member clustering, the default where no quasi-identifier has a hierarchy.

It measures what is published: tight ranges and sets for QIs without a hierarchy, nodes for the others. See
`kernels/kmember.py` for the greedy and `kernels/annealing.py` for the refinement; this file only decides how much of
each is done.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kanon_spark.kernels.annealing import BRIEF, PATIENT, anneal
from kanon_spark.kernels.attaching import attach
from kanon_spark.kernels.bounds import simple_bound
from kanon_spark.kernels.kmember import cheapest_first, paper_order
from kanon_spark.kernels.measure import Measured
from kanon_spark.methods.base import Effort, Leftover, Piece, Solution

# Refinement: values looked at per signature and the most for a whole table (some 10^9 in 3 s; an evaluation looks at
# one value of each QI), both for small k and growing with it, since large classes take longer to settle; and the size
# beyond which that would be spread too thinly.
_WORK: dict[Effort, float] = {"fast": 0.0, "normal": 1.04e5, "high": 8.0e6}
_MOST_WORK: dict[Effort, float] = {"fast": 0.0, "normal": 1.04e9, "high": 1.1e11}
_LEAST_WIDTH = 4  # with fewer QIs an evaluation takes no less time
_K_UNIT = 30.0
_WARMER = BRIEF._replace(hot=0.9)  # sets and ranges have more ways out of a valley than nodes
PENALTY = 0.5  # charge for a row outside its class's majority, unless the configuration names another
_MOST_SIGNATURES: dict[Effort, int] = {"fast": 0, "normal": 100_000, "high": 2_000_000}


@dataclass(frozen=True)
class KMember:
    """The method with its options.

    Attributes:
        effort: How long the classes are refined; `order: paper` is left as the paper makes it.
        order: Cheapest class first, or the paper's order.
        penalty: Charge for a row whose label is not that of its class's majority; 0 where no label is guarded.
    """

    effort: Effort = "normal"
    order: Literal["cheapest", "paper"] = "cheapest"
    penalty: float = 0.0
    name: str = "kmember"
    tight: bool = True
    leftover: Leftover = "join"

    def solve(self, piece: Piece) -> Solution:
        """Greedy, then the rest attached where the piece is solved to the end, then refined."""
        problem = piece.problem
        measured = Measured.of(problem, penalty=self.penalty)
        whole = np.isinf(piece.stop)
        by_nodes = problem.measure is None or problem.measure.only_nodes
        if self.order == "paper":
            class_of = paper_order(problem, measured, seed=piece.seed)
        else:
            # Neighbours on a range or in a set cost next to nothing across any border, so waiting for them would leave
            # everything open: a block with such QIs closes all it can. Hierarchies make borders dear, and worth it.
            class_of = cheapest_first(problem, measured, stop=piece.stop if by_nodes else np.inf)
        if whole:
            class_of = attach(problem, measured, class_of)
        bound = np.zeros(problem.size)
        if by_nodes and not whole:
            bound = simple_bound(problem, ceiling=piece.suppressed, cap=piece.stop)
        if self.refines(piece.whole_size):
            class_of = self.refine(piece, class_of, bound)
        return Solution(class_of, bound)

    def refines(self, whole_size: int) -> bool:
        """Refinement pays where its work is not spread too thinly."""
        return self.order == "cheapest" and whole_size <= _MOST_SIGNATURES[self.effort]

    def refine(self, piece: Piece, class_of: NDArray[np.int32], bound: NDArray[np.float64]) -> NDArray[np.int32]:
        """Swap and rebuild, with work in proportion to the piece."""
        problem = piece.problem
        size = 1.0 + problem.k / _K_UNIT
        values = min(_WORK[self.effort] * piece.whole_size, _MOST_WORK[self.effort]) * size
        whole_work = values / max(_LEAST_WIDTH, problem.codes.shape[1])
        work = whole_work * problem.size / max(1, piece.whole_size)
        measured = Measured.of(problem, penalty=self.penalty)
        schedule = PATIENT if self.effort == "high" else _WARMER
        return anneal(problem, measured, class_of, work=work, seed=piece.seed, schedule=schedule)
