"""A perfect hash table for a hierarchy file's values, small enough to stand as literals in a Spark plan.

A map literal is searched from front to back and a join per column is dear, so a text finds its code by arithmetic: Spark's
own `hash` of it (Murmur3, computed here in Python too), a multiplier chosen so that no two values meet, one look into an
array of texts to be sure, and one into an array of codes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

_UNSIGNED = 0xFFFFFFFF
_SPARK_SEED = 42
_TRIES = 2_000
SHIFT = 20  # the middle bits of the product depend on all bits of the hash


def murmur3(text: bytes, seed: int = _SPARK_SEED) -> int:
    """Spark's `hash(text)` as an unsigned number (its tail bytes are mixed in one by one, unlike in other Murmur3s).

    >>> murmur3(b"Spark")
    228093765
    """
    state = seed
    whole = len(text) - len(text) % 4
    for at in range(0, whole, 4):
        state = _mix(state, int.from_bytes(text[at : at + 4], "little"))
    for byte in text[whole:]:
        state = _mix(state, byte if byte < 128 else byte | 0xFFFFFF00)
    state ^= len(text)
    state = ((state ^ (state >> 16)) * 0x85EBCA6B) & _UNSIGNED
    state = ((state ^ (state >> 13)) * 0xC2B2AE35) & _UNSIGNED
    return state ^ (state >> 16)


def _mix(state: int, word: int) -> int:
    word = (word * 0xCC9E2D51) & _UNSIGNED
    word = ((word << 15) | (word >> 17)) & _UNSIGNED
    word = (word * 0x1B873593) & _UNSIGNED
    state ^= word
    state = ((state << 13) | (state >> 19)) & _UNSIGNED
    return (state * 5 + 0xE6546B64) & _UNSIGNED


@dataclass(frozen=True)
class PerfectHash:
    """Where each key lies: `slot = (hash * multipliers[hash % buckets] >> SHIFT) % size`.

    Attributes:
        multipliers: One per bucket; the number of buckets is a power of two.
        slots: Index of the key in each slot, -1 where there is none; their number is a power of two.
    """

    multipliers: tuple[int, ...]
    slots: tuple[int, ...]

    @classmethod
    def of(cls, keys: Sequence[str]) -> "PerfectHash | None":
        """The table for distinct keys; None if two of them have the same 32-bit hash (once in thousands of files).

        >>> table = PerfectHash.of(["a", "b", "c"])
        >>> [table.slots[table.slot_of(key)] for key in ["a", "b", "c"]]
        [0, 1, 2]
        """
        hashes = [murmur3(key.encode()) for key in keys]
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

    def slot_of(self, key: str) -> int:
        """The slot that a text is looked for in."""
        value = murmur3(key.encode())
        return (value * self.multipliers[value % len(self.multipliers)] >> SHIFT) % len(self.slots)
