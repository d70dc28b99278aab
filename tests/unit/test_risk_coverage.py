"""Labels as an attacker reads them: by their shape, or by what a configuration says of them."""

from pathlib import Path

import pytest
from pyspark.sql import types as T

from kanon_spark.config.loader import load_config
from kanon_spark.errors import MissingInputError
from kanon_spark.risk import coverage as room
from kanon_spark.risk import readings_by_config, readings_by_shape
from kanon_spark.risk.coverage import Coverage, Reading

DAY = "2024-03-05"
# kind, value, labels that cover it, labels that do not
SHAPES = [
    ("integer", "17", ["17", "17.0", "[10, 19]", "[15-19]", "< 20", ">= 17"], ["18", "[18, 20]", "[10, 17)", "young"]),
    ("integer", "17", ["1*", "{16, 17}", "*", "?"], ["2*", "{7}", "[18-20]"]),
    ("text", "017", ["017", "[10, 19]", "01*", "{017, 018}"], ["17", "17.0", "0", "[18-20]", "17*"]),
    ("text", DAY, ["2024", "2024-Q1", "2024-03", "2020s", "[2024-01-01, 2024-12-31]"], ["2023", "2024-Q2", "03"]),
    ("date", DAY, [DAY, "2020s", "[2024-03-01, 2024-03-31]", "2024-*"], ["[2024-03-06, 2024-03-31]", "2025"]),
    ("timestamp", f"{DAY} 10:00:00", [DAY, f"[{DAY} 09:00:00, {DAY} 10:00:00]"], ["2024-03-06", "2024-02"]),
    ("boolean", "true", ["true", "{false, true}", "*"], ["false", "1"]),
]


@pytest.mark.parametrize(("kind", "raw", "covering", "others"), SHAPES)
def test_labels_are_read_by_their_shape(kind: str, raw: str, covering: list[str], others: list[str]) -> None:
    coverage = Coverage(Reading(kind, stars=frozenset("*?")), [raw, None])
    for label in covering:
        assert coverage.row(label).tolist() == [True, label in {"*", "?"}], label
    for label in [*others, None]:
        assert coverage.row(label).tolist() == [False, label is None], label


def test_a_question_mark_is_a_value_where_the_original_has_it() -> None:
    coverage = Coverage(Reading("text"), ["?", "a"])
    assert coverage.row("?").tolist() == [True, False]


def test_arrays_are_sets() -> None:
    coverage = Coverage(Reading("text", members=True), ["a", "b", None])
    assert coverage.row('["a", "c"]').tolist() == [True, False, False]
    assert coverage.row('["*"]').tolist() == [True, True, True]
    assert coverage.row(None).tolist() == [False, False, True]


def test_answers_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_KEPT", 2)
    coverage = Coverage(Reading("integer"), ["1", "5"])
    assert [coverage.row(f"[{low}, 4]").tolist() for low in range(4)] == [[low < 2, False] for low in range(4)]
    assert len(coverage._known) <= 2


def test_readings_follow_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "jobs.csv"
    file.write_text("nurse;medical;*\nclerk;office;*\n", encoding="utf-8")
    columns = {
        "quasi_identifiers": {
            "job": str(file),
            "age": {},
            "tag": {},
            "day": {"hierarchy": {"date": {"levels": ["year"]}}},
        }
    }
    loaded = load_config({"columns": columns, "output": {"sets": "array"}, "method": "lattice"})
    raw = {"job": T.StringType(), "age": T.IntegerType(), "tag": T.StringType(), "day": T.DateType()}
    found = readings_by_config(raw, loaded)
    assert Coverage(found["job"], ["nurse", "clerk"]).row("medical").tolist() == [True, False]
    assert Coverage(found["day"], ["2024-03-05", "2023-03-05"]).row("2024").tolist() == [True, False]
    assert Coverage(found["tag"], ["a", "b"]).row('["a"]').tolist() == [True, False]
    assert (found["age"].spans, found["job"].spans) == (True, False)
    assert found["job"].stars == {"*"}
    assert list(readings_by_config({"age": T.IntegerType()}, loaded)) == ["age"]
    file.unlink()
    with pytest.raises(MissingInputError, match=r"jobs\.csv"):
        readings_by_config(raw, loaded)


def test_a_method_that_writes_a_question_mark_means_a_star(tmp_path: Path) -> None:
    loaded = load_config(
        {"columns": {"quasi_identifiers": ["age"], "sensitive": ["ill"]}, "method": {"name": "kactus", "target": "ill"}}
    )
    assert readings_by_config({"age": T.IntegerType()}, loaded)["age"].stars == {"*", "?"}


def test_behind_a_mean_any_number_may_stand() -> None:
    coverage = Coverage(Reading("integer", stars=frozenset("*?"), mean=True), ["37", "38", None])
    for label in ("37.5", "37", "-1e3"):
        assert coverage.row(label).tolist() == [True, True, False], label
    assert coverage.row("?").tolist() == [True, True, True]
    assert coverage.row(None).tolist() == [False, False, True]
    assert coverage.row("nan").tolist() == coverage.row("many").tolist() == [False, False, False]


def test_a_configuration_tells_which_columns_are_means() -> None:
    columns = {"quasi_identifiers": {"age": {}, "job": {}, "day": {}}, "sensitive": ["ill"]}
    loaded = load_config({"columns": columns, "method": {"name": "kactus", "target": "ill", "numeric": "mean"}})
    found = readings_by_config({"age": T.IntegerType(), "job": T.StringType(), "day": T.DateType()}, loaded)
    assert {name: reading.mean for name, reading in found.items()} == {"age": True, "job": False, "day": False}


def test_what_is_remembered_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_KEPT_BYTES", 1_000)
    coverage = Coverage(Reading("integer"), [str(number) for number in range(1_600)])  # 200 bytes an answer
    for low in range(50):
        assert coverage.row(f"[{low}, 4000]").sum() == 1_600 - low
        assert len(coverage._known) <= 6


def test_readings_by_shape_know_arrays_and_question_marks() -> None:
    published = T.StructType().add("job", T.ArrayType(T.StringType())).add("sex", "string")
    found = readings_by_shape(
        {"job": T.StringType(), "sex": T.StringType()}, published, holds_unknown=frozenset({"sex"})
    )
    assert (found["job"].members, found["sex"].members) == (True, False)
    assert (found["job"].stars, found["sex"].stars) == ({"*", "?"}, {"*"})
