"""Spark's hash of a text, and a perfect hash table over such hashes, small enough to stand as literals in a plan.

A map literal is searched from front to back, and a join per column is dear. So a value finds its code by arithmetic: a
multiplier chosen so that no two values meet gives its slot, one look into an array shows whether it is the right value,
and one into another array gives the code.
"""

from collections.abc import Sequence
from dataclasses import dataclass

_MASK32 = (1 << 32) - 1
_MASK64 = (1 << 64) - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_SPARK_SEED = 42
_TRIES = 2_000
SHIFT = 20  # the middle bits of the product depend on all bits of the hash


def xxhash64(text: str) -> int:
    """What Spark's `xxhash64(text)` gives.

    >>> xxhash64("Spark")
    -4294468057691064905
    """
    data = text.encode()
    size, at = len(data), 0
    if size >= 32:
        lanes = [(_SPARK_SEED + _P1 + _P2), _SPARK_SEED + _P2, _SPARK_SEED, _SPARK_SEED - _P1]
        lanes = [lane & _MASK64 for lane in lanes]
        while at + 32 <= size:
            for lane in range(4):
                lanes[lane] = _round(lanes[lane], int.from_bytes(data[at : at + 8], "little"))
                at += 8
        state = sum(_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK64
        for lane in lanes:
            state = ((state ^ _round(0, lane)) * _P1 + _P4) & _MASK64
    else:
        state = _SPARK_SEED + _P5
    state = (state + size) & _MASK64
    while at + 8 <= size:
        state = (_rotated(state ^ _round(0, int.from_bytes(data[at : at + 8], "little")), 27) * _P1 + _P4) & _MASK64
        at += 8
    if at + 4 <= size:
        state ^= (int.from_bytes(data[at : at + 4], "little") * _P1) & _MASK64
        state = (_rotated(state, 23) * _P2 + _P3) & _MASK64
        at += 4
    for byte in data[at:]:
        state = (_rotated(state ^ (byte * _P5) & _MASK64, 11) * _P1) & _MASK64
    state = ((state ^ (state >> 33)) * _P2) & _MASK64
    state = ((state ^ (state >> 29)) * _P3) & _MASK64
    state ^= state >> 32
    return state - (1 << 64) if state >> 63 else state


def _round(lane: int, word: int) -> int:
    return (_rotated((lane + word * _P2) & _MASK64, 31) * _P1) & _MASK64


def _rotated(state: int, by: int) -> int:
    return ((state << by) | (state >> (64 - by))) & _MASK64


def folded(key: int) -> int:
    """The two halves of a long mixed into 32 bits: small enough to be multiplied without overflow."""
    return (key ^ ((key & _MASK64) >> 32)) & _MASK32


@dataclass(frozen=True)
class PerfectHash:
    """Where each key lies: `slot = (folded * multipliers[folded % buckets] >> SHIFT) % size`.

    Attributes:
        multipliers: One per bucket; the number of buckets is a power of two.
        slots: Index of the key in each slot, -1 where there is none; their number is a power of two.
    """

    multipliers: tuple[int, ...]
    slots: tuple[int, ...]

    @classmethod
    def of(cls, keys: Sequence[int]) -> "PerfectHash | None":
        """The table for distinct longs; None if two of them fold to the same number (one file in thousands).

        >>> table = PerfectHash.of([7, -1, 1 << 40])
        >>> [table.slots[table.slot_of(key)] for key in [7, -1, 1 << 40]]
        [0, 1, 2]
        """
        hashes = [folded(key) for key in keys]
        if len(set(hashes)) < len(hashes):
            return None
        size = 1 << (4 * max(1, len(keys)) - 1).bit_length()
        buckets = 1 if len(keys) <= 32 else size >> 3
        while True:
            found = cls._try(hashes, size, buckets)
            if found is not None:
                return found
            buckets *= 2

    @classmethod
    def _try(cls, hashes: Sequence[int], size: int, buckets: int) -> "PerfectHash | None":
        members: list[list[int]] = [[] for _ in range(buckets)]
        for index, value in enumerate(hashes):
            members[value % buckets].append(index)
        slots = [-1] * size
        multipliers = [1] * buckets
        for bucket in sorted(range(buckets), key=lambda each: (-len(members[each]), each)):
            for attempt in range(_TRIES):
                multiplier = ((2 * attempt + 1) * 0x9E3779B1) & 0x7FFFFFFF
                taken = [(hashes[index] * multiplier >> SHIFT) % size for index in members[bucket]]
                if len(set(taken)) == len(taken) and all(slots[slot] < 0 for slot in taken):
                    break
            else:
                return None
            multipliers[bucket] = multiplier
            for index, slot in zip(members[bucket], taken, strict=True):
                slots[slot] = index
        return cls(tuple(multipliers), tuple(slots))

    def slot_of(self, key: int) -> int:
        """The slot that a key is looked for in."""
        value = folded(key)
        return (value * self.multipliers[value % len(self.multipliers)] >> SHIFT) % len(self.slots)
