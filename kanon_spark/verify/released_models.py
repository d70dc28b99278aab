"""Privacy models beyond k on a release that stands beside its recoding.

Without a unit the written rows are counted as they are. With one, the release does not say whose rows they are: who
carries what comes from the source (`carriers`), and goes through the recoding to the tuples that were published. That
the written rows carry the very values of the source is what the check `multiset` proves.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from kanon_spark.errors import InternalError
from kanon_spark.verify.asked import Asked, Found
from kanon_spark.verify.cells import judge_of
from kanon_spark.verify.counting import Held, value_column
from kanon_spark.verify.facts import Evidence
from kanon_spark.verify.models import check_columns, personal_k, sensitive_models
from kanon_spark.verify.population import fitting_population

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WISH = "wish"  # the carriers' column of each person's own k


def released_models(
    table: "DataFrame",
    published: "DataFrame",
    *,
    evidence: Evidence,
    asked: Asked,
    carriers: "DataFrame | None",
    k: int,
    star: bool,
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
    """
    names = evidence.columns
    check_columns(table, names, replace(asked, personal_k=None))
    behind = None
    if carriers is not None:
        behind = Held.of_carriers(carriers, published, star=star, width=len(names))
    by_person = behind is not None and {value_column(name) for name in asked.judged} <= set(behind.frame.columns)
    if by_person and behind is not None:
        held = behind
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
