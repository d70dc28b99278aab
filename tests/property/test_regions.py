"""Marginals, cuts and the tree of regions against looking at every signature."""

from collections.abc import Mapping, Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from random_measures import measured_problems

from kanon_spark.kernels.problem import Problem
from kanon_spark.kernels.regions import Choose, Cut, Marginals, Path, Regions, count_marginals, grow, grow_here

EXAMPLES = settings(max_examples=80, deadline=None)  # the first example compiles


def random_choice(seed: int) -> Choose:
    """Cuts drawn by what a region holds: the same region is cut alike, whoever counts it and whenever."""

    def choose(marginals: Marginals, path: Path) -> Cut | None:
        key = [seed, len(path), *marginals.codes.tolist(), *marginals.persons.tolist(), *marginals.rows.tolist()]
        rng = np.random.default_rng(key)
        dividable = [j for j in range(len(marginals.start) - 1) if len(marginals.present(j)) > 1]
        if not dividable or rng.random() < 0.2:
            return None
        qi = int(rng.choice(dividable))
        rest = marginals.present(qi)[1:]
        bounds = np.sort(rng.choice(rest, size=int(rng.integers(1, len(rest) + 1)), replace=False))
        return Cut(qi, bounds.astype(np.int32), ordered=bool(rng.random() < 0.5))

    return choose


@EXAMPLES
@given(measured_problems(largest=30, labels=3), st.integers(0, 10**6))
def test_marginals_count_every_value(problem: Problem, seed: int) -> None:
    chosen = np.random.default_rng(seed).random(problem.size) < 0.6
    members = np.flatnonzero(chosen)
    found = count_marginals(problem, members)
    assert found.start[0] == 0 and found.start[-1] == len(found.codes)
    for j in range(problem.forest.width):
        column = problem.codes[members, j]
        assert found.present(j).tolist() == sorted(set(column.tolist()))
        for i in range(found.start[j], found.start[j + 1]):
            holders = members[column == found.codes[i]]
            assert found.signatures[i] == len(holders)
            assert found.persons[i] == problem.persons[holders].sum()
            assert found.rows[i] == problem.rows[holders].sum()
            assert problem.labels is not None
            assert (found.labels[i] == problem.labels[holders].sum(axis=0)).all()
    assert found.all_signatures == len(members)
    assert found.all_persons == problem.persons[members].sum()
    assert found.all_rows == problem.rows[members].sum()


@EXAMPLES
@given(measured_problems(largest=30), st.integers(0, 10**6))
def test_regions_part_the_table_and_know_their_sizes(problem: Problem, seed: int) -> None:
    regions, leaf_of = grow_here(problem, random_choice(seed), path=((3, True),))
    assert (regions.assign(problem.codes) == leaf_of).all()
    assert sorted(regions.leaves) == sorted(set(leaf_of.tolist()))
    for number, region in enumerate(regions.nodes):
        # A signature lies in a region if every cut on the way sends it there.
        inside = np.ones(problem.size, np.bool_)
        path: Path = ()
        child, parent = number, region.parent
        while parent >= 0:
            cut = regions[parent].cut
            assert cut is not None
            place = regions[parent].children.index(child)
            low = cut.bounds[place - 1] if place else 0
            high = cut.bounds[place] if place < len(cut.bounds) else np.iinfo(np.int32).max
            inside &= (problem.codes[:, cut.qi] >= low) & (problem.codes[:, cut.qi] < high)
            path = ((cut.qi, cut.ordered), *path)
            child, parent = parent, regions[parent].parent
        assert region.path == ((3, True), *path)
        assert (region.signatures, region.persons) == (inside.sum(), problem.persons[inside].sum())
        assert region.final == (region.cut is None)
        if region.cut is None:
            assert (np.flatnonzero(inside) == np.flatnonzero(leaf_of == number)).all()


@EXAMPLES
@given(measured_problems(largest=30, labels=2), st.integers(0, 10**6), st.integers(0, 12))
def test_level_by_level_cuts_as_one_process_does(problem: Problem, seed: int, block_size: int) -> None:
    """What is grown from counts, and then solved below each small region, are the regions of one process."""
    choose = random_choice(seed)

    def count(regions: Regions, wanted: Sequence[int]) -> Mapping[int, Marginals]:
        leaf_of = regions.assign(problem.codes)
        assert all((leaf_of == region).sum() > block_size for region in wanted)
        return {region: count_marginals(problem, np.flatnonzero(leaf_of == region)) for region in wanted}

    regions = grow(count, choose, signatures=problem.size, block_size=block_size)
    leaf_of = regions.assign(problem.codes)
    found = set()
    for leaf in regions.leaves:
        members = np.flatnonzero(leaf_of == leaf)
        assert regions[leaf].signatures == len(members)
        assert regions[leaf].final or len(members) <= block_size
        part = Problem(
            problem.forest,
            np.asfortranarray(problem.codes[members]),
            problem.rows[members],
            problem.persons[members],
            problem.k,
            problem.measure,
            None if problem.labels is None else problem.labels[members],
        )
        _, below = grow_here(part, choose, path=regions[leaf].path)
        assert not regions[leaf].final or len(set(below.tolist())) == 1
        found |= {frozenset(members[below == each].tolist()) for each in set(below.tolist())}
    _, wanted_leaf = grow_here(problem, choose)
    assert found == {frozenset(np.flatnonzero(wanted_leaf == each).tolist()) for each in set(wanted_leaf.tolist())}
