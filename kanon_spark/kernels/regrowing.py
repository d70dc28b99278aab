"""Build a few classes again from the members they had: random seeds, each grown by cheapest insertion.

Idea: what each waiting signature would add is kept per QI; one that enters changes the box in one or two of them, and
only those are priced again. Whatever lies inside the box enters with it. What cannot fill a class of its own joins the
one whose loss rises least. As soon as the new classes cost more than is allowed, the attempt ends.

A guard must accept every class. One of k persons that is refused grows on by what adds least loss per gain
(`shortfall.py`); every other attempt does so from its first signature on, which is better where demands are hard to
meet, and worse where they meet themselves. What lies inside stays outside if the class would then lack more.

Cost: members of the classes times QIs that change, for each signature that enters.
"""

import numpy as np

from kanon_spark.compiling import njit
from kanon_spark.kernels.box import EPSILON, begin, enter, loss_of, price
from kanon_spark.kernels.extending import price_of_one
from kanon_spark.kernels.guard import accepts, asks
from kanon_spark.kernels.shortfall import count, gain_of, new_gain, recount, shortfall, shortfall_with, weigh_values

_TRIAL = 20.0  # evaluations that take as long as to try one sensitive value


@njit(cache=True)
def regrow(  # type: ignore[no-untyped-def]
    rules,
    codes,
    rows,
    persons,
    k,
    guard,
    tally,
    early,
    box,
    pool,
    n,
    free,
    allowed,
    blur,
    waiting,
    adds,
    total,
    new_class,
    new_loss,
    new_rows,
):
    """Grow new classes from random seeds of the pool; what cannot fill one joins where the loss rises least.

    What each of the pool would add is kept per QI: a signature that enters changes the box in one or two of them.
    With `early`, what a class lacks counts from its first signature on, not only once it has k persons.

    Returns:
        How many classes were made, their loss (infinite, or at least `allowed`: given up), and the steps it took.
    """
    width = codes.shape[1]
    labelled = len(box.tally) > 0
    asked = asks(guard)
    gain = new_gain(guard)
    lacks = 0.0
    made = 0
    reached = 0.0
    steps = 0.0
    left = n
    for i in range(n):
        waiting[i] = i
    while free >= k:
        at = np.random.randint(left)
        entering = waiting[at]
        left -= 1
        waiting[at] = waiting[left]
        begin(rules, box, codes, pool[entering])
        box.changed[:] = True
        for i in range(left):
            total[waiting[i]] = 0.0
            for j in range(width):
                adds[waiting[i], j] = 0.0
        weight = 0
        inside = 0
        if asked:
            recount(guard, tally, pool[entering : entering + 1])
            lacks = shortfall(guard, tally)
        blurred = blur * np.random.random() if blur > 0 else 0.0
        while True:
            new_class[entering] = made
            weight += rows[pool[entering]]
            inside += persons[pool[entering]]
            steps += price(rules, box, codes, pool, waiting, left, adds, total)
            # Whatever lies inside enters, too: it costs nothing more.
            best = -1
            least = np.inf
            keep = 0
            helper = -1
            least_per_gain = np.inf
            charge = 0.0
            lacking = lacks > 0.0 and (inside >= k or (early and inside > 0))
            if lacking:
                weigh_values(guard, tally, gain)
                charge = price_of_one(box.cost.sum(), inside)
                steps += _TRIAL * len(gain)
            for i in range(left):
                w = waiting[i]
                y = pool[w]
                if total[w] <= EPSILON and (not asked or shortfall_with(guard, tally, y) <= lacks):
                    if asked:
                        count(guard, tally, y)
                        lacks = shortfall(guard, tally)
                    if labelled:
                        enter(rules, box, codes, y)
                    new_class[w] = made
                    weight += rows[y]
                    inside += persons[y]
                    continue
                score = total[w] * (1.0 + blurred * np.random.random()) if blurred > 0 else total[w]
                if score < least - EPSILON or (score < least + EPSILON and persons[y] > persons[pool[best]]):
                    best = w
                    least = score
                if lacking:
                    gained = gain_of(guard, gain, y)
                    if gained > 0.0 and charge + total[w] < least_per_gain * gained:
                        helper = w
                        least_per_gain = (charge + total[w]) / gained
                waiting[keep] = w
                keep += 1
            steps += left + 30.0
            left = keep
            if (inside >= k and lacks == 0.0) or best < 0:
                break
            if helper >= 0 and lacks > 0.0:
                best = helper
            entering = best
            enter(rules, box, codes, pool[best])
            if asked:
                count(guard, tally, pool[best])
                lacks = shortfall(guard, tally)
            if labelled:
                box.changed[width - 1] = True
            for i in range(left):
                if waiting[i] == best:
                    left -= 1
                    waiting[i] = waiting[left]
                    break
        if inside < k:
            return made, np.inf, steps
        if lacks > 0.0:
            left = _dissolve(new_class, n, made, waiting)
            break
        free -= inside
        new_loss[made] = loss_of(rules, box, weight)
        new_rows[made] = weight
        reached += new_loss[made]
        made += 1
        if reached >= allowed:
            return made, reached, steps
    if made == 0:
        return made, np.inf, steps
    if left:
        reached = _place_rest(
            rules, codes, rows, guard, box, pool, n, waiting, left, made, adds, total, new_class, new_loss, new_rows
        )
        steps += (width + 10.0) * (n + left * made)
    return made, reached, steps


