"""A small release made by hand: source, classes, recoding and released rows, all in plain Python.

Nothing of the engine is used, so that the verifier is tested against a second opinion. Four QIs: an interval hierarchy
over the data's values, a hierarchy file, a set and a range; nulls in three of them; two kept columns, both with nulls.
"""

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kanon_spark.config.models import CsvSpec, IntervalSpec, QiSpec
from kanon_spark.hierarchy.tree import Tree
from kanon_spark.io.content import content_hash, hash_sums
from kanon_spark.signatures.codebook import Codebook, QiColumn
from kanon_spark.verify.facts import Evidence, QiFacts

SEED = 3
QIS = ["age", "home town", "job", "pay.rate"]
KEPT = ["illness", "cost"]
TOWNS = {"Bern": "South", "Rome": "South", "Oslo": "North", "Riga": "North", "Turku": "North"}
JOBS = ["cook", "nurse, night", "smith", "{odd}"]
Row = dict[str, Any]


def two_levels(texts: Sequence[str | None], groups: Sequence[str | None], *, null: bool) -> Tree:
    """Leaves under the groups that stand beside each other, a root over all, losses by number of leaves."""
    names = list(dict.fromkeys(group for group in groups if group is not None))
    leaves = len(texts)
    inner = {name: leaves + place for place, name in enumerate(names)}
    root = leaves + len(names)
    levels = np.array(
        [range(leaves), [x if g is None else inner[g] for x, g in enumerate(groups)], [root] * leaves], dtype=np.int32
    )
    parent = np.full(root + 1, root, dtype=np.int32)
    parent[root] = -1
    lo, hi = np.zeros(root + 1, np.int32), np.full(root + 1, leaves, np.int32)
    loss = np.zeros(root + 1)
    for leaf, group in enumerate(groups):
        lo[leaf], hi[leaf] = leaf, leaf + 1
        if group is not None:
            parent[leaf] = inner[group]
    for name, node in inner.items():
        members = [leaf for leaf, group in enumerate(groups) if group == name]
        lo[node], hi[node] = members[0], members[-1] + 1
        loss[node] = 0 if len(members) == 1 else len(members) / (leaves - null)
    loss[root] = 1
    return Tree((*texts, *names, "*"), parent, lo, hi, loss, levels, null_leaf=leaves - 1 if null else -1)


@dataclass(frozen=True)
class World:
    """Everything that a run would have at hand when it verifies."""

    source: DataFrame  # the source's rows with h and g
    released: list[Row]
    schema: str
    evidence: Evidence
    codebook: Codebook
    pairs: DataFrame
    rows: int
    suppressed: int
    entries: list[Row]

    def table(self, rows: list[Row] | None = None) -> DataFrame:
        """The released table, or one that somebody tampered with."""
        return self.source.sparkSession.createDataFrame(self.released if rows is None else rows, self.schema)

    def arguments(self, **changes: Any) -> dict[str, Any]:
        """What `verify_release` is called with."""
        usual = {
            "k": 4,
            "evidence": self.evidence,
            "kept": KEPT,
            "suppressed_rows": "drop",
            "max_suppression": 0.2,
            "input_rows": self.rows,
        }
        return usual | changes

    def with_entries(self, entries: list[Row]) -> "World":
        """The same release with another recoding."""
        table = self.source.sparkSession.createDataFrame(entries, self.evidence.entries.schema)
        return replace(self, evidence=replace(self.evidence, entries=table), entries=entries)


def signature_hash(columns: Sequence[Any], seed: int) -> Any:
    """The signature hash, written out once more."""
    mask = F.lit(0)
    for index, column in enumerate(columns):
        mask = mask + F.when(column.isNull(), F.lit(1 << index)).otherwise(F.lit(0))
    return F.xxhash64(F.lit(seed), *columns, mask)


