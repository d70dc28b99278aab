"""Metrics, held against the formulas written out row by row in plain Python."""

from collections import Counter

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from verify_world import QIS, World, make_world

from kanon_spark.measure import published_sizes, tally
from kanon_spark.measure.metrics import measure
from kanon_spark.verify.facts import ClassFacts
from kanon_spark.verify.persons import count_persons
from kanon_spark.verify.published import with_published

K = 4


@pytest.fixture(scope="module")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(spark, tmp_path_factory.mktemp("measured"), seed=5)


@pytest.fixture(scope="module")
def facts(world: World) -> ClassFacts:
    sizes = Counter(tuple(row[name] for name in QIS) for row in world.released)
    return ClassFacts.of(Counter(sizes.values()), k=K)


def losses_of(world: World) -> list[list[float]]:
    """Loss of every row of the source in every QI, by what its entry says, one list per row."""
    import numpy as np

    layout = world.evidence.node_layout
    out: list[list[float]] = []
    for entry in world.entries:
        nodes = layout.unpack(np.array([[entry[name] for name in layout.names("out")]], dtype=np.int64))[0]
        row = [world.codebook.columns[i].tree.loss[nodes[i]] for i in (0, 1)] + [entry["loss_2"], entry["loss_3"]]
        out += [[1.0] * 4 if entry["class_id"] < 0 else [float(loss) for loss in row]] * entry["rows"]
    return out


def test_metrics_are_the_formulas(world: World, facts: ClassFacts) -> None:
    found = measure(
        world.evidence.entries, world.codebook, count=len(world.entries), facts=facts, k=K, bound_kind="dual"
    )
    losses, weights = losses_of(world), [1.0, 2.0, 1.0, 0.5]
    n = world.rows
    assert len(losses) == n
    total = sum(w * loss for row in losses for w, loss in zip(weights, row, strict=True))
    assert found["total_il"] == pytest.approx(total)
    assert found["gcp"] == pytest.approx(total / (n * sum(weights)))
    assert found["gcp_bound"] == pytest.approx(0.125 / sum(weights))
    assert found["gcp_gap"] == pytest.approx(found["gcp"] / found["gcp_bound"] - 1)
    assert found["bound_kind"] == "dual"
    for place, name in enumerate(QIS):
        assert found["per_qi"][name]["ncp"] == pytest.approx(sum(row[place] for row in losses) / n)
    sizes = Counter(tuple(row[name] for name in QIS) for row in world.released).values()
    assert found["dm"] == sum(size**2 for size in sizes) + world.suppressed * n
    assert found["cavg"] == pytest.approx((n - world.suppressed) / (len(sizes) * K))


def test_rows_are_counted_by_level(world: World, facts: ClassFacts) -> None:
    found = measure(world.evidence.entries, world.codebook, count=len(world.entries), facts=facts, k=K)["per_qi"]
    level = {"age": lambda label: 2 if label == "*" else int(label.startswith("["))}
    level["home town"] = lambda label: 2 if label == "*" else int(label in ("North", "South"))
    for name in ("age", "home town"):
        expected = Counter(str(level[name](row[name])) for row in world.released)
        levels = dict(found[name]["levels"])
        assert levels.pop("suppressed") == world.suppressed
        assert levels == {str(place): expected[str(place)] for place in range(3)}
    kinds = {"job": "set", "pay.rate": "range"}
    for name, kind in kinds.items():
        assert set(found[name]["levels"]) == {"exact", kind, "suppressed"}
        assert sum(found[name]["levels"].values()) == world.rows
    exact = sum(row["job"] is None or (row["job"] != "*" and row["job"][-1:] != "}") for row in world.released)
    odd = sum(row["job"] == "{odd}" for row in world.released)
    assert found["job"]["levels"]["exact"] == exact + odd


def test_driver_and_workers_agree(world: World, facts: ClassFacts, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"count": len(world.entries), "facts": facts, "k": K, "bound_kind": "simple"}
    on_driver = measure(world.evidence.entries, world.codebook, **asked)
    monkeypatch.setattr(tally, "DRIVER_ENTRIES", 0)
    assert measure(world.evidence.entries.repartition(5, "h"), world.codebook, **asked) == on_driver


def test_published_classes_are_counted_without_the_release(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """In rows and in persons, by the driver (from a table or collected entries) and by the workers."""
    entries, codebook, count = world.evidence.entries, world.codebook, len(world.entries)
    tuples = Counter(tuple(row[name] for name in QIS) for row in world.released)
    rows = dict(Counter(tuples.values()))
    found = published_sizes.published_sizes(entries, codebook, count=count, pairs=world.pairs)
    assert found.rows == rows
    least = count_persons(world.pairs, with_published(world.evidence), star=False, width=len(QIS), k=K).least
    assert min(found.persons) == least
    assert sum(found.persons.values()) == len(tuples)
    assert published_sizes.published_sizes(entries.toPandas(), codebook, count=count).persons == rows
    monkeypatch.setattr(published_sizes, "DRIVER_ENTRIES", 0)
    spread = entries.repartition(5, "h")
    assert published_sizes.published_sizes(spread, codebook, count=count, pairs=world.pairs) == found
    nothing = entries.withColumn("class_id", F.lit(-1).cast("long")).toPandas()
    assert published_sizes.published_sizes(nothing, codebook, count=count).rows == {}


def test_no_bound_no_gap(world: World, facts: ClassFacts) -> None:
    none = measure(
        world.evidence.entries, world.codebook, count=len(world.entries), facts=facts, k=K, bound_kind="none"
    )
    assert none["gcp_bound"] is None
    assert none["gcp_gap"] is None
    zero = world.evidence.entries.withColumn("bound", F.lit(0.0))
    found = measure(zero, world.codebook, count=len(world.entries), facts=facts, k=K, bound_kind="simple")
    assert found["gcp_bound"] == 0.0
    assert found["gcp_gap"] is None


def test_everything_suppressed(world: World) -> None:
    gone = world.evidence.entries.withColumn("class_id", F.lit(-1).cast("long"))
    found = measure(gone, world.codebook, count=len(world.entries), facts=ClassFacts.of({}, k=K), k=K)
    assert found["gcp"] == 1.0
    assert found["cavg"] is None
    assert found["dm"] == world.rows**2
