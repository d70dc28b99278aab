"""The asset bundle in `conf/databricks`: its form, what it refers to, and its notebooks, as far as that goes elsewhere.

Jobs are read by the classes of `databricks-bundles`, which Databricks makes from the schema of its command line. The
frame around them is held against a schema of our own. Nothing here has seen a workspace.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import yaml
from run_world import smallest_class
from test_notebooks import Utilities, cells_of

from kanon_spark.config.loader import load_config
from kanon_spark.demo.table import make_admissions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = Path(__file__).resolve().parents[2] / "conf" / "databricks"
RESOURCES = sorted((FOLDER / "resources").glob("*.yml"))


def closed(**properties: Any) -> dict[str, Any]:
    """A mapping with these keys and no others."""
    return {"type": "object", "additionalProperties": False, "properties": properties}


def named(value: dict[str, Any]) -> dict[str, Any]:
    """A mapping from names of one's own."""
    return {"type": "object", "propertyNames": {"pattern": r"^\w+$"}, "additionalProperties": value}


TEXT = {"type": "string"}
FRAME = closed(
    bundle={**closed(name=TEXT), "required": ["name"]},
    include={"type": "array", "items": TEXT},
    artifacts=named(closed(type={"enum": ["whl", "jar"]}, path=TEXT, build=TEXT)),
    sync=closed(paths={"type": "array", "items": TEXT}, include={"type": "array"}, exclude={"type": "array"}),
    variables=named(closed(description=TEXT, default={"type": ["string", "number"]})),
    targets=named(
        closed(
            mode={"enum": ["development", "production"]},
            default={"type": "boolean"},
            workspace=closed(host=TEXT, root_path=TEXT),
            variables=named({"type": ["string", "number"]}),
        )
    ),
)


def bundle() -> dict[str, Any]:
    return dict(yaml.safe_load((FOLDER / "databricks.yml").read_text(encoding="utf-8")))


def jobs() -> Iterator[tuple[Path, str, dict[str, Any]]]:
    for path in RESOURCES:
        for name, job in yaml.safe_load(path.read_text(encoding="utf-8"))["resources"]["jobs"].items():
            yield path, name, job


def texts(value: Any) -> Iterator[str]:
    """Every text in a document."""
    if isinstance(value, dict):
        for each in value.values():
            yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)
    elif isinstance(value, str):
        yield value


def test_the_frame_has_the_form_of_a_bundle() -> None:
    jsonschema.validate(bundle(), FRAME)
    assert [name for name, target in bundle()["targets"].items() if target.get("default")] == ["dev"]
    assert len(RESOURCES) == 2


def test_jobs_are_what_databricks_own_classes_take() -> None:
    known = pytest.importorskip("databricks.bundles.jobs", reason="scripts/setup brings databricks-bundles")
    read = {name: known.Job.from_dict(job) for _, name, job in jobs()}
    assert set(read) == {"kanon_serverless", "kanon_classic"}
    assert read["kanon_classic"].tasks[0].python_wheel_task.entry_point == "kanon-job"
    assert read["kanon_serverless"].tasks[0].notebook_task.notebook_path.endswith("anonymize.py")
    with pytest.raises(ValueError, match="Unexpected field"):  # or the classes would prove nothing
        known.Job.from_dict({"name": "x", "tasks": [{"task_key": "a", "max_retry": 3}]})


