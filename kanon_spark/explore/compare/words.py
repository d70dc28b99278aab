"""What a comparison says, for console and page alike: the answer first, then what each figure means."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from kanon_spark.explore.compare.result import Cell, Comparison, Limits
from kanon_spark.report.facts import count, percent

Scale = Literal["linear", "log", "near"]


@dataclass(frozen=True)
class Answer:
    """The first line, and whether it is good news; None where nothing was asked."""

    text: str
    good: bool | None


@dataclass(frozen=True)
class Figure:
    """One figure of a cell.

    Attributes:
        key: Its name in tables for machines.
        head: Its name in tables for people.
        sentence: What it says, and which way is better.
        formula: How it is worked out.
        value: It itself.
        text: How it reads.
        title: Its name over a chart; empty where it has none.
        scale: Which axis suits it: from zero, by powers, or near its values.
    """

    key: str
    head: str
    sentence: str
    formula: str
    value: Callable[[Cell], float | None]
    text: Callable[[float], str] = percent
    title: str = ""
    scale: Scale = "linear"

    def said(self, cell: Cell) -> str:
        """Its value in a cell, for people."""
        value = self.value(cell)
        return "-" if value is None else self.text(value)


def seconds(value: float) -> str:
    """A time for people.

    >>> seconds(0.0312), seconds(7.26), seconds(93.7)
    ('0.03', '7.3', '94')
    """
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 20 else f"{value:.0f}"


LOSS = Figure(
    "gcp",
    "loss",
    "The share of detail that the quasi-identifiers lose (GCP): 0% is untouched, 100% is nothing but *. "
    "Lower is better.",
    "GCP = Σ rows · Σ weight · NCP / (rows · Σ weight), of what would be published",
    lambda cell: cell.gcp,
    title="Detail lost",
)
CPU = Figure(
    "cpu_seconds",
    "CPU s",
    "What the method's kernels take to form the classes, without reading and writing. Lower is better.",
    "CPU seconds of one thread",
    lambda cell: cell.cpu_seconds,
    seconds,
    title="Seconds of one core",
    scale="log",
)
WALL = Figure(
    "seconds",
    "s",
    "Wall-clock seconds to form the classes, whatever else the machine was doing. Lower is better.",
    "seconds",
    lambda cell: cell.seconds,
    seconds,
    title="Seconds",
    scale="log",
)
FIGURES: tuple[Figure, ...] = (
    LOSS,
    Figure(
        "gcp_bound",
        "bound",
        "No release with these hierarchies at this k can lose less, whatever the method.",
        "Σ rows · least loss of any class they could be in / rows",
        lambda cell: cell.gcp_bound,
    ),
    Figure(
        "gcp_gap",
        "gap",
        "At most this much more is lost than by the best possible release.",
        "GCP / bound - 1",
        lambda cell: cell.gcp_gap,
    ),
    Figure(
        "risk",
        "at worst",
        "The chance that somebody is picked rightly by one who knows all his quasi-identifiers. Lower is better.",
        "1 / persons of the smallest published class",
        lambda cell: cell.risk,
        title="Chance to be found, at worst",
        scale="log",
    ),
    Figure(
        "average_risk",
        "average",
        "The same over everybody in the release, not only those in the smallest class. Lower is better.",
        "classes / persons in them",
        lambda cell: cell.average_risk,
        title="Chance to be found, on average",
        scale="log",
    ),
    Figure(
        "dm",
        "DM",
        "How many pairs of rows cannot be told apart; each suppressed row counts with all others. Lower is better.",
        "DM = Σ class size² + suppressed · rows",
        lambda cell: cell.dm,
        count,
        title="Discernibility (DM)",
        scale="log",
    ),
    Figure(
        "cavg",
        "CAVG",
        "How many times larger than k the average class is. 1 is as small as can be.",
        "CAVG = rows released / (classes · k)",
        lambda cell: cell.cavg,
        lambda value: f"{value:.2f}",
        title="Average class (CAVG)",
        scale="log",
    ),
    Figure(
        "classes",
        "classes",
        "Groups of rows with the same published quasi-identifiers.",
        "distinct published combinations",
        lambda cell: cell.classes,
        count,
    ),
    Figure(
        "smallest",
        "smallest",
        "Persons of the smallest class; rows, where no unit is named.",
        "fewest persons that share a published combination",
        lambda cell: cell.smallest,
        count,
    ),
    Figure(
        "suppressed_share",
        "left out",
        "The share of rows that are in no class and would not be published. Lower is better.",
        "suppressed rows / rows",
        lambda cell: cell.suppressed_share,
        title="Rows left out",
    ),
    Figure(
        "tree_accuracy",
        "tree",
        "The share of raw rows whose label a decision tree gets right that saw only the release. Higher is better.",
        "accuracy on rows that it was not trained on",
        lambda cell: cell.tree_accuracy,
        title="What a decision tree still learns",
        scale="near",
    ),
    Figure(
        "bayes_accuracy",
        "Bayes",
        "The same of naive Bayes, which looks at one column at a time. Higher is better.",
        "accuracy on rows that it was not trained on",
        lambda cell: cell.bayes_accuracy,
        title="What naive Bayes still learns",
        scale="near",
    ),
    CPU,
    WALL,
)


def limits_text(limits: Limits) -> str:
    """The limits in words.

    >>> limits_text(Limits(max_gcp=0.1, max_risk=0.05))
    'a loss of at most 10.0% and a worst-case risk of at most 5.00%'
    """
    parts = []
    if limits.max_gcp is not None:
        parts.append(f"a loss of at most {percent(limits.max_gcp)}")
    if limits.max_risk is not None:
        parts.append(f"a worst-case risk of at most {percent(limits.max_risk)}")
    return " and ".join(parts)


def rule_text(comparison: Comparison) -> str:
    """Why a point was chosen, and how far it is from what could be."""
    limits, best = comparison.limits, comparison.best
    if best is None:
        return ""
    many = sum(limits.fits(cell) for cell in comparison.cells)
    why = f"It is the only point that fits {limits_text(limits)}."
    if many > 1:
        least = "the one that loses least" if limits.max_risk is not None else "that of the largest k that loses least"
        why = f"Of {many} points that fit {limits_text(limits)} it is {least}."
    return why if best.gcp_bound is None else f"{why} At this k no method can lose less than {percent(best.gcp_bound)}."


def cell_text(cell: Cell) -> str:
    """A measured cell in one sentence."""
    gone = f", leaves {count(cell.suppressed)} rows out" if cell.suppressed else ""
    found = "" if cell.risk is None else f", and nobody is found with a chance above {percent(cell.risk)}"
    return f"{cell.method} at k = {cell.k} loses {percent(cell.gcp)} of the detail{gone}{found}"


def answer(comparison: Comparison) -> Answer:
    """The first line."""
    measured = [cell for cell in comparison.cells if cell.measured]
    if not measured:
        return Answer("No release can be made at any of these points; the reasons are below.", False)
    if not comparison.limits:
        return Answer(_least(measured), None)
    best, near = comparison.best, comparison.nearest
    if best is not None:
        return Answer(f"{cell_text(best)}.", True)
    assert near is not None
    asked, never = limits_text(comparison.limits), ""
    bounds = [cell.gcp_bound for cell in measured if cell.gcp_bound is not None]
    if comparison.limits.max_gcp is not None and bounds and min(bounds) > comparison.limits.max_gcp:
        never = f" No method can: at least {percent(min(bounds))} is lost at these k."
    return Answer(f"Nothing fits {asked}.{never} Nearest: {cell_text(near)}.", False)


def _least(measured: list[Cell]) -> str:
    """Which method loses least."""
    least = least_by_k(measured)
    often = Counter(cell.method for cell in least.values()).most_common()
    first, last = least[min(least)], least[max(least)]
    if len(often) > 1:
        listed = ", ".join(f"{method} at {_times(many)}" for method, many in often)
        return f"Which method loses least depends on k: {listed} of {len(least)}."
    if first is last:
        return f"{first.method} loses least at k = {first.k}: {percent(first.gcp)} of the detail."
    path = f"from {percent(first.gcp)} of the detail at k = {first.k} to {percent(last.gcp)} at k = {last.k}"
    return f"{first.method} loses least at every k: {path}."


def _times(many: int) -> str:
    return "one value" if many == 1 else f"{many} values"


def least_by_k(cells: list[Cell]) -> dict[int, Cell]:
    """The measured cell with the least loss for each k; the first of equals."""
    found: dict[int, Cell] = {}
    for cell in cells:
        if cell.gcp is not None and (cell.k not in found or cell.gcp < (found[cell.k].gcp or 0.0)):
            found[cell.k] = cell
    return found
