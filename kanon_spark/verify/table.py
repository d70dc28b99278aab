"""Does a table hold k, and the models beyond it? Asked of any table, whoever made it."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from kanon_spark.errors import MissingInputError, RequestError, UnsupportedTypeError
from kanon_spark.verify.asked import Asked
from kanon_spark.verify.facts import Check, ClassFacts, Verdict
from kanon_spark.verify.groups import TUPLE, Summary, group_rows, summarize
from kanon_spark.verify.models import find_models

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def verify_table(
    table: "DataFrame", *, qi: Sequence[str], k: int, unit: str | None = None, asked: Asked | None = None
) -> Verdict:
    """Group a table by its quasi-identifiers and check that every group has at least k rows, or k distinct persons.

    Null is a value like any other. A row whose `unit` is null counts as a person of its own.

    Args:
        table: Any table.
        qi: Its quasi-identifiers.
        k: Least size of a group.
        unit: Column of the protected person; None counts rows.
        asked: Privacy models beyond k (see `privacy/README.md`).

    Returns:
        A verdict with the check `k`, one for each model and sensitive column that is asked, the class sizes, the row
        count and the table's content hash.

    Raises:
        MissingInputError: The table lacks a column that was named.
        UnsupportedTypeError: A named column cannot be grouped by.
        RequestError: k is below 1, or no or a repeated quasi-identifier is named.

    Example:
        ```python
        verify_table(spark.read.parquet("out/patients"), qi=["age", "zip"], k=5).require()
        ```
    """
    _check_request(table, qi, k, unit)
    kept = [name for name in table.columns if name not in set(qi)]
    found = summarize(group_rows(table, qi=qi, kept=kept, unit=unit), width=len(qi), k=k)
    facts = ClassFacts.of(found.sizes, k=k, achieved=found.persons)
    models = find_models(table, qi=qi, k=k, asked=asked, unit=unit) if asked else ()
    checks = (k_check(found, k=k, persons=unit is not None), *(model.check for model in models))
    return Verdict(checks, facts, found.rows, found.content, models, found.sizes)


def failing_classes(table: "DataFrame", *, qi: Sequence[str], k: int, unit: str | None = None) -> "DataFrame":
    """The classes that `verify_table` would count as too small, as hashes `t1`, `t2` of their tuple."""
    from pyspark.sql import functions as F

    groups = group_rows(table, qi=qi, kept=[], unit=unit)
    return groups.where(F.col("rows" if unit is None else "persons") < k).select(*TUPLE)


def k_check(found: Summary, *, k: int, persons: bool) -> Check:
    """The check `k` on a grouped table."""
    what = "persons" if persons else "rows"
    least = found.persons if found.persons is not None else min(found.sizes, default=0)
    if not found.sizes:
        return Check("k", True, "the table is empty, so that no group is smaller than k")
    if found.short:
        return Check("k", False, f"{found.short:,} groups have fewer than {k} {what}; the smallest has {least:,}")
    return Check("k", True, f"every group has at least {k} {what}; the smallest has {least:,}")


def _check_request(table: "DataFrame", qi: Sequence[str], k: int, unit: str | None) -> None:
    if k < 1:
        raise RequestError(f"k is {k}, but a group has at least one member", where="k", fix="ask for k of 2 or more")
    if not qi:
        raise RequestError("no quasi-identifier is named", where="qi", fix="name the columns to group by")
    if len(set(qi)) < len(qi):
        raise RequestError("a quasi-identifier is named twice", where="qi", fix="name each column once")
    wanted = [*qi, *([unit] if unit is not None else [])]
    missing = [name for name in wanted if name not in table.columns]
    if missing:
        near = [close for name in missing for close in get_close_matches(name, table.columns, n=1)]
        raise MissingInputError(
            f"the table has no column {', '.join(repr(name) for name in missing)}",
            where="qi" if missing[0] in qi else "unit",
            fix=f"did you mean {', '.join(near)}?" if near else f"it has {', '.join(table.columns)}",
        )
    types = {field.name: field.dataType.simpleString() for field in table.schema.fields}
    for name in wanted:
        if "map<" in types[name] or types[name] == "variant":
            raise UnsupportedTypeError(
                f"a column of type {types[name]} cannot be grouped by",
                where=name,
                fix="leave it out or cast it to string",
            )
