"""Releases that grow, and models beyond k: what persons who come back, and arrivals that wait, do to shares."""

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from run_world import World, multiset

from kanon_spark.engine.growth import Growth
from kanon_spark.releases.standing import COHORT, KEY, PERSON, WISH
from kanon_spark.signatures.encoding import ROW_HASH
from kanon_spark.verify.asked import Asked, asked_by
from kanon_spark.verify.difference import Record, verify_growth

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kanon_spark.verify.facts import Verdict

FLU, COLD = 1, 2
FIRST, SECOND, THIRD = "run1", "run2", "run3"
Added = tuple[str, str | None, int]  # cohort, person, illness

FOUNDING: list[Added] = [(FIRST, "F", 8), (FIRST, "G", 9)]
EVEN: list[Added] = [(SECOND, "A", FLU), (SECOND, "B", COLD)]
RETURNING: list[Added] = [(THIRD, "C", FLU), (THIRD, "D", FLU), (THIRD, "B", COLD), (THIRD, "E", COLD)]
OTHERS: dict[str, list[Added]] = {"U": [(SECOND, f"u{number}", number % 2 + 1) for number in range(100)]}


@dataclass
class Grown:
    """A record of one quasi-identifier and one illness, made by hand, with what is asked of it."""

    spark: "SparkSession"
    folder: Path
    models: dict[str, Any]
    unit: bool = True

    def rows(self, tuples: dict[str, list[Added]]) -> "DataFrame":
        """The rows of each tuple; those of the newest run carry a hash of their raw tuple."""
        made = [
            (
                name,
                ill,
                f"{name}{number}",
                who if self.unit else None,
                cohort,
                None,
                number if cohort == THIRD else None,
            )
            for name, added in tuples.items()
            for number, (cohort, who, ill) in enumerate(added)
        ]
        schema = f"place string, ill int, {KEY} string, {PERSON} string, {COHORT} string, {WISH} long, {ROW_HASH} long"
        return self.spark.createDataFrame(made, schema)

    @property
    def asked(self) -> Asked:
        """What is asked beyond k."""
        return asked_by(self._loaded.config, base_dir=self.folder)

    @property
    def _loaded(self) -> Any:
        columns = {"identifiers": ["n", "who"], "sensitive": {"ill": self.models}}
        return World(self.spark, self.folder).job({"place": "flat"}, k=2, columns=columns)

    def verify(self, rows: "DataFrame") -> "Verdict":
        """The verdict on the record as it would be published."""
        record = Record(rows, COHORT, THIRD, PERSON if self.unit else None)
        return verify_growth(rows.select("place", "ill"), record, previous=None, qi=["place"], k=2, asked=self.asked)

    def settle(self, rows: "DataFrame") -> "DataFrame":
        """What a run makes of it."""
        growth = cast(Any, object.__new__(Growth))
        growth.ctx = SimpleNamespace(spark=self.spark, run_id=THIRD)
        growth.loaded, growth.unit, growth.standing = self._loaded, "who" if self.unit else None, object()
        growth.opened = SimpleNamespace(tuple_columns=["place"])
        growth.work = SimpleNamespace(path=lambda what: str(self.folder / "work" / what))
        growth._asked = self.asked
        return cast("DataFrame", growth._settled(rows))


def cohorts(rows: "DataFrame", place: str = "T") -> set[str]:
    """The runs that a tuple still has rows of."""
    return {row[0] for row in rows.where(f"place = '{place}'").select(COHORT).distinct().collect()}


def failed(verdict: "Verdict") -> set[str]:
    return {check.name for check in verdict.checks if not check.passed}


def test_what_has_come_since_an_older_release_holds_where_persons_come_back(
    spark: "SparkSession", tmp_path: Path
) -> None:
    """Release 3 without release 1 holds flu for 3 of 5, though each run added as many with as without."""
    grown = Grown(spark, tmp_path, {"alpha": 0.5})
    rows = grown.rows({"T": [*FOUNDING, *EVEN, *RETURNING]})
    assert failed(grown.verify(rows)) == {"cohorts"}
    settled = grown.settle(rows)
    assert cohorts(settled) == {FIRST, SECOND}, "who arrived waits; what stood stays"
    assert grown.verify(settled).passed
    # Somebody else brings the cold: nobody comes back, and counts add up.
    fresh = [(cohort, "H" if who == "B" else who, ill) for cohort, who, ill in RETURNING]
    assert cohorts(grown.settle(grown.rows({"T": [*FOUNDING, *EVEN, *fresh]}))) == {FIRST, SECOND, THIRD}
    # Coming back does not keep anybody waiting by itself.
    rows = grown.rows({"T": [*FOUNDING, *EVEN, *RETURNING, (THIRD, "I", 7)]})
    assert cohorts(grown.settle(rows)) == {FIRST, SECOND, THIRD}
    assert grown.verify(rows).passed


@pytest.mark.parametrize(
    "models",
    [
        {
            "alpha": 0.5,
            "l_diversity": {"l": 2, "kind": "entropy"},
            "t_closeness": 0.05,
            "beta_likeness": 0.1,
            "delta_disclosure": 0.1,
        },
        {
            "l_diversity": {"l": 2, "kind": "recursive", "c": 1.2},
            "t_closeness": {"t": 0.05, "distance": "ordered"},
            "beta_likeness": {"beta": 0.1, "kind": "enhanced"},
        },
        {"t_closeness": {"t": 0.05, "distance": "hierarchical"}, "hierarchy": "flat"},
    ],
    ids=["equal", "ordered", "hierarchical"],
)
def test_arrivals_wait_where_they_would_break_a_whole_tuple(
    spark: "SparkSession", tmp_path: Path, models: dict[str, Any]
) -> None:
    grown = Grown(spark, tmp_path, models)
    rows = grown.rows({"T": [*EVEN, *RETURNING], **OTHERS})
    assert failed(grown.verify(rows)) == {*(f"{name}(ill)" for name in models if name != "hierarchy"), "cohorts"}
    settled = grown.settle(rows)
    assert cohorts(settled) == {SECOND}
    assert grown.verify(settled).passed


