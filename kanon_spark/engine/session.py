"""The Spark session: found or built, with the settings our plans rely on. The only room that may touch the JVM."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kanon_spark.errors import PlatformError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Defaults differ between Spark 3.5 and 4.x, and casts, hashes and dates must mean the same everywhere.
REQUIRED: dict[str, str] = {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "UTC"}

LOCAL: dict[str, str] = {
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "4g",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.shuffle.partitions": "16",
}


def get_spark(
    app: str = "kanon", *, extra: Mapping[str, str] | None = None, brief: bool = False, graphs: bool = False
) -> "SparkSession":
    """The active session (a notebook's, spark-submit's), else a local one. Settings our plans rely on are set on it.

    Args:
        app: Name of a session that has to be started.
        extra: Spark settings of such a session.
        brief: The work is over in seconds: a JVM that is started for it compiles quickly instead of thoroughly. The
            optimizing compiler would take half of all CPU time and never earn it back.
        graphs: Put the GraphFrames jar that `scripts/setup` has fetched, if any, on the class path of a new session.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise PlatformError("pyspark is not installed", fix="pip install 'kanon-spark[spark]'") from error

    spark = SparkSession.getActiveSession()
    if spark is None:
        builder: Any = SparkSession.builder.appName(app)
        # Under spark-submit the master is already chosen, and our local defaults must not override it.
        submitted = "SPARK_ENV_LOADED" in os.environ or "PYSPARK_GATEWAY_PORT" in os.environ
        if not submitted:
            _require_java()
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            options = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"
            if brief:
                options += " -XX:TieredStopAtLevel=1"
            settings = {**LOCAL, "spark.driver.extraJavaOptions": options}
            if graphs and cached_jars():
                # A local session's executors live in the driver, so that its class path is theirs.
                settings["spark.driver.extraClassPath"] = os.pathsep.join(map(str, cached_jars()))
            for key, value in settings.items():
                builder = builder.config(key, value)
        for key, value in (extra or {}).items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
    for key, value in REQUIRED.items():
        spark.conf.set(key, value)
    return spark


def cached_jars() -> list[Path]:
    """The jars that `scripts/setup` has fetched; empty where it has not been run or found none."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    listing = Path(os.environ.get("KANON_CACHE") or home / "kanon_spark") / "jars.txt"
    if not listing.exists():
        return []
    return [Path(line) for line in listing.read_text(encoding="utf-8").splitlines() if Path(line).is_file()]


def _require_java() -> None:
    """Spark's own message for a missing Java is a stack trace; ours says what to do."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return
    if shutil.which("java") is None:
        raise PlatformError(
            "no Java was found (neither JAVA_HOME nor `java` on the PATH); Spark 4 needs Java 17 or 21",
            where="java",
            fix="install one (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME",
        )


def is_connect(spark: "SparkSession") -> bool:
    """True for a Spark Connect session, which has no JVM at hand."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def is_local(spark: "SparkSession") -> bool:
    """True where driver and executors share one machine and file system."""
    return str(spark.conf.get("spark.master", "") or "").startswith("local")


def set_job_description(spark: "SparkSession", text: str) -> None:
    """Name the jobs that follow in the Spark UI (Spark Connect has no such call)."""
    if not is_connect(spark):
        spark.sparkContext.setJobDescription(text)
