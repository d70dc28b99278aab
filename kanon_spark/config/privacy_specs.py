"""How the privacy models beyond k are asked for; what each promises stands in `privacy/README.md`.

All but `personal_k` and `k_map` speak of sensitive columns: of one where they stand under its name in
`columns.sensitive`, of every one that has none of that kind itself where they stand in `privacy`.
"""

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from kanon_spark.config.base import NO_BOOLEAN, ColumnName, Share, Spec, Text, refuse, short_form


class LDiversitySpec(Spec):
    """Each class must hold at least l well-represented sensitive values."""

    l: Annotated[float, Field(ge=1), NO_BOOLEAN]  # noqa: E741 (the literature's name)
    kind: Literal["distinct", "entropy", "recursive"] = "distinct"
    c: Annotated[float, Field(gt=0), NO_BOOLEAN] | None = None

    @model_validator(mode="after")
    def _c_where_it_counts(self) -> "LDiversitySpec":
        if self.kind == "recursive" and self.c is None:
            refuse("recursive l-diversity needs c, as in {l: 3, kind: recursive, c: 2}")
        if self.kind != "recursive" and self.c is not None:
            refuse(f"c belongs to kind: recursive; {self.kind} l-diversity has none")
        return self


class TClosenessSpec(Spec):
    """The sensitive distribution of each class is within t of the release's."""

    t: Share
    distance: Literal["equal", "ordered", "hierarchical"] = "equal"


class AlphaSpec(Spec):
    """No sensitive value (or none of the named ones) makes up more than alpha of a class."""

    alpha: Annotated[float, Field(gt=0, le=1), NO_BOOLEAN]
    values: Annotated[tuple[str, ...], Field(min_length=1)] | None = None

    @field_validator("values")
    @classmethod
    def _once(cls, values: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if values is not None and len(set(values)) < len(values):
            refuse("a value stands here twice")
        return values


class BetaSpec(Spec):
    """No sensitive value gains more than beta, relatively, in a class."""

    beta: Annotated[float, Field(gt=0), NO_BOOLEAN]
    kind: Literal["basic", "enhanced"] = "basic"


class PersonalKSpec(Spec):
    """Where each person's own k comes from: a column of the source, or a SQL expression over its columns."""

    column: ColumnName | None = None
    rule: Text | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "PersonalKSpec":
        if (self.column is None) == (self.rule is None):
            given = "both were" if self.column is not None else "none was"
            refuse(f"either a column or a rule must be given, {given}")
        return self

    @property
    def words(self) -> str:
        """What checks and reports call it."""
        return self.column if self.column is not None else "rule"


class KMapSpec(Spec):
    """Each published tuple fits at least k persons of a population table."""

    k: Annotated[int, Field(ge=2), NO_BOOLEAN]
    path: Text | None = None
    table: Text | None = None

    @model_validator(mode="after")
    def _one_place(self) -> "KMapSpec":
        if (self.path is None) == (self.table is None):
            given = "both were" if self.path is not None else "none was"
            refuse(f"the population is a path or a table, {given} given")
        return self


LDiversity = Annotated[LDiversitySpec, short_form("l", int, float)]
TCloseness = Annotated[TClosenessSpec, short_form("t", int, float)]
Alpha = Annotated[AlphaSpec, short_form("alpha", int, float)]
Beta = Annotated[BetaSpec, short_form("beta", int, float)]
Delta = Annotated[float, Field(gt=0), NO_BOOLEAN]
PersonalK = Annotated[PersonalKSpec, short_form("column", str)]

# What a bare number or text stands for, by the key it stands under.
SHORT_FORMS = {
    "l_diversity": "l",
    "t_closeness": "t",
    "alpha": "alpha",
    "beta_likeness": "beta",
    "personal_k": "column",
}
# The models of sensitive columns, by their keys.
MODEL_KEYS = ("l_diversity", "t_closeness", "alpha", "beta_likeness", "delta_disclosure")