@njit(cache=True)
def _dissolve(new_class, n, m, waiting):  # type: ignore[no-untyped-def]
    """The members of new class m wait again; how many are waiting now."""
    left = 0
    for i in range(n):
        if new_class[i] < 0 or new_class[i] == m:
            new_class[i] = -1
            waiting[left] = i
            left += 1
    return left


@njit(cache=True)
def _place_rest(  # type: ignore[no-untyped-def]
    rules, codes, rows, guard, box, pool, n, rest, size, made, adds, total, new_class, new_loss, new_rows
):
    """Let what is left join the new classes, each where the loss rises least as they stand; the loss of all of them.

    Of those that the guard still accepts; infinite where somebody is refused by all.
    """
    asked = asks(guard)
    into = np.full(size, -1, np.int32)
    least = np.full(size, np.inf)
    rises = np.full((size, made), np.inf)
    members = np.empty(n if asked else 0, np.int32)
    for m in range(made):
        _fill(rules, codes, box, pool, n, new_class, m)
        box.changed[:] = True
        for r in range(size):
            total[rest[r]] = 0.0
            for j in range(codes.shape[1]):
                adds[rest[r], j] = 0.0
        price(rules, box, codes, pool, rest, size, adds, total)
        for r in range(size):
            own = rows[pool[rest[r]]]
            more = total[rest[r]] * (new_rows[m] + own) + own * new_loss[m] / max(1, new_rows[m])
            rises[r, m] = more
            if more < least[r]:
                least[r] = more
                into[r] = m
    for r in range(size):
        while asked and into[r] >= 0 and not _stays_good(guard, pool, n, new_class, into[r], rest[r], members):
            rises[r, into[r]] = np.inf
            other = np.argmin(rises[r])
            into[r] = other if rises[r, other] < np.inf else -1
        if into[r] < 0:
            return np.inf
        new_class[rest[r]] = into[r]
        new_rows[into[r]] += rows[pool[rest[r]]]
    total = 0.0
    for m in range(made):
        grew = False
        for r in range(size):
            grew = grew or into[r] == m
        if grew:
            _fill(rules, codes, box, pool, n, new_class, m)
            new_loss[m] = loss_of(rules, box, new_rows[m])
        total += new_loss[m]
    return total


@njit(cache=True)
def _stays_good(guard, pool, n, new_class, m, joining, members):  # type: ignore[no-untyped-def]
    """Whether new class m is still accepted once a place of the pool has joined it."""
    size = 0
    for i in range(n):
        if new_class[i] == m or i == joining:
            members[size] = pool[i]
            size += 1
    return accepts(guard, members[:size])


@njit(cache=True)
def _fill(rules, codes, box, pool, n, new_class, m):  # type: ignore[no-untyped-def]
    """The box of new class m."""
    begun = False
    for i in range(n):
        if new_class[i] == m:
            if begun:
                enter(rules, box, codes, pool[i])
            else:
                begin(rules, box, codes, pool[i])
                begun = True
