"""The verifier and the encoder, written apart, mean the same: hashes, values, and every label of every level."""

import datetime
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kanon_spark.config.loader import load_config
from kanon_spark.engine.evidence import make_evidence
from kanon_spark.engine.stages import RunContext
from kanon_spark.signatures.aggregate import aggregate
from kanon_spark.signatures.encoding import prepare_encoding
from kanon_spark.verify.cells import untrue_cells
from kanon_spark.verify.facts import Evidence
from kanon_spark.verify.identities import count_entries
from kanon_spark.verify.published import with_published

DAY = datetime.date(2024, 1, 31)
SCHEMA = (
    "age int, score float, rate double, zip string, code string, day date, seen timestamp, town string, region string, "
    "job string, flag boolean, pay double, size decimal(6,2)"
)
QIS = {
    "age": {"hierarchy": {"interval": {"widths": [5, 10], "bottom": 20, "top": 60}}, "min_level": 1},
    "score": {"hierarchy": {"interval": {"widths": [0.1, 0.5]}}},
    "rate": {"hierarchy": {"interval": {"widths": [0.1, 0.5]}}, "min_level": 1},
    "zip": {"hierarchy": {"prefix": {"keep": [3, 1]}}},
    "code": {"hierarchy": {"prefix": {"keep": [3, 1]}}, "min_level": 1},
    "day": {"hierarchy": {"date": {"levels": ["month", "quarter", "year", "decade"]}}, "min_level": 1},
    "seen": {"hierarchy": {"date": {"levels": ["day", "month", "year"]}}},
    "town": {"hierarchy": {"csv": {"path": "towns.csv", "unknown": "root"}}},
    "region": {"hierarchy": {"csv": {"path": "towns.csv"}}, "min_level": 1},
    "job": {},
    "flag": {"hierarchy": "flat"},
    "pay": {},
    "size": {"hierarchy": {"csv": {"path": "sizes.csv"}}},
}


def rows() -> list[tuple[object, ...]]:
    """Forty rows that stand on interval ends, month ends, nulls, NaN, unknown and short values."""
    towns = ["Bern", "Oslo", "Riga", "Paris", None]
    out: list[tuple[object, ...]] = []
    for n in range(40):
        day = DAY + datetime.timedelta(days=29 * n)
        out.append(
            (
                [15, 20, 24, 25, 59, 60, 99, None][n % 8],
                [0.1, 0.2, 0.25, 0.5, 1.0, None, float("nan"), -0.0][n % 8],
                [0.3, 0.6, 0.7, 0.1, 1.1, None, 0.29999999999999999, 1e7][n % 8],
                ["53715", "53710", "53", "9", "", None][n % 6],
                ["53715", "53710", "53", "9", "12345678", None][n % 6],
                None if n == 7 else day,
                None if n == 9 else datetime.datetime(day.year, day.month, day.day, 23, 59, 59, 500_000 * (n % 2)),
                towns[n % 5],
                [*towns[:3], None][n % 4],
                ["cook", "smith, black", '{"odd"}', None][n % 4],
                [True, False, None][n % 3],
                [1.5, 2e10, None, float("nan"), 0.0, -0.0][n % 6],
                None if n % 7 == 0 else Decimal(1 + n % 2),
            )
        )
    return out


@pytest.fixture(scope="module")
def evidence(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """A recoding in which every signature is published by itself, at a level that differs from QI to QI."""
    folder = tmp_path_factory.mktemp("encoding")
    (folder / "towns.csv").write_text("Bern;South;*\nOslo;North;*\nRiga;North;*\n")
    (folder / "sizes.csv").write_text("1;small;*\n2.0;large;*\n")
    loaded = load_config({"version": 1, "columns": {"quasi_identifiers": QIS}, "privacy": {"k": 2}})
    source = spark.createDataFrame(rows(), SCHEMA)
    ctx = RunContext(spark)
    encoding = prepare_encoding(ctx, source, loaded.config, base_dir=folder, folder=str(folder / "dictionaries"))
    signatures = aggregate(ctx, source, encoding, unit=None, kept=[], path=str(folder / "signatures"))
    encoding = signatures.encoding
    table = signatures.table.toArrow()
    layout, node_layout = encoding.codebook.layout, encoding.codebook.node_layout
    codes = layout.unpack(np.column_stack([table[name].to_numpy() for name in layout.names()]))
    nodes = np.zeros_like(codes)
    labels: dict[str, pa.Array] = {}
    for index, column in enumerate(encoding.codebook.columns):
        own = codes[:, index]
        if column.publish == "node":
            levels = (np.arange(len(own)) + index) % (column.tree.height + 1)
            nodes[:, index] = column.tree.levels[levels, own]
        else:
            labels[f"label_{index}"] = pa.array([column.texts[code] for code in own.tolist()], pa.string())
    out = node_layout.pack(nodes)
    for place, name in enumerate(node_layout.names("out")):
        table = table.append_column(name, pa.array(out[:, place]))
    for name, texts in labels.items():
        table = table.append_column(name, texts)
    table = table.append_column("class_id", pa.array(np.arange(table.num_rows)))
    entries = spark.createDataFrame(table)
    return make_evidence(source, encoding, entries, loaded.config, base_dir=Path(folder))


def test_every_label_of_every_level_is_true(evidence: Evidence) -> None:
    assert untrue_cells(evidence, with_published(evidence), entries=40) == {}


def test_every_entry_decodes_to_its_row(evidence: Evidence) -> None:
    counted = count_entries(evidence)
    assert (counted.wrong, counted.rows) == (0, 40)


def test_labels_of_the_wrong_leaf_are_not_true(evidence: Evidence) -> None:
    """The same entries with the labels of each tree moved on by one: the test above can fail."""
    moved = tuple(
        replace(qi, node_labels=qi.node_labels[1:] + qi.node_labels[:1]) if qi.publish == "node" else qi
        for qi in evidence.qis
    )
    shifted = replace(evidence, qis=moved)
    untrue = untrue_cells(shifted, with_published(shifted), entries=40)
    assert set(untrue) == {qi.name for qi in evidence.qis if qi.publish == "node"}
