"""The mapping value → label of a full-domain recoding, as one CSV file per quasi-identifier.

A pair is listed only where at least k persons of the release carry the value under that label: anything rarer would
point at somebody. Persons are counted as everywhere, each on one of his rows only, so that a value may be left out that
just reaches k, and none is listed that does not. `datafly` and `incognito` give each value one label; `prgain` releases
groups at several levels and may give it several.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from kanon_spark.errors import RequestError, TargetError
from kanon_spark.recoding.classes import published_cells
from kanon_spark.recoding.kept import Kept

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kanon_spark.recoding.saved import Recoding

FULL_DOMAIN = ("prgain", "datafly", "incognito")
_HEAD = "value,label"


def export_mapping(recoding: "Recoding", folder: Path) -> list[Path]:
    """Write the files and say which.

    Raises:
        RequestError: The method chose no levels of whole columns.
        TargetError: The folder holds such files already, or cannot be written.
    """
    kept = recoding.kept
    if kept.method not in FULL_DOMAIN:
        raise RequestError(
            f"the method {kept.method} publishes a value in many ways, by the class it is in: there is no mapping of "
            "values to export",
            where="recoding",
            fix=f"run the job with one of {', '.join(FULL_DOMAIN)}, or use `kanon apply`",
        )
    names = {index: folder / f"{_safe(column.name, index)}.csv" for index, column in enumerate(kept.columns)}
    there = [path.name for path in names.values() if path.exists()]
    if there:
        raise TargetError(f"holds {', '.join(there)} already", where=str(folder), fix="name another folder")
    tables = mapping_tables(recoding)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for index, path in names.items():
            path.write_text(csv_text(tables[index]), encoding="utf-8")
    except OSError as error:
        raise TargetError(
            f"the mapping cannot be written ({error.strerror or type(error).__name__})",
            where=str(folder),
            fix="name another folder",
        ) from None
    return list(names.values())


def mapping_tables(recoding: "Recoding") -> list[pd.DataFrame]:
    """Per quasi-identifier: value and label of each pair that at least k persons carry, in the order of the values."""
    from pyspark.sql import functions as F

    kept = recoding.kept
    k = kept.asked.privacy.k
    released = recoding.entries.where(F.col("class_id") >= 0)

    def pairs(batches: "Iterable[pd.DataFrame]") -> "Iterator[pd.DataFrame]":
        for batch in batches:
            yield pair_persons(batch, kept)

    counted = released.mapInPandas(pairs, "qi int, code int, label string, persons bigint")
    many = counted.groupBy("qi", "code", "label").agg(F.sum("persons").alias("persons")).where(F.col("persons") >= k)
    found = many.toPandas()  # at most a few labels for each value, and the values of a column fit the driver
    tables = []
    for index, column in enumerate(kept.columns):
        own = found[found["qi"] == index].sort_values(["code", "label"], na_position="first")
        values = [column.texts[code] for code in own["code"]]
        labels = own["label"].astype(object).where(own["label"].notna(), None)
        tables.append(pd.DataFrame({"value": values, "label": labels.tolist()}, dtype=object))
    return tables


def pair_persons(entries: pd.DataFrame, kept: Kept) -> pd.DataFrame:
    """Persons of each (value, label) in each quasi-identifier, in some entries."""
    codes = kept.layout.unpack(entries[kept.layout.names()].to_numpy(np.int64))
    persons = entries["persons"].to_numpy(np.int64)
    parts = [
        pd.DataFrame({"qi": np.int32(index), "code": codes[:, index], "label": label, "persons": persons})
        for index, (label, _) in enumerate(published_cells(entries, kept))
    ]
    return pd.concat(parts).groupby(["qi", "code", "label"], dropna=False)["persons"].sum().reset_index()


def csv_text(table: pd.DataFrame) -> str:
    r"""A table as CSV; texts are quoted, null is an empty field without quotes.

    >>> csv_text(pd.DataFrame({"value": ["a", None], "label": ["*", None]}))
    'value,label\n"a","*"\n,\n'
    """
    lines = [",".join(map(_field, row)) for row in table.itertuples(index=False)]
    return "\n".join([_HEAD, *lines]) + "\n"


def _field(text: object) -> str:
    return "" if text is None or text != text else '"' + str(text).replace('"', '""') + '"'


def _safe(name: str, index: int) -> str:
    """A column's name as a file's name.

    >>> _safe("age", 0), _safe("a/b", 3)
    ('age', 'column_3')
    """
    plain = name.isprintable() and not set(name) & set('/\\:*?"<>|') and not name.startswith(".")
    return name if plain and name.strip() == name else f"column_{index}"
