"""`kanon suggest`: a draft of a configuration, from a table alone."""

from kanon_spark.explore.suggest.door import suggest
from kanon_spark.explore.suggest.suggestion import Suggestion

__all__ = ["Suggestion", "suggest"]
