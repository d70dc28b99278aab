"""What models imply for an attacker's belief: never less than any class that satisfies them has."""

import math
import random

import pytest

from kanon_spark.config.loader import load_config
from kanon_spark.config.privacy_specs import AlphaSpec, BetaSpec, LDiversitySpec, TClosenessSpec
from kanon_spark.risk.limits import ModelSpec, limit_of, models_by_config

RECURSIVE = LDiversitySpec(l=3, kind="recursive", c=2)


@pytest.mark.parametrize(
    ("models", "common", "limit"),
    [
        ([], 0.4, None),
        ([AlphaSpec(alpha=0.3)], 0.4, 0.3),
        ([AlphaSpec(alpha=0.3, values=("HIV",))], 0.4, None),
        ([AlphaSpec(alpha=1)], 0.4, None),
        ([LDiversitySpec(l=3)], 0.4, None),
        ([LDiversitySpec(l=3, kind="entropy")], 0.4, None),
        ([RECURSIVE], 0.4, 2 / 3),
        ([LDiversitySpec(l=1, kind="recursive", c=0.5)], 0.4, 0.5),
        ([TClosenessSpec(t=0.2)], 0.4, 0.6),
        ([TClosenessSpec(t=0.7)], 0.4, None),
        ([TClosenessSpec(t=0.2, distance="ordered")], 0.4, None),
        ([TClosenessSpec(t=0.2, distance="hierarchical")], 0.4, None),
        ([BetaSpec(beta=1)], 0.4, 0.8),
        ([BetaSpec(beta=4, kind="enhanced")], 0.4, 0.4 * (1 - math.log(0.4))),
        ([0.5], 0.4, 0.4 * math.exp(0.5)),
        ([2_000.0], 0.4, None),
        ([TClosenessSpec(t=0.2), AlphaSpec(alpha=0.55)], 0.4, 0.55),
    ],
)
def test_limits(models: list[ModelSpec], common: float, limit: float | None) -> None:
    found = limit_of(models, common)
    assert (None if found is None else found.share) == (None if limit is None else pytest.approx(limit))


def test_no_class_that_satisfies_a_model_is_beyond_its_limit() -> None:
    draw = random.Random(4)
    met = dict.fromkeys(("recursive", "t", "beta", "enhanced", "delta"), 0)
    for _ in range(20_000):
        q, p = (shares(draw) for _ in range(2))
        rise = max((mine - all_) / all_ for mine, all_ in zip(p, q, strict=True))
        falling = sorted(p, reverse=True)
        satisfied = {
            "recursive": (falling[0] < 2 * sum(falling[2:]), RECURSIVE),
            "t": (sum(max(0.0, mine - all_) for mine, all_ in zip(p, q, strict=True)) <= 0.15, TClosenessSpec(t=0.15)),
            "beta": (rise <= 0.8, BetaSpec(beta=0.8)),
            "enhanced": (
                all(mine <= all_ * (1 + min(0.8, -math.log(all_))) for mine, all_ in zip(p, q, strict=True)),
                BetaSpec(beta=0.8, kind="enhanced"),
            ),
            "delta": (all(abs(math.log(mine / all_)) < 0.7 for mine, all_ in zip(p, q, strict=True)), 0.7),
        }
        for name, (holds, model) in satisfied.items():
            limit = limit_of([model], max(q)) if holds else None  # type: ignore[list-item]
            met[name] += limit is not None
            assert limit is None or max(p) <= limit.share + 1e-9, name
    assert min(met.values()) > 50, met


def shares(draw: random.Random) -> list[float]:
    weights = [draw.random() ** 2 + 1e-3 for _ in range(4)]
    return [weight / sum(weights) for weight in weights]


def test_models_come_from_the_configuration_where_they_say_anything_of_the_attacker() -> None:
    columns = {"quasi_identifiers": ["age"], "sensitive": {"ill": {"alpha": 0.3}, "pay": {}}, "identifiers": ["who"]}
    loaded = load_config({"columns": columns, "privacy": {"alpha": 0.5, "t_closeness": 0.2}})
    found = models_by_config(loaded, known=["age"])
    assert found == {
        "ill": (TClosenessSpec(t=0.2), AlphaSpec(alpha=0.3)),
        "pay": (TClosenessSpec(t=0.2), AlphaSpec(alpha=0.5)),
    }
    assert models_by_config(loaded, known=["age", "other"]) == {}, "who knows more cuts through classes"
    persons = load_config({"columns": columns, "privacy": {"alpha": 0.5, "unit": "who"}})
    assert models_by_config(persons, known=["age"]) == {}, "a person may have many rows"
