"""Every privacy model once more, literally and slowly, over dense histograms; and random tables to try them on."""

import math
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
from hypothesis import strategies as st
from random_problems import random_tree
from scipy.optimize import linprog

from kanon_spark.privacy.alpha import Alpha
from kanon_spark.privacy.base import Model
from kanon_spark.privacy.beta_likeness import BetaLikeness
from kanon_spark.privacy.columns import Column
from kanon_spark.privacy.delta_disclosure import DeltaDisclosure
from kanon_spark.privacy.histograms import Histograms, histograms_of
from kanon_spark.privacy.l_diversity import Distinct, Entropy, Recursive
from kanon_spark.privacy.t_closeness import TCloseness


@dataclass(frozen=True)
class World:
    """Rows of two sensitive columns in classes; `dense[j][c, v]` counts them."""

    columns: list[Column]
    class_of: np.ndarray
    codes: np.ndarray
    classes: int

    @property
    def histograms(self) -> Histograms:
        ones = np.ones(len(self.class_of), np.int64)
        return histograms_of(self.class_of, self.codes, ones, units=self.classes)

    def dense(self, j: int) -> np.ndarray:
        out = np.zeros((self.classes, self.columns[j].size), np.int64)
        np.add.at(out, (self.class_of, self.codes[:, j]), 1)
        return out


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A column of numbers (null may be its last code) and one with a hierarchy (null may be any leaf)."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    rows, classes = draw(st.integers(2, 24)), draw(st.integers(1, 4))
    tree = random_tree(rng, draw(st.integers(1, 6)))
    sizes = [draw(st.integers(1, 6)), tree.leaves]
    class_of = np.concatenate([np.arange(classes), rng.integers(0, classes, rows)])
    skew = [rng.dirichlet(np.ones(size)) for size in sizes]
    drawn = [rng.choice(size, len(class_of), p=p) for size, p in zip(sizes, skew, strict=True)]
    codes = np.stack(drawn, axis=1).astype(np.int32)
    counts = [np.bincount(codes[:, j], minlength=size).astype(np.int64) for j, size in enumerate(sizes)]
    columns = [
        Column("cost", counts[0], null=sizes[0] - 1 if draw(st.booleans()) else -1, ordered=True),
        Column("ill", counts[1], null=draw(st.integers(-1, tree.leaves - 1)), levels=tree.levels),
    ]
    return World(columns, class_of, codes, classes)


def column_models(column: Column) -> list[Model]:
    """One of each model that the column can carry."""
    found: list[Model] = [
        Distinct(2),
        Entropy(1.5),
        Recursive(2, 2),
        Recursive(1.5, 1),
        Recursive(3, 3),
        TCloseness(0.3),
        Alpha(0.5),
        Alpha(0.4, (0,)),
        BetaLikeness(1),
        BetaLikeness(1.5, "enhanced"),
        DeltaDisclosure(1.2),
    ]
    if column.ordered:
        found.append(TCloseness(0.25, "ordered"))
    if column.levels is not None:
        found.append(TCloseness(0.25, "hierarchical"))
    return found


def guesses(counts: list[int], nulls: int) -> list[list[int]]:
    """Every way to take nulls for values that the class holds, or for one that it does not."""
    places = range(len(counts) + 1)
    found = []
    for chosen in combinations_with_replacement(places, nulls):
        guess = [*counts, 0]
        for place in chosen:
            guess[place] += 1
        found.append([count for count in guess if count])
    return found


def entropy(counts: list[int]) -> float:
    total = sum(counts)
    return -sum(count / total * math.log(count / total) for count in counts if count)


def literal(model: Model, column: Column, counts: np.ndarray) -> float:
    """What a class with these counts (one per code) achieves, from the definition."""
    known = [int(count) for code, count in enumerate(counts) if code != column.null and count]
    nulls = int(counts[column.null]) if column.null >= 0 else 0
    p, q = counts / counts.sum(), column.counts / column.counts.sum()
    held = np.flatnonzero(q)
    match model:
        case Distinct():
            return float(len(known))
        case Entropy():
            # The smallest of what could be true. All guesses are tried where they are few.
            guessed = guesses(known, nulls) if nulls <= 4 else [[max(known, default=0) + nulls, *sorted(known)[:-1]]]
            return min(math.exp(entropy(guess)) for guess in guessed) if known else 0.0
        case Recursive():
            falling = sorted(known, reverse=True)
            tail = sum(falling[math.ceil(model.l) - 1 :])
            return (falling[0] + nulls) / tail if tail else math.inf
        case TCloseness():
            return transport(p, q, ground(model, column))
        case Alpha():
            watched = range(len(counts)) if model.values is None else model.values
            return max(float(p[code]) for code in watched)
        case BetaLikeness():
            rises = {code: (p[code] - q[code]) / q[code] for code in held if p[code] > q[code]}
            if model.kind == "enhanced" and any(rise > 1e-9 - math.log(q[code]) for code, rise in rises.items()):
                return math.inf
            return max(rises.values(), default=0.0)
        case DeltaDisclosure():
            return max(math.inf if p[code] == 0 else abs(math.log(p[code] / q[code])) for code in held)
    raise AssertionError(model)


def ground(model: TCloseness, column: Column) -> np.ndarray:
    """How far apart any two values lie."""
    size = column.size
    if model.distance == "equal":
        return 1.0 - np.eye(size)
    if model.distance == "ordered":
        place = np.cumsum(column.counts > 0)
        return np.abs(place[:, None] - place[None, :]) / max(1, column.present - 1)
    assert column.levels is not None
    height = len(column.levels) - 1
    alike = column.levels[:, :, None] == column.levels[:, None, :]
    return np.argmax(alike, axis=0) / max(1, height)  # the lowest level at which the two are one


def transport(p: np.ndarray, q: np.ndarray, distance: np.ndarray) -> float:
    """The earth mover's distance, as the linear programme that defines it."""
    size = len(p)
    rows = np.kron(np.eye(size), np.ones(size))
    columns = np.kron(np.ones(size), np.eye(size))
    found = linprog(distance.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.concatenate([p, q]), method="highs")
    return float(found.fun)


def holds(model: Model, value: float) -> bool:
    """Whether an achieved value satisfies a model, from the definition."""
    if isinstance(model, Distinct | Entropy):
        return value >= model.l - 1e-9
    if isinstance(model, Recursive | DeltaDisclosure):
        return value < model.bound
    return value <= model.bound + 1e-9
