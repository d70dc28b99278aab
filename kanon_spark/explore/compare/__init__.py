"""`kanon compare`: methods and values of k side by side, on the same signatures of one table."""

from kanon_spark.explore.compare.door import compare
from kanon_spark.explore.compare.result import Cell, Comparison, Limits

__all__ = ["Cell", "Comparison", "Limits", "compare"]
