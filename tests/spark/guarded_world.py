"""Signatures with sensitive values and demands on them, as the solving stages see them."""

from dataclasses import replace

import numpy as np
import pandas as pd
from solve_world import Signatures

from kanon_spark.engine.guarding import write_histograms
from kanon_spark.methods.base import Piece
from kanon_spark.privacy.alpha import Alpha
from kanon_spark.privacy.base import Model
from kanon_spark.privacy.columns import Column
from kanon_spark.privacy.demands import Demands
from kanon_spark.privacy.histograms import histograms_of
from kanon_spark.privacy.l_diversity import Distinct, Entropy, Recursive
from kanon_spark.privacy.t_closeness import TCloseness

MODELS: list[dict[str, list[Model]]] = [
    {"ill": [Entropy(1.7)]},
    {"ill": [Alpha(0.6)], "cost": [Distinct(2)]},
    {"ill": [TCloseness(0.35)]},
    {"cost": [Recursive(3, 2), TCloseness(0.4, "ordered")]},
]


def with_demands(given: Signatures, seed: int, models: dict[str, list[Model]] | None = None) -> Signatures:
    """The same signatures with two sensitive columns; some hold values whose persons count elsewhere."""
    rng = np.random.default_rng(seed)
    frame, sizes = given.frame, (4, 5)
    persons = frame["persons"].to_numpy(np.int64)
    owner = np.concatenate([np.repeat(np.arange(len(frame)), persons), rng.integers(0, len(frame), 9)])
    weight = np.concatenate([np.ones(int(persons.sum()), np.int64), np.zeros(9, np.int64)])
    drawn = [rng.choice(size, len(owner), p=rng.dirichlet(np.full(size, 2.0))) for size in sizes]
    codes = np.stack(drawn, axis=1).astype(np.int32)
    counts = [np.bincount(codes[:, j], weight, size).astype(np.int64) for j, size in enumerate(sizes)]
    columns = [Column("ill", counts[0], null=3), Column("cost", counts[1], ordered=True)]
    histograms = histograms_of(owner, codes, weight, units=len(frame), persons=persons)
    demands = Demands.of(columns, MODELS[seed % len(MODELS)] if models is None else models)
    carried = frame.assign(sensitive=pd.Series(write_histograms(histograms), dtype=object))
    return Signatures(carried, replace(given.solver, demands=demands))


def solved_here(given: Signatures) -> tuple[pd.DataFrame, np.ndarray]:
    """Entries of the method's own classes in one process, and which of the classes are good."""
    solver = given.solver
    frame = solver.in_order(given.frame)
    problem = solver.problem(frame)
    trees = tuple(column.tree for column in solver.codebook.columns)
    names = tuple(column.name for column in solver.codebook.columns)
    piece = Piece(problem, np.inf, len(frame), solver.suppressed, solver.seed, solver.levels, trees=trees, names=names)
    solution = solver.method.solve(piece)
    good = problem.guard.satisfied(solution.class_of, int(solution.class_of.max(initial=-1)) + 1)
    return solver.entries(frame, problem, solution), good
