"""The command line of `scripts/bench`."""

import json
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from bench.adult import QI_SETS, load_adult
from bench.compare import columns_of, load_now, measure_compare
from bench.kernels import DEFAULTS, Ask, measure_kernels, parse_ask
from bench.methods import ALL, VARIANTS
from bench.privacy import METHODS as METHODS_WITH_MODELS
from bench.privacy import measure_privacy
from bench.quality import measure_quality
from bench.scale import Plan, growth, measure_scale
from bench.show import console, kernel_table, privacy_table, quality_table, scale_table, side_by_side

app = typer.Typer(
    help="Measure loss (quality) and speed (scale, kernels).",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)
Json = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the figures there as JSON, too.")]
Memory = Annotated[str, typer.Option(help="Heap of the Spark driver.")]
METHODS = tuple(VARIANTS)
EFFORTS = ("fast", "normal", "high")
STITCHES = ("auto", "local", "graphframes")


@app.command()
def quality(
    k: Annotated[str | None, typer.Option(help="Values of k, separated by commas [5,10,50; all methods: 10].")] = None,
    qi: Annotated[
        str | None, typer.Option(help="Sets of quasi-identifiers, separated by commas [QI5,QI8; all methods: QI8].")
    ] = None,
    effort: Annotated[str, typer.Option(help=" | ".join(EFFORTS))] = "normal",
    blocks: Annotated[
        bool | None, typer.Option(help="Also over blocks of 2,000 signatures [yes; all methods: no].")
    ] = None,
    graphframes: Annotated[bool, typer.Option(help="Also over blocks stitched by GraphFrames.")] = False,
    methods: Annotated[
        str | None,
        typer.Option(help=f"Methods, separated by commas: {', '.join(METHODS)}; or {ALL}, side by side [lattice]."),
    ] = None,
    privacy: Annotated[
        bool, typer.Option("--privacy", help="What models beyond k cost: lattice, kmember, mst, mondrian, k = 10.")
    ] = False,
    memory: Memory = "3g",
    check: Annotated[bool, typer.Option("--check", help="End with 1 if a loss is above its target.")] = False,
    json_path: Json = None,
) -> None:
    """Loss on UCI Adult by the neutral judge, beside the bound, the peers and the targets."""
    together = methods == ALL
    ks = _numbers(k or ("10" if together else "5,10,50"), "--k", least=2)
    qi_sets = _words(qi or ("QI8" if together else "QI5,QI8"), "--qi", tuple(QI_SETS))
    names = METHODS if together else _words(methods or "lattice", "--methods", METHODS)
    _words(effort, "--effort", EFFORTS)
    adult = load_adult()
    console().print(f"Adult: {len(adult.rows):,} complete rows from {adult.origin}", soft_wrap=True)
    if privacy:
        asked = METHODS_WITH_MODELS if methods is None else names
        way = "graphframes" if graphframes else "blocks" if blocks else "one process"
        costs = measure_privacy(adult, methods=asked, effort=effort, way=way, memory=memory, tell=_tell)
        console().print(privacy_table(costs, reference=adult.reference))
        told = [{"demand": cost.demand, "reached": cost.reached, **cost.figure.to_json()} for cost in costs]
        _write(json_path, "privacy", {"rows": len(adult.rows), "effort": effort, "figures": told})
        if check and adult.reference and any(cost.reached is False for cost in costs):
            raise typer.Exit(1)
        return
    in_blocks = not together if blocks is None else blocks
    ways = ("one process", *(["blocks"] if in_blocks else []), *(["graphframes"] if graphframes else []))
    figures = measure_quality(
        adult, methods=names, ks=ks, qi_sets=qi_sets, effort=effort, ways=ways, memory=memory, tell=_tell
    )
    if together:
        console().print(side_by_side(figures, reference=adult.reference))
    for name in () if together else names:
        mine = [figure for figure in figures if figure.method == name]
        console().print(quality_table(mine, reference=adult.reference))
    about = {"rows": len(adult.rows), "reference_rows": adult.reference, "effort": effort}
    _write(json_path, "quality", {**about, "figures": [figure.to_json() for figure in figures]})
    broken = [figure for figure in figures if figure.judged.smallest < figure.k]
    above = [figure for figure in figures if check and adult.reference and figure.reached is False]
    if broken or above:
        raise typer.Exit(1)


