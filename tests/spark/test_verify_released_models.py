"""Privacy models on a release beside its recoding: by its rows, by the persons behind them, by their own wishes."""

import math
from collections import Counter, defaultdict
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from verify_world import QIS, World, make_world

from kanon_spark.config.models import SensitiveSpec
from kanon_spark.errors import InternalError
from kanon_spark.verify.asked import Asked, Population
from kanon_spark.verify.counting import value_column
from kanon_spark.verify.facts import Verdict
from kanon_spark.verify.models import find_models
from kanon_spark.verify.published import with_published
from kanon_spark.verify.release import verify_release

MODELS = {
    "illness": {"l_diversity": 1, "alpha": {"alpha": 1, "values": ["flu"]}, "t_closeness": 1},
    "cost": {"l_diversity": {"l": 1, "kind": "entropy"}, "beta_likeness": 99},
}


@pytest.fixture(scope="module")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(spark, tmp_path_factory.mktemp("world"), star=True)


def asked(models: dict[str, Any] | None = None, **more: Any) -> Asked:
    specs = {name: SensitiveSpec.model_validate(spec) for name, spec in (models or {}).items()}
    return Asked(specs, **more)


def doubled(world: World) -> DataFrame:
    """The source with some rows twice: what carriers make of it must not hang on copies of a person's row."""
    return world.source.unionAll(world.source.where("cost = 1.0"))


def carriers(world: World, *, wish: str | None = None, persons: bool = True) -> DataFrame:
    """What the engine hands over: one row per combination."""
    unit = F.col("pid") if persons else F.lit(None).cast("string")
    values = [F.col(name).alias(value_column(name)) for name in MODELS] if persons else []
    extra = [] if wish is None else [F.expr(wish).cast("long").alias("wish")]
    rows = doubled(world).select("h", unit.alias("unit"), *values, *extra)
    return rows.groupBy(*[f"`{name}`" for name in rows.columns]).agg(F.count(F.lit(1)).alias("rows"))


def verified(world: World, asked: Asked, **more: Any) -> Verdict:
    usual = {"suppressed_rows": "star", "asked": asked}
    return verify_release(world.table(), **world.arguments(**(usual | more)))


def test_rows_are_counted_as_they_were_written_stars_among_them(world: World) -> None:
    verdict = verified(world, asked(MODELS))
    assert verdict.passed, verdict.checks
    assert verdict.models == find_models(world.table(), qi=QIS, k=4, asked=asked(MODELS))
    names = [model.name for model in verdict.models]
    assert names == [
        "l_diversity(illness)",
        "t_closeness(illness)",
        "alpha(illness)",
        "l_diversity(cost)",
        "beta_likeness(cost)",
    ]
    assert [check.name for check in verdict.checks][:7] == ["columns", "k", *names]
    assert verdict.models[0].classes == len({tuple(row[name] for name in QIS) for row in world.released})
    assert verdict.models[2].form == {"alpha": 1, "values": ["flu"]}
    assert (verdict.models[0].model, verdict.models[0].column) == ("l_diversity", "illness")
    dropped = [row for row in world.released if any(row[name] != "*" for name in QIS)]
    without = make_table_without_stars(world, dropped)
    assert without.models[0].classes == verdict.models[0].classes - 1


def make_table_without_stars(world: World, rows: list[dict[str, Any]]) -> Verdict:
    arguments = world.arguments(suppressed_rows="drop", asked=asked(MODELS))
    return verify_release(world.table(rows), **arguments)


def test_a_class_that_breaks_a_model_fails_its_check_alone(world: World) -> None:
    strict = {"illness": {"l_diversity": 5}, "cost": {"l_diversity": 1}}
    verdict = verified(world, asked(strict))
    assert [check.name for check in verdict.checks if not check.passed] == ["l_diversity(illness)"]
    assert not any(value in str(verdict.checks) for value in ("flu", "cold"))


def groups_of(world: World) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """The source's rows behind each published tuple, stars among them."""
    entries = with_published(world.evidence).select("h", *[f"pub{i}" for i in range(4)]).collect()
    tuple_of = {row["h"]: tuple(row)[1:] for row in entries}
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in doubled(world).collect():
        groups[tuple_of[row["h"]]].append(row.asDict())
    return groups


