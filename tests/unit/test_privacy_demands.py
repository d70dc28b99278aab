"""What is asked of sensitive columns: from the configuration and the command line to demands, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kanon_spark.cli.asked import hierarchy_files, sensitive_columns
from kanon_spark.config.models import Config, CsvSpec, PrivacySpec, SensitiveSpec
from kanon_spark.errors import RequestError
from kanon_spark.hierarchy.tree import Tree
from kanon_spark.privacy.alpha import Alpha
from kanon_spark.privacy.asked import models_of
from kanon_spark.privacy.base import Model
from kanon_spark.privacy.beta_likeness import BetaLikeness
from kanon_spark.privacy.columns import Column
from kanon_spark.privacy.delta_disclosure import DeltaDisclosure
from kanon_spark.privacy.demands import Demands
from kanon_spark.privacy.feasibility import forced, impossible, impossible_k_map
from kanon_spark.privacy.histograms import histograms_of
from kanon_spark.privacy.judging import judge
from kanon_spark.privacy.l_diversity import Distinct, Entropy, Recursive
from kanon_spark.privacy.personal_k import PersonalK
from kanon_spark.privacy.t_closeness import TCloseness
from kanon_spark.verify.asked import Asked, asked_by, published_names

ILL = Column("ill", np.array([6, 3, 1]))


def achieved(column: Column, model: Model, counts: list[int]) -> float:
    """What one class with these counts has."""
    codes = np.repeat(np.arange(len(counts), dtype=np.int32), counts)[:, None]
    one = histograms_of(np.zeros(len(codes), np.int64), codes, np.ones(len(codes), np.int64), units=1)
    return judge([column], {column.name: [model]}, one)[0].worst


def test_worked_examples_of_the_papers() -> None:
    """Li et al.: salaries 3..11 (thousands); the class {3, 4, 5} is .375 away, {6, 8, 11} is .167."""
    salaries = Column("salary", np.ones(9, np.int64), ordered=True)
    near = TCloseness(0.2, "ordered")
    assert achieved(salaries, near, [1, 1, 1, 0, 0, 0, 0, 0, 0]) == pytest.approx(0.375)
    assert achieved(salaries, near, [0, 0, 0, 1, 0, 1, 0, 0, 1]) == pytest.approx(1 / 6)
    # Machanavajjhala et al.: counts 4, 3, 2, 1 are recursive (2,3)-diverse only if 4 < 2 · (2 + 1).
    assert achieved(Column("ill", np.array([4, 3, 2, 1])), Recursive(2, 3), [4, 3, 2, 1]) == pytest.approx(4 / 3)
    assert achieved(ILL, Entropy(2), [2, 2, 2]) == pytest.approx(3)


def test_a_disease_is_as_far_as_its_lowest_common_ancestor() -> None:
    """Li et al.'s tree of diseases in small: two under each of two organs, both of one system."""
    levels = np.array([[0, 1, 2, 3], [4, 4, 5, 5], [6, 6, 6, 6]], np.int32)
    column = Column("ill", np.array([1, 1, 1, 1]), levels=levels)
    model = TCloseness(0.2, "hierarchical")
    assert achieved(column, model, [1, 0, 1, 0]) == pytest.approx(0.25)  # half of it moves half the way
    assert achieved(column, model, [1, 1, 0, 0]) == pytest.approx(0.5)  # half of it moves the whole way
    tree = Tree.flat(["a", "b"])
    flat = Column.under(tree, "ill", np.array([1, 3]))
    assert achieved(flat, model, [1, 0]) == pytest.approx(0.75)


