"""`kanon suggest` on whole tables: the roles a person would give, a job that runs as it stands, and nothing told."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.csv
import pyarrow.parquet
import pytest
import yaml
from suggest_tables import TABLES

from kanon_spark import Anonymizer, suggest
from kanon_spark.cli.main import invoke
from kanon_spark.demo.table import make_admissions
from kanon_spark.errors import DataError, EmptyTableError, MissingInputError, RequestError, TooFewPersonsError
from kanon_spark.explore.suggest.profiling import profile_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AGREEMENT = 0.9
NEVER_KEPT = {"identifier", "quasi-identifier"}


@dataclass(frozen=True)
class Told:
    """What the command printed, and where it was called."""

    folder: Path
    yaml: str
    stderr: str

    @property
    def config(self) -> dict[str, Any]:
        return dict(yaml.safe_load(self.yaml))


@pytest.fixture
def ask(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., Told]:
    """`kanon suggest … > c.yaml` in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def asked(*arguments: str) -> Told:
        capfd.readouterr()
        assert invoke(["suggest", *arguments]) == 0, capfd.readouterr().err
        told = capfd.readouterr()
        (tmp_path / "c.yaml").write_text(told.out, encoding="utf-8")
        return Told(tmp_path, told.out, told.err)

    return asked


def roles_of(config: dict[str, Any], names: list[str]) -> dict[str, str]:
    """Each column's role in a configuration: `drop` where it has none."""
    columns = config["columns"]
    assert columns["other"] == "drop"
    named = {"identifiers": "identifier", "quasi_identifiers": "quasi-identifier", "sensitive": "sensitive"}
    given = {name: role for key, role in named.items() for name in columns.get(key, ())}
    return {name: given.get(name, "drop") for name in names}


def assert_agrees(config: dict[str, Any], expected: dict[str, Any]) -> None:
    """Nine in ten as a person decided, the same person's id, and nothing that must not be kept is."""
    roles = roles_of(config, list(expected["columns"]))
    wrong = {name: role for name, role in roles.items() if role != expected["columns"][name]}
    assert len(wrong) <= (1 - AGREEMENT) * len(roles), wrong
    assert not [name for name, role in wrong.items() if role == "sensitive"], wrong
    assert config["privacy"].get("unit") == expected.get("unit")


@pytest.fixture(scope="module")
def expected(repo: Path) -> dict[str, Any]:
    text = (repo / "tests" / "golden" / "suggested_roles.yaml").read_text(encoding="utf-8")
    return dict(yaml.safe_load(text))


@pytest.mark.parametrize("name", ["admissions", *TABLES])
def test_the_draft_of_a_table_runs_unchanged(
    name: str, ask: Callable[..., Told], expected: dict[str, Any], spark: "SparkSession"
) -> None:
    table = make_admissions(800) if name == "admissions" else TABLES[name]()
    if name == "hospital_cases":  # as such tables often come
        pyarrow.csv.write_csv(table, f"{name}.csv")
        told = ask(f"{name}.csv")
    else:
        pyarrow.parquet.write_table(table, f"{name}.parquet")
        told = ask(f"{name}.parquet")
    assert_agrees(told.config, expected[name])
    assert "Please decide:" in told.yaml
    assert invoke(["run", "c.yaml", "--quiet"]) == 0
    manifest = json.loads((told.folder / "out" / name / "manifest.json").read_text())
    assert manifest["privacy"]["k"]["achieved"] >= 5
    assert manifest["rows"]["released"] == table.num_rows
    released = spark.read.parquet(str(told.folder / "out" / name / "release"))
    kept = {column for column, role in roles_of(told.config, table.column_names).items() if role == "sensitive"}
    assert kept.isdisjoint({n for n, role in expected[name]["columns"].items() if role in NEVER_KEPT})
    assert set(released.columns) == kept | set(told.config["columns"]["quasi_identifiers"])


def test_adult(ask: Callable[..., Told], expected: dict[str, Any], shared: Path) -> None:
    told = ask(str(shared / "data" / "adult.csv"))
    assert_agrees(told.config, expected["adult"])
    assert "53.7% of the rows are the only ones" in told.yaml


@pytest.mark.slow
def test_adult_runs_unchanged(ask: Callable[..., Told], shared: Path) -> None:
    told = ask(str(shared / "data" / "adult.csv"))
    assert invoke(["run", "c.yaml", "--quiet"]) == 0
    assert json.loads((told.folder / "out/adult/manifest.json").read_text())["rows"]["released"] == 32_561


