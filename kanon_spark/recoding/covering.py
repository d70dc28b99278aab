"""Which published tuple covers a tuple of values, and which of those that do loses least.

Idea: coverage is decided per quasi-identifier between the values that occur and the labels that occur, which are few,
and becomes one row of bits per value: bit j says that class j's label covers the value. The classes stand in the order
of their loss. The bits of a tuple's values, ANDed, are the classes that cover it, and the first bit that is set is the
answer. Cost: values x classes / 8 bytes per quasi-identifier and step, and as many ANDs per tuple; steps of a fixed
size bound the memory, and a tuple that found its class takes no part in later ones. Plain numpy, no Spark.

A hierarchy covers by its labels: a value by its own path to the root. Ranges cover by exact comparison (decimals, not
doubles), sets by their members. Null is covered by null and by `*` alone.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kanon_spark.config.models import PrefixSpec, QiSpec
from kanon_spark.hierarchy.tree import Kind
from kanon_spark.recoding.publish import set_members, star_of
from kanon_spark.signatures.codebook import QiColumn

Label = str | None
Bools = NDArray[np.bool_]
Ints = NDArray[np.int32]

STEP_CLASSES = 8_192
STEP_TUPLES = 4_096


class Cover(Protocol):
    """Coverage in one quasi-identifier."""

    def covers(self, codes: Ints, labels: Ints) -> Bools:
        """For each leaf code and each label (by its number): whether the label covers the leaf."""
        ...


@dataclass(frozen=True)
class ListedCover:
    """Each leaf has a list of labels that cover it; some labels cover everything.

    Attributes:
        starts: Where each leaf's list begins in `listed`; one more entry for the end.
        listed: Numbers of labels.
        always: Labels that cover everything.
    """

    starts: NDArray[np.int64]
    listed: Ints
    always: Bools

    @classmethod
    def of(cls, lists: Iterable[Iterable[int]], always: Bools) -> "ListedCover":
        """From one list of label numbers per leaf."""
        parts = [sorted(set(each)) for each in lists]
        starts = np.zeros(len(parts) + 1, dtype=np.int64)
        np.cumsum([len(part) for part in parts], out=starts[1:])
        return cls(starts, np.array([number for part in parts for number in part], dtype=np.int32), always)

    def covers(self, codes: Ints, labels: Ints) -> Bools:
        """See `Cover`."""
        matrix: Bools = np.repeat(self.always[labels][None, :], len(codes), axis=0)
        place = np.full(len(self.always), -1, dtype=np.int64)
        place[labels] = np.arange(len(labels))
        begins, sizes = self.starts[codes], self.starts[codes + 1] - self.starts[codes]
        rows = np.repeat(np.arange(len(codes)), sizes)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        columns = place[self.listed[np.repeat(begins, sizes) + within]]
        there = columns >= 0
        matrix[rows[there], columns[there]] = True
        return matrix


@dataclass(frozen=True)
class RangeCover:
    """Leaves have places on an axis, labels reach from `low` to `high`; null's place is -1, `*` begins below it."""

    places: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]

    def covers(self, codes: Ints, labels: Ints) -> Bools:
        """See `Cover`."""
        place = self.places[codes][:, None]
        found: Bools = (self.low[labels][None, :] <= place) & (place <= self.high[labels][None, :])
        return found


def cover_of(column: QiColumn, spec: QiSpec, labels: Sequence[Label], *, root: Label) -> Cover:
    """Coverage of a column's leaves by labels that a recoding publishes.

    Args:
        column: The column of the table to which the recoding is applied.
        spec: What was asked for it.
        labels: The published labels, each once.
        root: The label of the hierarchy's root, which covers everything as `*` does.
    """
    everything = {star_of(column)} | ({root} if column.publish == "node" else set())
    always = np.array([label is not None and label in everything for label in labels], dtype=np.bool_)
    if column.publish == "range":
        return _range_cover(column, labels, always)
    number = {label: index for index, label in enumerate(labels)}
    if column.publish == "set":
        return _set_cover(column, labels, always)
    if isinstance(spec.hierarchy, PrefixSpec):
        return _prefix_cover(column, spec, labels, always)
    # Nodes have far fewer labels than leaves have paths: look each up once.
    of_node = np.array([number.get(label, -1) for label in column.tree.labels], dtype=np.int32)
    paths = of_node[column.tree.levels].T.tolist()
    return ListedCover.of(([each for each in path if each >= 0] for path in paths), always)


