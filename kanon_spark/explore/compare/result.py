"""What a comparison found: one cell for each method and k, and which of them fits what the owner can accept."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kanon_spark.config.loader import LoadedConfig
from kanon_spark.errors import RequestError
from kanon_spark.explore.compare.request import Variant, share_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Cell:
    """One method at one k. Where there is a `reason` nothing else is known: no release of this kind can be made.

    Attributes:
        method: The method as it was asked for, options included.
        k: The k.
        gcp: The share of detail that what would be published loses.
        gcp_bound: No release with these hierarchies at this k can lose less; None where there is no bound.
        gcp_gap: gcp / bound - 1.
        bound_kind: Which bound it is.
        dm: Discernibility.
        cavg: Average class size over k.
        classes: Published classes.
        smallest: Persons (rows, where no unit is named) of the smallest class.
        suppressed: Rows that are left out.
        suppressed_share: The same as a share of all rows.
        risk: The chance that somebody is found, at worst: 1 / smallest.
        average_risk: The same over all persons.
        tree_accuracy: Share of test rows that a decision tree trained on the release gets right.
        bayes_accuracy: The same of naive Bayes.
        cpu_seconds: CPU seconds of the kernels, where one process forms the classes.
        seconds: Wall-clock seconds to form the classes.
        reason: Why there is nothing to tell.
        exit_code: What a run of it would end with.
    """

    method: str
    k: int
    gcp: float | None = None
    gcp_bound: float | None = None
    gcp_gap: float | None = None
    bound_kind: str | None = None
    dm: int | None = None
    cavg: float | None = None
    classes: int | None = None
    smallest: int | None = None
    suppressed: int | None = None
    suppressed_share: float | None = None
    risk: float | None = None
    average_risk: float | None = None
    tree_accuracy: float | None = None
    bayes_accuracy: float | None = None
    cpu_seconds: float | None = None
    seconds: float | None = None
    reason: str = ""
    exit_code: int = 0

    @property
    def measured(self) -> bool:
        """Whether a release of this kind can be made."""
        return self.gcp is not None


@dataclass(frozen=True)
class Limits:
    """What the owner of the data can accept.

    Attributes:
        max_gcp: Most loss.
        max_risk: Highest chance that somebody is found, at worst.
    """

    max_gcp: float | None = None
    max_risk: float | None = None

    def __bool__(self) -> bool:
        return self.max_gcp is not None or self.max_risk is not None

    def excess(self, cell: Cell) -> float:
        """How far a measured cell is beyond the limit that it breaks most; 0 or less where it fits."""
        pairs = ((cell.gcp, self.max_gcp), (cell.risk, self.max_risk))
        return max((value - limit for value, limit in pairs if value is not None and limit is not None), default=0.0)

    def fits(self, cell: Cell) -> bool:
        """Whether a cell keeps every limit.

        >>> Limits(max_gcp=0.1).fits(Cell("lattice", 5, gcp=0.1)), Limits(max_gcp=0.1).fits(Cell("lattice", 5))
        (True, False)
        """
        return cell.measured and self.excess(cell) <= 0


def choose(cells: Sequence[Cell], limits: Limits) -> Cell | None:
    """The cell to take among those that keep every limit; None where none does, or there is no limit.

    With a limit of the risk it says how much protection is enough: the least loss wins. With a limit of the loss alone
    as much protection as it pays for: the largest k wins, and then the least loss. Ties go to the lower risk, to fewer
    suppressed rows, and then to the method that was named first.

    >>> cells = [Cell("a", 5, gcp=0.05, risk=0.2), Cell("a", 10, gcp=0.08, risk=0.1), Cell("b", 10, gcp=0.09)]
    >>> [choose(cells, limits).k for limits in (Limits(max_gcp=0.1), Limits(max_risk=0.2))]
    [10, 5]
    """
    fitting = [cell for cell in cells if limits.fits(cell)] if limits else []
    return min(fitting, key=lambda cell: _rank(cell, limits), default=None)


def nearest(cells: Sequence[Cell], limits: Limits) -> Cell | None:
    """Where nothing fits, the measured cell that is least beyond the limit it breaks most."""
    measured = [cell for cell in cells if cell.measured]
    return min(measured, key=lambda cell: (limits.excess(cell), *_rank(cell, limits)), default=None)


def _rank(cell: Cell, limits: Limits) -> tuple[float, ...]:
    protection = 0 if limits.max_risk is not None else -cell.k
    return (protection, cell.gcp or 0.0, cell.risk or 0.0, cell.suppressed or 0, -cell.k)


@dataclass(frozen=True)
class Learnt:
    """What classifiers learn from the original: the measure of what they learn from releases.

    Attributes:
        label: The column to predict.
        tree: Accuracy of a decision tree trained on the original.
        bayes: Accuracy of naive Bayes trained on the original.
        majority: Accuracy of always naming the most frequent label.
    """

    label: str
    tree: float
    bayes: float
    majority: float


@dataclass(frozen=True)
class Facts:
    """What was compared on.

    Attributes:
        name: The job's name.
        rows: Rows that were compared on.
        persons: Persons among them (rows, where no unit is named).
        unit: Column of the person.
        signatures: Distinct combinations of quasi-identifiers.
        quasi_identifiers: The columns.
        demands: What else the configuration asks of every release, in words.
        whole: Rows of the whole table, where a sample was drawn.
        share: The share that was drawn.
        by_itself: Whether the sample was drawn because the table is large, not because somebody asked.
        learnt: What classifiers learn from the original, where a label is named.
        notes: What else there is to say.
        seconds: Wall-clock seconds of the comparison, and of the single aggregation in it.
        versions: Versions of what could change a figure.
        made: When it was made.
    """

    name: str
    rows: int
    persons: int
    unit: str | None
    signatures: int
    quasi_identifiers: tuple[str, ...]
    demands: tuple[str, ...] = ()
    whole: int | None = None
    share: float | None = None
    by_itself: bool = False
    learnt: Learnt | None = None
    notes: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    made: str = ""

    @property
    def counted(self) -> str:
        """What k counts."""
        return "rows" if self.unit is None else "persons"


@dataclass(frozen=True)
class Comparison:
    """Methods and values of k side by side.

    Attributes:
        cells: One for each k and method, in this order.
        limits: What the owner can accept.
        facts: What was compared on.
        variants: The methods that were compared.
    """

    cells: tuple[Cell, ...]
    limits: Limits
    facts: Facts
    variants: tuple[Variant, ...]
    _loaded: LoadedConfig = field(repr=False)

    @property
    def table(self) -> "pd.DataFrame":
        """All cells as a table, one row for each; `chosen` marks the one to take."""
        import pandas as pd

        best = self.best
        rows = [{**asdict(cell), "fits": self.limits.fits(cell), "chosen": cell is best} for cell in self.cells]
        columns = [*(each.name for each in fields(Cell)), "fits", "chosen"]
        return pd.DataFrame(rows, columns=columns).drop(columns="exit_code")

    @property
    def best(self) -> Cell | None:
        """The cell that fits the limits best; None where there are no limits, or none fits (see `choose`)."""
        return choose(self.cells, self.limits)

    @property
    def nearest(self) -> Cell | None:
        """Where limits are stated and nothing fits them: what comes nearest."""
        return nearest(self.cells, self.limits) if self.limits and self.best is None else None

    @property
    def exit_code(self) -> int:
        """0 where anything could be measured; otherwise what the first of all runs would end with."""
        if any(cell.measured for cell in self.cells):
            return 0
        return next((cell.exit_code for cell in self.cells if cell.exit_code), 1)

    def choose(self, *, max_gcp: float | None = None, max_risk: float | None = None) -> "Comparison":
        """The same comparison under other limits; nothing is computed again."""
        limits = Limits(share_of(max_gcp, where="max_gcp"), share_of(max_risk, where="max_risk"))
        return replace(self, limits=limits)

    def of(self, method: str) -> Iterator[Cell]:
        """The cells of a method, by k."""
        return (cell for cell in self.cells if cell.method == method)

    def to_json(self) -> dict[str, Any]:
        """Everything, for machines."""
        best, near = self.best, self.nearest
        return {
            "name": self.facts.name,
            "facts": asdict(self.facts),
            "methods": [variant.name for variant in self.variants],
            "k": sorted({cell.k for cell in self.cells}),
            "cells": [asdict(cell) for cell in self.cells],
            "limits": asdict(self.limits),
            "fits": None if not self.limits else best is not None,
            "choice": None if best is None else asdict(best),
            "nearest": None if near is None else asdict(near),
        }

    def to_csv(self) -> str:
        """The table as CSV."""
        return self.table.to_csv(index=False, lineterminator="\n")

    def to_html(self) -> str:
        """The page: one self-contained file."""
        from kanon_spark.explore.compare.page import render_page

        return render_page(self)

    def page(self, path: str | Path) -> Path:
        """Write the page to `path`."""
        return write_text(path, self.to_html())

    def config_text(self, folder: str | Path = ".", *, cell: Cell | None = None) -> str:
        """The configuration of a cell (the best one by default), ready to run from a file in `folder`.

        Raises:
            RequestError: No cell is given and none fits.
        """
        from kanon_spark.explore.compare.choice import config_text

        taken = self.best if cell is None else cell
        if taken is None:
            fix = "state a limit that something fits (max_gcp, max_risk), or name a cell"
            raise RequestError("there is no choice to write down", where="compare", fix=fix)
        spec = next(variant.spec for variant in self.variants if variant.name == taken.method)
        return config_text(self._loaded, taken, spec, self.facts, folder=Path(folder))

    def write_config(self, path: str | Path, *, cell: Cell | None = None) -> Path:
        """Write the configuration of a cell (the best one by default) to `path`; `kanon run` takes it as it is."""
        return write_text(path, self.config_text(Path(path).absolute().parent, cell=cell))

    def _repr_html_(self) -> str:
        from kanon_spark.explore.compare.page import render_card

        return render_card(self)


def write_text(path: str | Path, text: str) -> Path:
    """Write a file that only its owner may read: figures of a comparison are internal.

    Raises:
        TargetError: It cannot be written there.
    """
    from kanon_spark.errors import TargetError
    from kanon_spark.io.files import LocalStore

    target = Path(path).absolute()
    try:
        LocalStore().write_text(str(target), text, private=True)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise TargetError(f"cannot be written ({reason})", where=str(target), fix="choose another path") from None
    return target
