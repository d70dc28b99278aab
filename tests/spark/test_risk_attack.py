"""Risks and the linkage attack on real tables: against brute force in plain Python, and through whole releases."""

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kanon_spark import Anonymizer
from kanon_spark.config.loader import config_from_kwargs
from kanon_spark.errors import EmptyTableError, MissingInputError, RequestError, UnsupportedTypeError
from kanon_spark.risk import assess, linkage_attack, models_by_config, readings_by_config, table_risk
from kanon_spark.risk import assessment as room

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = tuple[Any, ...]
SCHEMA = "age int, `z.ip` string, ill string, who string"
QI = ["age", "z.ip"]


def draw_rows(seed: int, size: int) -> list[Row]:
    """Nulls in every column, persons with several rows."""
    draw = random.Random(seed)
    return [
        (
            draw.choice([None, *range(20, 26)]),
            draw.choice([None, "", "1", "2"]),
            draw.choice(["flu", "flu", "cold", None]),
            draw.choice([None, *(f"p{number}" for number in range(size // 2 + 1))]),
        )
        for _ in range(size)
    ]


def persons(rows: Sequence[Row]) -> set[Any]:
    """Persons of some rows; a row without one is a person of its own."""
    return {row[3] if row[3] is not None else id(row) for row in rows}


def by(rows: Sequence[Row], columns: Sequence[int]) -> dict[Row, list[Row]]:
    groups: dict[Row, list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[place] for place in columns)].append(row)
    return groups


@pytest.mark.parametrize(("seed", "unit"), [(1, None), (2, "who"), (3, "who")])
def test_a_table_against_brute_force(spark: "SparkSession", seed: int, unit: str | None) -> None:
    # Tuples that are equal must still be rows of their own for `persons`.
    rows = [tuple([*row]) for row in draw_rows(seed, 40)]
    everyone = rows + draw_rows(seed + 100, 60)
    table, population = (spark.createDataFrame(part, SCHEMA) for part in (rows, everyone))
    found = table_risk(table, qi=QI, unit=unit, population=population, thresholds=[0.3])

    def size(members: Sequence[Row]) -> int:
        return len(members) if unit is None else len(persons(members))

    classes, others = by(rows, [0, 1]), by(everyone, [0, 1])
    sizes = {key: size(members) for key, members in classes.items()}
    there = {key: max(size(others[key]), sizes[key]) for key in classes}
    records = sum(sizes.values())
    got = found.sizes
    assert (got.rows, got.records, got.classes, got.smallest) == (40, records, len(classes), min(sizes.values()))
    assert got.prosecutor.average == pytest.approx(len(classes) / records)
    assert got.prosecutor.above[0].share == pytest.approx(sum(s for s in sizes.values() if 1 / s > 0.3) / records)
    assert got.against == "population"
    assert got.absent == 0
    assert got.journalist.highest == pytest.approx(1 / min(there.values()))
    assert got.marketer == pytest.approx(sum(sizes[key] / there[key] for key in classes) / records)
    alone = [members for members in classes.values() if size(members) == 1]
    assert got.unique == (len(alone) if unit is None else len(set().union(*map(persons, alone))))
    assert got.uniqueness == pytest.approx(got.unique / size(rows))

    for rank in found.columns:
        groups = by(rows, [QI.index(rank.name)])
        told_apart = sum(a[QI.index(rank.name)] != b[QI.index(rank.name)] for a, b in combinations(rows, 2))
        assert rank.distinct == len(groups)
        assert rank.separation == pytest.approx(told_apart / (40 * 39 / 2))
    for combination in found.combinations:
        members = by(rows, [QI.index(name) for name in combination.columns]).values()
        assert combination.unique_share == pytest.approx(sum(len(m) for m in members if size(m) == 1) / 40)
        assert combination.average_size == pytest.approx(40 / len(members))
    assert {each.columns for each in found.combinations} == {("age",), ("z.ip",), ("age", "z.ip")}


def test_a_population_of_other_types_and_without_some_rows(spark: "SparkSession") -> None:
    table = spark.createDataFrame([(30,), (30,), (40,)], "age int")
    population = spark.createDataFrame([("30",)] * 5 + [("old",)], "age string")
    found = table_risk(table, qi=["age"], population=population).sizes
    assert (found.journalist.highest, found.prosecutor.highest) == (1.0, 1.0)
    assert found.absent == 1
    assert found.marketer == pytest.approx((2 / 5 + 1) / 3)


def test_estimates_come_near(spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(5)
    rows = [tuple(draw.randrange(60) for _ in range(3)) for _ in range(3_000)]
    table = spark.createDataFrame(rows, "a int, b int, c int")
    exact = table_risk(table, qi=["a", "b", "c"])
    monkeypatch.setattr(room, "GROUPED", 5_000)
    near = table_risk(table, qi=["a", "b", "c"])
    assert (exact.looked_at, near.looked_at) == (1, 4)
    assert near.columns == exact.columns
    known = {each.columns: each for each in exact.combinations}
    for each in near.combinations:
        assert each.average_size == pytest.approx(known[each.columns].average_size, rel=0.1)
        assert each.unique_share == pytest.approx(known[each.columns].unique_share, rel=0.1)


def brute_force(
    targets: Sequence[Row], candidates_of: Sequence[list[Row]], everyone: Sequence[Row], *, place: int
) -> tuple[float, float, float, float]:
    """Expected success, guesses that are right, the base rate, and the surest guess."""

    def right(own: Any, rows: Sequence[Row]) -> float:
        many = Counter(row[place] for row in rows)
        top = [value for value, count in many.items() if count == max(many.values())]
        return (own in top) / len(top)

    success = [1 / len(found) if found else 0.0 for found in candidates_of]
    guessed = [right(target[2], found or everyone) for target, found in zip(targets, candidates_of, strict=True)]
    base = [right(target[2], everyone) for target in targets]
    surest = max(max(Counter(row[place] for row in found).values()) / len(found) for found in candidates_of if found)
    return sum(success) / len(targets), sum(guessed) / len(targets), sum(base) / len(targets), surest


def test_an_attack_against_brute_force(spark: "SparkSession") -> None:
    """All rows are targets, so that nothing is left to the draw."""
    rows = draw_rows(7, 60)
    labels = {None: ["*", None], 20: ["[20, 22]", "20"], 21: ["[20, 22]"], 22: ["[20, 22]", "*"]}
    draw = random.Random(8)
    published: list[Row] = []
    for age, code, ill, who in rows[:-5]:  # five rows were suppressed
        label = draw.choice(labels.get(age, ["[23, 25]", ">= 23"]))
        published.append((label, "*" if draw.random() < 0.5 else code if code is None else f"{{{code}, 9}}", ill, who))
    original = spark.createDataFrame(rows, SCHEMA)
    release = spark.createDataFrame(published, SCHEMA.replace("int", "string"))
    attack = linkage_attack(original, release, qi=QI, sensitive=["ill"], k=2, show_values=True)

    def covers(row: Row, target: Row) -> bool:
        age = row[0] == "*" or (
            row[0] is None if target[0] is None else row[0] is not None and in_label(target[0], row[0])
        )
        code = row[1] == "*" or (row[1] is None if target[1] is None else row[1] == f"{{{target[1]}, 9}}")
        return age and code

    def in_label(age: int, label: str) -> bool:
        low, high = (23, 99) if label == ">= 23" else map(int, (label.strip("[]").split(", ") * 2)[:2])
        return low <= age <= high

    equal = [[row for row in rows if row[:2] == target[:2]] for target in rows]
    covered = [[row for row in published if covers(row, target)] for target in rows]
    before, after = attack.before, attack.after
    assert after is not None
    assert (attack.targets, attack.distinct) == (60, len({row[:2] for row in rows}))
    for side, found, everyone in ((before, equal, rows), (after, covered, published)):
        expected, right, base, surest = brute_force(rows, found, everyone, place=2)
        assert side.expected == pytest.approx(expected)
        assert side.guesses[0].right == pytest.approx(right)
        assert side.guesses[0].base == pytest.approx(base)
        assert side.guesses[0].highest == pytest.approx(surest)
        most = Counter(row[2] for row in everyone).most_common(1)[0][1]
        assert side.guesses[0].common == pytest.approx(most / len(everyone))
        assert side.fewest == min(len(each) for each in found if each)
        assert side.worst == pytest.approx(1 / side.fewest)
        assert side.unmatched == sum(not each for each in found)
    assert attack.worst_target is not None
    worst = [target for target, found in zip(rows, covered, strict=True) if len(found) == after.fewest]
    assert tuple(attack.worst_target.values()) in {(None if a is None else str(a), code) for a, code, *_ in worst}

    # Who knows less finds more candidates.
    some = linkage_attack(original, release, qi=["age"], k=2)
    assert some.after is not None
    assert some.after.expected <= after.expected + 1e-9 or after.unmatched
    assert some.worst_target is None


def test_persons_are_counted_where_the_release_has_them(spark: "SparkSession") -> None:
    rows = [(20, "a", "p1"), (20, "a", "p1"), (21, "a", "p2"), (22, "b", "p1"), (22, "b", "p3"), (22, "b", None)]
    original = spark.createDataFrame(rows, "age int, job string, who string")
    release = spark.createDataFrame(
        [("[20, 22]", job, who) for _, job, who in rows], "age string, job string, who string"
    )
    attack = linkage_attack(original, release, qi=["age", "job"], unit="who")
    assert attack.after is not None
    assert attack.before.counted == attack.after.counted == "persons"
    assert (attack.before.worst, attack.before.fewest) == (1.0, 1.0)
    assert attack.after.fewest == 2  # p1 and p2 behind `a`; p1, p3 and a row without a person behind `b`
    # By the age alone all rows are candidates: four persons, though p1 stands in two classes.
    assert linkage_attack(original, release, qi=["age"], unit="who").after.fewest == 4  # type: ignore[union-attr]
    wide = release.unionAll(spark.createDataFrame([("*", "*", "p1"), ("*", "*", "p9")], release.schema))
    seen = linkage_attack(original, wide, qi=["age", "job"], unit="who").after
    assert seen is not None
    assert seen.fewest == pytest.approx(1 / 3 + 1 + 1 / 3 + 1)  # p1 (twice a third), p2, p9: three, never more
    without = linkage_attack(original, release.drop("who"), qi=["age", "job"], unit="who")
    assert without.after is not None
    assert (without.before.counted, without.after.counted) == ("persons", "rows")
    assert without.after.fewest == 3


def test_labels_that_cannot_be_read_are_told(spark: "SparkSession") -> None:
    original = spark.createDataFrame([(20, "nurse"), (20, "doctor")] * 3, "age int, job string")
    release = spark.createDataFrame([("20", "medical")] * 6, "age string, job string")
    report = assess(original, release, qi=["age", "job"])
    assert report.attack is not None and report.attack.after is not None
    assert (report.attack.after.expected, report.attack.after.unmatched) == (0.0, 6)
    assert report.attack.unread == {"job": 6}
    assert any("'job' (6)" in note and "--config" in note for note in report.notes)


def test_sensitive_values_are_the_same_in_other_types(spark: "SparkSession") -> None:
    """A file that went through pandas has 100.0 where the original has 100."""
    rows = [(20 + n, 100 + n % 3) for n in range(9)]
    original = spark.createDataFrame(rows, "age int, cost bigint")
    labels = original.selectExpr("'[20, 28]' AS age", "cost")
    expected = linkage_attack(original, labels, qi=["age"], sensitive=["cost"]).after
    for kind in ("double", "decimal(12,2)", "string"):
        other = labels.selectExpr("age", f"cast(cost as {kind}) cost")
        found = linkage_attack(original, other, qi=["age"], sensitive=["cost"]).after
        assert found is not None and expected is not None
        assert found.guesses == expected.guesses
        assert found.guesses[0].base == pytest.approx(1 / 3)


def test_a_draw_is_of_rows_and_does_not_depend_on_their_order(spark: "SparkSession") -> None:
    """Nine in ten rows are equal: so must be about nine in ten targets."""
    rows = [(1,)] * 9_000 + [(100 + number,) for number in range(1_000)]
    table = spark.createDataFrame(rows, "a int")
    one = linkage_attack(table, qi=["a"], targets=500)
    assert one.targets == 500
    assert 20 < one.distinct < 90
    assert linkage_attack(table.orderBy("a").repartition(3), qi=["a"], targets=500) == one
    assert linkage_attack(table, qi=["a"], targets=500, seed=1) != one


HIERARCHY = ["nurse;medical;*", "doctor;medical;*", "clerk;office;*", "boss;office;*"]


def test_no_target_is_found_beyond_one_in_k(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through a whole release: a hierarchy file, an interval, a date, a set (published as an array) and a range."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.csv").write_text("\n".join(HIERARCHY) + "\n", encoding="utf-8")
    draw = random.Random(3)
    rows = [
        (
            draw.choice([None, *range(20, 60)]),
            draw.choice([line.split(";")[0] for line in HIERARCHY]),
            f"2024-{draw.randint(1, 12):02d}-{draw.randint(1, 28):02d}",
            draw.choice(["red", "green, dark", "blue", None]),
            draw.choice([1.5, 2.5, 4.0, 8.25]),
            draw.choice(["flu", "cold"]),
        )
        for _ in range(150)
    ]
    table = spark.createDataFrame(rows, "age int, job string, day string, tag string, dose double, ill string")
    table = table.withColumn("day", table.day.cast("date"))
    job: dict[str, Any] = {
        "quasi_identifiers": {
            "age": {"hierarchy": {"interval": {"widths": [5, 10, 20]}}},
            "job": "jobs.csv",
            "day": {"hierarchy": {"date": {"levels": ["month", "quarter", "year"]}}},
            "tag": None,
            "dose": None,
        },
        "sensitive": ["ill"],
        "k": 4,
        "method": "lattice",
        "output": {"sets": "array"},
    }
    release = Anonymizer(**job).run(table).table
    loaded = config_from_kwargs(**job)
    names = list(job["quasi_identifiers"])
    types = {field.name: field.dataType for field in table.schema.fields}
    readings = readings_by_config(types, loaded)
    attack = linkage_attack(table, release, qi=names, sensitive=["ill"], readings=readings, k=4)
    assert attack.after is not None
    assert attack.after.unmatched == 0  # every row's own class covers it
    assert attack.holds
    assert attack.after.worst <= 1 / 4
    assert attack.before.expected > 0.5 > attack.after.expected
    assert attack.before.guesses[0].right > attack.after.guesses[0].right
    # Only the hierarchy file's labels cannot be read from their texts alone.
    blind = linkage_attack(table, release, qi=[name for name in names if name != "job"], k=4)
    assert blind.after is not None
    assert (blind.after.unmatched, blind.holds) == (0, True)


def test_means_are_attacked_as_what_they_are(spark: "SparkSession", tmp_path: Path) -> None:
    """No value lies in a mean, and yet its class is a candidate: else whole releases would look out of reach."""
    draw = random.Random(6)
    rows = [(draw.choice([None, *range(20, 60)]), draw.choice("abc"), draw.choice(["flu", "cold"])) for _ in range(120)]
    table = spark.createDataFrame(rows, "age int, job string, ill string")
    job = {
        "columns": {"quasi_identifiers": ["age", "job"], "sensitive": ["ill"]},
        "privacy": {"k": 4},
        "method": {"name": "kactus", "target": "ill", "numeric": "mean"},
        "execution": {"work_dir": str(tmp_path)},
    }
    anonymizer = Anonymizer.from_dict(job)
    release = anonymizer.run(table).table
    published = [(row.age, row.job) for row in release.collect()]
    assert any(age is not None and "." in age for age, _ in published), "some labels are means of several values"
    readings = readings_by_config({field.name: field.dataType for field in table.schema.fields}, anonymizer._loaded)
    report = assess(table, release, qi=["age", "job"], readings=readings, k=4)
    assert report.attack is not None and report.attack.after is not None
    after = report.attack.after

    def fits(row: Row, age: str | None, job: str) -> bool:
        near = age == "?" or (age is None) == (row[0] is None)
        return near and (job == "?" or row[1] in job.strip("{}").split(", "))

    candidates = [sum(fits(row, *each) for each in published) for row in rows]
    assert after.unmatched == 0
    assert after.expected == pytest.approx(sum(1 / many for many in candidates) / len(rows))
    assert after.fewest == min(candidates)
    assert report.attack.holds
    assert any("'age': published as means" in note for note in report.notes)
    assert not any("--config" in note for note in report.notes)


def test_the_surest_guess_is_held_against_what_models_limit_it_to(spark: "SparkSession", tmp_path: Path) -> None:
    draw = random.Random(9)
    ills = ["flu", "flu", "cold", "cough", None]
    rows = [(draw.randrange(20, 60), draw.choice("abc"), draw.choice(ills)) for _ in range(150)]
    table = spark.createDataFrame(rows, "age int, job string, ill string")
    for model, words, share in (
        ({"alpha": 0.6}, "alpha = 0.6", 0.6),
        ({"t_closeness": 0.2}, "t-closeness (t = 0.2)", None),
    ):
        job = {
            "columns": {"quasi_identifiers": ["age", "job"], "sensitive": ["ill"]},
            "privacy": {"k": 3, **model},
            "method": "lattice",
            "execution": {"work_dir": str(tmp_path)},
        }
        anonymizer = Anonymizer.from_dict(job)
        models = models_by_config(anonymizer._loaded, known=["age"])
        release = anonymizer.run(table).table
        attack = linkage_attack(table, release, qi=["age", "job"], sensitive=["ill"], models=models)
        assert attack.after is not None
        (before,), (after,) = attack.before.guesses, attack.after.guesses
        assert (before.highest, before.limit) == (1.0, None), "models speak of the release"
        assert after.highest >= after.confidence
        assert after.limited_by == words
        assert after.limit == pytest.approx(share or after.common + 0.2)
        assert after.highest <= after.limit + 1e-9 < before.highest


ADULT = ["age", "workclass", "education", "marital-status", "occupation", "sex", "race", "native-country"]


# Quick: whoever takes the first rows for the table. Slow: everybody is looked for.
@pytest.mark.parametrize("first", [1_500, pytest.param(None, marks=pytest.mark.slow)])
def test_raw_adult_is_found_and_its_release_is_not(
    spark: "SparkSession", shared: Path, repo: Path, tmp_path: Path, first: int | None
) -> None:
    import pandas as pd

    names = ADULT
    rows = pd.read_csv(shared / "data" / "adult.csv", skipinitialspace=True)
    table = spark.createDataFrame(rows[[*names, "income"]])
    whole = linkage_attack(table, qi=names, sensitive=["income"])
    assert whole.targets == 1_000
    assert whole.before.expected > 0.5
    assert whole.before.guesses[0].right > whole.before.guesses[0].base

    known = rows[~(rows == "?").any(axis=1)][[*names, "income"]].head(first or len(rows))
    files = {name: {"hierarchy": str(repo / "hierarchies" / "adult" / f"{name}.csv")} for name in names}
    job = {
        "columns": {"quasi_identifiers": files, "sensitive": ["income"]},
        "privacy": {"k": 10},
        "method": {"name": "lattice", "effort": "fast"},
        "execution": {"work_dir": str(tmp_path), "bound": "none"},
    }
    some = spark.createDataFrame(known)
    anonymizer = Anonymizer.from_dict(job)
    types = {field.name: field.dataType for field in some.schema.fields}
    readings = readings_by_config(types, anonymizer._loaded)
    report = assess(
        some, anonymizer.run(some).table, qi=names, sensitive=["income"], k=10, readings=readings, targets=len(known)
    )
    assert report.attack is not None and report.attack.after is not None and report.after is not None
    assert report.attack.targets == len(known) == (first or 30_162)
    assert report.attack.before.expected > 0.5
    assert report.attack.after.unmatched == 0
    assert report.attack.after.worst <= 1 / 10
    assert report.after.sizes.prosecutor.highest <= 1 / 10
    assert report.highest <= 1 / 10


def untouchable(spark: "SparkSession") -> "DataFrame":
    """A table that fails when a row of it is read."""
    return spark.range(3).selectExpr("cast(raise_error('a row was read') AS string) AS q", "'flu' AS ill")


def asked(table: "DataFrame", **options: Any) -> Any:
    return assess(table, **{"qi": ["q"], **options})


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"qi": []}, RequestError, "no quasi-identifier"),
        ({"qi": ["q", "q"]}, RequestError, "twice"),
        ({"qi": ["qq"]}, MissingInputError, "did you mean 'q'"),
        ({"sensitive": ["il"]}, MissingInputError, "did you mean 'ill'"),
        ({"unit": "whom"}, MissingInputError, "no column 'whom'"),
        ({"attack_qi": ["z"]}, MissingInputError, "no column 'z'"),
        ({"thresholds": [1.5]}, RequestError, "no probability"),
        ({"targets": 0}, RequestError, "0 targets"),
        ({"qi": ["q", "m"]}, UnsupportedTypeError, "cannot be compared"),
    ],
)
def test_wrong_questions_are_refused(
    spark: "SparkSession", options: dict[str, Any], error: type[Exception], words: str
) -> None:
    table = spark.sql("SELECT 'a' AS q, 'flu' AS ill, map('a', 1) AS m")
    with pytest.raises(error, match=words):
        asked(table, **options)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"qi": ["qq"]}, MissingInputError, "(?s)did you mean 'q'.*it has: q, ill"),
        ({"sensitive": ["il"]}, MissingInputError, "(?s)did you mean 'ill'.*it has: q, ill"),
        ({"attack_qi": ["z"]}, MissingInputError, "(?s)no column 'z'.*it has: q, ill"),
        ({"unit": "whom"}, MissingInputError, "(?s)no column 'whom'.*it has: q, ill"),
        ({"attack_qi": ["q", "q"]}, RequestError, "twice"),
        ({"targets": 100_001}, RequestError, "100001 targets"),
        ({"thresholds": [2.0]}, RequestError, "no probability"),
        ({"release": ["q"], "sensitive": ["ill"]}, MissingInputError, "the release has no column 'ill'"),
        ({"release": ["q"], "attack_qi": ["ill"]}, MissingInputError, "the release has no column 'ill'"),
        ({"release": ["q"], "added": ["q_lo"]}, MissingInputError, "the release has no column 'q_lo'"),
        ({"population": ["ill"]}, MissingInputError, "the population has no column 'q'"),
    ],
)
def test_wrong_questions_are_refused_before_any_row_is_read(
    spark: "SparkSession", options: dict[str, Any], error: type[Exception], words: str
) -> None:
    unread = untouchable(spark)
    tables = {name: unread.select(*options[name]) for name in ("release", "population") if name in options}
    with pytest.raises(error, match=words):
        asked(unread, **{**options, **tables})


def test_a_right_question_reads_rows(spark: "SparkSession") -> None:
    """What the test above rests on."""
    with pytest.raises(Exception, match="a row was read"):
        asked(untouchable(spark))


def test_tables_that_do_not_fit_each_other_are_refused(spark: "SparkSession") -> None:
    table = spark.createDataFrame([("a", "flu")], "q string, ill string")
    empty = spark.createDataFrame([], table.schema)
    with pytest.raises(EmptyTableError, match="the table has no rows"):
        asked(empty)
    with pytest.raises(EmptyTableError, match="the release has no rows"):
        asked(table, release=empty)
    with pytest.raises(MissingInputError, match="the release has no column 'q'"):
        asked(table, release=table.drop("q"))
    with pytest.raises(MissingInputError, match="the population has no column 'q'"):
        asked(table, population=table.drop("q"))
    with pytest.raises(EmptyTableError):
        linkage_attack(empty, qi=["q"])
