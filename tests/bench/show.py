"""The figures as tables for a terminal."""

from collections.abc import Sequence
from itertools import pairwise

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from bench import peers
from bench.kernels import Timed
from bench.privacy import DEMANDS, QI_SET, SENSITIVE, Cost, K
from bench.quality import Figure
from bench.scale import Plan, Size, growth

PIPED_WIDTH = 150  # a pipe has no width: nothing should be folded there

OK, ABOVE = Text("ok", style="green"), Text("above target", style="red")


def console() -> Console:
    """The console for results."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=PIPED_WIDTH)


def quality_table(figures: Sequence[Figure], *, reference: bool) -> Group:
    """Our loss beside the peers', and whether the target is reached."""
    by_sets = bool(figures) and figures[0].method in peers.BY_SETS
    measure, other = ("set", "hierarchy") if by_sets else ("hierarchy", "set")
    method = figures[0].method if figures else ""
    loss = Table("QIs", "k", "way", title=f"{method}: GCP ({measure}), by the neutral judge", title_justify="left")
    for name in ("ours", "bound", "target", "", "best trial", "ARX 0.1%", "ARX 1%"):
        loss.add_column(name, justify="left" if not name else "right", style="bold" if name == "ours" else None)
    more = Table("QIs", "k", "way", "bound by", title="The rest", title_justify="left")
    for name in (
        f"GCP ({other})",
        "DM",
        "CAVG",
        "classes",
        "smallest",
        "suppressed",
        "solve CPU s",
        "bound CPU s",
        "wall s",
    ):
        more.add_column(name, justify="right")
    for figure in figures:
        head = (figure.qi_set, str(figure.k), figure.way)
        judged, known = figure.judged, figure.known
        mark = Text("") if figure.reached is None else OK if figure.reached else ABOVE
        loss.add_row(
            *head,
            f"{figure.loss:.4f}",
            _loss(figure.bound),
            _loss(figure.target),
            mark,
            *(
                _loss(value)
                for value in ((known.best_trial, known.arx_fine, known.arx_coarse) if known else (None,) * 3)
            ),
        )
        more.add_row(
            *head,
            figure.bound_kind,
            f"{judged.gcp_hierarchy if by_sets else judged.gcp_set:.4f}",
            f"{judged.dm:,}",
            f"{judged.cavg:.3f}",
            f"{judged.classes:,}",
            Text(str(judged.smallest), style="" if judged.smallest >= figure.k else "bold red"),
            str(judged.suppressed),
            *_cpu(figure),
            f"{figure.seconds:.1f}",
        )
    notes = [Text(line, style="dim") for line in _notes(figures, reference=reference)]
    return Group(loss, more, *notes)


def side_by_side(figures: Sequence[Figure], *, reference: bool) -> Group:
    """All methods in one table per QI set, k and way, the least loss first."""
    runs: dict[tuple[str, int, str], list[Figure]] = {}
    for figure in figures:
        runs.setdefault((figure.qi_set, figure.k, figure.way), []).append(figure)
    notes = [
        "Losses are GCP by the neutral judge, which looks at the original values that met in each class; `published` "
        "is the loss of the labels as they stand in the release, where a suppressed cell costs 1."
    ]
    if not reference:
        notes.append("These are other rows than those of targets and peers: compare with care.")
    return Group(*(_ranking(*run, ran) for run, ran in runs.items()), *(Text(note, style="dim") for note in notes))


def _ranking(qi_set: str, k: int, way: str, figures: Sequence[Figure]) -> Table:
    """Methods by their loss under the hierarchies."""
    title = f"All methods: {qi_set}, k = {k}, {way}; least loss by the hierarchies first"
    table = Table("method", "publishes", title=title, title_justify="left")
    names = ("by hierarchy", "by set", "published", "DM", "CAVG", "classes", "suppressed", "solve CPU s", "wall s")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True, style="bold" if name == names[0] else None)
    for figure in sorted(figures, key=lambda one: one.judged.gcp_hierarchy):
        judged = figure.judged
        table.add_row(
            figure.method,
            "ranges, sets" if figure.method in peers.BY_SETS else "hierarchies",
            _loss(judged.gcp_hierarchy),
            _loss(judged.gcp_set),
            _loss(figure.own_gcp),
            f"{judged.dm:,}",
            f"{judged.cavg:.3f}",
            f"{judged.classes:,}",
            f"{judged.suppressed:,}",
            "" if figure.solve_cpu is None else f"{figure.solve_cpu:.1f}",
            f"{figure.seconds:.1f}",
        )
    return table


