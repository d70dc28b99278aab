"""Greedy k-member clustering on weighted signatures: cheapest class first, or in the order of the paper.

Idea (cheapest first): the distance at which a signature's nearest neighbours hold k persons estimates what its class
will cost. Signatures wait in a heap by that estimate. The first one grows a class by cheapest insertion; if the class
turns out dearer than the next estimate, it is put back with its true loss, else it is closed. For large k a class grows
by whole boxes: of its few hundred nearest signatures the one enters that brings most persons for its loss, together
with all that then lie inside. What cannot fill a class any more is left to `attaching.py`.

Idea (paper order): start anywhere, take the signature furthest from the last start as the next start, and grow by
cheapest insertion to k persons.

Where a guard does not accept a class of k persons (in cheapest order, built anew from its start) it grows by what is
near and brings what it lacks (`extending.py`); the estimates of what has not been grown yet rise by what such classes
have cost more than their first k persons. A class that takes in all it may and is still refused is given up, and so
are its members as starts of others: at the end of the greedy, what is left may be good for no class of its own.

Cost: a few trie searches per signature (see `nearest.py`).

Source: greedy k-member clustering (order and leftovers of the paper); the order of classes and the boxes are our own.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.kernels.box import EPSILON, begin, loss_of, new_box, tabulate
from kanon_spark.kernels.extending import ACCEPTED, EXHAUSTED, extend
from kanon_spark.kernels.growing import CANDIDATES, NEAREST, grow_boxes, grow_exactly, grow_nearest
from kanon_spark.kernels.guard import accepts, asks
from kanon_spark.kernels.measure import Measured
from kanon_spark.kernels.nearest import buffers, furthest, gather
from kanon_spark.kernels.problem import Problem
from kanon_spark.kernels.shortfall import new_tally
from kanon_spark.kernels.trie import Trie, plant, put_back, remove, replant

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]

FREE = -1
_BOXES_FROM_K = 20  # below, classes hold too few signatures for boxes to pay
# What a class costs, in distances at which the seed's neighbours hold k persons.
_SMALL_K_FACTOR, _LARGE_K_FACTOR = 2.0, 3.0
_MODESTY, _GROWTHS = 0.8, 4  # share of it that is estimated, as long as no more boxes per class have been grown
_LEARNING = 0.02  # how fast the latter follows what classes really cost
_SLACK = 0.01  # a class so little dearer than the next estimate is closed: growing another first would save less
_ALONE = 27_000  # signatures per thread that looks for neighbours: two of these are more than a block
_REPLANT = 64  # tries smaller than this are not built again


def cheapest_first(problem: Problem, measured: Measured, *, stop: float = np.inf) -> Ints:
    """Class of each signature, FREE for what no class of loss below `stop` has taken.

    Every class has k persons and is accepted by the problem's guard.

    Args:
        problem: What to solve.
        measured: Its measure.
        stop: Only classes of loss per row strictly below it are closed.
    """
    class_of = np.full(problem.size, FREE, dtype=np.int32)
    if not problem.size:
        return class_of
    trie = plant(measured, np.arange(problem.size, dtype=np.int32))
    key = _reach(measured.rules, trie, measured.codes, problem.persons, problem.k)
    key *= _LARGE_K_FACTOR if problem.k >= _BOXES_FROM_K else _SMALL_K_FACTOR
    _cheapest_first(
        measured.rules,
        trie,
        measured.codes,
        problem.rows,
        problem.persons,
        problem.k,
        problem.guard.compiled,
        key,
        stop,
        problem.k >= _BOXES_FROM_K,
        class_of,
    )
    return class_of


def reach(problem: Problem, measured: Measured) -> Floats:
    """Per signature, the distance at which its nearest signatures hold k persons: no class of it costs less per row."""
    if not problem.size:
        return np.zeros(0)
    trie = plant(measured, np.arange(problem.size, dtype=np.int32))
    return _reach(measured.rules, trie, measured.codes, problem.persons, problem.k)  # type: ignore[no-any-return]


def paper_order(problem: Problem, measured: Measured, *, seed: int) -> Ints:
    """Class of each signature by the paper's greedy; FREE for the last, who are fewer than k persons or refused."""
    class_of = np.full(problem.size, FREE, dtype=np.int32)
    if problem.size:
        start = int(np.random.default_rng(seed).integers(problem.size))
        trie = plant(measured, np.arange(problem.size, dtype=np.int32))
        _paper_order(
            measured.rules, trie, measured.codes, problem.persons, problem.k, problem.guard.compiled, start, class_of
        )
    return class_of


