"""The public names, the Anonymizer, and an import that pulls in nothing heavy."""

import inspect
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import kanon_spark
from kanon_spark import Anonymizer
from kanon_spark.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, dict[str, Any]]]:
    """Stands in for the engine and notes how it is called."""
    seen: list[tuple[Any, dict[str, Any]]] = []
    runner = ModuleType("kanon_spark.engine.runner")

    def run(loaded: Any, **options: Any) -> str:
        seen.append((loaded, options))
        return "release"

    runner.run = run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "kanon_spark.engine.runner", runner)
    return seen


def test_the_import_is_light() -> None:
    heavy = ("pyspark", "pandas", "numpy", "numba", "pydantic")
    code = f"import sys, kanon_spark; print([name for name in {heavy} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert answer.stdout.strip() == "[]"


def test_the_import_takes_under_half_a_second() -> None:
    code = "from time import perf_counter as now; begin = now(); import kanon_spark; print(now() - begin)"
    took = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout)
        for _ in range(3)
    ]
    assert min(took) < 0.5, "the best of three: the machine may be busy"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [(["--version"], 0, ""), (["schema"], 0, ""), (["run", "conf/demo.yaml", "--json"], 2, "kanon-spark[spark]")],
)
def test_without_pyspark_it_says_what_to_install(words: list[str], code: int, said: str) -> None:
    program = (
        "import sys; sys.modules['pyspark'] = None; from kanon_spark.cli.main import invoke; "
        f"sys.exit(invoke({words!r}))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False)
    assert answer.returncode == code, answer.stderr
    assert said in answer.stderr


def test_loading_a_configuration_needs_no_spark() -> None:
    code = (
        "import sys; from kanon_spark import Anonymizer; Anonymizer.from_yaml('conf/demo.yaml'); "
        "import kanon_spark.cli.main; print([m for m in ('pyspark', 'pandas', 'numba') if m in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert answer.stdout.strip() == "[]"


def test_public_names_exist_and_others_do_not() -> None:
    for name in set(kanon_spark.__all__) - {"Release"}:  # Release needs the engine
        assert getattr(kanon_spark, name) is not None
    with pytest.raises(AttributeError):
        _ = kanon_spark.Anonimizer


def test_signatures_are_pinned() -> None:
    assert list(inspect.signature(Anonymizer.run).parameters) == ["self", "df", "spark", "listeners"]
    assert list(inspect.signature(Anonymizer.from_yaml).parameters) == ["path", "overrides"]
    assert list(inspect.signature(Anonymizer.check).parameters) == ["self", "df", "spark"]


def test_run_hands_everything_to_the_engine(calls: list[tuple[Any, dict[str, Any]]]) -> None:
    job = Anonymizer(quasi_identifiers=["age"], k=7)
    assert job.run("table", spark="session") == "release"  # type: ignore[arg-type, comparison-overlap]
    loaded, options = calls[0]
    assert loaded.config == job.config
    assert options == {"spark": "session", "table": "table", "listeners": ()}


def test_yaml_dict_and_arguments_are_the_same_job() -> None:
    by_file = Anonymizer.from_yaml(ROOT / "conf" / "minimal.yaml", overrides=["privacy.k=3"])
    by_dict = Anonymizer.from_dict(by_file.config.to_dict())
    by_arguments = Anonymizer(
        source={"path": "../data/people.parquet"},
        quasi_identifiers=["age", "sex", "zip"],
        sensitive=["diagnosis"],
        k=3,
        sink="../out/people",
    )
    assert by_file.config == by_dict.config == by_arguments.config == Anonymizer(by_file.config).config


def test_wrong_arguments_are_told_at_once() -> None:
    with pytest.raises(ConfigError, match="unknown argument"):
        Anonymizer(quasi_identifiers=["age"], kk=3)
    with pytest.raises(TypeError, match="not both"):
        Anonymizer({"columns": {"quasi_identifiers": ["age"]}}, k=3)


def test_a_notebook_shows_the_job_escaped() -> None:
    job = Anonymizer(quasi_identifiers=["<script>"], k=3)
    assert "&lt;script&gt;" in job._repr_html_()
    assert "<script>" not in job._repr_html_()
    assert "k: 3" in repr(job)
