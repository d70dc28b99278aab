"""Everything that is asked of a class, as flat arrays: several models on several sensitive columns, each its own.

`satisfies` is called each time a class is about to be closed, so it is compiled, looks only at the values that the
class holds, and stops at the first demand that fails. `achieved` tells what a class really has.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kanon_spark.compiling import njit
from kanon_spark.errors import RequestError
from kanon_spark.privacy.alpha import Alpha, largest_share
from kanon_spark.privacy.base import (
    ALPHA,
    BETA,
    DELTA,
    DISTINCT,
    ENHANCED,
    ENTROPY,
    EPSILON,
    EQUAL,
    HIERARCHICAL,
    ORDERED,
    PERSONAL,
    RECURSIVE,
    Bools,
    Floats,
    Ints,
    Longs,
    Model,
)
from kanon_spark.privacy.beta_likeness import largest_rise
from kanon_spark.privacy.columns import Column
from kanon_spark.privacy.delta_disclosure import largest_change
from kanon_spark.privacy.histograms import gather
from kanon_spark.privacy.l_diversity import distinct_values, entropy_values, recursive_ratio
from kanon_spark.privacy.personal_k import met_wish
from kanon_spark.privacy.t_closeness import equal_distance, hierarchical_distance, ordered_distance


class Demands(NamedTuple):
    """What is asked, and what must be known of the release to judge it. Plain arrays: it travels to workers.

    Arrays of demands have one element per demand, arrays of columns one per column; `share` and `rank` one per code,
    those of column j from `base[j]` on. `level`, `area` and the nodes are there only where a demand needs them.

    Attributes:
        code: Which model each demand is (`base.py`).
        column: Which column it speaks of.
        bound: What the achieved value is compared with.
        tail: The l of recursive diversity.
        watch: Where the flags of an alpha demand's named values begin and end in `watched`, demands by 2.
        watched: Flags by code.
        base: Where the codes of each column begin; one more than there are columns.
        null: Code of null in each column, -1 where there is none.
        present: Values of each column that the release holds.
        share: Share of each code in the release.
        rank: Place of each code among the values of its column that occur.
        level: The release's cumulative share by place; those of column j are `level_at[j]` up to `level_at[j+1]`.
        level_at: Where they begin.
        area: Sums of `level` over the places before; each column has one more of them than levels.
        height: Levels of each column's hierarchy below the root, 0 where none is needed.
        node: Node of each code at each level (level by level); those of column j begin at `node_at[j]`.
        node_at: Where they begin.
        node_share: The release's share of each node; those of column j begin at `node_share_at[j]`.
        node_share_at: Where they begin.
        amount: The k that each code asks for (1 where the column is not one of wishes).
        repeated: Whether a person may be counted several times for one value, in several signatures of a class: then
            shares are of all that is counted, and only a count of the class itself says what they really are.
    """

    code: Longs
    column: Longs
    bound: Floats
    tail: Floats
    watch: Longs
    watched: Bools
    base: Longs
    null: Longs
    present: Longs
    share: Floats
    rank: Longs
    level: Floats
    level_at: Longs
    area: Floats
    height: Longs
    node: Ints
    node_at: Longs
    node_share: Floats
    node_share_at: Longs
    amount: Longs
    repeated: bool = False

    @classmethod
    def of(
        cls, columns: Sequence[Column], models: Mapping[str, Sequence[Model]], *, repeated: bool = False
    ) -> "Demands":
        """Put demands together.

        Args:
            columns: The sensitive columns, in the order in which histograms carry them.
            models: What is asked of each, by name; a column may have several models, or none.
            repeated: Whether persons may be counted several times for one value.

        Raises:
            RequestError: A model says nothing about such a column, or its column is not there.
        """
        places = {column.name: j for j, column in enumerate(columns)}
        unknown = [name for name in models if name not in places]
        if unknown:
            raise RequestError(
                f"there is no sensitive column {', '.join(map(repr, unknown))}",
                where="columns.sensitive",
                fix="name a sensitive column",
            )
        asked = [(j, model) for column, j in places.items() for model in models.get(column, ())]
        for j, model in asked:
            why = model.refuse(columns[j])
            if why is not None:
                raise RequestError(f"{model.words}: {why}", where=columns[j].name, fix="ask for another model")
        watch, watched = _watched(columns, asked)
        codes = np.array([model.code for _, model in asked], np.int64)
        needs = [{model.code for at, model in asked if at == j} for j in range(len(columns))]
        levels = [_levels(column) if ORDERED in needs[j] else np.zeros(0) for j, column in enumerate(columns)]
        nodes = [_nodes(column, HIERARCHICAL in needs[j]) for j, column in enumerate(columns)]
        return cls(
            code=codes,
            column=np.array([j for j, _ in asked], np.int64),
            bound=np.array([model.bound for _, model in asked], np.float64),
            tail=np.array([model.rank for _, model in asked], np.float64),
            watch=watch,
            watched=watched,
            base=_offsets([column.size for column in columns]),
            null=np.array([column.null for column in columns], np.int64),
            present=np.array([column.present for column in columns], np.int64),
            share=_joined([column.shares for column in columns], np.float64),
            rank=_joined([np.cumsum(column.counts > 0) - (column.counts > 0) for column in columns], np.int64),
            level=_joined(levels, np.float64),
            level_at=_offsets([len(level) for level in levels]),
            area=_joined([np.concatenate([[0.0], np.cumsum(level)]) for level in levels], np.float64),
            height=np.array([len(node) for node, _ in nodes], np.int64),
            node=_joined([node.ravel() for node, _ in nodes], np.int32),
            node_at=_offsets([node.size for node, _ in nodes]),
            node_share=_joined([share for _, share in nodes], np.float64),
            node_share_at=_offsets([len(share) for _, share in nodes]),
            amount=_joined(
                [np.ones(c.size, np.int64) if c.amounts is None else np.maximum(1, c.amounts) for c in columns],
                np.int64,
            ),
            repeated=repeated,
        )


def _offsets(sizes: Sequence[int]) -> Longs:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _joined(parts: Sequence[NDArray[Any]], kind: type) -> NDArray[Any]:
    return np.concatenate(parts).astype(kind) if parts else np.zeros(0, kind)


def _levels(column: Column) -> Floats:
    """The release's cumulative shares over the values that occur."""
    counts = np.cumsum(column.counts[column.counts > 0])
    shares: Floats = counts / counts[-1] if len(counts) else np.zeros(0)
    return shares


