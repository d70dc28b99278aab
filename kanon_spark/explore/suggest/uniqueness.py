"""How alone people are by the suggested quasi-identifiers: all of them together, and the worst two and three."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from kanon_spark.risk.classes import classes_of, sizes_of
from kanon_spark.risk.combinations import GROUPED, count_sets, rank_columns, riskiest
from kanon_spark.risk.facts import ColumnRank, Combination

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_SEPARATING = 6  # columns whose pairs and triples are looked at


@dataclass(frozen=True)
class Uniqueness:
    """What was counted.

    Attributes:
        records: Rows or persons of the table.
        counted: Which of both.
        unique: Of them, those whose combination of all quasi-identifiers nobody else has.
        small: Share of the rows in a combination of fewer than k.
        columns: Distinction and separation of each quasi-identifier.
        worst: The pair and the triple that single out most rows.
    """

    records: int
    counted: str
    unique: int
    small: float
    columns: tuple[ColumnRank, ...]
    worst: tuple[Combination, ...]

    @property
    def share(self) -> float:
        """Share of the rows or persons that are alone."""
        return self.unique / self.records if self.records else 0.0


def measure_uniqueness(table: "DataFrame", qi: Sequence[str], *, unit: str | None, k: int) -> Uniqueness:
    """Group the table once by all quasi-identifiers, and its classes by each of them, by pairs and by triples."""
    classes = classes_of(table, qi, unit=unit)
    sizes = sizes_of(table, classes, unit=unit)
    members = sum(size * many for size, many in sizes.classes.items())
    small = sum(size * many for size, many in sizes.classes.items() if size < k)
    told = count_sets(classes, [(place,) for place in range(len(qi))], unit=unit is not None)
    ranks = rank_columns(told, qi, rows=sizes.rows)
    places = sorted(qi.index(rank.name) for rank in ranks[:MOST_SEPARATING])
    sets = [chosen for size in (2, 3) for chosen in combinations(places, size)]
    step = max(1, sum(sizes.classes.values()) * len(sets) // GROUPED)
    found = count_sets(classes, sets, step=step, unit=unit is not None) if sets else []
    worst = riskiest(found, qi, rows=sizes.rows, step=step, per_size=1)
    return Uniqueness(sizes.records, sizes.counted, sizes.unique, small / members, ranks, worst)