@app.command()
def scale(
    rows: Annotated[str, typer.Option(help="Sizes, separated by commas.")] = "1000000",
    zips: Annotated[int, typer.Option(help="How many zip codes: 1 makes a dense table of 8 QIs.")] = 2000,
    order: Annotated[str, typer.Option(help="source | shuffled: the order of the released rows.")] = "source",
    k: Annotated[int, typer.Option(help="The k of the runs.")] = 10,
    memory: Memory = "4g",
    method: Annotated[str, typer.Option(help=" | ".join(METHODS))] = "lattice",
    effort: Annotated[str, typer.Option(help=" | ".join(EFFORTS))] = "normal",
    stitch: Annotated[str, typer.Option(help=" | ".join(STITCHES))] = "auto",
    l_diversity: Annotated[
        float | None, typer.Option(help="Measure the same run with distinct l-diversity, too.")
    ] = None,
    repeat: Annotated[int, typer.Option(help="How often; medians count.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the tables.")] = 1,
    table: Annotated[
        Path | None, typer.Option(help="Measure on this parquet table instead (--zips still says which QIs).")
    ] = None,
    json_path: Json = None,
) -> None:
    """Seconds and memory of a whole run, beside the least that Spark itself needs on the same table."""
    _words(order, "--order", ("source", "shuffled"))
    _words(effort, "--effort", EFFORTS)
    _words(method, "--method", METHODS)
    _words(stitch, "--stitch", STITCHES)
    if table is not None and not table.exists():
        raise typer.BadParameter(f"there is no {table}", param_hint="--table")
    plan = Plan(
        _numbers(rows, "--rows", least=k),
        zips,
        order,
        k,
        memory,
        max(1, repeat),
        seed,
        effort,
        table,
        method,
        stitch,
        l_diversity,
    )
    sizes = measure_scale(plan, _tell)
    console().print(scale_table(sizes, plan))
    counts = [size.rows for size in sizes]
    figures = {
        "plan": {
            "method": method,
            "stitch": stitch,
            "zips": zips,
            "order": order,
            "k": k,
            "memory": memory,
            "effort": effort,
            "qis": plan.qis,
            "l_diversity": l_diversity,
        },
        "sizes": [size.to_json() for size in sizes],
        "growth": {
            "floor": growth(counts, [size.floor_seconds for size in sizes]),
            "run": growth(counts, [size.run_seconds for size in sizes]),
        },
    }
    _write(json_path, "scale", figures)


