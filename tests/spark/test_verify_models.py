"""Privacy models on any table: against the methods' own models, against pycanon, and asked from the command line."""

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from typer.testing import CliRunner

from kanon_spark.cli.main import app
from kanon_spark.config.models import CsvSpec, PrefixSpec, PrivacySpec, SensitiveSpec
from kanon_spark.errors import CoverageError, MissingInputError, RequestError, UnsupportedTypeError
from kanon_spark.hierarchy.build import load_static
from kanon_spark.privacy.asked import models_of
from kanon_spark.privacy.columns import Column
from kanon_spark.privacy.histograms import histograms_of
from kanon_spark.privacy.judging import judge
from kanon_spark.privacy.personal_k import PersonalK
from kanon_spark.verify.asked import Asked, Found, Population
from kanon_spark.verify.models import find_models
from kanon_spark.verify.table import verify_table

PLACES = {"flu": "lung", "asthma": "lung", "ulcer": "stomach", "gastritis": "stomach", "HIV": "blood"}
HIERARCHY = "".join(f"{ill};{place};{'inner' if place != 'blood' else 'outer'};*\n" for ill, place in PLACES.items())
ENTROPY = {"l": 2, "kind": "entropy"}
RECURSIVE = {"l": 2, "kind": "recursive", "c": 2}
ENHANCED = {"beta": 1, "kind": "enhanced"}
# Each column carries all models, l-diversity and the two kinds of likeness in turn.
KINDS: list[dict[str, Any]] = [
    {"l_diversity": 2, "beta_likeness": 1, "alpha": 0.5, "delta_disclosure": 1.5},
    {"l_diversity": {"l": 2.5, "kind": "entropy"}, "beta_likeness": {"beta": 2, "kind": "enhanced"}},
    {"l_diversity": {"l": 2, "kind": "recursive", "c": 1.5}, "alpha": {"alpha": 0.3, "values": ["HIV", "3.0"]}},
]


def draw_rows(seed: int, size: int = 120) -> pd.DataFrame:
    draw = random.Random(seed)
    classes = draw.choice([1, 4, 9])
    ills = [draw.choice([*PLACES, None]) for _ in range(size)]
    return pd.DataFrame(
        {
            "age": [str(draw.randrange(classes)) for _ in range(size)],
            "ill": [ill if place > 4 or ill != "HIV" else "flu" for place, ill in enumerate(ills)],
            "cost": [draw.choice([1.0, 2.0, 3.0, 7.5, 100.0, None]) for _ in range(size)],
        }
    )


def to_spark(spark: SparkSession, rows: pd.DataFrame, schema: str) -> DataFrame:
    return spark.createDataFrame(rows.astype(object).where(rows.notna(), None).values.tolist(), schema)


def coded(rows: pd.DataFrame, path: Path) -> tuple[list[Column], np.ndarray, np.ndarray]:
    """The two sensitive columns as a method would see them: columns, class of each row, codes."""
    static = load_static(CsvSpec(path=str(path)), qi="ill", base_dir=path.parent, numeric=False)
    ill = np.array([static.tree.null_leaf if ill is None else static.lookup[ill] for ill in rows["ill"]])
    numbers = sorted(rows["cost"].dropna().unique())
    cost = np.array([len(numbers) if math.isnan(x) else numbers.index(x) for x in rows["cost"]])
    columns = [
        Column.under(static.tree, "ill", np.bincount(ill, minlength=static.tree.leaves).astype(np.int64)),
        Column("cost", np.bincount(cost, minlength=len(numbers) + 1), null=len(numbers), ordered=True),
    ]
    _, class_of = np.unique(rows["age"], return_inverse=True)
    return columns, class_of, np.stack([ill, cost], axis=1).astype(np.int32)


