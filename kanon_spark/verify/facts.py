"""What verification is given, and what it answers. Plain data: no check lives here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kanon_spark.errors import GuaranteeError, SuppressionError
from kanon_spark.signatures.forms import AS_LABELS, Form
from kanon_spark.signatures.layout import Layout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kanon_spark.config.models import QiSpec
    from kanon_spark.verify.asked import Found

SUPPRESSED = "*"  # what a suppressed cell reads


@dataclass(frozen=True)
class Check:
    """One thing that was checked. `detail` holds counts and column names, never a value of the data."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class ClassFacts:
    """Sizes, in rows, of the published classes (rows published as `*` because they were suppressed are no class).

    Attributes:
        classes: How many there are.
        smallest: Rows of the smallest one, 0 if there is none.
        largest: Rows of the largest one.
        sum_squares: Sum of the squared sizes, which is the discernibility of what was released.
        histogram: How many classes have `k..2k-1` rows, `2k..4k-1`, and so on, each bucket twice as wide as the last.
        achieved: The k that holds: the least number of persons (of rows, where no unit is named) in any published
            group, suppressed rows published as `*` included.
    """

    classes: int
    smallest: int
    largest: int
    sum_squares: int
    histogram: dict[str, int]
    achieved: int

    @classmethod
    def of(cls, sizes: Mapping[int, int], *, k: int, achieved: int | None = None) -> "ClassFacts":
        """Facts from a count of classes per size.

        >>> ClassFacts.of({5: 3, 9: 1, 10: 1, 40: 1}, k=5).histogram
        {'k..2k-1': 4, '2k..4k-1': 1, '4k..8k-1': 0, '8k..16k-1': 1}
        """
        smallest = min(sizes, default=0)
        largest = max(sizes, default=0)
        return cls(
            classes=sum(sizes.values()),
            smallest=smallest,
            largest=largest,
            sum_squares=sum(size * size * count for size, count in sizes.items()),
            histogram=_histogram(sizes, k),
            achieved=smallest if achieved is None else achieved,
        )


def _histogram(sizes: Mapping[int, int], k: int) -> dict[str, int]:
    buckets: dict[str, int] = {}
    small = sum(count for size, count in sizes.items() if size < k)
    if small:
        buckets["<k"] = small
    low = 1
    while low * k <= max(sizes, default=0):
        name = f"{low if low > 1 else ''}k..{2 * low}k-1"
        buckets[name] = sum(count for size, count in sizes.items() if low * k <= size < 2 * low * k)
        low *= 2
    return buckets


@dataclass(frozen=True)
class Verdict:
    """The outcome of a verification.

    Attributes:
        checks: Everything that was checked, in order.
        facts: Sizes of the published classes.
        rows: Rows of the table that was read.
        content_hash: Fingerprint of its rows as a multiset: the same whatever their order, files or partitions.
        models: What the worst class has of each privacy model beyond k.
        sizes: Rows of a group → how many groups have so many; rows of `*` are a group like any other.
    """

    checks: tuple[Check, ...]
    facts: ClassFacts
    rows: int
    content_hash: str
    models: "tuple[Found, ...]" = ()
    sizes: Mapping[int, int] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """True if every check passed (and there was one)."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    def require(self) -> None:
        """Raise unless every check passed.

        Raises:
            SuppressionError: If the only thing wrong is that too many rows were suppressed.
            GuaranteeError: If anything else is wrong; the message lists every failed check.
        """
        if self.passed:
            return
        failed = [check for check in self.checks if not check.passed]
        if [check.name for check in failed] == ["suppression"]:
            raise SuppressionError(
                failed[0].detail,
                where="privacy.max_suppression",
                fix="allow more suppression, lower k, or let the quasi-identifiers be generalized further (max_level)",
            )
        listed = "\n".join(f"  - {check.name}: {check.detail}" for check in failed) or "  - nothing was checked"
        raise GuaranteeError(f"the table does not hold what it promises\n{listed}", where="verify")


@dataclass(frozen=True)
class QiFacts:
    """What verification needs to know of one quasi-identifier.

    Attributes:
        name: Column name in the table.
        kind: What its values are ("text", "integer", "real", "date", "timestamp", "boolean").
        spec: What the configuration says of it; its hierarchy is the measure of truth.
        csv_path: The hierarchy file, where the hierarchy is one.
        leaf_labels: Leaf code to label; the null leaf's is None.
        node_labels: Node id to label.
        publish: "node" publishes a node's label; "range" and "set" stand as text in the entries.
        by_code: True where rows are told apart by the leaf code, not by the value.
        values: Leaf code to the value it stands for as a hierarchy file spells it, where one names all values; such
            values may stand as literals in a plan.
        dictionary: (code int, ident) as hashed: the same where the values come from the data.
        early: Distinct (raw string, code int) of the source, where the leaf is not the value itself (`min_level`,
            `unknown: root`); None elsewhere.
        static: True where the labels come from a hierarchy file, so that they may stand as literals in a plan.
        value_type: SQL type that `values` are cast to before they are hashed.
        form: In which form the configuration wants it published.
    """

    name: str
    kind: str
    spec: "QiSpec"
    csv_path: Path | None
    leaf_labels: tuple[str | None, ...]
    node_labels: tuple[str | None, ...]
    publish: Literal["node", "range", "set"]
    by_code: bool
    values: tuple[str | None, ...] | None = None
    dictionary: "DataFrame | None" = None
    early: "DataFrame | None" = None
    static: bool = False
    value_type: str = "string"
    form: Form = AS_LABELS

    @property
    def derived(self) -> bool:
        """True where a leaf stands for values that were generalized from the start, not for one value."""
        return self.by_code or self.spec.min_level > 0


@dataclass(frozen=True)
class Evidence:
    """The recoding that a release claims to follow.

    Attributes:
        entries: One row per signature: key words, `h`, `rows`, `g_hi`, `g_lo`, `class_id` (-1 = suppressed), out words,
            `label_<i>` for each range or set QI (JSON texts of the members where arrays are published), and `lo_<i>`
            and `hi_<i>`, or `mean_<i>`, where numbers are.
        layout: How leaf codes are packed in the key words.
        node_layout: How node ids are packed in the out words.
        qis: The quasi-identifiers, in the order of the codes.
        seed: Seed of the signature hash `h`.
    """

    entries: "DataFrame"
    layout: Layout
    node_layout: Layout
    qis: tuple[QiFacts, ...]
    seed: int

    @property
    def numbers(self) -> dict[str, str]:
        """The entries' columns of numbers, and the name that each has in the release."""
        return {
            f"{part}_{index}": name
            for index, qi in enumerate(self.qis)
            for part, name in zip(qi.form.numbers, qi.form.added(qi.name), strict=True)
        }

    @property
    def columns(self) -> list[str]:
        """The columns of the published tuple: the quasi-identifiers, then the numbers beside them."""
        return [*(qi.name for qi in self.qis), *self.numbers.values()]