def test_a_column_goes_before_what_holds_for_all() -> None:
    privacy = PrivacySpec.model_validate(
        {"l_diversity": {"l": 3, "kind": "entropy"}, "t_closeness": 0.3, "delta_disclosure": 2, "beta_likeness": 1}
    )
    own = SensitiveSpec.model_validate(
        {
            "l_diversity": {"l": 2, "kind": "recursive", "c": 3},
            "alpha": {"alpha": 0.4, "values": ["flu", "none"]},
            "beta_likeness": {"beta": 2, "kind": "enhanced"},
        }
    )
    assert models_of(own, privacy, {"flu": 1}) == (
        Recursive(3, 2),
        TCloseness(0.3),
        Alpha(0.4, (1,), unknown=1),
        BetaLikeness(2, "enhanced"),
        DeltaDisclosure(2),
    )
    assert models_of(SensitiveSpec(), privacy, {})[0] == Entropy(3)


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (TCloseness(0.2, "ordered"), "numbers or dates"),
        (TCloseness(0.2, "hierarchical"), "needs a hierarchy"),
        (Alpha(0.2, (3,)), "none of the column's"),
        (PersonalK(), "each person's k"),
    ],
)
def test_models_that_say_nothing_about_a_column_are_refused(model: Model, why: str) -> None:
    with pytest.raises(RequestError, match=why):
        Demands.of([ILL], {"ill": [model]})
    with pytest.raises(RequestError, match="no sensitive column 'pay'"):
        Demands.of([ILL], {"pay": [Distinct(2)]})


def test_what_cannot_be_met_is_explained_without_values() -> None:
    models: list[Model] = [Distinct(4), Entropy(3), Recursive(1, 2), Alpha(0.5), TCloseness(0), BetaLikeness(0.1)]
    said = impossible([ILL], {"ill": models})
    assert [line.split(" cannot be met")[0] for line in said] == [
        "ill: distinct l-diversity (l = 4)",
        "ill: entropy l-diversity (l = 3)",
        "ill: recursive (c,l)-diversity (c = 1, l = 2)",
        "ill: (alpha,k)-anonymity (alpha = 0.5)",
    ]
    assert said[0].endswith("the table holds only 3 values")
    for column, words in (
        (Column("ill", np.array([4])), "only 1 value"),
        (Column("ill", np.array([4]), null=0), "no value, and null counts for none"),
    ):
        assert impossible([column], {"ill": [Distinct(2)]})[0].endswith(f"the table holds {words}")
    assert "the table as one single class has 0.6" in said[3]
    assert impossible([ILL], {"ill": [Alpha(0.5)]}, suppressible=2) == []  # 4 of 8
    assert "even if those are suppressed" in impossible([ILL], {"ill": [Alpha(0.5)]}, suppressible=1)[0]
    assert impossible([ILL], {"ill": [Distinct(4)]}, suppressible=10) == []  # nothing need be released
    wish = Column.personal("own", np.array([2, 9]), np.array([3, 1]))
    assert impossible([wish], {"own": [PersonalK()]}) == [
        "own: personalized k cannot be met: somebody asks for a k of 9, and the table has 4 persons"
    ]
    assert impossible([wish], {"own": [PersonalK()]}, suppressible=1) == []
    assert impossible_k_map(5, 4) == ["k-map with k = 5 cannot be met: the population has 4 persons"]
    assert impossible_k_map(5, 5) == []


def test_persons_in_several_signatures_prove_less_against_alpha() -> None:
    """One person with the first value in six signatures, three others: a class of all four has one of four."""
    often = Column("ill", np.array([6, 3]), people=np.array([1, 3]))
    assert impossible([often], {"ill": [Alpha(0.5)]}, persons=4, members=9) == []
    # Six persons have it, and there are no more than nine members in all classes together.
    many = Column("ill", np.array([6, 3]), people=np.array([6, 3]))
    (said,) = impossible([many], {"ill": [Alpha(0.5)]}, persons=9, members=9)
    assert said.endswith("one value is carried by 6 persons, and the classes have at most 9 members in all")
    assert impossible([many], {"ill": [Alpha(0.5, (1,))]}, persons=9, members=9) == []
    assert impossible([many], {"ill": [Alpha(0.5)]}, persons=9, members=9, suppressible=2) == []


