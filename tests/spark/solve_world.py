"""Random signatures with a codebook over real hierarchies, for the solving stages alone."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from kanon_spark.config.models import IntervalSpec, PrefixSpec
from kanon_spark.engine.pieces import Solver
from kanon_spark.hierarchy.build import build_tree
from kanon_spark.hierarchy.tree import Domain
from kanon_spark.kernels.lattice import class_table, close_cheapest_first, total_loss
from kanon_spark.kernels.problem import Forest
from kanon_spark.methods.base import Effort
from kanon_spark.methods.lattice import Lattice
from kanon_spark.signatures.codebook import Codebook, QiColumn

AGES = 40
ZIPS = [f"{a}{b}{c}" for a in "12" for b in "0123" for c in "012"]
JOBS = [f"job{n}" for n in range(6)]


def codebook(*, with_sets: bool = True, max_level: int | None = None) -> Codebook:
    """Ages in intervals, zips by prefix, and jobs without a hierarchy."""
    ages = Domain("integer", tuple(map(str, range(AGES))), np.arange(AGES, dtype=float), np.ones(AGES, np.int64))
    zips = Domain("text", tuple(ZIPS), np.full(len(ZIPS), np.nan), np.ones(len(ZIPS), np.int64))
    jobs = Domain("text", tuple(JOBS), np.full(len(JOBS), np.nan), np.ones(len(JOBS), np.int64))
    age = build_tree(IntervalSpec(widths=[5, 10, 20]), ages, qi="age", max_level=max_level)
    zip_ = build_tree(PrefixSpec(keep=[2, 1]), zips, qi="zip")
    columns = [
        QiColumn("age", "integer", 1.0, age, "node", ages.texts, ages.positions, static=False),
        QiColumn("zip", "text", 2.0, zip_, "node", zips.texts, zips.positions, static=False),
    ]
    if with_sets:
        job = build_tree(None, jobs, qi="job")
        columns.append(QiColumn("job", "text", 1.0, job, "set", jobs.texts, jobs.positions, static=False))
    return Codebook(tuple(columns))


@dataclass
class Signatures:
    """Signatures and what solves them."""

    frame: pd.DataFrame
    solver: Solver

    @classmethod
    def of(cls, codes: np.ndarray, rows: np.ndarray, persons: np.ndarray, book: Codebook, *, k: int) -> "Signatures":
        """Distinct leaf codes (signatures by QIs) with their counts."""
        words = book.layout.pack(codes.astype(np.int32))
        frame = pd.DataFrame(words, columns=book.layout.names())
        frame["h"] = np.arange(len(frame), dtype=np.int64)
        frame["rows"], frame["persons"] = rows.astype(np.int64), persons.astype(np.int64)
        frame["g_hi"], frame["g_lo"] = frame["h"], frame["h"] * 2
        present = [np.isin(np.arange(c.tree.leaves), codes[:, i]) for i, c in enumerate(book.columns)]
        forest = Forest.of([column.tree for column in book.columns], book.weights, present)
        return cls(frame, Solver(book, forest, Lattice("fast"), k, len(frame), 0))

    @classmethod
    def random(cls, seed: int, *, size: int, k: int, with_sets: bool = True) -> "Signatures":
        """Random ones; some hold rows but no persons (whose weight lies elsewhere)."""
        rng = np.random.default_rng(seed)
        book = codebook(with_sets=with_sets)
        drawn = [rng.integers(0, column.tree.leaves, size) for column in book.columns]
        codes = np.unique(np.stack(drawn, axis=1), axis=0)
        rows = rng.integers(1, 4, len(codes))
        return cls.of(codes, rows, np.minimum(rows, rng.integers(0, 4, len(codes))), book, k=k)

    def with_effort(self, effort: Effort) -> "Signatures":
        """The same signatures for a method that tries harder."""
        return Signatures(self.frame, replace(self.solver, method=Lattice(effort)))

    def greedy(self) -> tuple[set[frozenset[int]], dict[frozenset[int], float], set[int]]:
        """What one process closes before anything is attached: classes by `h`, their losses per row, and the rest."""
        frame = self.solver.in_order(self.frame)
        problem = self.solver.problem(frame)
        class_of = close_cheapest_first(problem)
        nodes, _, _ = class_table(problem, class_of)
        loss = self.solver.forest.loss[nodes].sum(axis=1)
        members: dict[int, list[int]] = {}
        for h, group in zip(frame["h"], class_of, strict=True):
            members.setdefault(int(group), []).append(int(h))
        rest = set(members.pop(-1, []))
        losses = {frozenset(found): float(loss[group]) for group, found in members.items()}
        return set(losses), losses, rest

    def loss(self, entries: pd.DataFrame) -> float:
        """Total loss of a solution by the trees alone."""
        ordered = self.solver.in_order(entries)
        problem = self.solver.problem(ordered)
        _, class_of = np.unique(ordered["class_id"], return_inverse=True)
        assert (ordered["class_id"] >= 0).all()
        return total_loss(problem, class_of.astype(np.int32), suppressed=self.solver.suppressed)


def classes_of(entries: pd.DataFrame) -> dict[int, frozenset[int]]:
    """Signatures (by `h`) of each class; suppressed ones are left out."""
    closed = entries[entries["class_id"] >= 0]
    return {int(key): frozenset(part["h"].astype(int)) for key, part in closed.groupby("class_id")}


def turn_of(class_id: int) -> int:
    """Which round closed a class."""
    return class_id >> 56