@pytest.mark.parametrize(
    ("path", "name", "job"), list(jobs()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_what_a_job_refers_to_is_there(path: Path, name: str, job: dict[str, Any]) -> None:
    tasks = {task["task_key"] for task in job["tasks"]}
    compute = {each["environment_key"] for each in job.get("environments", [])}
    compute |= {each["job_cluster_key"] for each in job.get("job_clusters", [])}
    for task in job["tasks"]:
        assert {each["task_key"] for each in task.get("depends_on", [])} <= tasks
        if "condition_task" not in task:
            assert (task.get("environment_key") or task.get("job_cluster_key")) in compute
        if "notebook_task" in task:
            assert (path.parent / task["notebook_task"]["notebook_path"]).is_file()
    for text in texts(job):
        assert {*re.findall(r"\$\{var\.(\w+)\}", text)} <= set(bundle()["variables"])
        assert {*re.findall(r"\{\{job\.parameters\.(\w+)\}\}", text)} <= {each["name"] for each in job["parameters"]}
        if text.endswith(".yaml"):
            assert (FOLDER / text.removeprefix("${workspace.file_path}/")).is_file()
        if text.endswith(".whl"):
            assert (path.parent / text).parent.resolve() == FOLDER.parents[1] / "dist"


def test_the_wheel_has_the_entry_point(repo: Path) -> None:
    import tomllib

    from kanon_spark.cli import main

    scripts = tomllib.loads((repo / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert scripts["kanon-job"] == "kanon_spark.cli.main:job"
    assert callable(main.job)


def test_secrets_come_from_the_scope_alone() -> None:
    classic = next(job for _, name, job in jobs() if name == "kanon_classic")
    variables = classic["job_clusters"][0]["new_cluster"]["spark_env_vars"]
    assert variables["KANON_KEY"] == "{{secrets/${var.secret_scope}/${var.secret_key}}}"
    job = yaml.safe_load((FOLDER / "admissions.yaml").read_text(encoding="utf-8"))
    assert job["columns"]["identifiers"]["admission_id"]["pseudonym"]["key"] == "${KANON_KEY}"


def test_the_configuration_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KANON_CATALOG", "main")
    monkeypatch.setenv("KANON_KEY", "k" * 32)
    config = load_config(FOLDER / "admissions.yaml").config
    assert config.sink is not None
    assert config.sink.table == "main.public.admissions"
    assert (config.execution.work_dir or "").startswith("/Volumes/main/internal/")


class Workspace(Utilities):
    """`dbutils` with secrets, task values, and the parameters of a job."""

    def __init__(self, **parameters: str) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self.secrets = self.jobs = self.taskValues = self
        self._parameters = parameters
        self.widgets.text = lambda name, default: self.widgets.values.update({name: parameters.get(name, default)})  # type: ignore[method-assign]

    def get(self, scope: str, key: str) -> str:
        assert (scope, key) == ("kanon", "pseudonym-key")
        return "0123456789abcdef0123456789abcdef"

    def set(self, key: str, value: str) -> None:
        self.values[key] = value


def run_notebook(spark: "SparkSession", name: str, workspace: Workspace) -> dict[str, Any]:
    world: dict[str, Any] = {"spark": spark, "dbutils": workspace}
    for number, cell in enumerate(cells_of(FOLDER / "notebooks" / name)):
        exec(compile(cell, f"{name}, cell {number}", "exec"), world)
    return world


def test_the_notebook_publishes_refuses_and_asks_for_another_try(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KANON_CATALOG", "KANON_KEY"):
        monkeypatch.setenv(name, "")  # the notebook sets them: monkeypatch puts them back
    frame = make_admissions(600).to_pandas()
    frame["admission_id"] = range(len(frame))
    for schema in ("hospital", "public"):
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {schema}")
    spark.createDataFrame(frame).write.mode("overwrite").saveAsTable("hospital.admissions")
    places = {
        "source.table": "hospital.admissions",
        "sink": json.dumps({"table": "public.admissions", "format": "parquet"}),
        "execution.work_dir": str(tmp_path / "work"),
        "report": json.dumps({"manifest": str(tmp_path / "manifest.json")}),
        "schedule": json.dumps({"ledger": f"{tmp_path}/ledger/"}),
    }
    given = {
        "config": str(FOLDER / "admissions.yaml"),
        "catalog": "spark_catalog",
        "run_key": "2026-01-31",
        "secret_scope": "kanon",
        "secret_key": "pseudonym-key",
    }
    settings = [f"{key}={value}" for key, value in places.items()]

    good = Workspace(**given, set=";".join(settings))
    world = run_notebook(spark, "anonymize.py", good)
    assert good.values == {"exit_code": "0", "message": ""}
    assert smallest_class(world["release"].table, ["age", "sex", "zip"]) >= 10

    # Nobody can hide among a thousand of six hundred: the data does not fit, and the next task says so.
    bad = Workspace(**given, set=";".join([*settings, "privacy.k=1000"]))
    run_notebook(spark, "anonymize.py", bad)
    assert bad.values["exit_code"] == "3"
    with pytest.raises(RuntimeError, match=r"exit code 3 \(the data does not fit"):
        run_notebook(spark, "refuse.py", Workspace(**bad.values))

    # Out of time: the task fails, so that Databricks tries it again.
    late = Workspace(**{**given, "run_key": "2026-02-01"}, set=";".join([*settings, "schedule.time_budget=1"]))
    with pytest.raises(Exception, match="time"):
        run_notebook(spark, "anonymize.py", late)
    assert late.values == {}
    for schema in ("hospital", "public"):
        spark.sql(f"DROP DATABASE {schema} CASCADE")
