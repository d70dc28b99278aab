"""Random small problems with ranges, sets and hierarchies, and slow, obvious ways to measure them."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st
from random_problems import lowest_common, random_problem

from kanon_spark.kernels.measure import Kind, Measure
from kanon_spark.kernels.problem import Problem

KINDS: tuple[Kind, ...] = ("node", "range", "set")


def random_measured(seed: int, *, size: int, width: int, k: int, forbid_root: bool = False, labels: int = 0) -> Problem:
    """A random problem whose QIs are measured at random; the largest code of some is null."""
    rng = np.random.default_rng(seed + 1)
    given = random_problem(seed, size=size, width=width, k=k, forbid_root=forbid_root)
    forest = given.forest
    kinds: list[Kind] = [KINDS[int(rng.integers(3))] for _ in range(forest.width)]
    if forbid_root:
        kinds[0] = "node"
    leaves = [int(count) for count in forest.leaves]
    nulls = [
        count - 1 if kind != "node" and rng.random() < 0.3 else -1 for count, kind in zip(leaves, kinds, strict=True)
    ]
    positions = []
    for count, null in zip(leaves, nulls, strict=True):
        position = np.cumsum(rng.integers(1, 5, count)).astype(np.float64)
        position[count - 1] = np.nan if null >= 0 else position[count - 1]
        positions.append(position)
    spans = [float(np.nanmax(p) - np.nanmin(p)) if np.isfinite(p).any() else 0.0 for p in positions]
    measure = Measure(
        kinds=tuple(kinds),
        weights=np.array([1.0, 2.0, 0.5, 1.0][:width]),
        positions=tuple(positions),
        spans=tuple(spans),
        domains=tuple(
            max(1, count - (null >= 0)) + int(rng.integers(2)) for count, null in zip(leaves, nulls, strict=True)
        ),
        nulls=tuple(nulls),
    )
    shares = None
    if labels:
        shares = np.stack([rng.multinomial(int(n), np.full(labels, 1 / labels)) for n in given.rows]).astype(np.int64)
    return replace(given, measure=measure, labels=shares)


@st.composite
def measured_problems(
    draw: st.DrawFn, *, largest: int = 14, forbid_root: bool = False, labels: int = 0, most_k: int = 5
) -> Problem:
    """Problems of one to four QIs of all kinds."""
    return random_measured(
        draw(st.integers(0, 10**6)),
        size=draw(st.integers(1, largest)),
        width=draw(st.integers(1, 4)),
        k=draw(st.integers(1, most_k)),
        forbid_root=draw(st.booleans()) if forbid_root else False,
        labels=labels,
    )


def qi_loss(problem: Problem, j: int, members: list[int]) -> float:
    """Loss per row of a class in one QI, from its members alone."""
    measure = problem.measure
    assert measure is not None
    held = sorted({int(problem.codes[s, j]) for s in members})
    kind, weight = measure.kinds[j], float(measure.weights[j])
    if kind == "node":
        return float(problem.forest.loss[lowest_common(problem.forest, j, held)])
    if len(held) == 1:
        return 0.0
    if held[-1] == measure.nulls[j]:
        return weight
    if kind == "set":
        return weight * len(held) / measure.domains[j]
    span = measure.spans[j]
    return weight * float(measure.positions[j][held[-1]] - measure.positions[j][held[0]]) / span if span else 0.0


def measured_loss(problem: Problem, members: list[int], *, penalty: float = 0.0) -> float:
    """Loss of all rows of a class, with the charge for rows outside the majority of labels."""
    rows = int(problem.rows[members].sum())
    loss = rows * sum(qi_loss(problem, j, members) for j in range(problem.forest.width))
    if penalty and problem.labels is not None:
        tally = problem.labels[members].sum(axis=0)
        loss += penalty * float(tally.sum() - tally.max())
    return loss


def classes(class_of: np.ndarray) -> list[list[int]]:
    """Members of each class."""
    return [np.flatnonzero(class_of == c).tolist() for c in sorted(set(class_of.tolist()) - {-1})]
