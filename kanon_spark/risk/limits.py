"""What the models that a configuration asks for imply for an attacker's belief in a sensitive value.

A model speaks of every class, and an attacker's candidates are whole classes put together, in which no share is larger
than in the worst of them. So a limit on a value's share in a class is one on his belief, whatever he knows.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kanon_spark.config.privacy_specs import MODEL_KEYS, AlphaSpec, BetaSpec, LDiversitySpec, TClosenessSpec

if TYPE_CHECKING:
    from kanon_spark.config.loader import LoadedConfig

ModelSpec = LDiversitySpec | TClosenessSpec | AlphaSpec | BetaSpec | float
Models = Mapping[str, Sequence[ModelSpec]]  # by sensitive column


@dataclass(frozen=True)
class Limit:
    """The largest share that any value may have among a target's candidates, and which model says so, in words."""

    share: float
    model: str


def models_by_config(loaded: "LoadedConfig", *, known: Sequence[str]) -> dict[str, tuple[ModelSpec, ...]]:
    """The models of each sensitive column, where they say anything of an attacker who knows some columns.

    Nothing follows from them with a unit: they speak of persons then, and his belief is counted in rows, of which a
    person may have many. Nor if he knows more than quasi-identifiers, which cuts through the classes.
    """
    config = loaded.config
    if config.privacy.unit is not None or not set(known) <= set(config.columns.quasi_identifiers):
        return {}
    found = {}
    for name, own in config.columns.sensitive.items():
        asked = [(getattr(own, key), getattr(config.privacy, key)) for key in MODEL_KEYS]
        specs = [here if here is not None else everywhere for here, everywhere in asked]
        found[name] = tuple(spec for spec in specs if spec is not None)
    return found


def limit_of(models: Sequence[ModelSpec], common: float) -> Limit | None:
    """The least limit that any of the models implies; None where none does.

    Args:
        models: The models of one sensitive column.
        common: The share of its most frequent value in the whole release.

    >>> limit_of([AlphaSpec(alpha=0.4), LDiversitySpec(l=3)], 0.3)
    Limit(share=0.4, model='alpha = 0.4')
    """
    limits = [Limit(*found) for found in (_implied(model, common) for model in models) if found is not None]
    least = min(limits, key=lambda limit: limit.share, default=None)
    return least if least is not None and least.share < 1 else None


def _implied(model: ModelSpec, common: float) -> tuple[float, str] | None:
    """Each relative limit grows with the value's share in the release: it is largest for the most frequent one."""
    match model:
        case AlphaSpec(values=None):
            return model.alpha, f"alpha = {model.alpha:g}"
        case TClosenessSpec(distance="equal"):
            return common + model.t, f"t-closeness (t = {model.t:g})"
        # r1 < c (r_l + … + r_m): from l = 2 on r1 is not in the tail, which is at most what r1 leaves.
        case LDiversitySpec(kind="recursive", c=float() | int() as c):
            return (c / (1 + c) if model.l > 1 else c), f"recursive l-diversity (c = {c:g}, l = {model.l:g})"
        case BetaSpec():
            rise = min(model.beta, -math.log(common)) if model.kind == "enhanced" and common > 0 else model.beta
            return common * (1 + rise), f"{model.kind} beta-likeness (beta = {model.beta:g})"
        case float() | int():
            return common * math.exp(min(model, 700.0)), f"delta-disclosure (delta = {model:g})"
        # Distinct and entropy l, other distances of t: how frequent a value may be depends on how many there are.
        case _:
            return None
