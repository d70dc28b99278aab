"""Who may join a class, on Spark: each class decides for itself, in the task where its askers meet."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from kanon_spark.engine.guarding import merged_histograms
from kanon_spark.engine.pieces import Solver
from kanon_spark.kernels.admission import admitted
from kanon_spark.signatures.histograms import HISTOGRAM

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def admit(solver: Solver, members: "DataFrame", asking: "DataFrame", class_of: list[str]) -> "DataFrame":
    """Whether each asker is taken: `h` and `taken`.

    Args:
        solver: Knows what is asked.
        members: Signatures of the classes as they are now.
        asking: Signatures with the class that each wants and the `rise` of the loss if it joins.
        class_of: The columns that tell classes apart.
    """
    from pyspark.sql import functions as F

    words = solver.codebook.layout.names()
    wanted = members.join(asking.select(*class_of).distinct(), class_of, "left_semi")
    classes = merged_histograms(wanted.select(*class_of, "persons", HISTOGRAM), class_of)
    # Behind their class, in the order of the rise and of their codes.
    first = classes.withColumns({"rise": F.lit(-1.0), **{name: F.lit(0).cast("bigint") for name in ["h", *words]}})
    names = [*class_of, "h", "rise", *words, "persons", HISTOGRAM]

    def decide(frame: pd.DataFrame) -> pd.DataFrame:
        frame = frame.sort_values(["rise", *words], kind="stable").reset_index(drop=True)
        askers = np.arange(1, len(frame))  # no rise is negative: the class comes first
        taken = admitted(solver.guard(frame), np.zeros(1, np.int64), np.zeros(len(askers), np.int64), askers)
        return pd.DataFrame({"h": frame["h"].to_numpy(np.int64)[1:], "taken": taken})

    both = first.select(*names).unionByName(asking.select(*names))
    return both.groupBy(*class_of).applyInPandas(decide, "h bigint, taken boolean")
