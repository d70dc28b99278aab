"""Processes that tests start: each has a session of its own, whatever the session of the tests is."""

import os
import subprocess
import sys
from pathlib import Path


def environment(**more: str) -> dict[str, str]:
    """That of this process, without what its session has set for its own JVM or server."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
    return {**clean, "PYSPARK_PYTHON": sys.executable, **more}


def run_kanon(repo: Path, config: Path, **more: str) -> "subprocess.CompletedProcess[str]":
    """`kanon run CONFIG --quiet`, as a user starts it; with these variables in its environment."""
    start = "from kanon_spark.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", start, "run", str(config), "--quiet"],
        env=environment(PYTHONPATH=str(repo), **more),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
