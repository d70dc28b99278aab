"""Similarity-based clustering against its rule written down literally: every tuple measured again for each class."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from random_measures import classes, measured_problems, random_measured
from random_problems import lowest_common

from kanon_spark.kernels.closest import GRID
from kanon_spark.kernels.contingency import rank_by_similarity
from kanon_spark.kernels.problem import Problem
from kanon_spark.kernels.sbca import FREE, similarity_classes
from kanon_spark.methods.base import Leftover, Piece
from kanon_spark.methods.sbca import Sbca

EXAMPLES = settings(max_examples=120, deadline=None)  # the first example compiles


def with_odd_numbers(problem: Problem, seed: int) -> Problem:
    """Some hierarchies are over words, some over numbers in any order, and some numbers are infinite or unknown."""
    rng = np.random.default_rng(seed)
    measure = problem.measure
    assert measure is not None
    positions = []
    for kind, null, given_ in zip(measure.kinds, measure.nulls, measure.positions, strict=True):
        position = given_.copy()
        if kind == "node":
            position = rng.permutation(position)
            position[rng.random(len(position)) < 0.2] = np.nan
            if rng.random() < 0.5:
                position[:] = np.nan
        elif kind == "range" and rng.random() < 0.3:
            last = len(position) - 1 - (null >= 0)
            position[0], position[last] = -np.inf, np.inf
        positions.append(position)
    return replace(problem, measure=replace(measure, positions=tuple(positions)))


@st.composite
def problems(draw: st.DrawFn, *, largest: int = 30) -> Problem:
    """Problems of one to four QIs of all kinds, one of which may forbid its root."""
    return with_odd_numbers(draw(measured_problems(largest=largest, forbid_root=True)), draw(st.integers(0, 10**6)))


class Twin:
    """The rule, literally; `good` says which classes may be closed."""

    def __init__(self, problem: Problem, good: Callable[[list[int]], bool] | None = None) -> None:
        self.problem = problem
        self.good = good or (lambda members: bool(problem.persons[members].sum() >= problem.k))
        measure = problem.measure
        assert measure is not None
        self.measure = measure
        self.cardinality = [int(count) for count in problem.forest.leaves]
        width = range(problem.forest.width)
        self.qis = sorted(width, key=lambda j: (self.is_number(j), self.cardinality[j], j))

    def is_number(self, j: int) -> bool:
        kind = self.measure.kinds[j]
        return kind == "range" or (kind == "node" and not np.isnan(self.measure.positions[j]).all())

    def key(self, s: int) -> list[tuple[bool, float, int]]:
        """Where a signature stands in the order; behind everything, infinity included, stands what has no size."""
        found = []
        for j in self.qis:
            x = int(self.problem.codes[s, j])
            size = float(self.measure.positions[j][x]) if self.is_number(j) else 0.0
            found.append((np.isnan(size), 0.0 if np.isnan(size) else size, x))
        return found

    def may_meet(self, s: int, t: int) -> bool:
        forest, codes = self.problem.forest, self.problem.codes
        trees = [j for j in range(forest.width) if self.measure.kinds[j] == "node"]
        pairs = [(j, [int(codes[s, j]), int(codes[t, j])]) for j in trees]
        return all(np.isfinite(forest.loss[lowest_common(forest, j, pair)]) for j, pair in pairs)

    def apart(self, j: int, x: int, y: int) -> Fraction:
        """Distance of two numbers."""
        position = self.measure.positions[j]
        known = position[np.isfinite(position)]
        if x == y:
            return Fraction(0)
        if not (np.isfinite(position[x]) and np.isfinite(position[y])):
            return Fraction(1)
        return abs(Fraction(position[x]) - Fraction(position[y])) / (Fraction(known.max() - known.min()) or 1)

    def similarity_order(self, j: int, starter: int, free: list[int]) -> list[int]:
        """All values of a category, most similar to the starter's first."""
        codes, rows = self.problem.codes, self.problem.rows
        before = [q for q in self.qis[: self.qis.index(j)] if not self.is_number(q)]
        row = [s for s in free if all(codes[s, q] == codes[starter, q] for q in before)]
        while before and sum(rows[s] for s in row) < self.problem.k:
            before.pop()
            row = [s for s in free if all(codes[s, q] == codes[starter, q] for q in before)]
        total = sum(int(rows[s]) for s in row)
        values = range(self.cardinality[j])
        share = {v: Fraction(sum(int(rows[s]) for s in row if codes[s, j] == v), total) for v in values}
        own = int(codes[starter, j])
        return sorted(values, key=lambda v: (v != own, abs(share[v] - share[own]), v))

    def distances(self, starter: int, free: list[int]) -> dict[int, int]:
        """In units of the grid, from the starter to every free signature."""
        codes, weights = self.problem.codes, self.measure.weights
        found = dict.fromkeys(free, 0)
        for j in self.qis:
            own = int(codes[starter, j])
            order = [] if self.is_number(j) else self.similarity_order(j, starter, free)
            for s in free:
                x = int(codes[s, j])
                away = self.apart(j, own, x) if self.is_number(j) else Fraction(order.index(x), max(1, len(order) - 1))
                found[s] += round(away * Fraction(float(weights[j])) * int(GRID))
        return found

    def solve(self, *, join: bool) -> np.ndarray:
        persons, k = self.problem.persons, self.problem.k
        free = sorted(range(self.problem.size), key=self.key)
        place = {s: at for at, s in enumerate(free)}
        closed: list[list[int]] = []
        left_over = []
        while free:
            starter = free[0]
            others = [s for s in free[1:] if self.may_meet(starter, s)]
            if persons[starter] + sum(persons[s] for s in others) < k:
                left_over.append(free.pop(0))
                continue
            members = [starter]
            distance = self.distances(starter, free)
            for s in sorted(others, key=lambda s: (distance[s], place[s])):
                if self.good(members):
                    break
                members.append(s)
            if self.good(members):
                closed.append(members)
            else:
                left_over += members
            free = [s for s in free if s not in members]
        for s in sorted(left_over, key=place.__getitem__) if join else ():
            for members in closed[::-1]:
                if self.may_meet(s, members[0]) and self.good([*members, s]):
                    members.append(s)
                    break
        class_of = np.full(self.problem.size, FREE, np.int32)
        for number, members in enumerate(closed):
            class_of[members] = number
        return class_of


