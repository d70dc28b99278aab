"""Which reference taxonomy fits a column. A fit covers every value that the table holds."""

from kanon_spark.explore.suggest.profile import ColumnProfile
from kanon_spark.explore.suggest.words import Name, Sense, tokens
from kanon_spark.hierarchy.reference import Reference, references

_FEW = 5  # with fewer values a fit may be chance, and the name must agree
_DIAGNOSES = "icd10"
# What a column may be about, by its name, so that its values alone speak for a taxonomy; None: its name says nothing.
_ABOUT: dict[str, frozenset[str | None]] = {
    "countries": frozenset({None, "a country or nationality", "a birth", "a place", "an origin"}),
    "us_states": frozenset({None, "a region", "a birth", "a place"}),
    "isco08": frozenset({"an occupation"}),
    "ages": frozenset({"an age"}),
}


def fitting_reference(column: ColumnProfile, name: Name) -> Reference | None:
    """The taxonomy that knows every value of a column, one whose words its name has before others."""
    if not column.counts:
        return None
    kind = {"text": "text", "integer": "number"}.get(column.kind or "")
    sense = name.of("quasi") or name.of("sensitive")
    found: list[tuple[bool, int, Reference]] = []
    for reference in references():
        # A reference without values is a rule for any text of a form: prefixes do the same and are finer.
        if reference.kind != kind or not reference.values:
            continue
        named = _is_named(reference, column.name)
        if (named or _may_be(reference, sense, len(column.counts))) and reference.coverage(column.counts) == 1.0:
            found.append((not named, len(reference.values), reference))
    return min(found, key=lambda each: each[:2])[2] if found else None


def reads_like_diagnoses(column: ColumnProfile) -> bool:
    """Whether nearly all of a column's codes are diagnoses. So may be the codes of rooms and postal districts."""
    if column.kind != "text" or column.counts is None or len(column.counts) < _FEW:
        return False
    known = [reference for reference in references() if reference.name.startswith(_DIAGNOSES)]
    return any(reference.coverage(column.counts) >= 0.9 for reference in known)


def _may_be(reference: Reference, sense: Sense | None, values: int) -> bool:
    about = next((senses for start, senses in _ABOUT.items() if reference.name.startswith(start)), frozenset())
    return values >= _FEW and (sense.title if sense is not None else None) in about


def _is_named(reference: Reference, column: str) -> bool:
    parts = tokens(column)
    return any(word in parts or word == "".join(parts) for word in reference.words)