def test_nothing_stands_in_the_way_of_persons_who_come_back_where_values_alone_count(
    spark: "SparkSession", tmp_path: Path
) -> None:
    grown = Grown(spark, tmp_path, {"l_diversity": 2})
    rows = grown.rows({"T": [*EVEN, *RETURNING]})
    assert grown.verify(rows).passed
    assert cohorts(grown.settle(rows)) == {SECOND, THIRD}


def test_a_union_that_breaks_without_arrivals_loses_what_came_last(spark: "SparkSession", tmp_path: Path) -> None:
    """I has left since, who had the other cold."""
    grown = Grown(spark, tmp_path, {"alpha": 0.5})
    older = {FIRST: "run0", SECOND: FIRST, THIRD: SECOND}
    standing = [(older[cohort], who, ill) for cohort, who, ill in [*FOUNDING, *EVEN, *RETURNING]]
    settled = grown.settle(grown.rows({"T": standing}))
    assert cohorts(settled) == {"run0", FIRST}
    assert grown.verify(settled).passed


def some(cohort: str, rows: int, flu: int) -> list[Added]:
    return [(cohort, None, FLU if number < flu else COLD) for number in range(rows)]


def test_arrivals_are_judged_by_themselves_until_all_that_join_hold(spark: "SparkSession", tmp_path: Path) -> None:
    """With what stands half of all have flu, and 0.7 is within 0.2 of that; of those who arrive 0.43 have."""
    grown = Grown(spark, tmp_path, {"t_closeness": 0.2}, unit=False)
    rows = grown.rows({"old": some(SECOND, 100, 52), "X": some(THIRD, 10, 7), "Y": some(THIRD, 20, 6)})
    assert grown.verify(rows).passed
    settled = grown.settle(rows)
    assert (cohorts(settled, "X"), cohorts(settled, "Y"), cohorts(settled, "old")) == (set(), {THIRD}, {SECOND})


def test_what_stands_is_not_withdrawn_for_arrivals_that_wait(spark: "SparkSession", tmp_path: Path) -> None:
    """The arrivals move the distribution so far that what stands would fail beside them, and fail themselves."""
    grown = Grown(spark, tmp_path, {"t_closeness": 0.2}, unit=False)
    rows = grown.rows({"old": some(SECOND, 20, 10), "X": some(THIRD, 40, 40), "Y": some(THIRD, 10, 0)})
    settled = grown.settle(rows)
    assert (cohorts(settled, "X"), cohorts(settled, "Y"), cohorts(settled, "old")) == (set(), set(), {SECOND})


def test_a_run_in_which_some_arrivals_are_too_dear_publishes_the_others(spark: "SparkSession", tmp_path: Path) -> None:
    """Of three classes 0.7, 0.7 and 0.3 have flu; the first costs too much, and without it the second stands out."""
    world = World(spark, tmp_path)
    far = [f"z{number}" for number in range(10)]
    world.write("places.csv", *[f"{place};far;*" for place in far], "x;near;*", "y;close;*", "old;left;*")

    def rows(many: list[tuple[list[str], int]], start: int) -> list[tuple[int, str, int]]:
        made = [(place, number < flu) for places, flu in many for number, place in enumerate(places)]
        return [(start + number, place, FLU if flu else COLD) for number, (place, flu) in enumerate(made)]

    file = world.job(
        {"place": {"hierarchy": {"csv": "places.csv"}}},
        k=10,
        columns={"identifiers": ["n"], "sensitive": {"ill": {"t_closeness": 0.2}}},
        report={"manifest": "reports/manifest.json", "risk": "none"},
        schedule={"repeat": "incremental", "key": "n", "max_loss": 0},
    )
    first = rows([(["old"] * 100, 52)], 0)
    world.save(spark.createDataFrame(first, "n int, place string, ill int"))
    before = multiset(world.run(file).table)
    later = first + rows([(far, 7), (["x"] * 10, 7), (["y"] * 20, 6)], 1000)
    world.save(spark.createDataFrame(later, "n int, place string, ill int"))
    release = world.run(file)
    assert release.manifest["incremental"]["joined"] == 20
    assert release.manifest["incremental"]["held_back"] == 20
    assert before <= multiset(release.table)
    assert {row[0] for row in multiset(release.table)} == {"old", "y"}


def test_a_release_that_grows_may_show_numbers_and_be_held_against_a_population(
    spark: "SparkSession", tmp_path: Path
) -> None:
    """Of the numbers beside labels no population knows."""
    world = World(spark, tmp_path)
    people = [(n, 20 + n % 40, "fm"[n % 2]) for n in range(80)]
    world.save(spark.createDataFrame(people, "n int, age int, sex string").drop("n"), "people")
    for number in (40, 60):
        world.save(spark.createDataFrame(people[:number], "n int, age int, sex string"))
        release = world.run(
            world.job(
                {"age": {}, "sex": {}},
                k=3,
                columns={"identifiers": ["n"], "other": "keep"},
                privacy={"k_map": {"k": 5, "path": "data/people"}},
                method={"name": "kmember", "effort": "fast"},
                output={"numeric": "bounds"},
                schedule={"repeat": "incremental", "key": "n"},
            )
        )
        assert release.manifest["privacy"]["k_map"]["passed"]
        assert release.manifest["privacy"]["k_map"]["achieved"] >= 5
    assert release.manifest["incremental"]["kept"] > 0 and "age_lo" in release.table.columns
