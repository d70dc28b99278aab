"""`mondrian` cuts alike in one process and from counts that Spark makes; a whole run of mixed columns both ways."""

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from random_seeds import seeds
from run_world import (
    World,
    has_prefix,
    in_interval,
    in_range,
    in_set,
    multiset,
    published_by_row,
    smallest_class,
    untrue_cells,
)
from solve_world import Signatures, classes_of

from kanon_spark.config.models import QiSpec
from kanon_spark.engine.solving import Solved
from kanon_spark.engine.stages import RunContext
from kanon_spark.engine.top_down import count_marginals_in_spark, solve_top_down
from kanon_spark.hierarchy.tree import Domain
from kanon_spark.kernels.regions import count_marginals, grow_here
from kanon_spark.methods.mondrian import Mondrian
from kanon_spark.signatures.codebook import Codebook, QiColumn
from kanon_spark.signatures.qi_columns import built_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

INTERVALS = {"interval": {"widths": [5, 10, 20]}}
PREFIXES = {"prefix": {"keep": [2, 1]}}
ZIPS = [f"{a}{b}{c}" for a in "12" for b in "0123" for c in "012"]


def numbers(name: str, count: int, *, has_null: bool, **spec: Any) -> QiColumn:
    """A numeric QI."""
    texts, positions = tuple(map(str, range(count))), np.arange(count, dtype=float)
    domain = Domain("integer", texts, positions, np.ones(count, np.int64), has_null)
    return built_column(name, QiSpec(**spec), domain)


def words(name: str, texts: list[str], *, has_null: bool, **spec: Any) -> QiColumn:
    """A text QI."""
    domain = Domain("text", tuple(texts), np.full(len(texts), np.nan), np.ones(len(texts), np.int64), has_null)
    return built_column(name, QiSpec(**spec), domain)


def random_signatures(seed: int) -> Signatures:
    """Up to 120 signatures of one to four QIs of all kinds, with and without nulls and a forbidden root."""
    rng = np.random.default_rng(seed)
    offered = [
        numbers("born", 60, has_null=bool(rng.random() < 0.5)),
        words("job", [f"job{n}" for n in range(9)], has_null=bool(rng.random() < 0.5), weight=2),
        words("zip", ZIPS, has_null=True, hierarchy=PREFIXES),
        numbers("age", 40, has_null=False, hierarchy=INTERVALS, max_level=3 if rng.random() < 0.5 else None),
    ]
    chosen = sorted(rng.choice(4, size=int(rng.integers(1, 5)), replace=False).tolist())
    book = Codebook(tuple(offered[each] for each in chosen))
    # Small codes are drawn more often, so that some values are rare.
    drawn = [(rng.random(120) ** 2 * column.tree.leaves).astype(np.int32) for column in book.columns]
    codes = np.unique(np.stack(drawn, axis=1), axis=0)
    rows = rng.integers(1, 4, len(codes))
    persons = np.minimum(rows, rng.integers(0, 4, len(codes)))
    given = Signatures.of(codes, rows, persons, book, k=int(rng.integers(2, 6)))
    return replace(given, solver=replace(given.solver, method=Mondrian()))


def on_spark(
    spark: "SparkSession", folder: Path, given: Signatures, *, block_size: int, bound: str
) -> tuple[pd.DataFrame, Solved]:
    """The entries that Spark finds."""
    solved = solve_top_down(
        RunContext(spark),
        given.solver,
        Mondrian(),
        spark.createDataFrame(given.frame.sample(frac=1.0, random_state=1)),
        count=len(given.frame),
        block_size=block_size,
        folder=lambda name: str(folder / name),
        bound=bound,
    )
    return solved.entries.toPandas(), solved


def published(entries: pd.DataFrame) -> pd.DataFrame:
    """What the signatures publish, by their hash; how classes are numbered does not matter."""
    return entries.drop(columns=["class_id", "bound"]).sort_values("h").reset_index(drop=True)


@pytest.mark.parametrize("seed", seeds(20, always=3))
def test_spark_and_one_process_agree(spark: "SparkSession", tmp_path: Path, seed: int) -> None:
    given = random_signatures(seed)
    size = len(given.frame)
    block_size = size // 12 if seed % 10 == 0 else 2 * size // 3  # one job per depth: few of them go deep
    entries, solved = on_spark(spark, tmp_path, given, block_size=block_size, bound="none")
    alone = given.solver.solve(given.frame)
    assert set(classes_of(entries).values()) == set(classes_of(alone).values())
    pd.testing.assert_frame_equal(published(entries), published(alone), check_dtype=False, check_like=True)
    persons = entries[entries["class_id"] >= 0].groupby("class_id")["persons"].sum()
    assert (persons >= given.solver.k).all()
    assert (solved.blocks > 1) == (len(persons) > 1)
    assert (solved.bound_kind, entries["bound"].sum()) == ("none", 0)