def published_set(values: set[str | None]) -> str | None:
    if None in values:
        return None if len(values) == 1 else "*"
    quoted = [
        '"' + value + '"' if any(mark in value for mark in ',{}"') else value for value in values if value is not None
    ]
    return next(iter(values)) if len(values) == 1 else "{" + ", ".join(sorted(quoted)) + "}"


def published_range(values: set[float | None]) -> str | None:
    if None in values:
        return None if len(values) == 1 else "*"
    known = [value for value in values if value is not None]
    return str(known[0]) if len(values) == 1 else f"[{min(known)}, {max(known)}]"


def make_world(
    spark: SparkSession, folder: Path, *, n: int = 160, seed: int = 0, star: bool = False, k: int = 4
) -> World:
    """Draw rows, form classes of at least k persons, suppress one class, recode, release."""
    draw = random.Random(seed)
    rows: list[Row] = [
        {
            "age": draw.choice([21, 25, 33, 37]),
            "home town": draw.choice([*TOWNS, None]),
            "job": draw.choice([*JOBS, "cook", "cook", None]),
            "pay.rate": draw.choice([1.5, 1.5, 1.5, 2.0, 10.25, None]),
            "illness": draw.choice(["flu", "cold", None, ""]),
            "cost": draw.choice([1.0, 2.5, None]),
            "pid": draw.choice([f"p{x}" for x in range(n)] + [None] * 10),
        }
        for _ in range(n)
    ]
    schema = "age int, `home town` string, job string, `pay.rate` double, illness string, cost double, pid string"
    source = spark.createDataFrame(rows, schema)
    source = source.withColumn("h", signature_hash([F.col(f"`{name}`") for name in QIS], SEED))
    source = source.withColumn("g", content_hash(source, KEPT)).cache()

    file = folder / "towns.csv"
    file.write_text("".join(f"{town};{side};*\n" for town, side in TOWNS.items()))
    ages = sorted({row["age"] for row in rows})
    trees = [
        two_levels(
            [str(age) for age in ages], [f"[{age // 10 * 10}, {age // 10 * 10 + 9}]" for age in ages], null=False
        ),
        two_levels([*TOWNS, None], [*TOWNS.values(), None], null=True),
        Tree.flat([*JOBS, None]),
        Tree.flat(["1.5", "2.0", "10.25", None]),
    ]
    texts = [tree.labels[: tree.leaves] for tree in trees]
    specs = [
        QiSpec(hierarchy=IntervalSpec(widths=(10,))),
        QiSpec(hierarchy=CsvSpec(path="towns.csv")),
        QiSpec(),
        QiSpec(),
    ]
    kinds = ["integer", "text", "text", "real"]
    publish = ["node", "node", "set", "range"]
    weights = [1.0, 2.0, 1.0, 0.5]
    codebook = Codebook(
        tuple(
            QiColumn(
                QIS[i], kinds[i], weights[i], trees[i], publish[i], texts[i], np.zeros(len(texts[i])), static=i == 1
            )  # type: ignore[arg-type]
            for i in range(4)
        )
    )
    layout, node_layout = codebook.layout, codebook.node_layout

    # Signatures, and classes of them in random order, closed as soon as they hold k persons.
    members: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        members[tuple(row[name] for name in QIS)].append(row)
    order = sorted(members, key=repr)
    draw.shuffle(order)
    classes: list[list[tuple[Any, ...]]] = [[]]
    for signature in order:
        classes[-1].append(signature)
        if persons_of([row for each in classes[-1] for row in members[each]]) >= k:
            classes.append([])
    rest = classes.pop()  # too few for a class of their own
    classes[-1] += rest

    sums = {
        tuple(row[name] for name in QIS): row
        for row in source.groupBy(*[f"`{name}`" for name in QIS])
        .agg(
            F.first("h").alias("h"), *[c.alias(a) for c, a in zip(hash_sums(F.col("g")), ("g_hi", "g_lo"), strict=True)]
        )
        .collect()
    }
    entries: list[Row] = []
    released: list[Row] = []
    suppressed = 0
    for class_id, signatures in enumerate(classes):
        gone = class_id == 1
        codes = np.array([[texts[i].index(None if s[i] is None else str(s[i])) for i in range(4)] for s in signatures])
        nodes = [trees[i].root if gone else climb(trees[i], codes[:, i]) for i in range(4)]
        labels = [
            trees[0].labels[nodes[0]],
            trees[1].labels[nodes[1]],
            published_set({s[2] for s in signatures}),
            published_range({s[3] for s in signatures}),
        ]
        if gone:
            labels = ["*"] * 4
        words = layout.pack(codes)
        out = node_layout.pack(np.array([[*nodes[:2], 0, 0]]))
        for place, signature in enumerate(signatures):
            entries.append(
                {f"key{i}": int(words[place, i]) for i in range(layout.words)}
                | {f"out{i}": int(out[0, i]) for i in range(node_layout.words)}
                | {name: int(sums[signature][name]) for name in ("h", "g_hi", "g_lo")}
                | {"rows": len(members[signature]), "persons": persons_of(members[signature])}
                | {"class_id": -1 if gone else class_id, "label_2": labels[2], "label_3": labels[3]}
                | {"loss_2": share(signatures, 2, 5, gone), "loss_3": share(signatures, 3, 4, gone), "bound": 0.125}
            )
            for row in members[signature]:
                suppressed += gone
                if not gone or star:
                    released.append(dict(zip(QIS, labels, strict=True)) | {name: row[name] for name in KEPT})
    names = {"class_id": "long", "label_2": "string", "label_3": "string", "loss_2": "double", "loss_3": "double"}
    longs = [*layout.names("key"), "h", "rows", "persons", "g_hi", "g_lo", *node_layout.names("out")]
    entry_schema = ", ".join([f"{x} long" for x in longs] + [f"{x} {t}" for x, t in names.items()] + ["bound double"])
    identity = ["int", "string", "string", "double"]
    facts = tuple(
        QiFacts(
            name=QIS[i],
            kind=kinds[i],
            spec=specs[i],
            csv_path=file if i == 1 else None,
            leaf_labels=texts[i],
            node_labels=trees[i].labels,
            publish=publish[i],  # type: ignore[arg-type]
            by_code=False,
            values=texts[i] if i == 1 else None,
            dictionary=None
            if i == 1
            else spark.createDataFrame(
                [(code, typed(text, identity[i])) for code, text in enumerate(texts[i]) if text is not None],
                f"code int, ident {identity[i]}",
            ),
            static=i == 1,
        )
        for i in range(4)
    )
    return World(
        source=source,
        released=released,
        schema="age string, `home town` string, job string, `pay.rate` string, illness string, cost double",
        evidence=Evidence(spark.createDataFrame(entries, entry_schema), layout, node_layout, facts, SEED),
        codebook=codebook,
        pairs=source.groupBy("h", F.col("pid").alias("unit")).agg(F.count(F.lit(1)).alias("rows")),
        rows=n,
        suppressed=suppressed,
        entries=entries,
    )


def persons_of(rows: list[Row]) -> int:
    return len({row["pid"] for row in rows} - {None}) + sum(row["pid"] is None for row in rows)


def climb(tree: Tree, codes: np.ndarray) -> int:
    return int(tree.lca(np.array([codes.min()], np.int32), np.array([codes.max()], np.int32))[0])


def share(signatures: list[tuple[Any, ...]], index: int, leaves: int, gone: bool) -> float:
    values = {signature[index] for signature in signatures}
    if gone or (None in values and len(values) > 1):
        return 1.0
    return 0.0 if len(values) == 1 else len(values) / leaves


def typed(text: str, kind: str) -> Any:
    return int(text) if kind == "int" else float(text) if kind == "double" else text
