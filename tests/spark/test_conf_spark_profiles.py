"""The Spark profiles in `conf/spark`: every setting is one that Spark knows, takes, and has a reason above it."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROFILES = sorted((Path(__file__).resolve().parents[2] / "conf" / "spark").glob("*.conf"))
# Families of settings that carry a name of one's own; and the master, which Spark registers nowhere.
OPEN = re.compile(
    r"spark\.master$|spark\.executorEnv\.\w+$|spark\.yarn\.appMasterEnv\.\w+$|spark\.kubernetes\.driverEnv\.\w+$"
    r"|spark\.kubernetes\.driver\.secretKeyRef\.\w+$"
    r"|spark\.kubernetes\.(driver|executor)\.volumes\.persistentVolumeClaim\.\w+\.(options\.claimName|mount\.path)$"
)
REGISTRIES = [
    "org.apache.spark.internal.config.package$",
    "org.apache.spark.deploy.k8s.Config$",
    "org.apache.spark.deploy.yarn.config.package$",
    "org.apache.spark.sql.internal.SQLConf$",
]


def settings(path: Path) -> list[tuple[str, str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines if line and not line.startswith("#")]


def test_there_is_a_profile_for_each_place() -> None:
    assert [path.stem for path in PROFILES] == ["kubernetes", "local-big", "standalone", "yarn"]


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_every_paragraph_begins_with_its_reason(path: Path) -> None:
    paragraphs = path.read_text(encoding="utf-8").strip().split("\n\n")
    assert [text for text in paragraphs if not text.startswith("# ")] == []


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_spark_knows_every_setting_and_takes_its_value(path: Path, spark: "SparkSession") -> None:
    jvm: Any = spark.sparkContext._jvm
    for name in REGISTRIES:
        jvm.java.lang.Class.forName(name)  # a registry is filled when it is loaded
    found = dict(settings(path))
    assert len(found) == len(settings(path)), "a setting stands twice"
    for key, value in found.items():
        if not OPEN.match(key):
            entry = jvm.org.apache.spark.internal.config.ConfigEntry.findEntry(key)
            assert entry is not None, key
            entry.valueConverter().apply(value)  # raises for what is no number, size or truth value
