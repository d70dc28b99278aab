"""Does a table that follows a saved recoding publish nothing but what that recoding publishes?"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kanon_spark.verify.facts import Check
from kanon_spark.verify.groups import TUPLE, tuple_hashes, tuple_parts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def mapping_check(table: "DataFrame", known: "DataFrame", *, qi: Sequence[str]) -> Check:
    """The check `mapping`: every published tuple of the table is one of the recoding's.

    Args:
        table: What was written.
        known: The tuples that the recoding publishes, under the same column names; repeated ones do not matter.
        qi: The columns of a tuple.
    """
    here = table.select(*tuple_hashes(tuple_parts(table, qi))).distinct()
    there = known.select(*tuple_hashes(tuple_parts(known, qi))).distinct()
    strange = here.join(there, list(TUPLE), "left_anti").count()
    if strange:
        return Check("mapping", False, f"{strange:,} published tuples are none of the recoding's")
    return Check("mapping", True, "every published tuple is one that the recoding publishes")
