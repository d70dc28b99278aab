"""What a class must satisfy beyond k, asked by kernels wherever a class is closed or changed.

A guard holds the demands (`privacy/demands.py`) and the histogram of each signature of a problem. Where nothing is
asked it is `NOTHING`, and compiled code is given None (`Guard.compiled`): numba leaves out what stands behind
`guard is None`, so that kernels need no second version of themselves and a run with k alone compiles nothing of this.

All models are union safe: two classes that satisfy them still do together. But a class that satisfies may stop to when
something that does not satisfy joins it, or when something leaves it: then it has to be asked again.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.privacy.columns import Column
from kanon_spark.privacy.demands import Demands, all_satisfy, members_satisfy, some_may_satisfy
from kanon_spark.privacy.histograms import Histograms, Scratch, merge, new_scratch

Bools = NDArray[np.bool_]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


class Guard(NamedTuple):
    """Demands on the classes of one problem.

    Attributes:
        demands: What is asked.
        histograms: One unit per signature of the problem, in its order.
        scratch: Room for one class; a guard must not be used by two threads at once.
    """

    demands: Demands
    histograms: Histograms
    scratch: Scratch

    @classmethod
    def of(cls, demands: Demands, histograms: Histograms) -> "Guard":
        """A guard with room of its own."""
        return cls(demands, histograms, new_scratch(demands.base))

    @property
    def asks(self) -> bool:
        """Whether anything is asked."""
        return len(self.demands.code) > 0

    @property
    def compiled(self) -> "Guard | None":
        """What compiled code is given; None where nothing is asked."""
        return self if self.asks else None

    def may_accept(self, members: NDArray[np.integer]) -> bool:
        """The same as the compiled `may_accept`."""
        return bool(may_accept(self.compiled, members))

    def take(self, index: NDArray[np.integer]) -> "Guard":
        """The guard of some of the signatures, in the given order."""
        if not self.asks:
            return self
        unit = np.full(self.histograms.units, -1, np.int64)
        unit[index] = np.arange(len(index))
        return Guard.of(self.demands, merge(self.histograms, unit, classes=len(index)))

    def merged(self, class_of: NDArray[np.integer], classes: int) -> "Guard":
        """The guard of a problem whose signatures are these classes; negative ones are left out."""
        if not self.asks:
            return self
        return Guard.of(self.demands, merge(self.histograms, class_of.astype(np.int64), classes=classes))

    def satisfied(self, class_of: NDArray[np.integer], classes: int) -> Bools:
        """Which of the classes satisfy everything that is asked (k is not asked here)."""
        if not self.asks:
            return np.ones(classes, np.bool_)
        found: Bools = all_satisfy(self.demands, self.merged(class_of, classes).histograms)
        return found


def unguarded(columns: Sequence[Column] = ()) -> Guard:
    """A guard that asks nothing."""
    nobody = Histograms(
        len(columns), np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64)
    )
    return Guard.of(Demands.of(columns, {}), nobody)


NOTHING = unguarded()


@njit(cache=True)
def accepts(guard, members):  # type: ignore[no-untyped-def]
    """Whether a class of these signatures satisfies everything that is asked (k is not asked here)."""
    if guard is None:
        return True
    return members_satisfy(guard.demands, guard.histograms, members, guard.scratch)


@njit(cache=True)
def may_accept(guard, members):  # type: ignore[no-untyped-def]
    """False where it is certain that no class of some of these signatures would be accepted."""
    if guard is None:
        return True
    return some_may_satisfy(guard.demands, guard.histograms, members, guard.scratch)


@njit(cache=True)
def asks(guard):  # type: ignore[no-untyped-def]
    """Whether anything is asked: lets a kernel skip the gathering of members."""
    return guard is not None
