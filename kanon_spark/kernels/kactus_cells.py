"""From the leaves of a pruned tree to classes, and from the paths that led there to what each class publishes.

A class publishes the QIs that its path names: the value where a cut told values apart, the range (or lowest common
ancestor) where it used thresholds. All other cells are suppressed, and so are those whose lowest common ancestor says
nothing: the root, or a node that must not be published.

The single-dimension operator suppresses in all rows what is suppressed in any. A suppressed range counts for all the
values between its ends. So values that the ranges of classes link together share one fate, and the fix point is found
in one look at them.

Cost: one pass over the signatures per QI.

Source: kACTUS (see `kactus.py`), whose point is that suppression in single rows loses less than in whole columns.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kanon_spark.kernels.guarded_groups import first_to_stay_good
from kanon_spark.kernels.kactus_pruning import Holding, Loan, lendable
from kanon_spark.kernels.lattice import class_table
from kanon_spark.kernels.problem import OWN, Problem
from kanon_spark.kernels.regions import Path, Regions
from kanon_spark.kernels.value_sums import ValueSums

Ints = NDArray[np.int32]
Bools = NDArray[np.bool_]


class Classes(NamedTuple):
    """Classes of the signatures of a problem.

    Attributes:
        class_of: Class of each signature, -1 for none.
        named: Classes by QIs: whether the path names the QI.
    """

    class_of: Ints
    named: Bools


def holdings(problem: Problem, regions: Regions, leaf_of: Ints) -> dict[int, Holding]:
    """What each leaf of a tree that was grown here holds; a signature's key is its number, which follows the codes."""
    order = np.argsort(leaf_of, kind="stable")
    leaves, first = np.unique(leaf_of[order], return_index=True)
    found: dict[int, Holding] = {}
    for leaf, members in zip(leaves.tolist(), np.split(order, first[1:]), strict=True):
        values = _values(problem, members)
        persons = problem.persons[members]
        if regions[leaf].persons > problem.k:  # a long list, of which only the smallest can be asked for
            smallest = np.argsort(persons, kind="stable")
            smallest = smallest[persons[smallest] > 0][: problem.k]
            members, persons = members[smallest], persons[smallest]
        loans = lendable(map(Loan, persons.tolist(), members.tolist()), problem.k)
        loans = tuple(loan._replace(values=_values(problem, np.array([loan.key]))) for loan in loans)
        found[leaf] = Holding(regions[leaf].signatures, regions[leaf].persons, (leaf,), (), loans, values)
    return found


def _values(problem: Problem, members: NDArray[np.integer]) -> ValueSums | None:
    """Sensitive values of some signatures, where more than k is asked."""
    guard = problem.guard
    return ValueSums.of_members(guard.histograms, guard.demands, members) if guard.asks else None


def named_by(paths: list[Path], width: int) -> Bools:
    """Which QIs each path names."""
    named = np.zeros((len(paths), width), np.bool_)
    for number, path in enumerate(paths):
        named[number, [qi for qi, _ in path]] = True
    return named


def place(classes: list[Holding], left: Holding, leaf_of: Ints, leaves: int) -> Ints:
    """Class of each signature, by the leaf it lies in, or by the class that has borrowed it; -1 for what is left."""
    of_leaf = np.full(leaves, -1, np.int32)
    for number, held in enumerate(classes):
        of_leaf[list(held.leaves)] = number
    class_of = of_leaf[leaf_of]
    class_of[list(left.borrowed)] = -1
    for number, held in enumerate(classes):
        class_of[list(held.borrowed)] = number
    return class_of


def silent_cells(problem: Problem, classes: Classes, roots: Ints) -> Bools:
    """Classes by QIs: what says nothing, since no path names it or its lowest common ancestor is no answer.

    Args:
        problem: The signatures, or any whose least and largest codes in each class are theirs.
        classes: Their classes.
        roots: The root of each QI's full tree.
    """
    forest, measure = problem.forest, problem.measure
    table, _, _ = class_table(problem, classes.class_of)
    by_node = np.array([measure is None or measure.kinds[j] == "node" for j in range(forest.width)])
    says_nothing = (forest.original[table] == roots) | np.isinf(forest.loss[table])
    silent: Bools = ~classes.named | (by_node & says_nothing)
    return silent


def as_nodes(silent: Bools, class_of: Ints, roots: Ints) -> Ints:
    """What each signature publishes: the root of what is silent, else what its class's own values give."""
    of_class = np.vstack([np.where(silent, roots, OWN), np.full((1, len(roots)), OWN)])  # -1 points behind the classes
    return of_class[class_of].astype(np.int32)


def cheapest_to_suppress(problem: Problem, class_of: Ints, silent: Bools) -> int:
    """The class with the fewest cells to lose that stays good with all that is left; -1 if there is none.

    Of equal ones it is the class of the first signature.
    """
    classes = len(silent)
    if not classes:
        return -1
    placed = class_of >= 0
    rows = np.bincount(class_of[placed], weights=problem.rows[placed], minlength=classes).astype(np.int64)
    first = np.full(classes, problem.size)
    np.minimum.at(first, class_of[placed], np.flatnonzero(placed))
    cells = rows * (~silent).sum(axis=1)
    return first_to_stay_good(problem.guard, class_of, np.lexsort([first, cells]))


def lost_values(suppressed: Bools, top: Ints) -> Bools:
    """The values of a QI that are suppressed everywhere, once some are suppressed somewhere.

    Args:
        suppressed: Per code, whether it is suppressed in some row.
        top: Per code, the largest code of the classes that publish the QI and whose least code it is; -1 for none.
    """
    reach = np.maximum.accumulate(top)
    linked = reach[:-1] > np.arange(len(top) - 1)  # to the next code, by a range that holds both
    group = np.concatenate([[0], np.cumsum(~linked)])
    lost: Bools = np.bincount(group, weights=suppressed)[group] > 0
    return lost


def single_dimension(problem: Problem, class_of: Ints, silent: Bools) -> Bools:
    """The silent cells once every value that is suppressed somewhere is suppressed everywhere.

    Signatures without a class publish nothing and do not count.
    """
    silent = silent.copy()
    placed = class_of >= 0
    for j in range(problem.forest.width):
        codes, leaves = problem.codes[:, j], int(problem.forest.leaves[j])
        suppressed = np.zeros(leaves, np.bool_)
        suppressed[codes[placed][silent[class_of[placed], j]]] = True
        low = np.full(len(silent), leaves, np.int32)
        high = np.full(len(silent), -1, np.int32)
        np.minimum.at(low, class_of[placed], codes[placed])
        np.maximum.at(high, class_of[placed], codes[placed])
        top = np.full(leaves, -1, np.int32)
        shown = ~silent[:, j]
        np.maximum.at(top, low[shown], high[shown])
        silent[:, j] |= lost_values(suppressed, top)[low]
    return silent
