"""What a paper is here: claims, an experiment that measures what they speak of, and verdicts on what was measured."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import pandas as pd

T = TypeVar("T")
Holds = Literal["yes", "mostly", "no", "not comparable"]

_MOST = 0.8  # share of the settings from which on a claim holds mostly
_CLOSE = 1e-9  # sums of doubles differ in their last digits


@dataclass(frozen=True)
class World:
    """What experiments run on.

    Attributes:
        rows: Adult's complete rows, with `rid`.
        small: Only as much as shows that everything works.
        tell: Told what is being done.
        seed: Seed of samples, splits and methods.
    """

    rows: pd.DataFrame
    small: bool = False
    tell: Callable[[str], None] = field(default=lambda text: None)
    seed: int = 0

    def pick(self, whole: T, little: T) -> T:
        """What the whole experiment takes, or its small version."""
        return little if self.small else whole


@dataclass(frozen=True)
class Finding:
    """One claim beside what was measured.

    Attributes:
        claim: What the paper says, in short.
        theirs: Its figure, or where only a picture exists, what the picture is said to show.
        ours: The same, measured here.
        holds: Whether the claim holds.
        why: The reason, where it does not hold, and what a reader must know to compare.
    """

    claim: str
    theirs: str
    ours: str
    holds: Holds
    why: str = ""


@dataclass(frozen=True)
class Plot:
    """A chart of an experiment's cells: lines of `y` over `x`, one per `series`, one panel per `panel`."""

    name: str
    title: str
    x: str
    y: str
    series: str = "method"
    panel: str | None = None
    where: str = ""  # a condition on the cells, as pandas' `query` reads it


@dataclass(frozen=True)
class Paper:
    """One paper.

    Attributes:
        key: Its number among the sources.
        title: Its title.
        setting: What is measured, and where that had to differ from the paper's own experiment.
        experiment: Measures the cells: one row per setting.
        verdicts: What the cells say of the claims.
        plots: Charts of the cells.
    """

    key: str
    title: str
    setting: str
    experiment: Callable[[World], pd.DataFrame]
    verdicts: Callable[[pd.DataFrame], list[Finding]]
    plots: tuple[Plot, ...]


@dataclass(frozen=True)
class Comparison:
    """At how many settings one method has at most the value of another."""

    better: int
    settings: int
    ratio: float  # median over the settings of the one's value over the other's

    @property
    def holds(self) -> Holds:
        """Everywhere, at most settings, or not."""
        if self.better == self.settings:
            return "yes"
        return "mostly" if self.better >= _MOST * self.settings else "no"

    def __str__(self) -> str:
        times = f"{self.ratio:.2f}" if self.ratio < 100 else f"{self.ratio:,.0f}"
        return f"at {self.better} of {self.settings} settings (median ratio {times})"


def compare(cells: pd.DataFrame, value: str, one: str, other: str, *, by: Sequence[str]) -> Comparison:
    """Compare two methods by one value, setting by setting.

    Args:
        cells: One row per method and setting.
        value: The column that should be small.
        one: The method that should have less of it.
        other: The method it is compared with.
        by: The columns that make a setting.
    """
    wide = cells.pivot_table(index=list(by), columns="method", values=value)[[one, other]].dropna()
    mine, theirs = wide[one].to_numpy(), wide[other].to_numpy()
    known = theirs > _CLOSE
    ratios = pd.Series(mine[known] / theirs[known])
    return Comparison(int((mine <= theirs + _CLOSE).sum()), len(wide), float(ratios.median()) if len(ratios) else 1.0)


def worst(verdicts: Sequence[Holds]) -> Holds:
    """What several verdicts come to: the weakest of them.

    >>> worst(["yes", "mostly"]), worst(["yes", "no", "mostly"])
    ('mostly', 'no')
    """
    order: tuple[Holds, ...] = ("no", "mostly", "yes")
    return min(verdicts, key=order.index)