@pytest.mark.parametrize("seed", range(40))
def test_wishes_by_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    amounts, counts = rng.integers(1, 12, 4), rng.integers(0, 4, 4)
    persons, suppressible = int(counts.sum()), int(rng.integers(0, 5))
    wishes = sorted(np.repeat(amounts, counts).tolist())
    met = any(
        not wishes[: persons - gone] or wishes[persons - gone - 1] <= persons - gone
        for gone in range(min(suppressible, persons) + 1)
    )
    column = Column.personal("own", amounts, counts)
    assert (impossible([column], {"own": [PersonalK()]}, suppressible=suppressible) == []) == met


def test_persons_with_several_wishes_prove_less_against_them() -> None:
    """Four carriers of the largest wish may go, and all ten persons may still stand elsewhere with a smaller one."""
    column = Column.personal("own", np.array([5, 8, 20]), np.array([8, 1, 4]))
    asked = {"own": [PersonalK()]}
    assert impossible([column], asked, persons=10, suppressible=4) == []
    assert impossible([column], asked, persons=10, suppressible=3) != []  # somebody with 20 stays
    assert impossible([column], asked, persons=7, suppressible=4) != []  # 8 cannot be had of seven
    many = Column.personal("own", np.array([5, 8, 20]), np.array([6, 1, 4]))
    assert impossible([many], asked, persons=10, suppressible=4) != []  # no more than seven are left to carry a wish


def test_demands_that_leave_hardly_any_class_are_told() -> None:
    models: list[Model] = [TCloseness(0), DeltaDisclosure(1), TCloseness(0.1), Distinct(2)]
    assert forced([ILL], {"ill": models}) == [
        "ill: t-closeness (t = 0, equal distance) leaves a single class: "
        "every class must repeat the release's distribution exactly",
        "ill: delta-disclosure privacy (delta = 1) leaves a single class: "
        "every class must hold every value of the release",
    ]
    twice = Column("ill", np.array([60, 4]))
    assert [line.split(":")[1].strip() for line in forced([twice], {"ill": models})] == [
        "t-closeness (t = 0, equal distance) leaves at most 4 classes",
        "delta-disclosure privacy (delta = 1) leaves at most 4 classes",
    ]
    assert forced([Column("ill", np.zeros(2, np.int64))], {"ill": models}) == []


def test_a_very_small_t_is_told_like_zero() -> None:
    """601, 299 and 100 of a thousand: five hundred persons cannot be divided so to a millionth."""
    column = Column("ill", np.array([601, 299, 100]), ordered=True, levels=np.array([[0, 1, 2], [3, 3, 3]], np.int32))
    for distance in ("equal", "ordered", "hierarchical"):
        assert forced([column], {"ill": [TCloseness(1e-6, distance)]}) == [
            f"ill: t-closeness (t = 1e-06, {distance} distance) leaves a single class: "
            "smaller classes cannot come so near to its distribution"
        ]
        assert forced([column], {"ill": [TCloseness(0.01, distance)]}) == []
    (said,) = forced([column], {"ill": [TCloseness(1e-6)]}, suppressible=1)
    assert "leaves a single class, unless rows are suppressed: " in said
    twice = Column("ill", np.array([602, 398]))
    assert "leaves at most 2 classes" in forced([twice], {"ill": [TCloseness(1e-6)]})[0]
    # Nothing is said where a hierarchy is not at hand, of a single value, or of tables too large to look at.
    assert forced([twice], {"ill": [TCloseness(1e-6, "hierarchical")]}) == []
    assert forced([Column("ill", np.array([7]))], {"ill": [TCloseness(1e-6)]}) == []
    assert forced([Column("ill", np.array([6_000_001, 6_000_000]))], {"ill": [TCloseness(1e-12)]}) == []


def test_values_that_nobody_carries_are_told() -> None:
    spec = SensitiveSpec.model_validate({"alpha": {"alpha": 0.3, "values": ["flu", "HIV", "hiv "]}})
    models = models_of(spec, PrivacySpec(), {"flu": 0, "cold": 1})
    assert models == (Alpha(0.3, (0,), unknown=2),)
    assert forced([ILL], {"ill": models}) == [
        "ill: 2 of the values that alpha names do not occur as they are written, and limit nothing"
    ]
    assert forced([ILL], {"ill": models_of(spec, PrivacySpec(), {"flu": 0, "HIV": 1, "hiv ": 2})}) == []


