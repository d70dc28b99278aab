"""A table anonymized in this process, without Spark: the engine's own codebook, solver and published labels.

For experiments of many small cells, where starting a run for each would take hours. Nothing is verified, written or
bounded here; what counts in the end is measured by whole runs.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kanon_spark.config.loader import LoadedConfig, load_config
from kanon_spark.config.models import CsvSpec
from kanon_spark.engine.pieces import Solver
from kanon_spark.hierarchy.tree import Kind
from kanon_spark.kernels.problem import Forest
from kanon_spark.measure.attributes import domain_of
from kanon_spark.methods.registry import method_for
from kanon_spark.signatures.codebook import Codebook
from kanon_spark.signatures.forms import form_of
from kanon_spark.signatures.labels import label_name
from kanon_spark.signatures.qi_columns import built_column, load_file, reach, static_column

Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Prepared:
    """A table ready to be solved.

    Attributes:
        solver: What solves it.
        frame: Its signatures, in the order of their codes.
        signature_of: Signature of each row.
    """

    solver: Solver
    frame: pd.DataFrame
    signature_of: NDArray[np.int64]


@dataclass(frozen=True)
class Local:
    """What came out.

    Attributes:
        release: The rows with their published quasi-identifiers; suppressed rows are left out.
        gcp: Loss of what is published, label by label, as a run's manifest gives it.
        cpu_seconds: Of the method alone.
        signatures: Distinct tuples of quasi-identifiers.
        trace: What the method tells of its way.
    """

    release: pd.DataFrame
    gcp: float
    cpu_seconds: float
    signatures: int
    trace: tuple[Mapping[str, Any], ...]


def kind_of(column: "pd.Series[Any]") -> Kind:
    """What a pandas column holds."""
    if pd.api.types.is_integer_dtype(column):
        return "integer"
    return "real" if pd.api.types.is_float_dtype(column) else "text"


def config_of(
    qis: Mapping[str, object], *, k: int, method: Mapping[str, Any], max_suppression: float = 0.0, seed: int = 0
) -> LoadedConfig:
    """A configuration of the parts that matter here."""
    return load_config(
        {
            "columns": {"quasi_identifiers": dict(qis), "other": "keep"},
            "privacy": {"k": k, "max_suppression": max_suppression},
            "method": dict(method),
            "execution": {"seed": seed},
        }
    )


def prepare(table: pd.DataFrame, loaded: LoadedConfig) -> Prepared:
    """Encode a table: a codebook over its values, its signatures, and the solver that the configuration asks for."""
    config = loaded.config
    columns, codes = [], []
    for name, spec in config.columns.quasi_identifiers.items():
        kind = kind_of(table[name])
        # Each distinct value becomes text once.
        value_of_row, values = pd.factorize(table[name])
        texts = pd.Series(values).astype(str)
        form = form_of(spec, kind, config)
        if isinstance(spec.hierarchy, CsvSpec):
            static = load_file(spec, kind, qi=name, base_dir=loaded.base_dir)
            column = static_column(name, spec, kind, static, form)
            code_of = static.lookup
        else:
            seen = pd.Series(np.repeat(texts.to_numpy(), np.bincount(value_of_row)))
            domain = domain_of(seen, kind, by_count=spec.hierarchy is None)
            column = built_column(name, spec, domain, form)
            code_of = {str(text): code for code, text in enumerate(column.texts)}
        columns.append(column)
        codes.append(np.array([code_of[text] for text in texts], dtype=np.int32)[value_of_row])
    by_row = np.stack(codes, axis=1)
    present = [np.isin(np.arange(c.tree.leaves), by_row[:, i]) for i, c in enumerate(columns)]
    columns = [
        replace(column, tree=column.tree.with_span(reach(column, mask))) if column.static else column
        for column, mask in zip(columns, present, strict=True)
    ]
    codebook = Codebook(tuple(columns))
    label = config.method.label or config.method.target
    frame, signature_of, labels = _signatures(codebook, by_row, table[label] if label else None)
    forest = Forest.of([column.tree for column in columns], codebook.weights, present)
    seed = config.execution.seed
    solver = Solver(codebook, forest, method_for(config), config.privacy.k, len(frame), seed, labels)
    return Prepared(solver, frame, signature_of)


def _signatures(
    codebook: Codebook, by_row: Ints, label: "pd.Series[Any] | None"
) -> tuple[pd.DataFrame, NDArray[np.int64], int]:
    """Distinct tuples in the order of their codes, with rows (and rows per label), and the tuple of each row."""
    names = codebook.layout.names()
    words = pd.DataFrame(codebook.layout.pack(by_row), columns=names)
    grouped = words.groupby(names, sort=True)
    signature_of = grouped.ngroup().to_numpy(np.int64)
    frame = grouped.size().rename("rows").reset_index()
    frame["persons"] = frame["rows"]
    frame["h"] = np.arange(len(frame))
    frame["g_hi"] = frame["g_lo"] = 0
    if label is None:
        return frame, signature_of, 0
    number, values = pd.factorize(label, sort=True)
    for each in range(len(values)):
        frame[label_name(each)] = np.bincount(signature_of[number == each], minlength=len(frame))
    return frame, signature_of, len(values)


def anonymize(table: pd.DataFrame, loaded: LoadedConfig) -> Local:
    """Solve a table to the end and put what is published back into its rows."""
    prepared = prepare(table, loaded)
    solver = prepared.solver
    begin = time.thread_time()
    entries, trace = solver.solve_whole(prepared.frame)
    cpu_seconds = time.thread_time() - begin
    nodes = solver.codebook.node_layout.unpack(entries[solver.codebook.node_layout.names("out")].to_numpy(np.int64))
    released = (entries["class_id"] >= 0).to_numpy()
    rows = entries["rows"].to_numpy(np.int64)
    kept = released[prepared.signature_of]
    release = table.loc[kept].copy()
    lost = float(solver.suppressed * rows[~released].sum())
    for index, column in enumerate(solver.codebook.columns):
        if column.publish == "node":
            labels = np.array(column.tree.labels, dtype=object)[nodes[:, index]]
            losses = np.where(np.isfinite(column.tree.loss), column.tree.loss, 1.0)[nodes[:, index]]
        else:
            labels = entries[f"label_{index}"].to_numpy(object)
            losses = entries[f"loss_{index}"].to_numpy(np.float64)
        release[column.name] = labels[prepared.signature_of[kept]]
        lost += column.weight * float((losses * rows)[released].sum())
    gcp = lost / (solver.suppressed * float(rows.sum()))
    return Local(release, gcp, cpu_seconds, len(prepared.frame), trace)
