"""Writing down how a run ended: manifest and report of a release, or why there is none."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from kanon_spark.config.loader import LoadedConfig
from kanon_spark.errors import KanonError, TargetError
from kanon_spark.io.files import store_for
from kanon_spark.logs import logger
from kanon_spark.releases.manifest import write_manifest
from kanon_spark.report.html import render_html

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write_reports(loaded: LoadedConfig, manifest: dict[str, Any], *, spark: "SparkSession") -> None:
    """Write the manifest and the HTML report where the configuration asks for them."""
    files = manifest["files"]
    if files["report"]:
        try:
            page = render_html(manifest, edition=loaded.config.report.edition)
            store_for(spark, files["report"]).write_text(files["report"], page, private=True)
        except OSError as error:
            raise TargetError(
                f"the report cannot be written ({error.strerror or type(error).__name__})",
                where="report.html",
                fix="choose another path",
            ) from None
    if files["manifest"]:
        write_manifest(files["manifest"], manifest, spark=spark)
        failure = _failure_path(files["manifest"])
        store = store_for(spark, failure)
        if store.exists(failure):
            store.delete(failure)


def read_reports(files: Mapping[str, str | None], *, spark: "SparkSession") -> dict[str, str | None]:
    """Manifest and report as they stand (None where there is none), for the case that the new release is undone."""
    found: dict[str, str | None] = {}
    for path in filter(None, (files["manifest"], files["report"])):
        try:
            found[path] = store_for(spark, path).read_text(path)
        except FileNotFoundError:
            found[path] = None
        except (OSError, ValueError) as error:
            logger.warning("%s cannot be read (%s); it would not be put back", path, type(error).__name__)
    return found


def restore_reports(standing: Mapping[str, str | None], *, spark: "SparkSession") -> None:
    """Put back what `read_reports` has read: the documents must speak of the release that stands."""
    for path, text in standing.items():
        store = store_for(spark, path)
        try:
            if text is None:
                store.delete(path)
            else:
                store.write_text(path, text, private=True)
        except OSError as error:
            logger.warning("%s could not be put back (%s)", path, type(error).__name__)


def write_failure(loaded: LoadedConfig, manifest: dict[str, Any], *, spark: "SparkSession") -> None:
    """Leave the outcome beside the manifest, which still describes the release that stands."""
    if loaded.config.report.manifest is None:
        return
    path = _failure_path(loaded.resolve(loaded.config.report.manifest))
    try:
        write_manifest(path, manifest, spark=spark)
    except KanonError:
        # The run has failed for another reason, and that reason is what the user must see.
        logger.warning("[%s] the outcome could not be written to %s", manifest["run_id"], path)


def _failure_path(manifest: str) -> str:
    """`out/manifest.json` → `out/manifest.failed.json`."""
    path = PurePosixPath(manifest)
    return manifest[: len(manifest) - len(path.name)] + f"{path.stem}.failed{path.suffix or '.json'}"
