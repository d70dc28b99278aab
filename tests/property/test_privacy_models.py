"""Privacy models against literal twins: kernels, batches, unions, and demands that cannot be met."""

import math
from itertools import chain, combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from privacy_twins import World, column_models, guesses, holds, literal, worlds

from kanon_spark.privacy.alpha import Alpha
from kanon_spark.privacy.base import Model
from kanon_spark.privacy.columns import Column
from kanon_spark.privacy.demands import (
    Demands,
    achieved,
    all_achieved,
    all_satisfy,
    meets,
    members_satisfy,
    satisfies,
)
from kanon_spark.privacy.feasibility import forced, impossible, level
from kanon_spark.privacy.histograms import histograms_of, merge, new_scratch
from kanon_spark.privacy.judging import judge
from kanon_spark.privacy.k_map import Cover, fitting_persons
from kanon_spark.privacy.l_diversity import Distinct, Entropy, Recursive
from kanon_spark.privacy.personal_k import PersonalK
from kanon_spark.privacy.t_closeness import TCloseness

EXAMPLES = settings(max_examples=100, deadline=None)  # the first example compiles

HARD: list[Model] = [
    Distinct(2),
    Distinct(3),
    Entropy(1.9),
    Entropy(2.6),
    Recursive(1, 2),
    Recursive(0.6, 2),
    Recursive(2, 3),
    Alpha(0.3),
    Alpha(0.5),
    Alpha(0.2, (0, 1)),
    Alpha(0.0, (0,)),
]


def asked_of(world: World) -> dict[str, list[Model]]:
    return {column.name: column_models(column) for column in world.columns}


@EXAMPLES
@given(worlds())
def test_every_model_is_its_definition(world: World) -> None:
    for found in judge(world.columns, asked_of(world), world.histograms):
        j = [column.name for column in world.columns].index(found.column)
        wanted = [literal(found.model, world.columns[j], counts) for counts in world.dense(j)]
        assert found.achieved == pytest.approx(wanted, abs=1e-8), found.model.words
        assert found.satisfied.tolist() == [holds(found.model, value) for value in wanted], found.model.words
        assert found.failing == sum(not holds(found.model, value) for value in wanted)
        rising = isinstance(found.model, Distinct | Entropy)
        assert found.worst == pytest.approx(min(wanted) if rising else max(wanted), abs=1e-8)


@EXAMPLES
@given(worlds())
def test_sparse_and_dense_histograms_say_the_same(world: World) -> None:
    demands = Demands.of(world.columns, asked_of(world))
    sparse = all_achieved(demands, world.histograms)
    for d, j in enumerate(demands.column.tolist()):
        every = np.arange(world.columns[j].size, dtype=np.int32)
        for c, counts in enumerate(world.dense(j)):
            assert achieved(demands, d, every, counts, int(counts.sum())) == pytest.approx(sparse[c, d], abs=1e-9)


@EXAMPLES
@given(worlds())
def test_one_class_at_a_time_and_all_at_once_are_the_same(world: World) -> None:
    """Also where a class is put together from its members, as a method would when it closes it."""
    models = asked_of(world)
    demands = Demands.of(world.columns, models)
    together = world.histograms
    ones = np.ones(len(world.class_of), np.int64)
    rows = histograms_of(np.arange(len(ones)), world.codes, ones, units=len(ones))
    merged = merge(rows, world.class_of, classes=world.classes)
    assert all(np.array_equal(left, right) for left, right in zip(merged, together, strict=True))

    all_good = np.logical_and.reduce([found.satisfied for found in judge(world.columns, models, together)])
    assert all_satisfy(demands, together).tolist() == all_good.tolist()
    scratch = new_scratch(demands.base)
    values = all_achieved(demands, together)
    for c in range(world.classes):
        place = together.start[2 * c : 2 * c + 3]
        good = satisfies(demands, place, together.values, together.counts, together.persons[c])
        assert good == all_good[c] == all(meets(demands, d, values[c, d]) for d in range(len(demands.code)))
        assert members_satisfy(demands, rows, np.flatnonzero(world.class_of == c), scratch) == good
        assert not scratch.tally.any()
        assert not scratch.marked.any()


@EXAMPLES
@given(worlds())
def test_unions_of_satisfying_classes_satisfy(world: World) -> None:
    """So does, as the last union, the whole table: what it breaks cannot be met at all."""
    models = asked_of(world)
    apart = judge(world.columns, models, world.histograms)
    for found in apart:
        assert found.model.union_safe
        good = np.flatnonzero(found.satisfied)
        for size in range(2, len(good) + 1):
            into = np.full(world.classes, -1)
            into[good[:size]] = 0
            union = merge(world.histograms, into, classes=1)
            (whole,) = judge(
                [column for column in world.columns if column.name == found.column],
                {found.column: [found.model]},
                one_column(union, [column.name for column in world.columns].index(found.column)),
            )
            assert whole.satisfied[0], found.model.words


