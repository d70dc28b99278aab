"""The judge of truth, kind by kind: what may be published of a value, and what may not."""

from pathlib import Path

import pytest

from kanon_spark.config.models import CsvSpec, DateSpec, FlatSpec, IntervalSpec, PrefixSpec, QiSpec, ReferenceSpec
from kanon_spark.verify.truth import Judge, judge_for

FILE = """\
Bern;West;Suisse;*
"Genève; centre";West;Suisse;*
Oslo;Oslo;Norge;*
Bergen;Fjord;Norge;*
"""


@pytest.fixture
def places(tmp_path: Path) -> Path:
    path = tmp_path / "places.csv"
    path.write_text(FILE, encoding="utf-8")
    return path


def ranges(kind: str) -> Judge:
    return judge_for(QiSpec(), kind=kind)


INTERVAL = QiSpec(hierarchy=IntervalSpec(widths=(5, 10)))
PREFIX = QiSpec(hierarchy=PrefixSpec(keep=(4, 2)))
DATE = QiSpec(hierarchy=DateSpec(levels=("month", "quarter", "year", "decade")))
FLAT = QiSpec(hierarchy=FlatSpec())

# spec, kind, raw, labels that are true of it, labels that are not
CASES = [
    (INTERVAL, "integer", "15", ["15", "[15, 19]", "[10, 19]", "*"], ["16", "[16, 19]", "[10, 14]", "[15, 15)", None]),
    (INTERVAL, "integer", "20", ["[20, 24]", ">= 20", "< 21"], ["[15, 20)", "< 20", ">= 21", "(20, 25]", "20 or so"]),
    (INTERVAL, "integer", "-7", ["[-10, -6]", "< -5", "[-10, -1]"], ["[-5, -1]", "< -7", "[10, 6]"]),
    (INTERVAL, "real", "0.3", ["[0.3, 0.4)", "[0, 1)", "0.30"], ["[0.2, 0.3)", "[0.30000001, 1)"]),
    (INTERVAL, "real", "1.0E7", ["[10000000, 10000005)", ">= 10000000"], ["< 10000000", "[5, 10)"]),
    (INTERVAL, "real", "Infinity", [">= 90", "Infinity"], ["[0, 90)", "< 90"]),
    (PREFIX, "text", "53715", ["53715", "5371*", "53***", "*"], ["5372*", "54***", "5371", "53716", "53", None]),
    (PREFIX, "text", "53", ["53", "53***", "5****"], ["53715", "531**"]),
    (PREFIX, "text", "", ["", "*"], ["5****"]),
    (DATE, "date", "2024-03-05", ["2024-03-05", "2024-03", "2024-Q1", "2024", "2020s", "*"], []),
    (DATE, "date", "2024-03-05", [], ["2024-03-06", "2024-04", "2024-Q2", "2025", "2010s", "2024-Q5", "March", None]),
    (DATE, "date", "2029-12-31", ["2029-12", "2029-Q4", "2020s"], ["2030s", "2029-Q3", "2030"]),
    (DATE, "timestamp", "2024-03-05 23:59:59.5", ["2024-03-05", "2024-03", "2024-Q1"], ["2024-03-06", "2024-02"]),
    (FLAT, "text", "flu", ["flu", "*"], ["Flu", "flu*", "{flu}", None]),
    (QiSpec(), "integer", "7", ["7", "[7, 9]", "[-7, 7]", "*"], ["[8, 9]", "8", "[7, 9", "{7, 8}", None]),
    (QiSpec(), "real", "0.1", ["[0.1, 0.2]", "[-1.0E-5, 0.1]"], ["[0.11, 0.2]", "[0.2, 0.1]"]),
    (
        QiSpec(),
        "date",
        "2024-03-05",
        ["[2024-03-05, 2024-03-06]", "[2023-12-31, 2024-10-01]"],
        ["[2024-03-06, 2024-04-01]"],
    ),
    (
        QiSpec(),
        "timestamp",
        "2024-03-05 10:00:00.5",
        ["[2024-03-05 10:00:00.25, 2024-03-05 10:00:00.75]", "[2024-03-05 10:00:00, 2024-03-05 10:00:01]"],
        ["[2024-03-05 10:00:00.6, 2024-03-05 10:00:01]", "[2024-03-05 09:00:00, 2024-03-05 10:00:00.05]"],
    ),
    (
        QiSpec(),
        "text",
        "a",
        ["a", "{a, b}", "{b, a}", '{a, "b, c"}', "*"],
        ["b", "{b, c}", '{"a, b"}', "{a, b", "a, b", None],
    ),
    (QiSpec(), "text", 'x, "y"', ['{a, "x, \\"y\\""}', 'x, "y"'], ['{a, x, "y"}', "{x}"]),
    (QiSpec(), "text", "", ["", '{"", a}', "{, a}"], ["{a}", "{a, b}"]),
    (QiSpec(), "text", "{a}", ["{a}", '{"{a}", b}'], ["{a, b}", "a"]),
    (QiSpec(), "boolean", "true", ["true", "{false, true}", "*"], ["false", "{false}"]),
]


