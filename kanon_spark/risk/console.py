"""The risks in a terminal: before and after side by side, each number with a sentence."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kanon_spark.report.console import clean
from kanon_spark.report.facts import count, percent
from kanon_spark.risk.facts import Attack, AttackSide, ClassRisk, Combination, Guess, RiskReport, TableRisk

if TYPE_CHECKING:
    from rich.console import Console

Line = tuple[str, ...]


def render_risk(report: RiskReport, console: "Console") -> None:
    """Print a report."""
    if (console.encoding or "").lower().startswith("utf"):
        _render(report, console)
        return
    # A terminal that cannot show every character must still show the report.
    with console.capture() as capture:
        _render(report, console)
    console.file.write(capture.get().encode(console.encoding, "replace").decode(console.encoding))


def _render(report: RiskReport, console: "Console") -> None:
    sides = [report.before] if report.after is None else [report.before, report.after]
    heads = ["the table"] if report.after is None else ["before", "after"]
    _section(console, "Risk of being found", ("", *heads, "what it says"), _measures(sides))
    _columns(console, heads, sides)
    _combinations(console, heads, sides)
    if report.attack is not None:
        _attack(console, report.attack)
    if report.notes:
        console.print()
        for note in report.notes:
            console.print(f"- {clean(note, width=1_000)}", markup=False, style="yellow", soft_wrap=True)


def _measures(sides: Sequence[TableRisk]) -> list[Line]:
    sizes = [side.sizes for side in sides]
    each = "person" if sizes[0].counted == "persons" else "row"
    asked: list[tuple[str, Callable[[ClassRisk], str], str]] = [
        ("rows", lambda one: count(one.rows), "of the table"),
        ("classes", lambda one: count(one.classes), "distinct combinations of the quasi-identifiers"),
        ("smallest class", lambda one: f"{count(one.smallest)} {one.counted}", "the k that the table holds"),
        (
            "prosecutor, highest",
            lambda one: percent(one.prosecutor.highest),
            f"chance to pick the right {each} of the smallest class",
        ),
        ("prosecutor, average", lambda one: percent(one.prosecutor.average), "the same over all records"),
    ]
    for place, above in enumerate(sizes[0].prosecutor.above):
        asked.append(
            (
                f"prosecutor, above {above.threshold:g}",
                lambda one, place=place: percent(one.prosecutor.above[place].share),  # type: ignore[misc]
                "share of records whose own risk is higher than that",
            )
        )
    asked += [
        (
            "journalist, highest",
            lambda one: percent(one.journalist.highest),
            "the attacker does not know who is in the table",
        ),
        ("journalist, average", lambda one: percent(one.journalist.average), "the same over all records"),
        ("marketer", lambda one: percent(one.marketer), "expected share of right matches if all records are matched"),
        ("unique", lambda one: f"{count(one.unique)} = {percent(one.uniqueness)}", f"{each}s that nobody else is like"),
    ]
    return [(name, *(show(one) for one in sizes), sentence) for name, show, sentence in asked]


def _columns(console: "Console", heads: Sequence[str], sides: Sequence[TableRisk]) -> None:
    """One line per column, in the order of the first table."""
    ranks = [{rank.name: rank for rank in side.columns} for side in sides]
    head = ["column", *(f"{name}, {head}" for head in heads for name in ("values", "distinction", "separation"))]
    lines = []
    for name in dict.fromkeys(name for side in ranks for name in side):
        found = [side.get(name) for side in ranks]
        cells = [
            text
            for rank in found
            for text in (
                ("-", "-", "-")
                if rank is None
                else (count(rank.distinct), percent(rank.distinction), percent(rank.separation))
            )
        ]
        lines.append((clean(name), *cells))
    _section(console, "Columns, the most telling first", head, lines)
    meaning = "distinction: distinct values per row; separation: share of pairs of rows that differ in the column"
    console.print(meaning, style="dim", markup=False, soft_wrap=True)


def _combinations(console: "Console", heads: Sequence[str], sides: Sequence[TableRisk]) -> None:
    shown = any(each.example is not None for side in sides for each in side.combinations)
    for head, side in zip(heads, sides, strict=True):
        lines = [
            (
                clean(" + ".join(each.columns), width=70),
                percent(each.unique_share),
                f"{each.average_size:,.1f}",
                *([_example(each)] if shown else []),
            )
            for each in side.combinations
        ]
        title = "Riskiest combinations" if len(sides) == 1 else f"Riskiest combinations, {head}"
        names = ["columns", "unique rows", "rows per class", *(["one that is unique"] if shown else [])]
        _section(console, title, names, lines)


def _example(combination: Combination) -> str:
    if combination.example is None:
        return "-"
    return ", ".join(clean(value) for value in combination.example.values())


def _attack(console: "Console", attack: Attack) -> None:
    sides = [attack.before] if attack.after is None else [attack.before, attack.after]
    heads = ["on the table"] if attack.after is None else ["on the original", "on the release"]
    limit = "" if attack.limit is None else f"; at most 1/k = {percent(attack.limit)} is allowed"
    asked: list[tuple[str, Callable[[AttackSide], str], str]] = [
        ("expected success", lambda one: percent(one.expected), "mean over the targets of 1 / candidates"),
        ("worst target", lambda one: percent(one.worst), f"success on the one that is easiest to find{limit}"),
        ("its candidates", lambda one: f"{one.fewest:,.4g} {one.counted}", "everyone whom it may be"),
        ("targets without any", lambda one: count(one.unmatched), "their rows are not there, or cannot be read"),
    ]
    lines: list[Line] = [(name, *(show(one) for one in sides), sentence) for name, show, sentence in asked]
    for place, named in enumerate(attack.before.guesses):
        column = clean(named.column)
        lines += [
            (
                f"{column}: guessed right",
                *(percent(one.guesses[place].right) for one in sides),
                "by what most candidates have",
            ),
            (
                f"{column}: base rate",
                *(percent(one.guesses[place].base) for one in sides),
                "by what most of all rows have",
            ),
            (
                f"{column}: how sure",
                *(percent(one.guesses[place].confidence) for one in sides),
                "mean share of candidates that have it",
            ),
            (
                f"{column}: most sure",
                *(percent(one.guesses[place].highest) for one in sides),
                f"the same for the target whose candidates agree most{_allowed(sides[-1].guesses[place])}",
            ),
        ]
    known = clean(", ".join(attack.columns), width=300)
    title = f"Linkage attack: {count(attack.targets)} rows of the original are looked for by {known}"
    _section(console, title, ("", *heads, "what it says"), lines)
    if attack.worst_target is not None:
        told = ", ".join(f"{clean(name)} = {clean(value)}" for name, value in attack.worst_target.items())
        console.print(f"easiest to find: {told}", markup=False, soft_wrap=True)


def _allowed(guess: Guess) -> str:
    if guess.limit is None:
        return f"; {percent(guess.common)} of all rows have the most frequent value"
    return f"; {guess.limited_by} allows at most {percent(guess.limit)}"


def _section(console: "Console", title: str, head: Sequence[str], lines: Sequence[Line]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    plain = not (console.encoding or "").lower().startswith("utf")
    table = Table(box=box.ASCII if plain else box.SIMPLE_HEAD, show_edge=False, header_style="dim", pad_edge=False)
    for place, name in enumerate(head):
        words = place == 0 or name in {"what it says", "one that is unique"}
        table.add_column(
            Text(name),
            justify="left" if words else "right",
            style="dim" if name == "what it says" else None,
            overflow="fold",
        )
    for line in lines:
        table.add_row(*map(Text, line))
    console.print()
    console.print(Text(title, style="bold"), soft_wrap=True)
    console.print(table)
