"""Reference taxonomies in a whole run: countries, states, ages, diagnoses whose codes are longer than the file's."""

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from run_world import World

from kanon_spark.config.loader import load_config
from kanon_spark.config.models import PrivacySpec, ReferenceSpec, SensitiveSpec
from kanon_spark.config.preflight import check_table
from kanon_spark.config.reference_files import reference_file
from kanon_spark.errors import CoverageError
from kanon_spark.hierarchy.build import build_tree
from kanon_spark.hierarchy.stems import ranked
from kanon_spark.hierarchy.tree import Domain
from kanon_spark.privacy.asked import models_of
from kanon_spark.privacy.columns import Column
from kanon_spark.privacy.histograms import histograms_of
from kanon_spark.privacy.judging import judge
from kanon_spark.verify.asked import Asked
from kanon_spark.verify.models import find_models

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kanon_spark.engine.release import Release

SCHEMA = "country string, state string, age int, main string, second string, cause string"
ROWS: list[tuple[Any, ...]] = [
    *[("FR", "CA", 31 + i % 2, "E11.9", "I10", "C50.1") for i in range(6)],
    *[("DE", "CA", 33, ["E119", "E11.65", "E13.9"][i], "I11.9", "E11.9") for i in range(3)],
    *[("KE", "NY", 70 + i, ["C4A.0", "C44.0", "C7A.1"][i], ["I10", "J45.9", "ZZZ"][i], "C50.9") for i in range(3)],
    *[("TZ", "NJ", 75, ["C80.1", "C79.9", "C7B.0"][i], "J45.0", "I10") for i in range(3)],
    *[(None, "TX", 5, "ZZ9", "???", "nonsense") for _ in range(3)],
    *[("BR", "PR", 5 + i, "J45.9", None, None) for i in range(3)],
]
LENIENT = {"name": "icd10", "unknown": "root"}
QIS: dict[str, Any] = {
    "country": {"hierarchy": {"reference": "countries_alpha2"}},
    "state": {"hierarchy": {"reference": "us_states_code"}},
    "age": {"hierarchy": {"reference": "ages"}},
    "main": {"hierarchy": {"reference": {"name": "icd10_cm", "unknown": "root"}}},
    "second": {"hierarchy": {"reference": LENIENT}, "min_level": 1},
}
CAUSE = {"cause": {"hierarchy": {"reference": LENIENT}, "t_closeness": {"t": 0.95, "distance": "hierarchical"}}}


@pytest.fixture(scope="module")
def patients(spark: "SparkSession") -> "DataFrame":
    return spark.createDataFrame(ROWS, SCHEMA).repartition(3).cache()


@pytest.fixture(scope="module")
def world(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory, patients: "DataFrame") -> World:
    world = World(spark, tmp_path_factory.mktemp("references"))
    world.save(patients)
    return world


@pytest.fixture(scope="module")
def release(world: World) -> "Release":
    return world.run(world.job(QIS, columns={"sensitive": CAUSE, "other": "drop"}))


def labels(name: str) -> set[str | None]:
    """Every value and label of a reference."""
    return {None, *reference_file(name).read_text(encoding="utf-8").replace("\n", ";").split(";")}


def test_a_release_by_references_is_verified_and_true(release: "Release") -> None:
    assert release.verify().passed
    assert release.manifest["privacy"]["k"]["achieved"] >= 3
    assert release.manifest["privacy"]["t_closeness(cause)"]["passed"]
    published = [tuple(row) for row in release.table.select(*QIS).collect()]
    assert len(published) == len(ROWS)
    assert min(Counter(published).values()) >= 3
    country, state, age, main, _ = (set(column) for column in zip(*published, strict=True))
    assert country <= labels("countries_alpha2")
    assert state <= labels("us_states_code")
    assert age <= labels("ages")
    # The six from France, alike in all but their age, keep their exact code; who is alone in one does not.
    assert "E11.9" in main
    assert main - {"E11.9", "J45.9"} <= labels("icd10_cm")