def test_spark_counts_as_one_process_does(spark: "SparkSession") -> None:
    """Every region of a tree of cuts, rows per class label included."""
    given = random_signatures(6)
    rng = np.random.default_rng(6)
    frame = given.frame.assign(label_rows_0=rng.integers(0, 2, len(given.frame)))
    frame["label_rows_1"] = frame["rows"] - frame["label_rows_0"]
    solver = replace(given.solver, labels=2)
    problem = solver.problem(frame)
    regions, leaf_of = grow_here(problem, Mondrian().chooser(problem))
    wanted = regions.leaves[1:]
    assert len(wanted) > 3
    found = count_marginals_in_spark(solver, spark.createDataFrame(frame), regions, wanted)
    assert sorted(found) == sorted(wanted)
    for region in wanted:
        here = count_marginals(problem, np.flatnonzero(leaf_of == region))
        for name in ("start", "codes", "signatures", "persons", "rows", "labels"):
            assert np.array_equal(getattr(found[region], name), getattr(here, name)), name


def test_the_bound_per_block_is_below_that_of_the_whole(spark: "SparkSession", tmp_path: Path) -> None:
    given = random_signatures(3)
    entries, solved = on_spark(spark, tmp_path, given, block_size=30, bound="auto")
    frame = given.solver.in_order(given.frame)
    whole, kind = given.solver.bound(frame)
    by_block = given.solver.in_order(entries)["bound"].to_numpy()
    assert (kind, solved.bound_kind) == ("simple", "simple per block")
    assert (by_block <= whole + 1e-9).all()
    assert by_block.sum() > 0


QIS: dict[str, dict[str, Any]] = {
    "age": {},
    "born": {},
    "height": {"hierarchy": {"interval": {"widths": [10, 20]}}},
    "zip": {"hierarchy": PREFIXES},
    "job": {"weight": 2},
    "smokes": {},
}
TRUTHS = {"age": in_range, "born": in_range, "height": in_interval, "zip": has_prefix, "job": in_set, "smokes": in_set}


def people(spark: "SparkSession", count: int = 400) -> "DataFrame":
    """Numbers, dates, words and truths, some of them null."""
    rng = np.random.default_rng(11)
    rows = [
        (
            n,
            None if rng.random() < 0.02 else int(rng.integers(18, 70)),
            None if rng.random() < 0.1 else date(2000, 1, 1) + timedelta(days=int(rng.integers(0, 4000))),
            float(np.round(rng.normal(170, 12), 1)),
            ZIPS[int(rng.random() ** 2 * len(ZIPS))],
            None if rng.random() < 0.02 else f"job{int(rng.geometric(0.4))}",
            bool(rng.random() < 0.3),
        )
        for n in range(count)
    ]
    return spark.createDataFrame(
        rows, "id int, age int, born date, height double, zip string, job string, smokes boolean"
    )


def test_a_whole_run_of_mixed_columns_both_ways(spark: "SparkSession", tmp_path: Path) -> None:
    world = World(spark, tmp_path)
    table = people(spark)
    releases = []
    for execution in ({}, {"block_size": 60, "local_limit": 0}):
        release = world.run(world.job(QIS, k=4, sink=None, execution=execution, method="mondrian"), table)
        assert smallest_class(release.table, list(QIS)) >= 4
        assert (release.manifest["rows"]["released"], release.manifest["rows"]["suppressed"]) == (400, 0)
        source, released = (published_by_row(each, "id") for each in (table, release.table))
        assert not untrue_cells(source, released, TRUTHS)
        assert 0 < release.metrics["gcp_bound"] <= release.metrics["gcp"] < 0.6
        releases.append(release)
    alone, over_blocks = releases
    assert multiset(alone.table) == multiset(over_blocks.table)
    assert (alone.manifest["blocks"], alone.manifest["stitch"]["way"]) == (1, "one process")
    assert over_blocks.manifest["blocks"] > 1 and over_blocks.manifest["stitch"]["way"] == "top down"
    assert over_blocks.metrics["bound_kind"] == "simple per block"
