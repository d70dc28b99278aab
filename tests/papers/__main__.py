"""The command line of `scripts/papers`."""

import json
import os
import platform
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from bench.adult import ROW_ID, load_adult, stand_in
from bench.places import CHECKOUT
from bench.show import console
from rich.console import Console
from threadpoolctl import threadpool_limits

from papers import graph_recoding, k_member, privacy_gain, similarity, suppression
from papers.charts import need_altair, write_charts, write_page
from papers.paper import Finding, Paper, World
from papers.show import findings_table, summary

PAPERS = {
    module.PAPER.key: module.PAPER for module in (graph_recoding, suppression, privacy_gain, k_member, similarity)
}
SMALL_ROWS = 1_500

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def papers(
    only: Annotated[str | None, typer.Option(help=f"Papers, separated by commas [{','.join(PAPERS)}].")] = None,
    small: Annotated[
        bool, typer.Option("--small", help="A small version on an invented table: it judges no claim.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for charts and the page.")] = CHECKOUT / "out" / "papers",
    charts: Annotated[bool, typer.Option(help="Draw charts.")] = True,
    json_path: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write findings and cells there as JSON, too.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of samples, splits and methods.")] = 0,
) -> None:
    """Measure each paper's experiment again on UCI Adult: claim, their figure, ours, and whether the claim holds."""
    chosen = _chosen(only)
    if charts:
        need_altair()
    rows, origin = _rows(small)
    console().print(f"{len(rows):,} complete rows from {origin}", soft_wrap=True)
    world = World(rows, small, _tell, seed)
    told: list[tuple[Paper, list[Finding], list[Path]]] = []
    records: list[dict[str, Any]] = []
    for paper in chosen:
        begin = time.perf_counter()
        with threadpool_limits(1):  # threads that wait for each other would count as work, and do on a busy machine
            cells = paper.experiment(world)
        findings = paper.verdicts(cells)
        console().print(findings_table(paper, findings))
        told.append((paper, findings, write_charts(paper, cells, out) if charts else []))
        records.append(_record(paper, cells, findings, time.perf_counter() - begin))
    console().print(summary([finding for _, findings, _ in told for finding in findings]))
    if small:
        console().print("These rows are invented: nothing here says anything of the papers.")
    if charts:
        console().print(f"Charts: {write_page(told, out)}", soft_wrap=True)
    if json_path is not None:
        _write(json_path, {"rows": len(rows), "origin": origin, "small": small, "seed": seed, "papers": records})


def _chosen(only: str | None) -> list[Paper]:
    keys = [word.strip() for word in only.split(",")] if only else list(PAPERS)
    wrong = [key for key in keys if key not in PAPERS]
    if wrong:
        raise typer.BadParameter(f"{', '.join(wrong)}: there are {', '.join(PAPERS)}", param_hint="--only")
    return [PAPERS[key] for key in keys]


def _rows(small: bool) -> tuple[pd.DataFrame, str]:
    if small:
        return stand_in(SMALL_ROWS).assign(**{ROW_ID: range(SMALL_ROWS)}), "an invented table"
    adult = load_adult()
    return adult.rows, adult.origin


def _record(paper: Paper, cells: pd.DataFrame, findings: list[Finding], seconds: float) -> dict[str, Any]:
    return {
        "paper": paper.key,
        "title": paper.title,
        "setting": paper.setting,
        "seconds": seconds,
        "findings": [vars(finding) for finding in findings],
        "cells": json.loads(cells.to_json(orient="records")),
    }


def _tell(text: str) -> None:
    Console(stderr=True, highlight=False).print(f"{datetime.now():%H:%M:%S}  {text}", style="dim", soft_wrap=True)


def _write(path: Path, figures: dict[str, Any]) -> None:
    where = {"python": platform.python_version(), "cores": os.cpu_count(), "system": platform.system()}
    text = json.dumps({"at": datetime.now(UTC).isoformat(), "machine": where, **figures}, indent=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(app(prog_name="scripts/papers"))
