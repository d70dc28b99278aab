"""Keyed pseudonyms in place of identifiers.

The pseudonym of an id is HMAC-SHA256 of its bytes, the first 16 bytes of it as 32 hexadecimal digits. Its key is made
from the configured one, the column's name and the run: the same value in two columns, or in two runs unless the
pseudonym is stable, has nothing to do with itself, and what travels to the workers opens no other release.

Ids do not repeat (a run refuses that), so that distinct ids are as many as rows: they are hashed where the rows are,
one column through Arrow, and neither a second copy of the raw ids nor a join with one is needed. The key is part of the
function that the workers are sent. It is no literal, so that no plan, log or event shows it.
"""

import hmac
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import pandas as pd

from kanon_spark.errors import InternalError
from kanon_spark.signatures.ids import id_bytes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kanon_spark.config.pseudonyms import PseudonymSpec

PURPOSE = "kanon_spark pseudonym 1"
PSEUDONYM_BYTES = 16  # two of a billion ids share so many bytes with a chance of 10^-21


def pseudonym_key(key: bytes, *, column: str, salt: str) -> bytes:
    """The key for one column of one run (of all runs, where the salt is empty)."""
    return hmac.digest(key, "\0".join((PURPOSE, column, salt)).encode("utf-8"), "sha256")


def pseudonym(key: bytes, value: bytes) -> str:
    """The pseudonym of one id under a key from `pseudonym_key`.

    >>> pseudonym(pseudonym_key(b"sixteen bytes or", column="ssn", salt=""), b"078-05-1120")
    'c7c998e0ad4895b296447351620f5999'
    """
    return hmac.digest(key, value, "sha256")[:PSEUDONYM_BYTES].hex()


def pseudonymize(table: "DataFrame", specs: "Mapping[str, PseudonymSpec]", *, run_id: str) -> "DataFrame":
    """The table with a pseudonym in place of each named column; null stays null."""
    from pyspark.sql.pandas.functions import pandas_udf

    changed = {}
    for name, spec in specs.items():
        if spec.key_bytes is None:
            raise InternalError("a pseudonym was asked for without its key", where=f"columns.identifiers.{name}")
        key = pseudonym_key(spec.key_bytes, column=name, salt=spec.salt(run_id))
        make = pandas_udf(_maker(key), "string")  # type: ignore[call-overload]
        changed[name] = make(id_bytes(table, name))
    return table.withColumns(changed) if changed else table


def _maker(key: bytes) -> Callable[[pd.Series], pd.Series]:
    def kanon_pseudonym(ids: pd.Series) -> pd.Series:
        return pd.Series([None if each is None else pseudonym(key, each) for each in ids], dtype=object)

    return kanon_pseudonym
