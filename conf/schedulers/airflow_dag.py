"""An Airflow DAG (Airflow 3): one release a night, with the exit codes told apart.

| exit code | here |
|---|---|
| 0 | success; the outcome is the task's result |
| 1, 5 | unexpected; locked or out of time: the task fails and Airflow tries again |
| 2, 3, 4 | the request, the data, a guarantee: the task fails at once (`AirflowFailException`) |

Airflow and Spark need not share an environment: the command below is that of another one, or spark-submit. What it
needs is read from the environment of Airflow's workers; secrets such as KANON_KEY belong there, too.
"""

import json
import os
import shlex
import subprocess
from datetime import datetime, timedelta, timezone
from typing import Any

from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException

# Or: spark-submit --master yarn --properties-file conf/spark/yarn.conf jobs/anonymize.py --json --config
COMMAND = os.environ.get("KANON_COMMAND", "/opt/kanon/venv/bin/kanon run --json")
CONFIG = os.environ.get("KANON_CONFIG", "/opt/kanon/conf/schedulers/nightly.yaml")
FINAL = {
    2: "the request: configuration, file, column or target",
    3: "the data does not fit the request",
    4: "a guarantee does not hold; the previous release stays",
}


def run_kanon(day: str) -> dict[str, Any]:
    """Run the job of a day, follow its events in the task's log, and judge its exit code."""
    command = [*shlex.split(COMMAND), CONFIG]
    last: dict[str, Any] = {}
    with subprocess.Popen(command, env={**os.environ, "DAY": day}, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            print(line, end="")
            if line.startswith("{"):
                last = json.loads(line)
    code = process.returncode
    if code in FINAL:
        raise AirflowFailException(f"exit code {code} ({FINAL[code]}): {last.get('message', '')}")
    if code != 0:
        raise AirflowException(f"exit code {code}: {last.get('message', 'see the log')}")
    manifest = last.get("manifest", {})
    return {"outcome": last.get("outcome"), "rows": manifest.get("rows"), "run_id": manifest.get("run_id")}


@dag(
    schedule="30 2 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),  # noqa: UP017 (Airflow's workers may run older Pythons)
    catchup=False,
    max_active_runs=1,  # a second run would only meet the lock of the first
    default_args={"retries": 4, "retry_delay": timedelta(minutes=10), "execution_timeout": timedelta(hours=4)},
    tags=["privacy"],
)
def kanon_nightly() -> None:
    """One k-anonymous release a night."""

    @task
    def anonymize(ds: str | None = None) -> dict[str, Any]:
        """The release of the day that Airflow asks for; the same day again publishes nothing new."""
        if ds is None:
            raise AirflowFailException("the run has no logical date: trigger it with one")
        return run_kanon(ds)

    anonymize()


kanon_nightly()
