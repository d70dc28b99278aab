"""What an attacker believes of a sensitive value, and how often he is right."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kanon_spark.risk.facts import Guess
from kanon_spark.risk.limits import ModelSpec, limit_of
from kanon_spark.risk.targets import Drawn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Believed:
    """Per drawn row, from the candidates' sensitive values.

    Attributes:
        right: The chance that he names the row's own value. He names the most frequent one; of several, any at random.
        confidence: The share of candidates that have it; 0 without candidates.
    """

    right: NDArray[np.float64]
    confidence: NDArray[np.float64]


def believed(counts: "DataFrame", drawn: Drawn, place: int, *, anyone: bool = False) -> Believed:
    """Hold the most frequent value among each target's candidates against the target's own.

    Args:
        counts: `target`, `value` (hash of a sensitive value), `weight`: rows among the candidates that have it.
        drawn: The targets.
        place: Which sensitive column it is.
        anyone: `counts` speak of everyone alike, as target 0.
    """
    import pandas as pd
    from pyspark.sql import functions as F

    target = np.zeros_like(drawn.target) if anyone else drawn.target
    asked = pd.DataFrame({"target": target.astype(np.int32), "value": drawn.values[:, place]})
    wanted = F.broadcast(counts.sparkSession.createDataFrame(asked.drop_duplicates().assign(asked=True)))
    # Values of the same weight first, so that ties are counted without holding all values of a target at once.
    ties = (
        counts.join(wanted, ["target", "value"], "left")
        .groupBy("target", "weight")
        .agg(F.count(F.lit(1)).alias("ties"), F.collect_list(F.when(F.col("asked"), F.col("value"))).alias("values"))
    )
    best = F.max(F.struct("weight", "ties"))
    # One row per distinct target, with no value in it but those that were drawn.
    found = (
        ties.groupBy("target")
        .agg(
            best.alias("best"),
            F.sum(F.col("weight") * F.col("ties")).alias("all"),
            F.collect_list(F.when(F.size("values") > 0, F.struct("weight", "values"))).alias("own"),
        )
        .collect()
    )
    most = {int(row["target"]): (row["best"]["weight"], row["best"]["ties"], row["all"]) for row in found}
    own = {
        (int(row["target"]), int(value)): same["weight"]
        for row in found
        for same in row["own"]
        for value in same["values"]
    }
    right, confidence = np.zeros(len(asked)), np.zeros(len(asked))
    for place_of, key in enumerate(zip(target.tolist(), asked["value"].tolist(), strict=True)):
        if key[0] in most:
            weight, many, total = most[key[0]]
            right[place_of] = 1 / many if own.get(key) == weight else 0.0
            confidence[place_of] = weight / total
    return Believed(right, confidence)


def guess(column: str, found: Believed, base: Believed, *, models: Sequence[ModelSpec] = ()) -> Guess:
    """Both ways of guessing, over the same targets. Who has no candidate guesses what everyone would.

    Args:
        column: The sensitive column.
        found: By the candidates of each target.
        base: By the whole table.
        models: What every class of the table satisfies.
    """
    common = float(base.confidence.max(initial=0.0))  # the same for every target
    limit = limit_of(models, common)
    lost = found.confidence == 0
    right = np.where(lost, base.right, found.right)
    confidence = np.where(lost, base.confidence, found.confidence)
    return Guess(
        column=column,
        right=float(right.mean()),
        confidence=float(confidence.mean()),
        base=float(base.right.mean()),
        highest=float(found.confidence.max(initial=0.0)),
        common=common,
        limit=limit.share if limit is not None else None,
        limited_by=limit.model if limit is not None else None,
    )
