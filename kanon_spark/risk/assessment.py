"""The whole look at a table, and at its release beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kanon_spark.risk.attack import TARGETS, check_attack, linkage_attack
from kanon_spark.risk.classes import classes_of, population_sizes, sizes_of
from kanon_spark.risk.combinations import GROUPED, column_sets, count_sets, rank_columns, riskiest, with_example
from kanon_spark.risk.coverage import Reading
from kanon_spark.risk.facts import Attack, RiskReport, TableRisk
from kanon_spark.risk.limits import Models
from kanon_spark.risk.request import check_columns, check_quasi_identifiers, check_thresholds
from kanon_spark.risk.sizes import THRESHOLDS, class_risk
from kanon_spark.signatures.columns import type_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def table_risk(
    table: "DataFrame",
    *,
    qi: Sequence[str],
    unit: str | None = None,
    population: "DataFrame | None" = None,
    thresholds: Sequence[float] = THRESHOLDS,
    show_values: bool = False,
    what: str = "table",
) -> TableRisk:
    """How alone the rows of a table are by their quasi-identifiers.

    Args:
        table: Any table, raw or released.
        qi: Its quasi-identifiers.
        unit: Column of the person: sizes count persons. None counts rows.
        population: A table of everyone with the same quasi-identifiers, which the table is a part of.
        thresholds: Risks above which records are counted.
        show_values: Tell one unique combination of values for each combination of columns.
        what: What messages call the table.

    Returns:
        Prosecutor, journalist and marketer risk, uniqueness, the ranking of the columns and the riskiest combinations.

    Raises:
        MissingInputError: The table (or the population) lacks a column that was named.
        EmptyTableError: It has no rows.
        RequestError: No or a repeated quasi-identifier is named, or a threshold is no probability.

    Example:
        ```python
        table_risk(spark.read.parquet("patients"), qi=["age", "zip"]).sizes.prosecutor.highest
        ```
    """
    check_quasi_identifiers(qi)
    check_thresholds(thresholds)
    check_columns(table, qi, where="qi", what=what)
    check_columns(table, [unit] if unit is not None else [], where="unit", what=what)
    classes = classes_of(table, qi, unit=unit)
    sizes = sizes_of(table, classes, unit=unit, what=what)
    others = None
    if population is not None:
        check_columns(population, qi, where="population", what="population")
        there = unit if unit is not None and unit in population.columns else None
        types = [type_of(table, name) for name in qi]
        others = population_sizes(classes, classes_of(population, qi, unit=there, types=types), width=len(qi))
    sets = column_sets(len(qi))
    step = max(1, sum(sizes.classes.values()) * len(sets) // GROUPED)
    told = count_sets(classes, sets, step=step, unit=unit is not None)
    combinations = riskiest(told, qi, rows=sizes.rows, step=step)
    if show_values:
        combinations = tuple(with_example(table, each, unit=unit) for each in combinations)
    return TableRisk(
        sizes=class_risk(sizes, thresholds=thresholds, population=others),
        columns=rank_columns(told, qi, rows=sizes.rows),
        combinations=combinations,
        largest=max(len(chosen) for chosen in sets),
        looked_at=step,
    )


def assess(
    original: "DataFrame",
    release: "DataFrame | None" = None,
    *,
    qi: Sequence[str],
    unit: str | None = None,
    sensitive: Sequence[str] = (),
    added: Sequence[str] = (),
    population: "DataFrame | None" = None,
    thresholds: Sequence[float] = THRESHOLDS,
    k: int | None = None,
    attack_qi: Sequence[str] | None = None,
    targets: int = TARGETS,
    seed: int = 0,
    readings: Mapping[str, Reading] | None = None,
    models: Models | None = None,
    show_values: bool = False,
) -> RiskReport:
    """Risks before and after, and the linkage attack.

    Args:
        original: The raw table, or the only one.
        release: What was published of it.
        qi: The quasi-identifiers.
        unit: Column of the person.
        sensitive: Columns that an attacker wants to learn.
        added: Columns that the release has beside the quasi-identifiers and that tell its rows apart too
            (`output.numeric`).
        population: As for `table_risk`, like `thresholds`.
        thresholds: Risks above which records are counted.
        k: What the release promises; by default the k that it holds.
        attack_qi: What the attacker knows; all quasi-identifiers by default.
        targets: As for `linkage_attack`, like all that follow.
        seed: Seed of the draw.
        readings: How labels are read.
        models: As for `linkage_attack`.
        show_values: Tell raw values.
    """
    known = list(attack_qi) if attack_qi is not None else list(qi)
    # All columns first, so that a misspelt one is not found after minutes of work.
    check_quasi_identifiers(qi)
    check_thresholds(thresholds)
    check_columns(original, qi, where="qi")
    check_attack(original, release, qi=known, sensitive=sensitive, unit=unit, targets=targets)
    if release is not None:
        check_columns(release, [*qi, *added], where="qi", what="release")
    if population is not None:
        check_columns(population, qi, where="population", what="population")
    before = table_risk(
        original, qi=qi, unit=unit, population=population, thresholds=thresholds, show_values=show_values
    )
    after = None
    if release is not None:
        there = unit if unit is not None and unit in release.columns else None
        after = table_risk(release, qi=[*qi, *added], unit=there, thresholds=thresholds, what="release")
    attack = linkage_attack(
        original,
        release,
        qi=known,
        sensitive=sensitive,
        unit=unit,
        readings=readings,
        models=models,
        k=k if k is not None or after is None else after.sizes.smallest,
        targets=targets,
        seed=seed,
        show_values=show_values,
    )
    report = RiskReport(before, after, attack)
    notes = _notes(report, unit=unit, population=population is not None)
    return replace(report, notes=(*notes, *_attack_notes(report.attack, readings or {})))


def _notes(report: RiskReport, *, unit: str | None, population: bool) -> list[str]:
    """What a reader must know to read the numbers right."""
    notes = []
    if not population:
        notes.append(
            "no population table was given: the journalist's risk is that of the table itself, which is the highest it "
            "can be"
        )
    elif report.after is not None:
        notes.append(
            "the population was held against the original only; the release's journalist risk is counted in the "
            "release itself, which is the highest it can be"
        )
    if report.before.sizes.absent:
        notes.append(
            f"the population has fewer records than the table in {report.before.sizes.absent:,} classes: it does not "
            "hold the whole table, or spells values in another way; the table's own count was taken there"
        )
    if unit is not None and report.after is not None and report.after.sizes.counted == "rows":
        notes.append(
            "the release names no persons: after, everything is counted in rows, and a person with several rows is "
            "counted several times"
        )
    for table in filter(None, (report.before, report.after)):
        if table.looked_at > 1:
            notes.append(
                f"combinations of two and more columns are estimated from one in {table.looked_at:,} of their values"
            )
            break
    return notes


def _attack_notes(attack: Attack | None, readings: Mapping[str, Reading]) -> list[str]:
    if attack is None or attack.after is None:
        return []
    notes = []
    if means := [f"'{name}'" for name in attack.columns if name in readings and readings[name].mean]:
        notes.append(
            f"{', '.join(means)}: published as means of the classes, of which any value may be a part: every number "
            "fits every target there. Who guesses which means are near may do better, but for nobody better than "
            "'prosecutor, highest'"
        )
    if not attack.after.unmatched:
        return notes
    text = f"{attack.after.unmatched:,} of {attack.targets:,} targets match no released row"
    if not attack.unread:
        return [*notes, f"{text}: their rows were not published"]
    listed = ", ".join(f"'{name}' ({many:,})" for name, many in attack.unread.items())
    # Only labels that were read by their shape may have a meaning that a configuration tells.
    blind = any(name not in readings for name in attack.unread)
    why = ", or labels cannot be read from their texts alone (give --config, so that hierarchies and means are known)"
    text = f"{text}: their rows were not published{why if blind else ''}"
    return [*notes, f"{text}; nothing published covers their value of {listed}"]
