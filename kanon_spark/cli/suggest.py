"""`kanon suggest`: a draft of a configuration, from a table alone."""

from typing import Annotated

import typer

from kanon_spark.cli.guard import guarded
from kanon_spark.cli.options import AsJson, Quiet, ShowValues
from kanon_spark.cli.output import emit, error_console
from kanon_spark.cli.verify import reader_options


@guarded
def suggest(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A path, or the name of a catalog table.")],
    format: Annotated[
        str | None, typer.Option("--format", help="parquet, orc, csv or json; by the ending otherwise.")
    ] = None,
    options: Annotated[
        list[str] | None, typer.Option("--option", metavar="name=value", help="A reader option, such as header=true.")
    ] = None,
    k: Annotated[int, typer.Option("--k", min=2, help="Persons that are to share each combination.")] = 5,
    sink: Annotated[
        str | None, typer.Option("--sink", metavar="PATH", help="Where the release is to go. [out/ beside the file]")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="What the job is called; as the table by default.")] = None,
    show_values: ShowValues = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Draft a configuration for TABLE: kanon suggest t.parquet > t.yaml."""
    from kanon_spark.explore.suggest import suggest as look

    console = error_console()

    def tell(text: str) -> None:
        if not (quiet or as_json):
            console.print(f"{text} …", style="dim", markup=False, soft_wrap=True)

    draft = look(
        table,
        k=k,
        format=format,
        options=reader_options(options or ()),
        name=name,
        sink=sink,
        show_values=show_values,
        tell=tell,
    )
    if as_json:
        emit({"event": "outcome", "outcome": "done", "exit_code": 0, **draft.to_json()})
    else:
        typer.echo(draft.yaml.encode(), nl=False)  # YAML is UTF-8, whatever the terminal speaks
