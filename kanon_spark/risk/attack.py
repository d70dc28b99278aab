"""A linkage attack, carried out: the attacker holds rows of the original and looks for them in the release.

He knows some quasi-identifiers of each target, exactly. A released row is a candidate if every published cell covers
what he knows; he picks one of the candidates at random, and guesses the sensitive value that most of them have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kanon_spark.risk.classes import person_of, text_of
from kanon_spark.risk.coverage import UNKNOWN, Reading, readings_by_shape
from kanon_spark.risk.facts import Attack, AttackSide, Counted, Guess
from kanon_spark.risk.guessing import Believed, believed, guess
from kanon_spark.risk.limits import Models
from kanon_spark.risk.matching import Targets, label_names, match_classes
from kanon_spark.risk.request import check_columns, check_quasi_identifiers, check_targets
from kanon_spark.risk.targets import MOST_TARGETS, Drawn, draw, keyed, sensitive_hash, value_names
from kanon_spark.signatures.columns import type_of
from kanon_spark.verify.groups import TUPLE
from kanon_spark.verify.truth import Text

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TARGETS = 1_000


def linkage_attack(
    original: "DataFrame",
    release: "DataFrame | None" = None,
    *,
    qi: Sequence[str],
    sensitive: Sequence[str] = (),
    unit: str | None = None,
    readings: Mapping[str, Reading] | None = None,
    models: Models | None = None,
    k: int | None = None,
    targets: int = TARGETS,
    seed: int = 0,
    show_values: bool = False,
) -> Attack:
    """Look for rows of the original, in the original itself and in its release.

    Args:
        original: The raw table.
        release: What was published of it; None attacks the original alone.
        qi: The quasi-identifiers that the attacker knows: all of them, or a part.
        sensitive: Columns that he wants to learn.
        unit: Column of the person: candidates are counted in persons wherever a table has it, else in rows.
        readings: How labels are read, by a configuration (`readings_by_config`); by their shape where it is silent.
        models: What every class of the release satisfies of each sensitive column (`models_by_config`), to hold his
            belief against.
        k: What the release promises, to hold the result against.
        targets: How many rows he holds (all, if there are fewer).
        seed: Seed of the draw.
        show_values: Tell the quasi-identifiers of the target that is easiest to find.

    Returns:
        The attack's success before and after. On a k-anonymous release `after.worst` is at most 1/k if he knows all
        quasi-identifiers (`holds`).

    Raises:
        MissingInputError: A table lacks a column that was named.
        RequestError: No or a repeated quasi-identifier is named, or the targets are too many.
        EmptyTableError: The original has no rows.

    Example:
        ```python
        attack = linkage_attack(patients, release.table, qi=["age", "zip", "sex"], sensitive=["disease"], k=5)
        assert attack.after.worst <= 1 / 5
        ```
    """
    check_attack(original, release, qi=qi, sensitive=sensitive, unit=unit, targets=targets)
    drawn = draw(keyed(original, qi, sensitive), count=targets, seed=seed, sensitive=len(sensitive))
    before, tuples = _original(original, drawn, qi=qi, sensitive=sensitive, unit=unit)
    after, unread = None, None
    if release is not None:
        unnamed = [name for name in qi if name not in (readings or {})]
        known = {**(_readings(original, release, unnamed) if unnamed else {}), **(readings or {})}
        target_set = Targets(tuples, [known[name] for name in qi])
        after, unread = _release(release, drawn, target_set, qi=qi, sensitive=sensitive, unit=unit, models=models or {})
    judged = after or before
    return Attack(
        columns=tuple(qi),
        targets=len(drawn.target),
        distinct=len(drawn.keys),
        seed=seed,
        before=before.side,
        after=after.side if after is not None else None,
        k=k,
        unread=unread,
        worst_target=dict(zip(qi, tuples[judged.easiest], strict=True)) if show_values else None,
    )


def check_attack(
    original: "DataFrame",
    release: "DataFrame | None",
    *,
    qi: Sequence[str],
    sensitive: Sequence[str],
    unit: str | None,
    targets: int,
) -> None:
    """Refuse what cannot be carried out, by schemas alone."""
    check_quasi_identifiers(qi)
    check_targets(targets, most=MOST_TARGETS)
    check_columns(original, qi, where="qi")
    check_columns(original, sensitive, where="sensitive")
    check_columns(original, [unit] if unit is not None else [], where="unit")
    if release is not None:
        check_columns(release, qi, where="qi", what="release")
        check_columns(release, sensitive, where="sensitive", what="release")


@dataclass(frozen=True)
class _Found:
    """One side, and the tuple that is easiest to find."""

    side: AttackSide
    easiest: int


def _found(drawn: Drawn, candidates: NDArray[np.float64], counted: Counted, guesses: Sequence[Guess]) -> _Found:
    """Success by the candidates of each distinct tuple."""
    success = np.divide(1.0, candidates, out=np.zeros_like(candidates), where=candidates > 0)
    easiest = int(np.argmax(success))
    side = AttackSide(
        counted=counted,
        expected=float(success[drawn.target].mean()),
        worst=float(success[easiest]),
        fewest=float(candidates[easiest]),
        unmatched=int((candidates[drawn.target] == 0).sum()),
        guesses=tuple(guesses),
    )
    return _Found(side, easiest)


# The original


def _original(
    table: "DataFrame", drawn: Drawn, *, qi: Sequence[str], sensitive: Sequence[str], unit: str | None
) -> tuple[_Found, list[tuple[Text, ...]]]:
    """The attack on the original: a row is a candidate if it is equal. Also the targets' values, as texts."""
    from pyspark.sql import functions as F

    texts = [text_of(table, name).alias(label) for name, label in zip(qi, label_names(len(qi)), strict=True)]
    person = [person_of(table, unit).alias("person")] if unit is not None else []
    rows = keyed(table, qi, sensitive, *texts, *person)
    # Hashes and numbers only, one row per distinct target.
    mine = rows.join(F.broadcast(table.sparkSession.createDataFrame(drawn.keys)), list(TUPLE))
    size = F.count(F.lit(1)) if unit is None else F.count_distinct("person") + F.count_if(F.col("person").isNull())
    # One row per distinct target.
    found = (
        mine.groupBy("target")
        .agg(size.alias("size"), *[F.first(name).alias(name) for name in label_names(len(qi))])
        .orderBy("target")
        .collect()
    )
    candidates = np.array([row["size"] for row in found], np.float64)
    guesses = []
    for place, (name, column) in enumerate(zip(sensitive, value_names(len(sensitive)), strict=True)):
        counts = mine.groupBy("target", F.col(column).alias("value")).agg(
            F.count(F.lit(1)).cast("double").alias("weight")
        )
        guesses.append(guess(name, believed(counts, drawn, place), _overall(rows, column, drawn, place)))
    counted: Counted = "rows" if unit is None else "persons"
    return _found(drawn, candidates, counted, guesses), [tuple(row[2:]) for row in found]


