"""The Spark session: found or built, with the settings our plans rely on. The only room that may touch the JVM."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from kanon_spark.errors import PlatformError
from kanon_spark.logs import logger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

P = ParamSpec("P")
T = TypeVar("T")

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
    # Where in our code a column was made is of no use to whoever reads an error, and telling the JVM so is half of all
    # calls to it.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.dataFrameQueryContext.enabled": "false",
}

# What a local session needs for Delta and Iceberg, where their jars are there; clusters bring settings of their own.
EXTENSIONS = {
    "delta": "io.delta.sql.DeltaSparkSessionExtension",
    "iceberg": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
# Compiled code of a session with all these jars does not fit into the 48 MB that a quick JVM sets aside, and a JVM that
# has run out of them stops compiling.
_BRIEF = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=192m"


def get_spark(
    app: str = "kanon",
    *,
    extra: Mapping[str, str] | None = None,
    brief: bool = False,
    graphs: bool = False,
    warehouse: bool = False,
) -> "SparkSession":
    """The active session (a notebook's, spark-submit's), else a local one. Settings our plans rely on are set on it.

    Args:
        app: Name of a session that has to be started.
        extra: Spark settings of such a session.
        brief: The work is over in seconds: a JVM that is started for it compiles quickly instead of thoroughly. The
            optimizing compiler would take half of all CPU time and never earn it back.
        graphs: Put the GraphFrames jar that `scripts/setup` has fetched, if any, on the class path of a new session.
        warehouse: The same for the jars of Delta, Iceberg and PostgreSQL, with the settings that go with them.
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
                options += f" {_BRIEF}"
            jars = [*(cached_jars() if graphs else ()), *(cached_jars(WAREHOUSE_JARS) if warehouse else ())]
            settings = {**LOCAL, "spark.driver.extraJavaOptions": options, **jar_settings(jars)}
            for key, value in settings.items():
                builder = builder.config(key, value)
        for key, value in (extra or {}).items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
    for key, value in REQUIRED.items():
        spark.conf.set(key, value)
    return spark


GRAPH_JARS, WAREHOUSE_JARS = "jars.txt", "warehouse.txt"


def cached_jars(listing: str = GRAPH_JARS) -> list[Path]:
    """The jars that `scripts/setup` has fetched and listed; empty where it has not been run or found none."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    place = Path(os.environ.get("KANON_CACHE") or home / "kanon_spark") / listing
    if not place.exists():
        return []
    return [Path(line) for line in place.read_text(encoding="utf-8").splitlines() if Path(line).is_file()]


def jar_settings(jars: Sequence[Path]) -> dict[str, str]:
    """What puts jars on the class path of a new local session, with what the table formats among them need."""
    if not jars:
        return {}
    # A local session's executors live in the driver, so that its class path is theirs.
    settings = {"spark.driver.extraClassPath": os.pathsep.join(map(str, jars))}
    # Extensions only of the formats whose jars are there: a class that is missing stops a session.
    found = [kind for kind in EXTENSIONS if any(f"{kind}-spark" in jar.name for jar in jars)]
    if found:
        settings["spark.sql.extensions"] = ",".join(EXTENSIONS[kind] for kind in found)
    if "delta" in found:
        settings["spark.sql.catalog.spark_catalog"] = DELTA_CATALOG
        # Delta reads its log with 50 tasks by default, far more than a local machine has use for.
        settings["spark.databricks.delta.snapshotPartitions"] = "2"
    return settings


def has_class(spark: "SparkSession", name: str) -> bool | None:
    """Whether a class is on the session's class path; None where that cannot be told (Spark Connect)."""
    if is_connect(spark):
        return None
    jvm: Any = spark.sparkContext._jvm
    try:
        jvm.java.lang.Class.forName(name, False, jvm.Thread.currentThread().getContextClassLoader())
    except Exception:  # whatever the gateway raises for a class that is not there
        return False
    return True


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
    try:
        return str(spark.conf.get("spark.master", "") or "").startswith("local")
    except Exception:  # serverless services refuse to tell
        if is_connect(spark):
            return False
        raise


def cores(spark: "SparkSession") -> int:
    """Cores that the session computes with; 2 where it cannot be told (Spark Connect)."""
    return 2 if is_connect(spark) else int(spark.sparkContext.defaultParallelism)


@contextmanager
def setting(spark: "SparkSession", key: str, value: str) -> Iterator[None]:
    """One of the session's settings while something is carried out; what it was before comes back."""
    before = spark.conf.get(key, None)
    spark.conf.set(key, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, before)


@contextmanager
def merging_sorted(spark: "SparkSession") -> Iterator[None]:
    """Rows that lie sorted by what they are grouped by are put together one after another, without a table of groups.

    It is left to Spark where a service forbids the setting: the result is the same, only later.
    """
    from pyspark.errors import PySparkException

    with ExitStack() as stack:
        try:
            stack.enter_context(setting(spark, "spark.sql.execution.replaceHashWithSortAgg", "true"))
        except PySparkException as error:
            logger.debug("sorted rows are not merged: %s", type(error).__name__)
        yield


def tag_jobs(spark: "SparkSession", tag: str, *, remove: bool = False) -> None:
    """Mark the jobs that this thread starts from here on, so that `cancel_jobs` finds them; or stop marking them."""
    (spark.removeTag if remove else spark.addTag)(tag)


def cancel_jobs(spark: "SparkSession", tag: str) -> None:
    """Stop the running jobs that carry the tag."""
    spark.interruptTag(tag)


def carried(spark: "SparkSession", work: Callable[P, T]) -> Callable[P, T]:
    """The work, for another thread: its jobs keep the name and the tag that jobs of this thread have now.

    Without it, Spark's UI shows them without a stage, and a time budget that ends does not reach them.
    """
    from pyspark import inheritable_thread_target

    wrap: Any = inheritable_thread_target(spark)
    if wrap is spark:  # threads are not pinned to the JVM's: there is nothing to carry
        return work
    carrying: Callable[P, T] = wrap(work)
    return carrying


def set_job_description(spark: "SparkSession", text: str) -> None:
    """Name the jobs that follow in the Spark UI (Spark Connect has no such call)."""
    if not is_connect(spark):
        spark.sparkContext.setJobDescription(text)
