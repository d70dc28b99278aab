"""Random sensitive values for random problems, and a slow judge of classes that shares nothing with the kernels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st
from privacy_twins import column_models, holds, literal
from random_problems import random_tree

from kanon_spark.kernels.guard import Guard
from kanon_spark.kernels.problem import Problem
from kanon_spark.privacy.base import Model
from kanon_spark.privacy.columns import Column
from kanon_spark.privacy.demands import Demands
from kanon_spark.privacy.histograms import histograms_of
from kanon_spark.privacy.l_diversity import Distinct

Models = Mapping[str, Sequence[Model]]
TRIVIAL: Models = {"cost": [Distinct(1)], "ill": [Distinct(1)]}  # true of every class, where no value is null


@dataclass(frozen=True)
class Guarded:
    """A problem with a guard, and what the guard was made of.

    Attributes:
        problem: The problem; `plain` is the same without a guard.
        columns: The sensitive columns: `cost`, of numbers, and `ill`, with a hierarchy.
        models: What is asked of each.
        dense: Per column, persons by signatures and codes.
    """

    problem: Problem
    plain: Problem
    columns: tuple[Column, Column]
    models: Models
    dense: tuple[np.ndarray, np.ndarray]

    def good(self, members: Sequence[int] | np.ndarray) -> bool:
        """Whether these signatures are k persons or more who satisfy every model, from the definitions."""
        held = list(members)
        if not held or self.problem.persons[held].sum() < max(1, self.problem.k):
            return False
        return all(
            holds(model, literal(model, column, dense[held].sum(axis=0)))
            for column, dense in zip(self.columns, self.dense, strict=True)
            for model in self.models.get(column.name, ())
        )


def guarded(problem: Problem, seed: int, models: Models | None = None, *, nulls: bool = True) -> Guarded:
    """The problem with sensitive values drawn for each person; models are drawn too, unless given.

    Some signatures also hold values whose persons count elsewhere.
    """
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, int(rng.integers(1, 6)))
    sizes = [int(rng.integers(1, 6)), tree.leaves]
    owner = np.concatenate([np.repeat(np.arange(problem.size), problem.persons), rng.integers(0, problem.size, 3)])
    weight = np.concatenate([np.ones(int(problem.persons.sum()), np.int64), np.zeros(3, np.int64)])
    skews = [rng.dirichlet(np.ones(size)) for size in sizes]
    drawn = [rng.choice(size, len(owner), p=skew) for size, skew in zip(sizes, skews, strict=True)]
    codes = np.stack(drawn, axis=1).astype(np.int32)
    dense = [np.zeros((problem.size, size), np.int64) for size in sizes]
    for j, table in enumerate(dense):
        np.add.at(table, (owner, codes[:, j]), weight)
    null = [
        sizes[0] - 1 if nulls and rng.random() < 0.3 else -1,
        int(rng.integers(sizes[1])) if nulls and rng.random() < 0.3 else -1,
    ]
    columns = (
        Column("cost", dense[0].sum(axis=0), null=null[0], ordered=True),
        Column("ill", dense[1].sum(axis=0), null=null[1], levels=tree.levels),
    )
    if models is None:
        offered = [(column.name, model) for column in columns for model in column_models(column)]
        chosen = [offered[i] for i in rng.choice(len(offered), int(rng.integers(1, 3)), replace=False)]
        models = {column.name: [model for name, model in chosen if name == column.name] for column in columns}
    histograms = histograms_of(owner, codes, weight, units=problem.size, persons=problem.persons)
    guard = Guard.of(Demands.of(columns, models), histograms)
    return Guarded(replace(problem, guard=guard), problem, columns, models, (dense[0], dense[1]))


SEEDS = st.integers(0, 10**6)