def test_options_are_read_like_a_configuration() -> None:
    found = sensitive_columns(
        ["ill", "pay"],
        l_diversity=["2", "ill=entropy:3"],
        t_closeness=["pay=0.2:ordered"],
        alpha=["ill=0.3:HIV, flu=A"],
        beta=["1:enhanced"],
        delta=["1.5"],
        hierarchies={"ill": CsvSpec(path="ill.csv")},
    )
    assert found["ill"] == SensitiveSpec.model_validate(
        {
            "l_diversity": {"l": 3, "kind": "entropy"},
            "alpha": {"alpha": 0.3, "values": ["HIV", "flu=A"]},
            "beta_likeness": {"beta": 1, "kind": "enhanced"},
            "delta_disclosure": 1.5,
            "hierarchy": "ill.csv",
        }
    )
    assert found["pay"].l_diversity is not None
    assert (found["pay"].l_diversity.l, found["pay"].alpha, found["pay"].hierarchy) == (2, None, None)
    assert found["pay"].t_closeness is not None
    assert found["pay"].t_closeness.distance == "ordered"
    assert sensitive_columns(["ill"], delta=["pay=1"])["pay"].delta_disclosure == 1  # what an option names is one
    assert Path(hierarchy_files(["ill=a/b.csv"])["ill"].path) == Path.cwd() / "a/b.csv"


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"l_diversity": ["many"]}, "--l-diversity"),
        ({"l_diversity": ["recursive:3"]}, "--l-diversity"),
        ({"l_diversity": ["entropy:2:3"]}, "--l-diversity"),
        ({"l_diversity": ["0"]}, "--l-diversity"),
        ({"l_diversity": ["eager:2"]}, "--l-diversity"),
        ({"t_closeness": ["2"]}, "--t-closeness"),
        ({"t_closeness": ["0.2:near"]}, "--t-closeness"),
        ({"alpha": ["0.5:"]}, "--alpha"),
        ({"beta": ["1:extra"]}, "--beta"),
        ({"delta": ["-1"]}, "--delta"),
        ({"delta": ["pay=much"]}, "--delta"),
    ],
)
def test_options_that_cannot_be_read_are_named(options: dict[str, Any], where: str) -> None:
    with pytest.raises(RequestError) as problem:
        sensitive_columns(["ill"], **options)
    assert problem.value.where == where
    assert problem.value.fix


def test_models_without_a_column_and_files_without_a_name_are_refused() -> None:
    with pytest.raises(RequestError, match="without a sensitive column"):
        sensitive_columns([], alpha=["0.5"])
    with pytest.raises(RequestError, match="COLUMN=FILE"):
        hierarchy_files(["ill.csv"])


def test_a_configuration_asks_for_its_models() -> None:
    config = Config.model_validate(
        {
            "columns": {
                "quasi_identifiers": {"age": "age.csv", "zip": {}},
                "sensitive": {"ill": {"l_diversity": 4}, "pay": {}},
            },
            "privacy": {"l_diversity": 2, "personal_k": "own", "k_map": {"k": 9, "path": "people.parquet"}},
            "output": {"numeric": "bounds"},
        }
    )
    people: Any = "people"
    known = asked_by(config, base_dir=Path("job"), population=people).population
    assert known is not None
    assert (known.table, known.k, list(known.hierarchies)) == ("people", 9, ["age"])
    asked = asked_by(config, base_dir=Path("job"))
    assert [spec.l_diversity.l for spec in asked.sensitive.values() if spec.l_diversity] == [4, 2]
    assert (asked.personal_k, asked.population, bool(asked)) == ("own", None, True)
    assert not Asked({"ill": SensitiveSpec()})
    assert published_names(config, ["age", "age_lo", "age_hi", "zip", "ill"]) == ("age", "age_lo", "age_hi", "zip")
