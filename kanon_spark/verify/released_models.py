"""Privacy models beyond k on a release that stands beside its recoding.

Without a unit the written rows are counted as they are. With one, the release does not say whose rows they are: who
carries what comes from the source (`carriers`), and goes through the recoding to the tuples that were published. That
the written rows carry the very values of the source is what the check `multiset` proves.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kanon_spark.errors import InternalError
from kanon_spark.verify.asked import Asked, Found
from kanon_spark.verify.cells import judge_of
from kanon_spark.verify.counting import Held, form_for, value_column, value_form
from kanon_spark.verify.facts import Evidence
from kanon_spark.verify.groups import group_rows
from kanon_spark.verify.models import check_columns, personal_k, sensitive_models
from kanon_spark.verify.population import fitting_population

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WISH = "wish"  # the carriers' column of each person's own k


def grouped_by_value(
    table: "DataFrame", asked: Asked | None, carriers: "DataFrame | None", *, qi: Sequence[str], kept: Sequence[str]
) -> "DataFrame | None":
    """The written rows grouped by tuple and sensitive value, where one column is judged and rows are what is counted.

    All that is asked of classes can be made of these groups, so that what was written is read once.
    """
    if asked is None or len(asked.judged) != 1:
        return None
    ((name, spec),) = asked.judged.items()
    if carriers is not None and value_column(name) in carriers.columns:
        return None
    check_columns(table, qi, replace(asked, personal_k=None))
    return group_rows(table, qi=qi, kept=kept, value=value_form(table, name, form_for(spec)))


def released_models(
    table: "DataFrame",
    published: "DataFrame",
    *,
    evidence: Evidence,
    asked: Asked,
    carriers: "DataFrame | None",
    k: int,
    star: bool,
    finer: "DataFrame | None" = None,
) -> tuple[Found, ...]:
    """What the published classes have of each model and column.

    Args:
        table: What was written.
        published: All entries of the recoding with their published tuple.
        evidence: The recoding.
        asked: The models.
        carriers: Persons and wishes of the source by signature (`Held.of_carriers`); needed with a unit, and where
            wishes are asked for.
        k: The k of a person who does not say its own.
        star: Suppressed rows are published as `*`: a class like any other.
        finer: The written rows grouped by tuple and value, where that has been done (`grouped_by_value`).
    """
    names = evidence.columns
    check_columns(table, names, replace(asked, personal_k=None))
    behind = None
    if carriers is not None:
        behind = Held.of_carriers(carriers, published, star=star, width=len(names))
    by_person = behind is not None and {value_column(name) for name in asked.judged} <= set(behind.frame.columns)
    if by_person and behind is not None:
        held = behind
    elif finer is not None:
        (judged,) = asked.judged
        held = Held.of_groups(finer, kind=table.schema[judged].dataType.simpleString())
    else:
        held = Held.of_table(table, qi=names, names=list(asked.judged), unit=None)
    found = sensitive_models(held, asked)
    if asked.personal_k is not None:
        if behind is None or WISH not in behind.frame.columns:
            raise InternalError("the persons' own ks were not given to the verifier", where="privacy.personal_k")
        found.append(personal_k(behind, WISH, name=asked.personal_k, k=k))
    if asked.population is not None:
        found.append(
            fitting_population(
                table,
                qi=[qi.name for qi in evidence.qis],
                unit=asked.population.unit,
                population=asked.population,
                base_dir=asked.base_dir,
                judges=[judge_of(qi) for qi in evidence.qis],
            )
        )
    return tuple(found)
