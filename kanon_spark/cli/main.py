"""The command `kanon`."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

import kanon_spark
from kanon_spark.cli.apply import apply
from kanon_spark.cli.check import check
from kanon_spark.cli.compare import compare
from kanon_spark.cli.doctor import doctor
from kanon_spark.cli.recoding import recoding
from kanon_spark.cli.risk import risk
from kanon_spark.cli.run import demo, run
from kanon_spark.cli.suggest import suggest
from kanon_spark.cli.tools import gc, report, schema
from kanon_spark.cli.verify import verify

app = typer.Typer(
    name="kanon",
    help="k-anonymous releases of tables of any size, on Apache Spark: verified and measured.",
    epilog="Exit codes: 0 done, 1 unexpected, 2 request, 3 data do not fit it, 4 guarantee not met, 5 try again.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (run, check, suggest, compare, verify, apply, risk, report, schema, doctor, demo, gc):
    app.command()(command)
app.add_typer(recoding)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"kanon {kanon_spark.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def invoke(arguments: Sequence[str]) -> int:
    """Run the command line with these arguments and return its exit code."""
    try:
        app(list(arguments), prog_name="kanon")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def main() -> None:
    """Entry point of the console script."""
    sys.exit(invoke(sys.argv[1:]))


def job() -> None:
    """The same for job managers that take any SystemExit, even 0, for a failure."""
    code = invoke(sys.argv[1:])
    if code:
        sys.exit(code)
