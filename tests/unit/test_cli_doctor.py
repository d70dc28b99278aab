"""`kanon doctor`: what it says when something is missing."""

import json
from importlib import metadata
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kanon_spark.cli import doctor
from kanon_spark.cli.doctor import Probe
from kanon_spark.cli.main import app
from kanon_spark.errors import PlatformError


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_small_job", lambda: ("4.0", 5050))
    monkeypatch.setattr(doctor, "_small_graph", lambda: 2)


def fake_java(folder: Path, version: str) -> None:
    (folder / "bin").mkdir(parents=True)
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n", encoding="utf-8")
    java.chmod(0o755)


def test_all_is_well_with_java_17(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, "17.0.9")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 0, result.stdout
    assert "version 17" in result.stdout
    last = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout.splitlines()[-1])
    assert last["outcome"] == "passed"
    assert {probe["name"] for probe in last["probes"]} >= {"Python", "packages", "Java", "Spark", "GraphFrames"}


def test_no_java_is_2_and_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("shutil.which", lambda name: None)
    result = CliRunner().invoke(app, ["doctor", "--quiet"])
    assert result.exit_code == 2
    assert "install Java 17 or 21" in " ".join(result.stdout.split())
    assert "not tried" in result.stdout


@pytest.mark.parametrize(
    ("version", "state"),
    [("1.8.0_392", "missing"), ("11.0.2", "missing"), ("17", "ok"), ("21.0.1", "ok"), ("24", "note")],
)
def test_java_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, state: str) -> None:
    fake_java(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert doctor.look_at_java().state == state


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PACKAGES", ("numpy", "no-such-package"))
    probe = doctor.look_at_packages()
    assert (probe.state, probe.detail) == ("missing", "not installed: no-such-package")


def test_pandas_3_is_too_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "3.1.0")
    assert doctor.look_at_packages().fix == "pip install 'pandas<3'"


def test_graphframes_jars_are_found_through_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KANON_CACHE", str(tmp_path))
    assert doctor.look_at_graphframes().state == "note"
    (tmp_path / "jars.txt").write_text(f"{tmp_path / 'g.jar'}\n", encoding="utf-8")
    assert doctor.look_at_graphframes().state == "note"
    (tmp_path / "g.jar").touch()
    assert doctor.look_at_graphframes().state == "ok"


def test_graphframes_without_its_python_side_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    probe = doctor.look_at_graphframes()
    assert probe.state == "note"
    assert "kanon-spark[graphframes]" in probe.fix


def test_graphframes_is_tried_and_must_be_right() -> None:
    def broken() -> int:
        raise OSError("jar")

    assert doctor.try_graphframes(lambda: 2).state == "ok"
    assert doctor.try_graphframes(lambda: 1).state == "missing"
    assert doctor.try_graphframes(broken).state == "note", "all but the GraphFrames stitch works without it"


def test_a_folder_without_write_access(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "cwd", classmethod(lambda cls: Path("/proc")))
    assert doctor.look_at_work_dir().state == "missing"


def test_a_broken_spark_is_a_finding_not_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def crash() -> tuple[str, int]:
        raise OSError("gateway")

    def refuse() -> tuple[str, int]:
        raise PlatformError("no pyspark", fix="pip install it")

    assert doctor.look_at_spark(crash).state == "missing"
    assert doctor.look_at_spark(refuse) == Probe("Spark", "missing", "no pyspark", "pip install it")
    assert doctor.look_at_spark(lambda: ("4.0", 1)).state == "missing"
