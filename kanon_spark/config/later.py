"""Models of keys whose features come later; they are checked in form, so that a configuration can be written today.

`not_yet.py` lists which of them are still refused.
"""

from typing import Annotated, Literal

from pydantic import Field

from kanon_spark.config.base import NO_BOOLEAN, ColumnName, OptionText, Spec, Text, short_form

Share = Annotated[float, Field(ge=0, le=1), NO_BOOLEAN]


class JdbcSpec(Spec):
    """A database reached over JDBC."""

    url: Text
    table: Text | None = None
    query: Text | None = None
    user: str | None = None
    password: str | None = None
    options: dict[str, OptionText] = Field(default_factory=dict)


class LDiversitySpec(Spec):
    """Each class must hold at least l well-represented sensitive values."""

    l: Annotated[float, Field(ge=1), NO_BOOLEAN]  # noqa: E741 (the literature's name)
    kind: Literal["distinct", "entropy", "recursive"] = "distinct"
    c: Annotated[float, Field(gt=0), NO_BOOLEAN] | None = None


class TClosenessSpec(Spec):
    """The sensitive distribution of each class is within t of the release's."""

    t: Share
    distance: Literal["equal", "ordered", "hierarchical"] = "equal"


class AlphaSpec(Spec):
    """No sensitive value (or none of the named ones) makes up more than alpha of a class."""

    alpha: Share
    values: tuple[str, ...] | None = None


class BetaSpec(Spec):
    """No sensitive value gains more than beta, relatively, in a class."""

    beta: Annotated[float, Field(gt=0), NO_BOOLEAN]
    kind: Literal["basic", "enhanced"] = "basic"


class KMapSpec(Spec):
    """Each published tuple fits at least k persons of a population table."""

    k: Annotated[int, Field(ge=2), NO_BOOLEAN]
    path: Text | None = None
    table: Text | None = None


class PartitionSpec(Spec):
    """One partition of the source."""

    column: ColumnName
    value: Text


LDiversity = Annotated[LDiversitySpec, short_form("l", int, float)]
TCloseness = Annotated[TClosenessSpec, short_form("t", int, float)]
Alpha = Annotated[AlphaSpec, short_form("alpha", int, float)]
Beta = Annotated[BetaSpec, short_form("beta", int, float)]
