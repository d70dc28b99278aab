"""The table on which every method meets every privacy model, and how its published labels are read."""

from typing import Any

import numpy as np
import pandas as pd

SIZE, K = 400, 5
PLACES = ["lung;inner;*", "heart;inner;*", "skin;outer;*", "eye;outer;*"]
WITH = {"age": {"hierarchy": {"interval": {"widths": [5, 20]}}}, "zip": {"hierarchy": {"prefix": {"keep": [2, 1]}}}}
HIERARCHIES: dict[str, Any] = {**WITH, "sex": {"hierarchy": "flat"}}
RANGES: dict[str, Any] = {"age": {}, "zip": {}, "sex": {}}
MODELS: dict[str, dict[str, Any]] = {
    "distinct": {"l_diversity": 3},
    "entropy": {"l_diversity": {"l": 2.2, "kind": "entropy"}},
    "recursive": {"l_diversity": {"l": 2, "kind": "recursive", "c": 2.5}},
    "equal": {"t_closeness": 0.35},
    "ordered": {"t_closeness": {"t": 0.3, "distance": "ordered"}},
    "tree": {"hierarchy": "places.csv", "t_closeness": {"t": 0.35, "distance": "hierarchical"}},
    "alpha": {"alpha": 0.6},
    "named": {"alpha": {"alpha": 0.5, "values": ["b"]}},
    "beta": {"beta_likeness": 1.2},
    "enhanced": {"beta_likeness": {"beta": 1.5, "kind": "enhanced"}},
    "delta": {"delta_disclosure": 1.6},
}
SHAPES = {"lattice", "prgain", "mondrian", "kmember"}  # methods that the others' way over blocks is like
HALVES = [list(MODELS)[::2], list(MODELS)[1::2]]
METHODS: dict[str, dict[str, Any]] = {
    "lattice": HIERARCHIES,
    "mst": HIERARCHIES,
    "prgain": HIERARCHIES,
    "datafly": HIERARCHIES,
    "incognito": HIERARCHIES,
    "mondrian": RANGES,
    "kmember": RANGES,
    "sbca": RANGES,
    "kactus": RANGES,
}


def draw(seed: int = 0) -> pd.DataFrame:
    """Rows whose sensitive values follow their quasi-identifiers a little, so that classes by k alone break demands."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 60, SIZE)
    table = pd.DataFrame(
        {"age": age, "zip": rng.choice(["110", "112", "127", "201"], SIZE), "sex": rng.choice(["f", "m"], SIZE)}
    )
    for name in MODELS:
        leaning = (age > 40) & (rng.random(SIZE) < 0.35)
        value = np.where(leaning, 0, rng.integers(0, 2 if name == "delta" else 4, SIZE))
        values = (
            [10, 20, 30, 40] if name == "ordered" else ["lung", "heart", "skin", "eye"] if name == "tree" else "abcd"
        )
        table[name] = [values[x] for x in value]
    table["number"] = np.arange(SIZE)
    return table


def fits(label: str, value: object) -> bool:
    """Whether a published label covers a value: ranges and intervals, prefixes, sets."""
    if label in {"*", "?", str(value)}:
        return True
    if label.startswith("["):
        low, high = (float(end) for end in label[1:-1].split(","))
        return low <= float(str(value)) <= high
    return str(value) in label[1:-1].split(", ") if label.startswith("{") else str(value).startswith(label.rstrip("*"))
