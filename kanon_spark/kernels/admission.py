"""Which of those who want to join a class may, where classes must satisfy more than k.

A class takes all who ask at once if it is still good with all of them. Else they are asked in turn, those whose joining
costs least first, and each is taken who leaves the class good with those taken before. Classes do not depend on each
other, so whoever holds a class and its askers can decide.

Cost: per class the histograms of its askers; where not all are taken, once more for each of them.
"""

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.kernels.guard import Guard
from kanon_spark.privacy.demands import members_satisfy

Bools = NDArray[np.bool_]
Longs = NDArray[np.int64]

# How often those ask again whom a class has refused. Each time all classes that had to refuse somebody are closed.
ROUNDS = 8


def admitted(guard: Guard, class_units: Longs, wanted: Longs, askers: Longs) -> Bools:
    """Whether each asker is taken by the class it wants.

    Args:
        guard: Its units are what classes and askers are made of.
        class_units: The unit of each class.
        wanted: The class that each asker wants.
        askers: Their units, in the order in which they are asked.
    """
    if not guard.asks:
        return np.ones(len(askers), np.bool_)
    turn = np.argsort(wanted, kind="stable")
    found: Bools = _admit(guard, class_units, wanted[turn], askers[turn])
    out = np.empty(len(askers), np.bool_)
    out[turn] = found
    return out


@njit(cache=True)
def _admit(guard, class_units, wanted, askers):  # type: ignore[no-untyped-def]
    """The same for askers in the order of the classes that they want."""
    taken = np.zeros(len(askers), np.bool_)
    members = np.empty(len(askers) + 1, np.int64)
    begin = 0
    while begin < len(askers):
        end = begin
        while end < len(askers) and wanted[end] == wanted[begin]:
            end += 1
        members[0] = class_units[wanted[begin]]
        members[1 : 1 + end - begin] = askers[begin:end]
        if members_satisfy(guard.demands, guard.histograms, members[: 1 + end - begin], guard.scratch):
            taken[begin:end] = True
        else:
            size = 1
            for i in range(begin, end):
                members[size] = askers[i]
                taken[i] = members_satisfy(guard.demands, guard.histograms, members[: size + 1], guard.scratch)
                size += taken[i]
        begin = end
    return taken