def _overall(rows: "DataFrame", column: str, drawn: Drawn, place: int) -> Believed:
    """What someone believes of every target who knows no quasi-identifier: the table's own distribution."""
    from pyspark.sql import functions as F

    counts = rows.groupBy(F.col(column).alias("value")).agg(F.count(F.lit(1)).cast("double").alias("weight"))
    return believed(counts.withColumn("target", F.lit(0)), drawn, place, anyone=True)


# The release


def _readings(original: "DataFrame", release: "DataFrame", qi: Sequence[str]) -> dict[str, Reading]:
    from pyspark.sql import functions as F

    # `?` stands for a suppressed cell, unless the original itself has it as a value.
    flags = [F.max(text_of(original, name) == UNKNOWN).alias(f"flag{place}") for place, name in enumerate(qi)]
    row = original.agg(*flags).first()
    holds = frozenset(name for name, flag in zip(qi, row or (), strict=True) if flag)
    return readings_by_shape({name: type_of(original, name) for name in qi}, release.schema, holds_unknown=holds)


def _release(
    table: "DataFrame",
    drawn: Drawn,
    targets: Targets,
    *,
    qi: Sequence[str],
    sensitive: Sequence[str],
    unit: str | None,
    models: Models,
) -> tuple[_Found, dict[str, int]]:
    """The attack on the release: a row is a candidate if all its cells cover the target's values."""
    from pyspark.sql import functions as F

    labels = [text_of(table, name).alias(label) for name, label in zip(qi, label_names(len(qi)), strict=True)]
    known_unit = unit if unit is not None and unit in table.columns else None
    candidates = _candidates(_weighed(table, labels, known_unit), targets)
    guesses = []
    for place, name in enumerate(sensitive):
        rows = table.select(*labels, sensitive_hash(table, name).alias("value"))
        counted = rows.groupBy(*label_names(len(qi)), "value").agg(F.count(F.lit(1)).cast("double").alias("weight"))
        counts = match_classes(counted.withColumn("top", F.lit(0.0)), targets)
        base = _overall(rows, "value", drawn, place)
        guesses.append(guess(name, believed(counts, drawn, place), base, models=models.get(name, ())))
    found = _found(drawn, candidates, "rows" if known_unit is None else "persons", guesses)
    lost = np.flatnonzero(candidates == 0)
    return found, _unread(table, drawn, targets, qi, lost) if len(lost) else {}


