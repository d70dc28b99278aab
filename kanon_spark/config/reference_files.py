"""The reference taxonomies by name: what each is, and where its file stands.

They are files in `hierarchies/reference` of the repository, and travel in the wheel. `hierarchies/README.md` says where
each comes from; `kanon_spark.hierarchy.reference` reads them.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class ReferenceEntry:
    """One reference taxonomy.

    Attributes:
        name: Its name in configurations, and that of its file.
        title: What its values are, in a few words.
        kind: What columns it is for: text, or numbers.
        words: Words that the names of such columns are made of.
        stem: Where it is set, the file's values are codes of so many characters, and longer codes stand under them as
            one more level at the bottom: `E11.9` under `E11`.
        keep: Where it is set, there is no file: the taxonomy is the prefix hierarchy that keeps these characters.
    """

    name: str
    title: str
    kind: Literal["text", "number"]
    words: tuple[str, ...]
    stem: int | None = None
    keep: tuple[int, ...] | None = None


_COUNTRY_WORDS = ("country", "countries", "nation", "nationality", "citizenship")
_DIAGNOSIS_WORDS = ("icd", "icd10", "diagnosis", "diagnoses", "diag", "dx", "disease", "cause")
_STATE_WORDS = ("state", "states", "province")
_ZIP_WORDS = ("zip", "zipcode", "zip5", "postcode", "postal")

REFERENCES: dict[str, ReferenceEntry] = {
    entry.name: entry
    for entry in (
        ReferenceEntry("ages", "ages in years, 0 to 120", "number", ("age", "ages")),
        ReferenceEntry("countries_alpha2", "countries by ISO 3166 two-letter code", "text", _COUNTRY_WORDS),
        ReferenceEntry("countries_alpha3", "countries by ISO 3166 three-letter code", "text", _COUNTRY_WORDS),
        ReferenceEntry("countries_name", "countries by English name", "text", _COUNTRY_WORDS),
        ReferenceEntry("icd10", "diagnoses by ICD-10 code (WHO)", "text", _DIAGNOSIS_WORDS, stem=3),
        ReferenceEntry("icd10_cm", "diagnoses by ICD-10-CM code (United States)", "text", _DIAGNOSIS_WORDS, stem=3),
        ReferenceEntry("isco08", "occupations by ISCO-08 code", "text", ("isco", "isco08", "occupation", "job")),
        ReferenceEntry("us_states_code", "US states by two-letter code", "text", _STATE_WORDS),
        ReferenceEntry("us_states_name", "US states by name", "text", _STATE_WORDS),
        ReferenceEntry("us_zip", "US zip codes of five digits", "text", _ZIP_WORDS, keep=(3, 1)),
    )
}


def reference_file(name: str) -> Path:
    """The file of a reference taxonomy, in a checkout or in the installed package.

    >>> reference_file("ages").name
    'ages.csv'
    """
    package = Path(__file__).resolve().parents[1]
    packaged, checkout = package / "hierarchy" / "reference_files", package.parent / "hierarchies" / "reference"
    return (packaged if packaged.is_dir() else checkout) / f"{name}.csv"