def one_column(histograms, j: int):  # type: ignore[no-untyped-def]
    """A single unit's histogram of column j alone."""
    a, b = histograms.start[j], histograms.start[j + 1]
    return histograms._replace(
        columns=1,
        start=np.array([0, b - a]),
        values=histograms.values[a:b],
        counts=histograms.counts[a:b],
    )


@EXAMPLES
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(1, 4), st.integers(1, 4))
def test_no_guess_of_the_nulls_is_worse_than_the_one_that_counts(counts: list[int], nulls: int, l: int) -> None:  # noqa: E741
    column = Column("ill", np.array([*counts, nulls]), null=len(counts))
    models: list[Model] = [Entropy(2), Recursive(1, l)]
    here = histograms_of(
        np.zeros(column.counts.sum(), np.int64),
        np.repeat(np.arange(column.size), column.counts)[:, None].astype(np.int32),
        np.ones(column.counts.sum(), np.int64),
        units=1,
    )
    least, most = (found.worst for found in judge([column], {"ill": models}, here))
    for guess in guesses(counts, nulls):
        whole = Column("ill", np.array(guess))
        assert literal(models[0], whole, whole.counts) >= least - 1e-9
        assert literal(models[1], whole, whole.counts) <= most + 1e-9


@EXAMPLES
@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=4),
    st.integers(0, 4),
    st.integers(-1, 3),
    st.sampled_from(HARD),
)
def test_what_is_called_impossible_is_so(counts: list[int], budget: int, null: int, model: Model) -> None:
    """Whoever is suppressed. Without suppression nothing that is impossible goes unnoticed."""
    assume(null < len(counts) and sum(counts) > 0)
    assume(not isinstance(model, Alpha) or model.values is None or max(model.values) < len(counts))
    column = Column("ill", np.array(counts), null=null)
    said = impossible([column], {"ill": [model]}, suppressible=budget)
    possible = False
    for left in product(*(range(count + 1) for count in counts)):
        if 0 < sum(left) >= sum(counts) - budget:
            rest = Column("ill", np.array(left), null=null)
            possible |= holds(model, literal(model, rest, rest.counts))
    if sum(counts) <= budget:
        possible = True  # an empty release breaks no promise
    assert not (said and possible)
    if budget == 0:
        assert bool(said) == (not possible)


@EXAMPLES
@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), st.integers(0, 20))
def test_levelling_takes_exactly_the_budget_from_the_tallest(counts: list[int], budget: int) -> None:
    before = np.array(counts)
    left = level(before, budget)

    def is_level(scale: int) -> bool:
        cut = left < before * scale
        return (
            left.sum() == max(0, before.sum() - budget) * scale
            and bool((left <= before * scale).all())
            and len(set(left[cut].tolist())) <= 1  # all that were cut are equally tall
            and (not cut.any() or left.max() == left[cut][0])
        )

    # The counts come multiplied by how many values were cut, which makes a common height whole.
    assert any(is_level(scale) for scale in range(1, len(counts) + 1))


@EXAMPLES
@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=3), st.integers(0, 6))
def test_personal_k_is_the_largest_wish_of_a_class(wishes: list[list[int]], suppressible: int) -> None:
    amounts = np.array([1, 2, 3, 9])
    unit = np.repeat(np.arange(len(wishes)), [len(each) for each in wishes])
    codes = np.array([code for each in wishes for code in each], np.int32)[:, None]
    column = Column.personal("own_k", amounts, np.bincount(codes[:, 0], minlength=4).astype(np.int64))
    classes = histograms_of(unit, codes, np.ones(len(unit), np.int64), units=len(wishes))
    (found,) = judge([column], {"own_k": [PersonalK()]}, classes)
    assert found.satisfied.tolist() == [len(each) >= max(amounts[each]) for each in wishes]
    falling = sorted(amounts[codes[:, 0]].tolist(), reverse=True)
    tried = range(min(suppressible, len(falling)) + 1)
    possible = any(not falling[gone:] or falling[gone] <= len(falling) - gone for gone in tried)
    assert bool(impossible([column], {"own_k": [PersonalK()]}, suppressible=suppressible)) == (not possible)


