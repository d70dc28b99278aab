"""`kanon verify`: which question is asked of which table, and how the answer reads."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner

from kanon_spark.cli import verify as command
from kanon_spark.cli.main import app
from kanon_spark.engine.verification import Further
from kanon_spark.verify.facts import Check, ClassFacts, Verdict

FACTS = ClassFacts.of({5: 2}, k=5)
GOOD = Verdict((Check("k", True, "every group has at least 5 rows"),), FACTS, 10, "abc")
BAD = Verdict((Check("k", False, "1 group has fewer than 5 rows"),), FACTS, 10, "abc")


class Asked:
    """What the stand-ins were called with, and what they answer."""

    def __init__(self) -> None:
        self.tables: list[str] = []
        self.questions: list[dict[str, Any]] = []
        self.answer = GOOD


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    seen = Asked()

    def put(module: str, function: str, stand_in: Callable[..., Any], **real: Any) -> None:
        fake = ModuleType(module)
        vars(fake).update({function: stand_in, **real})
        monkeypatch.setitem(sys.modules, module, fake)

    def opened(spark: Any, table: str, **_: Any) -> str:
        seen.tables.append(table)
        return "frame"

    def verdict(*_: Any, **question: Any) -> Verdict:
        seen.questions.append(question)
        return seen.answer

    put("kanon_spark.engine.session", "get_spark", lambda **_: "spark")
    put("kanon_spark.verify.table", "verify_table", verdict)
    put("kanon_spark.engine.verification", "verify_with_config", verdict, Further=Further)
    monkeypatch.setattr(command, "open_table", opened)
    return seen


def manifest(folder: Path, **changes: Any) -> str:
    path = folder / "manifest.json"
    known = {
        "run_id": "r",
        "rows": {"released": 10},
        "content_hash": "abc",
        "columns": {"qi": ["age", "zip"]},
        "privacy": {"k": {"asked": 5, "achieved": 6}},
    }
    path.write_text(json.dumps({**known, **changes}), encoding="utf-8")
    return str(path)


def test_a_table_that_holds_is_0(asked: Asked) -> None:
    result = CliRunner().invoke(
        app, ["verify", "out/t", "--qi", 'age, zip,"a,b"', "--qi", "sex", "--k", "5", "--unit", "p"]
    )
    assert result.exit_code == 0, result.stderr
    assert asked.tables == ["out/t"]
    assert asked.questions == [{"qi": ("age", "zip", "a,b", "sex"), "k": 5, "unit": "p"}]
    assert "passed  k: every group has at least 5 rows" in result.stdout
    assert "10 rows in 2 classes of 5 to 5 rows" in result.stdout


def test_a_table_that_does_not_hold_is_4_even_when_quiet(asked: Asked) -> None:
    asked.answer = BAD
    result = CliRunner().invoke(app, ["verify", "t", "--qi", "age", "--k", "5", "--quiet"])
    assert result.exit_code == 4
    assert "FAILED  k: 1 group" in result.stdout
    last = json.loads(CliRunner().invoke(app, ["verify", "t", "--qi", "age", "--k", "5", "--json"]).stdout)
    assert (last["outcome"], last["exit_code"], last["checks"][0]["passed"]) == ("failed", 4, False)


@pytest.mark.parametrize(
    ("arguments", "missing"), [([], "--qi and --k"), (["--qi", "a"], "--k"), (["--k", "3"], "--qi")]
)
def test_a_question_that_is_not_whole_is_2(asked: Asked, arguments: list[str], missing: str) -> None:
    result = CliRunner().invoke(app, ["verify", "t", *arguments])
    assert result.exit_code == 2
    assert f"{missing} must be given" in result.stderr
    assert asked.tables == []


def test_the_manifest_fills_the_question_and_adds_its_checks(asked: Asked, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["verify", "t", "--manifest", manifest(tmp_path), "--json"])
    assert result.exit_code == 0, result.stderr
    assert asked.questions == [{"qi": ("age", "zip"), "k": 5, "unit": None}]
    assert [check["name"] for check in json.loads(result.stdout)["checks"]] == [
        "k",
        "manifest rows",
        "manifest content",
    ]


MODELS: dict[str, Any] = {
    "l_diversity(ill)": {"model": "l_diversity", "column": "ill", "asked": {"l": 3}, "achieved": 3, "passed": True},
    "alpha(ill)": {"model": "alpha", "column": "ill", "asked": {"alpha": 0.5, "values": ["HIV"]}},
    "delta_disclosure(pay)": {"model": "delta_disclosure", "column": "pay", "asked": 2},
    "t_closeness(ill)": {"model": "t_closeness", "column": "ill", "asked": {"t": 0.2, "distance": "hierarchical"}},
    "personal_k(wish)": {"model": "personal_k", "column": "wish", "asked": "wish"},
    "k_map": {"model": "k_map", "column": None, "asked": 5},
}


def test_the_manifest_says_which_models_the_rows_must_hold(asked: Asked, tmp_path: Path) -> None:
    """What needs hierarchies, a population or persons is left to the content hash; options go before."""
    k = {"k": {"asked": 5, "achieved": 6}}
    told = manifest(tmp_path, privacy={**k, "unit": None, **MODELS})
    assert CliRunner().invoke(app, ["verify", "t", "--manifest", told]).exit_code == 0
    models = asked.questions[0]["asked"].judged
    assert set(models) == {"ill", "pay"}
    assert models["ill"].l_diversity.l == 3
    assert models["ill"].alpha.values == ("HIV",)
    assert models["ill"].t_closeness is None
    assert models["pay"].delta_disclosure == 2
    more = ["--sensitive", "ill", "--l-diversity", "ill=4"]
    assert CliRunner().invoke(app, ["verify", "t", "--manifest", told, *more]).exit_code == 0
    assert asked.questions[1]["asked"].judged["ill"].l_diversity.l == 4
    assert asked.questions[1]["asked"].judged["ill"].alpha.values == ("HIV",)  # what is not named anew stays asked
    by_person = manifest(tmp_path, privacy={**k, "unit": "pid", **MODELS})
    assert CliRunner().invoke(app, ["verify", "t", "--manifest", by_person]).exit_code == 0
    assert "asked" not in asked.questions[2]
    broken = {"l_diversity(ill)": {"model": "l_diversity", "column": "ill", "asked": "many"}}
    result = CliRunner().invoke(app, ["verify", "t", "--manifest", manifest(tmp_path, privacy={**k, **broken})])
    assert result.exit_code == 2
    assert "privacy models cannot be read" in result.stderr


def test_an_option_may_name_its_column(asked: Asked, tmp_path: Path) -> None:
    told = manifest(tmp_path, privacy={"k": {"asked": 5, "achieved": 6}, "unit": None, **MODELS})
    assert CliRunner().invoke(app, ["verify", "t", "--manifest", told, "--l-diversity", "ill=4"]).exit_code == 0
    assert asked.questions[0]["asked"].judged["ill"].l_diversity.l == 4
    plain = ["verify", "t", "--qi", "age", "--k", "5"]
    assert CliRunner().invoke(app, [*plain, "--alpha", "ill=0.3:a=b"]).exit_code == 0
    assert asked.questions[1]["asked"].judged["ill"].alpha.values == ("a=b",)
    nowhere = CliRunner().invoke(app, [*plain, "--alpha", "0.3:a=b"])
    assert nowhere.exit_code == 2
    assert "--alpha COLUMN=0.3:a=b" in nowhere.stderr


@pytest.mark.parametrize("change", [{"rows": {"released": 11}}, {"content_hash": "other"}, {"content_hash": None}])
def test_a_table_that_is_not_the_manifests_is_4(asked: Asked, tmp_path: Path, change: dict[str, Any]) -> None:
    assert CliRunner().invoke(app, ["verify", "t", "--manifest", manifest(tmp_path, **change)]).exit_code == 4


def test_a_missing_manifest_is_2(asked: Asked, tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["verify", "t", "--manifest", str(tmp_path / "no.json")]).exit_code == 2


def test_a_configuration_asks_for_the_whole_proof(asked: Asked, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("columns: {quasi_identifiers: [age]}\n", encoding="utf-8")
    assert CliRunner().invoke(app, ["verify", "t", "--config", str(path)]).exit_code == 0
    (question,) = asked.questions
    assert question == {"table": "frame", "spark": "spark"}


@pytest.mark.parametrize("unit", [None, "pid"])
@pytest.mark.parametrize(
    ("options", "further"),
    [
        (["--k", "9"], Further(k=9)),
        (["--qi", "age,zip"], Further(("age", "zip"), 5)),
        (["--qi", "age,zip", "--k", "3"], Further(("age", "zip"), 3)),
        (["--k", "4"], None),
        (["--qi", "age"], None),
    ],
)
def test_options_ask_more_than_the_configuration(
    asked: Asked, tmp_path: Path, options: list[str], further: Further | None, unit: str | None
) -> None:
    """All of it is asked beside the recoding, where persons are known: never of the table alone."""
    path = tmp_path / "job.yaml"
    privacy = "k: 5" if unit is None else f"k: 5, unit: {unit}"
    path.write_text(f"columns: {{quasi_identifiers: [age]}}\nprivacy: {{{privacy}}}\n", encoding="utf-8")
    result = CliRunner().invoke(app, ["verify", "t", "--config", str(path), "--json", *options])
    assert result.exit_code == 0
    (question,) = asked.questions
    assert question == {"table": "frame", "spark": "spark"} | ({} if further is None else {"further": further})


def test_models_are_asked_beside_the_recoding(asked: Asked, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("columns: {quasi_identifiers: [age]}\nprivacy: {k: 5, unit: pid}\n", encoding="utf-8")
    models = ["--sensitive", "ill", "--l-diversity", "3", "--personal-k", "wish"]
    assert CliRunner().invoke(app, ["verify", "t", "--config", str(path), *models]).exit_code == 0
    (question,) = asked.questions
    further = question["further"]
    assert (further.qi, further.k, further.asked.personal_k) == ((), 5, "wish")
    assert further.asked.judged["ill"].l_diversity.l == 3


@pytest.mark.parametrize(("privacy", "code"), [("k: 5, unit: pid", 0), ("k: 5, unit: other", 2), ("k: 5", 2)])
def test_the_configuration_says_whose_rows_are_counted(asked: Asked, tmp_path: Path, privacy: str, code: int) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(f"columns: {{quasi_identifiers: [age]}}\nprivacy: {{{privacy}}}\n", encoding="utf-8")
    result = CliRunner().invoke(app, ["verify", "t", "--config", str(path), "--unit", "pid"])
    assert result.exit_code == code
    assert ("privacy.unit" in result.stderr) == (code == 2)
    assert len(asked.questions) == (code == 0)


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Notes the sources that would be opened; the release's own facts are not found."""
    seen: list[Any] = []

    class Opened:
        table = "frame"

    def open_source(spark: Any, source: Any, *, base_dir: Path) -> Opened:
        seen.append(source)
        return Opened()

    fake = ModuleType("kanon_spark.io.sources")
    fake.open_source = open_source  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "kanon_spark.io.sources", fake)
    monkeypatch.setattr(command, "_open_release", lambda spark, path: None)
    return seen