def odd_table(spark: "SparkSession") -> Any:
    """Every kind of column with odd names, and values that must be told nowhere."""
    rows = [
        (
            f"CANARY-{n}",  # name
            f"c{n}@canary.example",  # contact
            {"street": f"CANARY {n}"},  # nested
            bytearray(b"CANARY"),
            20 + n % 40 if n else 987_654,  # an age that cannot be
            "CANARY-illness" if n == 1 else ["flu", "gout", "asthma"][n % 3],
            ["red", "green", None][n % 3],
            float("inf") if n == 2 else float(n % 50),
            "CANARY-town" if n == 3 else f"town {'abcdefgh'[n % 8]}",
            f"CANARY wrote a long letter about number {n} and more",
            "constant",
        )
        for n in range(120)
    ]
    names = ["name", "contact.data", "nested", "bytes", "Alter", "diagnosis", "no", "height: cm", "ci`ty", "text", "c"]
    kinds = ["string"] * len(names)
    kinds[2:5], kinds[7] = ["struct<street:string>", "binary", "int"], "double"
    schema = ", ".join(f"c{n} {kind}" for n, kind in enumerate(kinds))
    return spark.createDataFrame(rows, schema).toDF(*names)


def test_no_value_leaks_and_odd_columns_are_well(
    ask: Callable[..., Told], spark: "SparkSession", tmp_path: Path
) -> None:
    odd_table(spark).write.parquet(str(tmp_path / "an odd: täble"))
    told = ask("an odd: täble", "--name", "odd", "--k", "4", "--sink", "published")
    roles = roles_of(told.config, ["name", "contact.data", "nested", "bytes", "Alter", "diagnosis", "no", "height: cm"])
    assert list(roles.values()) == [
        "identifier", "identifier", "drop", "drop", "quasi-identifier", "sensitive", "quasi-identifier",
        "quasi-identifier",
    ]  # fmt: skip
    interval = told.config["columns"]["quasi_identifiers"]["Alter"]["hierarchy"]["interval"]
    assert interval["top"] <= 110, "one impossible age does not stretch the others"
    for text in (told.yaml, told.stderr):
        assert "CANARY" not in text
        assert "987654" not in text
        assert "987,654" not in text
        assert "town a" not in text
    assert "look at every column" in told.stderr
    assert "- text: Free text" in told.yaml
    assert invoke(["run", "c.yaml", "--quiet"]) == 0
    assert list((tmp_path / "published").glob("*.parquet"))
    assert (tmp_path / "published_report" / "manifest.json").exists()


def test_a_dataframe_in_python(spark: "SparkSession") -> None:
    table = spark.range(60).selectExpr("id AS patient_no", "id % 40 AS age", "CAST(id % 2 AS boolean) AS smoker")
    draft = suggest(table, k=3)
    assert draft.roles == {"patient_no": "identifier", "age": "quasi-identifier", "smoker": "quasi-identifier"}
    assert (draft.unit, draft.uniqueness.unique) == (None, 20)
    assert {"source", "sink"}.isdisjoint(draft.config)
    assert Anonymizer.from_dict(draft.config).check(table) == []


@pytest.mark.parametrize(
    ("columns", "kind", "words"),
    [
        (["CAST(id AS string) AS name"], EmptyTableError, "no rows"),
        (["id AS age", "id AS AGE"], DataError, "several columns are called 'age'"),
        (["CAST(id AS string) AS name", "array(id) AS things", "1 AS one"], DataError, "no column was found by which"),
        (["id % 3 AS patient_id", "id AS age"], TooFewPersonsError, "3 persons by 'patient_id', fewer than k = 5"),
        (["id AS age"], TooFewPersonsError, "4 rows, fewer than k = 5"),
    ],
)
def test_data_that_no_draft_fits(spark: "SparkSession", columns: list[str], kind: type[DataError], words: str) -> None:
    rows = {EmptyTableError: 0, TooFewPersonsError: 4 if len(columns) == 1 else 50}.get(kind, 50)
    with pytest.raises(kind, match=words) as caught:
        suggest(spark.range(rows).selectExpr(*columns))
    assert caught.value.exit_code == 3


def test_no_table_is_2(spark: "SparkSession", tmp_path: Path) -> None:
    with pytest.raises(MissingInputError):
        suggest(tmp_path / "nothing.parquet")
    with pytest.raises(MissingInputError):
        suggest("no_such_table")
    with pytest.raises(RequestError, match="k must be 2"):
        suggest("no_such_table", k=1)


def test_a_part_of_the_rows_tells_the_same(spark: "SparkSession") -> None:
    """Distinct values, ends and values of columns with few are those of all rows; the part does not depend on order."""
    table = spark.range(4_000).selectExpr("id", "id % 90 AS age", "concat('mail', id, '@example.org') AS contact")
    part = profile_table(table, looked_at=400)
    again = profile_table(table.repartition(5, "age"), looked_at=400)
    assert part == again
    assert part.one_in == 10
    numbers, age, contact = part.columns
    assert numbers.spread is not None
    assert (numbers.spread.least, numbers.spread.largest) == (0, 3_999)
    assert abs(numbers.distinct - 4_000) < 200
    assert age.counts is not None
    assert sum(age.counts.values()) == 4_000
    assert contact.share("e-mail addresses") == 1
    same = profile_table(spark.range(2_000).selectExpr("1 AS one", "'x' AS x"), looked_at=100)
    assert same.one_in == 1, "equal rows are looked at whole"
