"""What an attacker believes of a sensitive value, and how often he is right."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kanon_spark.risk.facts import Guess
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

    # One row per distinct target: the largest weight, how many values have it, and the sum of all.
    ties = counts.groupBy("target", "weight").agg(F.count(F.lit(1)).alias("ties"))
    best = F.max(F.struct("weight", "ties"))
    total = F.sum(F.col("weight") * F.col("ties"))
    tops = ties.groupBy("target").agg(best["weight"].alias("most"), best["ties"].alias("ties"), total.alias("all"))
    target = np.zeros_like(drawn.target) if anyone else drawn.target
    asked = pd.DataFrame({"target": target.astype(np.int32), "value": drawn.values[:, place]})
    wanted = F.broadcast(counts.sparkSession.createDataFrame(asked.drop_duplicates()))
    # One row per distinct (target, value) that was drawn.
    own = counts.join(wanted, ["target", "value"]).select("target", "value", "weight").toPandas()
    each = asked.merge(tops.toPandas(), on="target", how="left").merge(own, on=["target", "value"], how="left")
    named = (each["weight"] == each["most"]).to_numpy(np.bool_)
    right = np.where(named, 1 / each["ties"].to_numpy(np.float64), 0.0)
    return Believed(right, (each["most"] / each["all"]).fillna(0.0).to_numpy(np.float64))


def guess(column: str, found: Believed, base: Believed) -> Guess:
    """Both ways of guessing, over the same targets. Who has no candidate guesses what everyone would."""
    lost = found.confidence == 0
    right = np.where(lost, base.right, found.right)
    confidence = np.where(lost, base.confidence, found.confidence)
    return Guess(column, float(right.mean()), float(confidence.mean()), float(base.right.mean()))
