"""Does a written release hold what it promises? Read back from where it was written, before it is published."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

from kanon_spark.engine.session import carried
from kanon_spark.verify.asked import Asked
from kanon_spark.verify.cells import untrue_cells
from kanon_spark.verify.facts import Check, ClassFacts, Evidence, Verdict
from kanon_spark.verify.forms import form_checks
from kanon_spark.verify.groups import differing_tuples, group_entries, group_rows, regroup, summarize
from kanon_spark.verify.identities import Counted, count_entries
from kanon_spark.verify.means import Means, look_at_means
from kanon_spark.verify.persons import Persons, count_persons
from kanon_spark.verify.pseudonyms import PseudonymFacts, pseudonym_check
from kanon_spark.verify.published import suppressed_tuple, with_published
from kanon_spark.verify.released_models import grouped_by_value, released_models
from kanon_spark.verify.table import k_check

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def verify_release(
    table: "DataFrame",
    *,
    k: int,
    evidence: Evidence,
    kept: Sequence[str],
    suppressed_rows: Literal["drop", "star"],
    max_suppression: float,
    input_rows: int,
    pairs: "DataFrame | None" = None,
    pseudonyms: PseudonymFacts | None = None,
    asked: Asked | None = None,
    carriers: "DataFrame | None" = None,
) -> Verdict:
    """Check a written table against the recoding it claims to follow.

    Args:
        table: What was written, read back.
        k: Persons (rows, without `pairs`) that every published group must have.
        evidence: The recoding.
        kept: Columns that pass through unchanged, in the order in which the source's content was hashed.
        suppressed_rows: Whether suppressed rows were dropped or published as rows of `*`.
        max_suppression: Largest share of the input's rows that may be suppressed.
        input_rows: Rows of the source.
        pairs: Persons of each signature, where `privacy.unit` is given (see `verify/persons.py`).
        pseudonyms: Identifiers that are published as pseudonyms, where there are any.
        asked: Privacy models beyond k.
        carriers: Who carries what, and asks for which k, where the release itself does not tell (see
            `verify/released_models.py`).

    Returns:
        A verdict with the checks `columns`, `k`, `rows`, `suppression`, `truth`, `codes` and `multiset`; one for each
        model and sensitive column that is asked, `pseudonyms` where there are any, `ranges` and `numbers` where
        `output` asks for their forms.
    """
    star = suppressed_rows == "star"
    names = evidence.columns
    width = len(names)
    pseudonymized = [] if pseudonyms is None else [each.name for each in pseudonyms.columns]
    columns = _columns_check(table.columns, [*names, *kept, *pseudonymized])
    if not {*names, *kept, *pseudonymized} <= set(table.columns):  # nothing else can be looked at
        return Verdict((columns,), ClassFacts.of({}, k=k), table.count(), "")
    finer = grouped_by_value(table, asked, carriers, qi=names, kept=kept)
    staged = group_rows(table, qi=names, kept=kept) if finer is None else regroup(finer)
    published = with_published(evidence)
    claimed = published if star else published.where("class_id >= 0")
    promised = group_entries(claimed, width=width)
    # The looks do not depend on each other, and each leaves cores idle while it is planned: let them overlap.
    with ThreadPoolExecutor(max_workers=4) as pool, ExitStack() as stack:
        if finer is not None:  # two looks are taken at it
            finer.persist()
            stack.callback(finer.unpersist)
        nothing = suppressed_tuple(evidence)
        spark = table.sparkSession
        looking = pool.submit(carried(spark, summarize), staged, width=width, k=k, suppressed=nothing)
        promising = pool.submit(carried(spark, summarize), promised, width=width, k=k, suppressed=nothing)
        counting = pool.submit(carried(spark, count_entries), evidence)
        judging = None
        if asked:
            judge = carried(spark, released_models)
            judging = pool.submit(
                judge, table, published, evidence=evidence, asked=asked, carriers=carriers, k=k, star=star, finer=finer
            )
        persons = None if pairs is None else count_persons(pairs, published, star=star, width=width, k=k)
        counted = counting.result()
        untrue = untrue_cells(evidence, published, entries=counted.entries)
        means = look_at_means(evidence, published)
        forms = form_checks(evidence, published)
        found, promise = looking.result(), promising.result()
        models = () if judging is None else judging.result()
    checks = [
        columns,
        k_check(found, k=k, persons=False) if persons is None else _person_check(persons, k=k),
        *(model.check for model in models),
        _rows_check(found.rows, counted, input_rows=input_rows, star=star),
        _suppression_check(counted.suppressed, max_suppression=max_suppression, input_rows=input_rows),
        _truth_check(untrue, means),
        *forms,
        _codes_check(counted),
    ]
    same = (found.fingerprint, found.rows) == (promise.fingerprint, promise.rows)
    checks.append(_multiset_check(0 if same else max(1, differing_tuples(staged, promised))))
    if pseudonyms is not None:
        checks.append(pseudonym_check(table, pseudonyms, published, qi=names, kept=kept, star=star))

    sizes = found.sizes
    if star and counted.suppressed:
        sizes = _without_suppressed(sizes, starred=found.starred, suppressed=counted.suppressed)
    achieved = min(found.sizes, default=0) if persons is None else persons.least
    facts = ClassFacts.of(sizes, k=k, achieved=achieved)
    return Verdict(tuple(checks), facts, found.rows, found.content, models, found.sizes)


def _without_suppressed(sizes: Mapping[int, int], *, starred: int, suppressed: int) -> dict[int, int]:
    """Class sizes with the suppressed rows taken out of the group of `*`, which released rows may share."""
    left = dict(sizes)
    if starred in left:
        left[starred] -= 1
        released = starred - suppressed
        if released > 0:
            left[released] = left.get(released, 0) + 1
    return {size: count for size, count in left.items() if count}


def _columns_check(found: Sequence[str], wanted: Sequence[str]) -> Check:
    extra = sorted(set(found) - set(wanted))
    missing = sorted(set(wanted) - set(found))
    if extra or missing or len(found) != len(wanted):
        return Check("columns", False, f"columns too many: {extra}; columns missing: {missing}")
    return Check("columns", True, f"{len(wanted)} columns, the quasi-identifiers and those that were to be kept")


def _person_check(persons: Persons, *, k: int) -> Check:
    if persons.unmatched:
        return Check("k", False, f"{persons.unmatched:,} persons of the source belong to no entry of the recoding")
    if persons.short:
        return Check(
            "k", False, f"{persons.short:,} groups have fewer than {k} persons; the smallest has {persons.least:,}"
        )
    return Check("k", True, f"every group has at least {k} persons; the smallest has {persons.least:,}")


def _rows_check(released: int, counted: Counted, *, input_rows: int, star: bool) -> Check:
    expected = counted.rows if star else counted.rows - counted.suppressed
    detail = (
        f"{released:,} rows were written and {counted.suppressed:,} suppressed "
        f"({'published as *' if star else 'dropped'}) of {input_rows:,} in the source"
    )
    return Check("rows", released == expected and counted.rows == input_rows, detail)


def _suppression_check(suppressed: int, *, max_suppression: float, input_rows: int) -> Check:
    # Exact up to the last row: a share of 0.01 of 300 rows is 3, though 0.01 * 300 is not in binary.
    allowed = int(Decimal(repr(max_suppression)) * input_rows)
    detail = f"{suppressed:,} rows are suppressed and {allowed:,} ({max_suppression:.4g} of all) may be"
    return Check("suppression", suppressed <= allowed, detail)


def _truth_check(untrue: Mapping[str, int], means: Means) -> Check:
    if untrue:
        listed = ", ".join(f"{name} ({count:,})" for name, count in untrue.items())
        return Check("truth", False, f"published labels that are not true of the value behind them: {listed}")
    if means.wrong:
        listed = ", ".join(f"{name} ({count:,})" for name, count in means.wrong.items())
        return Check("truth", False, f"classes that publish a number which is not the mean of their rows: {listed}")
    if means.cells:
        detail = f"every published label is true of every value behind it, but for {means.cells:,} distinct cells that "
        return Check("truth", True, detail + "are no values: they are the means of the rows of their class")
    return Check("truth", True, "every published label is true of every value behind it")


def _codes_check(counted: Counted) -> Check:
    if counted.wrong:
        wrong = f"{counted.wrong:,} of {counted.entries:,}"
        return Check("codes", False, f"the codes of {wrong} entries do not decode to the rows they are joined to")
    return Check("codes", True, f"the codes of all {counted.entries:,} entries decode to the rows they are joined to")


def _multiset_check(differing: int) -> Check:
    if differing:
        return Check("multiset", False, f"{differing:,} published tuples hold other rows than source and recoding say")
    return Check("multiset", True, "the written rows are exactly the source's rows, recoded")
