"""`mondrian`: which cut a region gets, from its marginals alone.

Idea: take the QI that would cost the region most if it were published now (its *width*), and divide it:

    hierarchy   width: loss of the lowest common ancestor. Cut: the ancestor's children, all of them at once; allowable
                if each one that holds rows has k persons.
    range       width: its share of the domain's range. Cut: two stretches, both of k persons, as equal in persons as
                can be (of two such cuts the lower).
    set         width: its share of the domain's values. Cut: two stretches of the order of codes, likewise.
    null        mixed with the values of a range or set it makes the width the full weight. It is cut off if both sides
                have k persons; else it goes with the upper stretch, so that most of the values are rid of it.

If the widest QI has no allowable cut, the next widest is tried (equal widths: in declared order). The cuts are strict:
a signature is never split. Where classes must satisfy more than k, a cut is allowable only if each of its sides does,
and the most equal of such cuts is taken: since the union of good classes is good, a region that is not can only be
divided by a cut that has to be.

A node that must not be published (`max_level`) is infinitely wide, so it is divided before anything else, and whatever
its children hold: a class across them could not be published either, so what falls under k there is lost to every
method.

Cost: linear in the values that the region holds, in each QI times the height of its tree; `good_cuts.py` tells what
histograms add.
Source: LeFevre, DeWitt, Ramakrishnan, Mondrian Multidimensional K-Anonymity (2006), strict cuts; dividing by children
of a hierarchy as the papers that compare themselves with it do.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.kernels.box import NODE, RANGE
from kanon_spark.kernels.good_cuts import at_good_median, children_are_good
from kanon_spark.kernels.guard import Guard
from kanon_spark.kernels.measure import Measured
from kanon_spark.kernels.problem import Problem
from kanon_spark.kernels.regions import Choose, Cut, Marginals, Path

_DIGITS = 1e9  # widths are compared to so many parts, so that a tie does not hang on the order of a sum


def widest_first(problem: Problem) -> Choose:
    """The choice of cuts on a table; of the problem only trees, measure, k and the demands of the guard are read."""
    rules, k, guard = Measured.of(problem).rules, problem.k, problem.guard

    def choose(marginals: Marginals, path: Path) -> Cut | None:
        if marginals.sensitive is None:
            qi, bounds = _widest_cut(rules, k, marginals.start, marginals.codes, marginals.persons)
        else:
            qi, bounds = _widest_good_cut(rules, k, guard, marginals)
        return None if qi < 0 else Cut(qi, bounds, ordered=bool(rules.kind[qi] == RANGE))

    return choose


def _widest_good_cut(rules: Any, k: int, guard: Guard, marginals: Marginals) -> tuple[int, NDArray[np.int32]]:
    """The same as `_widest_cut` with good children; histograms are asked for once a QI's turn has come."""
    nothing = -1, np.empty(0, np.int32)
    if marginals.all_persons < k:
        return nothing
    widths = _widths(rules, marginals.start, marginals.codes)
    for qi in np.argsort(-widths, kind="stable").tolist():
        must = widths[qi] == np.inf
        if widths[qi] < 0 or (marginals.all_persons < 2 * k and not must):
            return nothing
        here = marginals.entries(qi)
        codes, persons = marginals.codes[here], marginals.persons[here]
        by_node = rules.kind[qi] == NODE
        if by_node:
            bounds = _between_children(rules, qi, 0 if must else k, codes, persons)
        else:
            bounds = _at_median(k, rules.null[qi], codes, persons)
        if len(bounds) and not must and marginals.sensitive is not None:
            held = guard._replace(histograms=marginals.sensitive(qi))
            if not by_node:
                bounds = at_good_median(held, k, rules.null[qi], codes, persons)
            elif not children_are_good(held, codes, bounds):
                continue
        if len(bounds):
            return qi, bounds
    return nothing


@njit(cache=True)
def _widest_cut(rules, k, start, codes, persons):  # type: ignore[no-untyped-def]
    """The QI to divide and the bounds of its children; QI -1 where no cut is allowable."""
    width = _widths(rules, start, codes)
    held = persons[start[0] : start[1]].sum()
    bounds = np.empty(0, np.int32)
    if held < k:  # left behind by a cut that had to be
        return -1, bounds
    while True:
        qi = np.argmax(width)  # the first of equals
        if width[qi] < 0 or (held < 2 * k and width[qi] < np.inf):
            return -1, bounds
        here = slice(start[qi], start[qi + 1])
        if rules.kind[qi] == NODE:
            bounds = _between_children(rules, qi, 0 if width[qi] == np.inf else k, codes[here], persons[here])
        else:
            bounds = _at_median(k, rules.null[qi], codes[here], persons[here])
        if len(bounds):
            return qi, bounds
        width[qi] = -1.0


@njit(cache=True)
def _widths(rules, start, codes):  # type: ignore[no-untyped-def]
    """Width of each QI in whole parts."""
    width = np.empty(len(start) - 1)
    for j in range(len(width)):
        width[j] = np.rint(_DIGITS * _width(rules, j, codes[start[j] : start[j + 1]]))
    return width


@njit(cache=True)
def _width(rules, qi, codes):  # type: ignore[no-untyped-def]
    """What the region would lose in one QI; -1 where it holds a single value, which cannot be divided."""
    if len(codes) < 2:
        return -1.0
    first, last = codes[0], codes[-1]
    if rules.kind[qi] == NODE:
        return rules.loss[_lowest_common(rules, qi, first, last)]
    if last == rules.null[qi]:
        return rules.weight[qi]
    if rules.kind[qi] == RANGE:
        # Infinite values lie outside the span.
        return min(rules.weight[qi], rules.place[rules.base[qi] + last] - rules.place[rules.base[qi] + first])
    return rules.step[qi] * len(codes)


@njit(cache=True)
def _lowest_common(rules, qi, first, last):  # type: ignore[no-untyped-def]
    node = rules.start[qi] + first
    while rules.hi[node] <= last:
        node = rules.parent[node]
    return node


@njit(cache=True)
def _between_children(rules, qi, least, codes, persons):  # type: ignore[no-untyped-def]
    """Bounds between the children of the lowest common ancestor; none if one that holds rows has too few persons."""
    above = _lowest_common(rules, qi, codes[0], codes[-1])
    bounds = np.empty(len(codes), np.int32)
    children, held, end = 0, 0, 0
    for i in range(len(codes)):
        if codes[i] >= end:  # the next child begins
            if children and held < least:
                return bounds[:0]
            child = rules.start[qi] + codes[i]
            while rules.parent[child] != above:
                child = rules.parent[child]
            bounds[children] = rules.lo[child]
            end = rules.hi[child]
            children += 1
            held = 0
        held += persons[i]
    return bounds[:0] if held < least else bounds[1:children]


@njit(cache=True)
def _at_median(k, null, codes, persons):  # type: ignore[no-untyped-def]
    """The bound between two stretches of k persons or more, as equal as can be; none if there is no such bound."""
    last = len(codes) - 1
    everybody = persons.sum()
    best = np.empty(0, np.int32)
    if codes[last] == null and persons[last] >= k and everybody - persons[last] >= k:
        return codes[last:].copy()
    least = everybody + 1
    below = 0
    for i in range(last):
        below += persons[i]
        above = everybody - below
        if below >= k and above >= k and abs(above - below) < least:
            least = abs(above - below)
            best = codes[i + 1 : i + 2].copy()
    return best
