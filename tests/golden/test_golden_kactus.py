"""`kactus` by hand: a tree of two cuts, pruned with two loans; and one whose root is left with too few.

Table one, k = 3, target ill, 12 rows in the order of their numbers:

    job a: ages 20 21 22 23 ill, 40 41 not      job b: ages 20 21 22 23 not      job c: 20 ill, 21 not

The root has 5 ill of 12: 0.980 bits. By job 0.626 are left, a gain of 0.354, or 0.243 per bit of the cut (1.459). By
age the best threshold, below 40, leaves 0.833: a gain of 0.147, or 0.226 per bit (0.650). So job is cut first. Job a is
then cut at 40, without rest; b is pure; c has fewer than 3 persons.

    a, age < 40: 4 persons      a, age >= 40: 2      b: 4      c: 2

At a: the two are pruned and borrow one from their sibling, which keeps 3: the first of its (equally small) signatures,
age 20. So [21, 23] is released, and a is a leaf of three. At the root: c is pruned and borrows from b, which has most:
age 20 again. Released: a, b without an age, and what is left in the root without anything.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from kanon_spark.config.loader import load_config
from kanon_spark.engine.runner import run
from kanon_spark.hierarchy.tree import Tree
from kanon_spark.kernels.kactus import best_cuts
from kanon_spark.kernels.problem import OWN, Forest, Problem
from kanon_spark.kernels.regions import grow_here
from kanon_spark.methods.base import Leftover, Piece
from kanon_spark.methods.kactus import Kactus

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = [
    *((n, "a", age, "yes" if age < 40 else "no") for n, age in enumerate([20, 21, 22, 23, 40, 41], start=1)),
    *((n, "b", age, "no") for n, age in enumerate([20, 21, 22, 23], start=7)),
    (11, "c", 20, "yes"),
    (12, "c", 21, "no"),
]
YOUNG, REST_OF_A, REST_OF_B, ROOT = (2, 3, 4), (1, 5, 6), (8, 9, 10), (7, 11, 12)


def published(young: tuple[str, str], b: str) -> dict[int, tuple[str, str]]:
    return {
        **dict.fromkeys(YOUNG, young),
        **dict.fromkeys(REST_OF_A, ("a", "?")),
        **dict.fromkeys(REST_OF_B, (b, "?")),
        **dict.fromkeys(ROOT, ("?", "?")),
    }


@pytest.mark.parametrize(
    ("method", "execution", "expected"),
    [
        ({}, {}, published(("a", "[21, 23]"), "b")),
        ({"criterion": "gini", "numeric": "mean"}, {"local_limit": 0, "block_size": 3}, published(("a", "22.0"), "b")),
        # Every age is suppressed somewhere, and so is b; a never is.
        ({"dimension": "single"}, {}, published(("a", "?"), "?")),
    ],
    ids=["ranges", "means, regions", "single dimension"],
)
def test_table_one(
    spark: "SparkSession",
    tmp_path: Path,
    method: dict[str, str],
    execution: dict[str, Any],
    expected: dict[int, tuple[str, str]],
) -> None:
    job = {
        "name": "twelve rows",
        "columns": {"quasi_identifiers": ["job", "age"], "other": "keep"},
        "privacy": {"k": 3},
        "method": {"name": "kactus", "target": "ill", **method},
        "execution": {"work_dir": str(tmp_path / "work"), **execution},
    }
    file = tmp_path / "job.yaml"
    file.write_text(json.dumps(job), encoding="utf-8")
    table = spark.createDataFrame(ROWS, "number int, job string, age int, ill string")
    release = run(load_config(file), spark=spark, table=table)
    assert {row["number"]: (row["job"], row["age"]) for row in release.table.collect()} == expected


def table_two() -> tuple[Problem, tuple[Tree, ...]]:
    """Job x: three ill in town s, three well in town t. Job y: one in each town, of whom it is not known.

    Cut by job (y tells a label), then x by town: both leaves of x have k = 3 and are released, which leaves nothing of
    x. So the root holds y alone, two persons, and nobody it could borrow from.
    """
    trees = (Tree.flat(["x", "y"]), Tree.flat(["s", "t"]))
    codes = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.int32)
    forest = Forest.of(trees, np.ones(2), [np.ones(2, bool)] * 2)
    counts = np.array([3, 3, 1, 1])
    labels = np.array([[3, 0, 0], [0, 3, 0], [0, 0, 1], [0, 0, 1]])
    return Problem(forest, np.asfortranarray(codes), counts, counts, 3, labels=labels), trees


def test_the_tree_of_table_two() -> None:
    problem, _ = table_two()
    regions, leaf_of = grow_here(problem, best_cuts(problem, "gain_ratio"))
    assert [regions[leaf].path for leaf in leaf_of.tolist()] == [
        ((0, False), (1, False)),
        ((0, False), (1, False)),
        ((0, False),),
        ((0, False),),
    ]


@pytest.mark.parametrize(
    ("leftover", "class_of", "nodes"),
    [
        ("suppress", [0, 1, -1, -1], [[OWN, OWN], [OWN, OWN]]),
        # Both classes have three rows of two cells to lose: the one of the first signature is pruned into the root.
        ("join", [0, 1, 0, 0], [[2, 2], [OWN, OWN]]),
    ],
)
def test_what_is_left_of_table_two(leftover: Leftover, class_of: list[int], nodes: list[list[int]]) -> None:
    problem, trees = table_two()
    solution = Kactus(leftover=leftover).solve(Piece(problem, np.inf, 4, 2.0, 0, trees=trees))
    names = {int(c): place for place, c in enumerate(dict.fromkeys(solution.class_of.tolist())) if c >= 0}
    assert [names.get(int(c), -1) for c in solution.class_of] == class_of
    assert solution.nodes is not None
    assert solution.nodes[:2].tolist() == nodes
