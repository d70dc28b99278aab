"""What `max_level` makes impossible, found before classes are formed.

Where a quasi-identifier may not be published at its root, no class reaches beyond the highest nodes that may: each lies
in one *outermost group*, the signatures under one such node in every quasi-identifier. A group with fewer than k
persons, or with fewer values than l-diversity cannot do without, holds no class at all, so that all of it would have to
be suppressed, by every method but kactus, whose `?` stands above all levels. Where nothing may be suppressed, a group
that breaks any demand as one class shows that it cannot be met: two classes that satisfy one still do when they are put
together. What else may be impossible inside a group shows when classes are formed.

Cost: one or two aggregations of the signatures, and only where `max_level` says anything.
"""

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from kanon_spark.engine.guarding import merged_histograms, with_goodness
from kanon_spark.engine.pieces import Solver
from kanon_spark.errors import SuppressionError
from kanon_spark.kernels.problem import Forest
from kanon_spark.methods.kactus import Kactus
from kanon_spark.privacy.base import EPSILON
from kanon_spark.privacy.demands import Demands
from kanon_spark.privacy.l_diversity import Distinct, Entropy, Recursive
from kanon_spark.signatures.sensitive import Judged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def refuse_outermost(solver: Solver, signatures: "DataFrame", *, rows: int) -> None:
    """Stop where `max_level` alone would have more suppressed than the configuration allows.

    Raises:
        SuppressionError: Before anything is solved.
    """
    capped = [] if isinstance(solver.method, Kactus) else capped_qis(solver.forest)
    if not capped:
        return
    judged = solver.judged
    names = ", ".join(solver.codebook.columns[index].name for index in capped)
    groups, persons = hopeless(solver, signatures, capped, None if judged is None else values_needed(judged))
    if persons > solver.suppressible:
        raise SuppressionError(
            f"at least {persons} of {rows} rows would have to be suppressed, and {solver.suppressible} may be: as "
            f"coarse as max_level allows ({names}), they fall into groups ({groups} of them) with fewer than k "
            "persons or too few sensitive values; nothing was published",
            where="privacy.max_suppression",
            fix="raise max_level or max_suppression, or ask for less (k, l-diversity)",
        )
    if judged is None or solver.suppressible or judged.overlapping:
        return  # what leaves the release, or stands in several signatures, may change what a group has
    groups, _ = hopeless(solver, signatures, capped, judged.demands)
    if groups:
        asked = ", ".join(dict.fromkeys(model.words for models in judged.models.values() for model in models))
        raise SuppressionError(
            f"nothing may be suppressed, and as coarse as max_level allows ({names}) the rows fall into groups of "
            f"which {groups} break what is asked even as one class each ({asked}); nothing was published",
            where="privacy.max_suppression",
            fix="raise max_level or max_suppression, or ask for less",
        )


def capped_qis(forest: Forest) -> list[int]:
    """The QIs that may not be published at their root."""
    return [j for j in range(forest.width) if np.isinf(forest.loss[forest.start[j + 1] - 1])]


def hopeless(solver: Solver, signatures: "DataFrame", capped: list[int], demands: Demands | None) -> tuple[int, int]:
    """How many outermost groups break k or the demands as one class each, and how many persons these have."""
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.functions import pandas_udf

    forest = solver.forest
    tops = [forest.highest[forest.start[qi] : forest.start[qi] + forest.leaves[qi]] for qi in capped]

    def group_of(words: pd.DataFrame) -> pd.Series:  # Spark reads the hint
        codes = solver.codes(words)
        return pd.Series(list(np.stack([top[codes[:, qi]] for qi, top in zip(capped, tops, strict=True)], axis=1)))

    words = F.struct(*solver.codebook.layout.names())
    grouped = signatures.withColumn("outermost", pandas_udf(group_of, "array<int>")(words))  # type: ignore[call-overload]
    if demands is None:
        held = grouped.groupBy("outermost").agg(F.sum("persons").alias("persons"))
    else:
        held = merged_histograms(grouped, ["outermost"])
    judged = with_goodness(held, k=solver.k, demands=demands).where(~F.col("good"))
    found = judged.agg(F.count(F.lit(1)), F.coalesce(F.sum("persons"), F.lit(0))).collect()[0]  # one row
    return int(found[0]), int(found[1])


def values_needed(judged: Judged) -> Demands | None:
    """What no class that satisfies the demands of l-diversity can do without: l different values; None if none asks."""
    needed = {
        name: tuple(
            Distinct(ceil(each.l - EPSILON)) for each in models if isinstance(each, Distinct | Entropy | Recursive)
        )
        for name, models in judged.models.items()
    }
    return replace(judged, models=needed).demands if any(needed.values()) else None