def neighbours(measured: Measured, trie: Trie, asking: Ints, persons: NDArray[np.int64], count: int) -> Ints:
    """Per asking signature, up to `count` others that are nearest to it in the trie, in no order; -1 where fewer."""

    def find(some: Ints) -> Ints:
        return _neighbours(measured.rules, trie, measured.codes, some, persons, count)  # type: ignore[no-any-return]

    # Blocks are solved by one task for each core. What is larger than any block stands alone on the driver, where the
    # other cores have nothing to do.
    threads = min(os.cpu_count() or 1, len(asking) // _ALONE)
    if threads < 2:
        return find(asking)
    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate(list(pool.map(find, np.array_split(asking, threads))))


@njit(cache=True, nogil=True)
def _reach(rules, trie, codes, persons, k):  # type: ignore[no-untyped-def]
    found = np.zeros(codes.shape[0])
    box = new_box(rules)
    search = buffers(trie, k + 1)
    for s in range(codes.shape[0]):
        if persons[s] >= k:
            continue
        begin(rules, box, codes, s)
        tabulate(rules, box, True)
        held = gather(rules, trie, box, persons, k, 0, search)
        found[s] = search.away[0] if held >= k else np.inf
        for j in range(len(box.cost)):
            found[s] += box.cost[j]  # leaves may cost something themselves
    return found


@njit(cache=True, nogil=True)
def _neighbours(rules, trie, codes, asking, persons, count):  # type: ignore[no-untyped-def]
    found = np.full((len(asking), count), -1, np.int32)
    box = new_box(rules)
    search = buffers(trie, count + 2)
    for i in range(len(asking)):
        begin(rules, box, codes, asking[i])
        tabulate(rules, box, True)
        gather(rules, trie, box, persons, 0, count + 1, search)
        n = 0
        for h in range(search.size[0] - 1, -1, -1):
            if search.heap[h] != asking[i] and n < count:
                found[i, n] = search.heap[h]
                n += 1
    return found


@njit(cache=True)
def _sift(heap, key, size, at):  # type: ignore[no-untyped-def]
    s = heap[at]
    while True:
        c = 2 * at + 1
        if c >= size:
            break
        if c + 1 < size and _before(key, heap[c + 1], heap[c]):
            c += 1
        if not _before(key, heap[c], s):
            break
        heap[at] = heap[c]
        at = c
    heap[at] = s


@njit(cache=True)
def _before(key, one, other):  # type: ignore[no-untyped-def]
    return key[one] < key[other] or (key[one] == key[other] and one < other)


@njit(cache=True, nogil=True)
def _cheapest_first(rules, trie, codes, rows, persons, k, guard, key, stop, boxes, class_of):  # type: ignore[no-untyped-def]
    count = codes.shape[0]
    asked = asks(guard)
    tally = new_tally(guard)
    box = new_box(rules)
    search = buffers(trie, max(k, CANDIDATES) + 2 if boxes else NEAREST * k + 2)
    grown = np.empty(count, np.int32)
    classes = 0
    heap = np.empty(count, np.int32)
    waiting = 0
    free_persons = 0
    factor = _LARGE_K_FACTOR
    growths = 0
    hopeless = np.zeros(count, np.bool_)
    grown_before = np.zeros(count, np.bool_)  # its key is no estimate any more
    surcharge, charged = 1.0, 1  # mean of what the guard makes classes dearer by, over so many
    for s in range(count):
        if persons[s] >= k:
            begin(rules, box, codes, s)
            grown[0] = s
            if loss_of(rules, box, rows[s]) < stop * rows[s] and (not asked or accepts(guard, grown[:1])):
                class_of[s] = classes
                classes += 1
                remove(trie, s)
                continue
        free_persons += persons[s]
        if np.isfinite(key[s]):
            heap[waiting] = s
            waiting += 1
    for at in range(waiting // 2 - 1, -1, -1):
        _sift(heap, key, waiting, at)
    while waiting and free_persons >= k:
        s = heap[0]
        if class_of[s] >= 0 or hopeless[s] or key[s] >= _LARGE_K_FACTOR * stop:
            waiting -= 1
            heap[0] = heap[waiting]
            _sift(heap, key, waiting, 0)
            continue
        if trie.free[0] * 2 < len(trie.member) and len(trie.member) > _REPLANT:
            trie = replant(trie)
        top = np.inf
        for c in range(1, min(3, waiting)):
            top = min(top, key[heap[c]])
        if asked and not boxes and not grown_before[s]:  # boxes learn what their classes cost, whatever made it
            grown_before[s] = True
            key[s] *= surcharge
            if key[s] > top + EPSILON:
                _sift(heap, key, waiting, 0)
                continue
        begin(rules, box, codes, s)
        distance = 0.0
        if boxes:
            # Boxes are dear to grow: first see whether the neighbours that the estimate counted on are still free, and
            # what classes have cost of late for the same distance.
            tabulate(rules, box, True)
            if gather(rules, trie, box, persons, k, 0, search) >= k:
                distance = search.away[0]
            # A modest estimate finds cheaper classes, and grows more boxes in vain: so many that each class has a few.
            modesty = _MODESTY if growths < _GROWTHS * (classes + 10) else 1.0
            growths += 1
            if modesty * factor * distance > key[s] + EPSILON:
                key[s] = modesty * factor * distance
                if key[s] > top + EPSILON:
                    growths -= 1
                    _sift(heap, key, waiting, 0)
                    continue
            size, held = grow_boxes(rules, trie, codes, box, persons, k, s, grown, search)
        else:
            size, held = grow_nearest(rules, trie, codes, box, persons, k, s, grown, search)
        loss = _loss_per_row(rules, box, rows, grown, size) if held >= k else np.inf
        if asked and held >= k:
            plain = loss
            if not accepts(guard, grown[:size]):
                for i in range(1, size):
                    put_back(trie, grown[i])
                begin(rules, box, codes, s)
                size = np.int64(1)  # a bare 1 would be a type of its own, for which `extend` is compiled, too
                size, held, end = extend(rules, trie, codes, box, persons, k, guard, tally, grown, size, stop, search)
                loss = _loss_per_row(rules, box, rows, grown, size) if end == ACCEPTED else np.inf
                if end == EXHAUSTED:
                    for i in range(size):
                        hopeless[grown[i]] = True
            if plain > 0 and np.isfinite(loss):
                charged += 1
                surcharge += (loss / plain - surcharge) / charged
        if distance > 0 and np.isfinite(loss):
            factor += _LEARNING * (loss / distance - factor)
        if loss < stop and loss <= max(key[s], top) * (1.0 + _SLACK) + EPSILON:
            for i in range(size):
                class_of[grown[i]] = classes
                free_persons -= persons[grown[i]]
            classes += 1
        else:
            for i in range(size):
                put_back(trie, grown[i])
            key[s] = loss
        if class_of[s] >= 0 or loss >= stop:
            waiting -= 1
            heap[0] = heap[waiting]
        _sift(heap, key, waiting, 0)
    return classes


@njit(cache=True)
def _loss_per_row(rules, box, rows, grown, size):  # type: ignore[no-untyped-def]
    weight = 0
    for i in range(size):
        weight += rows[grown[i]]
    return loss_of(rules, box, weight) / max(1, weight)


@njit(cache=True, nogil=True)
def _paper_order(rules, trie, codes, persons, k, guard, start, class_of):  # type: ignore[no-untyped-def]
    asked = asks(guard)
    tally = new_tally(guard)
    box = new_box(rules)
    search = buffers(trie, 2)
    grown = np.empty(codes.shape[0], np.int32)
    last = start
    classes = 0
    while trie.free[0] > 0:
        if trie.free[0] * 2 < len(trie.member) and len(trie.member) > _REPLANT:
            trie = replant(trie)
        begin(rules, box, codes, last)
        tabulate(rules, box, True)
        s = furthest(rules, trie, box, search)
        begin(rules, box, codes, s)
        size, held = grow_exactly(rules, trie, codes, box, persons, k, s, grown, search)
        good = held >= k
        if good and asked and not accepts(guard, grown[:size]):
            size, held, end = extend(rules, trie, codes, box, persons, k, guard, tally, grown, size, np.inf, search)
            good = end == ACCEPTED
        if good:
            for i in range(size):
                class_of[grown[i]] = classes
            classes += 1
        elif trie.free[0] == 0:
            break
        last = s
    return classes
