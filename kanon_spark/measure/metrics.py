"""What a release costs: NCP per QI, GCP, discernibility, average class size, and the gap to a proven lower bound.

Everything comes from one tally of the recoding's entries (a row's loss is its entry's loss), and from the class sizes
that verification counted on the written table. The formulas are in `measure/README.md`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanon_spark.hierarchy.tree import Tree
from kanon_spark.measure.tally import ALL, SUPPRESSED, Entries, tally
from kanon_spark.signatures.codebook import Codebook
from kanon_spark.verify.facts import ClassFacts

_DIGITS = 12  # sums of doubles depend on the partitioning in their last digits; what is reported must not
NO_BOUND = "none"


def measure(
    entries: Entries, codebook: Codebook, *, count: int, facts: ClassFacts, k: int, bound_kind: str = NO_BOUND
) -> dict[str, Any]:
    """Measure a release by its recoding.

    Args:
        entries: The recoding's entries; a suppressed one (`class_id` -1) costs 1 in every QI.
        codebook: The QIs with their trees and weights.
        count: How many entries there are.
        facts: Sizes of the published classes.
        k: The k that was asked for.
        bound_kind: Which lower bound the entries' column `bound` holds; "none" if it holds none.

    Returns:
        `gcp`, `gcp_bound` and `gcp_gap` (None without a bound; the gap also where the bound is 0), `bound_kind`, `dm`,
        `cavg` (None where nothing was released), `total_il`, and `per_qi` with each QI's `ncp` and `levels`: the rows
        published at each level of its tree, or published `exact` and as a `range` or `set`.
    """
    total = _Totals.of(entries, codebook, count=count)
    weights = codebook.weights
    per_qi = {
        column.name: {"ncp": _share(total.loss[index], total.rows), "levels": total.levels[index]}
        for index, column in enumerate(codebook.columns)
    }
    total_il = float(sum(weight * loss for weight, loss in zip(weights, total.loss, strict=True)))
    gcp = _share(total_il, total.rows * float(weights.sum()))
    bound = None if bound_kind == NO_BOUND else bound_share(total.bound, codebook, rows=total.rows)
    released = total.rows - total.suppressed
    return {
        "gcp": gcp,
        "gcp_bound": bound,
        "gcp_gap": gap_to(gcp, bound),
        "bound_kind": bound_kind,
        "dm": facts.sum_squares + total.suppressed * total.rows,
        "cavg": released / (facts.classes * k) if facts.classes else None,
        "total_il": _stable(total_il),
        "per_qi": per_qi,
    }


def bound_share(total: float, codebook: Codebook, *, rows: int) -> float:
    """A bound as a share of all detail, from the sum over all rows of the least that each must lose."""
    return _share(total, rows * float(codebook.weights.sum()))


def gap_to(gcp: float, bound: float | None) -> float | None:
    """How much more is lost than the bound; None without a bound, or where it is 0."""
    return _stable(gcp / bound - 1) if bound else None


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
    def of(cls, entries: Entries, codebook: Codebook, *, count: int) -> "_Totals":
        tallies = tally(entries, codebook, count=count)
        all_rows, gone = tallies[ALL], tallies[SUPPRESSED]
        rows, suppressed = int(all_rows["rows"].sum()), int(gone["rows"].sum())
        loss, levels = [], []
        for index, column in enumerate(codebook.columns):
            places = tallies[index]
            nodes, released = places["place"].to_numpy(np.int64), places["rows"].to_numpy(np.int64)
            level: NDArray[np.int64]
            if column.publish == "node":
                cost = float((_published_losses(column.tree)[nodes] * released).sum())
                level = column.tree.lowest_levels()[nodes].astype(np.int64)
                names = [str(height) for height in range(column.tree.height + 1)]
            else:
                cost, level, names = float(places["cost"].sum()), nodes, ["exact", column.publish]
            loss.append(cost + suppressed)
            by_level = np.zeros(len(names), np.int64)
            np.add.at(by_level, level, released)
            counts = dict(zip(names, by_level.tolist(), strict=True))
            levels.append({**counts, "suppressed": suppressed} if suppressed else counts)
        return cls(rows, suppressed, float(all_rows["cost"].sum()), loss, levels)


def _published_losses(tree: Tree) -> NDArray[np.float64]:
    """Loss of each node; one that must not be published (above `max_level`) can only be a suppressed cell, at 1."""
    return np.where(np.isfinite(tree.loss), tree.loss, 1.0)