@pytest.mark.parametrize(("spec", "kind", "raw", "true", "false"), CASES)
def test_labels_are_true_of_a_value_or_not(
    spec: QiSpec, kind: str, raw: str, true: list[str], false: list[str | None]
) -> None:
    judge = judge_for(spec, kind=kind)
    assert [label for label in true if not judge.covers(raw, label)] == []
    assert [label for label in false if judge.covers(raw, label)] == []


@pytest.mark.parametrize("spec", [INTERVAL, PREFIX, DATE, FLAT, QiSpec()])
def test_null_is_covered_by_null_and_star_alone(spec: QiSpec) -> None:
    judge = judge_for(spec, kind="text")
    assert judge.covers(None, None)
    assert judge.covers(None, "*")
    assert not judge.covers(None, "2024")
    assert not judge.covers("2024", None)
    assert not judge.contains(None, "2024")


def test_a_file_speaks_for_its_own_values(places: Path) -> None:
    judge = judge_for(QiSpec(hierarchy=CsvSpec(path="unused")), kind="text", csv_path=places)
    for label in ("Bern", "West", "Suisse", "*"):
        assert judge.covers("Bern", label)
    assert judge.covers("Genève; centre", "West")
    for label in ("Fjord", "Norge", "Oslo", "Genève; centre", None, ""):
        assert not judge.covers("Bern", label)


def test_a_value_that_the_file_misses_may_only_be_a_star(places: Path) -> None:
    spec = QiSpec(hierarchy=CsvSpec(path="unused", unknown="root"))
    judge = judge_for(spec, kind="text", csv_path=places)
    assert judge.covers("Paris", "*")
    assert not judge.covers("Paris", "Paris")
    assert not judge.covers("Paris", "Suisse")


def test_a_file_at_min_level_never_publishes_finer(places: Path) -> None:
    judge = judge_for(QiSpec(hierarchy=CsvSpec(path="unused"), min_level=1), kind="text", csv_path=places)
    assert judge.covers("Bern", "West")
    assert not judge.covers("Bern", "Bern")
    assert judge.covers("Oslo", "Oslo")  # the file repeats the label at level 1
    assert judge.contains("West", "Suisse")
    assert judge.contains("West", "West")
    assert not judge.contains("West", "Norge")
    assert not judge.contains("Bern", "Suisse")  # no label of level 1


