"""The wheel, away from the checkout: what it asks for, and the demo in an environment that has nothing else of ours."""

import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from own_processes import environment

import kanon_spark

pytest.importorskip("hatchling", reason="building a wheel without a network needs hatchling in the environment")


def try_wheel(repo: Path, out: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    """Run `scripts/wheel`, with the packages of the tests."""
    command = [str(repo / "scripts" / "wheel"), "--out", str(out), *options]
    return subprocess.run(
        command, env=environment(KANON_PYTHON=sys.executable), cwd=out, capture_output=True, text=True, check=False
    )


def test_the_demo_runs_from_the_wheel_in_another_folder(repo: Path, tmp_path: Path) -> None:
    ran = try_wheel(repo, tmp_path, "--try", "--offline")
    assert ran.returncode == 0, ran.stderr
    assert f"kanon {kanon_spark.__version__}" in ran.stdout
    assert "out/demo/report.html" in ran.stdout.splitlines()
    assert [path.name for path in tmp_path.iterdir()] == [f"kanon_spark-{kanon_spark.__version__}-py3-none-any.whl"]

    text = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).read(
        f"kanon_spark-{kanon_spark.__version__}.dist-info/METADATA"
    )
    asked = Parser().parsestr(text.decode())
    needs = asked.get_all("Requires-Dist") or []
    assert [need for need in needs if need.startswith("pyspark") and "extra ==" not in need] == []
    assert any(need.startswith("pyspark") and "extra == 'spark'" in need.replace('"', "'") for need in needs)
    assert asked["Version"] == kanon_spark.__version__


@pytest.mark.slow
def test_an_empty_environment_gets_everything_by_pip(repo: Path, tmp_path: Path) -> None:
    probe = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "PyYAML",
        "--dest",
        str(tmp_path / "probe"),
    ]
    if subprocess.run(probe, capture_output=True, check=False).returncode != 0:
        pytest.skip("pip reaches no package index here")
    (tmp_path / "dist").mkdir()
    ran = try_wheel(repo, tmp_path / "dist", "--try")
    assert ran.returncode == 0, ran.stderr + ran.stdout
    assert "Spark" in ran.stdout, "the doctor's list"
    assert "out/demo/report.html" in ran.stdout.splitlines()
