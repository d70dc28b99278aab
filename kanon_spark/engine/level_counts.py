"""Counts of groups under level vectors, on Spark.

One job counts a whole batch of vectors: each worker sends the signatures it holds to their places under every vector,
adds up what falls together, and Spark adds up the rest; only sums per vector reach the driver. Where more than k is
asked, histograms are added up on the same way and the groups judged by workers, in the same job. Groups at high levels
are few. As soon as what was rolled up fits the driver it is fetched, and counted there from then on: the same
questions, the same answers (`kernels/level_counts.py`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kanon_spark.engine.guarding import as_column, with_goodness
from kanon_spark.engine.pieces import Solver
from kanon_spark.kernels.guard import NOTHING, Guard
from kanon_spark.kernels.guarded_groups import guard_of_groups
from kanon_spark.kernels.ladders import Ladders, all_open
from kanon_spark.kernels.level_counts import ArrayCounts, LevelVector, Roll, Scope, Tally, number_groups
from kanon_spark.privacy.demands import Demands
from kanon_spark.signatures.histograms import HISTOGRAM, read_histograms
from kanon_spark.signatures.layout import Layout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HELD_GROUPS = 1_000_000  # rows of a table that the driver holds: some 60 MB
HELD_LONGS = 16_000_000  # of their histograms: as much again
VECTORS = 64  # that one job counts: each batch of signatures is sent there once per vector
ROLLS = 16  # tables that one job rolls up

Ints = NDArray[np.int32]
Place = Callable[[pd.DataFrame], Ints]


@dataclass(frozen=True)
class Shelf:
    """Where tables that were rolled up are put."""

    folder: Callable[[str], str]
    number: "count[int]" = field(default_factory=count)

    def put(self, table: "DataFrame", *, by: str | None = None) -> "DataFrame":
        """Write a table, so that nobody computes it again, and read it back."""
        path = self.folder(f"levels_{next(self.number)}")
        writer = table.write.mode("overwrite")
        (writer.partitionBy(by) if by else writer).parquet(path)
        return table.sparkSession.read.schema(table.schema).parquet(path)


@dataclass(frozen=True)
class _Request:
    """One table to count: some of the QIs at some levels."""

    number: int
    qis: tuple[int, ...]
    levels: LevelVector
    layout: Layout


@dataclass(frozen=True)
class SparkCounts:
    """Counts over a DataFrame.

    Attributes:
        scope: What is counted.
        table: `rows`, `persons`, the histogram where more than k is asked, and the columns that `place` reads, one row
            per signature or group.
        columns: The columns that `place` reads.
        place: Places at the scope's floor, rows by QIs.
        persons: Persons that are counted.
        shelf: Where tables go that were rolled up.
        demands: What groups must satisfy beyond k.
    """

    scope: Scope
    table: "DataFrame"
    columns: tuple[str, ...]
    place: Place
    persons: int
    shelf: Shelf
    demands: Demands | None = None

    def tally(self, vectors: Sequence[LevelVector]) -> list[Tally]:
        """What each vector would release; one job for up to `VECTORS` of them."""
        from pyspark.sql import functions as F

        out: list[Tally] = []
        everything = tuple(range(len(self.scope.qis)))
        good = F.col("good")
        for begin in range(0, len(vectors), VECTORS):
            some = vectors[begin : begin + VECTORS]
            groups, _ = self._groups([(everything, levels) for levels in some])
            groups = with_goodness(groups, k=self.scope.k, demands=self.demands)
            sums = groups.groupBy("number").agg(
                F.coalesce(F.sum(F.when(good, F.col("rows"))), F.lit(0)).alias("rows"),
                F.coalesce(F.sum(F.when(good, F.col("persons"))), F.lit(0)).alias("persons"),
                F.count(F.lit(1)).alias("groups"),
                F.coalesce(F.sum(F.when(good, F.col("rows") * F.col("cost"))), F.lit(0)).alias("loss"),
            )
            # At most VECTORS rows.
            found = {
                row["number"]: Tally(row["rows"], row["persons"], row["groups"], row["loss"]) for row in sums.collect()
            }
            out += [found.get(number, Tally(0, 0, 0, 0)) for number in range(len(some))]
        return out

    def roll_up(self, wanted: Sequence[Roll]) -> "Iterator[ArrayCounts | SparkCounts]":
        """Counts over some of the QIs, from some levels upwards; one for each that is wanted, in turn.

        One job rolls up to `ROLLS` of them; each is fetched only when its turn has come.
        """
        if list(wanted) == [(tuple(range(len(self.scope.qis))), self.scope.floor)]:
            yield self
            return
        for begin in range(0, len(wanted), ROLLS):
            groups, requests = self._groups(wanted[begin : begin + ROLLS])
            yield from self._kept(self.shelf.put(groups, by="number"), requests)

    def without(self, levels: LevelVector) -> "ArrayCounts | SparkCounts":
        """Counts of what is left when good groups have left, from these levels upwards."""
        groups, requests = self._groups([(tuple(range(len(levels))), levels)])
        judged = with_goodness(groups, k=self.scope.k, demands=self.demands, kept=True)
        left = self.shelf.put(judged.where("not good").drop("good"), by="number")
        return next(self._kept(left, requests))

    def by_k_alone(self) -> "SparkCounts":
        """The same counts where any group of at least k persons is good."""
        return replace(self, demands=None)

    def _kept(self, groups: "DataFrame", requests: Sequence[_Request]) -> "Iterator[ArrayCounts | SparkCounts]":
        """Counts over tables that were written: on the driver where they fit."""
        from pyspark.sql import functions as F

        guarded = [HISTOGRAM] if self.demands is not None else []
        longs = F.sum(F.size(HISTOGRAM)) if guarded else F.lit(0)
        sums = groups.groupBy("number").agg(
            F.count(F.lit(1)).alias("groups"), F.sum("persons").alias("persons"), longs.alias("longs")
        )
        # At most ROLLS rows.
        sizes = {row["number"]: (row["groups"], row["persons"], row["longs"]) for row in sums.collect()}
        for request in requests:
            scope = self.scope.rolled(request.qis, request.levels)
            layout, (size, persons, held) = request.layout, sizes.get(request.number, (0, 0, 0))
            words = layout.names("place")
            table = groups.where(F.col("number") == request.number).select(*words, "rows", "persons", *guarded)
            place = _Unpack(layout, tuple(words))
            if size <= HELD_GROUPS and held <= HELD_LONGS:
                # At most HELD_GROUPS rows.
                yield _held(table.toPandas(), scope, place, self.demands)
            else:
                yield SparkCounts(scope, table, tuple(words), place, persons, self.shelf, self.demands)

    def _groups(self, wanted: Sequence[Roll]) -> "tuple[DataFrame, list[_Request]]":
        """Every group of some requests: number of the request, packed places, rows, persons, loss per row.

        Where more than k is asked, also its histogram, in which a key may stand repeatedly: once for each batch.
        """
        from pyspark.sql import functions as F

        scope, place, demands = self.scope, self.place, self.demands
        guarded = [HISTOGRAM] if demands is not None else []
        requests, climbs = [], {}
        for number, (qis, levels) in enumerate(wanted):
            sizes = [scope.ladders.columns[scope.qis[i]].size(level) for i, level in zip(qis, levels, strict=True)]
            requests.append(_Request(number, tuple(qis), tuple(levels), Layout.of(sizes)))
            for i, level in zip(qis, levels, strict=True):
                # Only what these requests climb travels to the workers, not the whole ladders.
                ladder = scope.ladders.columns[scope.qis[i]]
                climbs[i, level] = ladder.climb(scope.floor[i], level), ladder.cost[level]
        words = [f"place{word}" for word in range(max(request.layout.words for request in requests))]

        def count_batches(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            for batch in batches:
                at = place(batch)
                rows, persons = batch["rows"].to_numpy(np.int64), batch["persons"].to_numpy(np.int64)
                guard = _guard(batch, demands)
                for request in requests:
                    yield _count_here(request, climbs, at, rows, persons, words, guard)

        fields = ", ".join(f"{name} bigint" for name in [*words, "rows", "persons", "cost"])
        fields += "".join(f", {name} array<bigint>" for name in guarded)
        counted = self.table.select(*self.columns, "rows", "persons", *guarded).mapInPandas(
            count_batches, f"number int, {fields}"
        )
        groups = counted.groupBy("number", *words).agg(
            F.sum("rows").alias("rows"),
            F.sum("persons").alias("persons"),
            F.max("cost").alias("cost"),
            *[F.flatten(F.collect_list(name)).alias(name) for name in guarded],
        )
        return groups, requests


def counts_over(
    solver: Solver,
    ladders: Ladders,
    signatures: "DataFrame",
    *,
    rows: int,
    count: int,
    folder: Callable[[str], str],
) -> ArrayCounts | SparkCounts:
    """Counts over all signatures that may be published: on the driver where they fit."""
    from pyspark.sql import functions as F

    names = solver.codebook.layout.names()
    guarded = [HISTOGRAM] if solver.demands is not None else []
    table = signatures.select(*names, "rows", "persons", *guarded)
    open_ = [column.open for column in ladders.columns]
    if not all(column.all() for column in open_):

        def shown(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            for batch in batches:
                yield batch[all_open(open_, solver.codes(batch))]

        table = table.mapInPandas(shown, table.schema)
    scope = Scope.whole(ladders, k=solver.k, rows=rows)
    held = 0
    if guarded and count <= HELD_GROUPS:
        # One row.
        held = int(table.agg(F.coalesce(F.sum(F.size(HISTOGRAM)), F.lit(0))).collect()[0][0])
    if count <= HELD_GROUPS and held <= HELD_LONGS:
        # At most HELD_GROUPS rows.
        return _held(table.toPandas(), scope, solver.codes, solver.demands)
    # One row.
    persons = int(table.agg(F.coalesce(F.sum("persons"), F.lit(0))).collect()[0][0])
    return SparkCounts(scope, table, tuple(names), solver.codes, persons, Shelf(folder), solver.demands)


@dataclass(frozen=True)
class _Unpack:
    """Places of a table that was rolled up."""

    layout: Layout
    words: tuple[str, ...]

    def __call__(self, batch: pd.DataFrame) -> Ints:
        return self.layout.unpack(batch[list(self.words)].to_numpy(np.int64))


def _held(frame: pd.DataFrame, scope: Scope, place: Place, demands: Demands | None) -> ArrayCounts:
    """Counts over a table that was fetched."""
    rows, persons = frame["rows"].to_numpy(np.int64), frame["persons"].to_numpy(np.int64)
    return ArrayCounts(scope, place(frame), rows, persons, _guard(frame, demands))


def _guard(frame: pd.DataFrame, demands: Demands | None) -> Guard:
    """What groups of a frame's rows must satisfy beyond k."""
    return NOTHING if demands is None else Guard.of(demands, read_histograms(frame, columns=len(demands.null)))


