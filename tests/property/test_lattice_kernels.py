"""Listing, greedy, polish, steal and cuts against slow twins that try everything."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import class_loss, closed_groups, problems, random_problem

from kanon_spark.blocks.cuts import count_cells, cut_blocks
from kanon_spark.kernels.lattice import (
    FREE,
    attach_rest,
    class_cost,
    class_table,
    close_cheapest_first,
    closing_order,
    total_loss,
)
from kanon_spark.kernels.listing import list_groups
from kanon_spark.kernels.polish import polish
from kanon_spark.kernels.problem import Problem
from kanon_spark.kernels.stealing import steal

EXAMPLES = settings(max_examples=150, deadline=None)  # the first example compiles


def everything(problem: Problem) -> np.ndarray:
    return np.arange(problem.size, dtype=np.int32)


def losses_of(problem: Problem, class_of: np.ndarray) -> float:
    """Row-weighted loss, the slow way."""
    total = 0.0
    for c in set(class_of.tolist()) - {FREE}:
        members = np.flatnonzero(class_of == c).tolist()
        total += class_loss(problem, members) * int(problem.rows[members].sum())
    return total


def assert_classes_hold(problem: Problem, class_of: np.ndarray) -> None:
    for c in set(class_of.tolist()) - {FREE}:
        assert problem.persons[class_of == c].sum() >= problem.k
        assert np.isfinite(class_loss(problem, np.flatnonzero(class_of == c).tolist()))


@EXAMPLES
@given(problems(forbid_root=True))
def test_listing_finds_every_closed_group_once(problem: Problem) -> None:
    groups = list_groups(problem, everything(problem), above=-1.0, upto=100.0)
    listed = [
        tuple(sorted(groups.members[groups.offset[g] : groups.offset[g + 1]].tolist())) for g in range(groups.count)
    ]
    wanted = {m: c for m, c in closed_groups(problem, list(range(problem.size))).items() if np.isfinite(c)}
    assert len(listed) == len(set(listed))
    assert dict(zip(listed, np.round(groups.cost, 9).tolist(), strict=True)) == {
        members: round(cost, 9) for members, cost in wanted.items()
    }


@EXAMPLES
@given(problems(), st.floats(0, 2), st.floats(0, 2))
def test_listing_keeps_to_its_window(problem: Problem, one: float, two: float) -> None:
    above, upto = min(one, two), max(one, two)
    whole = list_groups(problem, everything(problem), above=-1.0, upto=100.0)
    part = list_groups(problem, everything(problem), above=above, upto=upto)
    assert sorted(part.cost.tolist()) == sorted(c for c in whole.cost.tolist() if above < c <= upto)


@EXAMPLES
@given(problems(largest=10))
def test_greedy_equals_one_big_sort(problem: Problem) -> None:
    """Windows are an optimization: the classes are those of sorting all groups once."""
    class_of = close_cheapest_first(problem)
    free = set(range(problem.size))
    twin: list[tuple[int, ...]] = []
    groups = list_groups(problem, everything(problem), above=-1.0, upto=100.0)
    order = closing_order(groups)
    ties = len(set(np.round(groups.cost, 9).tolist())) < groups.count
    for g in order:
        members = [s for s in groups.members[groups.offset[g] : groups.offset[g + 1]].tolist() if s in free]
        if members and problem.persons[members].sum() >= problem.k:
            twin.append(tuple(sorted(members)))
            free -= set(members)
    if not ties:  # sizes decide ties, and windows see sizes as they are when the window opens
        found = {tuple(np.flatnonzero(class_of == c).tolist()) for c in range(class_of.max(initial=-1) + 1)}
        assert found == set(twin)
    assert_classes_hold(problem, class_of)
    assert problem.persons[class_of == FREE].sum() < problem.k


@EXAMPLES
@given(problems(forbid_root=True))
def test_class_table_and_total_loss_are_what_the_members_say(problem: Problem) -> None:
    class_of = attach_rest(problem, close_cheapest_first(problem))
    nodes, rows, persons = class_table(problem, class_of)
    for c, cost in enumerate(class_cost(problem.forest, nodes)):
        members = np.flatnonzero(class_of == c).tolist()
        assert cost == pytest.approx(class_loss(problem, members))
        assert (rows[c], persons[c]) == (problem.rows[members].sum(), problem.persons[members].sum())
    left = int(problem.rows[class_of == FREE].sum())
    assert total_loss(problem, class_of, suppressed=7.0) == pytest.approx(losses_of(problem, class_of) + 7.0 * left)


@EXAMPLES
@given(problems(forbid_root=True))
def test_the_rest_joins_where_the_loss_rises_least(problem: Problem) -> None:
    before = close_cheapest_first(problem)
    rest = np.flatnonzero(before == FREE)
    after = attach_rest(problem, before.copy())
    assert_classes_hold(problem, after)
    if len(rest) == 1 and before.max(initial=-1) >= 0:
        trials = []
        for c in range(before.max() + 1):
            trial = before.copy()
            trial[rest[0]] = c
            trials.append(losses_of(problem, trial))
        if np.isfinite(min(trials)):
            assert losses_of(problem, after) == pytest.approx(min(trials))
        else:
            assert after[rest[0]] == FREE


@EXAMPLES
@given(st.integers(0, 10**6), st.integers(1, 6), st.booleans(), st.sampled_from([0.0, 0.1, 10.0]))
def test_polish_and_steal_keep_k_and_never_cost_more(seed: int, k: int, forbid_root: bool, heat: float) -> None:
    problem = random_problem(seed, size=60, width=3, k=k, forbid_root=forbid_root)
    class_of = attach_rest(problem, close_cheapest_first(problem))
    target = np.zeros(problem.size)
    polished = polish(problem, class_of, target=target, work=2e6, seed=seed, heat=heat)
    stolen = steal(problem, polished, upto=1.0)
    for better in (polished, stolen):
        assert_classes_hold(problem, better)
        assert ((better == FREE) == (class_of == FREE)).all()
    assert losses_of(problem, polished) <= losses_of(problem, class_of) + 1e-6
    assert losses_of(problem, stolen) <= losses_of(problem, polished) + 1e-6
    assert (polish(problem, class_of, target=target, work=2e6, seed=seed, heat=heat) == polished).all()


@EXAMPLES
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 30), st.booleans())
def test_blocks_close_what_the_whole_table_closes(seed: int, k: int, block_size: int, forbid_root: bool) -> None:
    problem = random_problem(seed, size=80, width=3, k=k, forbid_root=forbid_root)
    forest = problem.forest
    cuts = cut_blocks(
        forest,
        signatures=problem.size,
        block_size=block_size,
        count=lambda cuts, request: count_cells(problem.codes, cuts.assign(problem.codes), request, forest),
    )
    block_of = cuts.assign(problem.codes)
    sizes = np.bincount(block_of, minlength=len(cuts.blocks))
    assert sizes.tolist() == [block.size for block in cuts.blocks]
    assert sizes.max() <= block_size
    assert len(set(zip(block_of.tolist(), cuts.bins(block_size)[block_of].tolist(), strict=True))) == len(
        set(block_of.tolist())
    )
    whole = close_cheapest_first(problem)
    cost = class_cost(forest, class_table(problem, whole)[0])
    for block in range(len(cuts.blocks)):
        inside = np.flatnonzero(block_of == block)
        part = Problem(
            forest, np.asfortranarray(problem.codes[inside]), problem.rows[inside], problem.persons[inside], k
        )
        stop = float(cuts.crossing[block])
        alone = close_cheapest_first(part, stop=stop)
        for c in range(alone.max(initial=-1) + 1):
            members = inside[alone == c]
            # Some class of the whole table is exactly this one.
            same = np.flatnonzero(whole == whole[members[0]])
            assert set(members.tolist()) == set(same.tolist())
        for s in inside[alone == FREE]:
            # What the block leaves open, the whole table closes at the crossing loss or above, if at all. The class may
            # cost less than the group it was closed with, so only a lone class below the stop would be a contradiction.
            if whole[s] != FREE:
                partners = np.flatnonzero(whole == whole[s])
                crosses = len(set(block_of[partners].tolist())) > 1
                assert crosses is False or cost[whole[s]] >= stop - 1e-9