def _prefix_cover(column: QiColumn, spec: QiSpec, labels: Sequence[Label], always: Bools) -> ListedCover:
    """`123**` covers what begins with 123: how many `*` stand there depends on the longest value of a table."""
    assert isinstance(spec.hierarchy, PrefixSpec)
    number: dict[object, list[int]] = {}
    for index, label in enumerate(labels):
        number.setdefault(_masked(label), []).append(index)
        if label is not None and label.endswith("*"):
            number.setdefault((label, False), []).append(index)  # a value may end so
    lists = []
    for code in range(column.tree.leaves):
        text = column.texts[code]
        if text is None or spec.min_level:
            path = {_masked(column.tree.labels[node]) for node in column.tree.levels[:, code].tolist()}
        else:
            path = {(text, False), *((text[:keep], True) for keep in spec.hierarchy.keep if len(text) >= keep)}
        lists.append([index for key in path for index in number.get(key, ())])
    return ListedCover.of(lists, always)


def _masked(label: Label) -> object:
    """What a prefix label says, without the number of its `*`."""
    if label is None:
        return None
    return (label.rstrip("*"), True) if label.endswith("*") else (label, False)


def _set_cover(column: QiColumn, labels: Sequence[Label], always: Bools) -> ListedCover:
    holding: dict[Label, list[int]] = {}
    for index, label in enumerate(labels):
        if always[index]:
            continue
        for member in [None] if label is None else set(_members(label, as_array=column.form.members)):
            holding.setdefault(member, []).append(index)
    return ListedCover.of((holding.get(text, ()) for text in column.texts), always)


def _members(label: str, *, as_array: bool) -> list[str]:
    if as_array:
        return [str(member) for member in json.loads(label)]
    return [label, *set_members(label)]  # a single value is published as it is


def _range_cover(column: QiColumn, labels: Sequence[Label], always: Bools) -> RangeCover:
    values = [None if text is None else _place(text, column.kind) for text in column.texts]
    ends = [
        None if label is None or all_ else _ends(label, column.kind) for label, all_ in zip(labels, always, strict=True)
    ]
    known = sorted({*(each for each in values if each is not None), *(end for pair in ends if pair for end in pair)})
    rank = {place: index for index, place in enumerate(known)}
    low, high = np.full(len(labels), 1, dtype=np.int64), np.zeros(len(labels), dtype=np.int64)  # empty
    for index, pair in enumerate(ends):
        if pair is not None:
            low[index], high[index] = rank[pair[0]], rank[pair[1]]
        elif labels[index] is None:
            low[index], high[index] = -1, -1
    low[always], high[always] = -2, len(known)
    places = np.array([-1 if each is None else rank[each] for each in values], dtype=np.int64)
    return RangeCover(places, low, high)


def _ends(label: str, kind: Kind) -> tuple[Any, Any] | None:
    """The ends of `[lo, hi]`, or a single value twice; None for what is neither."""
    if label.startswith("[") and label.endswith("]") and label.count(", ") == 1:
        low, high = (_place(text, kind) for text in label[1:-1].split(", "))
    else:
        low = high = _place(label, kind)
    return None if low is None or high is None else (low, high)


def _place(text: str, kind: Kind) -> Any:
    """A value as something that compares exactly; None for what cannot be read."""
    try:
        if kind in {"date", "timestamp"}:
            return int(np.datetime64(text.removeprefix("+").replace(" ", "T"), "us").astype(np.int64))
        number = Decimal(text)
    except (InvalidOperation, ValueError):
        return None
    return None if number.is_nan() else number


def least_covering(tuples: Ints, classes: Ints, covers: Sequence[Cover]) -> NDArray[np.int64]:
    """The first class that covers each tuple, -1 where none does.

    Args:
        tuples: Leaf codes, tuples by QIs.
        classes: Numbers of labels, classes by QIs, in the order in which classes are preferred.
        covers: Coverage in each QI.
    """
    found = np.full(len(tuples), -1, dtype=np.int64)
    for begin in range(0, len(tuples), STEP_TUPLES):
        part = slice(begin, begin + STEP_TUPLES)
        found[part] = _first_covering(tuples[part], classes, covers)
    return found


def _first_covering(tuples: Ints, classes: Ints, covers: Sequence[Cover]) -> NDArray[np.int64]:
    found = np.full(len(tuples), -1, dtype=np.int64)
    left = np.arange(len(tuples))
    for begin in range(0, len(classes), STEP_CLASSES):
        if not len(left):
            break
        step = classes[begin : begin + STEP_CLASSES]
        bits: NDArray[np.uint8] | None = None
        for index, cover in enumerate(covers):
            codes, code_of = np.unique(tuples[left, index], return_inverse=True)
            labels, label_of = np.unique(step[:, index], return_inverse=True)
            packed = np.packbits(cover.covers(codes, labels)[:, label_of], axis=1)[code_of]
            bits = packed if bits is None else bits & packed
        assert bits is not None
        hit = bits.any(axis=1)
        found[left[hit]] = begin + np.unpackbits(bits[hit], axis=1).argmax(axis=1)
        left = left[~hit]
    return found
