"""What the engine does so that every class of a piece is good, whatever the method."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kanon_spark.kernels.guard import Guard
from kanon_spark.kernels.lattice import FREE, close_cheapest_first
from kanon_spark.kernels.mending import good_classes, mend
from kanon_spark.kernels.problem import OWN
from kanon_spark.methods.base import Piece, Solution
from kanon_spark.signatures.sensitive import Judged

Ints = NDArray[np.int32]


def keep_good(piece: Piece, solution: Solution, *, mends: bool) -> Solution:
    """Mend what breaks a demand, and what a method left open although the piece is solved to the end.

    Otherwise what is not good stays open: in a block, because it meets the rest of the table later, and with a method
    that suppresses what it cannot place.
    """
    problem = piece.problem
    if not problem.guard.asks:
        return solution
    if not mends:
        good = good_classes(problem, solution.class_of)
        placed = solution.class_of >= 0
        kept = placed & good[np.where(placed, solution.class_of, 0)] if len(good) else placed
        return replace(solution, class_of=np.where(kept, solution.class_of, FREE).astype(np.int32))
    mended = mend(problem, solution.class_of, suppressible=piece.suppressible)
    if problem.rows[mended == FREE].sum() > piece.suppressible:
        # One bad class may have swallowed all good ones. Cheap groups that are good by themselves are a better start.
        anew = mend(problem, close_cheapest_first(problem), suppressible=piece.suppressible)
        if problem.rows[anew == FREE].sum() < problem.rows[mended == FREE].sum():
            mended = anew
    return _changed(solution, mended)


def keep_good_after_suppression(piece: Piece, solution: Solution, judged: Judged) -> Solution:
    """Hold the classes against the distribution of what is released: suppressed rows have changed it.

    Classes that now break a demand take others in; nothing more is suppressed unless it must not be published. The
    class of everything has the distribution of the release, so that this comes to an end.
    """
    problem = piece.problem
    while judged.relative and (solution.class_of == FREE).any() and (solution.class_of >= 0).any():
        placed = np.flatnonzero(solution.class_of >= 0)
        gone = problem.guard.take(np.flatnonzero(solution.class_of == FREE)).histograms
        left = problem.guard.take(placed).histograms
        released = problem.part(placed, Guard.of(judged.without(gone).demands, left))
        class_of = solution.class_of.copy()
        class_of[placed] = mend(released, solution.class_of[placed], suppressible=0)
        before, solution = solution, _changed(solution, class_of)
        if (before.class_of == FREE).sum() == (class_of == FREE).sum():
            break
    return solution


def _changed(solution: Solution, class_of: Ints) -> Solution:
    """The solution with other classes; one that is not what it was publishes what its own values give."""
    if solution.nodes is None:
        return replace(solution, class_of=class_of)
    pairs = np.stack([solution.class_of, class_of], axis=1)
    _, first = np.unique(pairs, axis=0, return_index=True)
    sources = np.bincount(pairs[first, 1][pairs[first, 1] >= 0], minlength=int(class_of.max(initial=0)) + 1)
    targets = np.bincount(pairs[first, 0][pairs[first, 0] >= 0], minlength=int(solution.class_of.max(initial=0)) + 1)
    old, new = pairs[:, 0], pairs[:, 1]
    same = (old >= 0) & (new >= 0) & (sources[np.maximum(new, 0)] == 1) & (targets[np.maximum(old, 0)] == 1)
    return replace(solution, class_of=class_of, nodes=np.where(same[:, None], solution.nodes, OWN).astype(np.int32))
