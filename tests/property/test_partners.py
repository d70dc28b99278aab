"""The cheapest partner by the tree of boxes against a scan over all pairs."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import lowest_common, random_problem

from kanon_spark.kernels.partners import cheapest_partners
from kanon_spark.kernels.problem import Forest


def leaves(forest: Forest, node: int) -> range:
    """The codes under a node."""
    return range(forest.lo[node], forest.hi[node])


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(1, 60), width=st.integers(1, 4), forbid=st.booleans())
def test_partners_are_those_of_a_scan(seed: int, size: int, width: int, forbid: bool) -> None:
    problem = random_problem(seed, size=size, width=width, k=2, forbid_root=forbid)
    forest = problem.forest
    rng = np.random.default_rng(seed)
    # Components: random sets of signatures, so that boxes stand at all heights.
    group = rng.integers(0, max(1, problem.size * 2 // 3), problem.size)
    names = np.unique(group)
    nodes = np.array(
        [[lowest_common(forest, j, problem.codes[group == g, j].tolist()) for j in range(width)] for g in names],
        np.int32,
    )
    rows = np.array([problem.rows[group == g].sum() for g in names], np.int64)
    allowed = np.isfinite(forest.loss[nodes].sum(axis=1))
    nodes, rows = np.ascontiguousarray(nodes[allowed]), rows[allowed]
    asking = np.arange(len(nodes), dtype=np.int32)
    partner, added = cheapest_partners(forest, nodes, rows, asking)
    cost = forest.loss[nodes].sum(axis=1)
    for a in asking:
        union = np.full(len(nodes), np.inf)
        for b in asking:
            if a != b:
                both = [
                    lowest_common(forest, j, [*leaves(forest, nodes[a, j]), *leaves(forest, nodes[b, j])])
                    for j in range(width)
                ]
                union[b] = (rows[a] + rows[b]) * forest.loss[both].sum() - rows[a] * cost[a] - rows[b] * cost[b]
        if np.isfinite(union.min(initial=np.inf)):
            assert added[a] == np.float64(added[a]) and abs(added[a] - union.min()) < 1e-9
            assert abs(union[partner[a]] - union.min()) < 1e-9
        else:
            assert partner[a] == -1 and added[a] == np.inf
