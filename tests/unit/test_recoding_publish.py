"""What classes publish: nodes, ranges, sets, null and `*`."""

from dataclasses import replace

import numpy as np
import pytest

from kanon_spark.hierarchy.build import build_tree
from kanon_spark.hierarchy.tree import Domain
from kanon_spark.kernels.problem import Forest, Problem
from kanon_spark.recoding.publish import Published, publish, set_label
from kanon_spark.signatures.codebook import Codebook, QiColumn
from kanon_spark.signatures.forms import Form


def column(name: str, kind: str, texts: list[str], positions: list[float], *, null: bool) -> QiColumn:
    """A QI without a hierarchy over these values."""
    domain = Domain(kind, tuple(texts), np.array(positions, float), np.ones(len(texts), np.int64), null)  # type: ignore[arg-type]
    return QiColumn(
        name=name,
        kind=domain.kind,
        weight=1.0,
        tree=build_tree(None, domain, qi=name),
        publish="set" if kind == "text" else "range",
        texts=(*texts, None) if null else tuple(texts),
        positions=np.append(positions, np.nan) if null else np.array(positions, float),
        static=False,
    )


def published(one: QiColumn, codes: list[int], class_of: list[int]) -> tuple[list[object], list[float]]:
    out = everything(one, codes, class_of)
    return out.labels[0].tolist(), out.losses[0].tolist()


def everything(one: QiColumn, codes: list[int], class_of: list[int], rows: list[int] | None = None) -> Published:
    codebook = Codebook((one,))
    forest = Forest.of([one.tree], np.ones(1), [np.ones(one.tree.leaves, bool)])
    compact = forest.encode(np.array(codes, np.int32).reshape(-1, 1))
    weights = np.ones(len(codes), np.int64) if rows is None else np.array(rows, np.int64)
    problem = Problem(forest, np.asfortranarray(compact), weights, weights, 1)
    return publish(problem, np.array(class_of, np.int32), codebook)


def test_a_range_runs_from_the_least_to_the_largest_value_of_the_class() -> None:
    age = column("age", "integer", ["20", "30", "40", "60"], [20, 30, 40, 60], null=False)
    labels, losses = published(age, [0, 1, 2, 3], [0, 0, 1, 1])
    assert labels == ["[20, 30]", "[20, 30]", "[40, 60]", "[40, 60]"]
    assert losses == pytest.approx([0.25, 0.25, 0.5, 0.5])


def test_one_value_stays_as_it_is_at_no_cost() -> None:
    age = column("age", "integer", ["20", "30"], [20, 30], null=False)
    assert published(age, [0, 1], [0, 1]) == (["20", "30"], [0.0, 0.0])


def test_null_alone_stays_null_and_null_among_values_is_a_star_at_full_cost() -> None:
    age = column("age", "integer", ["20", "30"], [20, 30], null=True)
    labels, losses = published(age, [0, 1, 2], [0, 0, 1])
    assert (labels[2], losses[2]) == (None, 0.0)
    labels, losses = published(age, [0, 1, 2], [0, 1, 1])
    assert (labels, losses) == (["20", "*", "*"], [0.0, 1.0, 1.0])


def test_a_set_lists_the_values_of_the_class_and_costs_their_share() -> None:
    job = column("job", "text", ["nurse", "baker", "smith", "clerk"], [np.nan] * 4, null=False)
    labels, losses = published(job, [0, 1, 2, 3], [0, 0, 1, 1])
    assert labels == ["{baker, nurse}", "{baker, nurse}", "{clerk, smith}", "{clerk, smith}"]
    assert losses == pytest.approx([0.5] * 4)


def test_a_signature_without_a_class_publishes_a_star() -> None:
    job = column("job", "text", ["a", "b", "c"], [np.nan] * 3, null=False)
    labels, losses = published(job, [0, 1, 2], [0, 0, -1])
    assert (labels[2], losses[2]) == ("*", 1.0)


@pytest.mark.parametrize(
    ("values", "label"),
    [
        (["b", "a"], "{a, b}"),
        (["a, b", "c"], '{"a, b", c}'),
        (['say "x"', "y"], '{"say \\"x\\"", y}'),
        (["{x}", "y"], '{y, "{x}"}'),
        (["", "y"], '{"", y}'),
        (["ü", "z"], "{z, ü}"),
    ],
)
def test_set_members_that_could_be_misread_are_quoted(values: list[str], label: str) -> None:
    assert set_label(values) == label


AGES = column("age", "integer", ["21", "28", "33", "90"], [21, 28, 33, 90], null=True)


def test_a_grid_widens_ranges_and_charges_what_they_became() -> None:
    labels, losses = published(replace(AGES, form=Form(grid=True)), [0, 1, 2, 3, 4], [0, 0, 1, 1, 2])
    assert labels == ["[20, 30]", "[20, 30]", "[0, 100]", "[0, 100]", None]
    assert losses == pytest.approx([10 / 69, 10 / 69, 1, 1, 0])


def test_bounds_are_the_published_ends() -> None:
    form = Form(grid=True, numbers=("lo", "hi"))
    out = everything(replace(AGES, form=form), [0, 1, 2, 3, 4, 2], [0, 0, 1, 2, 2, -1])
    assert out.labels[0].tolist() == ["[20, 30]", "[20, 30]", "33", "*", "*", "*"]
    nan = np.nan
    np.testing.assert_array_equal(out.numbers["lo_0"], [20, 20, 33, nan, nan, nan])
    np.testing.assert_array_equal(out.numbers["hi_0"], [30, 30, 33, nan, nan, nan])


def test_means_weigh_rows() -> None:
    out = everything(
        replace(AGES, form=Form(numbers=("mean",))), [0, 1, 2, 3, 4, 2], [0, 0, 1, 2, 2, -1], [1, 6, 2, 1, 1, 1]
    )
    nan = np.nan
    np.testing.assert_array_equal(out.numbers["mean_0"], [27, 27, 33, nan, nan, nan])


@pytest.mark.parametrize("numbers", [("lo", "hi"), ("mean",)])
def test_no_class_at_all_has_no_numbers(numbers: tuple[str, ...]) -> None:
    out = everything(replace(AGES, form=Form(numbers=numbers)), [0, 1], [-1, -1])
    assert all(np.isnan(values).all() for values in out.numbers.values())


def test_arrays_travel_as_json() -> None:
    job = replace(column("job", "text", ["b", 'a "x"', "c"], [np.nan] * 3, null=True), form=Form(members=True))
    labels, losses = published(job, [0, 1, 2, 3, 2], [0, 0, 1, 2, -1])
    assert labels == ['["a \\"x\\"", "b"]', '["a \\"x\\"", "b"]', '["c"]', None, '["*"]']
    assert losses == pytest.approx([2 / 3, 2 / 3, 0, 0, 1])
    assert published(job, [2, 3], [0, 0])[0] == ['["*"]'] * 2