@EXAMPLES
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=10),
    st.integers(0, 6),
)
def test_no_wish_of_persons_in_several_signatures_is_refused_that_can_be_met(
    rows: list[tuple[int, int, int]], suppressible: int
) -> None:
    """Rows of person, signature and wish: every choice of signatures to suppress, what is left as one class."""
    amounts = np.array([1, 2, 3, 5])
    counts = np.bincount([wish for _, _, wish in set(rows)], minlength=4).astype(np.int64)
    column = Column.personal("own_k", amounts, counts)
    signatures = sorted({signature for _, signature, _ in rows})
    possible = False
    for gone in chain.from_iterable(combinations(signatures, number) for number in range(len(signatures) + 1)):
        left = [row for row in rows if row[1] not in gone]
        if len(rows) - len(left) <= suppressible:
            persons = {person for person, _, _ in left}
            possible |= not left or len(persons) >= max(amounts[wish] for _, _, wish in left)
    everybody = len({person for person, _, _ in rows})
    said = impossible([column], {"own_k": [PersonalK()]}, suppressible=suppressible, persons=everybody)
    assert not (said and possible)
    if suppressible == 0:
        assert bool(said) == (not possible)


@EXAMPLES
@given(st.data())
def test_a_t_that_is_called_as_good_as_zero_leaves_no_more_classes(data: st.DataObject) -> None:
    """Every class that could be formed of a small table: none within t is smaller than one that repeats the table."""
    counts = np.array(data.draw(st.lists(st.integers(0, 5), min_size=2, max_size=4)))
    assume(counts.sum() > 0)
    codes = np.arange(len(counts), dtype=np.int32)
    levels = np.stack([codes, len(counts) + codes // 2, np.full_like(codes, 2 * len(counts))])
    column = Column("ill", counts, ordered=True, levels=levels)
    distance = data.draw(st.sampled_from(["equal", "ordered", "hierarchical"]))
    model = TCloseness(data.draw(st.sampled_from([1e-6, 0.003, 0.01, 0.03, 0.1])), distance)
    classes = [np.array(each) for each in product(*(range(count + 1) for count in counts)) if sum(each) > 0]
    near = [each for each in classes if 2 * each.sum() <= counts.sum() and holds(model, literal(model, column, each))]
    least = min((int(each.sum()) for each in near), default=int(counts.sum()))
    most = int(np.gcd.reduce(counts[counts > 0]))
    said = forced([column], {"ill": [model]})
    if said:
        assert int(counts.sum()) // least <= most
        assert ("a single class" if most == 1 else f"at most {most} classes") in said[0]
    if np.count_nonzero(counts) > 1 and model.t == 1e-6:
        assert said


@EXAMPLES
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_k_map_counts_the_population_that_a_tuple_covers(seed: int, stop: int) -> None:
    rng = np.random.default_rng(seed)
    members = [sorted(set(rng.integers(0, 6, 3).tolist())) for _ in range(5)]  # codes that each label covers
    stretches = [runs(label) for label in members]
    cover = Cover(
        np.cumsum([0, *map(len, stretches)]),
        np.array([low for label in stretches for low, _ in label], np.int32),
        np.array([high for label in stretches for _, high in label], np.int32),
    )
    labels = rng.integers(0, 5, (4, 2)).astype(np.int32)
    codes, persons = rng.integers(0, 6, (12, 2)).astype(np.int32), rng.integers(1, 3, 12)
    wanted = [
        sum(int(n) for x, n in zip(codes, persons, strict=True) if all(x[j] in members[label[j]] for j in (0, 1)))
        for label in labels
    ]
    assert fitting_persons(labels, cover, codes, persons).tolist() == wanted
    early = fitting_persons(labels, cover, codes, persons, stop=stop)
    assert (early >= stop).tolist() == [count >= stop for count in wanted]


def runs(codes: list[int]) -> list[tuple[int, int]]:
    breaks = [0, *(i + 1 for i, (a, b) in enumerate(pairwise(codes)) if b > a + 1), len(codes)]
    return [(codes[a], codes[b - 1] + 1) for a, b in pairwise(breaks)]


def test_a_class_without_persons_satisfies_nothing() -> None:
    column = Column("ill", np.array([3, 2]), ordered=True, levels=np.array([[0, 1], [2, 2]], np.int32))
    demands = Demands.of([column], {"ill": column_models(column)})
    nobody = np.zeros(1, np.int64)
    for d in range(len(demands.code)):
        assert not meets(demands, d, achieved(demands, d, np.zeros(1, np.int32), nobody, 0))
    assert math.isnan(
        judge(
            [column], {"ill": [Distinct(2)]}, histograms_of(nobody[:0], np.zeros((0, 1), np.int32), nobody[:0], units=0)
        )[0].worst
    )
