"""The loss of each entry of a recoding, where totals are not enough."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from kanon_spark.signatures.codebook import Codebook

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_losses(entries: "DataFrame", codebook: Codebook, *, name: str) -> "DataFrame":
    """Entries with the share of detail that each of their rows loses; a suppressed one loses everything.

    Args:
        entries: The recoding's entries.
        codebook: The quasi-identifiers with their trees and weights.
        name: The new column.
    """
    layout, weights = codebook.node_layout, codebook.weights

    def cost(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            nodes = layout.unpack(batch[layout.names("out")].to_numpy(np.int64))
            total = np.zeros(len(batch))
            for index, column in enumerate(codebook.columns):
                if column.publish == "node":
                    loss = np.where(np.isfinite(column.tree.loss), column.tree.loss, 1.0)[nodes[:, index]]
                else:
                    loss = batch[f"loss_{index}"].to_numpy(np.float64)
                total += weights[index] * loss
            batch[name] = np.where(batch["class_id"] < 0, 1.0, total / weights.sum())
            yield batch

    fields = ", ".join(f"`{name}` {kind}" for name, kind in entries.dtypes)
    return entries.mapInPandas(cost, f"{fields}, `{name}` double")
