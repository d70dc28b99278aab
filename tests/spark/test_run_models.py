"""Every method under every privacy model: whole runs of one table, verified, and judged a second time by pycanon.

Each sensitive column of the table has a model of its own, so that two runs of a method, one in one process and one over
blocks, ask all of them.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from models_world import HALVES, HIERARCHIES, METHODS, MODELS, PLACES, RANGES, SHAPES, SIZE, K, draw, fits
from run_world import World, multiset

from kanon_spark.errors import DataError, GuaranteeError, MissingInputError, RequestError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def world(spark: "SparkSession", tmp_path: Any) -> World:
    made = World(spark, tmp_path)
    made.write("places.csv", *PLACES)
    made.save(spark.createDataFrame(draw()))
    return made


def ask(world: World, method: str, names: list[str], **execution: Any) -> Any:
    options: dict[str, Any] = {"name": method, **({"target": "sex"} if method == "kactus" else {})}
    sensitive = {name: model if name in names else {} for name, model in MODELS.items()}
    privacy = {"max_suppression": 0.5 if method in {"datafly", "incognito"} else 0.1}
    quasi = {name: spec for name, spec in METHODS[method].items() if name != options.get("target")}
    columns = {"sensitive": {**sensitive, **({"sex": {}} if method == "kactus" else {})}, "other": "keep"}
    return world.job(quasi, k=K, columns=columns, privacy=privacy, method=options, execution=execution)


# Every pair of a method and a model is tried each time; all of them over blocks, too, with --slow.
CASES = [
    pytest.param(method, half, blocks, id=f"{method}, {half + 1}, {'blocks' if blocks else 'one process'}", marks=marks)
    for method in METHODS
    for half in (0, 1)
    for blocks in (False, True)
    for marks in [[] if blocks == (method in SHAPES and half == 1) else [pytest.mark.slow]]
]


@pytest.mark.parametrize(("method", "half", "blocks"), CASES)
def test_every_method_keeps_every_model(world: World, method: str, half: int, blocks: bool) -> None:
    execution = {"block_size": 60, "local_limit": 0, "stitch": "local"} if blocks else {}
    names = HALVES[half]
    release = world.run(ask(world, method, names, **execution))
    models = {name: each for name, each in release.manifest["privacy"].items() if "(" in name}
    assert len(models) == len(names)
    assert all(each["passed"] for each in models.values())
    qi = release.manifest["columns"]["qi"]
    judge_by_pycanon(release.table.toPandas(), qi, names)

    # Nothing is lost: what is not released is counted as suppressed, and nothing stands twice.
    rows = release.manifest["rows"]
    assert rows["released"] + rows["suppressed"] == rows["input"] == SIZE
    numbers = [row["number"] for row in release.table.select("number").collect()]
    assert len(set(numbers)) == len(numbers) == rows["released"]
    source = draw().set_index("number")[list(MODELS)]
    kept = release.table.toPandas().set_index("number")[list(MODELS)]
    pd.testing.assert_frame_equal(kept.sort_index(), source.loc[sorted(numbers)], check_dtype=False)


def judge_by_pycanon(rows: pd.DataFrame, qi: list[str], names: list[str]) -> None:
    """On the models that pycanon defines as we do (`test_verify_models.py` says where it differs)."""
    anonymity = pytest.importorskip("pycanon.anonymity")
    rows = rows.fillna({name: "<null>" for name in qi})

    def found(function: str, column: str) -> Any:
        return getattr(anonymity, function)(rows, qi, [column])

    assert anonymity.k_anonymity(rows, qi) >= K
    checks: dict[str, Callable[[], bool]] = {
        "distinct": lambda: found("l_diversity", "distinct") >= 3,
        "entropy": lambda: found("entropy_l_diversity", "entropy") >= 2,  # it rounds down
        "equal": lambda: found("t_closeness", "equal") <= 0.35 + 1e-6,
        "ordered": lambda: found("t_closeness", "ordered") <= 0.3 + 1e-6,
        "alpha": lambda: found("alpha_k_anonymity", "alpha")[0] <= 0.6 + 1e-6,
        "beta": lambda: found("basic_beta_likeness", "beta") <= 1.2 + 1e-6,
        "delta": lambda: found("delta_disclosure", "delta") < 1.6,
        "recursive": lambda: all(_recursive(group["recursive"]) for _, group in rows.groupby(qi)),
        "named": lambda: all((group["named"] == "b").mean() <= 0.5 + 1e-9 for _, group in rows.groupby(qi)),
        "enhanced": lambda: all(_enhanced(group["enhanced"], rows["enhanced"]) for _, group in rows.groupby(qi)),
        "tree": lambda: all(_near(group["tree"], rows["tree"]) for _, group in rows.groupby(qi)),
    }
    for name in names:
        assert checks[name](), name


def _recursive(values: "pd.Series[Any]") -> bool:
    counts = sorted(values.value_counts(), reverse=True)
    return bool(counts[0] < 2.5 * sum(counts[1:]))


def _enhanced(values: "pd.Series[Any]", whole: "pd.Series[Any]") -> bool:
    shares = whole.value_counts(normalize=True)
    rises = values.value_counts(normalize=True) / shares - 1
    return all(rise <= min(1.5, -math.log(shares[value])) + 1e-9 for value, rise in rises.dropna().items())


def _near(values: "pd.Series[Any]", whole: "pd.Series[Any]") -> bool:
    """The hierarchical distance, level by level."""
    levels = [{line.split(";")[0]: line.split(";")[level] for line in PLACES} for level in range(2)]
    moved = 0.0
    for names in levels:
        here, all_ = (part.map(names).value_counts(normalize=True) for part in (values, whole))
        moved += float((here.reindex(all_.index, fill_value=0.0) - all_).abs().sum()) / 2
    return moved / len(levels) <= 0.35 + 1e-9


def test_without_models_some_of_them_break(world: World) -> None:
    """The table is one on which the demands have to be enforced."""
    release = world.run(world.job(HIERARCHIES, k=K, columns={"sensitive": list(MODELS), "other": "keep"}))
    with pytest.raises(AssertionError):
        judge_by_pycanon(release.table.toPandas(), list(RANGES), list(MODELS))


def test_suppressed_rows_change_what_the_rest_is_held_against(world: World, spark: "SparkSession") -> None:
    """One value stands almost alone: its rows are suppressed, and t holds for the distribution of the others."""
    table = draw(3)[["age", "zip", "sex", "number"]]
    table["ill"] = np.where(np.arange(SIZE) < 30, "rare", np.where(np.arange(SIZE) % 2, "a", "b"))
    table.loc[table["ill"] == "rare", ["age", "zip"]] = [59, "999"]
    world.save(spark.createDataFrame(table))
    quasi = {**HIERARCHIES, "zip": {"hierarchy": {"prefix": {"keep": [2, 1]}}, "max_level": 1}}
    for execution in ({}, {"block_size": 50, "local_limit": 0, "stitch": "local"}):
        job = world.job(
            quasi,
            k=K,
            columns={"sensitive": ["ill"], "other": "keep"},
            privacy={"t_closeness": 0.2, "max_suppression": 0.1},
            method={"name": "lattice"},
            execution=execution,
            output={"suppressed_rows": "star"},  # in vain: as a part of the release they would change it
        )
        release = world.run(job)
        assert any("held against the distribution" in text for text in release.manifest["warnings"])
        assert release.manifest["rows"]["suppressed"] == 30
        assert release.manifest["privacy"]["t_closeness(ill)"]["passed"]
        kept = release.table.toPandas()
        shares = kept["ill"].value_counts(normalize=True)
        for _, group in kept.groupby(list(RANGES), dropna=False):
            here = group["ill"].value_counts(normalize=True).reindex(shares.index, fill_value=0.0)
            assert (here - shares).abs().sum() / 2 <= 0.2 + 1e-9


def test_persons_count_not_rows(world: World, spark: "SparkSession") -> None:
    """Each has two illnesses at one place: a class may hold many values, and still one that nearly all of it has.

    And one who comes to every place with the same illness is one person in each class, however often he is counted.
    """
    rng = np.random.default_rng(1)
    two = [rng.choice(list("abcdef"), 2, replace=False, p=[0.35, 0.2, 0.15, 0.1, 0.1, 0.1]) for _ in range(80)]
    places = draw(5)[["age", "zip", "sex"]].to_numpy().tolist()
    rows = [(*places[person], f"p{person}", ill) for person in range(80) for ill in two[person]]
    rows += [(*place, "everywhere", "a") for place in places[80:]]
    table = pd.DataFrame(rows, columns=["age", "zip", "sex", "who", "ill"])
    table["number"] = np.arange(len(table))
    world.save(spark.createDataFrame(table))
    assert (table["ill"] == "a").mean() > 0.7
    release = world.run(
        world.job(
            HIERARCHIES,
            k=K,
            columns={"sensitive": ["ill"], "other": "keep"},
            privacy={"unit": "who", "alpha": 0.7},
            method={"name": "lattice"},
        )
    )
    shown = release.table.toPandas()
    assert "rejudge" in world.stages and "who" not in shown
    shown["who"] = table.set_index("number")["who"].loc[shown["number"]].to_numpy()
    worst = 0.0
    for _, group in shown.groupby(list(RANGES)):
        members = group["who"].nunique()
        assert members >= K
        worst = max(worst, *(part["who"].nunique() / members for _, part in group.groupby("ill")))
    assert worst <= 0.7
    assert release.manifest["privacy"]["alpha(ill)"]["achieved"] == pytest.approx(worst)


@pytest.mark.parametrize("wish", ["wish", {"rule": "CASE WHEN age >= 55 THEN 20 END"}], ids=["column", "rule"])
def test_each_person_gets_its_own_k(world: World, spark: "SparkSession", wish: Any) -> None:
    table = draw(2)[["age", "zip", "sex", "number"]]
    table["wish"] = pd.array([20 if age >= 55 else None for age in table["age"]], dtype="Int64")
    schema = "age int, zip string, sex string, number int, wish int"
    records = [
        (int(age), code, sex, int(number), None if own is pd.NA else int(own))
        for age, code, sex, number, own in table.itertuples(index=False)
    ]
    world.save(spark.createDataFrame(records, schema))
    job = world.job(
        HIERARCHIES, k=K, privacy={"personal_k": wish}, columns={"other": "keep" if wish != "wish" else "drop"}
    )
    release = world.run(job)
    assert ("wish" in release.table.columns) == (wish != "wish")
    if "number" not in release.table.columns:
        (found,) = (each for name, each in release.manifest["privacy"].items() if name.startswith("personal_k"))
        assert found["passed"]
        return
    asked = table.set_index("number")["wish"]
    for _, group in release.table.toPandas().groupby(list(RANGES)):
        assert len(group) >= max(K, asked[group["number"]].fillna(0).max())


@pytest.mark.parametrize("unit", [None, "who"])
def test_k_map_counts_the_population(world: World, spark: "SparkSession", unit: str | None) -> None:
    """A person of the population who moved three times still is one for whatever fits several of his rows."""
    method = "kmember" if unit is None else "lattice"
    everybody = draw(2)[list(RANGES)].assign(who=[f"p{i // 4}" for i in range(SIZE)])
    everybody["age"] = everybody.groupby("who")["age"].transform("min") + np.arange(SIZE) % 4
    world.save(spark.createDataFrame(everybody.drop_duplicates("who") if unit else everybody.drop(columns="who")))
    world.save(spark.createDataFrame(everybody), "population")
    privacy = {"k_map": {"k": 12, "path": "data/population"}, **({"unit": unit} if unit else {})}
    release = world.run(world.job(METHODS[method], k=2, privacy=privacy, method={"name": method}))
    people = list(everybody.itertuples(index=False))

    def fitting(row: Any) -> int:
        found = [who[-1] for who in people if all(fits(*pair) for pair in zip(row, who[:-1], strict=True))]
        return len(found) if unit is None else len(set(found))

    fewest = min(fitting(row) for row in multiset(release.table))
    assert fewest >= 12
    assert release.manifest["privacy"]["k_map"]["achieved"] == fewest


@pytest.mark.parametrize("method", ["lattice", "mondrian"])
def test_sensitive_columns_may_have_thousands_of_values(world: World, spark: "SparkSession", method: str) -> None:
    """Ten thousand values, a few of them frequent, over blocks."""
    rng = np.random.default_rng(4)
    size, values = 24_000, 10_000
    table = pd.DataFrame(
        {
            "age": rng.integers(20, 60, size),
            "zip": rng.choice(["110", "127", "201"], size),
            "sex": rng.choice(["f", "m"], size),
        }
    )
    code = np.concatenate([np.arange(values), rng.geometric(0.15, size - values) % values])
    table["ill"] = rng.permutation(code).astype(str)
    world.save(spark.createDataFrame(table))
    job = world.job(
        METHODS[method],
        k=K,
        columns={"sensitive": {"ill": {"l_diversity": {"l": 30, "kind": "entropy"}, "alpha": 0.2}}, "other": "drop"},
        method={"name": method},
        execution={"block_size": 60, "local_limit": 0, "stitch": "local"},
    )
    release = world.run(job)
    assert release.manifest["privacy"]["l_diversity(ill)"]["passed"]
    kept = release.table.toPandas()
    assert kept["ill"].nunique() == values
    for _, group in kept.groupby(list(RANGES)):
        shares = group["ill"].value_counts(normalize=True)
        assert -(shares * np.log(shares)).sum() >= math.log(30) - 1e-9
        assert shares.max() <= 0.2 + 1e-9


def test_impossible_demands_are_refused_before_the_work(world: World) -> None:
    for model, words in (({"l_diversity": 5}, "only 4 values"), ({"alpha": 0.2}, "one single class")):
        job = world.job(HIERARCHIES, columns={"sensitive": {"distinct": model}, "other": "drop"})
        with pytest.raises(DataError, match=words):
            world.run(job)
        assert "solve" not in world.stages
        assert not world.sink.exists()
    for place, k, kind in (("table", SIZE + 1, DataError), ("nowhere", 5, MissingInputError)):
        with pytest.raises(kind) as caught:
            world.run(world.job(HIERARCHIES, privacy={"k_map": {"k": k, "path": f"data/{place}"}}))
        assert (caught.value.where or "").startswith("privacy.k_map")
        assert "signatures" not in world.stages


def test_a_sensitive_hierarchy_that_misses_values(world: World) -> None:
    world.write("places.csv", *PLACES[:3])
    job = world.job(HIERARCHIES, columns={"sensitive": {"tree": MODELS["tree"]}, "other": "drop"})
    with pytest.raises(DataError, match="tree: 1 distinct value") as caught:
        world.run(job)
    assert caught.value.where == "columns.sensitive"


def test_more_suppression_than_allowed_publishes_nothing(world: World, spark: "SparkSession") -> None:
    table = draw(3)[["age", "zip", "sex"]]
    table["ill"] = np.where(np.arange(SIZE) < 30, "rare", "a")
    table.loc[table["ill"] == "rare", "zip"] = "999"
    world.save(spark.createDataFrame(table))
    quasi = {**HIERARCHIES, "zip": {"hierarchy": {"prefix": {"keep": [2, 1]}}, "max_level": 1}}
    columns = {"sensitive": ["ill"], "other": "keep"}
    job = world.job(quasi, columns=columns, privacy={"t_closeness": 0.2, "max_suppression": 0.01})
    with pytest.raises(GuaranteeError, match="30 of 400 rows"):
        world.run(job)
    assert not world.sink.exists()


def test_suppressed_rows_that_break_a_model_are_not_shown_as_stars(world: World, spark: "SparkSession") -> None:
    table = draw(3)[["age", "zip", "sex"]]
    table["ill"] = np.where(np.arange(SIZE) < 30, "rare", np.where(np.arange(SIZE) % 2, "a", "b"))
    table.loc[table["ill"] == "rare", "zip"] = "999"
    world.save(spark.createDataFrame(table))
    quasi = {**HIERARCHIES, "zip": {"hierarchy": {"prefix": {"keep": [2, 1]}}, "max_level": 1}}
    job = world.job(
        quasi,
        k=K,
        columns={"sensitive": ["ill"], "other": "keep"},
        privacy={"l_diversity": 2, "max_suppression": 0.1},
        output={"suppressed_rows": "star"},
    )
    manifest = world.run(job).manifest
    assert (manifest["rows"]["suppressed"], manifest["rows"]["published"]) == (30, SIZE - 30)
    assert any("as a class of their own they would break" in text for text in manifest["warnings"])


def test_wishes_are_whole_numbers(world: World) -> None:
    with pytest.raises(RequestError, match="whole number"):
        world.run(world.job(HIERARCHIES, privacy={"personal_k": {"rule": "CONCAT(zip, 'x')"}}))
