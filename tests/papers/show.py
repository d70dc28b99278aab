"""The findings as a table for the terminal."""

from collections.abc import Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from papers.paper import Finding, Paper

_STYLES = {"yes": "green", "mostly": "yellow", "no": "bold red", "not comparable": "dim"}


def findings_table(paper: Paper, findings: Sequence[Finding]) -> Group:
    """Claim, their figure, ours, whether it holds, and why not."""
    table = Table(title=f"{paper.key}  {paper.title}", title_justify="left", show_lines=True)
    for name, share in (("claim", 3), ("theirs", 2), ("ours", 4)):
        table.add_column(name, ratio=share)
    table.add_column("holds", no_wrap=True)
    table.add_column("why", ratio=3)
    for one in findings:
        table.add_row(one.claim, one.theirs, one.ours, Text(one.holds, style=_STYLES[one.holds]), one.why)
    return Group(table, Text(paper.setting, style="dim"), Text(""))


def summary(findings: Sequence[Finding]) -> str:
    """How many claims hold."""
    counts = {holds: sum(one.holds == holds for one in findings) for holds in _STYLES}
    told = ", ".join(f"{count} {_WORDS[holds]}" for holds, count in counts.items() if count)
    return f"{len(findings)} claims: {told}."


_WORDS = {"yes": "hold", "mostly": "hold mostly", "no": "are refuted", "not comparable": "cannot be compared"}