def _count_here(
    request: _Request,
    climbs: "dict[tuple[int, int], tuple[Ints, NDArray[np.int64]]]",
    at: Ints,
    rows: NDArray[np.int64],
    persons: NDArray[np.int64],
    words: Sequence[str],
    guard: Guard,
) -> pd.DataFrame:
    """The groups of one request among the rows of one batch."""
    steps = [climbs[i, level] for i, level in zip(request.qis, request.levels, strict=True)]
    places = np.stack([climb[at[:, i]] for i, (climb, _) in zip(request.qis, steps, strict=True)], axis=1)
    group_of, first = number_groups(places, [len(cost) for _, cost in steps])
    places = places[first]
    packed = np.zeros((len(first), len(words)), np.int64)
    packed[:, : request.layout.words] = request.layout.pack(places)
    out = pd.DataFrame(packed, columns=list(words))
    out.insert(0, "number", np.int32(request.number))
    # Sums of whole numbers below 2^53 are exact in doubles.
    out["rows"] = np.bincount(group_of, rows, len(first)).astype(np.int64)
    out["persons"] = np.bincount(group_of, persons, len(first)).astype(np.int64)
    out["cost"] = sum(cost[places[:, j]] for j, (_, cost) in enumerate(steps))
    if guard.asks:
        out[HISTOGRAM] = as_column(guard_of_groups(guard, group_of, len(first)).histograms)
    return out
