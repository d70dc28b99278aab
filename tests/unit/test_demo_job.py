"""The demo's job, as far as it goes without Spark."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from kanon_spark.demo import job


def test_everything_goes_into_one_folder(tmp_path: Path) -> None:
    config = job.load_demo(tmp_path).config
    assert config.source is not None
    assert config.sink is not None
    places = [
        config.source.path,
        config.sink.path,
        config.report.html,
        config.report.manifest,
        config.execution.work_dir,
    ]
    assert all(place is not None and Path(place).parent == tmp_path for place in places)
    assert len(set(places)) == 5


def test_by_default_it_writes_below_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sink = job.load_demo().config.sink
    assert sink is not None
    assert sink.path == str(tmp_path / "out" / "demo" / "release")


@pytest.mark.parametrize("name", ["with space", "a: b", "x #1", "${HOME}", 'quo"te', "ünï", "back\\slash"])
def test_odd_folder_names_are_taken_literally(tmp_path: Path, name: str) -> None:
    sink = job.load_demo(tmp_path / name).config.sink
    assert sink is not None
    assert sink.path == str(tmp_path / name / "release")


def test_it_covers_every_column_of_the_table(repo: Path) -> None:
    config = job.load_demo(Path("/nowhere")).config
    named = {*config.columns.identifiers, *config.columns.quasi_identifiers, *config.columns.sensitive}
    assert named <= {"patient_id", "name", "age", "sex", "zip", "occupation", "admission_date", "diagnosis", "cost"}
    assert config.privacy.unit == "patient_id"


def test_the_wheel_carries_job_hierarchies_and_templates(repo: Path, tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="building a wheel without a network needs hatchling in the environment")
    source = tmp_path / "source"
    shutil.copytree(repo, source, ignore=shutil.ignore_patterns(".git", ".venv", "out", ".*_cache", "__pycache__"))
    built = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(built, cwd=source, check=True, capture_output=True)
    wheel = zipfile.ZipFile(next(tmp_path.glob("*.whl")))
    names = set(wheel.namelist())
    needed = {
        "kanon_spark/demo/data/conf/demo.yaml",
        "kanon_spark/demo/data/hierarchies/demo/occupation.csv",
        "kanon_spark/report/templates/report.html.j2",
        "kanon_spark/report/templates/style.css",
        "kanon_spark/py.typed",
        *(f"kanon_spark/hierarchy/reference_files/{path.name}" for path in (repo / "hierarchies/reference").glob("*")),
    }
    assert needed - names == set()
    assert not [name for name in names if name.startswith("tests/") or ".venv" in name]

    # Installed without a checkout, a configuration finds its reference taxonomies.
    wheel.extractall(tmp_path / "installed")
    program = "from kanon_spark.config.models import ReferenceSpec; print(ReferenceSpec(name='icd10').path)"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}
    found = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    path = Path(found.stdout.strip())
    assert path.is_relative_to(tmp_path / "installed"), found.stderr
    assert path.read_bytes() == (repo / "hierarchies/reference/icd10.csv").read_bytes()
