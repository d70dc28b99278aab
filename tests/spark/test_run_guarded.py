"""Top-down and full-domain methods under demands beyond k: Spark forms the classes of one process."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from guarded_world import solved_here, with_demands
from random_seeds import seeds
from solve_world import Signatures, classes_of
from test_run_full_domain import both_counts
from test_run_kactus import random_table
from test_run_mondrian import random_signatures

from kanon_spark.engine import full_domain, level_counts
from kanon_spark.engine.full_domain import solve_full_domain
from kanon_spark.engine.guarding import merged_histograms, write_histograms
from kanon_spark.engine.kactus import solve_kactus
from kanon_spark.engine.solving import Solved
from kanon_spark.engine.stages import RunContext
from kanon_spark.engine.top_down import solve_top_down
from kanon_spark.methods.base import FullDomainMethod
from kanon_spark.methods.datafly import Datafly
from kanon_spark.methods.incognito import Incognito
from kanon_spark.methods.kactus import Kactus
from kanon_spark.methods.mondrian import Mondrian
from kanon_spark.methods.prgain import PrGain
from kanon_spark.signatures.histograms import read_histograms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def folder(tmp_path: Path) -> Callable[[str], str]:
    return lambda name: str(tmp_path / name)


def assert_alike(given: Signatures, solved: Solved) -> None:
    """Good classes, the same as in one process, which publish the same."""
    entries = solved.entries.toPandas()
    here, good = solved_here(given)
    assert good.all()
    assert set(classes_of(entries).values()) == set(classes_of(here).values())
    told = [name for name in here.columns if name not in {"class_id", "bound", "sensitive"}]
    mine, theirs = (each.sort_values("h").reset_index(drop=True)[told] for each in (here, entries))
    pd.testing.assert_frame_equal(mine, theirs, check_dtype=False)


@pytest.mark.parametrize("seed", [0, 2, 4])
def test_mondrian_cuts_alike(spark: "SparkSession", folder: Callable[[str], str], seed: int) -> None:
    given = with_demands(random_signatures(seed), seed)
    solved = solve_top_down(
        RunContext(spark),
        given.solver,
        Mondrian(),
        spark.createDataFrame(given.frame.sample(frac=1.0, random_state=1)),
        count=len(given.frame),
        block_size=len(given.frame) // 3,
        folder=folder,
        bound="none",
    )
    assert_alike(given, solved)


@pytest.mark.parametrize(
    "seed", [0, 3, 4, 9], ids=["all is released", "suppressed", "single", "none can take the rest"]
)
def test_kactus_prunes_alike(spark: "SparkSession", folder: Callable[[str], str], seed: int) -> None:
    method = Kactus(leftover="suppress" if seed == 3 else "join", dimension="single" if seed == 4 else "multi")
    given = with_demands(random_table(seed, method), seed)
    solved = solve_kactus(
        RunContext(spark),
        given.solver,
        method,
        spark.createDataFrame(given.frame),
        count=len(given.frame),
        block_size=max(1, len(given.frame) // 3),
        folder=folder,
        bound="none",
    )
    assert_alike(given, solved)


CASES: list[tuple[FullDomainMethod, bool]] = [
    (PrGain("join"), False),
    (PrGain("join"), True),
    (Datafly(0.2), False),
    (PrGain("suppress", 1), True),
    (PrGain("join"), False),
]


@pytest.mark.parametrize("seed", seeds(len(CASES), always=3))
def test_full_domain_methods_release_alike(
    spark: "SparkSession", folder: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """In bins and passes of few signatures; some are counted on Spark to the end."""
    monkeypatch.setattr(full_domain, "BLOCK_SIZE", 40)
    monkeypatch.setattr(full_domain, "JOIN_LIMIT", 20)
    method, counted = CASES[seed]
    if counted:
        monkeypatch.setattr(level_counts, "HELD_LONGS", 0)
    given = with_demands(Signatures.random(seed, size=90, k=3 + seed % 3, with_sets=bool(seed % 2)), seed)
    given = replace(given, solver=replace(given.solver, method=method))
    solved = solve_full_domain(
        RunContext(spark),
        given.solver,
        method,
        spark.createDataFrame(given.frame.sample(frac=1.0, random_state=1)),
        count=len(given.frame),
        folder=folder,
        bound="none",
    )
    assert_alike(given, solved)


@pytest.mark.parametrize("seed", range(2))
def test_counts_agree(
    spark: "SparkSession", folder: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(level_counts, "HELD_GROUPS", 0 if seed else 10)
    given = with_demands(Signatures.random(seed, size=60, k=3, with_sets=False), seed)
    here, there = both_counts(spark, given, folder)
    there = replace(there, demands=given.solver.demands)
    vectors = [(0, 0), (1, 1), (2, 1), here.scope.heights]
    assert there.tally(vectors) == here.tally(vectors)
    assert there.by_k_alone().tally(vectors) == here.by_k_alone().tally(vectors)
    assert here.tally(vectors) != here.by_k_alone().tally(vectors)
    mine, theirs = here.without((1, 1)), there.without((1, 1))
    assert theirs.persons == mine.persons
    assert theirs.tally(vectors[1:]) == mine.tally(vectors[1:])
    if seed == 1:
        assert Incognito(0.3).choose(there) == Incognito(0.3).choose(here)


def test_histograms_are_added_up(spark: "SparkSession") -> None:
    given = with_demands(Signatures.random(3, size=50, k=2), 3)
    frame = given.frame.assign(part=np.arange(len(given.frame)) % 7)
    # One group holds nothing at all.
    frame.loc[len(frame)] = frame.iloc[0].to_dict() | {"part": 7, "persons": 0, "sensitive": np.zeros(0, np.int64)}
    found = merged_histograms(spark.createDataFrame(frame), ["part"]).toPandas().sort_values("part")
    own = given.solver.guard(frame).merged(frame["part"].to_numpy(np.int64), 8).histograms
    summed = read_histograms(found, columns=2)
    for mine, theirs in zip(own, summed, strict=True):
        assert np.array_equal(mine, theirs)
    assert found["size"].tolist() == np.bincount(frame["part"]).tolist()
    again = read_histograms(pd.DataFrame({"persons": own.persons, "sensitive": write_histograms(own)}), columns=2)
    assert all(np.array_equal(one, two) for one, two in zip(own, again, strict=True))