@app.command()
def compare(
    methods: Annotated[
        str | None, typer.Option(help="Methods, separated by commas, options behind colons; or all [six of them].")
    ] = None,
    k: Annotated[str | None, typer.Option(help="Values of k, separated by commas [2,5,10,20,50,100].")] = None,
    qi: Annotated[
        str, typer.Option(help="QI8, QI5, or 1 … 5: so many of age, workclass, sex, education, occupation.")
    ] = "QI8",
    label: Annotated[bool, typer.Option("--label", help="Also measure how well classifiers predict income.")] = False,
    effort: Annotated[str, typer.Option(help=" | ".join(EFFORTS))] = "normal",
    max_gcp: Annotated[float | None, typer.Option(help="Most loss that is acceptable; marks a choice.")] = None,
    max_risk: Annotated[float | None, typer.Option(help="Highest acceptable chance to be found.")] = None,
    html: Annotated[Path, typer.Option(metavar="FILE", help="The page.")] = Path("out/bench/compare.html"),
    memory: Memory = "3g",
    json_path: Json = None,
) -> None:
    """All methods and values of k on UCI Adult with one aggregation: seconds, figures, and the page of curves."""
    from kanon_spark.explore.compare.console import render_comparison

    _words(effort, "--effort", EFFORTS)
    _words(qi, "--qi", (*QI_SETS, "1", "2", "3", "4", "5"))
    adult = load_adult()
    console().print(f"Adult: {len(adult.rows):,} complete rows from {adult.origin}", soft_wrap=True)
    before = load_now()
    found = measure_compare(
        adult,
        qis=columns_of(qi),
        effort=effort,
        memory=memory,
        tell=_tell,
        methods=methods,
        k=k,
        label="income" if label else None,
        max_gcp=max_gcp,
        max_risk=max_risk,
    )
    render_comparison(found, console())
    page = found.page(html)
    seconds, cpu = found.facts.seconds, sum(cell.cpu_seconds or 0.0 for cell in found.cells)
    console().print(
        f"{len(found.cells)} cells in {seconds['total']:.0f} s ({seconds['aggregation']:.1f} s for the one "
        f"aggregation, {cpu:.0f} CPU s for the methods); load before {before}, after {load_now()}",
        soft_wrap=True,
    )
    console().print(f"page {page}", soft_wrap=True)
    _write(json_path, "compare", {"qi": qi, "effort": effort, "load": before, **found.to_json()})


@app.command()
def kernels(
    sizes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KERNEL:SIGNATURES:QIS…",
            help="What to time [" + " ".join(f"{ask.kernel}:{ask.signatures}:{ask.width}" for ask in DEFAULTS) + "].",
            show_default=False,
        ),
    ] = None,
    k: Annotated[int, typer.Option(help="The k of the classes.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of the tables and of the kernels.")] = 1,
    check: Annotated[bool, typer.Option("--check", help="End with 1 if a kernel takes longer than it may.")] = False,
    json_path: Json = None,
) -> None:
    """CPU seconds of the kernels alone, on one core, beside what they may take."""
    asks = tuple(map(_ask, sizes)) if sizes else DEFAULTS
    timed = measure_kernels(load_adult().rows, asks, k=k, seed=seed, tell=_tell)
    console().print(kernel_table(timed))
    _write(json_path, "kernels", {"k": k, "seed": seed, "figures": [one.to_json() for one in timed]})
    if check and any(one.reached is False for one in timed):
        raise typer.Exit(1)


def _ask(text: str) -> Ask:
    try:
        return parse_ask(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="KERNEL:SIGNATURES:QIS") from None


def _words(text: str, option: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
    found = tuple(word.strip() for word in text.split(",") if word.strip())
    wrong = [word for word in found if word not in allowed]
    if wrong or not found:
        raise typer.BadParameter(f"{', '.join(wrong) or 'nothing'}: there are {', '.join(allowed)}", param_hint=option)
    return found


def _numbers(text: str, option: str, *, least: int) -> tuple[int, ...]:
    try:
        found = tuple(int(word.replace("_", "")) for word in text.split(",") if word.strip())
    except ValueError:
        found = ()
    if not found or min(found) < least:
        raise typer.BadParameter(f"whole numbers from {least} on, separated by commas", param_hint=option)
    return found


def _tell(text: str) -> None:
    Console(stderr=True, highlight=False).print(f"{datetime.now():%H:%M:%S}  {text}", style="dim", soft_wrap=True)


def _write(path: Path | None, what: str, figures: dict[str, Any]) -> None:
    if path is None:
        return
    where = {"python": platform.python_version(), "cores": os.cpu_count(), "system": platform.system()}
    text = json.dumps(
        {"bench": what, "at": datetime.now(UTC).isoformat(), "machine": where, **figures}, indent=1, default=str
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(app(prog_name="scripts/bench"))