@pytest.mark.parametrize("seed", [0, 1, 5])
def test_the_verifier_and_the_methods_models_agree(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """Two programs that share no code, on tables with nulls, small classes and missing values."""
    path = tmp_path / "ill.csv"
    path.write_text(HIERARCHY, encoding="utf-8")
    rows = draw_rows(seed)
    distances = {"ill": "hierarchical" if seed % 2 else "equal", "cost": "ordered"}
    specs = {
        name: SensitiveSpec.model_validate({**KINDS[seed % 3], "t_closeness": {"t": 0.2, "distance": distance}})
        for name, distance in distances.items()
    }
    specs["ill"] = specs["ill"].model_copy(update={"hierarchy": CsvSpec(path="ill.csv")})
    table = to_spark(spark, rows, "age string, ill string, cost double")
    found = find_models(table, qi=["age"], k=1, asked=Asked(specs, base_dir=tmp_path))

    columns, class_of, codes = coded(rows, path)
    classes = histograms_of(class_of, codes, np.ones(len(rows), np.int64), units=int(class_of.max()) + 1)
    named = {"ill": {"HIV": int(codes[rows["ill"] == "HIV", 0][0])}, "cost": {"3.0": 2}}
    models = {name: models_of(spec, PrivacySpec(), named[name]) for name, spec in specs.items()}
    wanted = judge(columns, models, classes)
    assert len(found) == len(wanted) >= 6
    for mine, theirs in zip(found, wanted, strict=True):
        assert mine.name.endswith(f"({theirs.column})")
        assert mine.worst == pytest.approx(theirs.worst, abs=1e-9), theirs.model.words
        assert (mine.failing, mine.classes) == (theirs.failing, classes.units), theirs.model.words
        assert mine.check.passed == (theirs.failing == 0)


def worst_of(table: DataFrame, models: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What the worst class has of each model."""
    specs = {name: SensitiveSpec.model_validate(spec) for name, spec in models.items()}
    return {each.name: each.worst for each in find_models(table, qi=["age"], k=1, asked=Asked(specs), **more)}


def test_pycanon_agrees(spark: SparkSession) -> None:
    """On all that it defines as we do. It knows no null and no hierarchy; where it differs, the test says how."""
    anonymity = pytest.importorskip("pycanon.anonymity")
    rows = draw_rows(1).dropna().reset_index(drop=True)
    table = to_spark(spark, rows, "age string, ill string, cost double")

    def theirs(function: str, column: str) -> Any:
        return getattr(anonymity, function)(rows, ["age"], [column])

    specs = {
        "ill": {"l_diversity": 2, "t_closeness": 0.2, "alpha": 0.5, "beta_likeness": 1},
        "cost": {"l_diversity": ENTROPY, "t_closeness": {"t": 0.2, "distance": "ordered"}, "beta_likeness": ENHANCED},
    }
    found = worst_of(table, specs)
    assert found["l_diversity(ill)"] == theirs("l_diversity", "ill")
    assert int(found["l_diversity(cost)"]) == theirs("entropy_l_diversity", "cost")  # it rounds down
    assert found["alpha(ill)"] == pytest.approx(theirs("alpha_k_anonymity", "ill")[0])
    assert found["beta_likeness(ill)"] == pytest.approx(theirs("basic_beta_likeness", "ill"))
    # It takes text for equally far apart, and numbers for ordered by the values that occur: both as we do.
    assert found["t_closeness(ill)"] == pytest.approx(theirs("t_closeness", "ill"))
    assert found["t_closeness(cost)"] == pytest.approx(theirs("t_closeness", "cost"))
    # Enhanced: it returns the largest min(beta, -ln q) over the values, a limit, whether or not the rises keep to it.
    # We say the largest rise, or that no beta will do; where all keep to it, that is the basic beta.
    assert found["beta_likeness(cost)"] in (pytest.approx(theirs("basic_beta_likeness", "cost")), math.inf)

    # Its delta passes over values that a class lacks; where every class has all of them, it is ours.
    every = pd.DataFrame([(age, ill) for age in rows["age"].unique() for ill in PLACES], columns=["age", "ill"])
    full = pd.concat([rows[["age", "ill"]], every], ignore_index=True)
    delta = worst_of(to_spark(spark, full, "age string, ill string"), {"ill": {"delta_disclosure": 1}})
    assert delta["delta_disclosure(ill)"] == pytest.approx(anonymity.delta_disclosure(full, ["age"], ["ill"]))
    # Recursive: it sorts ascending, so that its r1 is the rarest value, not the most frequent one as in the paper.
    # Where a class holds its two values equally often they agree; its c is the next whole number above our ratio.
    even = pd.DataFrame({"age": list("aabb"), "ill": ["flu", "ulcer"] * 2})
    ratio = worst_of(to_spark(spark, even, "age string, ill string"), {"ill": {"l_diversity": RECURSIVE}})
    wanted = anonymity.recursive_c_l_diversity(even, ["age"], ["ill"])[0]
    assert math.floor(ratio["l_diversity(ill)"] + 1) == wanted


def test_persons_are_counted_once_for_each_value(spark: SparkSession) -> None:
    rows = [
        ("a", "p1", "flu", 2),
        ("a", "p1", "flu", 2),
        ("a", "p1", "HIV", 2),
        ("a", "p2", "ulcer", None),
        ("b", None, "flu", 3),
        ("b", None, "flu", 1),
        ("b", "p1", "flu", 2),
    ]
    table = spark.createDataFrame(rows, "age string, pid string, ill string, wish int")
    spec = SensitiveSpec.model_validate({"alpha": {"alpha": 0.5, "values": ["HIV"]}, "l_diversity": RECURSIVE})
    asked = Asked({"ill": spec}, personal_k="wish")
    by_rows = find_models(table, qi=["age"], k=3, asked=asked)
    # One of four rows has HIV; b holds a single value; p2 says nothing and gets the general 3.
    assert [(each.worst, each.failing) for each in by_rows] == [(math.inf, 1), (1 / 4, 0), (1, 0)]
    by_person = find_models(table, qi=["age"], k=3, asked=asked, unit="pid")
    # One of two persons has HIV, and there are only two of them in a.
    assert [(each.worst, each.failing) for each in by_person] == [(math.inf, 1), (1 / 2, 0), (2 / 3, 1)]
    # Of flu, HIV and ulcer there is one person each.
    assert worst_of(table.where("age = 'a'"), {"ill": {"l_diversity": RECURSIVE}}, unit="pid") == {
        "l_diversity(ill)": 1 / 2
    }


def test_a_person_who_asks_for_more_is_the_measure(spark: SparkSession) -> None:
    table = spark.createDataFrame([("a", 2), ("a", None), ("b", 4), ("b", 0), ("b", 1)], "age string, wish int")
    (found,) = find_models(table, qi=["age"], k=2, asked=Asked(personal_k="wish"))
    assert (found.worst, found.failing, found.classes) == (3 / 4, 1, 2)
    counts = np.array([1, 1, 1])
    column = Column.personal("wish", np.array([0, 1, 4]), counts)
    alone = histograms_of(np.zeros(3, np.int64), np.arange(3, dtype=np.int32)[:, None], counts, units=1)
    assert judge([column], {"wish": [PersonalK()]}, alone)[0].worst == 3 / 4


def test_labels_are_held_against_a_population(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "town.csv").write_text("Bern;South;*\nRome;South;*\nOslo;North;*\n", encoding="utf-8")
    rows = [("[20, 29]", "South"), ("[20, 29]", "North"), ("*", "Oslo"), (None, "*")]
    table = spark.createDataFrame(rows, "age string, town string")
    people = [(20, "Bern"), (29, "Rome"), (29, "Rome"), (30, "Bern"), (25, "Oslo"), (None, "Oslo"), (None, None)]
    population = spark.createDataFrame(people, "age int, town string")
    files = {"town": CsvSpec(path="town.csv")}

    def fitting(tuples: DataFrame, k: int) -> Found:
        asked = Asked(population=Population(population, k, files), base_dir=tmp_path)
        (found,) = find_models(tuples, qi=["age", "town"], k=1, asked=asked)
        return found

    # 20-29 in the South: 3; in the North: 1; anybody in Oslo: 2; of unknown age: 2
    found = fitting(table, 3)
    assert (found.worst, found.failing, found.classes) == (1, 3, 4)
    found = fitting(table.union(spark.createDataFrame([("[40, 49]", "South")], table.schema)), 1)
    assert (found.worst, found.failing, found.check.passed) == (0, 1, False)
    with pytest.raises(MissingInputError, match="the population has no column 'town'"):
        find_models(table, qi=["town"], k=1, asked=Asked(population=Population(population.select("age"), 1)))


def test_values_under_prefixes_and_files_of_numbers(spark: SparkSession, tmp_path: Path) -> None:
    """A01 and A02 are near, B01 is far; a file's 39 is a table's 39.0; what it misses is an error unless allowed."""
    table = spark.createDataFrame([("x", "A01"), ("x", "A02"), ("y", "B01"), ("y", "B01")], "age string, icd string")
    spec = SensitiveSpec.model_validate(
        {"t_closeness": {"t": 0.3, "distance": "hierarchical"}, "hierarchy": PrefixSpec(keep=(1,))}
    )
    (found,) = find_models(table, qi=["age"], k=1, asked=Asked({"icd": spec}))
    assert found.worst == 0.5  # of each class half must go from A to B, the whole way
    (tmp_path / "cost.csv").write_text("39;low;*\n40.0;low;*\n90;high;*\n", encoding="utf-8")
    numbers = spark.createDataFrame([("x", 39.0), ("x", 90.0), ("y", 40.0), ("y", 90.0)], "age string, cost double")
    file = CsvSpec(path="cost.csv")
    spec = spec.model_copy(update={"hierarchy": file})
    (found,) = find_models(numbers, qi=["age"], k=1, asked=Asked({"cost": spec}, base_dir=tmp_path))
    assert found.worst == 0.125  # a quarter from 39 to 40, half the way
    strange = numbers.union(spark.createDataFrame([("y", 7.0)], numbers.schema))
    with pytest.raises(CoverageError, match="misses 1 values"):
        find_models(strange, qi=["age"], k=1, asked=Asked({"cost": spec}, base_dir=tmp_path))
    lenient = spec.model_copy(update={"hierarchy": file.model_copy(update={"unknown": "root"})})
    (found,) = find_models(strange, qi=["age"], k=1, asked=Asked({"cost": lenient}, base_dir=tmp_path))
    assert found.worst is not None


def test_requests_that_cannot_be_served(spark: SparkSession, tmp_path: Path) -> None:
    table = spark.createDataFrame(
        [("a", "flu", {"x": 1}, 1.5)], "age string, ill string, tags map<string,int>, k double"
    )
    with pytest.raises(MissingInputError, match="no column 'il'"):
        worst_of(table, {"il": {"alpha": 0.5}})
    with pytest.raises(RequestError, match="quasi-identifier too"):
        worst_of(table, {"age": {"alpha": 0.5}})
    with pytest.raises(UnsupportedTypeError, match="cannot be compared"):
        worst_of(table, {"tags": {"alpha": 0.5}})
    with pytest.raises(UnsupportedTypeError, match="ordered distance needs numbers"):
        worst_of(table, {"ill": {"t_closeness": {"t": 0.2, "distance": "ordered"}}})
    with pytest.raises(RequestError, match="needs a hierarchy file"):
        worst_of(table, {"ill": {"t_closeness": {"t": 0.2, "distance": "hierarchical"}}})
    with pytest.raises(UnsupportedTypeError, match="whole number"):
        find_models(table, qi=["age"], k=2, asked=Asked(personal_k="k"))
    broken = SensitiveSpec.model_validate(
        {"t_closeness": {"t": 0.2, "distance": "hierarchical"}, "hierarchy": "no.csv"}
    )
    with pytest.raises(MissingInputError, match="cannot be read"):
        find_models(table, qi=["age"], k=2, asked=Asked({"ill": broken}, base_dir=tmp_path))


def test_an_empty_table_breaks_no_model(spark: SparkSession) -> None:
    table = spark.createDataFrame([], "age string, cost double")
    spec = SensitiveSpec.model_validate({**KINDS[0], "t_closeness": {"t": 0.2, "distance": "ordered"}})
    verdict = verify_table(table, qi=["age"], k=2, asked=Asked({"cost": spec}))
    assert verdict.passed
    assert len(verdict.checks) == 6


def test_asked_from_the_command_line(spark: SparkSession, tmp_path: Path) -> None:
    """A class that shares one diagnosis is caught with exit code 4, though it has k rows."""
    place = str(tmp_path / "released")
    rows = [("20s", "flu", 1), ("20s", "ulcer", 2), ("30s", "flu", 3), ("30s", "flu", 4)]
    spark.createDataFrame(rows, "age string, ill string, cost int").coalesce(1).write.parquet(place)
    ask = ["verify", place, "--qi", "age", "--k", "2", "--sensitive", "ill,cost"]
    models = ["--l-diversity", "2", "--alpha", "0.75:flu", "--t-closeness", "cost=0.5:ordered"]
    result = CliRunner().invoke(app, [*ask, *models, "--json"])
    assert result.exit_code == 4, result.stderr
    checks = {check["name"]: check for check in json.loads(result.stdout.splitlines()[-1])["checks"]}
    assert {name: check["passed"] for name, check in checks.items()} == {
        "k": True,
        "l_diversity(ill)": False,
        "alpha(ill)": False,
        "l_diversity(cost)": True,
        "t_closeness(cost)": True,
        "alpha(cost)": True,
    }
    assert checks["l_diversity(ill)"]["detail"] == (
        "1 of 2 classes do not have at least 2 different values; the worst has 1"
    )
    kept = CliRunner().invoke(app, [*ask, "--l-diversity", "cost=2", "--beta", "cost=1:enhanced"])
    assert kept.exit_code == 0, kept.stdout + kept.stderr
