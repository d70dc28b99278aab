"""`check`: a configuration against the real table and target, without anonymizing anything."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kanon_spark.config.loader import LoadedConfig
from kanon_spark.errors import DataError, RequestError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kanon_spark.config.preflight import Finding

# Findings about these sections speak of the request alone, whatever the data holds.
REQUEST_SECTIONS = frozenset({"source", "sink", "execution", "report"})


def check_job(
    loaded: LoadedConfig,
    *,
    spark: "SparkSession | None" = None,
    table: "DataFrame | None" = None,
    show_values: bool = False,
) -> "list[Finding]":
    """Everything that would stop a run or deserves a thought, from the table (the configured source by default).

    Raises:
        KanonError: The table cannot even be opened.
    """
    from kanon_spark.config.places import needs_warehouse
    from kanon_spark.config.preflight import check_table
    from kanon_spark.engine.session import get_spark
    from kanon_spark.io.sources import open_source

    session = spark or (
        table.sparkSession if table is not None else get_spark(warehouse=needs_warehouse(loaded.config))
    )
    if table is None:
        if loaded.config.source is None:
            raise RequestError(
                "the configuration names no source", where="source", fix="add source.path or source.table"
            )
        # A snapshot is for runs: a look does not copy the table.
        source = loaded.config.source.model_copy(update={"snapshot": "none"})
        table = open_source(session, source, base_dir=loaded.base_dir, partition=loaded.config.schedule.partition).table
    return [*_check_target(session, loaded), *check_table(session, loaded, table, show_values=show_values)]


def _check_target(spark: "SparkSession", loaded: LoadedConfig) -> "Iterable[Finding]":
    """Whether a run could keep its working files and publish; nothing is left behind."""
    from kanon_spark.config.preflight import Finding
    from kanon_spark.engine.stages import new_run_id
    from kanon_spark.io.sinks import publisher_for
    from kanon_spark.releases.workdir import work_dir_path

    config, base_dir = loaded.config, loaded.base_dir
    try:
        work_root = work_dir_path(spark, config, base_dir)
        if config.sink is not None:
            publisher = publisher_for(spark, config.sink, base_dir=base_dir, run_id=new_run_id(), work_root=work_root)
            publisher.check(config.source)
            if publisher.published() is not None:
                yield Finding(
                    level="warning",
                    path="sink",
                    message="a release stands at the target: whoever keeps it can compare it with the next one",
                    fix="publish no second release of the same persons unless that is acceptable",
                )
    except RequestError as error:
        yield Finding(level="error", path=error.where or "sink", message=error.message, fix=error.fix)


def exit_code_of(findings: "Iterable[Finding]") -> int:
    """What a run would end with: a wrong request (2) comes before data that does not fit it (3); 0 without errors."""
    return min((_exit_code(finding) for finding in findings if finding.level == "error"), default=0)


def _exit_code(finding: "Finding") -> int:
    """A finding may know its exit code; otherwise the section it speaks of tells."""
    own: int | None = getattr(finding, "exit_code", None)
    if own is not None:
        return own
    about_request = finding.path.split(".")[0] in REQUEST_SECTIONS
    return RequestError.exit_code if about_request else DataError.exit_code
