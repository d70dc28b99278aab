"""`kanon schema`, `kanon report` and `kanon gc`."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from kanon_spark.cli.guard import guarded
from kanon_spark.cli.options import AsJson, ConfigPath, Overrides, Quiet
from kanon_spark.cli.output import emit, out_console


@guarded
def schema() -> None:
    """Print the JSON Schema of configuration files, for editors."""
    from kanon_spark.config.schema import config_schema

    typer.echo(json.dumps(config_schema(), indent=2, ensure_ascii=False))


@guarded
def report(
    manifest: Annotated[Path, typer.Argument(metavar="MANIFEST", help="The manifest that a run has written.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The HTML file to write.")] = Path("report.html"),
    edition: Annotated[
        Literal["internal", "external"],
        typer.Option(help="external: no value that fewer than k of the release carry, no count under k, no sample."),
    ] = "internal",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write the HTML report of a release again, from its MANIFEST."""
    from kanon_spark.errors import TargetError
    from kanon_spark.io.files import LocalStore
    from kanon_spark.releases.manifest import read_manifest
    from kanon_spark.report.html import render_html

    page = render_html(read_manifest(manifest), edition=edition)
    try:
        LocalStore().write_text(str(out.absolute()), page, private=edition == "internal")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise TargetError(
            f"the report cannot be written ({reason})", where=str(out), fix="choose another --out"
        ) from None
    if as_json:
        emit({"event": "outcome", "outcome": "done", "exit_code": 0, "report": str(out), "edition": edition})
    elif not quiet:
        out_console().print(f"report    {out}", markup=False, soft_wrap=True)


@guarded
def gc(config: ConfigPath, overrides: Overrides = None, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Remove what dead runs of CONFIG left behind (it holds raw data)."""
    from kanon_spark.config.loader import load_config
    from kanon_spark.config.places import needs_warehouse
    from kanon_spark.engine.session import get_spark
    from kanon_spark.releases.gc import collect_garbage

    loaded = load_config(config, overrides=overrides or (), keys_optional=True)
    removed = collect_garbage(get_spark(warehouse=needs_warehouse(loaded.config)), loaded)
    if as_json:
        emit({"event": "outcome", "outcome": "done", "exit_code": 0, "removed": removed})
    elif not quiet:
        console = out_console()
        console.print(f"removed {len(removed)} leftover{'s' if len(removed) != 1 else ''}", markup=False)
        for name in removed:
            console.print(f"  {name}", markup=False, soft_wrap=True)
