"""`kanon verify --config` with options that ask for more: persons are counted, whom the release does not name."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from run_world import World
from typer.testing import CliRunner

from kanon_spark.cli.main import app

AGE = {"age": {"hierarchy": {"interval": {"widths": [10]}}}, "sex": "flat"}


@pytest.fixture(scope="module")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> World:
    """Ten patients with two rows each, but for one with ten copies of his own row; he alone has a cold."""
    made = World(spark, tmp_path_factory.mktemp("further"))
    rows = [(n % 10, 30 + n % 10, "f", "flu" if n % 10 else "cold", 2 if n % 10 else 11) for n in range(20)]
    rows += [(0, 30, "f", "cold", 11)] * 8
    schema = "pid int, age int, sex string, ill string, wish int"
    made.save(spark.createDataFrame(rows, schema).coalesce(1))
    columns = {"identifiers": ["pid"], "sensitive": ["ill"]}
    made.run(made.job(AGE, k=4, columns=columns, privacy={"unit": "pid"}))
    return made


def answer(world: World, *options: str) -> tuple[int, dict[str, tuple[bool, str]]]:
    """The exit code, and what was checked."""
    asked = ["verify", str(world.sink), "--config", str(world.folder / "job.yaml"), *options, "--json"]
    result = CliRunner().invoke(app, asked)
    assert result.stdout, result.stderr
    checks = json.loads(result.stdout.splitlines()[-1])["checks"]
    return result.exit_code, {check["name"]: (check["passed"], check["detail"]) for check in checks}


def test_a_larger_k_is_asked_of_persons(world: World) -> None:
    code, checks = answer(world, "--k", "20")
    assert code == 4
    assert [name for name, (passed, _) in checks.items() if not passed] == ["k"]
    assert checks["k"][1] == "1 groups have fewer than 20 persons; the smallest has 10"


@pytest.mark.parametrize(("qi", "k", "code"), [("sex", 10, 0), ("sex", 11, 4), ("sex,ill", 2, 4)])
def test_other_columns_are_grouped_with_their_persons(world: World, qi: str, k: int, code: int) -> None:
    found, checks = answer(world, "--qi", qi, "--k", str(k))
    assert found == code
    assert "persons" in checks["k as asked"][1]
    assert all(passed for name, (passed, _) in checks.items() if name != "k as asked")


def test_models_speak_of_persons(world: World, tmp_path: Path) -> None:
    """By rows the cold is 10 of 28, by persons it is 1 of 10."""
    population = str(tmp_path / "people")
    people = world.spark.read.parquet(str(world.folder / "data" / "table")).selectExpr("pid", "string(age)", "sex")
    people.write.parquet(population)
    models = ["--sensitive", "ill", "--l-diversity", "entropy:1.5", "--alpha", "0.9", "--personal-k", "wish"]
    code, checks = answer(world, *models, "--k-map", "11", "--population", population)
    assert code == 4
    assert {name: passed for name, (passed, _) in checks.items() if name.endswith((")", "k_map"))} == {
        "l_diversity(ill)": False,
        "alpha(ill)": True,
        "personal_k(wish)": False,
        "k_map": False,
    }
    assert checks["personal_k(wish)"][1].endswith(f"the worst has {10 / 11:.6g}")
    assert checks["k_map"][1].endswith("the worst has 10")


def test_an_incremental_release_has_its_persons_on_record(spark: SparkSession, tmp_path: Path) -> None:
    made = World(spark, tmp_path)
    rows = [(n, n % 10, 30 + n % 10, "f", "flu" if n % 10 else "cold", 2) for n in range(20)]
    made.save(spark.createDataFrame(rows, "id int, pid int, age int, sex string, ill string, wish int").coalesce(1))
    columns = {"identifiers": ["pid", "id"], "sensitive": ["ill"]}
    schedule = {"repeat": "incremental", "key": "id"}
    made.run(made.job(AGE, k=4, columns=columns, privacy={"unit": "pid"}, schedule=schedule))
    models = ["--sensitive", "ill", "--alpha", "0.8"]
    code, checks = answer(made, "--k", "20", *models)
    assert code == 4
    assert {name: passed for name, (passed, _) in checks.items() if not passed} == {
        "k as asked": False,
        "alpha(ill)": False,
    }
    assert checks["k as asked"][1].startswith("1 groups have fewer than 20 persons")
    assert answer(made, "--k", "10")[0] == 0
