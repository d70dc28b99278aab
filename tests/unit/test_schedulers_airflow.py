"""The Airflow DAG, imported and run by a real Airflow in an environment of its own (minutes, and a network)."""

import ast
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "conf" / "schedulers"
AIRFLOW = "apache-airflow==3.3.2"


def test_the_dag_maps_every_exit_code() -> None:
    """What can be said without Airflow: it compiles, and 5 is not among the final codes."""
    tree = ast.parse((FOLDER / "airflow_dag.py").read_text(encoding="utf-8"))
    final = next(
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "FINAL"
    )
    assert set(ast.literal_eval(final)) == {2, 3, 4}


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., "subprocess.Popen[str]"]:
    """Starts `airflow …` with the DAG of this repository and a command that ends with a code of our choice."""
    folder = tmp_path_factory.mktemp("airflow")
    python = os.environ.get("KANON_AIRFLOW_PYTHON")  # an environment that has Airflow already
    if python is None:
        python = str(folder / "venv" / "bin" / "python")
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
        install = [python, "-m", "pip", "install", "--quiet", AIRFLOW]
        installed = subprocess.run(install, capture_output=True, text=True, check=False)
        if installed.returncode != 0:
            pytest.skip(f"pip could not install {AIRFLOW} here: {installed.stderr.strip().splitlines()[-1]}")

    def start(*words: str, code: int = 0) -> "subprocess.Popen[str]":
        environment = {
            **{key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "VIRTUAL_ENV"}},
            "AIRFLOW_HOME": str(folder),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DAGS_FOLDER": str(FOLDER),
            "KANON_COMMAND": """sh -c 'echo "{\\"outcome\\": \\"$DAY\\"}"; exit $0'""",
            "KANON_CONFIG": str(code),
        }
        return subprocess.Popen(
            [python, "-m", "airflow", *words],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    for words in (("db", "migrate"), ("dags", "reserialize")):
        process = start(*words)
        said, _ = process.communicate(timeout=600)
        assert process.returncode == 0, said[-2000:]
    return start


def run_until(process: "subprocess.Popen[str]", sign: str) -> str:
    """Read on until a sign or the end; then the process may go."""
    said, end = "", time.monotonic() + 300
    for line in process.stdout or ():
        said += line
        if sign in line or time.monotonic() > end:
            break
    process.kill()
    process.wait()
    return said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "state"),
    [(0, "success"), (2, "failed"), (3, "failed"), (4, "failed"), (1, "up_for_retry"), (5, "up_for_retry")],
)
def test_airflow_retries_what_may_change_and_nothing_else(
    airflow: Callable[..., "subprocess.Popen[str]"], code: int, state: str
) -> None:
    process = airflow("dags", "test", "kanon_nightly", f"2026-01-{code + 10}", code=code)
    said = run_until(process, "new_state=")
    assert f"new_state={state}" in said, said[-3000:]
