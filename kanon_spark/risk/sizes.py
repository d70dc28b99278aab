"""From class sizes to risks: plain arithmetic, no Spark. The formulas are those of `risk/README.md`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kanon_spark.risk.facts import Above, ClassRisk, Counted, Risk

THRESHOLDS = (
    0.05,
    0.2,
)  # what custodians of health data usually ask for: classes of 20 for the public, of 5 for partners


@dataclass(frozen=True)
class Sizes:
    """How large the classes of a table are.

    Attributes:
        rows: Rows of the table.
        counted: What a size counts.
        classes: Size → how many classes have it.
        unique: Rows (persons) that are alone in a class.
        records: Rows (persons) of the table.
    """

    rows: int
    counted: Counted
    classes: Mapping[int, int]
    unique: int
    records: int


@dataclass(frozen=True)
class PopulationSize:
    """Classes that are equally large in the population.

    Attributes:
        size: Their size there, at least the size that each of them has in the table.
        classes: How many there are.
        records: Records of the table in them.
        absent: How many of them the population has fewer of than the table.
    """

    size: int
    classes: int
    records: int
    absent: int = 0


def class_risk(
    sizes: Sizes, *, thresholds: Sequence[float] = THRESHOLDS, population: Iterable[PopulationSize] | None = None
) -> ClassRisk:
    """All risks that follow from class sizes.

    >>> found = class_risk(Sizes(rows=6, counted="rows", classes={1: 2, 4: 1}, unique=2, records=6), thresholds=[0.3])
    >>> found.prosecutor.highest, found.prosecutor.average, round(found.prosecutor.above[0].share, 3), found.uniqueness
    (1.0, 0.5, 0.333, 0.3333333333333333)
    """
    own = [PopulationSize(size, many, size * many) for size, many in sorted(sizes.classes.items())]
    other = own if population is None else list(population)
    members = sum(part.records for part in own)
    found = sum(part.records / part.size for part in other)  # expected number of records that are named right
    journalist = max(found / members, sum(part.classes for part in other) / sum(p.size * p.classes for p in other))
    return ClassRisk(
        rows=sizes.rows,
        records=members,
        counted=sizes.counted,
        classes=sum(part.classes for part in own),
        smallest=own[0].size,
        prosecutor=_risk(own, sum(part.classes for part in own) / members, thresholds),
        journalist=_risk(other, journalist, thresholds),
        against="sample" if population is None else "population",
        marketer=found / members,
        unique=sizes.unique,
        uniqueness=sizes.unique / sizes.records,
        absent=sum(part.absent for part in other),
    )


def _risk(parts: Sequence[PopulationSize], average: float, thresholds: Sequence[float]) -> Risk:
    records = sum(part.records for part in parts)
    above = [
        Above(threshold, sum(part.records for part in parts if 1 / part.size > threshold) / records)
        for threshold in thresholds
    ]
    return Risk(highest=1 / min(part.size for part in parts), average=average, above=tuple(above))