def privacy_table(costs: Sequence[Cost], *, reference: bool) -> Group:
    """What each demand costs each method, beside the same without."""
    title = f"{QI_SET} without {SENSITIVE}, which is sensitive; k = {K}: GCP by the neutral judge"
    table = Table("method", "demand", title=title, title_justify="left")
    for name in ("loss", "k alone = 1", "target", "", "ARX", "ARX suppressed", "suppressed", "classes", "worst class"):
        table.add_column(name, justify="left" if not name else "right", style="bold" if name == "loss" else None)
    for name in ("solve CPU s", "wall s"):
        table.add_column(name, justify="right")
    alone = {cost.figure.method: cost.figure.loss for cost in costs if not DEMANDS[cost.demand].privacy}
    for cost in costs:
        figure, arx = cost.figure, DEMANDS[cost.demand].arx
        theirs = arx if arx is not None and figure.method not in peers.BY_SETS else None
        table.add_row(
            figure.method,
            cost.demand,
            f"{figure.loss:.4f}",
            f"{figure.loss / alone[figure.method]:.2f}" if alone.get(figure.method) else "",
            _loss(cost.target),
            Text("") if cost.reached is None else OK if cost.reached else ABOVE,
            _loss(theirs[0] if theirs else None),
            f"{theirs[1]:,}" if theirs else "",
            f"{figure.judged.suppressed:,}",
            f"{figure.judged.classes:,}",
            ", ".join(f"{model['achieved']:.4g}" for model in figure.models.values()),
            "" if figure.solve_cpu is None else f"{figure.solve_cpu:.1f}",
            f"{figure.seconds:.1f}",
        )
    notes = [
        "kmember publishes ranges and sets and is judged by them, the others by hierarchies. A suppressed row costs 1."
    ]
    if not reference:
        notes.append("These are other rows than those of targets and peers: compare with care.")
    return Group(table, *(Text(note, style="dim") for note in notes))


def _notes(figures: Sequence[Figure], *, reference: bool) -> list[str]:
    notes = ["CPU seconds are those of one process with warm kernels; after the slash, what they may be."]
    for one, other in pairwise(figures):
        apart = other.loss / one.loss - 1 if one.loss else 0.0
        if (one.way, other.way) == ("one process", "blocks"):
            notes.append(f"{one.qi_set}, k = {one.k}: {other.blocks} blocks cost {apart:+.2%} of loss.")
        elif (one.way, other.way) == ("blocks", "graphframes"):
            calls = other.stitch["graphframes_calls"]
            notes.append(f"{one.qi_set}, k = {one.k}: GraphFrames ({calls} calls) for stitching: {apart:+.2%} of loss.")
    if not reference:
        notes.append("These are other rows than those of targets and peers: compare with care.")
    return notes


