"""What refinement needs of a problem whatever its classes are, found on another core while these are formed.

Idea: which signatures are near each other, and which groups are cheap, depends on the signatures alone. Where a piece
is larger than any block it is solved on the driver, and the other cores have nothing to do meanwhile. The results are
those that refinement would have found by itself, so that nothing depends on how many cores there are.

Where some signatures stay free, refinement looks among the others only, and finds these things by itself.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kanon_spark.kernels.annealing import near_each
from kanon_spark.kernels.guard import Guard
from kanon_spark.kernels.listing import Groups
from kanon_spark.kernels.measure import Measured
from kanon_spark.kernels.problem import Problem
from kanon_spark.kernels.stealing import cheap_groups

Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Ahead:
    """What is being found of a problem with all its signatures placed; nothing, where each is to be found when needed.

    Attributes:
        _near: Neighbours of each signature.
        _groups: Groups that cost little.
    """

    _near: "Future[Ints] | None" = None
    _groups: "Future[Groups] | None" = None

    def near(self, class_of: Ints) -> Ints | None:
        """The neighbours of each signature, for `anneal`; None if there are none for these classes."""
        return self._near.result() if self._near is not None and (class_of >= 0).all() else None

    def groups(self, class_of: Ints) -> Groups | None:
        """The cheap groups, for `steal`; None if there are none for these classes."""
        return self._groups.result() if self._groups is not None and (class_of >= 0).all() else None


NOTHING_AHEAD = Ahead()


@contextmanager
def looking_ahead(problem: Problem, *, upto: float) -> Iterator[Ahead]:
    """Begin to find what refinement will need; what has not begun when the block is left is not begun any more."""
    guard = problem.guard
    # A guard's scratch room is for one thread.
    own = replace(problem, guard=Guard.of(guard.demands, guard.histograms))
    everything = np.arange(problem.size, dtype=np.int32)
    pool = ThreadPoolExecutor(max_workers=1)
    try:
        yield Ahead(
            pool.submit(lambda: near_each(own, Measured.of(own), everything)),
            pool.submit(lambda: cheap_groups(own, everything, upto=upto)),
        )
    finally:
        pool.shutdown(cancel_futures=True)
