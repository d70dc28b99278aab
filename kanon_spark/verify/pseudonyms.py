"""Pseudonyms of a written table: well-formed, none twice, and each the keyed hash of the id of its own row.

The ids are read from the source once more and hashed with code of its own. Both sides, the written rows and the
source's rows with the tuple that their entry publishes, are then compared as multisets of (tuple, kept columns,
pseudonym), so that two pseudonyms which changed places are found too. Where the key is not at hand only the presence of
a pseudonym can be compared.
"""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd

from kanon_spark.io.content import content_hash, hash_sums, null_masks
from kanon_spark.verify.facts import Check
from kanon_spark.verify.groups import (
    TUPLE,
    differing_tuples,
    quoted,
    summarize,
    tuple_columns,
    tuple_hashes,
    tuple_parts,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

FORM = r"\A[0-9a-f]{32}\z"  # `$` would let a line break pass


@dataclass(frozen=True)
class Pseudonym:
    """One column that is published as a pseudonym.

    Attributes:
        name: The column.
        salt: The run id; empty where the pseudonym is stable.
        key: The configured key; None where it is not at hand.
    """

    name: str
    salt: str
    key: bytes | None = field(repr=False)


@dataclass(frozen=True)
class PseudonymFacts:
    """What the pseudonyms of a release must be.

    Attributes:
        columns: The columns.
        rows: Every row of the source: its signature hash `h`, the content hash `g` of its kept columns, and `id<i>`,
            the bytes of its ids, in the order of the columns.
    """

    columns: tuple[Pseudonym, ...]
    rows: "DataFrame"


def pseudonym_check(
    table: "DataFrame",
    facts: PseudonymFacts,
    published: "DataFrame",
    *,
    qi: Sequence[str],
    kept: Sequence[str],
    star: bool,
) -> Check:
    """The check `pseudonyms` of a written table; `published` are the recoding's entries with their tuples."""
    from pyspark.sql import functions as F

    names = [f"p{index}" for index in range(len(facts.columns))]
    texts = [F.col(quoted(each.name)).cast("string") for each in facts.columns]
    written = table.select(
        *tuple_hashes(tuple_parts(table, qi)),
        content_hash(table, kept).alias("g"),
        *[text.alias(name) for text, name in zip(texts, names, strict=True)],
    )
    claimed = published if star else published.where("class_id >= 0")
    tuples = claimed.select(F.col("h").alias("entry_h"), *tuple_hashes(tuple_parts(claimed, tuple_columns(len(qi)))))
    expected = [_expected(each, index) for index, each in enumerate(facts.columns)]
    promised = facts.rows.join(tuples, F.col("h") == F.col("entry_h")).select(
        *TUPLE, "g", *[value.alias(name) for value, name in zip(expected, names, strict=True)]
    )
    details, good = _shapes(written, facts)
    known = [each.key is not None for each in facts.columns]
    left, right = _grouped(written, names, known), _grouped(promised, names, known)
    found, wanted = (summarize(each, width=len(qi), k=1) for each in (left, right))
    if (found.fingerprint, found.rows) != (wanted.fingerprint, wanted.rows):
        good = False
        details.append(f"rows of {max(1, differing_tuples(left, right)):,} published tuples have others than their own")
    elif good:
        details += _proved(facts)
    return Check("pseudonyms", good, "; ".join(details))


def _shapes(written: "DataFrame", facts: PseudonymFacts) -> tuple[list[str], bool]:
    """Per column: how many pseudonyms there are, how many are distinct, and how many are none."""
    from pyspark.sql import functions as F

    details, good = [], True
    for index, each in enumerate(facts.columns):
        text = F.col(f"p{index}")
        counts = written.agg(F.count(text), F.count_distinct(text), F.count_if(~text.rlike(FORM))).collect()[0]
        there, distinct, malformed = (int(count) for count in counts)
        wrong = [f"{there - distinct:,} repeat"] if distinct < there else []
        wrong += [f"{malformed:,} are not 32 hexadecimal digits"] if malformed else []
        good = good and not wrong
        details.append(f"{each.name}: {there:,} pseudonyms, {', '.join(wrong) or 'no two alike'}")
    return details, good


def _proved(facts: PseudonymFacts) -> list[str]:
    """What the comparison of both sides has shown."""
    open_ = [each.name for each in facts.columns if each.key is None]
    if not open_:
        return ["each is the keyed hash of its row's id"]
    return [
        "every row with an id has one",
        f"whether they are the keyed hashes of their rows' ids was not checked for {', '.join(open_)}: "
        "the key is not set",
    ]


def _grouped(rows: "DataFrame", names: Sequence[str], known: Sequence[bool]) -> "DataFrame":
    """Rows with their tuple, `g` and pseudonyms as the groups that `summarize` and `differing_tuples` compare."""
    from pyspark.sql import functions as F

    values = [F.col(name) for name in names]
    # Without the key only its presence is compared, which the null flags below tell.
    parts = [value if compared else F.lit(0) for value, compared in zip(values, known, strict=True)]
    hashed = F.xxhash64("g", *parts, *null_masks(values))
    g_hi, g_lo = hash_sums(F.col("hashed"))
    counted = F.count(F.lit(1)).alias("rows")
    return (
        rows.select(*TUPLE, hashed.alias("hashed")).groupBy(*TUPLE).agg(counted, g_hi.alias("g_hi"), g_lo.alias("g_lo"))
    )


def _expected(column: Pseudonym, index: int) -> "Column":
    """What `id<i>` must be published as; the id's bytes themselves where the key is not at hand (only null or not)."""
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.functions import pandas_udf

    ids = F.col(f"id{index}")
    if column.key is None:
        return ids
    purpose = f"kanon_spark pseudonym 1\0{column.name}\0{column.salt}".encode()
    key = hmac.new(column.key, purpose, hashlib.sha256).digest()

    def kanon_pseudonym_again(ids: pd.Series) -> pd.Series:
        start = hmac.new(key, digestmod=hashlib.sha256)
        return pd.Series([_finish(start, each) for each in ids], dtype=object)

    make: Any = pandas_udf(kanon_pseudonym_again, "string")  # type: ignore[call-overload]
    made: Column = make(ids)
    return made


def _finish(start: "hmac.HMAC", value: bytes | None) -> str | None:
    if value is None:
        return None
    whole = start.copy()
    whole.update(value)
    return whole.hexdigest()[:32]
