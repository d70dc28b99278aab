"""`kanon recoding export`: the mapping of values to labels behind a full-domain release."""

from pathlib import Path
from typing import Annotated

import typer

from kanon_spark.cli.guard import guarded
from kanon_spark.cli.options import AsJson, Quiet, RecodingPath
from kanon_spark.cli.output import emit, out_console

recoding = typer.Typer(name="recoding", help="Look into a saved recoding.", no_args_is_help=True)


@recoding.callback()
def _root() -> None:
    """Look into a saved recoding."""


@recoding.command()
@guarded
def export(
    recoding: RecodingPath,
    to: Annotated[Path, typer.Option("--to", metavar="FOLDER", help="Where the CSV files go, one per column.")],
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write value,label of each quasi-identifier; values that fewer than k persons carry are left out."""
    from kanon_spark.recoding.saved import Recoding

    files = [str(path) for path in Recoding.load(recoding).export(to)]
    if as_json:
        emit({"event": "outcome", "outcome": "done", "exit_code": 0, "files": files})
    elif not quiet:
        for path in files:
            out_console().print(f"mapping   {path}", markup=False, soft_wrap=True)
