"""A class that is being built, and what it costs more once a signature enters: the only code that knows the loss.

Idea: a class that is being built is a *box*: per QI the least and largest code, the values it holds (sets), the tree
node above them (hierarchies) and the loss so far. What a value would add follows from these few numbers at once, so
nothing is ever recomputed from the members, and no table over a wide domain has to be filled.

Cost: `rise` and `enter` are constant per QI (a climb of the tree for hierarchies). A loss never falls as a class grows.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

NODE, RANGE, SET, LABEL = 0, 1, 2, 3
EPSILON = 1e-9  # losses nearer than this are equal: sums of the same terms differ in their last digits


class Box(NamedTuple):
    """A class that is being built; see `begin`."""

    low: Ints
    high: Ints
    values: Ints  # distinct values of a set
    node: Ints
    cost: Floats  # loss per row in each QI
    mark: Longs  # values that are inside carry the stamp
    stamp: Longs
    tally: Floats  # rows of each label
    changed: NDArray[np.bool_]  # QIs in which the last signature to enter has changed the box
    table: Floats  # what each value of a narrow QI would add, where a search has asked for it


@njit(cache=True)
def new_box(rules):  # type: ignore[no-untyped-def]
    """An empty box."""
    width = len(rules.kind)
    return Box(
        np.zeros(width, np.int32),
        np.zeros(width, np.int32),
        np.zeros(width, np.int32),
        np.zeros(width, np.int32),
        np.zeros(width),
        np.zeros(rules.base[width], np.int64),
        np.zeros(1, np.int64),
        np.zeros(rules.shares.shape[1]),
        np.zeros(width, np.bool_),
        np.zeros(rules.base[width]),
    )


@njit(cache=True)
def begin(rules, box, codes, s):  # type: ignore[no-untyped-def]
    """Start a class with signature s."""
    low, high, values, node, cost, mark = box.low, box.high, box.values, box.node, box.cost, box.mark
    kind, base, start, loss = rules.kind, rules.base, rules.start, rules.loss
    box.stamp[0] += 1
    stamp = box.stamp[0]
    for j in range(len(kind)):
        x = codes[s, j]
        low[j] = x
        high[j] = x
        values[j] = 1
        cost[j] = 0.0
        if kind[j] == NODE:
            node[j] = start[j] + x
            cost[j] = loss[node[j]]
        elif kind[j] == SET:
            mark[base[j] + x] = stamp
    for label in range(rules.shares.shape[1]):
        box.tally[label] = rules.shares[s, label]


@njit(cache=True)
def rise(rules, box, j, x):  # type: ignore[no-untyped-def]
    """What value x would add to the box's loss per row in QI j."""
    kind = rules.kind[j]
    if kind == RANGE:
        low, high = box.low[j], box.high[j]
        if low <= x <= high:
            return 0.0
        null = rules.null[j]
        if high == null:  # nulls inside: all of them so far, or mixed already
            return rules.weight[j] - box.cost[j]
        if x == null:
            return rules.weight[j] - box.cost[j]
        base = rules.base[j]
        if x < low:
            return rules.place[base + low] - rules.place[base + x]
        return rules.place[base + x] - rules.place[base + high]
    if kind == SET:
        if box.mark[rules.base[j] + x] == box.stamp[0]:
            return 0.0
        null = rules.null[j]
        if box.high[j] == null or x == null:
            return rules.weight[j] - box.cost[j]
        return rules.step[j] if box.values[j] > 1 else 2 * rules.step[j]
    if kind == NODE:
        v = box.node[j]
        if rules.lo[v] <= x < rules.hi[v]:
            return 0.0
        while x < rules.lo[v] or x >= rules.hi[v]:
            v = rules.parent[v]
        return rules.loss[v] - box.cost[j]
    return rules.penalty if x != majority(box) else 0.0


@njit(cache=True)
def enter(rules, box, codes, s):  # type: ignore[no-untyped-def]
    """Let signature s enter."""
    low, high, values, node, cost = box.low, box.high, box.values, box.node, box.cost
    mark, stamp, changed = box.mark, box.stamp[0], box.changed
    kind, base, parent, lo, hi, loss = rules.kind, rules.base, rules.parent, rules.lo, rules.hi, rules.loss
    for j in range(len(kind)):
        x = codes[s, j]
        changed[j] = False
        if kind[j] == LABEL:
            before = majority(box)
            for label in range(rules.shares.shape[1]):
                box.tally[label] += rules.shares[s, label]
            changed[j] = majority(box) != before
            continue
        if kind[j] == NODE:
            v = node[j]
            if lo[v] <= x < hi[v]:
                continue
            while x < lo[v] or x >= hi[v]:
                v = parent[v]
            node[j] = v
            cost[j] = loss[v]
        elif kind[j] == RANGE:
            if low[j] <= x <= high[j]:
                continue
            cost[j] += rise(rules, box, j, x)
        else:
            if mark[base[j] + x] == stamp:
                continue
            cost[j] += rise(rules, box, j, x)
            mark[base[j] + x] = stamp
            values[j] += 1
        low[j] = min(low[j], x)
        high[j] = max(high[j], x)
        changed[j] = True


