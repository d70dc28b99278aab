"""Packed words hold every tuple, keep the order of tuples, and never turn negative."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kanon_spark.signatures.layout import Layout
from kanon_spark.signatures.perfect_hash import PerfectHash, folded


@st.composite
def sized_codes(draw: st.DrawFn) -> tuple[list[int], list[list[int]]]:
    sizes = draw(st.lists(st.integers(1, 2_000_001), min_size=1, max_size=12))
    row = st.tuples(*[st.integers(0, size - 1) for size in sizes]).map(list)
    return sizes, draw(st.lists(row, min_size=1, max_size=20))


@given(sized_codes())
def test_packing_is_undone_by_unpacking(case: tuple[list[int], list[list[int]]]) -> None:
    sizes, codes = case
    layout = Layout.of(sizes)
    words = layout.pack(np.array(codes))
    assert words.shape == (len(codes), layout.words)
    assert (words >= 0).all()
    assert layout.unpack(words).tolist() == codes


@given(sized_codes())
def test_words_sort_like_tuples(case: tuple[list[int], list[list[int]]]) -> None:
    sizes, codes = case
    words = Layout.of(sizes).pack(np.array(codes)).tolist()
    assert [code for _, code in sorted(zip(words, codes, strict=True))] == sorted(codes)


@given(sized_codes())
def test_no_word_is_wider_than_63_bits(case: tuple[list[int], list[list[int]]]) -> None:
    layout = Layout.of(case[0])
    used = {word: 0 for word in layout.word}
    for word, bits in zip(layout.word, layout.bits, strict=True):
        used[word] += bits
    assert max(used.values()) <= 63


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), unique=True, max_size=200))
def test_perfect_hashing_finds_every_key(keys: list[int]) -> None:
    table = PerfectHash.of(keys)
    if table is None:
        assert len({folded(key) for key in keys}) < len(keys)
        return
    assert [table.slots[table.slot_of(key)] for key in keys] == list(range(len(keys)))
