"""What a sensitive value is: one form for each, to methods, checks and named values alike."""

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from run_world import World

from kanon_spark.errors import DataError

AGES = {"age": {"hierarchy": {"interval": {"widths": [5, 20]}}}}


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> World:
    return World(spark, tmp_path)


def rows_of(world: World, values: list[Any], kind: str, *, count: int = 120, name: str = "s") -> DataFrame:
    """Random ages, each value equally often."""
    draw = random.Random(3)
    rows = [(draw.randrange(20, 60), values[n % len(values)]) for n in range(count)]
    return world.spark.createDataFrame(rows, f"age int, {name} {kind}")


def achieved(world: World, table: DataFrame, asked: dict[str, Any], **more: Any) -> dict[str, float]:
    """What the worst class has of each model."""
    job = world.job(AGES, k=4, source=None, columns={"sensitive": {"s": asked}}, **more)
    privacy = world.run(job, table).manifest["privacy"]
    return {name.partition("(")[0]: facts["achieved"] for name, facts in privacy.items() if "(s)" in name}


def test_what_a_file_misses_is_one_value_to_its_distance_alone(world: World) -> None:
    file = world.write("ill.csv", "lung;inner;*", "heart;inner;*")
    asked = {
        "hierarchy": {"csv": {"path": file, "unknown": "root"}},
        "t_closeness": {"t": 0.5, "distance": "hierarchical"},
        "l_diversity": 4,
        "alpha": {"alpha": 0.4, "values": ["eye"]},
        "delta_disclosure": 2,
    }
    found = achieved(world, rows_of(world, ["lung", "heart", "skin", "eye"], "string"), asked)
    assert found["l_diversity"] == 4
    assert found["alpha"] <= 0.4
    assert 0 < found["t_closeness"] <= 0.5
    assert found["delta_disclosure"] < 2


def test_zero_has_no_sign(world: World) -> None:
    asked = {"alpha": {"alpha": 0.9, "values": ["0"]}, "beta_likeness": 0.5, "l_diversity": 2}
    found = achieved(world, rows_of(world, [0.0, 0.0, -0.0, 1.5], "double"), asked)
    assert 0.7 < found["alpha"] <= 0.9  # of both zeros together
    assert found["l_diversity"] == 2


@pytest.mark.parametrize(
    ("kind", "values", "lines", "named"),
    [("boolean", [True, True, False], ["TRUE;yes;*", "FALSE;no;*"], "true"), ("double", [1.0, 2.0, 2.0], None, "2")],
    ids=["a file that writes TRUE", "a number without its fraction"],
)
def test_a_named_value_is_read_as_one_of_the_column(
    world: World, kind: str, values: list[Any], lines: list[str] | None, named: str
) -> None:
    asked: dict[str, Any] = {"alpha": {"alpha": 0.67, "values": [named]}}
    if lines:
        asked |= {"hierarchy": world.write("s.csv", *lines), "t_closeness": {"t": 0.9, "distance": "hierarchical"}}
    found = achieved(world, rows_of(world, values, kind), asked)
    assert 0.6 < found["alpha"] <= 0.67


def test_numbers_are_ordered_whatever_a_file_says_of_them(world: World) -> None:
    file = world.write("s.csv", "1;odd;*", "3;odd;*", "2;even;*")
    asked = {"hierarchy": file, "t_closeness": {"t": 0.3, "distance": "ordered"}}
    assert achieved(world, rows_of(world, [1.0, 2.0, 3.0], "double"), asked)["t_closeness"] <= 0.3 + 1e-9


def test_columns_may_be_called_like_ours(world: World) -> None:
    table = rows_of(world, ["a", "b", "c"], "string").selectExpr("*", "age as h", "uuid() as pid")
    asked = {"alpha": 0.7}
    found = achieved(world, table, asked, privacy={"unit": "pid"})
    assert found["alpha"] <= 0.7


@pytest.mark.parametrize("method", ["lattice", "kmember"])
def test_alpha_of_persons_finds_a_partner_that_helps(world: World, method: str) -> None:
    """The same persons are 20 and 40, once with each value: only those of 60 help those of 22, who have both."""
    rows = [(20, pid, "x" if pid <= 8 else "y") for pid in range(1, 17)]
    rows += [(40, pid, "y" if pid <= 8 else "x") for pid in range(1, 17)]
    rows += [(22, pid, value) for pid in range(21, 29) for value in "xy"]
    rows += [(60, pid, "y") for pid in range(31, 47)]
    table = world.spark.createDataFrame(rows, "age int, pid int, s string")
    asked = {"alpha": {"alpha": 0.5, "values": ["x"]}}
    found = achieved(world, table, asked, privacy={"unit": "pid"}, method={"name": method})
    assert found["alpha"] == 0.5  # of those of 20, and of 40


def test_a_rule_that_fails_on_a_value_does_not_tell_it(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    table = rows_of(world, ["1", "SECRET"], "string")
    job = world.job(
        AGES, k=4, source=None, columns={"sensitive": {"s": {}}}, privacy={"personal_k": {"rule": "CAST(s AS INT)"}}
    )
    with pytest.raises(DataError, match="CAST_INVALID_INPUT") as caught:
        world.run(job, table)
    assert caught.value.exit_code == 3
    assert "SECRET" not in f"{caught.value} {caught.value.fix}"
    told = capfd.readouterr()
    assert "SECRET" not in told.err + told.out
