"""`check` on privacy models: what cannot be met is an error, what leaves hardly any choice a warning."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

from kanon_spark.config.checking import exit_code_of
from kanon_spark.config.findings import Finding
from kanon_spark.config.loader import load_config
from kanon_spark.config.models import Config
from kanon_spark.config.preflight import check_schema, check_table
from kanon_spark.config.sensitive_findings import count_columns

QIS = {"quasi_identifiers": ["age"], "other": "drop"}


def check(
    spark: SparkSession, source: DataFrame, folder: Path, sensitive: Any, *, show: bool = False, **privacy: Any
) -> list[Finding]:
    raw = {"columns": {**QIS, "sensitive": sensitive}, "privacy": {"k": 2, **privacy}}
    loaded = replace(load_config(raw), base_dir=folder)
    return check_table(spark, loaded, source, show_values=show)


@pytest.fixture(scope="module")
def people(spark: SparkSession) -> DataFrame:
    """20 rows of 10 persons: flu 12, HIV 5, null 3; costs 1 to 4, five of each; one wish of 30."""
    ills = ["flu"] * 12 + ["HIV"] * 5 + [None] * 3
    rows = [(f"p{n % 10}", n % 2, ills[n], n % 4 + 1.0, 30 if n == 7 else None) for n in range(20)]
    return spark.createDataFrame(rows, "pid string, age int, ill string, cost double, wish int").cache()


def told(found: list[Finding]) -> list[tuple[str, str, int | None]]:
    return [(finding.level, finding.path, finding.exit_code) for finding in found]


def test_columns_are_counted_without_their_values(people: DataFrame) -> None:
    raw = {
        "columns": {**QIS, "sensitive": {"ill": {"alpha": {"alpha": 0.1, "values": ["HIV", "none"]}}, "cost": {}}},
        "privacy": {"k": 2, "l_diversity": 2, "personal_k": "wish"},
    }
    columns, models = count_columns(people, Config.model_validate(raw))
    ill, cost, wishes = columns
    assert (sorted(ill.counts.tolist()), ill.counts[ill.null]) == ([3, 5, 12], 3)
    assert (cost.counts.tolist(), cost.null) == ([5, 5, 5, 5], -1)
    assert [model.words for model in models["ill"]] == [
        "distinct l-diversity (l = 2)",
        "(alpha,k)-anonymity (alpha = 0.1, 1 named values)",
    ]
    (watched,) = models["ill"][1].values  # type: ignore[attr-defined]
    assert ill.counts[watched] == 5
    assert wishes.amounts is not None
    assert dict(zip(wishes.amounts.tolist(), wishes.counts.tolist(), strict=True)) == {2: 19, 30: 1}
    by_person, _ = count_columns(people, Config.model_validate({**raw, "privacy": {"l_diversity": 2, "unit": "pid"}}))
    # Two of the ten have flu twice, each time with other costs: so many raw combinations, and so many persons.
    assert np.sort(by_person[0].counts).tolist() == [3, 5, 12]
    assert by_person[0].people is not None and np.sort(by_person[0].people).tolist() == [3, 5, 10]
    assert by_person[1].people is None


def test_what_cannot_be_met_is_explained_in_one_pass(spark: SparkSession, people: DataFrame, tmp_path: Path) -> None:
    found = check(
        spark,
        people,
        tmp_path,
        {"ill": {"l_diversity": 3, "alpha": {"alpha": 0.2, "values": ["HIV"]}}, "cost": {"alpha": 0.25}},
        personal_k="wish",
    )
    assert exit_code_of(found) == 3
    assert told(found) == [
        ("error", "columns.sensitive.ill", 3),
        ("error", "columns.sensitive.ill", 3),
        ("error", "privacy.personal_k", 3),
    ]
    assert found[0].message == "distinct l-diversity (l = 3) cannot be met: the table holds only 2 values"
    assert "has 0.25" in found[1].message
    assert "somebody asks for a k of 30, and the table has 20 persons" in found[2].message
    assert not any("HIV" in f"{finding}" for finding in found)
    # With enough suppression the one who asks for 30, and enough of the five with HIV, can go.
    easier = {"ill": {"alpha": {"alpha": 0.2, "values": ["HIV"]}}}
    assert check(spark, people, tmp_path, easier, personal_k="wish", max_suppression=0.1) == []


def test_persons_are_counted_as_a_run_counts_them(spark: SparkSession, people: DataFrame, tmp_path: Path) -> None:
    """All ten have flu, each at one age: no class can have fewer. By rows it would be 12 of 20."""
    found = check(spark, people, tmp_path, {"ill": {"l_diversity": 3, "alpha": 0.7}}, unit="pid")
    assert told(found) == [("error", "columns.sensitive.ill", 3)] * 2
    assert found[1].message.endswith("carried by 10 persons, and the classes have at most 10 members in all")
    # Somebody who stands in many places with one value counts once in a class of everything.
    rows = [("p0", age, "HIV") for age in range(10)] + [(f"p{n}", n, "flu") for n in range(1, 10)]
    often = spark.createDataFrame(rows, "pid string, age int, ill string")
    assert check(spark, often, tmp_path, {"ill": {"alpha": {"alpha": 0.2, "values": ["HIV"]}}}, unit="pid") == []


def test_demands_that_leave_no_choice_are_warned_of(spark: SparkSession, people: DataFrame, tmp_path: Path) -> None:
    found = check(spark, people, tmp_path, {"ill": {"delta_disclosure": 1, "t_closeness": 0}, "cost": {}})
    assert told(found) == [("warning", "columns.sensitive.ill", None)] * 2
    assert "leaves a single class" in found[0].message
    assert "at most 3 classes" in found[1].message


def test_values_that_are_named_in_vain_are_warned_of(spark: SparkSession, people: DataFrame, tmp_path: Path) -> None:
    asked = {
        "ill": {"alpha": {"alpha": 0.9, "values": ["HIV", "hiv"]}},
        "cost": {"alpha": {"alpha": 1, "values": ["77"]}},
    }
    found = check(spark, people, tmp_path, asked)
    assert told(found) == [("warning", "columns.sensitive.ill", None), ("warning", "columns.sensitive.cost", None)]
    assert all(each.message.startswith("1 of the values that alpha names do not occur") for each in found)
    assert all("write them as the column does" in each.fix for each in found)
    right = {
        "ill": {"alpha": {"alpha": 0.9, "values": ["HIV"]}},
        "cost": {"alpha": {"alpha": 1, "values": ["3", "3.0"]}},
    }
    assert check(spark, people, tmp_path, right) == []


def test_hierarchies_of_sensitive_columns(spark: SparkSession, people: DataFrame, tmp_path: Path) -> None:
    (tmp_path / "ill.csv").write_text("flu;common;*\n", encoding="utf-8")
    near = {"hierarchy": "ill.csv", "t_closeness": {"t": 0.5, "distance": "hierarchical"}}
    (missing,) = check(spark, people, tmp_path, {"ill": near})
    assert told([missing]) == [("error", "columns.sensitive.ill.hierarchy", 3)]
    assert missing.message == "the file misses 1 distinct value in 5 rows"
    (shown,) = check(spark, people, tmp_path, {"ill": near}, show=True)
    assert "such as 'HIV'" in shown.message
    lenient = {**near, "hierarchy": {"csv": {"path": "ill.csv", "unknown": "root"}}}
    (warned,) = check(spark, people, tmp_path, {"ill": lenient})
    assert told([warned]) == [("warning", "columns.sensitive.ill.hierarchy", None)]
    (tmp_path / "broken.csv").write_text("flu;a;*\nHIV;b\n", encoding="utf-8")
    (broken,) = check(spark, people, tmp_path, {"ill": {**near, "hierarchy": "broken.csv"}})
    assert told([broken]) == [("error", "columns.sensitive.ill.hierarchy", 2)]
    (unused,) = check(spark, people, tmp_path, {"ill": {"hierarchy": "flat", "l_diversity": 2}})
    assert (unused.level, unused.message) == ("warning", "no model uses it")


def test_populations(spark: SparkSession, people: DataFrame, tmp_path: Path) -> None:
    people.select("age").limit(4).coalesce(1).write.parquet(str(tmp_path / "people"))
    people.select("cost").write.parquet(str(tmp_path / "others"))
    assert check(spark, people, tmp_path, [], k_map={"k": 4, "path": "people"}) == []
    (few,) = check(spark, people, tmp_path, [], k_map={"k": 5, "path": "people"})
    assert told([few]) == [("error", "privacy.k_map.k", 3)]
    assert "the population has 4 persons" in few.message
    people.select("age", "pid").write.parquet(str(tmp_path / "named"))
    (named,) = check(spark, people, tmp_path, [], k_map={"k": 11, "path": "named"}, unit="pid")
    assert "the population has 10 persons" in named.message
    (other,) = check(spark, people, tmp_path, [], k_map={"k": 5, "path": "others"})
    assert (told([other])[0], "no column 'age'" in other.message) == (("error", "privacy.k_map", 2), True)
    (absent,) = check(spark, people, tmp_path, [], k_map={"k": 5, "path": "nobody"})
    assert told([absent]) == [("error", "privacy.k_map", 2)]


@pytest.mark.parametrize(
    ("sensitive", "privacy", "expected"),
    [
        ({"tags": {"alpha": 0.5}}, {}, ("columns.sensitive.tags", 3)),
        ({"tags": {}}, {}, None),
        ({"ill": {"t_closeness": {"t": 0.1, "distance": "ordered"}}}, {}, ("columns.sensitive.ill.t_closeness", 3)),
        (
            {"ill": {"alpha": 0.5, "hierarchy": {"date": {"levels": ["year"]}}}},
            {},
            ("columns.sensitive.ill.hierarchy", 2),
        ),
        ({}, {"personal_k": "ill"}, ("privacy.personal_k", 3)),
        ({}, {"personal_k": "nothing"}, ("privacy.personal_k", 2)),
        ({}, {"personal_k": {"rule": "age +"}}, ("privacy.personal_k.rule", 2)),
        ({}, {"personal_k": {"rule": "agee + 1"}}, ("privacy.personal_k.rule", 2)),
        ({}, {"personal_k": {"rule": "age / 2"}}, ("privacy.personal_k.rule", 2)),
        ({}, {"personal_k": {"rule": "CASE WHEN age < 18 THEN 20 END"}}, None),
    ],
)
def test_types_are_judged_without_a_job(
    people: DataFrame, sensitive: Any, privacy: dict[str, Any], expected: tuple[str, int] | None
) -> None:
    schema = people.selectExpr("age", "ill", "array(ill) AS tags").schema
    config = Config.model_validate({"columns": {**QIS, "sensitive": sensitive}, "privacy": privacy})
    found = [(finding.path, finding.exit_code) for finding in check_schema(schema, config)]
    assert found == ([expected] if expected else [])


def test_a_misspelt_column_of_a_rule_is_named(people: DataFrame, capfd: pytest.CaptureFixture[str]) -> None:
    config = Config.model_validate({"columns": QIS, "privacy": {"personal_k": {"rule": "agee + 1"}}})
    (found,) = check_schema(people.schema, config)
    assert found.message.startswith("the source has no column `agee`; it has ")
    assert capfd.readouterr().err == ""
