"""Swaps between two classes, and prices kept up to date, against measuring everything again."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_measures import measured_loss, measured_problems, qi_loss

from kanon_spark.kernels.box import begin, enter, price
from kanon_spark.kernels.measure import Measured
from kanon_spark.kernels.problem import Problem
from kanon_spark.kernels.swapping import best_swap, new_scales

EXAMPLES = settings(max_examples=150, deadline=None)  # the first example compiles


def chained(problem: Problem, class_of: np.ndarray) -> tuple[np.ndarray, ...]:
    """Classes as chains of members, with their rows and persons."""
    head, after = np.full(2, -1, np.int32), np.full(problem.size, -1, np.int32)
    for s, c in enumerate(class_of):
        after[s], head[c] = head[c], s
    held = np.array([problem.rows[class_of == c].sum() for c in (0, 1)])
    people = np.array([problem.persons[class_of == c].sum() for c in (0, 1)])
    return head, after, held, people


@EXAMPLES
@given(
    measured_problems(largest=12, forbid_root=True, labels=3), st.integers(0, 10**6), st.sampled_from([0.0, 0.5, 2.0])
)
def test_the_best_swap_is_that_of_trying_all(problem: Problem, seed: int, penalty: float) -> None:
    class_of = np.random.default_rng(seed).integers(2, size=problem.size)
    if set(class_of.tolist()) != {0, 1}:
        return
    measured = Measured.of(problem, penalty=penalty)
    scales = new_scales(measured.rules)
    chains = chained(problem, class_of)
    for s in range(problem.size):
        giver, taker = int(class_of[s]), 1 - int(class_of[s])
        partner, giver_loss, taker_loss, _ = best_swap(
            measured.rules,
            scales,
            measured.codes,
            problem.rows,
            problem.persons,
            problem.k,
            problem.guard,
            *chains,
            s,
            giver,
            taker,
            np.inf,
            np.empty(problem.size, np.int32),
        )
        found = giver_loss + taker_loss
        least = np.inf
        for u in [-1, *np.flatnonzero(class_of == taker).tolist()]:
            given = [x for x in np.flatnonzero(class_of == giver).tolist() if x != s]
            if not given:
                continue  # a class is never emptied, not even to be filled again
            given += [u] if u >= 0 else []
            taken = [x for x in [*np.flatnonzero(class_of == taker).tolist(), s] if x != u]
            if min(problem.persons[given].sum(), problem.persons[taken].sum()) < problem.k:
                continue
            total = measured_loss(problem, given, penalty=penalty) + measured_loss(problem, taken, penalty=penalty)
            least = min(least, total)
            if u == partner and np.isfinite(found):
                assert total == pytest.approx(found)
        assert found == pytest.approx(least)
        assert not scales.holders.any()  # the scales are empty for the next


@EXAMPLES
@given(measured_problems(largest=12, forbid_root=True), st.integers(0, 10**6))
def test_prices_follow_a_box_that_grows(problem: Problem, seed: int) -> None:
    measured = Measured.of(problem)
    order = np.random.default_rng(seed).permutation(problem.size).tolist()
    pool = np.arange(problem.size, dtype=np.int32)
    adds, total = np.zeros(measured.codes.shape), np.zeros(problem.size)
    box = measured.box()
    begin(measured.rules, box, measured.codes, order[0])
    box.changed[:] = True
    members = [order[0]]
    for s in order[1:]:
        waiting = np.array([x for x in order if x not in members], dtype=np.int32)
        price(measured.rules, box, measured.codes, pool, waiting, len(waiting), adds, total)
        for x in waiting:
            rises = [qi_loss(problem, j, [*members, x]) - qi_loss(problem, j, members) for j in range(adds.shape[1])]
            assert total[x] == pytest.approx(sum(rises))
        if np.isinf(total[s]):
            return
        enter(measured.rules, box, measured.codes, s)
        members.append(s)
