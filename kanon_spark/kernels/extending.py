"""Grow a class until its guard accepts it: what enters is near, and brings what the class lacks.

Idea: the nearest signatures mostly carry what the class has already, and may do so for ever. So the free signature
enters that adds least loss per gain (`shortfall.py`): what all its persons gain in the mean. A person more has a price
of its own, the class's loss per person, or classes would swallow whatever gains a little. Where nothing gains, the
nearest enters: what the class lacks may then be nearer.

Cost: per signature that enters, one trial per sensitive value and one search of the trie, cut where even the most
helpful value would be too dear.
"""

import numpy as np

from kanon_spark.compiling import njit
from kanon_spark.kernels.box import EPSILON, enter, rise, tabulate
from kanon_spark.kernels.shortfall import count, gain_of, new_gain, recount, shortfall, weigh_values
from kanon_spark.kernels.trie import remove

ACCEPTED, DEAR, EXHAUSTED = 0, 1, 2
FLOOR = 1e-3  # loss that a signature is charged at least, so that of those that cost nothing the most helpful enters
_NEVER = 1e300  # below infinity: what must not be published is never found


@njit(cache=True)
def extend(rules, trie, codes, box, persons, k, guard, tally, grown, size, limit, search):  # type: ignore[no-untyped-def]
    """Let free signatures enter until the class has k persons and is accepted; they stand in `grown`, off the trie.

    Returns:
        How many signatures the class has, their persons, and whether it is ACCEPTED, has become too DEAR (its loss per
        row has reached the limit), or nothing more may enter (EXHAUSTED).
    """
    if guard is None:
        return size, np.int64(0), ACCEPTED
    recount(guard, tally, grown[:size])
    lacks = shortfall(guard, tally)
    gain = new_gain(guard)
    held = 0
    for i in range(size):
        held += persons[grown[i]]
    tabulate(rules, box, True)
    while held < k or lacks > 0:
        cost = box.cost.sum()
        if cost >= limit:
            return size, held, DEAR
        most = weigh_values(guard, tally, gain)
        x = _most_helpful(rules, trie, box, guard, gain, most, price_of_one(cost, held), search)
        if x < 0:
            return size, held, EXHAUSTED
        enter(rules, box, codes, x)
        tabulate(rules, box, False)
        remove(trie, x)
        count(guard, tally, x)
        lacks = shortfall(guard, tally)
        grown[size] = x
        size += 1
        held += persons[x]
    return size, held, ACCEPTED


@njit(cache=True)
def price_of_one(cost, held):  # type: ignore[no-untyped-def]
    """What one more in a class of so many persons is charged, beside the loss that it adds."""
    return FLOOR + cost / max(1, held)


@njit(cache=True)
def _most_helpful(rules, trie, box, guard, gain, most, charge, search):  # type: ignore[no-untyped-def]
    """The free signature that adds least to the (tabulated) box per gain; the nearest where none gains; -1: none.

    The search is that of `nearest.py`; ties by number.
    """
    order, narrow, base, table = trie.order, rules.narrow, rules.base, box.table
    first, last, child, child_end, depth = trie.first, trie.last, trie.child, trie.child_end, trie.depth
    value, free, member, slot, here = trie.value, trie.free, trie.member, trie.slot, trie.here
    node, price, own_child = search.node, search.cost, search.own
    width = len(order)
    least, found = np.inf, -1
    near, nearest = np.inf, -1
    node[0] = 0
    price[0] = 0.0
    top = 1 if free[0] > 0 else 0
    limit = _NEVER
    while top:
        top -= 1
        v = node[top]
        cost = price[top]
        if cost > limit:
            continue
        level = depth[v]
        if child[v] < child_end[v]:
            j = order[level]
            own = 0
            for c in range(child[v], child_end[v]):
                if free[c] == 0:
                    continue
                more = table[value[c]] if narrow[j] else rise(rules, box, j, value[c] - base[j])
                if more <= 0.0:
                    own_child[own] = c
                    own += 1
                elif cost + more <= limit:
                    node[top] = c
                    price[top] = cost + more
                    top += 1
            for i in range(own):
                node[top] = own_child[i]
                price[top] = cost
                top += 1
            continue
        for i in range(first[v], last[v]):
            s = member[i]
            if not here[s]:
                continue
            total = cost
            for below in range(level, width):
                j = order[below]
                total += table[slot[i, below]] if narrow[j] else rise(rules, box, j, slot[i, below] - base[j])
                if total > limit:
                    break
            if total > limit:
                continue
            if total < near - EPSILON or (total < near + EPSILON and s < nearest):
                near, nearest = total, s
                if most <= 0.0:
                    limit = near + EPSILON
            gained = gain_of(guard, gain, s) if most > 0.0 else 0.0
            if gained > 0.0:
                score = (charge + total) / gained
                if score < least or (score == least and s < found):
                    least, found = score, s
                    limit = least * most - charge + EPSILON
    return found if found >= 0 else nearest
