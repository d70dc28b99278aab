"""`kanon apply`: a saved recoding on another table."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from kanon_spark.cli.guard import guarded
from kanon_spark.cli.options import AsJson, Quiet, RecodingPath
from kanon_spark.cli.output import emit, out_console
from kanon_spark.cli.verify import reader_options


@guarded
def apply(
    recoding: RecodingPath,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A path, or the name of a catalog table.")],
    to: Annotated[str, typer.Option("--to", metavar="TARGET", help="Where the release goes: a path or a table.")],
    to_format: Annotated[
        str | None, typer.Option("--to-format", help="Its format; by the ending of a path otherwise.")
    ] = None,
    format: Annotated[
        str | None, typer.Option("--format", help="parquet, orc, csv or json; by the ending otherwise.")
    ] = None,
    options: Annotated[
        list[str] | None, typer.Option("--option", metavar="name=value", help="A reader option, such as header=true.")
    ] = None,
    max_held_back: Annotated[
        float, typer.Option("--max-held-back", min=0.0, max=1.0, help="Largest share of rows that may be held back.")
    ] = 1.0,
    keep_held_back: Annotated[
        bool,
        typer.Option("--keep-held-back", help="Keep the rows that are held back, raw, in the work directory."),
    ] = False,
    work_dir: Annotated[
        str | None,
        typer.Option("--work-dir", metavar="FOLDER", help="Work directory. [the one that holds the recoding]"),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Publish TABLE as a saved RECODING says: verified like any release, what does not fit is held back."""
    from kanon_spark.cli.progress import progress
    from kanon_spark.config.places import sink_of, source_of

    source = source_of(table, format=format, options=reader_options(options or ()), origin="apply")
    sink = sink_of(to, format=to_format, origin="--to")
    with progress(as_json=as_json, quiet=quiet) as listeners:
        from kanon_spark.engine.applying import Request, apply_recoding
        from kanon_spark.engine.session import get_spark
        from kanon_spark.recoding.saved import Recoding

        request = Request(
            sink=sink,
            source=source,
            work_dir=work_dir,
            keep_held_back=keep_held_back,
            max_held_back=max_held_back,
        )
        spark = get_spark("kanon apply")
        applied = apply_recoding(Recoding.load(recoding, spark=spark), request, spark=spark, listeners=listeners)
    if as_json:
        emit({"event": "outcome", "outcome": "published", "exit_code": 0, "manifest": applied.manifest})
    elif not quiet:
        console = out_console()
        for line in told(applied.manifest):
            console.print(line, markup=False, soft_wrap=True)


def told(manifest: Mapping[str, Any]) -> list[str]:
    """The result in a few lines, counts and names only."""
    rows, signatures, k = manifest["rows"], manifest["signatures"], manifest["privacy"]["k"]
    sink = manifest["sink"]
    lines = [
        f"released  {rows['released']:,} of {rows['input']:,} rows in {manifest['classes']:,} classes, "
        f"k = {k['achieved']:,} ({k['asked']:,} asked)",
        f"held back {rows['held_back']:,} rows: {rows['not_covered']:,} that no class covers, "
        f"{rows['failing']:,} in classes under k or against a model",
        f"matched   {signatures['known']:,} known combinations, {signatures['covered']:,} new ones, "
        f"{signatures['not_covered']:,} not covered",
        f"loss      {manifest['metrics']['gcp']:.4f}",
        f"release   {sink.get('path') or sink.get('table')}",
    ]
    if manifest["held_back"]:
        lines.append(f"rows held back (raw): {manifest['held_back']}")
    return lines + [f"note      {text}" for text in manifest["warnings"]]
