"""What a release costs: NCP per QI, GCP, discernibility, average class size, and the gap to a proven lower bound.

Everything comes from one aggregate over the recoding's entries (a row's loss is its entry's loss), and from the class
sizes that verification counted on the written table. The formulas are in `measure/README.md`.
"""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kanon_spark.hierarchy.tree import Tree
from kanon_spark.signatures.codebook import Codebook, QiColumn
from kanon_spark.verify.facts import ClassFacts

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_LITERALS = 2_000  # beyond this a literal array makes a plan slower than the join it saves
_DIGITS = 12  # sums of doubles depend on the partitioning in their last digits; what is reported must not
NO_BOUND = "none"


def measure(
    entries: "DataFrame", codebook: Codebook, *, facts: ClassFacts, k: int, bound_kind: str = NO_BOUND
) -> dict[str, Any]:
    """Measure a release by its recoding.

    Args:
        entries: The recoding's entries; a suppressed one (`class_id` -1) costs 1 in every QI.
        codebook: The QIs with their trees and weights.
        facts: Sizes of the published classes.
        k: The k that was asked for.
        bound_kind: Which lower bound the entries' column `bound` holds; "none" if it holds none.

    Returns:
        `gcp`, `gcp_bound` and `gcp_gap` (None without a bound; the gap also where the bound is 0), `bound_kind`, `dm`,
        `cavg` (None where nothing was released), `total_il`, and `per_qi` with each QI's `ncp` and `levels`: the rows
        published at each level of its tree, or published `exact` and as a `range` or `set`.
    """
    total = _Totals.of(entries, codebook)
    weights = codebook.weights
    per_qi = {
        column.name: {"ncp": _share(total.loss[index], total.rows), "levels": total.levels[index]}
        for index, column in enumerate(codebook.columns)
    }
    total_il = float(sum(weight * loss for weight, loss in zip(weights, total.loss, strict=True)))
    gcp = _share(total_il, total.rows * float(weights.sum()))
    bound = None if bound_kind == NO_BOUND else _share(total.bound, total.rows * float(weights.sum()))
    released = total.rows - total.suppressed
    return {
        "gcp": gcp,
        "gcp_bound": bound,
        "gcp_gap": _stable(gcp / bound - 1) if bound else None,
        "bound_kind": bound_kind,
        "dm": facts.sum_squares + total.suppressed * total.rows,
        "cavg": released / (facts.classes * k) if facts.classes else None,
        "total_il": _stable(total_il),
        "per_qi": per_qi,
    }


def _share(part: float, whole: float) -> float:
    return _stable(part / whole) if whole else 0.0


def _stable(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


@dataclass(frozen=True)
class _Totals:
    """Sums over all rows: rows, suppressed rows, Σ rows·bound, and per QI Σ rows·NCP and rows per level."""

    rows: int
    suppressed: int
    bound: float
    loss: list[float]
    levels: list[dict[str, int]]

    @classmethod
    def of(cls, entries: "DataFrame", codebook: Codebook) -> "_Totals":
        from pyspark.sql import functions as F

        frame, cells = _with_cells(entries, codebook)
        rows = F.col("rows")
        suppressed = F.col("class_id") < 0
        sums = [
            F.sum(rows).alias("rows"),
            F.sum(F.when(suppressed, rows).otherwise(F.lit(0))).alias("suppressed"),
            F.sum(rows * F.col("bound")).alias("bound"),
        ]
        for index, cell in enumerate(cells):
            sums.append(F.sum(rows * F.when(suppressed, F.lit(1.0)).otherwise(cell.loss)).alias(f"loss{index}"))
            for place in range(len(cell.names)):
                here = ~suppressed & (cell.level == place)
                sums.append(F.sum(F.when(here, rows).otherwise(F.lit(0))).alias(f"level{index}_{place}"))
        found = frame.agg(*sums).collect()[0].asDict()
        gone = int(found["suppressed"] or 0)
        levels = []
        for index, cell in enumerate(cells):
            counts = {name: int(found[f"level{index}_{place}"] or 0) for place, name in enumerate(cell.names)}
            levels.append({**counts, "suppressed": gone} if gone else counts)
        return cls(
            rows=int(found["rows"] or 0),
            suppressed=gone,
            bound=float(found["bound"] or 0.0),
            loss=[float(found[f"loss{index}"] or 0.0) for index in range(len(cells))],
            levels=levels,
        )


@dataclass(frozen=True)
class _Cell:
    """One QI of an entry as Catalyst expressions: its loss, and the place of its level in `names`."""

    loss: "Column"
    level: "Column"
    names: list[str]


def _with_cells(entries: "DataFrame", codebook: Codebook) -> "tuple[DataFrame, list[_Cell]]":
    """The entries, joined with what the expressions need, and the expressions."""
    from pyspark.sql import functions as F

    frame = entries
    layout = codebook.node_layout
    cells: list[_Cell] = []
    for index, column in enumerate(codebook.columns):
        if column.publish != "node":
            loss = F.col(f"loss_{index}")
            cells.append(_Cell(loss, F.when(loss == 0, 0).otherwise(1), ["exact", column.publish]))
            continue
        node = layout.unpack_column(index, "out")
        losses, levels = _published_losses(column), lowest_levels(column.tree)
        names = [str(level) for level in range(column.tree.height + 1)]
        if column.static and column.tree.nodes <= _LITERALS:
            # One JSON text that the optimizer folds is far cheaper to plan than a literal for each node.
            loss = F.element_at(F.from_json(F.lit(json.dumps(losses.tolist())), "array<double>"), node + 1)
            level = F.element_at(F.from_json(F.lit(json.dumps(levels.tolist())), "array<int>"), node + 1)
        else:
            table = _node_table(frame, losses, levels, index)
            frame = frame.join(F.broadcast(table), node == F.col(f"node{index}"), "left")
            loss, level = F.col(f"node_loss{index}"), F.col(f"node_level{index}")
        cells.append(_Cell(loss, level, names))
    return frame, cells


def _published_losses(column: QiColumn) -> NDArray[np.float64]:
    """Loss of each node; one that must not be published (above `max_level`) can only be a suppressed cell, at 1."""
    return np.where(np.isfinite(column.tree.loss), column.tree.loss, 1.0)


def lowest_levels(tree: Tree) -> NDArray[np.int32]:
    """The lowest level at which each node stands.

    >>> lowest_levels(Tree.flat(["a", "b"])).tolist()
    [0, 0, 1]
    """
    lowest = np.full(tree.nodes, tree.height, dtype=np.int32)
    for level in range(tree.height, -1, -1):
        lowest[tree.levels[level]] = level
    return lowest


def _node_table(frame: "DataFrame", losses: NDArray[np.float64], levels: NDArray[np.int32], index: int) -> "DataFrame":
    import pyarrow as pa

    table = pa.table(
        {
            f"node{index}": pa.array(np.arange(len(losses), dtype=np.int32)),
            f"node_loss{index}": pa.array(losses),
            f"node_level{index}": pa.array(levels),
        }
    )
    return frame.sparkSession.createDataFrame(table)
