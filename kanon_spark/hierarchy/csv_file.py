"""Hierarchy files in ARX's form: one line per value, `leaf;level1;…;*`.

Reading a file checks everything that can be wrong with it, and each error names file, line and rule. Fields may be
quoted, lines blank or ended by CR LF, and the file may start with a byte order mark: spreadsheets and ARX write such.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kanon_spark.errors import HierarchyError, MissingInputError
from kanon_spark.hierarchy.assemble import ROOT


@dataclass(frozen=True)
class HierarchyFile:
    """A checked file.

    Attributes:
        path: Where it was read.
        rows: One path per value, from the value to the root; all equally long, at least two labels each.
        lines: Line on which each row starts.
    """

    path: Path
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]

    def where(self, row: int) -> str:
        """`file:line` of a row."""
        return f"{self.path}:{self.lines[row]}"


def read_hierarchy_file(path: Path, *, separator: str = ";") -> HierarchyFile:
    """Read and check a hierarchy file.

    Raises:
        MissingInputError: There is no such file.
        HierarchyError: It breaks a rule; the message names file, line, rule and fix.
    """
    rows, lines = _records(path, separator)
    if not rows:
        raise HierarchyError(
            "the hierarchy file is empty",
            where=str(path),
            fix=f"write one line per value: leaf{separator}level1{separator}*",
        )
    _check_not_ragged(path, rows, lines, separator)
    if len(rows[0]) == 1:
        _check_not_another_separator(path, rows, lines, separator)
        rows = [(*row, ROOT) for row in rows]
    _check_labels(path, rows, lines)
    _check_leaves(path, rows, lines)
    _check_root(path, rows, lines, separator)
    return HierarchyFile(path=path, rows=tuple(rows), lines=tuple(lines))


def _records(path: Path, separator: str) -> tuple[list[tuple[str, ...]], list[int]]:
    rows: list[tuple[str, ...]] = []
    lines: list[int] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=separator, strict=True)
            start = 1
            try:
                for record in reader:
                    if record and any(field.strip() for field in record):
                        rows.append(tuple(record))
                        lines.append(start)
                    start = reader.line_num + 1
            except csv.Error as problem:
                raise HierarchyError(
                    f"the line is not valid CSV: {problem}",
                    where=f"{path}:{start}",
                    fix='close every quote; a quote inside a quoted field is written twice ("")',
                ) from None
            except UnicodeDecodeError:
                raise HierarchyError(
                    "the hierarchy file is not UTF-8 text", where=str(path), fix="save the file as UTF-8"
                ) from None
    except FileNotFoundError:
        raise MissingInputError(
            "the hierarchy file does not exist",
            where=str(path),
            fix="check the path; relative paths are relative to the config file",
        ) from None
    except (IsADirectoryError, PermissionError) as problem:
        raise MissingInputError(
            f"the hierarchy file cannot be read: {problem.strerror}", where=str(path), fix="name a readable file"
        ) from None
    return rows, lines


def _check_not_ragged(path: Path, rows: Sequence[tuple[str, ...]], lines: Sequence[int], separator: str) -> None:
    width = len(rows[0])
    for row, line in zip(rows, lines, strict=True):
        if len(row) != width:
            raise HierarchyError(
                f"ragged rows: this line has {len(row)} labels, line {lines[0]} has {width}",
                where=f"{path}:{line}",
                fix=f"give every line {width} labels separated by '{separator}', repeating one if a level is missing",
            )


def _check_not_another_separator(path: Path, rows: Sequence[tuple[str, ...]], lines: Sequence[int], used: str) -> None:
    """One column whose lines all end alike behind a comma or tab was written with that separator."""
    for other, name in ((",", ","), (";", ";"), ("\t", "\\t"), ("|", "|")):
        endings = {row[0].rpartition(other)[2] if other in row[0] else None for row in rows}
        if other != used and len(endings) == 1 and None not in endings:
            raise HierarchyError(
                f"every line is one label, but seems to be separated by '{name}' instead of '{used}'",
                where=f"{path}:{lines[0]}",
                fix=f'set the separator: {{csv: {{path: …, separator: "{name}"}}}}',
            )


def _check_labels(path: Path, rows: Sequence[tuple[str, ...]], lines: Sequence[int]) -> None:
    for row, line in zip(rows, lines, strict=True):
        if "" in row[1:]:
            raise HierarchyError(
                f"empty label at level {row.index('', 1)}",
                where=f"{path}:{line}",
                fix="give every level a label; a separator at the end of the line starts one more level",
            )


def _check_leaves(path: Path, rows: Sequence[tuple[str, ...]], lines: Sequence[int]) -> None:
    first: dict[str, int] = {}
    for row, line in zip(rows, lines, strict=True):
        if row[0] in first:
            raise HierarchyError(
                f"duplicate leaves: the value of this line already stands on line {first[row[0]]}",
                where=f"{path}:{line}",
                fix="remove one of the two lines",
            )
        first[row[0]] = line


def _check_root(path: Path, rows: Sequence[tuple[str, ...]], lines: Sequence[int], separator: str) -> None:
    root = rows[0][-1]
    for row, line in zip(rows, lines, strict=True):
        if row[-1] != root:
            raise HierarchyError(
                f"no single root: the last label is '{row[-1]}' here and '{root}' on line {lines[0]}",
                where=f"{path}:{line}",
                fix=f"add a last column '{ROOT}' to every line ({separator}{ROOT})",
            )
