"""What entries of a recoding publish, as texts: for samples in reports and for classifiers, not for releases."""

import numpy as np
import pandas as pd

from kanon_spark.signatures.codebook import Codebook


def published_texts(entries: pd.DataFrame, codebook: Codebook) -> pd.DataFrame:
    """The published quasi-identifiers of collected entries, None for null; suppressed ones read as suppressed cells.

    Args:
        entries: Entries with `class_id`, out words and labels, in any order.
        codebook: The quasi-identifiers.
    """
    layout = codebook.node_layout
    nodes = layout.unpack(entries[layout.names("out")].to_numpy(np.int64))
    suppressed = entries["class_id"].to_numpy(np.int64) < 0
    found = {}
    for index, column in enumerate(codebook.columns):
        if column.publish == "node":
            texts = np.array(column.tree.labels, dtype=object)[nodes[:, index]]
        else:
            own = entries[f"label_{index}"]
            texts = own.astype(object).where(own.notna(), None).to_numpy(object)
        found[column.name] = np.where(suppressed, column.form.suppressed, texts)
    return pd.DataFrame(found, index=entries.index, dtype=object)
