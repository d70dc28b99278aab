"""Countries: the codes and names of ISO 3166-1 under the regions of the UN's M49 standard.

Both come from one table, the United Nations' list of countries and territories in the package hdx-python-country. What
has no ISO code is left out. Antarctica, which M49 puts into no region, stands for itself up to the root.
"""

import csv
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from hierarchies.make.packages import only

PACKAGE = "hdx-python-country==4.2.5"

_NAMES = ("Preferred Term", "English Short", "M49 English", "ISO Alt Term", "DGACM Alt Term", "HPC Tools Alt Term")
_SHORT_NAME = "RW Short Name"
# Everyday and former names that tables use and the list lacks.
_ALSO = {
    "BHS": ("The Bahamas",),
    "BRN": ("Brunei",),
    "CIV": ("Ivory Coast",),
    "COG": ("Republic of the Congo",),
    "FRO": ("Faeroe Islands",),
    "GBR": ("Great Britain",),
    "GMB": ("The Gambia",),
    "KOR": ("South Korea",),
    "LAO": ("Laos",),
    "MAC": ("Macau",),
    "MDA": ("Moldova",),
    "MKD": ("Macedonia",),
    "MMR": ("Burma",),
    "NLD": ("The Netherlands",),
    "PRK": ("North Korea",),
    "PSE": ("Palestine",),
    "SWZ": ("Swaziland",),
    "TLS": ("East Timor",),
    "TUR": ("Turkey",),
    "TWN": ("Taiwan",),
    "VAT": ("Vatican City", "Vatican"),
    "VIR": ("U.S. Virgin Islands",),
    "VNM": ("Vietnam",),
}


def by_alpha2(folder: Path) -> Iterator[tuple[str, ...]]:
    """Two-letter code, intermediate region, sub-region, region, root."""
    for row in _rows(folder):
        yield row["ISO 3166-1 Alpha 2-Codes"], *_regions(row), "*"


def by_alpha3(folder: Path) -> Iterator[tuple[str, ...]]:
    """Three-letter code, intermediate region, sub-region, region, root."""
    for row in _rows(folder):
        yield row["ISO 3166-1 Alpha 3-Codes"], *_regions(row), "*"


def by_name(folder: Path) -> Iterator[tuple[str, ...]]:
    """Each name of a country, the name that the UN prefers, intermediate region, sub-region, region, root."""
    rows = list(_rows(folder))
    owners: dict[str, set[str]] = {}
    for row in rows:
        for name in _names(row):
            owners.setdefault(name, set()).add(row["ISO 3166-1 Alpha 3-Codes"])
    for row in rows:
        for name in _names(row):
            if len(owners[name]) == 1:  # what two countries are called tells nothing
                yield name, row["Preferred Term"], *_regions(row), "*"


def _rows(folder: Path) -> Iterator[dict[str, str]]:
    path = only(folder.glob("hdx/location/*Taxonomy*.csv"))
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["ISO 3166-1 Alpha 3-Codes"]]
    yield from sorted(rows, key=lambda row: (*reversed(_regions(row)), row["ISO 3166-1 Alpha 3-Codes"]))


def _regions(row: dict[str, str]) -> tuple[str, str, str]:
    """From the narrowest to the widest; where a step is missing, the next one stands there as well."""
    region = row["Region Name"] or row["Preferred Term"]
    sub_region = row["Sub-region Name"] or region
    return row["Intermediate Region Name"] or sub_region, sub_region, region


def _names(row: dict[str, str]) -> list[str]:
    """All spellings, each once, the preferred one first."""
    given = [row[column] for column in _NAMES] + [row[_SHORT_NAME], *_ALSO.get(row["ISO 3166-1 Alpha 3-Codes"], ())]
    plain = [name.removesuffix(" (the)").strip() for name in given if name]
    return list(dict.fromkeys([*plain, *map(_on_any_keyboard, plain)]))


def _on_any_keyboard(name: str) -> str:
    parts = unicodedata.normalize("NFKD", name.replace("’", "'"))  # noqa: RUF001
    return "".join(part for part in parts if not unicodedata.combining(part))
