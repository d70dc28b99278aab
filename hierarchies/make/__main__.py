"""Write the reference taxonomies, or compare what would be written with what is there."""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from hierarchies.make import ages, countries, diagnoses, occupations, us_states
from hierarchies.make.packages import unpack

Rows = Iterable[tuple[str, ...]]
FOLDER = Path(__file__).resolve().parents[1] / "reference"

# Files that are written down here, and those that are read from the data of a package.
FROM_FACTS: dict[str, Callable[[], Rows]] = {
    "ages": ages.by_year,
    "isco08": occupations.by_unit_group,
    "us_states_code": us_states.by_code,
    "us_states_name": us_states.by_name,
}
FROM_PACKAGES: dict[str, tuple[str, Callable[[Path], Rows]]] = {
    "countries_alpha2": (countries.PACKAGE, countries.by_alpha2),
    "countries_alpha3": (countries.PACKAGE, countries.by_alpha3),
    "countries_name": (countries.PACKAGE, countries.by_name),
    "icd10": (diagnoses.WHO_PACKAGE, diagnoses.by_who_category),
    "icd10_cm": (diagnoses.US_PACKAGE, diagnoses.by_us_category),
}


def text_of(rows: Rows) -> str:
    """The lines of a file. No label needs quotes, and none may: readers of other tools do not all know them."""
    lines = []
    for row in rows:
        if any(mark in label for label in row for mark in ';"\n'):
            raise ValueError(f"a label that would need quotes: {row}")
        lines.append(";".join(row) + "\n")
    return "".join(lines)


def made(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Name and text of each file."""
    wanted = list(names)
    packages = sorted({FROM_PACKAGES[name][0] for name in wanted if name in FROM_PACKAGES})
    with tempfile.TemporaryDirectory() as folder:
        if packages:
            unpack(packages, Path(folder))
        for name in wanted:
            rows = FROM_PACKAGES[name][1](Path(folder)) if name in FROM_PACKAGES else FROM_FACTS[name]()
            yield name, text_of(rows)


def main(arguments: list[str] | None = None) -> int:
    """Write or check the files; 1 where a check finds a difference."""
    known = [*FROM_FACTS, *FROM_PACKAGES]
    parser = argparse.ArgumentParser(prog="scripts/make_hierarchies", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a file differs")
    parser.add_argument("--no-downloads", action="store_true", help="only the files that need no package")
    parser.add_argument("names", nargs="*", help=f"the files to make: {', '.join(known)}; all if none is named")
    asked = parser.parse_args(arguments)
    unknown = [name for name in asked.names if name not in known]
    if unknown:
        parser.error(f"no such file: {', '.join(unknown)}")
    names = [name for name in asked.names or known if not (asked.no_downloads and name in FROM_PACKAGES)]
    different = 0
    for name, text in made(names):
        path = FOLDER / f"{name}.csv"
        same = path.is_file() and path.read_bytes() == text.encode()
        if not same and not asked.check:
            path.write_bytes(text.encode())
        different += not same
        state = "as it was" if same else "differs" if asked.check else "written"
        print(f"{path.name}: {text.count(chr(10)):,} values, {state}")
    return 1 if asked.check and different else 0


if __name__ == "__main__":
    sys.exit(main())
