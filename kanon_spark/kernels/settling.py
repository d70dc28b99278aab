"""The end of one attempt to solve a neighbourhood again: what is free joins, what can stand cheaper moves.

Cost: free signatures times classes, then signatures times classes, each given up at the first QI that decides.
"""

import numpy as np

from kanon_spark.compiling import njit
from kanon_spark.kernels.guard import accepts, asks
from kanon_spark.kernels.lattice import joined_cost


@njit(cache=True)
def _stays_good(guard, trial, sig, c, comes, goes, buffer):  # type: ignore[no-untyped-def]
    """Whether class c is accepted once one signature has come and another has gone (-1: none)."""
    size = 0
    for i in range(len(sig)):
        if i == comes or (trial[i] == c and i != goes):
            buffer[size] = sig[i]
            size += 1
    return size == 0 or accepts(guard, buffer[:size])


@njit(cache=True)
def settle(  # type: ignore[no-untyped-def]
    trial, nodes, rows, persons, codes, sig, k, guard, start, parent, lo, hi, loss, all_rows, all_persons, cost
):
    """Attach what is free, move signatures to cheaper classes that cover them; the total, infinite if it fails."""
    count = nodes.shape[0]
    asked = asks(guard)
    buffer = np.empty(len(sig) if asked else 0, np.int32)
    nobody = np.int64(-1)  # a bare -1 would be a type of its own, for which `_stays_good` is compiled, too
    size = len(sig)
    width = codes.shape[1]
    for i in range(size):
        if trial[i] >= 0:
            continue
        s = sig[i]
        best = np.inf
        chosen = -1
        for c in range(count):
            limit = (best + rows[c] * cost[c]) / (rows[c] + all_rows[s])
            new = joined_cost(nodes[c], codes, s, parent, lo, hi, loss, limit)
            rise = rows[c] * (new - cost[c]) + all_rows[s] * new
            if rise < best:
                best = rise
                chosen = c
        if chosen < 0 or (asked and not _stays_good(guard, trial, sig, chosen, i, nobody, buffer)):
            return np.inf
        trial[i] = chosen
        rows[chosen] += all_rows[s]
        persons[chosen] += all_persons[s]
        cost[chosen] = 0.0
        for j in range(width):
            v = nodes[chosen, j]
            x = codes[s, j]
            while x < lo[v] or x >= hi[v]:
                v = parent[v]
            nodes[chosen, j] = v
            cost[chosen] += loss[v]
    moved = False
    for i in range(size):
        s = sig[i]
        own = trial[i]
        if persons[own] - all_persons[s] < k:
            continue
        best = cost[own] - 1e-12
        chosen = -1
        for c in range(count):
            if cost[c] >= best or c == own or rows[c] == 0:
                continue
            inside = True
            for j in range(width):
                v = nodes[c, j]
                x = codes[s, j]
                if x < lo[v] or x >= hi[v]:
                    inside = False
                    break
            if inside:
                best = cost[c]
                chosen = c
        if chosen >= 0 and asked:
            # A class may lose all its members; otherwise both must stay good.
            stays = _stays_good(guard, trial, sig, own, nobody, i, buffer)
            if not stays or not _stays_good(guard, trial, sig, chosen, i, nobody, buffer):
                continue
        if chosen >= 0:
            trial[i] = chosen
            rows[own] -= all_rows[s]
            persons[own] -= all_persons[s]
            rows[chosen] += all_rows[s]
            persons[chosen] += all_persons[s]
            moved = True
    total = 0.0
    if moved:
        least = np.full((count, width), 2147483647, np.int32)
        most = np.full((count, width), -1, np.int32)
        for i in range(size):
            c = trial[i]
            for j in range(width):
                x = codes[sig[i], j]
                if x < least[c, j]:
                    least[c, j] = x
                if x > most[c, j]:
                    most[c, j] = x
        for c in range(count):
            cost[c] = 0.0
            if rows[c] == 0:
                continue
            for j in range(width):
                v = start[j] + least[c, j]
                while hi[v] <= most[c, j]:
                    v = parent[v]
                nodes[c, j] = v
                cost[c] += loss[v]
    for c in range(count):
        total += rows[c] * cost[c]
    return total
