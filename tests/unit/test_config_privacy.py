"""Privacy models in a configuration: their forms, what they need, and how a column goes before the general."""

from typing import Any

import pytest

from kanon_spark.config.loader import load_config
from kanon_spark.config.models import Config
from kanon_spark.config.roles import assign_roles
from kanon_spark.config.schema import config_schema
from kanon_spark.errors import ConfigError


def config(*, privacy: Any = None, sensitive: Any = ("ill",), **more: Any) -> dict[str, Any]:
    columns = {
        "quasi_identifiers": ["age"],
        "sensitive": list(sensitive) if isinstance(sensitive, tuple) else sensitive,
    }
    return {"columns": columns, "privacy": privacy or {}, **more}


def problems_of(raw: dict[str, Any], **options: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(raw, **options)
    assert caught.value.exit_code == 2
    return str(caught.value)


FORMS: dict[str, list[Any]] = {
    "l_diversity": [3, {"l": 2, "kind": "entropy"}, {"l": 3, "kind": "recursive", "c": 2}],
    "t_closeness": [0.2, {"t": 0.1, "distance": "ordered"}],
    "alpha": [0.5, {"alpha": 0.3, "values": ["HIV"]}],
    "beta_likeness": [1, {"beta": 2, "kind": "enhanced"}],
    "delta_disclosure": [1.5],
    "personal_k": ["wish", {"column": "wish"}, {"rule": "CASE WHEN age < 18 THEN 20 END"}],
    "k_map": [{"k": 5, "path": "people.parquet"}, {"k": 5, "table": "people"}],
}


@pytest.mark.parametrize(("key", "form"), [(key, form) for key, forms in FORMS.items() for form in forms])
def test_every_model_is_read_and_written_back(key: str, form: Any) -> None:
    read = load_config(config(privacy={key: form})).config
    assert getattr(read.privacy, key) is not None
    assert load_config(read).config == read
    assert Config.model_validate(read.to_dict()) == read


@pytest.mark.parametrize("key", [key for key in FORMS if key not in ("personal_k", "k_map")])
def test_every_model_may_stand_under_its_column(key: str) -> None:
    form = FORMS[key][-1]
    read = load_config(config(sensitive={"ill": {key: form}, "pay": None})).config
    assert getattr(read.columns.sensitive["ill"], key) is not None
    assert getattr(read.columns.sensitive["pay"], key) is None
    assert load_config(read).config == read
    assert f"privacy.{key}\n    no sensitive column is named" in problems_of(config(privacy={key: form}, sensitive=()))


@pytest.mark.parametrize(
    ("privacy", "message"),
    [
        ({"l_diversity": 0.5}, "privacy.l_diversity.l\n    must be at least 1 (found 0.5)"),
        ({"l_diversity": {"l": 3, "kind": "recursive"}}, "privacy.l_diversity\n    recursive l-diversity needs c"),
        ({"l_diversity": {"l": 3, "c": 2}}, "privacy.l_diversity\n    c belongs to kind: recursive"),
        ({"l_diversity": {"l": 3, "kind": "entropic"}}, "did you mean 'entropy'?"),
        ({"t_closeness": 1.5}, "privacy.t_closeness.t\n    must be at most 1 (found 1.5)"),
        ({"t_closeness": {"t": 0.2, "distance": "hierarchical"}}, "the sensitive column 'ill' has none"),
        ({"alpha": 0}, "privacy.alpha.alpha\n    must be larger than 0 (found 0)"),
        ({"alpha": {"alpha": 0.5, "values": []}}, "privacy.alpha.values\n    needs at least 1 item"),
        ({"alpha": {"alpha": 0.5, "values": ["a", "a"]}}, "a value stands here twice"),
        ({"alpha": {"alpha": 0.5, "values": [1]}}, "a text is expected"),
        ({"beta_likeness": 0}, "must be larger than 0"),
        ({"delta_disclosure": True}, "a number is expected, not true or false"),
        ({"personal_k": {}}, "either a column or a rule must be given, none was"),
        ({"personal_k": {"column": "a", "rule": "b"}}, "either a column or a rule must be given, both were"),
        ({"personal_k": "pid", "unit": "pid"}, "the column of the person cannot say"),
        ({"k_map": {"k": 5}}, "a path or a table, none was given"),
        ({"k_map": {"k": 5, "path": "a", "table": "b"}}, "a path or a table, both were given"),
        ({"k_map": {"k": 1, "path": "a"}}, "privacy.k_map.k\n    must be at least 2"),
    ],
)
def test_wrong_models_say_where_and_why(privacy: dict[str, Any], message: str) -> None:
    assert message in problems_of(config(privacy=privacy))


def test_distances_by_a_hierarchy_need_one_of_words() -> None:
    near = {"t": 0.2, "distance": "hierarchical"}
    text = problems_of(
        config(
            sensitive={
                "ill": {"t_closeness": near},
                "pay": {"t_closeness": near, "hierarchy": {"interval": {"widths": [10]}}},
                "day": {"t_closeness": {"t": 0.2, "distance": "ordered"}},
                "icd": {"hierarchy": {"prefix": {"keep": [1]}}},
            },
            privacy={"t_closeness": near},
        )
    )
    assert "2 problems" in text
    assert "columns.sensitive.ill.t_closeness\n    the hierarchical distance needs a hierarchy" in text
    assert "columns.sensitive.pay.hierarchy\n    the hierarchical distance is for words and codes" in text


def test_all_problems_of_models_come_in_one_pass() -> None:
    text = problems_of(
        config(
            privacy={"alpha": 2, "delta_disclosure": 1, "k_map": {"k": 2, "path": "p"}, "personal_k": "wish"},
            sensitive=(),
            method={"name": "kactus", "target": "age2", "numeric": "mean"},
            sink={"path": "out", "partition_by": ["wish"]},
        )
    )
    assert "4 problems" in text
    for path in ("privacy.alpha.alpha", "privacy.delta_disclosure", "privacy.k_map", "privacy.personal_k"):
        assert f"  {path}\n" in text


def test_overrides_reach_into_the_short_forms() -> None:
    read = load_config(
        config(privacy={"l_diversity": 2, "personal_k": "wish"}, sensitive={"ill": {"alpha": 0.5}}),
        overrides=[
            "privacy.l_diversity.kind=entropy",
            "columns.sensitive.ill.alpha.values=[HIV]",
            "privacy.personal_k={rule: '7'}",
        ],
    ).config
    assert read.privacy.l_diversity is not None
    assert (read.privacy.l_diversity.l, read.privacy.l_diversity.kind) == (2, "entropy")
    alpha = read.columns.sensitive["ill"].alpha
    assert alpha is not None
    assert (alpha.alpha, alpha.values) == (0.5, ("HIV",))
    assert read.privacy.personal_k is not None
    assert read.privacy.personal_k.words == "rule"


def test_the_wishes_are_not_published_unless_they_have_a_role() -> None:
    table = ["age", "ill", "wish", "note"]
    base = {"quasi_identifiers": ["age"], "sensitive": ["ill"], "other": "keep"}
    roles = assign_roles(Config.model_validate({"columns": base, "privacy": {"personal_k": "wish"}}), table)
    assert (roles.kept, roles.dropped, roles.without_role) == (("ill", "note"), ("wish",), ())
    named = {**base, "sensitive": ["ill", "wish"]}
    roles = assign_roles(Config.model_validate({"columns": named, "privacy": {"personal_k": "wish"}}), table)
    assert (roles.kept, roles.dropped) == (("ill", "wish", "note"), ())
    absent = assign_roles(Config.model_validate({"columns": base, "privacy": {"personal_k": "k"}}), table)
    assert absent.missing == ("k",)


def test_editors_know_the_short_forms() -> None:
    definitions = config_schema()["$defs"]
    assert definitions["PersonalKSpec"]["anyOf"][0] == {"type": "string", "minLength": 1}
    assert definitions["LDiversitySpec"]["anyOf"][0] == {"type": "number"}
