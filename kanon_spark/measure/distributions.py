"""How the values of each quasi-identifier are distributed, in the source and as a reader of the release must see them.

A published cell leaves open which of several values a row has. A reader who knows nothing else gives each of them the
same chance: so a row counts in equal parts for every value that its cell covers. Of a big recoding a sample of whole
classes is taken, by a hash of their ids; all figures are shares.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kanon_spark.signatures.codebook import Codebook, QiColumn

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

ENTRIES = 100_000  # as many are looked at on the driver: some ten megabytes
BARS = 20  # the most that a chart can show
STEPS = 40  # points of a curve
LABELS = 12  # published labels that are named, the most frequent first
_DIGITS = 9

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def qi_distributions(entries: "DataFrame", codebook: Codebook, *, count: int) -> dict[str, Any]:
    """What the report draws of the quasi-identifiers. It names values: confidential, like the manifest.

    Args:
        entries: The recoding's entries.
        codebook: The QIs with their trees.
        count: How many entries there are.

    Returns:
        `one_in`: of how many classes one was looked at; `columns`: per QI its `name`, the labels of its `bars`, the
        shares of rows `before` and `after` in each, and the most frequent `published` labels with their shares, and
        whether each is `made` of several values that occur, as ranges and sets are; and `closings`: up to which `loss`
        of a row which `share` of the rows stands in classes.
    """
    step = max(1, -(-count // ENTRIES))
    held = _Held.of(entries, codebook, step=step)
    columns = [held.column(index) for index in range(len(codebook.columns))]
    return {"one_in": step, "columns": columns, "closings": held.closings()}


@dataclass(frozen=True)
class _Held:
    """Entries on the driver: leaf codes, rows, classes in ascending order, published nodes, own labels and losses."""

    codebook: Codebook
    codes: NDArray[np.int32]
    nodes: NDArray[np.int32]
    rows: Ints
    class_id: Ints
    labels: "dict[int, pa.DictionaryArray]"
    losses: dict[int, Floats]

    @classmethod
    def of(cls, entries: "DataFrame", codebook: Codebook, *, step: int) -> "_Held":
        from pyspark.sql import functions as F

        if step > 1:
            # A suppressed entry stands for itself.
            whole = F.xxhash64("class_id", F.when(F.col("class_id") < 0, F.col("h")))
            entries = entries.where(F.pmod(whole, F.lit(step)) == 0)
        own = {i: f"label_{i}" for i, column in enumerate(codebook.columns) if column.publish != "node"}
        words, out = codebook.layout.names(), codebook.node_layout.names("out")
        loss = {index: f"loss_{index}" for index in own}
        table = entries.select("rows", "class_id", *words, *out, *own.values(), *loss.values()).toArrow()
        table = table.sort_by("class_id")

        def numbers(names: list[str]) -> Ints:
            return np.column_stack([table[name].to_numpy() for name in names])

        return cls(
            codebook,
            codebook.layout.unpack(numbers(words)),
            codebook.node_layout.unpack(numbers(out)),
            table["rows"].to_numpy(),
            table["class_id"].to_numpy(),
            {index: table[name].combine_chunks().dictionary_encode() for index, name in own.items()},
            {index: table[name].to_numpy() for index, name in loss.items()},
        )

    def closings(self) -> list[dict[str, float]]:
        """How many rows stand in classes up to each loss, in steps of equally many rows."""
        released = self.class_id >= 0
        if not released.any():
            return []
        weights = self.codebook.weights
        loss = np.zeros(int(released.sum()))
        for index, column in enumerate(self.codebook.columns):
            own = self.losses[index] if index in self.losses else column.tree.loss[self.nodes[:, index]]
            loss += weights[index] / weights.sum() * np.where(np.isfinite(own), own, 1.0)[released]
        order = np.argsort(loss, kind="stable")
        reached = np.cumsum(self.rows[released][order])
        at = np.searchsorted(reached, np.linspace(0, reached[-1], STEPS + 1)[1:])
        ends = np.minimum(at, len(order) - 1)
        return [
            {
                "loss": round(float(loss[order[end]]), _DIGITS),
                "share": round(float(reached[end] / self.rows.sum()), _DIGITS),
            }
            for end in ends
        ]

    def column(self, index: int) -> dict[str, Any]:
        """The distributions of one QI."""
        column = self.codebook.columns[index]
        codes, released = self.codes[:, index].astype(np.int64), self.class_id >= 0
        leaves = max(column.tree.leaves, int(codes.max(initial=0)) + 1)
        before = _sums(codes, self.rows, leaves)
        after = self._spread(index, column, codes, leaves)
        bar_of, names = _bars(column, before)
        shown = [_sums(bar_of, part[: len(bar_of)], len(names)) for part in (before, after)]
        return {
            "name": column.name,
            "bars": names,
            "before": _shares(shown[0], self.rows.sum()),
            "after": _shares(shown[1], self.rows[released].sum()),
            "published": self._published(index, column),
        }

    def _spread(self, index: int, column: QiColumn, codes: Ints, leaves: int) -> Floats:
        """Rows per leaf, each in equal parts on every leaf that its cell covers."""
        released = self.class_id >= 0
        rows, codes, classes = self.rows[released].astype(np.float64), codes[released], self.class_id[released]
        if column.publish == "node":
            nodes = self.nodes[released, index]
            return _evenly(column.tree.lo[nodes], column.tree.hi[nodes], rows, leaves)
        first = np.flatnonzero(np.diff(classes, prepend=-1))
        if not len(first):
            return np.zeros(leaves)
        of_class = np.cumsum(np.diff(classes, prepend=-1) != 0) - 1
        weight = np.add.reduceat(rows, first)
        if column.publish == "set":
            members = np.unique(of_class * leaves + codes)
            size = np.bincount(members // leaves)
            share = (weight / size)[members // leaves]
            return _sums(members % leaves, share, leaves)
        null = codes == column.tree.null_leaf
        whole = _sums(codes[null], rows[null], leaves)
        weight = weight - _sums(of_class[null], rows[null], len(first))
        low = np.minimum.reduceat(np.where(null, leaves, codes), first)
        high = np.maximum.reduceat(np.where(null, -1, codes), first) + 1
        some = high > low
        return whole + _evenly(low[some], high[some], weight[some], leaves)

    def _published(self, index: int, column: QiColumn) -> list[dict[str, Any]]:
        """The most frequent labels of the release."""
        released = self.class_id >= 0
        rows = self.rows[released]
        if column.publish == "node":
            at = self.nodes[released, index].astype(np.int64)
            names: list[str | None] = list(column.tree.labels)
        else:
            encoded = self.labels[index]
            # A null label stands behind the others.
            at = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False)[released]
            names = [*encoded.dictionary.to_pylist(), None]
        counts = _sums(at.astype(np.int64), rows, len(names))
        made = np.zeros(len(names), np.bool_)
        if index in self.losses:
            made[at] = self.losses[index][released] > 0
        order = np.argsort(-counts, kind="stable")[:LABELS]
        shares = _shares(counts, rows.sum())
        return [{"label": _text(names[i]), "share": shares[i], "made": bool(made[i])} for i in order if counts[i] > 0]


def _evenly(low: NDArray[Any], high: NDArray[Any], rows: Floats, leaves: int) -> Floats:
    """Rows in equal parts on the leaves low … high-1 of each."""
    step = np.zeros(leaves + 1)
    part = rows / (high - low)
    np.add.at(step, low, part)
    np.subtract.at(step, high, part)
    return np.maximum(0.0, np.cumsum(step)[:leaves])


def _bars(column: QiColumn, before: Floats) -> tuple[Ints, list[str]]:
    """Which bar each leaf belongs to, and what the bars are called."""
    tree = column.tree
    texts = [_text(text) for text in column.texts]
    texts += ["?"] * (tree.leaves - len(texts))
    if tree.leaves <= BARS:
        return np.arange(tree.leaves), texts
    if column.publish == "node":
        for level in tree.levels[1:-1]:
            nodes = np.unique(level)
            if 3 <= len(nodes) <= BARS:
                return np.searchsorted(nodes, level), [_text(tree.labels[v]) for v in nodes]
    positions = column.positions[: tree.leaves]
    if np.isfinite(positions).sum() > BARS:
        return _stretches(positions, texts)
    most = np.sort(np.argsort(-before[: tree.leaves], kind="stable")[: BARS - 1])
    bar_of = np.full(tree.leaves, len(most), np.int64)
    bar_of[most] = np.arange(len(most))
    return bar_of, [*(texts[leaf] for leaf in most), "all others"]


def _stretches(positions: Floats, texts: list[str]) -> tuple[Ints, list[str]]:
    """Equal stretches of an ordered domain, named by the values that occur at their ends; the rest behind them."""
    known = np.isfinite(positions)
    low, high = positions[known].min(), positions[known].max()
    place = np.zeros(len(positions), np.int64)
    place[known] = np.minimum(BARS - 2, (positions[known] - low) / (high - low) * (BARS - 1)).astype(np.int64)
    place[~known] = BARS - 1
    used, bar_of = np.unique(place, return_inverse=True)
    names = []
    for bar in used:
        inside = np.flatnonzero(place == bar)
        if bar == BARS - 1:
            names.append(texts[inside[0]] if len(inside) == 1 else "all others")
            continue
        ends = inside[[positions[inside].argmin(), positions[inside].argmax()]]
        names.append(texts[ends[0]] if ends[0] == ends[1] else f"{texts[ends[0]]} … {texts[ends[1]]}")
    return bar_of.astype(np.int64), names


def _sums(place: Ints, rows: NDArray[Any], places: int) -> Floats:
    return np.bincount(place, rows, places).astype(np.float64)


def _shares(counts: Floats, whole: float) -> list[float]:
    return [round(float(count) / whole, _DIGITS) if whole else 0.0 for count in counts]


def _text(value: str | None) -> str:
    return "null" if value is None else value
