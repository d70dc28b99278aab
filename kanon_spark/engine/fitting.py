"""Who of a population fits what classes publish, for k-map.

The population is coded like the table. A value that the table's hierarchies and dictionaries do not hold has no code:
it fits `*` alone. A person who stands in several tuples of the population counts in one of them. So a range that the
verifier, who looks at labels and counts distinct persons, finds to fit more of them may count fewer here, never more.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kanon_spark.errors import RequestError
from kanon_spark.privacy.k_map import Cover, fitting_persons
from kanon_spark.signatures.codebook import Codebook
from kanon_spark.signatures.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kanon_spark.signatures.encoding import Encoding

POPULATION_LIMIT = 2_000_000  # distinct tuples of the population: every task that judges classes holds them
_BIN = 200_000  # signatures whose classes one task judges


def population_judge(
    encoding: "Encoding", population: "DataFrame", *, k: int, unit: str | None
) -> "Callable[[DataFrame], NDArray[np.int64]]":
    """From entries to the ids of the classes that fit fewer than k persons of the population."""
    codes, persons = _coded(encoding, population, unit)
    codebook = encoding.codebook

    def judge(entries: "DataFrame") -> NDArray[np.int64]:
        from pyspark.sql import functions as F

        released = entries.where(F.col("class_id") >= 0)
        bins = 1 + released.count() // _BIN
        names = [*codebook.layout.names(), *codebook.node_layout.names("out")]

        def judge_bin(frame: pd.DataFrame) -> pd.DataFrame:
            ids, labels, cover = published_covers(frame, codebook)
            few = fitting_persons(labels, cover, codes, persons, stop=k) < k
            return pd.DataFrame({"class_id": ids[few]})

        binned = released.select("class_id", *names).withColumn("bin", F.pmod(F.xxhash64("class_id"), F.lit(bins)))
        found = binned.groupBy("bin").applyInPandas(judge_bin, "class_id long").toPandas()
        return found["class_id"].to_numpy(np.int64)

    return judge


def published_covers(frame: pd.DataFrame, codebook: Codebook) -> tuple[NDArray[np.int64], NDArray[np.int32], Cover]:
    """The classes of a frame of entries, their labels as numbers, and what each label covers of its column's codes."""
    ids, class_of = np.unique(frame["class_id"].to_numpy(np.int64), return_inverse=True)
    codes = codebook.layout.unpack(frame[codebook.layout.names()].to_numpy(np.int64))
    nodes = codebook.node_layout.unpack(frame[codebook.node_layout.names("out")].to_numpy(np.int64))
    labels = np.empty((len(ids), len(codebook.columns)), np.int32)
    low: list[NDArray[np.int32]] = []
    high: list[NDArray[np.int32]] = []
    for j, column in enumerate(codebook.columns):
        tree = column.tree
        own = np.zeros(len(ids), np.int32)
        own[class_of] = nodes[:, j]  # equal for all of a class
        least = np.full(len(ids), tree.leaves, np.int32)
        most = np.full(len(ids), -1, np.int32)
        np.minimum.at(least, class_of, codes[:, j])
        np.maximum.at(most, class_of, codes[:, j])
        labels[:, j] = len(low) + np.arange(len(ids))
        null = tree.null_leaf
        for c in range(len(ids)):
            if own[c] == tree.root and (column.publish == "node" or least[c] == null or most[c] == null):
                stretch = np.array([0]), np.array([tree.leaves + 1])  # `*` covers also what has no code
            elif column.publish == "node":
                stretch = tree.lo[own[c] : own[c] + 1], tree.hi[own[c] : own[c] + 1]
            elif column.publish == "range":
                stretch = np.array([least[c]]), np.array([most[c] + 1])
            else:
                held = np.unique(codes[class_of == c, j])
                stretch = held, held + 1
            low.append(stretch[0].astype(np.int32))
            high.append(stretch[1].astype(np.int32))
    start = np.concatenate([[0], np.cumsum([len(each) for each in low])]).astype(np.int64)
    return ids, labels, Cover(start, np.concatenate(low), np.concatenate(high))


def _coded(
    encoding: "Encoding", population: "DataFrame", unit: str | None
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Distinct tuples of the population as codes, and the persons of each."""
    from pyspark.sql import functions as F

    same_types = [
        F.expr(f"try_cast({quoted(name)} AS {kind.simpleString()})").alias(name)
        for name, kind in zip(encoding.names, encoding.types, strict=True)
    ]
    counted = unit is not None and unit in population.columns
    person = [F.col(quoted(unit)).alias("_kanon_unit")] if unit is not None and counted else []
    people = population.select(*same_types, *person)
    tokens = encoding.row_tokens(people, prefix="")
    carried = ["_kanon_unit"] if counted else []
    coded = people.select(*[column.alias(name) for name, column in tokens.items()], *carried)
    coded = encoding.with_codes(coded, prefix="")
    names = [f"c{index}" for index in range(len(encoding.names))]
    if counted:
        known, nobody = coded.where(F.col("_kanon_unit").isNotNull()), coded.where(F.col("_kanon_unit").isNull())
        one = known.groupBy("_kanon_unit").agg(F.min(F.struct(*names)).alias("one")).select("one.*")
        coded = one.unionByName(nobody.select(*names))
    found = coded.groupBy(*names).agg(F.count(F.lit(1)).alias("persons")).limit(POPULATION_LIMIT + 1).toPandas()
    if len(found) > POPULATION_LIMIT:
        raise RequestError(
            f"the population has more than {POPULATION_LIMIT:,} distinct tuples of quasi-identifiers",
            where="privacy.k_map",
            fix="set min_level on the finest columns, or give a population with rounded values",
        )
    codes = np.ascontiguousarray(found[names].to_numpy(np.int32))
    return codes, found["persons"].to_numpy(np.int64)
