"""Every method under what persons ask for themselves and what a population must hide; models over GraphFrames."""

from typing import TYPE_CHECKING, Any

import pytest
from models_world import METHODS, SHAPES, SIZE, draw, fits
from run_world import World

from kanon_spark.stitch.graph import missing_graphframes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

K, WISH, OLD, FITTING = 3, 12, 55, 9
BLOCKS = {"block_size": 60, "local_limit": 0, "stitch": "local"}


def run_wishes(world: World, spark: "SparkSession", method: str, execution: dict[str, Any]) -> None:
    """One release under both demands, judged from its rows and the population by their definitions."""
    table = draw(6)[["age", "zip", "sex", "number"]]
    people = draw(7)[["age", "zip", "sex"]]
    world.save(spark.createDataFrame(table))
    world.save(spark.createDataFrame(people), "people")
    target = {"target": "sex"} if method == "kactus" else {}
    quasi = {name: spec for name, spec in METHODS[method].items() if name != target.get("target")}
    most = 0.5 if method in {"datafly", "incognito"} else 0.1
    release = world.run(
        world.job(
            quasi,
            k=K,
            columns={"sensitive": ["sex"] if target else [], "other": "keep"},
            privacy={
                "personal_k": {"rule": f"CASE WHEN age >= {OLD} THEN {WISH} END"},
                "k_map": {"k": FITTING, "path": "data/people"},
                "max_suppression": most,
            },
            method={"name": method, **target},
            execution=execution,
        )
    )
    rows = release.manifest["rows"]
    shown = release.table.toPandas()
    assert rows["released"] + rows["suppressed"] == rows["input"] == SIZE
    assert shown["number"].nunique() == len(shown) == rows["released"]
    assert (release.manifest["stitch"]["way"] == "one process") == (not execution)

    asked = table.set_index("number")["age"].ge(OLD).map({True: WISH, False: K})
    population = [tuple(person) for person in people[list(quasi)].itertuples(index=False)]
    fewest = len(people)
    for label, members in shown.groupby(list(quasi)):
        assert len(members) >= asked[members["number"]].max()
        fewest = min(fewest, sum(all(map(fits, label, person)) for person in population))
    assert fewest >= FITTING
    assert release.manifest["privacy"]["k_map"]["achieved"] == fewest


@pytest.mark.parametrize("method", list(METHODS))
def test_every_method_keeps_wishes_and_k_map(world: World, spark: "SparkSession", method: str) -> None:
    run_wishes(world, spark, method, {})


@pytest.mark.parametrize(
    "method", [each if each in SHAPES else pytest.param(each, marks=pytest.mark.slow) for each in METHODS]
)
def test_every_method_keeps_them_over_blocks(world: World, spark: "SparkSession", method: str) -> None:
    run_wishes(world, spark, method, BLOCKS)


@pytest.mark.parametrize(
    "method", ["lattice", *[pytest.param(each, marks=pytest.mark.slow) for each in ("mst", "kmember")]]
)
def test_models_hold_where_graphframes_gathers_what_is_open(world: World, spark: "SparkSession", method: str) -> None:
    if missing_graphframes(spark):
        pytest.skip("no GraphFrames jar here")
    table = draw(8)[["age", "zip", "sex", "distinct", "equal", "number"]]
    world.save(spark.createDataFrame(table))
    release = world.run(
        world.job(
            METHODS[method],
            k=5,
            columns={"sensitive": {"distinct": {"l_diversity": 3}, "equal": {"t_closeness": 0.35}}, "other": "keep"},
            privacy={"max_suppression": 0.1},
            method={"name": method},
            execution={**BLOCKS, "stitch": "graphframes"},
        )
    )
    assert release.manifest["stitch"]["graphframes_calls"] > 0
    shown = release.table.toPandas()
    shares = shown["equal"].value_counts(normalize=True)
    for _, members in shown.groupby(["age", "zip", "sex"]):
        here = members["equal"].value_counts(normalize=True).reindex(shares.index, fill_value=0.0)
        assert len(members) >= 5
        assert members["distinct"].nunique() >= 3
        assert (here - shares).abs().sum() / 2 <= 0.35 + 1e-9


@pytest.fixture
def world(spark: "SparkSession", tmp_path: Any) -> World:
    return World(spark, tmp_path)
