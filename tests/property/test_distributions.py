"""Shares of rows before and after, against sums over single rows and values."""

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import random_tree

from kanon_spark.hierarchy.tree import Tree
from kanon_spark.measure.distributions import BARS, _bars, _Held
from kanon_spark.signatures.codebook import Codebook, Publish, QiColumn


def column_of(tree: Tree, publish: Publish, *, ordered: bool) -> QiColumn:
    positions = np.arange(tree.leaves, dtype=float) if ordered else np.full(tree.leaves, np.nan)
    texts = tuple(f"v{leaf}" for leaf in range(tree.leaves))
    return QiColumn("q", "integer" if ordered else "text", 1.0, tree, publish, texts, positions, static=False)


def held_of(column: QiColumn, rng: np.random.Generator, size: int) -> _Held:
    """Random classes of random values; some entries are suppressed."""
    class_id = np.sort(rng.integers(-1, 4, size)).astype(np.int64)
    codes = rng.integers(0, column.tree.leaves, size).astype(np.int32)
    nodes = codes.copy()
    for c in np.unique(class_id):
        mine = np.flatnonzero(class_id == c)
        for i in mine:
            nodes[mine] = column.tree.lca(nodes[mine[:1]], codes[i : i + 1])[0]
    rows = rng.integers(1, 5, size).astype(np.int64)
    labels, losses = {}, {}
    if column.publish != "node":
        labels = {0: pa.array([f"class {c}" if c else None for c in class_id]).dictionary_encode()}
        losses = {0: rng.random(size)}
    return _Held(Codebook((column,)), codes[:, None], nodes[:, None], rows, class_id, labels, losses)


def covered(held: _Held, column: QiColumn, entry: int) -> list[int]:
    """The leaves that the published cell of an entry leaves open."""
    mine = held.codes[held.class_id == held.class_id[entry], 0]
    if column.publish == "set":
        return sorted(set(mine.tolist()))
    if column.publish == "range":
        return list(range(mine.min(), mine.max() + 1))
    node = held.nodes[entry, 0]
    return list(range(column.tree.lo[node], column.tree.hi[node]))


@settings(deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["node", "range", "set"]), st.integers(1, 40))
def test_every_row_counts_once_for_all_that_its_cell_covers(seed: int, publish: Publish, size: int) -> None:
    rng = np.random.default_rng(seed)
    column = column_of(random_tree(rng, int(rng.integers(2, 9))), publish, ordered=publish == "range")
    held = held_of(column, rng, size)
    found = held.column(0)
    before, after = np.zeros(column.tree.leaves), np.zeros(column.tree.leaves)
    for entry in range(size):
        before[held.codes[entry, 0]] += held.rows[entry]
        if held.class_id[entry] >= 0:
            for leaf in covered(held, column, entry):
                after[leaf] += held.rows[entry] / len(covered(held, column, entry))
    assert found["bars"] == [f"v{leaf}" for leaf in range(column.tree.leaves)]
    assert np.allclose(found["before"], before / before.sum())
    assert np.allclose(found["after"], after / max(1.0, after.sum()))
    shares = [each["share"] for each in found["published"]]
    assert shares == sorted(shares, reverse=True)
    assert np.isclose(sum(shares), 1.0 if (held.class_id >= 0).any() else 0.0)
    if publish != "node" and (held.class_id == 0).any():
        assert "null" in {each["label"] for each in found["published"]}


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 60))
def test_closings_rise_to_all_that_is_released(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    held = held_of(column_of(random_tree(rng, 6), "range", ordered=True), rng, size)
    points = held.closings()
    released = held.class_id >= 0
    if not released.any():
        assert points == []
        return
    losses, shares = ([point[key] for point in points] for key in ("loss", "share"))
    assert losses == sorted(losses) and shares == sorted(shares)
    assert np.isclose(shares[-1], held.rows[released].sum() / held.rows.sum())
    for loss, share in zip(losses, shares, strict=True):
        assert held.rows[released & (held.losses[0] <= loss + 1e-9)].sum() / held.rows.sum() >= share - 1e-9


@settings(deadline=None)
@given(st.integers(0, 1_000), st.sampled_from(["node", "range", "set"]))
def test_wide_domains_have_few_bars_and_every_leaf_has_one(seed: int, publish: Publish) -> None:
    rng = np.random.default_rng(seed)
    leaves = int(rng.integers(BARS + 1, 90))
    column = column_of(random_tree(rng, leaves), publish, ordered=publish != "set")
    before = rng.integers(0, 9, leaves).astype(float)
    bar_of, names = _bars(column, before)
    assert len(bar_of) == leaves
    assert 1 <= len(names) <= BARS
    assert sorted(set(bar_of.tolist())) == list(range(len(names))) or names[-1] == "all others"
    if publish == "range":
        assert (np.diff(bar_of) >= 0).all()
