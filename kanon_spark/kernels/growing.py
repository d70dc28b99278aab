"""Grow a class to k persons: by cheapest insertion or, for large k, by whole boxes.

Idea: adding one cheapest signature at a time is short-sighted where a class needs dozens: a slightly dearer one may
open a box in which many others lie. So of the few hundred free signatures nearest to the seed, the one enters that adds
least per square root of the persons who would then lie inside, and all of these enter with it.

Cost: per step, the candidates are sorted by what they add. Whoever lies inside once a candidate has entered adds no
more than it does in any QI, so only cheaper candidates have to be looked at, and the persons they hold together bound
what a candidate can gain: most candidates are never looked at closely.
"""

import numpy as np

from kanon_spark.compiling import njit
from kanon_spark.kernels.box import EPSILON, LABEL, NODE, RANGE, enter, price, rise, tabulate
from kanon_spark.kernels.nearest import fits_better, gather, nearest
from kanon_spark.kernels.trie import remove

CANDIDATES = 250  # among which boxes grow
NEAREST = 3  # times k: among which single signatures are inserted


@njit(cache=True)
def grow_exactly(rules, trie, codes, box, persons, k, s, grown, search):  # type: ignore[no-untyped-def]
    """Grow the box from s to k persons by cheapest insertion; all that enters stands in `grown`, off the trie."""
    grown[0] = s
    remove(trie, s)
    tabulate(rules, box, True)
    return _insert_nearest(rules, trie, codes, box, persons, k, grown, 1, persons[s], search)


@njit(cache=True)
def grow_nearest(rules, trie, codes, box, persons, k, s, grown, search):  # type: ignore[no-untyped-def]
    """The same among the signatures nearest to s alone, which one search finds: several times faster."""
    grown[0] = s
    size = 1
    held = persons[s]
    remove(trie, s)
    tabulate(rules, box, True)
    gather(rules, trie, box, persons, 0, NEAREST * k, search)
    left = search.size[0]
    near = np.sort(search.heap[:left])  # by code, so that ties do not depend on the search
    waiting = np.arange(left).astype(np.int32)
    adds = np.zeros((left, codes.shape[1]))
    total = np.zeros(left)
    box.changed[:] = True
    while held < k and left:
        price(rules, box, codes, near, waiting, left, adds, total)
        best = 0
        for i in range(1, left):
            more = total[waiting[i]] - total[waiting[best]]
            if more < -EPSILON or (
                more < EPSILON and fits_better(persons, near[waiting[i]], near[waiting[best]], k - held)
            ):
                best = i
        if not np.isfinite(total[waiting[best]]):
            break
        x = near[waiting[best]]
        left -= 1
        waiting[best] = waiting[left]
        enter(rules, box, codes, x)
        remove(trie, x)
        grown[size] = x
        size += 1
        held += persons[x]
    if held < k:
        tabulate(rules, box, True)
    return _insert_nearest(rules, trie, codes, box, persons, k, grown, size, held, search)


@njit(cache=True)
def _insert_nearest(rules, trie, codes, box, persons, k, grown, size, held, search):  # type: ignore[no-untyped-def]
    while held < k:
        x, _ = nearest(rules, trie, box, persons, k - held, search)
        if x < 0:
            break
        enter(rules, box, codes, x)
        tabulate(rules, box, False)
        remove(trie, x)
        grown[size] = x
        size += 1
        held += persons[x]
    return size, held


@njit(cache=True)
def grow_boxes(rules, trie, codes, box, persons, k, s, grown, search):  # type: ignore[no-untyped-def]
    """Grow the box from s to k persons; all that enters stands in `grown` and is taken from the trie."""
    width = codes.shape[1]
    narrow, base, kinds, table = rules.narrow, rules.base, rules.kind, box.table
    high, changed = box.high, box.changed
    remove(trie, s)
    grown[0] = s
    size = 1
    held = persons[s]
    tabulate(rules, box, True)
    gather(rules, trie, box, persons, 0, CANDIDATES, search)
    count = search.size[0]
    near = np.sort(search.heap[:count])  # by code, so that ties do not depend on the search
    adds = np.zeros((count, width))
    way = np.zeros((count, width), np.int32)  # in which direction: a candidate covers others of the same way only
    total = np.zeros(count)
    mask = np.zeros(count, np.int64)
    before = np.zeros(count, np.int64)  # persons of the candidates up to here, in the order of their totals
    left = count
    begun = False
    while held < k and left:
        for i in range(left):
            x = near[i]
            total[i] = 0.0
            mask[i] = 0
            for j in range(width):
                # What was inside stays inside; only a label's majority can turn.
                if not begun or (changed[j] and (way[i, j] != 0 or kinds[j] == LABEL)):
                    code = codes[x, j]
                    adds[i, j] = table[base[j] + code] if narrow[j] else rise(rules, box, j, code)
                    if adds[i, j] <= 0:
                        way[i, j] = 0
                    elif kinds[j] == RANGE:
                        way[i, j] = 1 if code > high[j] else 2
                    else:
                        way[i, j] = 1 if kinds[j] == NODE else code + 1
                total[i] += adds[i, j]
                if way[i, j] != 0:
                    mask[i] |= 1 << (j % 62)  # wide tables share bits, which only weakens a filter
        begun = True
        order = np.argsort(total[:left], kind="mergesort")
        if not np.isfinite(total[order[0]]):
            break
        best = order[0]
        if total[best] > EPSILON:
            best_score = np.inf
            sum_ = 0
            for at in range(left):
                sum_ += persons[near[order[at]]]
                before[at] = sum_
            for at in range(left):
                i = order[at]
                # Equal totals further on could lie inside, too.
                upto = at
                while upto + 1 < left and total[order[upto + 1]] <= total[i] + EPSILON:
                    upto += 1
                if total[i] * total[i] >= best_score * before[left - 1] or not np.isfinite(total[i]):
                    break
                if total[i] * total[i] >= best_score * before[upto]:
                    continue
                gain = 0
                for other in range(upto + 1):
                    y = order[other]
                    if not mask[y] & ~mask[i] and _covered(adds, way, y, i, width):
                        gain += persons[near[y]]
                score = total[i] * total[i] / max(float(gain), 0.5)
                if score < best_score - EPSILON:
                    best, best_score = i, score
        # It enters with all that then lie inside; the others move up, in order.
        chosen = near[best]
        keep = 0
        for i in range(left):
            enters = i == best
            if not enters and total[i] <= total[best] + EPSILON and not mask[i] & ~mask[best]:
                enters = total[best] > EPSILON and _covered(adds, way, i, best, width)
            if enters:
                grown[size] = near[i]
                size += 1
                held += persons[near[i]]
                remove(trie, near[i])
        for i in range(left):
            if trie.here[near[i]]:
                near[keep] = near[i]
                for j in range(width):
                    adds[keep, j] = adds[i, j]
                    way[keep, j] = way[i, j]
                keep += 1
        left = keep
        enter(rules, box, codes, chosen)
        tabulate(rules, box, False)
    # The candidates may have held too few persons.
    return _insert_nearest(rules, trie, codes, box, persons, k, grown, size, held, search)


@njit(cache=True)
def _covered(adds, way, y, i, width):  # type: ignore[no-untyped-def]
    """Whether candidate y lies inside the box once candidate i does."""
    for j in range(width):
        if way[y, j] != 0 and (way[y, j] != way[i, j] or adds[y, j] > adds[i, j] + EPSILON):
            return False
    return True
