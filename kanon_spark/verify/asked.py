"""What may be asked of a table beyond k, and what its classes were found to have of it. Plain data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kanon_spark.config.models import CsvSpec, PrivacySpec, SensitiveSpec
from kanon_spark.errors import RequestError
from kanon_spark.verify.facts import Check

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kanon_spark.config.models import Config

_MODELS = ("l_diversity", "t_closeness", "alpha", "beta_likeness", "delta_disclosure")
_NUMBERS = {"label": (), "bounds": ("lo", "hi"), "mean": ("mean",)}  # what `output.numeric` puts beside a QI


@dataclass(frozen=True)
class Population:
    """Who might be meant by a published tuple.

    Attributes:
        table: The population, with the quasi-identifiers of the table (as they are, not generalized).
        k: How many persons every published tuple must fit.
        hierarchies: Hierarchy files of quasi-identifiers, where their labels come from one.
    """

    table: "DataFrame"
    k: int
    hierarchies: Mapping[str, CsvSpec] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """What is asked beyond k.

    Attributes:
        sensitive: The models of each sensitive column, all of them its own.
        personal_k: Column that says each person's own k.
        population: The population of k-map.
        base_dir: Folder that the paths of hierarchy files start from.
    """

    sensitive: Mapping[str, SensitiveSpec] = field(default_factory=dict)
    personal_k: str | None = None
    population: Population | None = None
    base_dir: Path = Path()

    def __bool__(self) -> bool:
        """Whether anything is asked."""
        models = any(getattr(spec, name) is not None for spec in self.sensitive.values() for name in _MODELS)
        return models or self.personal_k is not None or self.population is not None


def own_models(own: SensitiveSpec, general: SensitiveSpec | PrivacySpec) -> SensitiveSpec:
    """A column's models, where it has none of a kind those that hold for all columns.

    >>> whole = own_models(SensitiveSpec(l_diversity=4), SensitiveSpec(l_diversity=2, alpha=0.5))
    >>> whole.l_diversity.l, whole.alpha.alpha
    (4.0, 0.5)
    """
    filled = {name: getattr(general, name) for name in _MODELS if getattr(own, name) is None}
    whole = own.model_copy(update=filled)
    diversity = whole.l_diversity
    if diversity is not None and diversity.kind == "recursive" and diversity.c is None:
        raise RequestError("recursive l-diversity needs c", where="l_diversity", fix="say how large c may be")
    return whole


def asked_by(config: "Config", *, base_dir: Path, population: "DataFrame | None" = None) -> Asked:
    """What a configuration asks; `population` is the table that its `k_map` names."""
    privacy = config.privacy
    sensitive = {name: own_models(spec, privacy) for name, spec in config.columns.sensitive.items()}
    known = None
    if population is not None and privacy.k_map is not None:
        specs = {name: spec.hierarchy for name, spec in config.columns.quasi_identifiers.items()}
        files = {name: spec for name, spec in specs.items() if isinstance(spec, CsvSpec)}
        known = Population(population, privacy.k_map.k, files)
    return Asked(sensitive, privacy.personal_k, known, base_dir)


def published_names(config: "Config", columns: Sequence[str]) -> tuple[str, ...]:
    """The columns that tell the classes of a release apart: its quasi-identifiers and the numbers beside them."""
    names = []
    for qi in config.columns.quasi_identifiers:
        names += [qi, *(f"{qi}_{part}" for part in _NUMBERS[config.output.numeric] if f"{qi}_{part}" in columns)]
    return tuple(names)


@dataclass(frozen=True)
class Found:
    """What the classes of a table have of one model.

    Attributes:
        name: The model's key in a configuration, and the column in brackets.
        asked: What every class must have, in words.
        worst: What the worst class has; None if there is no class.
        failing: Classes that do not have what is asked.
        classes: Classes in all.
    """

    name: str
    asked: str
    worst: float | None
    failing: int
    classes: int

    @property
    def check(self) -> Check:
        """The check, in words."""
        if self.worst is None:
            return Check(self.name, True, "the table is empty, so that no class breaks it")
        if self.failing:
            short = f"{self.failing:,} of {self.classes:,} classes do not have {self.asked}"
            return Check(self.name, False, f"{short}; the worst has {self.worst:.6g}")
        return Check(self.name, True, f"every class has {self.asked}; the worst has {self.worst:.6g}")
