"""One QI of the configuration as an encoded column: which values its leaves are, and which tree stands over them."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kanon_spark.config.models import CsvSpec, DateSpec, IntervalSpec, PrefixSpec, QiSpec
from kanon_spark.errors import InternalError
from kanon_spark.hierarchy.bounds import built_bounds, file_bounds
from kanon_spark.hierarchy.build import StaticHierarchy, build_tree, load_static
from kanon_spark.hierarchy.tree import ORDERED, Domain, Kind, Tree
from kanon_spark.signatures.codebook import Publish, QiColumn
from kanon_spark.signatures.columns import kind_of
from kanon_spark.signatures.forms import AS_LABELS, SUPPRESSED, Form
from kanon_spark.signatures.representatives import representative

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType


def ident_of(value: "Column", spec: QiSpec, data_type: "DataType", *, qi: str) -> "tuple[Column, Kind]":
    """What a built hierarchy tells values apart by, and its kind: the value, or its representative with `min_level`."""
    from pyspark.sql.types import DecimalType

    kind = kind_of(data_type, qi=qi)
    hierarchy = spec.hierarchy
    if spec.min_level and isinstance(hierarchy, IntervalSpec | PrefixSpec | DateSpec):
        decimal = isinstance(data_type, DecimalType)
        return representative(value, hierarchy, kind=kind, level=spec.min_level, decimal=decimal)
    return value, kind


def load_file(spec: QiSpec, kind: Kind, *, qi: str, base_dir: Path) -> StaticHierarchy:
    """A QI's hierarchy file."""
    if not isinstance(spec.hierarchy, CsvSpec):
        raise InternalError("not a hierarchy file", where=qi)
    return load_static(
        spec.hierarchy,
        qi=qi,
        base_dir=base_dir,
        numeric=kind in {"integer", "real"},
        min_level=spec.min_level,
        max_level=spec.max_level,
    )


def static_column(name: str, spec: QiSpec, kind: Kind, hierarchy: StaticHierarchy, form: Form = AS_LABELS) -> QiColumn:
    """The encoded column of a QI with a hierarchy file."""
    unknown = isinstance(spec.hierarchy, CsvSpec) and spec.hierarchy.unknown == "root"
    return QiColumn(
        name=name,
        kind=kind,
        weight=spec.weight,
        tree=_with_mark(hierarchy.tree, form),
        publish="node",
        texts=hierarchy.texts,
        positions=hierarchy.positions,
        static=True,
        by_code=spec.min_level > 0 or unknown,
        form=form,
        bounds=file_bounds(hierarchy.tree, hierarchy.lookup) if "lo" in form.numbers else None,
    )


def built_column(name: str, spec: QiSpec, domain: Domain, form: Form = AS_LABELS) -> QiColumn:
    """The encoded column of a QI whose leaves are the data's own values."""
    hierarchy = spec.hierarchy
    if isinstance(hierarchy, CsvSpec):
        raise InternalError("a hierarchy file has no domain", where=name)
    tree = build_tree(hierarchy, domain, qi=name, min_level=spec.min_level, max_level=spec.max_level)
    own: Publish = "range" if domain.kind in ORDERED else "set"
    return QiColumn(
        name=name,
        kind=domain.kind,
        weight=spec.weight,
        tree=_with_mark(tree, form),
        publish="node" if hierarchy is not None else own,
        texts=tree.labels[: tree.leaves],
        positions=np.append(domain.positions, [np.nan] * (tree.leaves - len(domain.texts))),
        static=False,
        form=form,
        bounds=built_bounds(tree) if hierarchy is not None and "lo" in form.numbers else None,
    )


def _with_mark(tree: Tree, form: Form) -> Tree:
    """A tree whose root, whatever a file calls it, reads as a suppressed cell does, where that is not `*`."""
    if form.suppressed == SUPPRESSED:
        return tree
    labels = list(tree.labels)
    labels[tree.root] = form.suppressed
    if tree.unknown_leaf >= 0:
        labels[tree.unknown_leaf] = form.suppressed
    return replace(tree, labels=tuple(labels))


def reach(column: QiColumn, present: NDArray[np.bool_]) -> float:
    """Range of the present leaves; with `min_level` a leaf is an interval and reaches to its end."""
    low = column.positions
    high = low if column.tree.width is None else low + np.nan_to_num(column.tree.width[: column.tree.leaves])
    known = present & ~np.isnan(low)
    return float(high[known].max() - low[known].min()) if known.any() else 0.0
