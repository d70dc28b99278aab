"""Codes that are longer than those of a file: `E11.9` stands under the file's `E11`, as one more level at the bottom.

The leaves are the values that the data holds, the levels above them are the file's. A value whose first characters the
file does not name is unknown: it is refused, or it is published as the root.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kanon_spark.config.hierarchy_specs import fix_unknown
from kanon_spark.config.models import FileSpec
from kanon_spark.errors import CoverageError, HierarchyError, InternalError
from kanon_spark.hierarchy.assemble import ROOT, Level, Skeleton, check_levels, number_runs, run_starts, stack
from kanon_spark.hierarchy.csv_file import HierarchyFile, read_hierarchy_file
from kanon_spark.hierarchy.taxonomy import taxonomy_of
from kanon_spark.hierarchy.tree import Domain


def stems_in_order(spec: FileSpec) -> list[str]:
    """The file's codes in the order in which values under them must be numbered, so that every node is a run."""
    return list(_ranks(_read(spec)))


def ranked(texts: tuple[str, ...], spec: FileSpec) -> list[int]:
    """The numbers of the texts in the order that a tree over them needs: by their code, then by themselves."""
    ranks = _ranks(_read(spec))
    unknown = len(ranks)
    return sorted(range(len(texts)), key=lambda i: (ranks.get(texts[i][: spec.stem], unknown), texts[i]))


def build_stems(spec: FileSpec, domain: Domain, *, where: str, max_level: int | None) -> Skeleton:
    """The file's levels over the values of the data, which must be numbered as `ranked` says, unknown ones last."""
    if domain.kind != "text":
        raise HierarchyError(
            f"the codes of this hierarchy are texts, the column is {domain.kind}",
            where=where,
            fix="cast the column to string",
        )
    file = _read(spec)
    check_levels(height=len(file.rows[0]), min_level=0, max_level=max_level, where=where)
    ranks = _ranks(file)
    rows = {row[0]: row for row in file.rows}
    stems = [text[: spec.stem] for text in domain.texts]
    unknown = np.array([stem not in ranks for stem in stems], dtype=np.bool_)
    if unknown.any() and spec.unknown == "error":
        raise CoverageError(
            f"the file misses {int(unknown.sum()):,} distinct values in {int(domain.counts[unknown].sum()):,} rows",
            where=where,
            fix=f"{fix_unknown(spec)} to publish them as * (`kanon check --show-values` lists them)",
        )
    place = np.array([ranks.get(stem, len(ranks)) for stem in stems], dtype=np.int64)
    if (np.diff(place) < 0).any():
        raise InternalError("the values are not numbered by their codes", where=where)
    outside = (ROOT,) * len(file.rows[0])
    levels = [_level([rows.get(stem, outside)[at:] for stem in stems], unknown) for at in range(len(file.rows[0]) - 1)]
    labels = [ROOT if lost else text for text, lost in zip(domain.texts, unknown.tolist(), strict=True)]
    whole = stack(labels, levels)
    return Skeleton(whole.labels, whole.levels, outside=unknown)


def _level(paths: list[tuple[str, ...]], unknown: NDArray[np.bool_]) -> Level:
    """One node for each run of equal paths to the root; what is unknown stays by itself."""
    numbers: dict[tuple[str, ...], int] = {}
    own = np.array([numbers.setdefault(path, len(numbers)) for path in paths], dtype=np.int64)
    group = number_runs(own, np.cumsum(unknown))
    return Level(group, [paths[start][0] for start in run_starts(group).tolist()])


def _read(spec: FileSpec) -> HierarchyFile:
    return read_hierarchy_file(Path(spec.path), separator=spec.separator)


def _ranks(file: HierarchyFile) -> dict[str, int]:
    codes = taxonomy_of(file, numeric=False).code_of_row
    return {file.rows[row][0]: rank for rank, row in enumerate(np.argsort(codes).tolist())}
