"""`kactus` on Spark: pruned above the tasks' regions as in one process, and whole runs, verified."""

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from random_seeds import seeds
from run_world import World, in_range, in_set, published_by_row, smallest_class, untrue_cells
from solve_world import Signatures, classes_of

from kanon_spark.config.models import IntervalSpec, PrefixSpec
from kanon_spark.engine.kactus import solve_kactus
from kanon_spark.engine.stages import RunContext
from kanon_spark.engine.verification import verify_with_config
from kanon_spark.errors import GuaranteeError, KanonError
from kanon_spark.hierarchy.build import build_tree
from kanon_spark.hierarchy.tree import Domain
from kanon_spark.methods.kactus import Kactus
from kanon_spark.recoding import publish
from kanon_spark.signatures.codebook import Codebook, QiColumn
from kanon_spark.signatures.forms import Form
from kanon_spark.signatures.labels import label_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Both ways agree


def codebook(*, mean: bool) -> Codebook:
    """Numbers without and with a hierarchy, words without and with one; some numbers are null."""
    form = Form(suppressed="?")

    def domain(kind: Any, values: list[str], *, null: bool = False) -> Domain:
        places = np.array([float(value) if kind != "text" else np.nan for value in values])
        return Domain(kind, tuple(values), places, np.ones(len(values), np.int64), has_null=null)

    columns = []
    for name, own, hierarchy in (
        ("age", domain("real", [f"{n / 4}" for n in range(20)], null=True), None),
        ("weight", domain("integer", [str(n) for n in range(12)]), IntervalSpec(widths=[2, 4])),
        ("job", domain("text", [f"job{n}" for n in range(5)]), None),
        ("zip", domain("text", [f"{a}{b}" for a in "12" for b in "012"]), PrefixSpec(keep=[1])),
    ):
        tree = build_tree(hierarchy, own, qi=name)
        publish: Any = "node" if hierarchy else "set" if own.kind == "text" else "range"
        positions = np.append(own.positions, [np.nan] * own.has_null)
        shaped = replace(form, mean=mean and publish == "range")
        texts = tree.labels[: tree.leaves]
        columns.append(QiColumn(name, own.kind, 1.0, tree, publish, texts, positions, static=False, form=shaped))
    return Codebook(tuple(columns))


def random_table(seed: int, method: Kactus) -> Signatures:
    """Signatures whose labels follow their values a little; some hold no person."""
    rng = np.random.default_rng(seed)
    book = codebook(mean=method.numeric == "mean")
    drawn = [rng.integers(0, column.tree.leaves, int(rng.integers(20, 260))) for column in book.columns]
    size = min(map(len, drawn))
    codes = np.unique(np.stack([each[:size] for each in drawn], axis=1), axis=0)
    rows = rng.integers(1, 4, len(codes))
    made = Signatures.of(codes, rows, np.minimum(rows, rng.integers(0, 4, len(codes))), book, k=int(rng.integers(2, 9)))
    share = np.clip(codes.sum(axis=1) / codes.sum(axis=1).max() + rng.normal(0, 0.3, len(codes)), 0, 1)
    ones = rng.binomial(rows, share)
    frame = made.frame.assign(**{label_name(0): rows - ones, label_name(1): ones})
    return Signatures(frame, replace(made.solver, method=method, labels=2))


