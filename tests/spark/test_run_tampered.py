"""A release is tampered with after the run: by its manifest and by its configuration `kanon verify` ends with 4."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from run_world import World
from typer.testing import CliRunner

from kanon_spark.cli.main import app
from kanon_spark.io.path_sink import FACTS

AGES = {"age": {"hierarchy": {"interval": {"widths": [5, 20]}}}, "zip": {"hierarchy": {"prefix": {"keep": [2]}}}}
PRIVACY = {
    "l_diversity": 2,
    "t_closeness": {"t": 0.9, "distance": "ordered"},
    "personal_k": {"rule": "IF(age < 30, 4, 3)"},
}
# What is left of a class where one cell is finer breaks k; the other changes leave k and the models as they are.
TAMPERED = ["one cell made finer", "one row dropped", "one sensitive value changed"]


def patients(spark: SparkSession) -> DataFrame:
    draw = random.Random(4)
    rows = [
        (n // 2, draw.randrange(20, 60), draw.choice(["101", "102", "201"]), draw.choice([1.5, 2.0, 9.0, None]), "x")
        for n in range(80)
    ]
    return spark.createDataFrame(rows, "pid int, age int, zip string, cost double, note string")


@pytest.fixture(scope="module", params=["rows", "persons"])
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> World:
    """A release that was published, its manifest and its configuration."""
    made = World(spark, tmp_path_factory.mktemp(request.param))
    made.save(patients(spark))
    unit = {"unit": "pid"} if request.param == "persons" else {}
    columns = {"sensitive": {"cost": {}}, "identifiers": ["pid"]}
    job = made.job(AGES, k=3, columns=columns, privacy={**PRIVACY, **unit}, report=report())
    made.run(job)
    return made


def report() -> dict[str, str]:
    return {"manifest": "reports/manifest.json", "html": "reports/report.html", "risk": "full"}


def answer(world: World, table: Path, way: str) -> tuple[int, dict[str, bool]]:
    """The exit code, and what was checked."""
    asked = ["--manifest", str(world.manifest)] if way == "manifest" else ["--config", str(world.folder / "job.yaml")]
    result = CliRunner().invoke(app, ["verify", str(table), *asked, "--json"])
    assert result.stdout, result.stderr
    checks = json.loads(result.stdout.splitlines()[-1])["checks"]
    return result.exit_code, {check["name"]: check["passed"] for check in checks}


def tampered(world: World, what: str) -> Path:
    table = world.spark.read.parquet(str(world.sink))
    rows: list[dict[str, Any]] = [row.asDict() for row in table.collect()]
    if what == "one cell made finer":
        rows[0]["age"] = "33"
    elif what == "one row dropped":
        rows.pop()
    else:
        place = next(place for place, row in enumerate(rows) if row["cost"] == 1.5)
        rows[place]["cost"] = 2.0
    path = world.folder / "tampered" / what.replace(" ", "_")
    world.spark.createDataFrame(rows, table.schema).coalesce(1).write.mode("overwrite").parquet(str(path))
    return path


@pytest.mark.parametrize("way", ["manifest", "config"])
def test_what_was_published_passes(world: World, way: str) -> None:
    code, checks = answer(world, world.sink, way)
    assert code == 0, checks
    by_person = "persons" in str(world.folder)
    models = {"l_diversity(cost)", "t_closeness(cost)"}
    # Persons and their wishes are known to the source alone: without it, they rest on the content.
    if way == "config":
        assert {*models, "personal_k(rule)", "multiset", "source"} <= set(checks)
    else:
        assert (models <= set(checks)) == (not by_person)
        assert {"manifest content", "manifest rows"} <= set(checks)


@pytest.mark.parametrize("way", ["manifest", "config"])
@pytest.mark.parametrize("what", TAMPERED)
def test_tampering_is_caught(world: World, way: str, what: str) -> None:
    code, checks = answer(world, tampered(world, what), way)
    assert code == 4, checks
    failed = {name for name, passed in checks.items() if not passed}
    expected = "manifest content" if way == "manifest" else "multiset"
    assert expected in failed
    assert ("manifest rows" in failed or "rows" in failed) == (what == "one row dropped")


def written_anew(world: World, table: DataFrame, what: str) -> Path:
    """Other files in a copy of the release, which still says what it was."""
    path = world.folder / "anew" / what.replace(" ", "_")
    table.coalesce(1).write.mode("overwrite").parquet(str(path))
    (path / FACTS).write_bytes((world.sink / FACTS).read_bytes())
    return path


CHANGED = {
    "a column added": ("'name' is too many", lambda table: table.withColumn("name", F.lit("x"))),
    "a column renamed": (
        "'Note' is too many, 'note' is missing",
        lambda table: table.withColumnRenamed("note", "Note"),
    ),
    "a column dropped": ("'note' is missing", lambda table: table.drop("note")),
    "another type": (
        "'cost' is string, not double",
        lambda table: table.withColumn("cost", F.col("cost").cast("string")),
    ),
}


@pytest.mark.parametrize("way", ["manifest", "config"])
@pytest.mark.parametrize("what", CHANGED)
def test_other_columns_are_caught(world: World, way: str, what: str) -> None:
    message, change = CHANGED[what]
    path = written_anew(world, change(world.spark.read.parquet(str(world.sink))), what)
    asked = ["--manifest", str(world.manifest)] if way == "manifest" else ["--config", str(world.folder / "job.yaml")]
    result = CliRunner().invoke(app, ["verify", str(path), *asked])
    assert result.exit_code == 4
    assert message in " ".join(result.stderr.split())


@pytest.mark.parametrize("damage", ["cut off", "one bit flipped", "no file is left"])
def test_damaged_files_are_caught(world: World, damage: str) -> None:
    path = written_anew(world, world.spark.read.parquet(str(world.sink)), damage)
    path = path.rename(path.with_name(f"{damage}, ünder a name with blanks"))
    (file,) = path.glob("*.parquet")
    held = file.read_bytes()
    if damage == "no file is left":
        file.unlink()
    else:
        if damage == "cut off":  # with Hadoop's checksum beside it that would be seen sooner, like a flipped bit
            (path / f".{file.name}.crc").unlink()
        middle = len(held) // 3
        flipped = held[:middle] + bytes([held[middle] ^ 255]) + held[middle + 1 :]
        file.write_bytes(held[: len(held) // 2] if damage == "cut off" else flipped)
    result = CliRunner().invoke(app, ["verify", str(path), "--manifest", str(world.manifest)])
    assert result.exit_code == 4, result.stderr
    assert "Traceback" not in result.stderr


def test_the_manifest_tells_each_model_and_the_report_shows_it(world: World) -> None:
    manifest = json.loads(world.manifest.read_text(encoding="utf-8"))
    privacy = manifest["privacy"]
    diversity = privacy["l_diversity(cost)"]
    assert (diversity["model"], diversity["column"], diversity["asked"]) == ("l_diversity", "cost", {"l": 2})
    assert diversity["achieved"] >= 2
    assert privacy["t_closeness(cost)"]["achieved"] <= 0.9
    assert privacy["personal_k(rule)"]["achieved"] >= 1
    assert all(privacy[name]["passed"] for name in ("l_diversity(cost)", "t_closeness(cost)", "personal_k(rule)"))
    risk = manifest["risk"]
    assert risk["attack"]["holds"]
    assert risk["attack"]["after"]["worst"] <= 1 / 3
    assert risk["before"]["sizes"]["uniqueness"] > 0.2
    assert risk["after"]["sizes"]["prosecutor"]["highest"] <= 1 / 3
    page = (world.folder / "reports" / "report.html").read_text(encoding="utf-8")
    for text in ("l-diversity of cost", "personal k of rule", "How easily someone is found", "cost: guessed right"):
        assert text in page


def test_the_recoding_is_needed_where_a_configuration_alone_is_asked(spark: SparkSession, tmp_path: Path) -> None:
    made = World(spark, tmp_path)
    made.save(patients(spark))
    made.run(made.job(AGES, k=3, columns={"identifiers": ["pid"]}))
    manifest = json.loads(made.manifest.read_text(encoding="utf-8"))
    assert manifest["risk"]["mode"] == "auto"
    assert manifest["risk"]["attack"] is None
    after = manifest["risk"]["after"]["sizes"]
    assert after["prosecutor"]["highest"] == pytest.approx(1 / manifest["privacy"]["k"]["achieved"])
    for left in made.work.glob("*recoding"):
        left.rename(tmp_path / "elsewhere")
    result = CliRunner().invoke(app, ["verify", str(made.sink), "--config", str(tmp_path / "job.yaml")])
    assert result.exit_code == 2
    assert "there is no recoding of the release" in result.stderr
