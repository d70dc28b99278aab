"""One measured piece of work in a process of its own: `python -m bench.child REQUEST.json`.

Two events go to standard output, each a line that begins with `EVENT`: when the Spark session is up, and when the work
is done, so that the parent can measure what lies between from outside.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

EVENT = "kanon-bench: "


def work(request: dict[str, Any]) -> None:
    """Start a session, then make a table, run the floor, or run a job, as `request["what"]` says."""
    from bench.jobs import settings
    from kanon_spark.engine.session import get_spark

    folder = Path(request["folder"])
    begin = time.perf_counter()
    spark = get_spark(
        "kanon bench", extra=settings(folder, memory=request["memory"]), graphs=request.get("graphs", False)
    )
    spark.range(1).count()  # the first job loads what every job needs
    tell({"event": "ready", "session_seconds": time.perf_counter() - begin})
    begin = time.perf_counter()
    found: dict[str, Any] = {}
    if request["what"] == "table":
        import pandas as pd

        from bench.tables import make_table

        base = pd.read_parquet(request["base"])
        path = Path(request["table"])
        make_table(spark, base, path, rows=request["rows"], zips=request["zips"], seed=request["seed"])
    elif request["what"] == "floor":
        from bench.floor import run_floor

        floor = run_floor(spark, Path(request["table"]), folder, qis=request["qis"], k=request["k"])
        found = {"signatures": floor.signatures, "broadcast": floor.broadcast}
    else:
        from kanon_spark.config.loader import load_config
        from kanon_spark.engine.runner import run

        manifest = run(load_config(request["job"]), spark=spark).manifest
        found = {"manifest": {key: value for key, value in manifest.items() if key != "samples"}}
    tell({"event": "done", "seconds": time.perf_counter() - begin, **found})
    spark.stop()


def tell(event: dict[str, Any]) -> None:
    """One event on a line of its own, at once."""
    sys.stdout.write(f"\n{EVENT}{json.dumps(event, default=str)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    work(json.loads(Path(sys.argv[1]).read_text()))
