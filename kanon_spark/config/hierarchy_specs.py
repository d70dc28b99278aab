"""How a hierarchy may be asked for: a CSV file, a reference taxonomy, or a rule over the data's own values.

In YAML a bare text is the path of a CSV file, `flat` is itself, and all else is a mapping whose one key names the
builder: `{prefix: {keep: [4, 3]}}`.
"""

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator, model_validator

from kanon_spark.config.base import NO_BOOLEAN, Number, Spec, Text, refuse
from kanon_spark.config.reference_files import REFERENCES, reference_file
from kanon_spark.config.words import did_you_mean

DateLevel = Literal["day", "month", "quarter", "year", "decade"]
DATE_LEVELS: tuple[DateLevel, ...] = ("day", "month", "quarter", "year", "decade")


class CsvSpec(Spec):
    """A file in ARX's form, one line per value: `leaf;level1;…;*`."""

    path: Text
    unknown: Literal["error", "root"] = "error"
    separator: Annotated[str, Field(min_length=1, max_length=1)] = ";"
    stem: ClassVar[int | None] = None


class ReferenceSpec(Spec):
    """A reference taxonomy by name: a file that travels with the package."""

    name: Annotated[str, Field(json_schema_extra={"enum": sorted(REFERENCES)})]
    unknown: Literal["error", "root"] = "error"

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in REFERENCES:
            refuse(f"no such reference; there are {', '.join(sorted(REFERENCES))}{did_you_mean(name, REFERENCES)}")
        if REFERENCES[name].keep is not None:
            refuse(f"{name} is a rule that knows every value, and has no settings: write {{reference: {name}}}")
        return name

    @property
    def path(self) -> str:
        """Absolute path of the file."""
        return str(reference_file(self.name))

    @property
    def separator(self) -> str:
        """Separator of the file's labels."""
        return ";"

    @property
    def stem(self) -> int | None:
        """Characters of the file's codes, where longer codes stand under them; None where values must be the file's."""
        return REFERENCES[self.name].stem


class IntervalSpec(Spec):
    """Nested half-open intervals `[lo, lo + width)` counted from `origin`, one level per width, then `*`.

    Values below `bottom`, and those at or above `top`, each go to one open interval.
    """

    widths: Annotated[tuple[Annotated[float, Field(gt=0), NO_BOOLEAN], ...], Field(min_length=1)]
    origin: Number = 0.0
    bottom: Number | None = None
    top: Number | None = None

    @field_validator("widths")
    @classmethod
    def _nest(cls, widths: tuple[float, ...]) -> tuple[float, ...]:
        # Through the decimal text: 0.3 is a multiple of 0.1 to a reader, though not in binary.
        for small, large in pairwise(Fraction(repr(width)) for width in widths):
            if large <= small:
                refuse("widths must ascend")
            if large % small:
                refuse("widths must nest: each must be a multiple of the one before")
        return widths

    @model_validator(mode="after")
    def _ends(self) -> "IntervalSpec":
        if self.bottom is not None and self.top is not None and self.bottom >= self.top:
            refuse("bottom must be smaller than top")
        return self


class PrefixSpec(Spec):
    """Codes masked from the right: level 1 keeps the first `keep[0]` characters, and so on, then `*`."""

    keep: Annotated[tuple[Annotated[int, Field(gt=0), NO_BOOLEAN], ...], Field(min_length=1)]

    @field_validator("keep")
    @classmethod
    def _descend(cls, keep: tuple[int, ...]) -> tuple[int, ...]:
        if any(left <= right for left, right in pairwise(keep)):
            refuse("the numbers of kept characters must descend, as in [4, 3, 2]")
        return keep


class DateSpec(Spec):
    """Days to months, quarters, years, decades, then `*`."""

    levels: Annotated[tuple[DateLevel, ...], Field(min_length=1)]

    @field_validator("levels")
    @classmethod
    def _coarser(cls, levels: tuple[DateLevel, ...]) -> tuple[DateLevel, ...]:
        if any(DATE_LEVELS.index(left) >= DATE_LEVELS.index(right) for left, right in pairwise(levels)):
            refuse(f"levels must go from fine to coarse, in the order {', '.join(DATE_LEVELS)}")
        return levels