@pytest.mark.parametrize(
    ("table", "format", "path", "name"),
    [
        ("out/x", None, "out/x", None),
        ("x.csv", None, "x.csv", None),
        ("x", "csv", "x", None),
        ("db.x", None, None, "db.x"),
    ],
)
def test_a_name_is_a_path_where_it_looks_like_one(
    places: list[Any], table: str, format: str | None, path: str | None, name: str | None
) -> None:
    assert command.open_table("spark", table, format=format, options=["header=true"] if path else []) == "frame"  # type: ignore[arg-type, comparison-overlap]
    (source,) = places
    assert (source.path, source.table) == (path, name)
    assert source.options == ({"header": "true"} if path else {})


def test_wrong_options_are_2(asked: Asked, places: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    from kanon_spark.errors import ConfigError, RequestError

    with pytest.raises(RequestError, match="name=value"):
        command.reader_options(["header"])
    with pytest.raises(ConfigError, match="allowed: parquet"):
        command.open_table("spark", "x", format="parqet", options=[])  # type: ignore[arg-type]


def test_a_release_is_verified_by_those_who_do_not_hold_the_key(
    asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only those who make pseudonyms must: a run without the key is refused."""
    monkeypatch.delenv("KANON_KEY", raising=False)
    config = tmp_path / "job.yaml"
    identifiers = 'identifiers: {ssn: {pseudonym: {key: "${KANON_KEY}"}}}'
    config.write_text(f"columns: {{{identifiers}, quasi_identifiers: [age]}}\n", encoding="utf-8")
    result = CliRunner().invoke(app, ["verify", "out/t", "--config", str(config)])
    assert result.exit_code == 0, result.stderr
    assert len(asked.questions) == 1
    refused = CliRunner().invoke(app, ["run", str(config)])
    assert refused.exit_code == 2
    assert "KANON_KEY is not set" in refused.stderr