@EXAMPLES
@given(problems(), st.booleans())
def test_classes_are_those_of_the_literal_rule(problem: Problem, join: bool) -> None:
    assert similarity_classes(problem, join=join).tolist() == Twin(problem).solve(join=join).tolist()


def test_the_same_where_the_trie_is_built_again() -> None:
    """Hundreds of signatures: deep tries, many classes, and tries that have lost most of what they held."""
    sizes = []
    for seed in range(6):
        drawn = random_measured(seed, size=500, width=4, k=3 + seed)
        problem = with_odd_numbers(drawn, seed)
        sizes.append(problem.size)
        assert similarity_classes(problem, join=True).tolist() == Twin(problem).solve(join=True).tolist()
    assert max(sizes) > 200


@EXAMPLES
@given(problems(largest=60), st.sampled_from(["join", "suppress"]), st.booleans())
def test_k_holds_and_what_is_left_over_goes_where_it_should(problem: Problem, leftover: Leftover, whole: bool) -> None:
    piece = Piece(problem, np.inf if whole else 0.01, problem.size, 9.0, seed=3)
    class_of = Sbca(leftover=leftover).solve(piece).class_of
    may_meet = Twin(problem).may_meet
    for members in classes(class_of):
        assert problem.persons[members].sum() >= problem.k
        assert all(may_meet(members[0], s) for s in members)
    open_ = np.flatnonzero(class_of == FREE).tolist()
    for s in open_:
        assert problem.persons[[t for t in open_ if may_meet(s, t)]].sum() < problem.k
        if whole and leftover == "join":
            assert not any(may_meet(s, members[0]) for members in classes(class_of))
    again = Sbca(leftover=leftover).solve(piece).class_of
    assert (again == class_of).all()


def test_only_a_piece_that_is_the_end_lets_the_last_join() -> None:
    """Seven persons, classes of three: one is left over."""
    drawn = random_measured(5, size=40, width=2, k=3)
    problem = replace(drawn, codes=drawn.codes[:7], rows=np.ones(7, np.int64), persons=np.ones(7, np.int64))

    def sizes(leftover: Leftover, stop: float) -> list[int]:
        class_of = Sbca(leftover=leftover).solve(Piece(problem, stop, 7, 9.0, seed=0)).class_of
        return np.bincount(class_of + 1, minlength=3).tolist()

    assert sizes("join", np.inf) == [0, 3, 4]
    assert sizes("suppress", np.inf) == sizes("join", 1.0) == sizes("suppress", 1.0) == [1, 3, 3]


@EXAMPLES
@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.data())
def test_ranks_are_places_in_the_sorted_order(counts: list[int], data: st.DataObject) -> None:
    """Also where values without rows are not even listed."""
    own = data.draw(st.integers(0, len(counts) - 1))
    counts[own] = max(1, counts[own])
    listed = [v for v in range(len(counts)) if counts[v] > 0 or data.draw(st.booleans())]
    rank = np.zeros(len(listed), np.int64)
    rank_by_similarity(np.array([counts[v] for v in listed]), np.array(listed), listed.index(own), len(counts), rank)
    order = sorted(range(len(counts)), key=lambda v: (v != own, abs(counts[v] - counts[own]), v))
    assert rank.tolist() == [order.index(v) for v in listed]
