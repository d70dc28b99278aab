"""Executors whose Python is a packed environment, as `--archives` ships it."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from standalone import REPO, Cluster
from test_cluster_lost_worker import SMALL, job

pytest.importorskip("venv_pack", reason="scripts/setup brings it")


def pack(out: Path, *options: str) -> Path:
    """Run `scripts/pack_env`."""
    environment = {**os.environ, "KANON_PYTHON": sys.executable}
    command = [str(REPO / "scripts" / "pack_env"), "--out", str(out), *options]
    packed = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert packed.returncode == 0, packed.stderr
    return out


def test_a_thin_archive_carries_the_package(tmp_path: Path) -> None:
    archive = pack(tmp_path / "env.tar.gz", "--thin")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "unpacked", filter="fully_trusted")  # it links to a Python elsewhere, by design
    program = "import kanon_spark; print(kanon_spark.__file__)"
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    python = tmp_path / "unpacked" / "bin" / "python"
    asked = subprocess.run([python, "-c", program], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert Path(asked.stdout.strip()).is_relative_to(tmp_path / "unpacked"), asked.stderr


@pytest.mark.slow
def test_executors_run_in_the_packed_environment(tmp_path: Path) -> None:
    probe = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "PyYAML", "--dest", str(tmp_path)]
    if subprocess.run(probe, capture_output=True, check=False).returncode != 0:
        pytest.skip("pip reaches no package index here")
    archive = pack(tmp_path / "env.tar.gz")
    config = job(tmp_path, SMALL, k=2, block_size=60, stitch="local")
    with Cluster(tmp_path) as cluster:
        manifest = cluster.submit(config, archive=archive).manifest
    assert manifest["blocks"] > 1, "solved by the executors"
    assert manifest["outcome"] == "published"
    assert list(tmp_path.glob("worker*/*/*/environment/bin/python")), "they had unpacked it"
