"""Who may leave: of the signatures that would rather stand elsewhere, the most that leave every class good.

Idea: all candidates are taken at first. While the class that takes them, or one of those that give them, is not good,
those are put back that are most to blame: they hold what the taker has too much of against the whole table, or what
their giver now has too little of. What a giver loses by their staying is weighed in, so that those stay who gain least
by leaving. Once all are good, whoever was put back is tried again, one by one. The shares of the whole table only guide
the choice (every model is kinder to a class that resembles it); the models themselves judge.

Histograms of the few classes at hand are kept dense, over the values that any of them holds: a signature comes or goes
at the cost of its own values, and a class is judged at the cost of those of all.

Cost: candidates times rounds (a tenth is put back in each) and, for those put back, one judgement each.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.privacy.demands import satisfies

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

_SHARE = 10  # one of so many candidates is put back at a time
_FEW = 0.5  # weight of a giver that is left with fewer than k
_KEEN = 0.5  # gain per row beyond which gains are told apart


class Balance(NamedTuple):
    """Histograms of a few classes, one row each, while signatures go from one to another.

    Attributes:
        slot: Place of each value among the values and columns of the guard.
        value: Its code in its column.
        column: Where the values of each column begin.
        start: Where the entries of each signature begin.
        entry: Values of the signatures, as places in the row.
        people: Persons of each entry.
        tally: Persons by class and value.
        mark: Signatures by class and value; a value may stand there with nobody counted.
        persons: Persons of each class.
        size: Signatures of each class.
    """

    slot: Longs
    value: Ints
    column: Longs
    start: Longs
    entry: Ints
    people: Longs
    tally: Longs
    mark: Longs
    persons: Longs
    size: Longs


@njit(cache=True)
def new_balance(guard, members, classes):  # type: ignore[no-untyped-def]
    """Room for these signatures in so many classes, all of them empty."""
    held, base, columns = guard.histograms, guard.demands.base, guard.histograms.columns
    marked, touched, place = guard.scratch.marked, guard.scratch.touched, guard.scratch.tally
    used = 0
    entries = 0
    for s in members:
        for j in range(columns):
            for e in range(held.start[s * columns + j], held.start[s * columns + j + 1]):
                slot = base[j] + held.values[e]
                entries += 1
                if not marked[slot]:
                    marked[slot] = True
                    touched[used] = slot
                    used += 1
    slots = np.sort(touched[:used])
    value = np.empty(used, np.int32)
    column = np.full(columns + 1, used)
    for j in range(columns - 1, -1, -1):
        column[j] = np.searchsorted(slots, base[j])
        for i in range(column[j], column[j + 1]):
            value[i] = slots[i] - base[j]
            place[slots[i]] = i
    start = np.zeros(len(members) + 1, np.int64)
    entry = np.empty(entries, np.int32)
    people = np.empty(entries, np.int64)
    made = 0
    for i in range(len(members)):
        for j in range(columns):
            place_of = members[i] * columns + j
            for e in range(held.start[place_of], held.start[place_of + 1]):
                entry[made] = place[base[j] + held.values[e]]
                people[made] = held.counts[e]
                made += 1
        start[i + 1] = made
    for slot in slots:
        marked[slot] = False
        place[slot] = 0
    tally, mark = np.zeros((classes, used), np.int64), np.zeros((classes, used), np.int64)
    persons, size = np.zeros(classes, np.int64), np.zeros(classes, np.int64)
    return Balance(slots, value, column, start, entry, people, tally, mark, persons, size)


@njit(cache=True)
def enter(balance, i, c, persons, sign):  # type: ignore[no-untyped-def]
    """Signature i (its number among the members) enters class c, or leaves it (sign -1)."""
    for e in range(balance.start[i], balance.start[i + 1]):
        balance.tally[c, balance.entry[e]] += sign * balance.people[e]
        balance.mark[c, balance.entry[e]] += sign
    balance.persons[c] += sign * persons
    balance.size[c] += sign


@njit(cache=True)
def _good(demands, balance, c, k):  # type: ignore[no-untyped-def]
    """Whether class c has k persons and satisfies the demands."""
    if balance.persons[c] < k:
        return False
    column = balance.column
    start = np.empty(len(column), np.int64)
    values = np.empty(column[-1], np.int32)
    counts = np.empty(column[-1], np.int64)
    used = 0
    for j in range(len(column) - 1):
        start[j] = used
        for i in range(column[j], column[j + 1]):
            if balance.mark[c, i] > 0:
                values[used] = balance.value[i]
                counts[used] = balance.tally[c, i]
                used += 1
    start[len(column) - 1] = used
    return satisfies(demands, start, values[:used], counts[:used], balance.persons[c])


@njit(cache=True)
def _blame(demands, balance, c, out, sign):  # type: ignore[no-untyped-def]
    """By how much class c holds too much of each value (sign 1), or too little (-1), as shares of its persons."""
    column = balance.column
    for j in range(len(column) - 1):
        people = 0
        for i in range(column[j], column[j + 1]):
            people += balance.tally[c, i]
        for i in range(column[j], column[j + 1]):
            out[i] = sign * (balance.tally[c, i] / max(1, people) - demands.share[balance.slot[i]])


@njit(cache=True)
def most_that_may_leave(demands, balance, k, candidate, persons, giver, gain, always, blur, chosen):  # type: ignore[no-untyped-def]
    """Take as many candidates as can be; the last class of the balance takes them, the others give.

    Args:
        demands: What classes must satisfy.
        balance: The classes, with all candidates already in the taker.
        k: Least persons of a class.
        candidate: Number of each candidate among the balance's members.
        persons: Persons of each candidate.
        giver: Class of the balance that each candidate comes from.
        gain: What a row of each giver gains by leaving it.
        always: Givers of which nothing is asked.
        blur: How much chance has a say in who is put back.
        chosen: Set: which candidates are taken.

    Returns:
        Whether it can be done at all, and the steps it took.
    """
    classes, width = balance.tally.shape
    taker = classes - 1
    blame = np.zeros((classes, width))
    bad = np.zeros(classes, np.bool_)
    changed = np.ones(classes, np.bool_)
    inside = np.arange(len(candidate))
    left = len(candidate)
    back = np.empty(left, np.int64)
    returned = 0
    score = np.empty(left)
    chosen[:left] = True
    steps = 0.0
    while True:
        if left == 0 or balance.persons[taker] < k:
            return False, steps
        worst = False
        for c in range(classes):
            if changed[c]:
                changed[c] = False
                bad[c] = balance.size[c] > 0 and not always[c] and not _good(demands, balance, c, k)
                blame[c, :] = 0.0
                if bad[c]:
                    _blame(demands, balance, c, blame[c], 1.0 if c == taker else -1.0)
                    if balance.persons[c] < k:
                        blame[c, :] += _FEW
                steps += 4 * width
            worst = worst or bad[c]
        if not worst:
            break
        for a in range(left):
            x = inside[a]
            c = giver[x]
            total = 0.0
            counted = 0
            for e in range(balance.start[candidate[x]], balance.start[candidate[x] + 1]):
                v = balance.entry[e]
                total += (blame[taker, v] + blame[c, v]) * balance.people[e]
                counted += balance.people[e]
            total /= max(1, counted)
            weight = _KEEN + gain[c]
            score[a] = (total / weight if total > 0 else total * weight) + blur * np.random.random()
        wanted = max(1, left // _SHARE)
        least = np.partition(score[:left], left - wanted)[left - wanted]
        steps += 8 * left
        a = 0
        while a < left and wanted > 0:
            if score[a] < least:
                a += 1
                continue
            x = inside[a]
            left -= 1
            wanted -= 1
            inside[a], score[a] = inside[left], score[left]
            back[returned] = x
            returned += 1
            chosen[x] = False
            _exchange(balance, candidate[x], taker, giver[x], persons[x])
            changed[taker] = changed[giver[x]] = True
    for a in range(returned - 1, -1, -1):
        x = back[a]
        c = giver[x]
        _exchange(balance, candidate[x], c, taker, persons[x])
        steps += 4 * width
        fine = _good(demands, balance, taker, k)
        if fine and balance.size[c] > 0 and not always[c]:
            fine = _good(demands, balance, c, k)
        if fine:
            chosen[x] = True
        else:
            _exchange(balance, candidate[x], taker, c, persons[x])
    return True, steps


@njit(cache=True)
def _exchange(balance, i, source, target, persons):  # type: ignore[no-untyped-def]
    enter(balance, i, source, persons, -1)
    enter(balance, i, target, persons, 1)
