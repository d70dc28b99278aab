"""One QI of the configuration as an encoded column: which values its leaves are, and which tree stands over them."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kanon_spark.config.models import DateSpec, FileSpec, IntervalSpec, PrefixSpec, QiSpec
from kanon_spark.errors import InternalError
from kanon_spark.hierarchy.bounds import built_bounds, file_bounds
from kanon_spark.hierarchy.build import StaticHierarchy, build_tree, load_static
from kanon_spark.hierarchy.stems import stems_in_order
from kanon_spark.hierarchy.tree import ORDERED, Domain, Kind, Tree
from kanon_spark.signatures.codebook import Publish, QiColumn
from kanon_spark.signatures.columns import kind_of
from kanon_spark.signatures.forms import AS_LABELS, SUPPRESSED, Form
from kanon_spark.signatures.lookups import literal_array
from kanon_spark.signatures.representatives import representative

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType


def ident_of(value: "Column", spec: QiSpec, data_type: "DataType", *, qi: str) -> "tuple[Column, Kind]":
    """What values are told apart by, and its kind: the value, or with `min_level` its representative or its stem."""
    from pyspark.sql.types import DecimalType

    kind = kind_of(data_type, qi=qi)
    hierarchy = spec.hierarchy
    if spec.min_level and isinstance(hierarchy, IntervalSpec | PrefixSpec | DateSpec):
        decimal = isinstance(data_type, DecimalType)
        return representative(value, hierarchy, kind=kind, level=spec.min_level, decimal=decimal)
    if spec.min_level and isinstance(hierarchy, FileSpec) and hierarchy.stem is not None:
        return stem_of(value, hierarchy.stem), kind
    return value, kind


def stem_of(value: "Column", length: int) -> "Column":
    """The code of a hierarchy file that a longer one stands under."""
    from pyspark.sql import functions as F

    return F.substring(value, 1, length)


def rank_of(value: "Column", spec: QiSpec) -> "Column | None":
    """The order in which a hierarchy wants values numbered, unknown ones last; None where it is their own.

    It is found by a search through the file's codes, once for each distinct value.
    """
    from pyspark.sql import functions as F

    hierarchy = spec.hierarchy
    if spec.file is not None or not isinstance(hierarchy, FileSpec) or hierarchy.stem is None:
        return None
    codes = stems_in_order(hierarchy)
    found = F.array_position(literal_array(codes, "string"), stem_of(value, hierarchy.stem))
    return F.when(found > 0, found).otherwise(F.lit(len(codes) + 1)).cast("double")


def load_file(spec: QiSpec, kind: Kind, *, qi: str, base_dir: Path) -> StaticHierarchy:
    """A QI's hierarchy file."""
    if spec.file is None:
        raise InternalError("not a hierarchy file", where=qi)
    return load_static(
        spec.file,
        qi=qi,
        base_dir=base_dir,
        numeric=kind in {"integer", "real"},
        min_level=spec.min_level,
        max_level=spec.max_level,
    )


def static_column(name: str, spec: QiSpec, kind: Kind, hierarchy: StaticHierarchy, form: Form = AS_LABELS) -> QiColumn:
    """The encoded column of a QI with a hierarchy file."""
    unknown = spec.file is not None and spec.file.unknown == "root"
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
    tree = build_tree(hierarchy, domain, qi=name, min_level=spec.min_level, max_level=spec.max_level)
    texts = tree.labels[: tree.leaves]
    if not spec.min_level:  # a value that the hierarchy does not know has the root's label, and is still itself
        texts = (*domain.texts, *texts[len(domain.texts) :])
    own: Publish = "range" if domain.kind in ORDERED else "set"
    return QiColumn(
        name=name,
        kind=domain.kind,
        weight=spec.weight,
        tree=_with_mark(tree, form),
        publish="node" if hierarchy is not None else own,
        texts=texts,
        positions=np.append(domain.positions, [np.nan] * (tree.leaves - len(domain.texts))),
        static=False,
        form=form,
        bounds=built_bounds(tree) if hierarchy is not None and "lo" in form.numbers else None,
    )


def in_form(column: QiColumn, form: Form) -> QiColumn:
    """The column as another method publishes it; `column` must mark suppressed cells by `*`, or as `form` does."""
    return column if column.form == form else replace(column, form=form, tree=_with_mark(column.tree, form))


def _with_mark(tree: Tree, form: Form) -> Tree:
    """A tree whose root, whatever a file calls it, reads as a suppressed cell does, where that is not `*`."""
    if form.suppressed == SUPPRESSED:
        return tree
    labels = list(tree.labels)
    labels[tree.root] = form.suppressed
    for leaf in np.flatnonzero(tree.loss[: tree.leaves] == tree.loss[tree.root]).tolist():
        if labels[leaf] == SUPPRESSED:  # unknown, and published as the root is
            labels[leaf] = form.suppressed
    return replace(tree, labels=tuple(labels))


def reach(column: QiColumn, present: NDArray[np.bool_]) -> float:
    """Range of the present leaves; with `min_level` a leaf is an interval and reaches to its end."""
    low = column.positions
    high = low if column.tree.width is None else low + np.nan_to_num(column.tree.width[: column.tree.leaves])
    known = present & ~np.isnan(low)
    return float(high[known].max() - low[known].min()) if known.any() else 0.0
