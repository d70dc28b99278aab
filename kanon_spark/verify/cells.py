"""The truth of every published cell, and the proof that the codes it rests on are the rows' own.

Three links lead from a row to what is published of it, and each is checked by itself:
1. the row's hash `h` belongs to the entry whose codes decode to the row's values (`identities.py`);
2. where values are generalized from the start, each value lies in the leaf that stands for it (`early`);
3. what is published covers the leaf.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING

from kanon_spark.errors import InternalError
from kanon_spark.verify.facts import Evidence, QiFacts
from kanon_spark.verify.groups import tuple_columns
from kanon_spark.verify.means import MeanJudge
from kanon_spark.verify.pairs import node_pairs
from kanon_spark.verify.published import label_table, leaf_texts
from kanon_spark.verify.truth import Judge, Text, judge_for

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

TEXT_PAIRS = 200_000  # texts (ranges, sets, raw values) that the driver judges itself


def untrue_cells(evidence: Evidence, published: "DataFrame", *, entries: int) -> dict[str, int]:
    """Per QI with any: how many distinct (value, published) pairs are false.

    Args:
        evidence: The recoding.
        published: Its entries with their published tuple (`with_published`).
        entries: How many they are; decides where the work is done.
    """
    known = _known_pairs(evidence, published, entries=entries)
    values = _leaf_values(evidence, list(known))
    untrue: dict[str, int] = {}
    for index, qi in enumerate(evidence.qis):
        judge = judge_of(qi)
        if index in known:
            cells = ((values[index](leaf), label) for leaf, label in known[index])
            wrong = judge.untrue(cells, generalized=qi.derived)
        else:
            wrong = _untrue_in_workers(_pair_table(evidence, published, index), judge, generalized=qi.derived)
        if qi.derived:
            wrong += _untrue_early(qi, judge)
        if wrong:
            untrue[qi.name] = wrong
    return untrue


def judge_of(qi: QiFacts) -> Judge:
    """Who decides about the labels of a quasi-identifier."""
    form = qi.form
    if form.mean:
        return MeanJudge(form.suppressed)
    return judge_for(qi.spec, kind=qi.kind, csv_path=qi.csv_path, members=form.members, suppressed=form.suppressed)


def _known_pairs(evidence: Evidence, published: "DataFrame", *, entries: int) -> dict[int, list[tuple[int, Text]]]:
    """Distinct (leaf, published) of each QI; those that are too many for the driver are missing."""
    known: dict[int, list[tuple[int, Text]]] = _text_pairs(evidence, published) or {}
    for index, (leaves, nodes) in (node_pairs(evidence, entries=entries) or {}).items():
        labels = evidence.qis[index].node_labels
        known[index] = [(leaf, labels[node]) for leaf, node in zip(leaves.tolist(), nodes.tolist(), strict=True)]
    return known


def _leaf_values(evidence: Evidence, indexes: Sequence[int]) -> "list[Callable[[int], Text]]":
    """For each QI, leaf code to the text to judge; in one job for those in `indexes` that are read from a dictionary.

    Bounded by the domains, which the run itself held on the driver. A code without a value is null: its hash was
    recomputed as null, so that no value can hide behind it.
    """
    from pyspark.sql import functions as F

    values: list[dict[int, Text]] = []
    for qi in evidence.qis:
        # A hierarchy file spells these kinds as Spark prints them; reals and times go through Spark to be sure.
        spelt = qi.values if qi.kind in {"text", "integer", "date", "boolean"} else None
        values.append(dict(enumerate(qi.leaf_labels if qi.derived else spelt or ())))
    plain = [index for index in indexes if not values[index]]
    if plain:
        tables = [
            leaf_texts(evidence.entries, evidence.qis[index]).select(F.lit(index).alias("qi"), "code", "text")
            for index in plain
        ]
        found = reduce(lambda left, right: left.unionAll(right), tables).toArrow()
        for index, code, text in zip(*(found[name].to_pylist() for name in ("qi", "code", "text")), strict=True):
            values[index][code] = text
    return [known.get for known in values]


def _text_pairs(evidence: Evidence, published: "DataFrame") -> dict[int, list[tuple[int, Text]]] | None:
    """Distinct (leaf, published text) of the range and set QIs, in one pass; None if there are too many to collect."""
    from pyspark.sql import functions as F

    indexes = [index for index, qi in enumerate(evidence.qis) if qi.publish != "node"]
    if not indexes:
        return {}
    cells = [
        F.struct(
            F.lit(index).alias("qi"),
            evidence.layout.unpack_column(index).alias("leaf"),
            F.col(f"label_{index}").alias("label"),
        )
        for index in indexes
    ]
    pairs = published.where("class_id >= 0").select(F.inline(F.array(*cells))).distinct()
    found = pairs.limit(TEXT_PAIRS + 1).toArrow()
    if found.num_rows > TEXT_PAIRS:
        return None
    grouped: dict[int, list[tuple[int, Text]]] = {index: [] for index in indexes}
    for row in found.to_pylist():
        grouped[row["qi"]].append((row["leaf"], row["label"]))
    return grouped


def _pair_table(evidence: Evidence, published: "DataFrame", index: int) -> "DataFrame":
    """Distinct (value, label) of one QI as a table."""
    from pyspark.sql import functions as F

    own = evidence.qis[index].publish != "node"  # its label stands in the entries as text
    name = f"label_{index}" if own else tuple_columns(len(evidence.qis))[index]
    pairs = published.where("class_id >= 0").select(
        evidence.layout.unpack_column(index).alias("leaf"), F.col(name).alias("label")
    )
    texts = F.broadcast(leaf_texts(evidence.entries, evidence.qis[index]))
    return (
        pairs.distinct()
        .join(texts, F.col("leaf") == F.col("code"), "left")
        .select(F.col("text").alias("value"), "label")
    )


def _untrue_early(qi: QiFacts, judge: Judge) -> int:
    """Raw values that do not lie in the leaf they were generalized to."""
    from pyspark.sql import functions as F

    if qi.early is None:
        raise InternalError("the values behind a generalized leaf were not given to the verifier", where=qi.name)
    early = qi.early.toDF("value", "code")
    few = early.limit(TEXT_PAIRS + 1).toArrow()
    if few.num_rows <= TEXT_PAIRS:
        labels = dict(enumerate(qi.leaf_labels))
        pairs = zip(few["value"].to_pylist(), few["code"].to_pylist(), strict=True)
        return judge.untrue(((value, labels.get(code)) for value, code in pairs), generalized=False)
    table = F.broadcast(label_table(early, qi.leaf_labels, code="leaf", text="label"))
    joined = early.join(table, F.col("code") == F.col("leaf"), "left")
    return _untrue_in_workers(joined.select("value", "label"), judge, generalized=False)


def _untrue_in_workers(pairs: "DataFrame", judge: Judge, *, generalized: bool) -> int:
    """The same judgement where the pairs are too many for the driver."""
    from pyspark.sql import functions as F

    counts = pairs.mapInArrow(partial(_judge_batches, judge=judge, generalized=generalized), "untrue long")
    return int(counts.agg(F.coalesce(F.sum("untrue"), F.lit(0))).collect()[0][0])


def _judge_batches(
    batches: "Iterable[pa.RecordBatch]", *, judge: Judge, generalized: bool
) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    for batch in batches:
        pairs = zip(batch.column("value").to_pylist(), batch.column("label").to_pylist(), strict=True)
        yield pa.record_batch([pa.array([judge.untrue(pairs, generalized=generalized)], pa.int64())], ["untrue"])
