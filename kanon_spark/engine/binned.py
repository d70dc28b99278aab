"""Bins of signatures or entries, one pandas frame and one call each; histograms stay what Arrow makes of them.

Spark's `applyInPandas` makes a Python object of every list, and a list of objects of it on the way back: for sparse
tables, where a signature is two rows, that takes as long as much of the solving. So the frames come and go as Arrow
tables, and the column of histograms is a pandas column on Arrow's memory, which is sorted, taken apart and put together
without looking inside.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import pandas as pd

from kanon_spark.signatures.histograms import HISTOGRAM

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


def apply_to_bins(
    binned: "DataFrame", work: Callable[[pd.DataFrame], pd.DataFrame], schema: str, *, by: str = "bin"
) -> "DataFrame":
    """Hand each bin to some work, as one frame.

    Args:
        binned: What the work is given, with the column `by`.
        work: From the rows of a bin to rows of `schema`.
        schema: Spark DDL of what comes back.
        by: Column that names the bins.
    """
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    form = to_arrow_schema(cast(StructType, StructType.fromDDL(schema)))

    def work_on(table: "pa.Table") -> "pa.Table":
        return as_table(work(as_frame(table)), form)

    return binned.groupBy(by).applyInArrow(work_on, schema)


def as_frame(table: "pa.Table") -> pd.DataFrame:
    """An Arrow table as a frame of numpy columns, but for the histograms, if it has any."""
    held = table.column(HISTOGRAM).combine_chunks() if HISTOGRAM in table.column_names else None
    frame: pd.DataFrame = table.drop_columns([HISTOGRAM] if held is not None else []).to_pandas()
    if held is None:
        return frame
    frame[HISTOGRAM] = pd.Series(pd.array(held, dtype=pd.ArrowDtype(held.type)), index=frame.index)
    return frame


def as_table(frame: pd.DataFrame, form: "pa.Schema") -> "pa.Table":
    """A frame as an Arrow table of the given columns and types."""
    import pyarrow as pa

    return pa.Table.from_pandas(frame, schema=form, preserve_index=False).replace_schema_metadata()