@pytest.mark.parametrize("seed", seeds(20, always=3))
def test_spark_prunes_like_one_process(spark: "SparkSession", tmp_path: Path, seed: int) -> None:
    method = Kactus(
        leftover="suppress" if seed % 5 == 4 else "join",
        dimension="single" if seed % 4 == 3 else "multi",
        numeric="mean" if seed % 3 == 2 else "range",
        criterion="gini" if seed % 2 else "gain_ratio",
    )
    table = random_table(seed, method)
    # One job per depth: few of them go deep.
    assert_agreement(spark, tmp_path, table, block_size=max(1, len(table.frame) // (12 if seed % 10 == 0 else 2)))


def test_nothing_may_be_left_for_the_driver(spark: "SparkSession", tmp_path: Path) -> None:
    """Two jobs, each cut by zip in its own region, where all of it is released."""
    book = codebook(mean=False)
    codes = np.array([[0, 0, job, zip_] for job in (0, 1) for zip_ in (0, 1)])
    counts = np.full(4, 3)
    made = Signatures.of(codes, counts, counts, book, k=3)
    frame = made.frame.assign(**{label_name(n): 3 * (np.arange(4) == n) for n in range(4)})
    table = Signatures(frame, replace(made.solver, method=Kactus(), labels=4))
    assert assert_agreement(spark, tmp_path, table, block_size=2)["class_id"].nunique() == 4


@pytest.mark.parametrize("block_size", [1, 2], ids=["a class of the driver", "a class of a task"])
def test_what_is_left_in_the_root_joins(spark: "SparkSession", tmp_path: Path, block_size: int) -> None:
    """The golden table two: both zips of one job are released, and the other job is left with too few persons."""
    codes = np.array([[0, 0, job, zip_] for job in (0, 1) for zip_ in (0, 1)])
    counts = np.array([3, 3, 1, 1])
    made = Signatures.of(codes, counts, counts, codebook(mean=False), k=3)
    labels = np.array([[3, 0, 0], [0, 3, 0], [0, 0, 1], [0, 0, 1]])
    frame = made.frame.assign(**{label_name(n): labels[:, n] for n in range(3)})
    table = Signatures(frame, replace(made.solver, method=Kactus(), labels=3))
    entries = assert_agreement(spark, tmp_path, table, block_size=block_size)
    assert set(classes_of(entries).values()) == {frozenset({0, 2, 3}), frozenset({1})}


def assert_agreement(spark: "SparkSession", folder: Path, table: Signatures, *, block_size: int) -> pd.DataFrame:
    """Both ways form the same classes, which publish the same; the entries."""
    method = table.solver.method
    assert isinstance(method, Kactus)
    alone, _ = table.solver.solve_whole(table.frame)
    solved = solve_kactus(
        RunContext(spark),
        table.solver,
        method,
        spark.createDataFrame(table.frame),
        count=len(table.frame),
        block_size=block_size,
        folder=lambda name: str(folder / name),
        bound="none",
    )
    assert solved.blocks > 1
    entries = solved.entries.toPandas()
    assert set(classes_of(entries).values()) == set(classes_of(alone).values())
    compared = [name for name in alone.columns if name not in {"class_id", "bound"}]
    left, right = (each.sort_values("h").reset_index(drop=True)[compared] for each in (alone, entries))
    pd.testing.assert_frame_equal(left, right, check_dtype=False)
    return entries


# Whole runs

SCHEMA = "id int, age int, job string, born date, sex string, zip string, ill string"


def people(spark: "SparkSession", count: int = 300) -> "DataFrame":
    """Numbers, dates and words, some of them null, and an illness that follows age and job."""
    rng = np.random.default_rng(5)
    rows = []
    for n in range(count):
        age, job = int(rng.integers(18, 70)), f"job{int(rng.geometric(0.4)) % 6}"
        born = date(2020, 1, 1) - timedelta(days=30 * int(rng.integers(0, 24)))
        ill = "yes" if (age > 40) != (job == "job1") and rng.random() < 0.9 else "no"
        known = None if rng.random() < 0.05 else age
        rows.append((n, known, job, born, "FM"[n % 2], f"{rng.choice(['12', '13', '20'])}{n % 3}", ill))
    return spark.createDataFrame(rows, SCHEMA)


def kactus_job(world: World, **options: Any) -> Any:
    world.write("sex.csv", "F;Person", "M;Person")
    qis = {
        "age": {},
        "job": {},
        "born": {},
        "sex": {"hierarchy": "sex.csv"},
        "zip": {"hierarchy": {"prefix": {"keep": [2]}}},
    }
    method = {"name": "kactus", "target": "ill", **options.pop("method", {})}
    return world.job(options.pop("qis", qis), k=4, method=method, **options)


def shown(row: Any, name: str) -> bool:
    return bool(row[name] != "?")


def test_ranges_and_marks_are_published_and_verified(spark: "SparkSession", tmp_path: Path) -> None:
    """Persons have three rows each, and regions are solved in tasks. A root reads `?`, whatever its file calls it."""
    world = World(spark, tmp_path)
    table = people(spark).selectExpr("*", "cast(id / 3 as int) as person")
    world.save(table)
    job = kactus_job(
        world,
        columns={"identifiers": ["person"]},
        privacy={"unit": "person"},
        execution={"block_size": 150, "local_limit": 0},
    )
    release = world.run(job)
    assert release.manifest["privacy"]["k"]["achieved"] >= 4
    assert (release.manifest["rows"]["released"], release.manifest["blocks"] > 1) == (300, True)
    raw, released = published_by_row(table, "id"), published_by_row(release.table, "id")
    truths = {"age": in_range, "job": in_set, "born": in_range, "sex": in_set, "zip": in_set}
    stars = {key: {name: "*" if row[name] == "?" else row[name] for name in truths} for key, row in released.items()}
    assert not untrue_cells(raw, stars, truths)
    assert {row["sex"] for row in released.values()} <= {"F", "M", "?"}
    for name in truths:
        assert any(shown(row, name) for row in released.values()) or name in {"born", "sex", "zip"}
        assert not all(shown(row, name) for row in released.values()), name
    assert verify_with_config(job, table=release.table, spark=spark).passed


def test_means_are_published_recomputed_and_said_to_be_means(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(spark, tmp_path)
    table = people(spark)
    world.save(table)
    job = kactus_job(world, method={"numeric": "mean"})
    release = world.run(job)
    names = ["age", "job", "born", "sex", "zip"]
    assert smallest_class(release.table, names) >= 4
    raw = published_by_row(table, "id")
    groups: dict[Any, list[Any]] = {}
    for key, row in published_by_row(release.table, "id").items():
        groups.setdefault(tuple(row[name] for name in names), []).append(raw[key]["age"])
    means = 0
    for (age, *_), values in groups.items():
        if age is None:
            assert set(values) == {None}
        elif age != "?":
            assert float(age) == pytest.approx(sum(values) / len(values))
            means += len(set(values)) > 1
    assert means > 0
    detail = next(check["detail"] for check in release.manifest["checks"] if check["name"] == "truth")
    assert "distinct cells that are no values: they are the means" in detail
    assert all(row["born"] is None or row["born"][0] in "?[2" for row in release.table.collect())
    assert verify_with_config(job, table=release.table, spark=spark).passed

    right = publish.mean_label
    monkeypatch.setattr(publish, "mean_label", lambda *given: str(float(right(*given)) + 1e-3))
    with pytest.raises(GuaranteeError, match=r"truth: classes that publish a number which is not the mean .* age"):
        world.run(job)


@pytest.mark.parametrize(
    ("method", "path", "words"),
    [
        ({"target": "il"}, "method.target", "did you mean 'ill'"),
        ({"target": "job"}, "method.target", "a quasi-identifier is generalized"),
        ({"target": None}, "method.target", "kactus needs the column"),
        ({"target": "id"}, "method.target", "more than 64 different values"),
        ({"numeric": "mean", "output": "bounds"}, "output.numeric", "beside which no other number may stand"),
    ],
)
def test_a_wrong_target_is_told(
    spark: "SparkSession", tmp_path: Path, method: dict[str, Any], path: str, words: str
) -> None:
    world = World(spark, tmp_path)
    output = {"numeric": method.pop("output", "label")}
    with pytest.raises(KanonError) as caught:
        world.run(kactus_job(world, qis=["age", "job"], method=method, output=output), people(spark))
    assert caught.value.exit_code == 2
    assert path in str(caught.value) and words in str(caught.value)
