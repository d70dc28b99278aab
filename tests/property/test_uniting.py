"""Classes that take in others: what each becomes."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import class_loss, problems

from kanon_spark.engine.uniting import Classes, partners
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


@EXAMPLES
@given(problems(largest=12, forbid_root=True), st.integers(0, 10**6), st.integers(0, 3))
def test_partners_are_those_of_this_rank(problem: Problem, seed: int, rank: int) -> None:
    rng = np.random.default_rng(seed)
    class_of = np.unique(rng.integers(0, 6, problem.size), return_inverse=True)[1].astype(np.int32)
    nodes, rows, _ = class_table(problem, class_of)
    finite = np.isfinite(problem.forest.loss[nodes].sum(axis=1))
    names = np.flatnonzero(finite) * 3 + 1
    nodes, rows = nodes[finite], rows[finite]
    failing = np.flatnonzero(rng.random(len(rows)) < 0.3)
    found = partners(problem.forest, Classes(names, nodes, rows), names[failing], rank=rank)
    members = [np.flatnonzero(class_of == c).tolist() for c in np.flatnonzero(finite)]
    taken: set[int] = set(failing.tolist())
    expected = []
    for one in sorted(failing.tolist(), key=lambda c: (-rows[c], c)):
        options = []
        for other in set(range(len(rows))) - taken:
            union = class_loss(problem, members[one] + members[other])
            rise = rows[other] * (union - class_loss(problem, members[other]))
            rise += rows[one] * (union - class_loss(problem, members[one]))
            if np.isfinite(union):
                options.append((round(rise, 6), other))
        if rank < len(options):
            cost, other = sorted(options)[rank]
            expected.append((one, cost))
            chosen = found.loc[found["class_id"] == names[one], "united"].iloc[0]
            partner = next(c for c in found.loc[found["united"] == chosen, "class_id"] if c != names[one])
            taken.add(int(np.searchsorted(names, partner)))
            assert cost in [each for each, c in options if names[c] == partner]
    assert len(found) == 2 * len(expected)
    assert found["class_id"].is_unique
