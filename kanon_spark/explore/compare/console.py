"""A comparison in a terminal: the answer, a table by k, and what else there is to say."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kanon_spark.explore.compare.result import Comparison
from kanon_spark.explore.compare.words import FIGURES, Figure, answer, least_by_k, rule_text
from kanon_spark.report.console import clean
from kanon_spark.report.facts import count, percent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# Figures that a narrow terminal goes without, in this order.
_GO_FIRST = (
    "seconds", "smallest", "classes", "bayes_accuracy", "cavg", "dm", "average_risk", "gcp_gap", "cpu_seconds",
    "tree_accuracy", "gcp_bound",
)  # fmt: skip


def render_comparison(comparison: Comparison, console: "Console") -> None:
    """Print a comparison; names come from the request and are cleaned."""
    if (console.encoding or "").lower().startswith("utf"):
        _render(comparison, console)
        return
    # A terminal that cannot show every character must still show the table.
    with console.capture() as capture:
        _render(comparison, console)
    console.file.write(capture.get().encode(console.encoding, "replace").decode(console.encoding))


def _render(comparison: Comparison, console: "Console") -> None:
    facts = comparison.facts
    console.print()
    for note in facts.notes:
        console.print(f"! {clean(note, width=1_000)}", markup=False, style="bold yellow", soft_wrap=True)
    console.print(_fitting_table(comparison, console))
    _reasons(comparison, console)
    found = answer(comparison)
    style = {True: "bold green", False: "bold red", None: "bold"}[found.good]
    console.print()
    console.print(clean(found.text, width=2_000), markup=False, style=style, soft_wrap=True)
    if comparison.best is not None:
        console.print(rule_text(comparison), markup=False, style="dim", soft_wrap=True)
    counted = f", {count(facts.persons)} persons" if facts.unit is not None else ""
    took = f" in {facts.seconds['total']:.0f} s" if "total" in facts.seconds else ""
    line = f"{count(facts.rows)} rows{counted}, aggregated once to {count(facts.signatures)} combinations{took}"
    console.print(line, markup=False, style="dim", soft_wrap=True)
    if facts.learnt is not None:
        original = f"a tree {percent(facts.learnt.tree)}, naive Bayes {percent(facts.learnt.bayes)}"
        told = f"right about {facts.learnt.label} when trained on the original: {original}"
        told += f"; always the most frequent: {percent(facts.learnt.majority)}"
        console.print(clean(told, width=400), markup=False, style="dim", soft_wrap=True)


def _fitting_table(comparison: Comparison, console: "Console") -> "Table":
    """The table with as many figures as the terminal is wide; what is asked for most stays longest."""
    measured = [cell for cell in comparison.cells if cell.measured]
    figures = [figure for figure in FIGURES if any(figure.value(cell) is not None for cell in measured)]
    for key in ("", *_GO_FIRST):
        figures = [figure for figure in figures if figure.key != key]
        table = _table(comparison, figures)
        wanted = console.measure(table, options=console.options.update_width(1_000)).maximum
        if wanted <= console.width:
            break
    return table


def _table(comparison: Comparison, figures: Sequence[Figure]) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, header_style="dim", padding=(0, 1, 0, 0), pad_edge=False)
    for head in ("k", "method"):
        table.add_column(head, justify="right" if head == "k" else "left", no_wrap=True)
    for figure in figures:
        table.add_column(figure.head, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    least = {id(cell) for cell in least_by_k(list(comparison.cells)).values()}
    before = None
    for cell in comparison.cells:
        first = before != cell.k
        if first and before is not None:
            table.add_section()
        before = cell.k
        style = "bold green" if cell is comparison.best else "bold" if id(cell) in least else ""
        values = [figure.said(cell) for figure in figures] if cell.measured else [""] * len(figures)
        fits = bool(comparison.limits) and comparison.limits.fits(cell)
        mark = "no release" if not cell.measured else "chosen" if cell is comparison.best else "fits" if fits else ""
        texts = [str(cell.k) if first else "", clean(cell.method, width=24), *values, mark]
        table.add_row(*map(Text, texts), style=style)
    return table


def _reasons(comparison: Comparison, console: "Console") -> None:
    """Why points are missing; the same reason at several k is said once."""
    reasons: dict[tuple[str, str], list[int]] = {}
    for cell in comparison.cells:
        if not cell.measured:
            reasons.setdefault((cell.method, cell.reason), []).append(cell.k)
    for (method, reason), ks in reasons.items():
        listed = ", ".join(map(str, ks))
        text = f"{method}, k = {listed}: {reason}"
        console.print(f"- {clean(text, width=1_000)}", markup=False, style="yellow", soft_wrap=True)
