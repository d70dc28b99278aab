"""The end of a run, in a terminal: the verdict, rows before and after, what it cost, and where everything is.

Everything comes from the manifest. Values are hostile until cleaned: no markup is read into them, and control
characters never reach the terminal.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kanon_spark.report import facts
from kanon_spark.report.facts import Manifest, Samples
from kanon_spark.report.figures import figures

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_BAR = 24  # characters of a full bar
_CELL = 22  # characters of a sample's cell
_ROWS = 6  # sample rows


def render_summary(manifest: Manifest, console: "Console") -> None:
    """Print the summary of a run.

    >>> from rich.console import Console
    >>> render_summary({"outcome": "failed", "error": {"message": "k is too large"}}, Console(width=80))
    <BLANKLINE>
    ✗ Nothing was published: k is too large
    """
    if (console.encoding or "").lower().startswith("utf"):
        _render(manifest, console, _Signs(plain=False))
        return
    # A terminal that cannot show every character must still show the summary.
    with console.capture() as capture:
        _render(manifest, console, _Signs(plain=True))
    console.file.write(capture.get().encode(console.encoding, "replace").decode(console.encoding))


def _render(manifest: Manifest, console: "Console", signs: "_Signs") -> None:
    console.print()
    console.print(_verdict(manifest, signs), soft_wrap=True)
    for part in (_samples, _figures, _models, _losses, _class_sizes, _warnings, _places, _timings):
        part(manifest, console, signs)


class _Signs:
    """Drawing characters, plain ones where the terminal has no others."""

    def __init__(self, *, plain: bool) -> None:
        self.good, self.bad = ("+", "x") if plain else ("✓", "✗")
        self.arrow, self.full, self.empty = ("->", "#", ".") if plain else ("→", "█", "░")

    def bar(self, share: float) -> str:
        filled = round(min(max(share, 0.0), 1.0) * _BAR)
        return self.full * filled + self.empty * (_BAR - filled)


def clean(value: Any, *, width: int = _CELL) -> str:
    """A value as one short line of printable characters.

    >>> clean("a" + chr(27) + "[31mb"), clean(None), clean("x" * 30, width=5)
    ('a?[31mb', 'null', 'xxxx…')
    """
    if value is None:
        return "null"
    text = "".join(character if character.isprintable() else "?" for character in str(value))
    return text if len(text) <= width else text[: width - 1] + "…"


def _verdict(manifest: Manifest, signs: _Signs) -> "Text":
    from rich.text import Text

    answer = facts.verdict(manifest)
    sign, style = (signs.good, "bold green") if answer.good else (signs.bad, "bold red")
    return Text(f"{sign} ", style=style).append(clean(answer.text, width=2_000), style=style)


def _heading(console: "Console", text: str) -> None:
    from rich.text import Text

    console.print()
    console.print(Text(text, style="bold"))


def _grid() -> "Table":
    from rich.table import Table

    return Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)


def _samples(manifest: Manifest, console: "Console", signs: _Signs) -> None:
    rows = facts.samples(manifest)
    if rows is None:
        return
    _heading(console, f"Before {signs.arrow} after")
    gone = facts.dropped(manifest)
    table = _side_by_side(rows, signs)
    if console.measure(table).minimum > console.width or _natural_width(rows) > console.width:
        table = _one_below_the_other(rows, signs)
    console.print(table)
    for said, names in (("Not in the release", gone), ("Published as a pseudonym", facts.pseudonyms(manifest))):
        if names:
            console.print(f"{said}: {clean(', '.join(names), width=500)}", markup=False, style="dim", soft_wrap=True)


def _cells(rows: Samples) -> list[tuple[list[str], list[str], list[str]]]:
    """Per sample row: quasi-identifiers before, after, and the kept columns."""
    return [
        (
            [clean(before.get(name)) for name in rows.qi],
            [clean(after.get(name)) for name in rows.qi],
            [clean(after.get(name)) for name in rows.kept],
        )
        for before, after in zip(rows.before[:_ROWS], rows.after[:_ROWS], strict=False)
    ]


def _natural_width(rows: Samples) -> int:
    names = [*rows.qi, *rows.qi, *rows.kept]
    columns = zip(*[before + after + kept for before, after, kept in _cells(rows)], strict=True)
    widths = [max(len(cell) for cell in (clean(name), *column)) for name, column in zip(names, columns, strict=True)]
    return sum(widths) + 3 * len(widths) + 4


def _side_by_side(rows: Samples, signs: _Signs) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, header_style="dim", pad_edge=False)
    for name in rows.qi:
        table.add_column(Text(clean(name)), no_wrap=True)
    table.add_column(signs.arrow, style="dim")
    for name in rows.qi:
        table.add_column(Text(clean(name)), no_wrap=True, style="green")
    for name in rows.kept:
        table.add_column(Text(clean(name)), no_wrap=True, style="dim")
    for before, after, kept in _cells(rows):
        table.add_row(*map(Text, before), signs.arrow, *map(Text, after), *map(Text, kept))
    return table


def _one_below_the_other(rows: Samples, signs: _Signs) -> "Table":
    """For narrow terminals: each row twice, as it was and as it is published."""
    from rich.table import Table
    from rich.text import Text

    table = Table(show_edge=False, header_style="dim", box=None, padding=(0, 2, 0, 0))
    table.add_column("")
    for name in (*rows.qi, *rows.kept):
        table.add_column(Text(clean(name)), overflow="ellipsis", no_wrap=True)
    for before, after, kept in _cells(rows):
        table.add_row("", *map(Text, before + kept), style="dim")
        table.add_row(signs.arrow, *(Text(cell, style="green") for cell in after), *map(Text, kept))
    return table


def _figures(manifest: Manifest, console: "Console", signs: _Signs) -> None:
    found = figures(manifest)
    if not found:
        return
    _heading(console, "What the release holds")
    console.print(_figure_grid(found))


def _models(manifest: Manifest, console: "Console", signs: _Signs) -> None:
    found = facts.models(manifest)
    if found:
        _heading(console, "What every class has of the sensitive columns")
        console.print(_figure_grid([model.figure for model in found]))


def _figure_grid(found: Sequence[facts.Figure]) -> "Table":
    from rich.text import Text

    grid = _grid()
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right", no_wrap=True, style="bold")
    grid.add_column(style="dim")
    for figure in found:
        name = clean(figure.name, width=60)
        grid.add_row(Text(name), Text(figure.value), Text(clean(figure.sentence, width=400)))
    return grid


def _losses(manifest: Manifest, console: "Console", signs: _Signs) -> None:
    found = facts.losses(manifest)
    if found:
        _heading(console, "Loss per column (NCP)")
        console.print(_bars([(name, ncp, facts.percent(ncp)) for name, ncp in found], signs))


def _class_sizes(manifest: Manifest, console: "Console", signs: _Signs) -> None:
    found = facts.class_sizes(manifest)
    total = sum(many for _, many in found)
    if total:
        _heading(console, "Classes by size (rows)")
        console.print(_bars([(size, many / total, facts.count(many)) for size, many in found], signs))


def _bars(lines: list[tuple[str, float, str]], signs: _Signs) -> "Table":
    from rich.text import Text

    grid = _grid()
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True, style="cyan")
    grid.add_column(justify="right", no_wrap=True)
    for name, share, value in lines:
        grid.add_row(Text(clean(name)), signs.bar(share), Text(value))
    return grid


def _warnings(manifest: Manifest, console: "Console", signs: _Signs) -> None:
    found = facts.warnings(manifest)
    if found:
        _heading(console, "To think about")
        for text in found:
            console.print(f"- {clean(text, width=1_000)}", markup=False, style="yellow", soft_wrap=True)


def _places(manifest: Manifest, console: "Console", signs: _Signs) -> None:
    found = facts.places(manifest)
    if found:
        _heading(console, "Where")
        for name, place in found:
            # Soft wrap: a path broken over two lines cannot be copied.
            console.print(f"{name:<9} {clean(place, width=2_000)}", markup=False, soft_wrap=True)


def _timings(manifest: Manifest, console: "Console", signs: _Signs) -> None:
    total = facts.number(manifest, "seconds", "total")
    stages = sorted(facts.stage_seconds(manifest), key=lambda stage: -stage[1])[:4]
    if total is not None:
        longest = ", ".join(f"{clean(name)} {seconds:.1f} s" for name, seconds in stages)
        _heading(console, f"Took {total:.1f} s" + (f" ({longest})" if longest else ""))
