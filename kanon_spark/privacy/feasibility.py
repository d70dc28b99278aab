"""Demands that no release of a table can meet, found from its histogram before any work is done.

All models are union safe: if every class satisfied one, the whole release, their union, would too. So a model that the
whole table breaks cannot be met by any classes, whatever the method; only suppression can change that. What may be
suppressed is taken where it helps most: nulls first, then from the most frequent values, all cut down to one height.
t-closeness, beta-likeness and delta-disclosure hold the classes against the release itself: one class of everything
always satisfies them, so that they are impossible only where `max_level` forbids such a class, which shows when classes
are formed; but some demands allow nothing else (`forced`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from kanon_spark.privacy.alpha import Alpha
from kanon_spark.privacy.base import EPSILON, Longs, Model
from kanon_spark.privacy.columns import Column
from kanon_spark.privacy.delta_disclosure import DeltaDisclosure
from kanon_spark.privacy.histograms import Histograms
from kanon_spark.privacy.judging import judge
from kanon_spark.privacy.l_diversity import Distinct
from kanon_spark.privacy.personal_k import PersonalK
from kanon_spark.privacy.t_closeness import TCloseness

_LOOKED_AT = 10_000_000  # persons of a table whose possible sizes of classes are gone through, in half a second


def impossible(
    columns: Sequence[Column],
    models: Mapping[str, Sequence[Model]],
    *,
    suppressible: int = 0,
    persons: int | None = None,
    members: int | None = None,
) -> list[str]:
    """Explain each demand that cannot be met; nothing is said of values, only of how many there are.

    Args:
        columns: The sensitive columns with the persons of the whole table.
        models: What is asked of each.
        suppressible: How many rows may be suppressed.
        persons: Persons of the table; by default the sum of a column's counts.
        members: Where a person may stand in several signatures, how many pairs of both there are: the classes cannot
            have more members, all of them taken together.

    >>> columns = [Column("ill", np.array([8, 2]))]
    >>> print(*impossible(columns, {"ill": [Distinct(3)]}))
    ill: distinct l-diversity (l = 3) cannot be met: the table holds only 2 values
    """
    found = []
    for column in columns:
        everybody = int(column.counts.sum()) if persons is None else persons
        for model in models.get(column.name, ()):
            why = _why_not(column, model, everybody, suppressible, members)
            if why is not None:
                found.append(f"{column.name}: {model.words} cannot be met: {why}")
    return found


def forced(columns: Sequence[Column], models: Mapping[str, Sequence[Model]], *, suppressible: int = 0) -> list[str]:
    """Explain each demand that can hardly be what is meant.

    It can be met only by very few classes, so that hardly anything would be told apart, or it names values that nobody
    carries, perhaps because they are written otherwise in the table. How few classes there are is proven of the table
    as it is: where rows may be suppressed, another distribution may allow more.
    """
    whole = "" if suppressible == 0 else ", unless rows are suppressed"
    found = []
    for column in columns:
        present = column.counts[column.counts > 0]
        if not len(present):
            continue
        for model in models.get(column.name, ()):
            if isinstance(model, Alpha) and model.unknown:
                found.append(
                    f"{column.name}: {model.unknown} of the values that alpha names do not occur as they are written, "
                    "and limit nothing"
                )
            if isinstance(model, TCloseness) and model.t == 0:
                most, why = int(np.gcd.reduce(present)), "every class must repeat the release's distribution exactly"
            elif isinstance(model, TCloseness) and _acts_like_zero(column, model):
                most, why = int(np.gcd.reduce(present)), "smaller classes cannot come so near to its distribution"
            elif isinstance(model, DeltaDisclosure):
                most, why = int(present.min()), "every class must hold every value of the release"
            else:
                continue
            if most == 1:
                found.append(f"{column.name}: {model.words} leaves a single class{whole}: {why}")
            elif most < 10:
                found.append(f"{column.name}: {model.words} leaves at most {most} classes{whole}: {why}")
    return found


def _acts_like_zero(column: Column, model: TCloseness) -> bool:
    """Whether a t above 0 leaves no more classes than a t of 0.

    Where the counts of a table of n persons have the greatest common divisor g, only classes of n/g persons or a
    multiple of that repeat its distribution: at most g. A smaller class is away from it. How far, follows from whole
    numbers: if it has m persons, c of them with a value that a of n carry, c/m and a/n differ by as much, at least, as
    m · a/n is away from a whole number, over m. And if its distance is at most t, no share may differ by more than

        equal          t: what one value has too much is part of what is moved
        ordered        t · (values - 1): the cumulative shares before and behind the value differ by that in sum
        hierarchical   t · levels below the root: the equal distance is one of so many in the mean

    So if some value forbids each m below n/g (and up to n/2: of two classes one is no larger), it is as if t were 0.
    """
    counts = column.counts[column.counts > 0]
    everybody = int(counts.sum())
    if model.distance == "equal":
        steps = 1
    elif model.distance == "ordered":
        steps = len(counts) - 1
    elif column.levels is not None:
        steps = len(column.levels) - 1
    else:
        return False  # the table has been counted without its hierarchy
    apart = (model.t + EPSILON) * max(1, steps)
    smaller = min(everybody // int(np.gcd.reduce(counts)) - 1, everybody // 2)
    if len(counts) < 2 or 2 * apart * smaller >= 1 or everybody > _LOOKED_AT:
        return False  # one value: all classes repeat it; nor is anything forbidden that is further than half a person
    sizes = np.arange(1, smaller + 1)
    for count in counts:
        over = sizes * int(count) % everybody
        sizes = sizes[np.minimum(over, everybody - over) <= apart * sizes * everybody]
    return len(sizes) == 0


def impossible_k_map(k: int, population: int) -> list[str]:
    """Explain a k-map demand that not even a row of `*` could meet."""
    if population >= k:
        return []
    return [f"k-map with k = {k} cannot be met: the population has {population:,} persons"]


def _why_not(column: Column, model: Model, persons: int, suppressible: int, members: int | None) -> str | None:
    if isinstance(model, PersonalK):
        return _unmet_wish(column, persons, suppressible)
    if model.relative:
        return None
    if isinstance(model, Alpha):
        if column.people is not None:
            return _too_many(column.people, model, suppressible, members or persons)
        best = level(column.counts, suppressible, watched=model.values)  # null is a value like another
    else:
        best = level(column.counts, suppressible, null=column.null)
    if not best.any():
        return None  # all of it may be suppressed: an empty release breaks no promise
    (whole,) = judge([replace(column, counts=best)], {column.name: [model]}, _whole(best))
    if whole.satisfied[0]:
        return None
    if isinstance(model, Distinct):
        if whole.worst == 0:
            return "the table holds no value, and null counts for none"
        return f"the table holds only {whole.worst:g} value{'' if whole.worst == 1 else 's'}"
    even = "" if suppressible == 0 else ", even if those are suppressed whose absence helps most"
    return f"the table as one single class has {whole.worst:.4g}{even}, and smaller classes do not all do better"


def _too_many(people: Longs, model: Alpha, suppressible: int, members: int) -> str | None:
    """Alpha counts each person once in a class, and such counts do not add up.

    But whoever carries a value does so in one class at least, and the classes have no more members in all than there
    are pairs of a person and a signature.
    """
    most = int(people.max(initial=0) if model.values is None else people[list(model.values)].max(initial=0))
    share = max(0, most - suppressible) / max(1, members)
    if share <= model.alpha + EPSILON:
        return None
    return f"one value is carried by {most:,} persons, and the classes have at most {members:,} members in all"


def _whole(counts: Longs) -> Histograms:
    codes = np.flatnonzero(counts).astype(np.int32)
    start = np.array([0, len(codes)], np.int64)
    return Histograms(1, start, codes, counts[codes].astype(np.int64), np.array([counts.sum()], np.int64))


def level(counts: Longs, budget: int, *, null: int = -1, watched: Sequence[int] | None = None) -> Longs:
    """Take away up to `budget` persons so that the rest is as even as can be: nulls first, then the tallest values.

    The tallest are cut to one common height, which may be a fraction: no real choice is more even than that. The counts
    come multiplied by a scale that makes them whole; the models ask for shares, so that it changes nothing.

    Args:
        counts: Persons of each value.
        budget: How many may go.
        null: Code of null, -1 if there is none.
        watched: Only these values matter; all of them if None.

    >>> level(np.array([9, 4, 5, 1]), 7).tolist()
    [11, 11, 11, 3]
    """
    left = counts.copy()
    if null >= 0:
        gone = min(budget, int(left[null]))
        left[null] -= gone
        budget -= gone
    codes = np.arange(len(left)) if watched is None else np.array(sorted(set(watched)), np.int64)
    if len(codes) == 0 or budget == 0:
        return left
    tall = np.sort(left[codes])[::-1]
    room = np.cumsum(tall) - budget  # what is left of the tallest 1, 2, 3 … together
    if room[-1] <= 0:
        left[codes] = 0
        return left
    below = np.append(tall[1:], 0) * np.arange(1, len(tall) + 1)
    cut = int(np.argmax(room >= below))  # the first number of values whose new height is above the next value
    scale = cut + 1
    left *= scale
    left[codes] = np.minimum(left[codes], room[cut])
    return left


def _unmet_wish(column: Column, persons: int, suppressible: int) -> str | None:
    if column.amounts is None or not column.counts.any():
        return None
    asked = np.unique(column.amounts[column.counts > 0])
    # The most demanding go first: with the largest wish that stays, all those above it are suppressed, each with a row
    # at least. A person may carry several wishes in several signatures: who is suppressed there may stay elsewhere. So
    # no more is known of those who are left than that each is a person and carries a wish that stays.
    above = np.array([column.counts[column.amounts > amount].sum() for amount in asked])
    left = np.minimum(persons, column.counts.sum() - above)
    if ((above <= suppressible) & (asked <= left)).any() or column.counts.sum() <= suppressible:
        return None
    return f"somebody asks for a k of {int(asked[-1]):,}, and the table has {persons:,} persons"