def _nodes(column: Column, needed: bool) -> tuple[Ints, Floats]:
    """Nodes of each code below the root, levels by codes, and the release's share of each node."""
    if not needed or column.levels is None:
        return np.zeros((0, 0), np.int32), np.zeros(0)
    nodes = np.ascontiguousarray(column.levels[:-1])
    share = np.zeros(int(column.levels.max()) + 1)
    for level in nodes:  # a node that stands on several levels covers the same values on each
        share[level] = np.bincount(level, weights=column.shares, minlength=len(share))[level]
    return nodes, share


def _watched(columns: Sequence[Column], asked: Sequence[tuple[int, Model]]) -> tuple[Longs, Bools]:
    """Flags of the values that each alpha demand names."""
    watch = np.zeros((len(asked), 2), np.int64)
    flags: list[Bools] = []
    end = 0
    for d, (j, model) in enumerate(asked):
        if isinstance(model, Alpha) and model.values is not None:
            flags.append(np.isin(np.arange(columns[j].size), model.values))
            watch[d] = end, end + columns[j].size
            end += columns[j].size
    return watch, _joined(flags, np.bool_)


@njit(cache=True)
def achieved(demands, d, values, counts, persons):  # type: ignore[no-untyped-def]
    """What a class achieves of demand d.

    Args:
        demands: What is asked.
        d: Which of them.
        values: Codes that the class holds in the column of the demand, ascending.
        counts: Persons of each.
        persons: Persons of the class.
    """
    code = demands.code[d]
    j = demands.column[d]
    first, end = demands.base[j], demands.base[j + 1]
    null = demands.null[j]
    if code == DISTINCT:
        return distinct_values(values, counts, null)
    if code == ENTROPY:
        return entropy_values(values, counts, null)
    if code == RECURSIVE:
        return recursive_ratio(values, counts, null, demands.tail[d])
    if code == EQUAL:
        return equal_distance(values, counts, demands.share[first:end])
    if code == ORDERED:
        low, high = demands.level_at[j], demands.level_at[j + 1]
        level, area = demands.level[low:high], demands.area[low + j : high + j + 1]
        return ordered_distance(values, counts, demands.rank[first:end], level, area)
    if code == HIERARCHICAL:
        node = demands.node[demands.node_at[j] : demands.node_at[j + 1]]
        share = demands.node_share[demands.node_share_at[j] : demands.node_share_at[j + 1]]
        return hierarchical_distance(values, counts, node, share, demands.height[j])
    if code == ALPHA:
        counted = max(persons, counts.sum()) if demands.repeated else persons
        return largest_share(values, counts, counted, demands.watched[demands.watch[d, 0] : demands.watch[d, 1]])
    if code in (BETA, ENHANCED):
        return largest_rise(values, counts, demands.share[first:end], code == ENHANCED)
    if code == DELTA:
        return largest_change(values, counts, demands.share[first:end], demands.present[j])
    return met_wish(values, persons, demands.amount[first:end])