def test_a_longer_code_is_itself_or_what_its_category_is() -> None:
    spec = ReferenceSpec(name="icd10", unknown="root")
    judge = judge_for(QiSpec(hierarchy=spec), kind="text")
    for label in ("E11.9", "E11", "E10-E14", "chapter IV", "*"):
        assert judge.covers("E11.9", label)
    for label in ("E119", "E12", "E00-E07", "chapter V", "E1", "", None):
        assert not judge.covers("E11.9", label)
    assert not judge.covers("e11.9", "e11.9"), "unknown"
    assert judge.covers("e11.9", "*")

    coarse = judge_for(QiSpec(hierarchy=spec, min_level=2), kind="text")
    assert coarse.covers("E11.9", "E10-E14")
    assert not coarse.covers("E11.9", "E11")
    assert not coarse.covers("E11.9", "E11.9")
    assert coarse.contains("E10-E14", "chapter IV")
    assert not coarse.contains("E11", "chapter IV")


@pytest.mark.parametrize(
    ("kind", "line", "raw", "other"),
    [
        ("real", "39;[35-39];*", "39.0", "39.5"),
        ("integer", "07;[5-9];*", "7", "8"),
        ("date", " 2024-03-05 ;spring;*", "2024-03-05", "2024-03-06"),
        ("timestamp", "2024-03-05 10:00;morning;*", "2024-03-05 10:00:00", "2024-03-05 10:00:00.5"),
        ("boolean", "TRUE;known;*", "true", "false"),
    ],
)
def test_a_files_values_are_read_as_the_column_reads_them(
    tmp_path: Path, kind: str, line: str, raw: str, other: str
) -> None:
    path = tmp_path / "values.csv"
    path.write_text(line + "\n")
    judge = judge_for(QiSpec(hierarchy=CsvSpec(path="unused")), kind=kind, csv_path=path)
    leaf, label, _ = line.split(";")
    assert judge.covers(raw, label)
    assert judge.covers(raw, leaf)  # what is published is the file's own spelling
    assert not judge.covers(other, label)
    assert not judge.covers(other, leaf)


def test_a_files_root_says_what_a_star_says(tmp_path: Path) -> None:
    path = tmp_path / "sex.csv"
    path.write_text("Male;Person\nFemale;Person\n")
    judge = judge_for(QiSpec(hierarchy=CsvSpec(path="unused")), kind="text", csv_path=path)
    assert judge.covers("Male", "Person")
    assert judge.covers(None, "Person")
    assert not judge.covers(None, "Male")


@pytest.mark.parametrize(
    ("spec", "inner", "inside", "outside"),
    [
        (
            INTERVAL,
            "[15, 19]",
            ["[15, 19]", "[10, 19]", "< 20", ">= 15", "*"],
            ["[15, 18]", "[16, 20]", ">= 16", "< 19"],
        ),
        (INTERVAL, "[15, 20)", ["[10, 20)", "[15, 20]"], ["[15, 19]", "(15, 20)"]),
        (INTERVAL, "< 10", ["< 10", "< 20"], ["[0, 10)", "< 5", ">= 0"]),
        (PREFIX, "5371*", ["5371*", "53***", "*"], ["53715", "54***", "53711*"]),
        (DATE, "2024-03", ["2024-03", "2024-Q1", "2024", "2020s"], ["2024-03-05", "2024-Q2", "2023", "2010s"]),
        (DATE, "2024", ["2020s"], ["2024-Q1"]),
        (QiSpec(), "{a, b}", ["{a, b, c}"], ["{a}", "a", "{c}"]),
    ],
)
def test_a_label_lies_within_another_or_not(spec: QiSpec, inner: str, inside: list[str], outside: list[str]) -> None:
    judge = judge_for(spec, kind="text")
    assert [label for label in inside if not judge.contains(inner, label)] == []
    assert [label for label in outside if judge.contains(inner, label)] == []


def test_untrue_pairs_are_counted() -> None:
    judge = ranges("integer")
    pairs = [("1", "[1, 2]"), ("3", "[1, 2]"), (None, "[1, 2]"), (None, None)]
    assert judge.untrue(pairs, generalized=False) == 2
    assert judge.untrue([("[1, 2]", "[0, 2]"), ("[1, 3]", "[0, 2]")], generalized=True) == 1
