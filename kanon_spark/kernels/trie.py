"""Signatures in a trie that knows which of them are still free, for the searches of `nearest.py`.

Idea: sort the signatures by their codes, the QI whose values are dearest to mix first (few values, then ranges), and
keep the number of free signatures under each node. Nodes of few signatures are not divided further but scanned.

Cost: building is a sort; removing a signature is one step per QI. A trie that has lost most of its signatures is built
again from what is left, which costs a constant per signature in all.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.kernels.box import RANGE
from kanon_spark.kernels.measure import Measured

Ints = NDArray[np.int32]

_BUCKET = 4  # signatures that are scanned rather than divided


class Trie(NamedTuple):
    """Nodes in breadth-first order, so that the children of a node are a run of nodes."""

    order: Ints  # QIs from the root down
    member: Ints  # signatures in the order of their codes
    slot: Ints  # members by levels: where the value stands in the box's table
    first: Ints  # per node: members first … last-1
    last: Ints
    child: Ints  # per node: children child … child_end-1; none for a bucket
    child_end: Ints
    depth: Ints
    value: Ints  # slot of the node's value in the QI of the level above it
    above: Ints
    free: Ints  # free signatures below
    bucket_of: Ints  # per signature
    here: NDArray[np.bool_]  # per signature: free


def search_order(measured: Measured) -> Ints:
    """QIs in the order of the trie: few values first, ranges last."""
    rules = measured.rules
    leaves = np.diff(rules.base)
    return np.lexsort((leaves, rules.kind == RANGE)).astype(np.int32)


def plant(measured: Measured, signatures: Ints) -> Trie:
    """The trie of these signatures, all of them free."""
    order = search_order(measured)
    codes = measured.codes
    keys = [codes[signatures, j] for j in order[::-1]]
    member = signatures[np.lexsort((signatures, *keys))].astype(np.int32)
    slot = np.ascontiguousarray((codes[member] + measured.rules.base[:-1])[:, order], dtype=np.int32)
    return build(order, slot, member, problem_size=codes.shape[0])  # type: ignore[no-any-return]


@njit(cache=True)
def build(order, slot, member, problem_size):  # type: ignore[no-untyped-def]
    """Divide sorted members level by level until nodes are small."""
    count, width = len(member), len(order)
    nodes = _count_nodes(slot)
    first = np.zeros(nodes, np.int32)
    last = np.zeros(nodes, np.int32)
    child = np.zeros(nodes, np.int32)
    child_end = np.zeros(nodes, np.int32)
    depth = np.zeros(nodes, np.int32)
    value = np.zeros(nodes, np.int32)
    above = np.full(nodes, -1, np.int32)
    bucket_of = np.full(problem_size, -1, np.int32)
    here = np.zeros(problem_size, np.bool_)
    last[0] = count
    made = 1
    at = 0
    while at < made:
        child[at] = made
        if last[at] - first[at] > _BUCKET and depth[at] < width:
            level = depth[at]
            i = first[at]
            while i < last[at]:
                x = slot[i, level]
                first[made] = i
                while i < last[at] and slot[i, level] == x:
                    i += 1
                last[made] = i
                value[made] = x
                depth[made] = level + 1
                above[made] = at
                made += 1
        else:
            for i in range(first[at], last[at]):
                bucket_of[member[i]] = at
        child_end[at] = made
        at += 1
    for i in range(count):
        here[member[i]] = True
    return Trie(order, member, slot, first, last, child, child_end, depth, value, above, last - first, bucket_of, here)


@njit(cache=True)
def _count_nodes(slot):  # type: ignore[no-untyped-def]
    """How many nodes there will be: a run of equal values is divided further if it is longer than a bucket."""
    count, width = slot.shape
    nodes = 1
    length = np.full(count, count, np.int32)  # of the run of equal values around each member on the level above
    for level in range(width):
        i = 0
        while i < count:
            size = length[i]
            if size <= _BUCKET:
                i += size
                continue
            end = i + size
            while i < end:
                x = slot[i, level]
                start = i
                while i < end and slot[i, level] == x:
                    i += 1
                nodes += 1
                for inside in range(start, i):
                    length[inside] = i - start
    return nodes


@njit(cache=True)
def remove(trie, s):  # type: ignore[no-untyped-def]
    """Signature s is no longer free."""
    trie.here[s] = False
    v = trie.bucket_of[s]
    while v >= 0:
        trie.free[v] -= 1
        v = trie.above[v]


@njit(cache=True)
def put_back(trie, s):  # type: ignore[no-untyped-def]
    """Signature s is free again."""
    trie.here[s] = True
    v = trie.bucket_of[s]
    while v >= 0:
        trie.free[v] += 1
        v = trie.above[v]


@njit(cache=True)
def replant(trie):  # type: ignore[no-untyped-def]
    """The trie of the signatures that are still free."""
    left = np.empty(trie.free[0], np.int32)
    slot = np.empty((trie.free[0], len(trie.order)), np.int32)
    n = 0
    for i in range(len(trie.member)):
        if trie.here[trie.member[i]]:
            left[n] = trie.member[i]
            slot[n] = trie.slot[i]
            n += 1
    return build(trie.order, slot, left, len(trie.here))
