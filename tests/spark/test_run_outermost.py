"""What `max_level` makes impossible is found before classes are formed, and never in vain."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from run_world import World
from solve_world import Signatures, codebook

from kanon_spark.engine.guarding import write_histograms
from kanon_spark.engine.outermost import capped_qis, hopeless, values_needed
from kanon_spark.errors import SuppressionError
from kanon_spark.privacy.base import Model
from kanon_spark.privacy.columns import Column
from kanon_spark.privacy.histograms import histograms_of
from kanon_spark.privacy.l_diversity import Distinct, Entropy, Recursive
from kanon_spark.privacy.t_closeness import TCloseness
from kanon_spark.signatures.sensitive import Judged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WIDTH = 5  # of the ages' first level
MODELS: list[Model | None] = [None, Distinct(2), Entropy(2.5), Recursive(4, 2), TCloseness(0.3)]
VALUES = [0, 2, 3, 2, 0]  # that no class can do without


@pytest.mark.parametrize("seed", range(len(MODELS)))
def test_groups_that_hold_no_class(spark: "SparkSession", seed: int) -> None:
    """Counted by hand; and what one process must suppress is no less."""
    rng = np.random.default_rng(seed)
    book = codebook(max_level=1)
    codes = np.unique(np.stack([rng.integers(0, c.tree.leaves, 16) for c in book.columns], axis=1), axis=0)
    persons = rng.integers(1, 3, len(codes))
    given = Signatures.of(codes, persons, persons, book, k=3)
    ills = rng.choice(3, len(codes), p=[0.8, 0.1, 0.1]).astype(np.int32)
    frame, model = given.frame, MODELS[seed]
    if model is not None:
        column = Column("ill", np.bincount(ills, persons, 3).astype(np.int64))
        units = np.arange(len(codes))
        histograms = histograms_of(units, ills[:, None], persons, units=len(codes), persons=persons)
        frame = frame.assign(sensitive=write_histograms(histograms))
        judged = Judged((column,), {"ill": (model,)}, (column.counts,))
        given = Signatures(frame, replace(given.solver, judged=judged, demands=judged.demands, suppressible=10**6))

    lost = []
    for group in np.unique(codes[:, 0] // WIDTH):
        members = codes[:, 0] // WIDTH == group
        if persons[members].sum() < 3 or len(set(ills[members])) < VALUES[seed]:
            lost.append(int(persons[members].sum()))
    capped = capped_qis(given.solver.forest)
    assert capped == [0]
    demands = None if given.solver.judged is None else values_needed(given.solver.judged)
    assert hopeless(given.solver, spark.createDataFrame(frame), capped, demands) == (len(lost), sum(lost))
    entries = given.solver.solve_whole(frame)[0]
    assert entries[entries["class_id"] < 0]["persons"].sum() >= sum(lost)
    assert sum(lost) > 0


def test_tops_are_the_highest_that_may_be_published() -> None:
    book = codebook(max_level=2)
    codes = np.array([[0, 0, 0], [3, 0, 0], [9, 1, 1], [22, 2, 1]])
    forest = Signatures.of(codes, np.ones(4), np.ones(4), book, k=2).solver.forest
    top = forest.highest[:4]
    assert top[0] == top[1] == top[2] != top[3]  # decades
    assert np.isfinite(forest.loss[top]).all()
    root = int(forest.start[2]) - 1
    first = int(forest.start[1])
    assert forest.highest[first : first + 3].tolist() == [root] * 3


@pytest.mark.parametrize(("k", "model", "told"), [(2, {"l_diversity": 2}, "values"), (13, {}, "fewer than k")])
def test_a_run_ends_before_it_solves(
    spark: "SparkSession", tmp_path: Path, k: int, model: dict[str, Any], told: str
) -> None:
    """Everybody in his forties has the same illness, and they are twelve."""
    world = World(spark, tmp_path)
    rows = [(20 + n % 10, f"ill{n % 3}") for n in range(30)] + [(40 + n % 10, "ill0") for n in range(12)]
    table = spark.createDataFrame(rows, "age int, ill string")
    qis = {"age": {"hierarchy": {"interval": {"widths": [10]}}, "max_level": 1}}
    columns = {"sensitive": {"ill": model}, "other": "error"}
    for most, passes in ((0.25, False), (0.3, True)):
        job = world.job(qis, k=k, source=None, columns=columns, privacy={"max_suppression": most})
        if passes:
            assert world.run(job, table).manifest["rows"]["suppressed"] == 12
            continue
        with pytest.raises(SuppressionError, match=rf"at least 12 of 42 rows .* 10 may be.*{told}") as caught:
            world.run(job, table)
        assert caught.value.where == "privacy.max_suppression"
        assert "solve" not in world.stages and not world.sink.exists()


CAPPED = {"age": {"hierarchy": {"interval": {"widths": [5, 20]}}}, "sex": {"hierarchy": "flat", "max_level": 0}}


def with_hearts(spark: "SparkSession", ages: tuple[int, ...]) -> "DataFrame":
    """Men and women of 22 with an illness of the lung, and some who are older with one of the heart."""
    rows = [(22, sex, "lung") for sex in "fm" for _ in range(12)]
    rows += [(age, sex, "heart") for sex in "fm" for age in ages for _ in range(5)]
    return spark.createDataFrame(rows, "age int, sex string, ill string")


@pytest.mark.parametrize("method", ["lattice", "kmember", "prgain"])
def test_each_side_of_a_cap_takes_in_what_it_needs(spark: "SparkSession", tmp_path: Path, method: str) -> None:
    """No single class of the heart outweighs those of the lung; all of one sex together do."""
    world = World(spark, tmp_path)
    columns = {"sensitive": {"ill": {"alpha": {"alpha": 0.5, "values": ["lung"]}}}}
    job = world.job(CAPPED, k=5, source=None, columns=columns, method={"name": method})
    release = world.run(job, with_hearts(spark, (40, 45, 50, 55)))
    assert release.manifest["rows"]["released"] == 64
    assert release.manifest["privacy"]["alpha(ill)"]["achieved"] <= 0.5


def test_a_demand_that_a_cap_makes_impossible_is_explained(spark: "SparkSession", tmp_path: Path) -> None:
    world = World(spark, tmp_path)
    columns = {"sensitive": {"ill": {"alpha": {"alpha": 0.5, "values": ["lung"]}}}}
    job = world.job(CAPPED, k=5, source=None, columns=columns)
    table = with_hearts(spark, (40, 45, 50, 55)).unionAll(spark.createDataFrame([(60, "f", "lung")] * 9))
    with pytest.raises(SuppressionError, match=r"max_level allows \(sex\).* 1 break .*\(.*alpha") as caught:
        world.run(job, table)
    assert "solve" not in world.stages
    assert caught.value.exit_code == 4
