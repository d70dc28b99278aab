"""Releases that grow: what comparing them tells, by attacks that are carried out, beside releases made anew."""

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F
from run_world import World, multiset

from kanon_spark.config.loader import load_config
from kanon_spark.engine.release import Release
from kanon_spark.engine.verification import verify_with_config
from kanon_spark.errors import ConfigError, InternalError, MissingInputError, RepeatedIdError, RequestError
from kanon_spark.releases.standing import COHORT, KEY, STATE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

K = 3
Person = tuple[int, int, str, str]  # number, age, sex, illness
SCHEMA = "n int, age int, sex string, ill string, mark int"
ILLS = ("flu", "cold", "asthma", "gout")


@pytest.fixture
def world(spark: "SparkSession", tmp_path: Path) -> World:
    return World(spark, tmp_path)


class Town:
    """People who come and go. `mark` is published as it is, and differs for all: a reader can follow rows by it."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.random = random.Random(seed)
        self.people: dict[int, tuple[int, str, str, int]] = {}
        self.arrived: list[int] = []
        self.number = 0

    def come(self, many: int) -> None:
        self.arrived = []
        for _ in range(many):
            self.number += 1
            draw = self.random
            person = (draw.randint(20, 60), draw.choice("fm"), draw.choice(ILLS), 1000 + self.number)
            self.people[self.number] = person
            self.arrived.append(self.number)

    def go(self, numbers: "list[int]") -> None:
        for number in numbers:
            del self.people[number]

    def publish(self, **schedule: Any) -> Release:
        rows = [(number, *person) for number, person in self.people.items()]
        self.world.save(self.world.spark.createDataFrame(rows, SCHEMA))
        return self.world.run(load_config(job_file(self.world, **schedule)))


def job_file(world: World, **schedule: Any) -> Path:
    return world.config_file(
        {"age": {}, "sex": {}},
        k=K,
        columns={"identifiers": ["n"], "sensitive": ["ill"], "other": "keep"},
        method={"name": "kmember", "effort": "fast"},
        report={"manifest": "reports/manifest.json", "risk": "none"},
        schedule=schedule,
    )


GROWING = {"repeat": "incremental", "key": "n"}


def covers(label: str, value: Any) -> bool:
    """Whether a published cell may stand for a value."""
    if label.startswith("["):
        low, high = (int(part) for part in label.strip("[]").split(","))
        return low <= int(value) <= high
    return str(value) in label.strip("{}").split(", ")


def candidates(rows: "Counter[Any]", age: int, sex: str) -> set[int]:
    """Marks of the rows that may be this person's."""
    return {row[3] for row in rows if covers(row[0], age) and covers(row[1], sex)}


def worst_attacks(town: Town, releases: int, **schedule: Any) -> tuple[int, int]:
    """The fewest candidates that are left to a reader who keeps every release.

    The first knows that somebody was there all the time, and keeps what fits in every release since; the second knows
    who arrived last night, and looks at what was not there before.
    """
    kept: dict[int, set[int]] = {}
    before: set[int] = set()
    intersected, arrived = 10**6, 10**6
    for turn in range(releases):
        town.come(40 if turn == 0 else 12)
        release = town.publish(**schedule)
        rows = multiset(release.table.select("age", "sex", "ill", "mark"))
        marks = {row[3] for row in rows}
        for number, (age, sex, _, mark) in town.people.items():
            if mark not in marks:
                continue  # not published: there is nothing to find
            fitting = candidates(rows, age, sex)
            kept[number] = kept[number] & fitting if number in kept else fitting
            intersected = min(intersected, len(kept[number]))
            if turn and mark not in before:
                arrived = min(arrived, len(fitting - before))
        before = marks
    return intersected, arrived


@pytest.mark.parametrize("releases", [3, pytest.param(10, marks=pytest.mark.slow)])
def test_attacks_on_growing_releases_find_no_fewer_than_k(world: World, releases: int) -> None:
    intersected, arrived = worst_attacks(Town(world, 1), releases, **GROWING)
    assert intersected >= K
    assert arrived >= K


