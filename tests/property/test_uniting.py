"""Classes that take in others: what each becomes."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import class_loss, problems

from kanon_spark.kernels.lattice import class_table
from kanon_spark.kernels.mending import united_classes
from kanon_spark.kernels.problem import Problem

EXAMPLES = settings(max_examples=150, deadline=None)  # the first example compiles


@EXAMPLES
@given(problems(forbid_root=True), st.integers(0, 10**6))
def test_failing_classes_take_in_the_cheapest_and_the_others_stay(problem: Problem, seed: int) -> None:
    rng = np.random.default_rng(seed)
    """Every signature is a class."""
    nodes, rows, _ = class_table(problem, np.arange(problem.size, dtype=np.int32))
    failing = np.flatnonzero(rng.random(len(nodes)) < 0.4)
    steps = int(rng.integers(1, 4))
    found = united_classes(problem.forest, nodes, rows, failing, steps=steps)
    groups = [np.flatnonzero(found == name) for name in np.unique(found[found >= 0])]
    for members in groups:
        assert np.isfinite(class_loss(problem, members.tolist()))
        assert found[members[0]] == members[0]  # named by the least
        assert len(members) == 1 or np.isin(members, failing).any()
        assert len(members) > 1 or members[0] not in failing
    for one in np.flatnonzero(found < 0):  # it has nobody to go with
        assert one in failing
        assert all(np.isinf(class_loss(problem, [one, other])) for other in range(len(nodes)) if other != one)
    if steps == 1 and len(failing) == 1 and found[failing[0]] >= 0:
        (one,) = failing
        added = [
            np.inf
            if other == one
            else class_loss(problem, [one, other]) * (rows[one] + rows[other])
            - class_loss(problem, [one]) * rows[one]
            - class_loss(problem, [other]) * rows[other]
            for other in range(len(nodes))
        ]
        (partner,) = set(np.flatnonzero(found == found[one]).tolist()) - {int(one)}
        assert np.isclose(added[partner], min(added))


@EXAMPLES
@given(problems(forbid_root=True))
def test_in_the_end_everything_is_one_class_where_it_may_be(problem: Problem) -> None:
    nodes, rows, _ = class_table(problem, np.arange(problem.size, dtype=np.int32))
    found = united_classes(problem.forest, nodes, rows, np.array([0]), steps=None)
    if np.isfinite(class_loss(problem, list(range(problem.size)))):
        assert (found == 0).all()