def _loss(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _cpu(figure: Figure) -> tuple[str, str]:
    """CPU seconds and, at the effort they are promised for, what they may be."""
    if figure.solve_cpu is None or figure.bound_cpu is None:
        return "", ""
    if figure.effort != "normal":
        return f"{figure.solve_cpu:.1f}", f"{figure.bound_cpu:.1f}"
    most = (
        peers.solve_cpu_seconds(figure.method, figure.qi_set, figure.k),
        peers.bound_cpu_seconds(figure.qi_set, figure.k),
    )
    solve = f"{figure.solve_cpu:.1f}" + ("" if most[0] is None else f" / {most[0]:g}")
    return solve, f"{figure.bound_cpu:.1f} / {most[1]:g}"


def scale_table(sizes: Sequence[Size], plan: Plan) -> Group:
    """Floor, run, ratio and growth by size, then where the time went."""
    kind = "dense" if plan.zips == 1 else f"{plan.zips} zips"
    title = f"{plan.method}, {kind}, {len(plan.qis)} QIs, k = {plan.k}, order: {plan.order}, heap {plan.memory}"
    times = Table("rows", title=title, title_justify="left")
    for name in (
        "signatures",
        "floor s",
        "run s",
        "ratio",
        "growth: floor",
        "run",
        "s per M signatures",
        "GCP",
        "bound",
        "blocks",
    ):
        times.add_column(name, justify="right", style="bold" if name == "ratio" else None)
    if plan.l_diversity is not None:
        times.add_column(f"l = {plan.l_diversity:g}: run s", justify="right")
        times.add_column("of k alone", justify="right", style="bold")
    use = Table("rows", "what", title="Processes (Spark's start apart from s and CPU s)", title_justify="left")
    for name in ("start s", "s", "CPU s", "peak memory"):
        use.add_column(name, justify="right")
    rows = [size.rows for size in sizes]
    floor_growth = growth(rows, [size.floor_seconds for size in sizes])
    run_growth = growth(rows, [size.run_seconds for size in sizes])
    for size, by_floor, by_run in zip(sizes, floor_growth, run_growth, strict=True):
        manifest, metrics = size.manifest, size.manifest["metrics"]
        times.add_row(
            f"{size.rows:,}",
            f"{manifest['signatures']:,}",
            f"{size.floor_seconds:.1f}",
            f"{size.run_seconds:.1f}",
            f"{size.ratio:.2f}",
            _exponent(by_floor),
            _exponent(by_run),
            f"{size.per_million:.0f}",
            f"{metrics['gcp']:.4f}",
            f"{metrics['gcp_bound']:.4f}",
            f"{manifest['blocks']:,}",
            *([f"{size.guarded_seconds:.1f}", f"{size.guarded_ratio:.2f}"] if size.guarded else []),
        )
        for what, measured in (("floor", size.floors), ("run", size.runs), ("run with models", size.guarded)):
            for one in measured:
                peak = f"{one.peak_bytes / 2**30:.2f} GB" if one.peak_bytes else "not known here"
                cpu = f"{one.cpu_seconds:.1f}" if one.peak_bytes else ""
                use.add_row(f"{size.rows:,}", what, f"{one.session_seconds:.1f}", f"{one.seconds:.1f}", cpu, peak)
    return Group(times, _stages(sizes), use)


def kernel_table(timed: Sequence[Timed]) -> Table:
    """CPU seconds of each kernel beside what it may take."""
    table = Table("kernel", title="Kernels: CPU seconds of one core, compiled beforehand", title_justify="left")
    for name in ("signatures", "QIs", "CPU s", "at most", "", "µs per signature"):
        table.add_column(name, justify="left" if not name else "right", style="bold" if name == "CPU s" else None)
    for one in timed:
        mark = Text("") if one.reached is None else OK if one.reached else ABOVE
        most = "" if one.ask.limit is None else f"{one.ask.limit:g}"
        row = (one.ask.kernel, f"{one.signatures:,}", str(one.ask.width), f"{one.cpu_seconds:.1f}", most)
        table.add_row(*row, mark, f"{one.micros:.1f}")
    return table


def _stages(sizes: Sequence[Size]) -> Table:
    """Seconds of each stage, one column per size; where more than k was asked, a second one for that run."""
    table = Table("stage", title="Seconds of the last run by stage", title_justify="left")
    found = []
    for size in sizes:
        for title, runs in ((f"{size.rows:,} rows", size.runs), ("with models", size.guarded)):
            if runs:
                found.append(runs[-1].found["manifest"]["seconds"]["stages"])
                table.add_column(title, justify="right")
    for stage in dict.fromkeys(name for stages in found for name in stages):
        table.add_row(stage, *(f"{stages[stage]:.1f}" if stage in stages else "" for stages in found))
    return table


def _exponent(value: float | None) -> str:
    return "" if value is None else f"rows^{value:.2f}"
