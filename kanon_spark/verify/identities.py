"""The codes of an entry decode to the row it is joined to: proved by hashing the decoded values again."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kanon_spark.verify.facts import Evidence
from kanon_spark.verify.published import fits_a_plan, ident_table, literal_texts

if TYPE_CHECKING:
    from pyspark.sql import Column


@dataclass(frozen=True)
class Counted:
    """Entries of the recoding, the rows they stand for, and entries whose `h` is not the hash of their codes."""

    entries: int
    rows: int
    suppressed: int
    wrong: int


def count_entries(evidence: Evidence) -> Counted:
    """Count entries and rows, and recompute every entry's `h` from what its leaf codes stand for, in one pass.

    A code that no dictionary knows decodes to null, and only a null in the source's row gives the same hash.
    """
    from pyspark.sql import functions as F

    frame = evidence.entries.select("h", "rows", "class_id", *evidence.layout.names("key"))
    idents: list[Column] = []
    for index, qi in enumerate(evidence.qis):
        code = evidence.layout.unpack_column(index)
        if qi.by_code:
            idents.append(code)
            continue
        if qi.values is not None and fits_a_plan(qi.values):
            text = F.get(literal_texts(qi.values), code)
            idents.append(text if qi.value_type == "string" else text.try_cast(qi.value_type))
            continue
        values = ident_table(frame, qi).toDF(f"code{index}", f"ident{index}")
        frame = frame.join(F.broadcast(values), code == F.col(f"code{index}"), "left")
        idents.append(F.col(f"ident{index}"))
    mask = F.lit(0)
    for index, ident in enumerate(idents):
        mask = mask + F.when(ident.isNull(), F.lit(1 << index)).otherwise(F.lit(0))
    expected = F.xxhash64(F.lit(evidence.seed), *idents, mask)
    found = frame.agg(
        F.count(F.lit(1)),
        F.sum("rows"),
        F.sum(F.when(F.col("class_id") < 0, F.col("rows")).otherwise(F.lit(0))),
        F.count(F.when(~expected.eqNullSafe(F.col("h")), 1)),
    ).collect()[0]
    return Counted(*(int(part or 0) for part in found))
