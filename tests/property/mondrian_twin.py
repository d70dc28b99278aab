"""`mondrian` once more: literal, recursive, in plain Python."""

from collections.abc import Callable

import numpy as np
from random_measures import qi_loss
from random_problems import ancestors, lowest_common

from kanon_spark.kernels.problem import Problem

Good = Callable[[list[int]], bool]


def enough(problem: Problem) -> Good:
    """Good is what has k persons."""
    return lambda members: bool(problem.persons[members].sum() >= problem.k)


def twin(problem: Problem, members: list[int], good: Good) -> set[frozenset[int]]:
    """The good regions below these signatures."""
    if problem.persons[members].sum() < problem.k:
        return set()
    width = problem.forest.width
    losses = [round(qi_loss(problem, j, members), 9) for j in range(width)]
    for j in sorted(range(width), key=lambda j: -losses[j]):
        parts = divided(problem, j, members, good)
        if parts:
            return set().union(*(twin(problem, part, good) for part in parts))
    return {frozenset(members)} if good(members) else set()


def divided(problem: Problem, j: int, members: list[int], good: Good) -> list[list[int]]:
    """The sides of an allowable cut of one QI; nothing where there is none."""
    assert problem.measure is not None
    forest, null = problem.forest, problem.measure.nulls[j]
    held = sorted({int(problem.codes[s, j]) for s in members})
    if len(held) == 1:
        return []

    def having(codes: set[int]) -> list[int]:
        return [s for s in members if int(problem.codes[s, j]) in codes]

    def persons(side: list[int]) -> int:
        return int(problem.persons[side].sum())

    if problem.measure.kinds[j] == "node":
        top = lowest_common(forest, j, held)
        child_of = {code: next(v for v in ancestors(forest, j, code) if forest.parent[v] == top) for code in held}
        sides = [having({code for code in held if child_of[code] == child}) for child in sorted(set(child_of.values()))]
        must = np.isinf(forest.loss[top])
        return sides if must or all(map(good, sides)) else []
    cuts = [[having(set(held[:i])), having(set(held[i:]))] for i in range(1, len(held))]
    allowed = [cut for cut in cuts if all(map(good, cut))]
    if held[-1] == null and cuts[-1] in allowed:
        return cuts[-1]
    return min(allowed, key=lambda cut: abs(persons(cut[0]) - persons(cut[1])), default=[])
