"""What a reader of a release knows of one column: its values, where they lie, and what each hierarchy label covers.

Nothing here looks at how a release was made. A reader has the table, the hierarchies (they are published knowledge) and
the values of the column, which he learns from any table of the same kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from kanon_spark.config.models import FileSpec, QiSpec
from kanon_spark.hierarchy.build import build_tree, load_static
from kanon_spark.hierarchy.stems import ranked
from kanon_spark.hierarchy.tree import ORDERED, Domain, Floats, Ints, Kind, Tree


@dataclass(frozen=True)
class Attribute:
    """One column that classifiers learn from.

    Attributes:
        name: Column name.
        kind: What its values are.
        values: Its values, as texts.
        positions: Where each value lies on its axis (see `Domain.positions`); NaN for text.
        covers: For each label of its hierarchy above the values, the numbers of the values under it.
    """

    name: str
    kind: Kind
    values: tuple[str, ...]
    positions: Floats
    covers: Mapping[str, Ints] = field(default_factory=dict)

    @property
    def ordered(self) -> bool:
        """True for numbers, dates and timestamps, which classifiers see as one number."""
        return self.kind in ORDERED


def attribute_of(
    name: str, texts: "pd.Series[str]", kind: Kind, spec: QiSpec | None = None, *, base_dir: Path | None = None
) -> Attribute:
    """The column as a reader knows it.

    Args:
        name: Column name.
        texts: Values as Spark prints them, null where there is none; those of a hierarchy file come from the file.
        kind: What they are.
        spec: The quasi-identifier as it is configured; None for any other column.
        base_dir: Folder that relative paths of hierarchy files start from.
    """
    hierarchy = spec.hierarchy if spec is not None else None
    if isinstance(hierarchy, FileSpec) and hierarchy.stem is None:
        numeric = kind in {"integer", "real"}
        static = load_static(hierarchy, qi=name, base_dir=base_dir or Path(), numeric=numeric)
        values = dict(sorted((code, text) for text, code in static.lookup.items()))
        covers = _covers(static.tree, len(values))
        return Attribute(name, kind, tuple(values.values()), static.positions[: len(values)], covers)
    domain = domain_of(texts, kind, by_count=hierarchy is None)
    if isinstance(hierarchy, FileSpec):
        order = ranked(domain.texts, hierarchy)
        domain = replace(domain, texts=tuple(domain.texts[i] for i in order), counts=domain.counts[order])
    covers = {} if hierarchy is None else _covers(build_tree(hierarchy, domain, qi=name), len(domain.texts))
    return Attribute(name, kind, domain.texts, domain.positions, covers)


def _covers(tree: Tree, values: int) -> dict[str, Ints]:
    """Values under each inner label; a label may stand on several nodes, and a reader sees the label alone."""
    found: dict[str, list[Ints]] = {}
    for node in range(tree.leaves, tree.nodes):
        under = np.arange(tree.lo[node], min(int(tree.hi[node]), values), dtype=np.int32)
        found.setdefault(str(tree.labels[node]), []).append(under)
    return {label: np.unique(np.concatenate(parts)) for label, parts in found.items()}


def domain_of(texts: "pd.Series[str]", kind: Kind, *, by_count: bool = True) -> Domain:
    """The distinct values of a column of texts, numbered as the engine numbers them.

    Ordered values in their order; others by falling frequency and then by text, or (where a hierarchy is built over
    them, `by_count` false) by text alone.

    >>> domain_of(pd.Series(["b", "a", "b", None]), "text").texts
    ('b', 'a')
    """
    counts = texts.value_counts()
    found = [str(text) for text in counts.index]
    positions = np.array([position_of(text, kind) for text in found], dtype=np.float64)
    often = np.asarray(counts, dtype=np.int64)
    rank = positions if kind in ORDERED else -often if by_count else np.zeros(len(found))
    order = sorted(range(len(found)), key=lambda i: (rank[i], found[i]))
    return Domain(
        kind=kind,
        texts=tuple(found[i] for i in order),
        positions=positions[order],
        counts=often[order],
        has_null=bool(texts.isna().any()),
    )


def position_of(text: str, kind: Kind) -> float:
    """Where a value lies on its axis, from its text; NaN where it has no place there.

    >>> position_of("7.5", "real"), position_of("1970-01-03", "date"), position_of("x", "text")
    (7.5, 2.0, nan)
    """
    try:
        match kind:
            case "integer" | "real":
                return float(text)
            case "date":
                return float(np.datetime64(text, "D").astype(np.int64))
            case "timestamp":
                return float(np.datetime64(text.replace(" ", "T"), "us").astype(np.int64)) / 1e6
    except ValueError:
        return float("nan")
    return float("nan")
