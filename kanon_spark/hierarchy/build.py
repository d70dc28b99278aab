"""Hierarchies as configured, built: from a file (`load_static`) or over the data's own values (`build_tree`)."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kanon_spark.config.models import DateSpec, FileSpec, FlatSpec, HierarchySpec, IntervalSpec, PrefixSpec
from kanon_spark.errors import HierarchyError, InternalError
from kanon_spark.hierarchy.assemble import Skeleton, check_levels, grow, stack
from kanon_spark.hierarchy.csv_file import read_hierarchy_file
from kanon_spark.hierarchy.dates import build_dates
from kanon_spark.hierarchy.interval import build_intervals
from kanon_spark.hierarchy.prefix import build_prefixes
from kanon_spark.hierarchy.search import build_search_tree
from kanon_spark.hierarchy.stems import build_stems
from kanon_spark.hierarchy.taxonomy import taxonomy_of
from kanon_spark.hierarchy.tree import Domain, Floats, Tree


@dataclass(frozen=True)
class StaticHierarchy:
    """A hierarchy file, ready to encode with.

    Attributes:
        tree: Its tree, the null leaf always included.
        texts: Text of each leaf: the file's value, or with `min_level` the label of that level; `*` for the unknown
            leaf, None for the null leaf.
        lookup: Leaf code of each value in the file.
        positions: Number of each leaf (with `min_level` the least under it); NaN where there is none.
    """

    tree: Tree
    texts: tuple[str | None, ...]
    lookup: dict[str, int]
    positions: Floats


def load_static(
    spec: FileSpec,
    *,
    qi: str,
    base_dir: Path,
    numeric: bool,
    min_level: int = 0,
    max_level: int | None = None,
) -> StaticHierarchy:
    """Load a hierarchy file, whose lines are the leaves.

    Where longer codes stand under the file's (`spec.stem`), the file's values are level 1, and are asked for as such:
    level 0 are the data's own values, for which `build_tree` is there.

    Args:
        spec: Path, separator and what happens to values that the file misses.
        qi: Column name, for messages.
        base_dir: Folder that relative paths start from.
        numeric: The column is numeric: losses are interval widths, not counts of values.
        min_level: Level from which on values are published.
        max_level: Level up to which values are published; None for all.

    Raises:
        MissingInputError: There is no such file.
        HierarchyError: The file breaks a rule, or the levels are not there.
    """
    file = read_hierarchy_file(base_dir / Path(spec.path).expanduser(), separator=spec.separator)
    below = 0 if spec.stem is None else 1  # levels under the file's own
    check_levels(height=len(file.rows[0]) - 1 + below, min_level=min_level, max_level=max_level, where=_where(qi))
    if min_level < below:
        raise InternalError("the leaves of this hierarchy are the values of the data", where=_where(qi))
    taxonomy = taxonomy_of(file, numeric=numeric, min_level=min_level - below)
    tree = grow(
        taxonomy.skeleton,
        span=taxonomy.span,
        null=True,
        unknown=spec.unknown == "root",
        max_level=None if max_level is None else max_level - min_level,
    )
    extra = tree.leaves - taxonomy.skeleton.leaves
    return StaticHierarchy(
        tree=tree,
        texts=tree.labels[: tree.leaves],
        lookup={row[0]: code for row, code in zip(file.rows, taxonomy.code_of_row.tolist(), strict=True)},
        positions=np.concatenate([taxonomy.positions, np.full(extra, np.nan)]),
    )


def build_tree(
    spec: HierarchySpec | None,
    domain: Domain,
    *,
    qi: str,
    min_level: int = 0,
    max_level: int | None = None,
) -> Tree:
    """Build a hierarchy over the values that the data holds; leaf code i is entry i of the domain.

    Without a specification the result is a search tree, which is never published.

    >>> domain = Domain("text", ("1011", "1012", "2011"), np.full(3, np.nan), np.ones(3, dtype=np.int64))
    >>> tree = build_tree(PrefixSpec(keep=[3]), domain, qi="zip")
    >>> [tree.labels[node] for node in tree.levels[1]]
    ['101*', '101*', '201*']
    """
    where = _where(qi)
    skeleton, span = _skeleton(spec, domain, where=where, min_level=min_level, max_level=max_level)
    return grow(
        skeleton, span=span, null=domain.has_null, max_level=None if max_level is None else max_level - min_level
    )


def _skeleton(
    spec: HierarchySpec | None,
    domain: Domain,
    *,
    where: str,
    min_level: int,
    max_level: int | None,
) -> tuple[Skeleton, float]:
    if spec is None:
        if min_level or max_level is not None:
            raise HierarchyError(
                "min_level and max_level need a hierarchy: ranges and sets have no levels",
                where=where,
                fix="give the column a hierarchy, or remove the levels",
            )
        return build_search_tree(domain), domain.span
    if isinstance(spec, FileSpec):
        if spec.stem is None or min_level:
            raise InternalError("the leaves of this hierarchy are the lines of a file", where=where)
        return build_stems(spec, domain, where=where, max_level=max_level), 0.0
    height = 1 + _levels(spec)
    check_levels(height=height, min_level=min_level, max_level=max_level, where=where)
    match spec:
        case IntervalSpec():
            return build_intervals(spec, domain, where=where, min_level=min_level)
        case DateSpec():
            return build_dates(spec, domain, where=where, min_level=min_level)
        case PrefixSpec():
            return build_prefixes(spec, domain, where=where, min_level=min_level), 0.0
        case FlatSpec():
            return stack(domain.texts, ()), 0.0


def _levels(spec: IntervalSpec | PrefixSpec | DateSpec | FlatSpec) -> int:
    """Levels between the values and the root."""
    match spec:
        case IntervalSpec():
            return len(spec.widths)
        case DateSpec():
            return len(spec.levels)
        case PrefixSpec():
            return len(spec.keep)
        case FlatSpec():
            return 0


def _where(qi: str) -> str:
    return f"columns.quasi_identifiers.{qi}"