@pytest.mark.parametrize("releases", [3, pytest.param(10, marks=pytest.mark.slow)])
def test_the_same_attacks_succeed_on_releases_made_anew(world: World, releases: int) -> None:
    intersected, arrived = worst_attacks(Town(world, 1), releases)
    assert min(intersected, arrived) < K, "else the test above would prove nothing"


def test_rows_stay_wait_leave_and_are_withdrawn(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    town = Town(world, 5)
    town.come(30)
    first = town.publish(**GROWING)
    assert first.manifest["incremental"] == {
        "kept": 0, "joined": 30, "held_back": 0, "withdrawn": 0, "releases": 1,
    }  # fmt: skip
    one = multiset(first.table)
    classes = Counter(tuple(row[:2]) for row in one.elements())
    assert min(classes.values()) >= K

    # Nobody new: one person more cannot be published.
    town.come(1)
    second = town.publish(**GROWING)
    assert multiset(second.table) == one
    assert second.manifest["rows"] | {"input": 0} == {
        "input": 0, "released": 30, "suppressed": 0, "published": 30, "held_back": 1, "withdrawn": 0,
    }  # fmt: skip
    assert second.metrics["gcp"] == pytest.approx(first.metrics["gcp"])

    # Somebody leaves, and a smallest class falls under k: the rest of it is withdrawn and does not come back.
    record = world.spark.read.parquet(str(next(world.work.glob(f"*_{STATE}")))).toPandas()
    tight = next(key for key, size in classes.items() if size == K)
    members = record[(record["age"] == tight[0]) & (record["sex"] == tight[1])][KEY].tolist()
    town.go([members[0]])
    town.come(12)
    third = town.publish(**GROWING)
    facts = third.manifest["incremental"]
    assert facts["left"] == 1 and facts["withdrawn"] == K - 1
    three = multiset(third.table)
    gone = {town.people[number][3] for number in members[1:]}
    assert not gone & {row[3] for row in three}, "withdrawn rows are not published again"
    old = {row: many for row, many in one.items() if tuple(row[:2]) != tight}
    assert all(three[row] == many for row, many in old.items()), "the others stand as they were"
    gains = Counter(tuple(row[:2]) for row in (three - one).elements())
    assert gains and min(gains.values()) >= K
    assert facts["kept"] + facts["joined"] == sum(three.values())
    assert facts["held_back"] + facts["joined"] == 13

    # A run that fails leaves release and record as they are, and nothing else.
    before = world.released()
    for point in ("arrivals", "verify"):
        monkeypatch.setenv("KANON_FAIL_AT", point)
        with pytest.raises(InternalError, match=f"failpoint '{point}'"):
            town.publish(**GROWING)
        assert world.released() == before
        assert [what.split("_")[0].split(".")[0] for what in world.left_in_work()] == [
            "owner", "recoding", "state", "state", "state", "state",
        ]  # fmt: skip
    monkeypatch.delenv("KANON_FAIL_AT")

    # A row that has changed leaves and arrives.
    number = next(n for n in town.people if n in set(record[KEY]) and town.people[n][3] in {row[3] for row in three})
    town.people[number] = (*town.people[number][:2], "measles", town.people[number][3])
    fourth = town.publish(**GROWING)
    assert fourth.manifest["incremental"]["changed"] == 1
    assert all(row[2] != "measles" for row in multiset(fourth.table)), "alone it has to wait"
    assert fourth.verify().passed
    loaded = load_config(job_file(world, **GROWING))
    assert verify_with_config(loaded, table=fourth.table, spark=world.spark).passed
    tampered = fourth.table.withColumn("ill", F.lit("flu"))
    failed = [c.name for c in verify_with_config(loaded, table=tampered, spark=world.spark).checks if not c.passed]
    assert failed == ["record"]
    names = {check["name"] for check in fourth.manifest["checks"]}
    assert {"k", "record", "cohorts", "unchanged", "gains"} <= names
    assert {"arrivals: truth", "arrivals: multiset"} <= {check["name"] for check in third.manifest["checks"]}


def test_persons_and_models_hold_in_the_difference(world: World) -> None:
    """Two rows of each person, and two illnesses in whatever a run adds to a tuple."""
    file = world.config_file(
        {"age": {"hierarchy": {"interval": {"widths": [10, 20]}}}, "sex": "flat"},
        k=K,
        columns={"identifiers": ["n", "who"], "sensitive": {"ill": {"l_diversity": 2}}},
        privacy={"unit": "who"},
        report={"manifest": "reports/manifest.json", "risk": "none"},
        schedule={**GROWING, "max_loss": 1},  # nobody waits for finer company
    )
    draw = random.Random(3)

    def rows(persons: range) -> list[Any]:
        made = []
        for who in persons:
            age, sex = draw.randint(20, 59), draw.choice("fm")
            made += [(2 * who + part, who, age, sex, draw.choice(ILLS)) for part in range(2)]
        return made

    schema = "n int, who int, age int, sex string, ill string"
    everyone = rows(range(30))
    world.save(world.spark.createDataFrame(everyone, schema))
    one = world.run(load_config(file))
    before = multiset(one.table)
    # Ten come, and persons who are there already bring one more row each.
    again = [(1000 + row[0], *row[1:]) for row in everyone[:8:2]]
    everyone += rows(range(100, 110)) + again
    world.save(world.spark.createDataFrame(everyone, schema))
    two = world.run(load_config(file))
    record = world.spark.read.parquet(str(next(world.work.glob(f"*_{STATE}")))).toPandas()
    person = {row[0]: row[1] for row in everyone}
    record["who"] = record[KEY].map(person)
    assert two.manifest["incremental"]["joined"] > 0
    new = record[record[COHORT] == two.manifest["run_id"]]
    old = record[record[COHORT] == one.manifest["run_id"]]
    for key, part in new.groupby(["age", "sex"]):
        there = set(old[(old["age"] == key[0]) & (old["sex"] == key[1])]["who"])
        assert len(set(part["who"]) - there) >= K
        assert part["ill"].nunique() >= 2
    assert before <= multiset(two.table)


def test_what_cannot_be_continued(world: World) -> None:
    town = Town(world, 7)
    town.come(12)
    town.publish()
    with pytest.raises(MissingInputError, match="no record of its rows"):
        town.publish(**GROWING)
    fresh = World(world.spark, world.folder / "fresh")
    fresh.folder.mkdir()
    town.world = fresh
    town.publish(**GROWING)
    with pytest.raises(RequestError, match="have changed since"):
        fresh.run(load_config(job_file(fresh, **GROWING), overrides=["privacy.k=4"]))
    before = fresh.released()
    doubled = fresh.spark.createDataFrame([(1, *person) for person in town.people.values()], SCHEMA)
    fresh.save(doubled)
    with pytest.raises(RepeatedIdError, match="share theirs"):
        fresh.run(load_config(job_file(fresh, **GROWING)))
    assert fresh.released() == before


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"schedule": {"repeat": "incremental"}}, "needs a column that tells rows apart"),
        ({"schedule": {"key": "n"}}, "belongs to schedule.repeat: incremental"),
        ({"schedule": {**GROWING, "partition": {"column": "day", "value": "1"}}}, "would count as deleted"),
        ({"schedule": {**GROWING, "key": "age"}}, "cannot be published"),
        ({"schedule": GROWING, "sink": None}, "name a sink"),
        ({"schedule": GROWING, "output": {"suppressed_rows": "star"}}, "an incremental release drops them"),
    ],
)
def test_rules_of_incremental_releases(changed: dict[str, Any], message: str) -> None:
    job = {
        "source": "a",
        "sink": {"path": "out"},
        "columns": {"quasi_identifiers": ["age"], "identifiers": ["n"]},
        **changed,
    }
    with pytest.raises(ConfigError, match=message):
        load_config({key: value for key, value in job.items() if value is not None})
