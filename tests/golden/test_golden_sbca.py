"""The worked example of the paper behind `sbca`, and its experiment on 5,000 rows of Adult."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from kanon_spark.hierarchy.tree import Tree
from kanon_spark.kernels.contingency import rank_by_similarity
from kanon_spark.kernels.measure import Measure, Measured
from kanon_spark.kernels.problem import Forest, Problem
from kanon_spark.kernels.sbca import arrange, distances_from, similarity_classes

MALE, FEMALE = 0, 1
JAPAN, USA, IRAN = 0, 1, 2
# Rows of the contingency table: sex, nationality, how many.
ROWS = [(MALE, JAPAN, 4), (MALE, USA, 4), (MALE, IRAN, 1), (FEMALE, JAPAN, 4), (FEMALE, USA, 1), (FEMALE, IRAN, 6)]


def make_problem(frame: pd.DataFrame, domains: dict[str, list[Any]], *, k: int) -> Problem:
    """Signatures of a frame without hierarchies; each column's values in the order of their codes."""
    codes = np.column_stack([pd.Categorical(frame[name], values).codes for name, values in domains.items()])
    signatures, rows = np.unique(codes.astype(np.int32), axis=0, return_counts=True)
    sizes = [len(values) for values in domains.values()]
    trees = [Tree.flat([str(value) for value in values]) for values in domains.values()]
    positions = [
        np.array(values, float) if name == "age" else np.full(len(values), np.nan) for name, values in domains.items()
    ]
    measure = Measure(
        kinds=tuple("range" if name == "age" else "set" for name in domains),
        weights=np.ones(len(domains)),
        positions=tuple(positions),
        spans=tuple(float(np.ptp(position)) for position in positions),
        domains=tuple(sizes),
        nulls=(-1,) * len(domains),
    )
    forest = Forest.of(trees, np.ones(len(trees)), [np.ones(size, bool) for size in sizes])
    return Problem(forest, np.asfortranarray(signatures), rows.astype(np.int64), rows.astype(np.int64), k, measure)


def example(*, k: int) -> Problem:
    """The twenty tuples."""
    tuples = [row[:2] for row in ROWS for _ in range(row[2])]
    frame = pd.DataFrame(tuples, columns=["sex", "nationality"])
    return make_problem(frame, {"sex": [MALE, FEMALE], "nationality": [JAPAN, USA, IRAN]}, k=k)


@pytest.mark.parametrize(
    ("counts", "order"),
    [([4, 4, 1], [JAPAN, USA, IRAN]), ([8, 5, 7], [JAPAN, IRAN, USA])],
    ids=["male row: 4/9, 4/9, 1/9", "both rows: 8/20, 5/20, 7/20"],
)
def test_the_order_of_similarity(counts: list[int], order: list[int]) -> None:
    rank = np.zeros(3, np.int64)
    rank_by_similarity(np.array(counts), np.arange(3), JAPAN, 3, rank)
    assert np.argsort(rank).tolist() == order


@pytest.mark.parametrize(
    ("k", "nationality"),
    [
        (3, {JAPAN: 0.0, USA: 0.5, IRAN: 1.0}),  # the male row holds 9 tuples, enough
        (9, {JAPAN: 0.0, USA: 0.5, IRAN: 1.0}),
        (10, {JAPAN: 0.0, USA: 1.0, IRAN: 0.5}),  # not enough: both rows
    ],
)
def test_distances_from_the_first_tuple(k: int, nationality: dict[int, float]) -> None:
    problem = example(k=k)
    table = arrange(problem)
    assert problem.codes[table.signature[0]].tolist() == [MALE, JAPAN]
    distance = distances_from(table, problem.rows, k)
    assert distance.tolist() == [0.0, 1.0, *(nationality[value] for value in (JAPAN, USA, IRAN))]


@pytest.mark.parametrize(("join", "woman_from_the_usa"), [(False, -1), (True, 3)], ids=["kept apart", "joined"])
def test_classes_of_the_example(join: bool, woman_from_the_usa: int) -> None:
    """Measured again as classes leave: to the man from Iran by both rows, of which Iran 7, Japan 4, USA 1 are left.

    The woman from the USA is left over when the women from Japan have filled the last class.
    """
    found = similarity_classes(example(k=3), join=join).tolist()
    assert found == [0, 1, 2, 3, woman_from_the_usa, 2]  # signatures stand as in ROWS


def test_five_thousand_rows_of_adult(shared: Path) -> None:
    """The paper: a total NCP below 0.20 for every k, and 582 different published tuples at k = 2.

    The sample has the paper's cardinalities, 67, 2 and 39. Here its 493 signatures stay whole, where the paper pairs
    single rows, so there are fewer tuples.
    """
    adult = pd.read_csv(shared / "data" / "adult.csv", skipinitialspace=True)
    complete = adult[~(adult.astype(str) == "?").any(axis=1)].head(5000)
    frame = complete[["age", "sex", "native-country"]]
    domains: dict[str, list[Any]] = {"age": sorted(frame["age"].unique())}
    for name in ("sex", "native-country"):  # frequent values first, as in a run
        often = frame[name].value_counts()
        domains[name] = sorted(often.index, key=lambda value, often=often: (-often[value], value))
    assert [len(values) for values in domains.values()] == [67, 2, 39]
    losses = {}
    for k in (2, 5, *range(10, 101, 10)):
        problem = make_problem(frame, domains, k=k)
        class_of = similarity_classes(problem, join=True)
        assert np.bincount(class_of, weights=problem.persons).min() >= k
        losses[k] = Measured.of(problem).total(class_of, problem.rows, suppressed=3.0) / (3 * len(frame))
        if k == 2:
            assert (problem.size, published_tuples(problem, class_of)) == (493, 327)
    assert max(losses.values()) < 0.07
    assert losses[2] == pytest.approx(0.0020, abs=5e-5)


def published_tuples(problem: Problem, class_of: np.ndarray) -> int:
    """Different ranges of age with different sets of sex and country."""
    groups = pd.DataFrame(np.asarray(problem.codes), columns=["age", "sex", "country"]).groupby(class_of)
    return len({(g.age.min(), g.age.max(), frozenset(g.sex), frozenset(g.country)) for _, g in groups})