def test_persons_are_counted_through_the_recoding(world: World) -> None:
    """Against a twin in plain Python: copies of a person's row weigh nothing, and alpha counts each person once."""
    verdict = verified(world, asked(MODELS), carriers=carriers(world), pairs=world.pairs)
    found = {model.name: model for model in verdict.models}
    groups = groups_of(world)
    overall = Counter(ill for rows in groups.values() for ill, _, _ in combinations(rows))
    least, share, entropy, distance = [], [], [], []
    for rows in groups.values():
        ills: Counter[str | None] = Counter()
        costs: Counter[float | None] = Counter()
        for ill, cost, _ in combinations(rows):
            ills[ill] += 1
            costs[cost] += 1
        least.append(len(set(ills) - {None}))
        share.append(len(persons(row for row in rows if row["illness"] == "flu")) / len(persons(rows)))
        entropy.append(effective(costs))
        parts = [ills[ill] / ills.total() - many / overall.total() for ill, many in overall.items()]
        distance.append(sum(map(abs, parts)) / 2)
    assert found["l_diversity(illness)"].worst == min(least)
    assert found["alpha(illness)"].worst == pytest.approx(max(share))
    assert found["l_diversity(cost)"].worst == pytest.approx(min(entropy))
    assert found["t_closeness(illness)"].worst == pytest.approx(max(distance))


def persons(rows: Any) -> set[Any]:
    return {("nobody", place) if row["pid"] is None else row["pid"] for place, row in enumerate(rows)}


def combinations(rows: list[dict[str, Any]]) -> list[tuple[Any, Any, Any]]:
    """Each person once per raw tuple and values; a row without a person for itself."""
    known = {(row["illness"], row["cost"], (row["pid"], row["h"])) for row in rows if row["pid"] is not None}
    return [*known, *[(row["illness"], row["cost"], None) for row in rows if row["pid"] is None]]


def effective(counts: Counter[float | None]) -> float:
    """Exp of the entropy, nulls taken for the most frequent value."""
    known = Counter({value: many for value, many in counts.items() if value is not None})
    if not known:
        return 0.0
    known[max(known, key=lambda value: known[value])] += counts[None]
    total = sum(known.values())
    return math.exp(-sum(many / total * math.log(many / total) for many in known.values()))


@pytest.mark.parametrize("by_person", [False, True])
def test_wishes_come_from_the_source(world: World, by_person: bool) -> None:
    wish = "CASE WHEN age = 33 THEN 9 WHEN age = 37 THEN 1 END"
    behind = carriers(world, wish=wish, persons=by_person)
    verdict = verified(world, asked(personal_k="rule"), carriers=behind)
    (found,) = verdict.models
    expected = []
    for rows in groups_of(world).values():
        largest = max({33: 9, 37: 1}.get(row["age"], 4) for row in rows)
        expected.append((len(persons(rows)) if by_person else len(rows)) / largest)
    assert found.name == "personal_k(rule)"
    assert found.worst == pytest.approx(min(expected))
    assert found.failing == sum(part < 1 for part in expected)
    assert verdict.passed == (min(expected) >= 1)


def test_wishes_that_were_not_given_are_our_own_fault(world: World) -> None:
    with pytest.raises(InternalError, match="own ks were not given"):
        verified(world, asked(personal_k="wish"))


def test_published_tuples_are_held_against_a_population(world: World) -> None:
    """The source is its own population: every tuple fits at least its own rows."""
    people = world.source.select(*[f"`{name}`" for name in QIS], "pid")
    rows = verified(world, asked(population=Population(people, 4)))
    (found,) = rows.models
    assert (found.name, found.column, found.form, found.check.passed) == ("k_map", None, 4, True)
    assert found.worst is not None
    assert found.worst >= rows.facts.achieved
    by_person = verified(world, asked(population=Population(people, 10_000, unit="pid")))
    assert by_person.models[0].failing == by_person.models[0].classes
    assert by_person.models[0].worst is not None
    assert by_person.models[0].worst <= found.worst