class FlatSpec(Spec):
    """Each value, then `*`."""


# Hierarchies that are files: all of them have a path, a separator, and say what becomes of values they miss.
FileSpec = CsvSpec | ReferenceSpec
HierarchySpec = FileSpec | IntervalSpec | PrefixSpec | DateSpec | FlatSpec
BUILDERS: dict[str, type[Spec]] = {
    "csv": CsvSpec,
    "reference": ReferenceSpec,
    "interval": IntervalSpec,
    "prefix": PrefixSpec,
    "date": DateSpec,
    "flat": FlatSpec,
}


def builder_name(spec: Spec) -> str:
    """The name under which a hierarchy specification stands in YAML."""
    return next(name for name, kind in BUILDERS.items() if isinstance(spec, kind))


def fix_unknown(spec: FileSpec) -> str:
    """What can be done about values that a hierarchy file misses.

    >>> fix_unknown(ReferenceSpec(name="us_states_code"))
    'correct them, or set {reference: {name: us_states_code, unknown: root}}'
    """
    if isinstance(spec, ReferenceSpec):
        mend, instead = "correct them", f"{{reference: {{name: {spec.name}, unknown: root}}}}"
    else:
        mend, instead = "add them to the file", "{csv: {path: …, unknown: root}}"
    return mend if spec.unknown == "root" else f"{mend}, or set {instead}"


def hierarchy_levels(spec: HierarchySpec) -> int | None:
    """The level of `*` (the values themselves are level 0); None for files, which say it themselves."""
    match spec:
        case IntervalSpec(widths=widths):
            return len(widths) + 1
        case PrefixSpec(keep=keep):
            return len(keep) + 1
        case DateSpec(levels=levels):
            return len(levels) + 1
        case FlatSpec():
            return 1
    return None


def _one_key(value: object) -> object:
    """Turn each way of writing a hierarchy into the mapping with one key."""
    if value is None or isinstance(value, Spec):
        return value
    if isinstance(value, str):
        if not value:
            refuse("an empty text is no path")
        return {"flat": {}} if value == "flat" else {"csv": {"path": value}}
    if not isinstance(value, dict) or len(value) != 1:
        refuse("a hierarchy is the path of a CSV file, flat, or a mapping with one builder as its only key")
    (name, body) = next(iter(value.items()))
    if name not in BUILDERS:
        refuse(f"no such hierarchy builder; there are {', '.join(BUILDERS)}{did_you_mean(str(name), BUILDERS)}")
    if name == "csv" and isinstance(body, str):
        body = {"path": body}
    if name == "reference" and isinstance(body, str):
        body = {"name": body}
    if name == "reference" and isinstance(body, dict) and list(body) == ["name"] and body["name"] in REFERENCES:
        keep = REFERENCES[body["name"]].keep
        if keep is not None:  # a reference that is no file but a rule
            name, body = "prefix", {"keep": keep}
    return {name: {} if body is None else body}


def _tag(value: object) -> str | None:
    if isinstance(value, Spec):
        return builder_name(value)
    return str(next(iter(value))) if isinstance(value, dict) else None


def _body(name: str) -> Callable[[object], object]:
    return lambda value: value[name] if isinstance(value, dict) else value


HierarchyField = Annotated[
    Annotated[
        Annotated[CsvSpec, BeforeValidator(_body("csv")), Tag("csv")]
        | Annotated[ReferenceSpec, BeforeValidator(_body("reference")), Tag("reference")]
        | Annotated[IntervalSpec, BeforeValidator(_body("interval")), Tag("interval")]
        | Annotated[PrefixSpec, BeforeValidator(_body("prefix")), Tag("prefix")]
        | Annotated[DateSpec, BeforeValidator(_body("date")), Tag("date")]
        | Annotated[FlatSpec, BeforeValidator(_body("flat")), Tag("flat")],
        Discriminator(_tag),
    ]
    | None,
    BeforeValidator(_one_key),
]
