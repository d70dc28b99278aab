"""The signatures of another table, each with what a saved recoding publishes for it.

A signature that the recoding knows publishes what it did there. Any other goes to the class of least loss that covers
it (`recoding/covering.py`), and stays open where none does. Known ones are found by a join of key words, the others by
numpy in the workers, which are sent the published tuples.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kanon_spark.config.models import Config
from kanon_spark.engine.stages import RunContext
from kanon_spark.recoding.classes import LOSS, Classes, published_cells
from kanon_spark.recoding.covering import Cover, cover_of
from kanon_spark.recoding.kept import Kept
from kanon_spark.recoding.publish import star_of
from kanon_spark.signatures.aggregate import Signatures
from kanon_spark.signatures.codebook import Codebook
from kanon_spark.signatures.layout import Layout

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SLICE = 1_000_000  # published tuples that the driver holds, and sends to the workers, at a time
_FOUND = "found"


@dataclass(frozen=True)
class Matched:
    """The entries of the other table.

    Attributes:
        entries: One per signature, in the form in which runs write them; `class_id` is 0, or -1 for those left open.
        known: Signatures that the recoding knew.
        covered: Others that one of its classes covers.
        open: The rest.
    """

    entries: "DataFrame"
    known: int
    covered: int
    open: int


def match(
    ctx: RunContext, signatures: Signatures, saved: "DataFrame", kept: Kept, config: Config, *, folder: str
) -> Matched:
    """Find what every signature publishes, and write it to `folder` (stage `match`)."""
    from pyspark.sql import functions as F

    with ctx.stage("match"):
        codebook = signatures.codebook
        keys = codebook.layout.names()
        released = saved.where(F.col("class_id") >= 0)
        known = _known(released, kept, codebook).withColumn(_FOUND, F.lit(1))
        looked_up = signatures.table.join(known, keys, "left")
        entries, counts = _counted(ctx, _entries(looked_up, codebook), f"{folder}_known")
        if counts.get(0):
            others = entries.where(F.col(_FOUND) == 0).select(*keys)
            covered = _covered(others, released, kept, codebook, config).withColumn(_FOUND, F.lit(2))
            again = signatures.table.join(others, keys, "left_semi").join(covered, keys, "left")
            whole = entries.where(F.col(_FOUND) == 1).unionByName(_entries(again, codebook))
            entries, counts = _counted(ctx, whole, folder)
        matched = Matched(entries.drop(_FOUND), counts.get(1, 0), counts.get(2, 0), counts.get(0, 0))
        ctx.note(f"{matched.known} known signatures, {matched.covered} covered, {matched.open} left open")
        return matched


def _counted(ctx: RunContext, entries: "DataFrame", path: str) -> "tuple[DataFrame, dict[int, int]]":
    """Entries written and read back, and how many were found in which way (0: not at all)."""
    entries.write.mode("overwrite").parquet(path)
    written = ctx.spark.read.schema(entries.schema).parquet(path)
    return written, {int(row[_FOUND]): int(row["count"]) for row in written.groupBy(_FOUND).count().collect()}


def _known(released: "DataFrame", kept: Kept, codebook: Codebook) -> "DataFrame":
    """Entries of the recoding whose values the table may hold, under the table's own key words."""
    maps = [mine.same_codes(column) for mine, column in zip(kept.columns, codebook.columns, strict=True)]
    old, new = kept.layout, codebook.layout
    names = list(codebook.numbers)

    def translate(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            codes = old.unpack(batch[old.names()].to_numpy(np.int64))
            here = np.stack([same[codes[:, index]] for index, same in enumerate(maps)], axis=1)
            there = (here >= 0).all(axis=1)
            cells: dict[str, object] = {}
            for index, (label, loss) in enumerate(published_cells(batch, kept)):
                cells |= {f"label_{index}": label[there], f"loss_{index}": loss[there]}
            cells |= {name: batch[name].to_numpy(np.float64)[there] for name in names}
            yield _frame(new, here[there], pd.DataFrame(cells), codebook)

    return released.mapInPandas(translate, _schema(codebook))


def saved_tuples(saved: "DataFrame", kept: Kept) -> "DataFrame":
    """What a recoding publishes, as a release shows it: the quasi-identifiers, then the numbers beside them."""
    from pyspark.sql import functions as F

    released = saved.where(F.col("class_id") >= 0).select(*_published_names(kept), *kept.numbers).distinct()
    count = len(kept.columns)

    def spell(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            cells = {f"label_{index}": label for index, (label, _) in enumerate(published_cells(batch, kept))}
            yield pd.DataFrame({**cells, **{name: batch[name] for name in kept.numbers}})

    labels = [f"label_{index} string" for index in range(count)]
    spelt = released.mapInPandas(spell, ", ".join([*labels, *[f"{name} double" for name in kept.numbers]]))
    shown = []
    for index, column in enumerate(kept.columns):
        label = F.col(f"label_{index}")
        shown.append((F.from_json(label, "array<string>") if column.form.members else label).alias(column.name))
    numbers = [F.nullif(F.col(name), F.lit(float("nan"))).alias(added) for name, added in kept.numbers.items()]
    return spelt.select(*shown, *numbers)


def _published_names(kept: Kept) -> list[str]:
    """Columns of a recoding's entries that say what is published: words of nodes, own labels and their losses."""
    own = [index for index, column in enumerate(kept.columns) if column.publish != "node"]
    return [*kept.node_layout.names("out"), *[f"{what}_{index}" for index in own for what in ("label", "loss")]]


def _covered(others: "DataFrame", released: "DataFrame", kept: Kept, codebook: Codebook, config: Config) -> "DataFrame":
    """Signatures that the recoding does not know, with the class of least loss that covers each."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    names = [*_published_names(kept), *codebook.numbers]
    tuples = released.select(*names).distinct()
    count = tuples.count()
    slices = max(1, -(-count // SLICE))
    found = []
    for number in range(slices):
        mine = F.pmod(F.xxhash64(*names), F.lit(slices)) == number
        part = tuples if slices == 1 else tuples.where(mine)
        classes = Classes.of(part.toPandas(), kept, numbers=list(codebook.numbers))  # about SLICE of them
        found.append(_by_classes(others, classes, kept, codebook, config))
    whole = reduce(lambda left, right: left.unionByName(right), found)
    if slices > 1:
        labels = [F.col(f"label_{index}") for index in range(len(codebook.columns))]
        order = Window.partitionBy(*codebook.layout.names()).orderBy(LOSS, *[each.asc_nulls_first() for each in labels])
        whole = whole.withColumn("place", F.row_number().over(order)).where(F.col("place") == 1).drop("place")
    return whole.drop(LOSS)


def covers_of(classes: Classes, kept: Kept, codebook: Codebook, config: Config) -> list[Cover]:
    """Coverage of the table's values by the labels of these classes."""
    specs = config.columns.quasi_identifiers
    return [
        cover_of(column, specs[column.name], texts, root=mine.labels[-1])
        for column, mine, texts in zip(codebook.columns, kept.columns, classes.texts, strict=True)
    ]


def _by_classes(others: "DataFrame", classes: Classes, kept: Kept, codebook: Codebook, config: Config) -> "DataFrame":
    covers = covers_of(classes, kept, codebook, config)
    layout = codebook.layout

    def find(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            codes = layout.unpack(batch[layout.names()].to_numpy(np.int64))
            numbers = classes.match(codes, covers)
            there = numbers >= 0
            yield _frame(layout, codes[there], classes.cells(numbers[there]), codebook, loss=True)

    return others.mapInPandas(find, f"{_schema(codebook)}, {LOSS} double")


def _names(codebook: Codebook) -> list[str]:
    cells = [f"{what}_{index}" for index in range(len(codebook.columns)) for what in ("label", "loss")]
    return [*cells, *codebook.numbers]


def _schema(codebook: Codebook) -> str:
    keys = [f"{name} bigint" for name in codebook.layout.names()]
    cells = [f"{name} {'string' if name.startswith('label_') else 'double'}" for name in _names(codebook)]
    return ", ".join([*keys, *cells])


def _frame(
    layout: Layout, codes: NDArray[np.int32], cells: pd.DataFrame, codebook: Codebook, *, loss: bool = False
) -> pd.DataFrame:
    """Key words and cells, in the order of the schema."""
    words = layout.pack(codes)
    keys = pd.DataFrame({name: words[:, index] for index, name in enumerate(layout.names())})
    return pd.concat([keys, cells[[*_names(codebook), *([LOSS] if loss else [])]]], axis=1)


def _entries(joined: "DataFrame", codebook: Codebook) -> "DataFrame":
    """Signatures with what was found for them, in the form of a recoding's entries; open ones are suppressed."""
    from pyspark.sql import functions as F

    there = F.col(_FOUND).isNotNull()

    def cell(name: str, otherwise: "Column") -> "Column":
        return F.when(there, F.col(name)).otherwise(otherwise).alias(name)

    cells = []
    for index, column in enumerate(codebook.columns):
        cells += [cell(f"label_{index}", F.lit(star_of(column))), cell(f"loss_{index}", F.lit(1.0))]
    cells += [cell(name, F.lit(None).cast("double")) for name in codebook.numbers]
    return joined.select(
        *[*codebook.layout.names(), "h", "rows", "persons", "g_hi", "g_lo"],
        F.when(there, F.lit(0)).otherwise(F.lit(-1)).cast("long").alias("class_id"),
        # Labels stand in the entries as texts: the words of nodes say nothing.
        *[F.lit(0).cast("long").alias(name) for name in codebook.node_layout.names("out")],
        *cells,
        F.lit(0.0).alias("bound"),
        F.coalesce(F.col(_FOUND), F.lit(0)).alias(_FOUND),
    )


def as_texts(codebook: Codebook) -> Codebook:
    """The codebook as the entries found here are to be read: every label stands in them as text."""
    return Codebook(
        tuple(replace(column, publish="set") if column.publish == "node" else column for column in codebook.columns)
    )