def test_min_level_and_unknown_codes(release: "Release") -> None:
    second = {row["second"] for row in release.table.collect()}
    assert not {"I11.9", "J45.9", "J45.0", "???", "ZZZ"} & second
    assert "I10" in second  # a category, which is level 1
    by_cause = {row["cause"]: row for row in release.table.collect()}
    assert by_cause["nonsense"]["main"] == "*"
    assert by_cause["nonsense"]["second"] == "*"
    assert by_cause["nonsense"]["country"] is None


def test_check_counts_what_references_miss(spark: "SparkSession", patients: "DataFrame") -> None:
    strict = {
        "main": {"hierarchy": {"reference": "icd10"}},
        "second": {"hierarchy": {"reference": LENIENT}},
        "state": {"hierarchy": {"reference": "us_states_name"}},
    }
    loaded = load_config({"columns": {"quasi_identifiers": strict, "other": "drop"}, "privacy": {"k": 3}})
    found = {each.path.split(".")[2]: each for each in check_table(spark, loaded, patients)}
    assert (found["main"].level, found["main"].exit_code) == ("error", 3)
    assert "4 distinct values in 6 rows" in found["main"].message  # ZZ9, and what only ICD-10-CM has
    assert "{reference: {name: icd10, unknown: root}}" in found["main"].fix
    assert found["second"].level == "warning"
    assert "2 distinct values in 4 rows" in found["second"].message
    assert "5 distinct values" in found["state"].message


def test_a_run_refuses_what_a_reference_misses(world: World) -> None:
    qis = {"main": {"hierarchy": {"reference": "icd10"}}}
    with pytest.raises(CoverageError, match="4 distinct values in 6 rows") as refused:
        world.run(world.job(qis, sink=None, columns={"other": "drop"}))
    assert refused.value.where == "columns.quasi_identifiers.main"
    assert "{reference: {name: icd10, unknown: root}}" in refused.value.fix
    assert "ZZ9" not in str(refused.value)


def test_codes_that_are_numbers_are_no_diagnoses(spark: "SparkSession") -> None:
    loaded = load_config({"columns": {"quasi_identifiers": {"n": {"hierarchy": {"reference": "icd10"}}}}})
    (found,) = check_table(spark, loaded, spark.range(3).withColumnRenamed("id", "n"))
    assert "texts" in found.message


def test_the_verifier_measures_distances_under_longer_codes_as_the_methods_do(
    spark: "SparkSession", patients: "DataFrame"
) -> None:
    """Hierarchical t-closeness of `cause` with each state as a class, unknown values and nulls included."""
    spec = SensitiveSpec.model_validate(CAUSE["cause"])
    (found,) = find_models(patients, qi=["state"], k=1, asked=Asked({"cause": spec}))

    hierarchy = ReferenceSpec(name="icd10", unknown="root")
    texts = tuple({row[5] for row in ROWS if row[5] is not None})
    ordered = tuple(texts[i] for i in ranked(texts, hierarchy))
    domain = Domain("text", ordered, np.full(len(ordered), np.nan), np.ones(len(ordered), np.int64), has_null=True)
    tree = build_tree(hierarchy, domain, qi="cause")
    codes = np.array([[(*ordered, None).index(row[5])] for row in ROWS], dtype=np.int32)
    _, class_of = np.unique([row[1] for row in ROWS], return_inverse=True)
    classes = histograms_of(class_of, codes, np.ones(len(ROWS), np.int64), units=int(class_of.max()) + 1)
    column = Column.under(tree, "cause", np.bincount(codes[:, 0], minlength=tree.leaves).astype(np.int64))
    (wanted,) = judge([column], {"cause": models_of(spec, PrivacySpec(), {})}, classes)
    assert found.worst == pytest.approx(wanted.worst, abs=1e-9)
    assert 0 < wanted.worst < 1