def _candidates(classes: "DataFrame", targets: Targets) -> NDArray[np.float64]:
    """Candidates of each distinct target; one row each comes back."""
    found = match_classes(classes, targets).toPandas()
    candidates = np.zeros(len(targets.tuples))
    # Persons in several classes count in parts there, so that the sum never exceeds the persons; nor does one class.
    candidates[found["target"].to_numpy(np.int64)] = np.maximum(found["weight"], found["top"])
    return candidates


def _weighed(table: "DataFrame", labels: "Sequence[Column]", unit: str | None) -> "DataFrame":
    """The release's classes with what stands behind them: rows, or persons.

    A target's candidates may lie in several classes, and a person too. He weighs 1/m in each of his m classes: the sum
    over classes is at most the number of persons in them, and so is the size of any one class. The larger of the two
    never makes the attack look weaker than it is, and is exact where each person stands in one class only.
    """
    from pyspark.sql import functions as F

    names = label_names(len(labels))
    apart = F.lit(0).cast("long").alias("value")
    if unit is None:
        rows = table.select(*labels).groupBy(*names).agg(F.count(F.lit(1)).cast("double").alias("weight"))
        return rows.select(*names, apart, "weight", F.lit(0.0).alias("top"))
    pairs = (
        table.select(*labels, person_of(table, unit).alias("person"))
        .groupBy(*names, "person")
        .agg(F.count(F.lit(1)).alias("rows"))
    )
    spread = pairs.where(F.col("person").isNotNull()).groupBy("person").agg(F.count(F.lit(1)).alias("classes"))
    joined = pairs.join(spread, "person", "left")
    nobody = F.when(F.col("person").isNull(), F.col("rows"))
    classes = joined.groupBy(*names).agg(
        F.sum(F.coalesce(nobody, 1 / F.col("classes"))).cast("double").alias("weight"),
        F.sum(F.coalesce(nobody, F.lit(1))).cast("double").alias("top"),
    )
    return classes.select(*names, apart, "weight", "top")


def _unread(
    table: "DataFrame", drawn: Drawn, targets: Targets, qi: Sequence[str], lost: NDArray[np.int64]
) -> dict[str, int]:
    """Per column, how many of the targets without a candidate are covered by none of its labels."""
    many = np.bincount(drawn.target, minlength=len(targets.tuples))[lost]
    found = {}
    for place, name in enumerate(qi):
        one = Targets([(targets.tuples[number][place],) for number in lost.tolist()], [targets.readings[place]])
        alone = _candidates(_weighed(table, [text_of(table, name).alias(label_names(1)[0])], None), one)
        if (alone == 0).any():
            found[name] = int(many[alone == 0].sum())
    return found
