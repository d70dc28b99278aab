"""Cuts that are judged by sensitive values, chosen by tasks: one for each region that is still above the block size.

One job counts marginals and histograms of all these regions in the same frame: a line for each value of a QI, and one
for each sensitive value that stands beside it. All lines of a region then meet in one task, where the method chooses
as it would in one process. Only the cuts come back, so that the driver holds no histogram.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kanon_spark.engine.pieces import Solver
from kanon_spark.kernels.guarded_groups import histograms_by_unit
from kanon_spark.kernels.problem import Problem
from kanon_spark.kernels.regions import Choose, Cut, Decision, Division, Marginals, Regions
from kanon_spark.privacy.histograms import Histograms, sum_entries
from kanon_spark.signatures.histograms import CODE_BITS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

_VALUE = -1  # in place of a sensitive value's key: the line counts the QI's value itself
_KEYS = ["region", "qi", "code", "key"]
_TALLIES = ["signatures", "persons", "rows"]
_DECISION = (
    "region int, persons bigint, qi int, ordered boolean, bounds array<int>, "
    "child_signatures array<bigint>, child_persons array<bigint>"
)


def decide_in_spark(
    solver: Solver, choose: Choose, signatures: "DataFrame", regions: Regions, wanted: Sequence[int]
) -> dict[int, Decision]:
    """What becomes of some leaves of the tree, all of them in one job."""
    from pyspark.sql import functions as F

    if solver.demands is None:
        raise ValueError("nothing is asked beyond k")
    columns, width = len(solver.demands.null), solver.forest.width
    paths = {region: regions[region].path for region in wanted}

    def count_batches(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            problem = solver.problem(batch)
            yield _count(problem, regions.assign(problem.codes), wanted)

    def choose_cut(lines: pd.DataFrame) -> pd.DataFrame:
        region = int(lines["region"].iloc[0])
        return _as_line(region, Decision.by(choose, _marginals(lines, columns, width), paths[region]))

    fields = ", ".join(f"{name} bigint" for name in ["key", *_TALLIES])
    lines = (
        signatures.select(*solver.codebook.layout.names(), *solver.counts)
        .mapInPandas(count_batches, f"region int, qi int, code int, {fields}")
        .groupBy(*_KEYS)
        .agg(*[F.sum(name).alias(name) for name in _TALLIES])
    )
    # One line per region above the block size; its bounds are values of a QI, which the driver holds in the codebook.
    found = lines.groupBy("region").applyInPandas(choose_cut, _DECISION).collect()
    return {row["region"]: Decision(row["persons"], _division(row)) for row in found}


def _count(problem: Problem, leaf_of: NDArray[np.int32], wanted: Sequence[int]) -> pd.DataFrame:
    """Lines of the wanted regions among some signatures."""
    members = np.flatnonzero(np.isin(leaf_of, wanted))
    parts = []
    for qi in range(problem.forest.width):
        leaves = int(problem.forest.leaves[qi])
        place = leaf_of[members].astype(np.int64) * leaves + problem.codes[members, qi]
        held, unit_of = np.unique(place, return_inverse=True)
        histograms = histograms_by_unit(problem.guard, members, unit_of, len(held))
        # Sums of whole numbers below 2^53 are exact in doubles.
        rows = np.bincount(unit_of, problem.rows[members], len(held)).astype(np.int64)
        persons = np.bincount(unit_of, problem.persons[members], len(held)).astype(np.int64)
        counted = np.column_stack([np.bincount(unit_of, minlength=len(held)), persons, rows])
        parts.append(_lines(held, leaves, qi, np.full(len(held), _VALUE), counted))
        per_column = np.diff(histograms.start)
        column = np.repeat(np.arange(len(per_column)) % histograms.columns, per_column).astype(np.int64)
        unit = np.repeat(np.arange(len(per_column)) // histograms.columns, per_column)
        numbers = np.column_stack([np.zeros(len(unit), np.int64), histograms.counts, np.zeros(len(unit), np.int64)])
        parts.append(_lines(held[unit], leaves, qi, (column << CODE_BITS) + histograms.values, numbers))
    return pd.concat(parts, ignore_index=True)


def _lines(
    place: NDArray[np.int64], leaves: int, qi: int, key: NDArray[np.int64], tallies: NDArray[np.int64]
) -> pd.DataFrame:
    lines = pd.DataFrame({"region": (place // leaves).astype(np.int32), "qi": np.int32(qi)})
    lines["code"] = (place % leaves).astype(np.int32)
    lines["key"] = key.astype(np.int64)
    lines[_TALLIES] = tallies
    return lines


def _marginals(lines: pd.DataFrame, columns: int, width: int) -> Marginals:
    """Marginals of one region from its lines, in whatever order they come."""
    lines = lines.sort_values(_KEYS, kind="stable")
    values = lines[lines["key"] == _VALUE]
    start = np.searchsorted(values["qi"].to_numpy(), np.arange(width + 1)).astype(np.int64)
    counted = values[_TALLIES].to_numpy(np.int64)
    codes = values["code"].to_numpy(np.int32)
    marginals = Marginals(start, codes, counted[:, 0], counted[:, 1], counted[:, 2], labels=counted[:, :0])
    return replace(marginals, sensitive=partial(_histograms, marginals, lines[lines["key"] != _VALUE], columns))


def _histograms(marginals: Marginals, pairs: pd.DataFrame, columns: int, qi: int) -> Histograms:
    """Histograms of the values of a QI."""
    mine = pairs[pairs["qi"].to_numpy() == qi]
    unit = np.searchsorted(marginals.present(qi), mine["code"].to_numpy())
    key = mine["key"].to_numpy(np.int64)
    return sum_entries(
        unit * columns + (key >> CODE_BITS),
        (key & ((1 << CODE_BITS) - 1)).astype(np.int32),
        mine["persons"].to_numpy(np.int64),
        marginals.persons[marginals.entries(qi)],
        columns,
    )


def _as_line(region: int, decision: Decision) -> pd.DataFrame:
    """A decision as one line."""
    divided = decision.division
    return pd.DataFrame(
        {
            "region": [region],
            "persons": [decision.persons],
            "qi": [-1 if divided is None else divided.cut.qi],
            "ordered": [divided is not None and divided.cut.ordered],
            "bounds": [[] if divided is None else divided.cut.bounds.tolist()],
            "child_signatures": [[] if divided is None else list(divided.signatures)],
            "child_persons": [[] if divided is None else list(divided.persons)],
        }
    )


def _division(row: "Row") -> Division | None:
    """The division that a line tells of."""
    if row["qi"] < 0:
        return None
    cut = Cut(row["qi"], np.array(row["bounds"], np.int32), row["ordered"])
    return Division(cut, tuple(row["child_signatures"]), tuple(row["child_persons"]))
