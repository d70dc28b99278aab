"""What may be asked of a table beyond k, and what its classes were found to have of it. Plain data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kanon_spark.config.models import HierarchySpec, PrivacySpec, SensitiveSpec
from kanon_spark.config.privacy_specs import MODEL_KEYS
from kanon_spark.verify.facts import Check

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kanon_spark.config.models import Config

_NUMBERS = {"label": (), "bounds": ("lo", "hi"), "mean": ("mean",)}  # what `output.numeric` puts beside a QI


@dataclass(frozen=True)
class Population:
    """Who might be meant by a published tuple.

    Attributes:
        table: The population, with the quasi-identifiers of the table (as they are, not generalized).
        k: How many persons every published tuple must fit.
        hierarchies: Hierarchies of quasi-identifiers, where their labels come from one.
        unit: Column of the person there; counts rows where it has none.
    """

    table: "DataFrame"
    k: int
    hierarchies: Mapping[str, HierarchySpec] = field(default_factory=dict)
    unit: str | None = None


@dataclass(frozen=True)
class Asked:
    """What is asked beyond k.

    Attributes:
        sensitive: The models of each sensitive column, all of them its own.
        personal_k: Column that says each person's own k; where the wishes come from the source, what to call them.
        population: The population of k-map.
        base_dir: Folder that the paths of hierarchy files start from.
    """

    sensitive: Mapping[str, SensitiveSpec] = field(default_factory=dict)
    personal_k: str | None = None
    population: Population | None = None
    base_dir: Path = Path()

    def __bool__(self) -> bool:
        """Whether anything is asked."""
        return bool(self.judged) or self.personal_k is not None or self.population is not None

    @property
    def judged(self) -> dict[str, SensitiveSpec]:
        """The sensitive columns of which anything is asked."""
        return {
            name: spec
            for name, spec in self.sensitive.items()
            if any(getattr(spec, key) is not None for key in MODEL_KEYS)
        }


def own_models(own: SensitiveSpec, general: SensitiveSpec | PrivacySpec) -> SensitiveSpec:
    """A column's models, where it has none of a kind those that hold for all columns.

    >>> whole = own_models(SensitiveSpec(l_diversity=4), SensitiveSpec(l_diversity=2, alpha=0.5))
    >>> whole.l_diversity.l, whole.alpha.alpha
    (4.0, 0.5)
    """
    filled = {name: getattr(general, name) for name in MODEL_KEYS if getattr(own, name) is None}
    return own.model_copy(update=filled)


def asked_by(config: "Config", *, base_dir: Path, population: "DataFrame | None" = None) -> Asked:
    """What a configuration asks; `population` is the table that its `k_map` names."""
    privacy = config.privacy
    sensitive = {name: own_models(spec, privacy) for name, spec in config.columns.sensitive.items()}
    known = None
    if population is not None and privacy.k_map is not None:
        specs = {name: spec.hierarchy for name, spec in config.columns.quasi_identifiers.items()}
        trees = {name: spec for name, spec in specs.items() if spec is not None}
        known = Population(population, privacy.k_map.k, trees, privacy.unit)
    wishes = None if privacy.personal_k is None else privacy.personal_k.words
    return Asked(sensitive, wishes, known, base_dir)


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
        form: What was asked, as a configuration says it.
        unknown: How many of the values that it names no class holds.
    """

    name: str
    asked: str
    worst: float | None
    failing: int
    classes: int
    form: object = None
    unknown: int = 0

    @property
    def model(self) -> str:
        """The model's key in a configuration."""
        return self.name.partition("(")[0]

    @property
    def column(self) -> str | None:
        """The column that it speaks of, where it speaks of one."""
        return self.name.partition("(")[2][:-1] or None

    @property
    def check(self) -> Check:
        """The check, in words."""
        if self.worst is None:
            return Check(self.name, True, "the table is empty, so that no class breaks it")
        lost = "" if not self.unknown else f"; {self.unknown} of the values that it names do not occur"
        if self.failing:
            short = f"{self.failing:,} of {self.classes:,} classes do not have {self.asked}"
            return Check(self.name, False, f"{short}; the worst has {self.worst:.6g}{lost}")
        return Check(self.name, True, f"every class has {self.asked}; the worst has {self.worst:.6g}{lost}")
