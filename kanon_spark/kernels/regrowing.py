"""Build a few classes again from the members they had: random seeds, each grown by cheapest insertion.

Idea: what each waiting signature would add is kept per QI; one that enters changes the box in one or two of them, and
only those are priced again. Whatever lies inside the box enters with it. What cannot fill a class of its own joins the
one whose loss rises least. As soon as the new classes cost more than is allowed, the attempt ends.

Cost: members of the classes times QIs that change, for each signature that enters.
"""

import numpy as np
from numba import njit

from kanon_spark.kernels.box import EPSILON, begin, enter, loss_of, price


@njit(cache=True)
def regrow(  # type: ignore[no-untyped-def]
    rules,
    codes,
    rows,
    persons,
    k,
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

    Returns:
        How many classes were made, their loss (infinite, or at least `allowed`: given up), and the steps it took.
    """
    width = codes.shape[1]
    guarded = len(box.tally) > 0
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
            for i in range(left):
                w = waiting[i]
                y = pool[w]
                if total[w] <= EPSILON:
                    if guarded:
                        enter(rules, box, codes, y)
                    new_class[w] = made
                    weight += rows[y]
                    inside += persons[y]
                    continue
                score = total[w] * (1.0 + blurred * np.random.random()) if blurred > 0 else total[w]
                if score < least - EPSILON or (score < least + EPSILON and persons[y] > persons[pool[best]]):
                    best = w
                    least = score
                waiting[keep] = w
                keep += 1
            steps += left + 30.0
            left = keep
            if inside >= k or best < 0:
                break
            entering = best
            enter(rules, box, codes, pool[best])
            if guarded:
                box.changed[width - 1] = True
            for i in range(left):
                if waiting[i] == best:
                    left -= 1
                    waiting[i] = waiting[left]
                    break
        if inside < k:
            return made, np.inf, steps
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
            rules, codes, rows, box, pool, n, waiting, left, made, adds, total, new_class, new_loss, new_rows
        )
        steps += (width + 10.0) * (n + left * made)
    return made, reached, steps


@njit(cache=True)
def _place_rest(rules, codes, rows, box, pool, n, rest, size, made, adds, total, new_class, new_loss, new_rows):  # type: ignore[no-untyped-def]
    """Let what is left join the new classes, each where the loss rises least as they stand; the loss of all of them."""
    into = np.full(size, -1, np.int32)
    least = np.full(size, np.inf)
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
            if more < least[r]:
                least[r] = more
                into[r] = m
    for r in range(size):
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
