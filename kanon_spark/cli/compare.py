"""`kanon compare`: which method, and which k?"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kanon_spark.cli.guard import guarded
from kanon_spark.cli.options import AsJson, ConfigPath, Overrides, Quiet
from kanon_spark.cli.output import emit, out_console

if TYPE_CHECKING:
    from kanon_spark.explore.compare import Comparison

CHOICE = "compare-choice.yaml"


@guarded
def compare(
    config: ConfigPath,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            metavar="a,b",
            help="Methods with commas between, options behind colons (mst:cut=paper), or all. "
            "[lattice,mst,kmember,mondrian,prgain,datafly]",
        ),
    ] = None,
    k: Annotated[
        str | None, typer.Option("--k", metavar="2,5,…", help="Values of k, commas between. [2,5,10,20,50,100]")
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option(
            "--sample",
            metavar="N|share|none",
            help="Compare on about N rows, on a share of them, or on all. Above a million rows a million is drawn.",
        ),
    ] = None,
    max_gcp: Annotated[
        float | None, typer.Option("--max-gcp", help="Most loss that is acceptable, from 0 to 1; marks a choice.")
    ] = None,
    max_risk: Annotated[
        float | None,
        typer.Option("--max-risk", help="Highest acceptable chance to be found, from 0 to 1; marks a choice."),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option("--label", metavar="COLUMN", help="Also measure how well classifiers predict this column."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help=f"Write compare.html, .csv and .json there, and {CHOICE}."),
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the page there.")] = None,
    csv: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write the table there.")] = None,
    write_config: Annotated[
        Path | None,
        typer.Option("--write-config", metavar="FILE", help="Write the configuration of the choice, ready to run."),
    ] = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare methods and values of k on CONFIG's table; nothing is published."""
    from kanon_spark.cli.progress import progress
    from kanon_spark.config.loader import load_config

    loaded = load_config(config, overrides=overrides or (), keys_optional=True)
    places = {
        "html": html or (out / "compare.html" if out is not None else None),
        "csv": csv or (out / "compare.csv" if out is not None else None),
        "json": out / "compare.json" if out is not None else None,
        "config": write_config or (out / CHOICE if out is not None else None),
    }
    refuse_unwritable(places)
    with progress(as_json=as_json, quiet=quiet) as listeners:
        from kanon_spark.explore.compare import compare as compare_all

        comparison = compare_all(
            loaded,
            methods=methods,
            k=k,
            sample=sample,
            max_gcp=max_gcp,
            max_risk=max_risk,
            label=label,
            listeners=listeners,
        )
    files = write_files(comparison, places)
    code = comparison.exit_code
    if as_json:
        outcome = "failed" if code else "compared"
        emit({"event": "outcome", "outcome": outcome, "exit_code": code, **comparison.to_json(), "files": files})
    elif not quiet or code:
        _show(comparison, files)
    raise typer.Exit(code)


def refuse_unwritable(places: dict[str, Path | None]) -> None:
    """Stop before minutes of work where what they bring cannot be kept."""
    from kanon_spark.errors import TargetError

    for path in places.values():
        if path is None:
            continue
        try:
            path.absolute().parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TargetError(
                f"its folder cannot be made ({error.strerror or error})", where=str(path), fix="choose another path"
            ) from None
        if path.is_dir() or not os.access(path.absolute().parent, os.W_OK):
            raise TargetError("no file can be written there", where=str(path), fix="choose another path")


def write_files(comparison: "Comparison", places: dict[str, Path | None]) -> dict[str, str]:
    """Write what is asked for, and say what was written where."""
    import json

    from kanon_spark.explore.compare.result import write_text

    written = {}
    for what, path in places.items():
        if path is None:
            continue
        if what == "config":
            if comparison.best is None:
                path.unlink(missing_ok=True)  # an earlier choice would be taken for this one's
                continue
            written[what] = str(comparison.write_config(path))
            continue
        if what == "html":
            text = comparison.to_html()
        elif what == "csv":
            text = comparison.to_csv()
        else:
            text = json.dumps(comparison.to_json(), indent=1, ensure_ascii=False) + "\n"
        written[what] = str(write_text(path, text))
    return written


def _show(comparison: "Comparison", files: dict[str, Any]) -> None:
    from kanon_spark.explore.compare.console import render_comparison

    console = out_console()
    render_comparison(comparison, console)
    names = {"html": "page", "csv": "table", "json": "figures", "config": "choice"}
    for what, path in files.items():
        console.print(f"{names[what]:<9} {path}", markup=False, soft_wrap=True)
    best = comparison.best
    if best is not None and "config" not in files:
        console.print("its configuration: add --write-config FILE", markup=False, style="dim", soft_wrap=True)
