"""`kanon run` and `kanon demo`: a release from start to end."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kanon_spark.cli.guard import guarded
from kanon_spark.cli.options import AsJson, ConfigPath, Overrides, Quiet
from kanon_spark.cli.output import emit, out_console

if TYPE_CHECKING:
    from kanon_spark.engine.release import Release


@guarded
def run(config: ConfigPath, overrides: Overrides = None, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Anonymize, verify and publish what CONFIG asks for."""
    from kanon_spark.cli.progress import progress
    from kanon_spark.config.loader import load_config

    loaded = load_config(config, overrides=overrides or ())
    with progress(as_json=as_json, quiet=quiet) as listeners:
        from kanon_spark.engine.runner import run as run_job

        release = run_job(loaded, listeners=listeners)
    show_release(release, as_json=as_json, quiet=quiet)


@guarded
def demo(
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where everything goes.")] = Path("out/demo"),
    rows: Annotated[int, typer.Option("--rows", min=100, help="How many admissions the table has.")] = 50_000,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Make a table of hospital admissions, anonymize it, and show what came out."""
    from kanon_spark.cli.progress import progress

    with progress(as_json=as_json, quiet=quiet) as listeners:
        from kanon_spark.demo import run_demo

        release = run_demo(out, listeners, rows=rows)
    show_release(release, as_json=as_json, quiet=quiet)


def show_release(release: "Release", *, as_json: bool, quiet: bool) -> None:
    """The result of a run, for people or machines."""
    manifest = release.manifest
    if as_json:
        # Raw rows and values are for the internal report only: what stands here ends in logs.
        shared = {key: value for key, value in manifest.items() if key not in {"samples", "details"}}
        emit({"event": "outcome", "outcome": manifest.get("outcome"), "exit_code": 0, "manifest": shared})
    elif not quiet and manifest.get("outcome") == "repeated":
        text = f"run key {manifest['run_key']} was published by run {manifest['run_id']}: nothing new to publish"
        out_console().print(text, markup=False, soft_wrap=True)
    elif not quiet:
        from kanon_spark.report.console import render_summary

        render_summary(manifest, out_console())