@njit(cache=True)
def meets(demands, d, value):  # type: ignore[no-untyped-def]
    """Whether an achieved value is good enough for demand d."""
    code = demands.code[d]
    if code in (DISTINCT, ENTROPY, PERSONAL):
        return value >= demands.bound[d] - EPSILON
    if code in (RECURSIVE, DELTA):
        return value < demands.bound[d]
    return value <= demands.bound[d] + EPSILON


@njit(cache=True)
def satisfies(demands, start, values, counts, persons):  # type: ignore[no-untyped-def]
    """Whether a class satisfies every demand; its entries in column j are `start[j]` up to `start[j+1]`."""
    for d in range(len(demands.code)):
        j = demands.column[d]
        a, b = start[j], start[j + 1]
        if not meets(demands, d, achieved(demands, d, values[a:b], counts[a:b], persons)):
            return False
    return True


@njit(cache=True)
def members_satisfy(demands, histograms, members, scratch):  # type: ignore[no-untyped-def]
    """Whether a class of these units (signatures) satisfies every demand; `scratch` comes from `new_scratch`.

    Most classes that fall short of l-diversity have too few values, and who has enough often shows at the first few
    members: that is looked at before the whole histogram is put together.
    """
    counted = True
    for d in range(len(demands.code)):
        if demands.code[d] not in (DISTINCT, ENTROPY, RECURSIVE):
            counted = False
        elif not _enough_values(demands, d, histograms, members, scratch):
            return False
        elif demands.code[d] != DISTINCT:
            counted = False
    if counted:
        return True
    start, values, counts, persons = gather(histograms, members, demands.base, scratch)
    return satisfies(demands, start, values, counts, persons)


@njit(cache=True)
def some_may_satisfy(demands, histograms, members, scratch):  # type: ignore[no-untyped-def]
    """False where no class of some of these units can satisfy all: even together they have too few values."""
    for d in range(len(demands.code)):
        asks_values = demands.code[d] in (DISTINCT, ENTROPY, RECURSIVE)
        if asks_values and not _enough_values(demands, d, histograms, members, scratch):
            return False
    return True


@njit(cache=True)
def _enough_values(demands, d, histograms, members, scratch):  # type: ignore[no-untyped-def]
    """Whether the class has at least as many values, null apart, as demand d (of l-diversity) cannot do without."""
    j = demands.column[d]
    need = (demands.tail[d] if demands.code[d] == RECURSIVE else demands.bound[d]) - EPSILON
    first, null, columns = demands.base[j], demands.null[j], histograms.columns
    used = 0
    for u in members:
        place = u * columns + j
        for i in range(histograms.start[place], histograms.start[place + 1]):
            slot = first + histograms.values[i]
            if histograms.counts[i] > 0 and histograms.values[i] != null and not scratch.marked[slot]:
                scratch.marked[slot] = True
                scratch.touched[used] = slot
                used += 1
        if used >= need:
            break
    for i in range(used):
        scratch.marked[scratch.touched[i]] = False
    return used >= need


@njit(cache=True)
def all_satisfy(demands, histograms):  # type: ignore[no-untyped-def]
    """For each unit, whether it satisfies every demand."""
    width = histograms.columns
    out = np.empty(len(histograms.persons), np.bool_)
    for u in range(len(out)):
        start = histograms.start[u * width : (u + 1) * width + 1]
        out[u] = satisfies(demands, start, histograms.values, histograms.counts, histograms.persons[u])
    return out


@njit(cache=True)
def all_achieved(demands, histograms):  # type: ignore[no-untyped-def]
    """What each unit achieves of each demand, units by demands."""
    width = histograms.columns
    out = np.empty((len(histograms.persons), len(demands.code)))
    for u in range(out.shape[0]):
        for d in range(out.shape[1]):
            place = u * width + demands.column[d]
            a, b = histograms.start[place], histograms.start[place + 1]
            persons = histograms.persons[u]
            out[u, d] = achieved(demands, d, histograms.values[a:b], histograms.counts[a:b], persons)
    return out
