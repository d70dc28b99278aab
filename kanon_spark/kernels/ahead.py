"""The neighbours of each signature, found on another core while classes are formed.

Idea: which signatures are near each other depends on the signatures alone. Where a piece is larger than any block it is
solved on the driver, and the other cores have nothing to do meanwhile. The result is the one that would have been found
when it is needed, so that nothing depends on how many cores there are.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kanon_spark.kernels.annealing import near_each
from kanon_spark.kernels.measure import Measured
from kanon_spark.kernels.problem import Problem

Ints = NDArray[np.int32]


class Neighbours:
    """The neighbours of a problem's signatures, found once: from the beginning, or when they are first asked for."""

    def __init__(self, problem: Problem, begun: "Future[Ints] | None" = None) -> None:
        self._problem = problem
        self._begun = begun

    @cached_property
    def of_all(self) -> Ints:
        """Those of every signature, whatever its class."""
        return _find(self._problem) if self._begun is None else self._begun.result()

    def of_placed(self, class_of: Ints) -> Ints | None:
        """The same for refinement, which looks among the signatures that have a class; None where some have none."""
        return self.of_all if (class_of >= 0).all() else None


@contextmanager
def neighbours_ahead(problem: Problem, *, begin: bool) -> Iterator[Neighbours]:
    """The neighbours of a problem's signatures; `begin` finds them on another core from now on."""
    if not begin:
        yield Neighbours(problem)
        return
    with ThreadPoolExecutor(max_workers=1) as pool:
        yield Neighbours(problem, pool.submit(_find, problem))


def _find(problem: Problem) -> Ints:
    return near_each(problem, Measured.of(problem), np.arange(problem.size, dtype=np.int32))
