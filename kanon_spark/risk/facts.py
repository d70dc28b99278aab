"""What a look at a table's risk answers: plain frozen data. No raw value stands in it unless it was asked for."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

Counted = Literal["rows", "persons"]


@dataclass(frozen=True)
class Above:
    """How large a share of the records has a risk above a threshold."""

    threshold: float
    share: float


@dataclass(frozen=True)
class Risk:
    """The risk that an attacker names the right record.

    Attributes:
        highest: Of the record that is easiest to find.
        average: Over all records.
        above: The share of records whose own risk is above each threshold.
    """

    highest: float
    average: float
    above: tuple[Above, ...]


@dataclass(frozen=True)
class ClassRisk:
    """The risks that follow from the sizes of the classes (rows that share all quasi-identifiers).

    Attributes:
        rows: Rows of the table.
        records: What sizes add up to: rows, or with a unit the distinct (person, class) pairs.
        counted: What a size counts.
        classes: How many classes there are.
        smallest: Size of the smallest one.
        prosecutor: The attacker knows that the target is in the table.
        journalist: The attacker finds someone in the table, and looks for him in a population.
        against: Whether class sizes for the journalist come from a population table or from the table itself.
        marketer: Expected share of all records that are named right if the attacker guesses every one.
        unique: Rows that no other row (persons that no other person) is like.
        uniqueness: Their share of all rows (persons).
        absent: Classes of which the population table has fewer records than the table itself, which counts then.
    """

    rows: int
    records: int
    counted: Counted
    classes: int
    smallest: int
    prosecutor: Risk
    journalist: Risk
    against: Literal["population", "sample"]
    marketer: float
    unique: int
    uniqueness: float
    absent: int = 0


@dataclass(frozen=True)
class ColumnRank:
    """How much one quasi-identifier tells by itself.

    Attributes:
        name: The column.
        distinct: Its distinct values, null among them.
        distinction: Distinct values per row.
        separation: Share of the pairs of rows that differ in it.
    """

    name: str
    distinct: int
    distinction: float
    separation: float


@dataclass(frozen=True)
class Combination:
    """How much several quasi-identifiers tell together.

    Attributes:
        columns: The combination.
        unique_share: Share of rows whose combination of values nobody else has.
        average_size: Rows per distinct combination of values.
        example: One such combination of values, where values were asked for and one is unique.
    """

    columns: tuple[str, ...]
    unique_share: float
    average_size: float
    example: Mapping[str, str | None] | None = None


@dataclass(frozen=True)
class TableRisk:
    """All that is said of one table.

    Attributes:
        sizes: What class sizes tell.
        columns: The quasi-identifiers, the most telling first.
        combinations: For each number of columns the riskiest combinations, the riskiest first.
        largest: The largest number of columns that was combined.
        looked_at: One in so many combinations of values was looked at (1: all of them).
    """

    sizes: ClassRisk
    columns: tuple[ColumnRank, ...]
    combinations: tuple[Combination, ...]
    largest: int
    looked_at: int = 1

    def to_json(self) -> dict[str, Any]:
        """The same as plain dicts and lists."""
        return asdict(self)


@dataclass(frozen=True)
class Guess:
    """What the attacker learns of a sensitive column by guessing what most of his candidates have.

    Attributes:
        column: The sensitive column.
        right: Share of the targets whose value he guesses right.
        confidence: How sure he is on average: the share of candidates that have the value he guesses.
        base: Share of the same targets that he would guess right without any quasi-identifier.
        highest: How sure he is of the target whose candidates agree most.
        common: Share of all rows that have the most frequent value: how sure he would be without looking.
        limit: What `highest` cannot exceed by the models that were asked for; None where none of them implies a limit.
        limited_by: Which of them does.
    """

    column: str
    right: float
    confidence: float
    base: float
    highest: float
    common: float
    limit: float | None = None
    limited_by: str | None = None


@dataclass(frozen=True)
class AttackSide:
    """The attack on one table.

    Attributes:
        counted: What candidates are counted in.
        expected: Mean over the targets of 1 / candidates; a target without a candidate counts 0.
        worst: Success on the target that is easiest to find.
        fewest: How many candidates that target has; 0 if no target has any.
        unmatched: Targets without a candidate.
        guesses: One per sensitive column that was asked for.
    """

    counted: Counted
    expected: float
    worst: float
    fewest: float
    unmatched: int
    guesses: tuple[Guess, ...] = ()


@dataclass(frozen=True)
class Attack:
    """A linkage attack that was carried out: the attacker holds rows of the original and looks for them.

    Attributes:
        columns: The quasi-identifiers that he knows.
        targets: Rows that he holds.
        distinct: Different tuples among them.
        seed: What the rows were drawn with.
        before: On the original itself.
        after: On the release, where there is one.
        k: What the release promises, or holds, where it is known.
        unread: Per column, how many of the targets without a candidate no published value of that column fits: they
            were suppressed, or the column's labels cannot be read without its hierarchy.
        worst_target: The quasi-identifiers of the target that is easiest to find in the release (in the original, where
            there is no release), if values were asked for.
    """

    columns: tuple[str, ...]
    targets: int
    distinct: int
    seed: int
    before: AttackSide
    after: AttackSide | None = None
    k: int | None = None
    unread: Mapping[str, int] | None = None
    worst_target: Mapping[str, str | None] | None = None

    @property
    def limit(self) -> float | None:
        """1/k: what no target's success may exceed on the release."""
        return 1 / self.k if self.k else None

    @property
    def holds(self) -> bool:
        """True unless some target is found in the release with more than 1/k."""
        # Persons may be sums of parts, which are rounded.
        return self.after is None or self.limit is None or self.after.worst <= self.limit * (1 + 1e-9)

    def to_json(self) -> dict[str, Any]:
        """The same as plain dicts and lists."""
        return {**asdict(self), "limit": self.limit, "holds": self.holds}


@dataclass(frozen=True)
class RiskReport:
    """Before and after, side by side.

    Attributes:
        before: The original (or the only) table.
        after: The release, where there is one.
        attack: The linkage attack, unless it was left out.
        notes: What a reader must know to read the numbers right.
    """

    before: TableRisk
    after: TableRisk | None = None
    attack: Attack | None = None
    notes: tuple[str, ...] = ()

    @property
    def highest(self) -> float:
        """The highest risk of any record: of the release where there is one, else of the table."""
        judged = self.after or self.before
        side = None if self.attack is None else self.attack.after or self.attack.before
        return max(judged.sizes.prosecutor.highest, side.worst if side is not None else 0.0)

    def to_json(self) -> dict[str, Any]:
        """The same as plain dicts and lists."""
        return {
            "before": self.before.to_json(),
            "after": self.after.to_json() if self.after is not None else None,
            "attack": self.attack.to_json() if self.attack is not None else None,
            "highest": self.highest,
            "notes": list(self.notes),
        }