@njit(cache=True)
def price(rules, box, codes, pool, waiting, left, adds, total):  # type: ignore[no-untyped-def]
    """What each of the waiting places of the pool would add, brought up to date in the QIs that have changed.

    The arrays are unpacked once for all: taken out of the tuples one by one they would cost more than the work itself.
    A value that may not enter (infinite loss) never may again, however the box grows.
    """
    changed, low, high, values, node, cost = box.changed, box.low, box.high, box.values, box.node, box.cost
    mark, stamp = box.mark, box.stamp[0]
    kind, null, bases, step, places = rules.kind, rules.null, rules.base, rules.step, rules.place
    parent, lo, hi, loss = rules.parent, rules.lo, rules.hi, rules.loss
    done = 0
    for j in range(len(kind)):
        if not changed[j]:
            continue
        done += left
        base = bases[j]
        if kind[j] == NODE:
            for i in range(left):
                w = waiting[i]
                if np.isinf(adds[w, j]):
                    continue
                x = codes[pool[w], j]
                v = node[j]
                while x < lo[v] or x >= hi[v]:
                    v = parent[v]
                more = loss[v] - cost[j]
                total[w] += more - adds[w, j]
                adds[w, j] = more
        elif kind[j] == RANGE and null[j] < 0:
            least, most = low[j], high[j]
            bottom, top = places[base + least], places[base + most]
            for i in range(left):
                w = waiting[i]
                x = codes[pool[w], j]
                more = 0.0
                if x < least:
                    more = bottom - places[base + x]
                elif x > most:
                    more = places[base + x] - top
                total[w] += more - adds[w, j]
                adds[w, j] = more
        elif kind[j] == SET and null[j] < 0:
            outside = step[j] if values[j] > 1 else 2 * step[j]
            for i in range(left):
                w = waiting[i]
                more = 0.0 if mark[base + codes[pool[w], j]] == stamp else outside
                total[w] += more - adds[w, j]
                adds[w, j] = more
        else:
            for i in range(left):
                w = waiting[i]
                more = rise(rules, box, j, codes[pool[w], j])
                total[w] += more - adds[w, j]
                adds[w, j] = more
    return done


@njit(cache=True)
def tabulate(rules, box, everything):  # type: ignore[no-untyped-def]
    """Fill the box's table for the narrow QIs that have changed, or for all of them."""
    table = box.table
    for j in range(len(rules.kind)):
        if not rules.narrow[j] or not (everything or box.changed[j]):
            continue
        base, end = rules.base[j], rules.base[j + 1]
        kind = rules.kind[j]
        if kind == SET and rules.null[j] < 0:
            outside = rules.step[j] if box.values[j] > 1 else 2 * rules.step[j]
            for v in range(base, end):
                table[v] = 0.0 if box.mark[v] == box.stamp[0] else outside
        elif kind == RANGE and rules.null[j] < 0:
            low, high = base + box.low[j], base + box.high[j]
            for v in range(base, low):
                table[v] = rules.place[low] - rules.place[v]
            for v in range(low, high + 1):
                table[v] = 0.0
            for v in range(high + 1, end):
                table[v] = rules.place[v] - rules.place[high]
        elif kind == NODE:
            _climb(rules.parent, rules.lo, rules.hi, rules.loss, box.node[j], box.cost[j], table[base:end])
        else:
            for v in range(base, end):
                table[v] = rise(rules, box, j, v - base)


@njit(cache=True)
def _climb(parent, lo, hi, loss, v, cost, table):  # type: ignore[no-untyped-def]
    """Fill the table of a QI with a hierarchy: each step towards the root prices the values that it adds at once."""
    low, high = lo[v], hi[v]
    table[low:high] = 0.0
    while low > 0 or high < len(table):
        v = parent[v]
        table[lo[v] : low] = loss[v] - cost
        table[high : hi[v]] = loss[v] - cost
        low, high = lo[v], hi[v]


@njit(cache=True)
def majority(box):  # type: ignore[no-untyped-def]
    """The label of most rows, the first of equals."""
    best = 0
    for label in range(1, len(box.tally)):
        if box.tally[label] > box.tally[best]:
            best = label
    return best


@njit(cache=True)
def loss_of(rules, box, rows):  # type: ignore[no-untyped-def]
    """Loss of all `rows` rows of the box, the charge for labels included."""
    per_row = 0.0
    for j in range(len(box.cost)):
        per_row += box.cost[j]
    total = per_row * rows
    if len(box.tally):
        held = 0.0
        for label in range(len(box.tally)):
            held += box.tally[label]
        total += rules.penalty * (held - box.tally[majority(box)])
    return total


@njit(cache=True)
def class_costs(rules, codes, rows, class_of):  # type: ignore[no-untyped-def]
    """Loss per row and rows of each class, from its members."""
    count = 0
    for s in range(len(class_of)):
        count = max(count, class_of[s] + 1)
    start = np.zeros(count + 1, np.int64)
    for s in range(len(class_of)):
        if class_of[s] >= 0:
            start[class_of[s] + 1] += 1
    for c in range(count):
        start[c + 1] += start[c]
    place = start[:count].copy()
    member = np.zeros(start[count], np.int32)
    for s in range(len(class_of)):
        if class_of[s] >= 0:
            member[place[class_of[s]]] = s
            place[class_of[s]] += 1
    cost = np.zeros(count)
    held = np.zeros(count, np.int64)
    box = new_box(rules)
    for c in range(count):
        for i in range(start[c], start[c + 1]):
            s = member[i]
            held[c] += rows[s]
            if i == start[c]:
                begin(rules, box, codes, s)
            else:
                enter(rules, box, codes, s)
        if held[c] > 0:
            cost[c] = loss_of(rules, box, held[c]) / held[c]
    return cost, held
