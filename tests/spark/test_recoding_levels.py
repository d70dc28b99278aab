"""A saved recoding of a full-domain release: persons and models on other rows, refusals, the exported mapping."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from run_world import World

from kanon_spark import Anonymizer
from kanon_spark.engine import applying
from kanon_spark.engine.stages import new_run_id
from kanon_spark.errors import (
    DataError,
    EmptyTableError,
    GuaranteeError,
    LockedError,
    RequestError,
    TargetError,
    TooFewPersonsError,
    UnsupportedTypeError,
)
from kanon_spark.io.files import LocalStore
from kanon_spark.releases.lock import TargetLock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = tuple[Any, ...]
VISITS = "patient string, age int, sex string, ill string"
JOB = {
    "columns": {
        "quasi_identifiers": {"age": {"hierarchy": {"interval": {"widths": [10, 50]}}}, "sex": "flat"},
        "sensitive": {"ill": {"l_diversity": 2}},
    },
    "privacy": {"k": 3, "unit": "patient", "personal_k": {"rule": "CASE WHEN age = 37 THEN 4 END"}},
    "method": "datafly",
    "output": {"numeric": "bounds"},
}
Group = tuple[list[int], str, int, list[str], int]


def visits(*groups: Group) -> list[Row]:
    """Rows of groups: ages in turn, sex, patients, diagnoses in turn, rows of each patient."""
    rows = []
    for number, (ages, sex, patients, ills, each) in enumerate(groups):
        for at in range(patients * each):
            patient = f"{number}-{at % patients}"
            rows.append((patient, ages[at % len(ages)], sex, ills[at % len(ills)]))
    return rows


class Levels:
    """The recoding of a full-domain release that counts persons and asks for two diagnoses in every class."""

    def __init__(self, spark: "SparkSession", folder: Path) -> None:
        self.world = World(spark, folder)
        self.both = ["flu", "cold"]
        table = self.table(
            ([31, 32], "m", 8, self.both, 1),
            ([35], "m", 2, self.both, 1),
            ([52, 53], "f", 8, self.both, 2),
            ([51, 52], "m", 8, self.both, 1),
        )
        release = Anonymizer({**JOB, "execution": {"work_dir": str(folder / "work")}}).run(table)
        assert release.recoding is not None
        self.recoding = release.recoding

    def table(self, *groups: Group) -> "DataFrame":
        spark = self.world.spark
        path = self.world.save(spark.createDataFrame(visits(*groups), VISITS).coalesce(1), f"table_{len(groups)}")
        return spark.read.parquet(str(path))


@pytest.fixture(scope="module")
def levels(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Iterator[Levels]:
    yield Levels(spark, tmp_path_factory.mktemp("levels"))


def test_persons_and_models_decide_what_is_held_back(levels: Levels) -> None:
    new = levels.table(
        ([31, 37], "m", 4, ["flu", "cold"], 2),  # 37 is new, and its interval is known
        ([52], "f", 2, ["flu", "cold"], 5),  # many rows of two persons
        ([52], "m", 4, ["flu"], 1),  # one diagnosis
        ([31], "x", 4, ["flu", "cold"], 1),  # no class has this sex
        ([71], "m", 4, ["flu", "cold"], 1),  # nor this age
    )
    applied = levels.recoding.apply(new)
    found = Counter((row["age"], row["age_lo"], row["age_hi"], row["sex"]) for row in applied.table.collect())
    assert found == {("[30, 39]", 30.0, 39.0, "m"): 8}
    assert applied.counts == {"input": 30, "released": 8, "held_back": 22, "not_covered": 8, "failing": 14}
    assert applied.manifest["persons_held_back"] == 14
    assert applied.manifest["privacy"]["k"] == {"asked": 3, "achieved": 4}
    assert any(check["name"] == "l_diversity(ill)" and check["passed"] for check in applied.manifest["checks"])


@pytest.mark.parametrize("unit", ["patient", None])
def test_what_is_held_back_is_counted_as_it_is_verified(levels: Levels, tmp_path: Path, unit: str | None) -> None:
    """Who has three raw tuples weighs three times in entropy: 3:1 waits, though by distinct persons it is 1:1."""
    columns = {
        **JOB["columns"],
        "identifiers": ["patient"],
        "sensitive": {"ill": {"l_diversity": {"l": 2, "kind": "entropy"}}},
    }
    privacy = {"k": 2, "personal_k": {"rule": "CASE WHEN age = 49 THEN 3 END"}, **({"unit": unit} if unit else {})}
    job = {**JOB, "columns": columns, "privacy": privacy, "execution": {"work_dir": str(tmp_path)}}
    ages = [[20, 21, 22, 23], [30, 31, 32, 33], [40, 41, 42, 43]]
    table = levels.table(*((each, sex, 4, levels.both, 1) for each, sex in zip(ages, "mfm", strict=True)))
    release = Anonymizer(job).run(table)
    assert release.recoding is not None
    new = levels.table(
        ([20, 21, 22], "m", 1, ["flu"], 3),
        ([20], "m", 1, ["cold"], 1),
        ([31, 32], "f", 2, levels.both, 2),  # copies weigh nothing
        ([40, 49], "m", 2, levels.both, 1),  # one of the two asks for three
    )
    applied = release.recoding.apply(new)
    assert Counter(row["age"] for row in applied.table.collect()) == {"[30, 39]": 4}
    assert applied.counts == {"input": 10, "released": 4, "held_back": 6, "not_covered": 0, "failing": 6}


def test_the_mapping_of_whole_columns(levels: Levels, tmp_path: Path) -> None:
    files = levels.recoding.export(tmp_path / "mapping")
    assert [path.name for path in files] == ["age.csv", "sex.csv"]
    ages = [line.split(",", 1) for line in files[0].read_text().splitlines()]
    assert ages[0] == ["value", "label"]
    # Two persons are 35: that value is left out.
    assert {value: label for value, label in ages[1:]} == {
        '"31"': '"[30, 39]"',
        '"32"': '"[30, 39]"',
        '"51"': '"[50, 59]"',
        '"52"': '"[50, 59]"',
        '"53"': '"[50, 59]"',
    }
    assert files[1].read_text() == 'value,label\n"f","f"\n"m","m"\n'
    with pytest.raises(TargetError, match="already"):
        levels.recoding.export(tmp_path / "mapping")


def test_too_few_rows(levels: Levels) -> None:
    table = levels.table(([31], "m", 2, levels.both, 1))
    with pytest.raises(TooFewPersonsError):
        levels.recoding.apply(table)
    with pytest.raises(EmptyTableError):
        levels.recoding.apply(table.limit(0))


def test_a_table_of_which_nothing_fits(levels: Levels, tmp_path: Path) -> None:
    table = levels.table(([5], "x", 5, levels.both, 1))
    with pytest.raises(DataError, match="none of the 5 rows") as failed:
        levels.recoding.apply(table, to=str(tmp_path / "out" / "nothing"))
    assert failed.value.exit_code == 3
    assert not list((tmp_path / "out").iterdir())


def test_tables_that_do_not_suit_it(levels: Levels) -> None:
    from pyspark.sql import functions as F

    table = levels.table(([31], "m", 4, levels.both, 1))
    with pytest.raises(RequestError, match="sex"):
        levels.recoding.apply(table.drop("sex"))
    with pytest.raises(DataError, match="note"):  # a column without a role
        levels.recoding.apply(table.withColumn("note", F.lit("x")))
    with pytest.raises(UnsupportedTypeError, match="integer"):
        levels.recoding.apply(table.withColumn("age", F.col("age").cast("double")))


def test_what_fails_leaves_nothing(levels: Levels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = levels.table(([31], "m", 4, levels.both, 1), ([52], "m", 2, levels.both, 1))
    out = tmp_path / "out"
    before = sorted(levels.world.folder.rglob("*"))
    lock = TargetLock(LocalStore(), str(out / ".locked._kanon_lock"), run_id=new_run_id(), lease=60)
    with lock, pytest.raises(LockedError):
        levels.recoding.apply(table, to=str(out / "locked"))
    # The check does not rest on what decided: without the decision it fails, and nothing is published.
    monkeypatch.setattr(applying, "hold_back", lambda *args, **options: args[4])
    with pytest.raises(GuaranteeError, match="k: "):
        levels.recoding.apply(table, to=str(out / "careless"))
    assert not list(out.iterdir())
    assert sorted(levels.world.folder.rglob("*")) == before
