"""A release made by hand passes; whatever is tampered with, table or recoding, the check meant for it catches."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from verify_world import KEPT, QIS, Row, World, make_world

from kanon_spark.errors import GuaranteeError, InternalError
from kanon_spark.verify import cells, pairs, published
from kanon_spark.verify.facts import Verdict
from kanon_spark.verify.groups import Summary, differing_tuples, group_rows, summarize
from kanon_spark.verify.identities import count_entries
from kanon_spark.verify.persons import Persons, count_persons
from kanon_spark.verify.release import verify_release
from kanon_spark.verify.standalone import verify_against_source


@pytest.fixture(scope="module")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(spark, tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def honest(world: World) -> Verdict:
    return verify_release(world.table(), **world.arguments())


def failed(verdict: Verdict) -> set[str]:
    return {check.name for check in verdict.checks if not check.passed}


def grouped(world: World, rows: list[Row] | None = None) -> Summary:
    return summarize(group_rows(world.table(rows), qi=QIS, kept=KEPT), width=4, k=4)


def sizes_of(world: World) -> Counter[tuple[str, ...]]:
    return Counter(tuple(row[name] for name in QIS) for row in world.released)


def test_an_honest_release_passes(world: World, honest: Verdict) -> None:
    assert failed(honest) == set(), honest.checks
    honest.require()
    names = ["columns", "k", "rows", "suppression", "truth", "codes", "multiset"]
    assert [check.name for check in honest.checks] == names
    sizes = sizes_of(world).values()
    assert honest.rows == len(world.released)
    assert honest.facts.classes == len(sizes)
    assert honest.facts.smallest == min(sizes) == honest.facts.achieved
    assert honest.facts.largest == max(sizes)
    assert honest.facts.sum_squares == sum(size**2 for size in sizes)


def persons(world: World, who: object) -> Persons:
    return count_persons(who, published.with_published(world.evidence), star=False, width=4, k=4)  # type: ignore[arg-type]


def test_persons_are_counted_not_rows(world: World, honest: Verdict) -> None:
    own = persons(world, world.pairs)
    assert (own.short, own.unmatched) == (0, 0)
    assert 4 <= own.least <= honest.facts.smallest
    # All rows of one person: groups have the rows, not the persons.
    alone = persons(world, world.pairs.withColumn("unit", F.lit("always the same")))
    assert (alone.least, alone.short) == (1, honest.facts.classes)


def test_rows_without_a_unit_are_persons_of_their_own(world: World, honest: Verdict) -> None:
    nobody = world.pairs.groupBy("h").agg(F.sum("rows").alias("rows")).withColumn("unit", F.lit(None).cast("string"))
    assert persons(world, nobody) == Persons(least=honest.facts.smallest, short=0, unmatched=0)


def test_a_person_whose_rows_have_no_entry_is_noticed(world: World) -> None:
    assert persons(world, world.pairs.withColumn("h", F.col("h") + 1)).unmatched > 0


def test_ten_rows_of_one_person_are_refused(world: World) -> None:
    alone = world.pairs.withColumn("unit", F.lit("always the same"))
    verdict = verify_release(world.table(), **world.arguments(pairs=alone))
    assert failed(verdict) == {"k"}
    assert verdict.facts.achieved == 1


def finer(rows: list[Row]) -> None:
    row = next(row for row in rows if row["age"].startswith("["))
    row["age"] = row["age"][1:3]


def dropped(rows: list[Row]) -> None:
    rows.pop(7)


def doubled(rows: list[Row]) -> None:
    rows.append(dict(rows[7]))


def kept_changed(rows: list[Row]) -> None:
    rows[3]["cost"] = 77.0


def null_for_empty(rows: list[Row]) -> None:
    next(row for row in rows if row["illness"] == "")["illness"] = None


def swapped(rows: list[Row]) -> None:
    """Two kept cells change places between two rows of different classes."""
    first = rows[0]
    second = next(
        row for row in rows if [row[q] for q in QIS] != [first[q] for q in QIS] and row["illness"] != first["illness"]
    )
    first["illness"], second["illness"] = second["illness"], first["illness"]


def swapped_inside(rows: list[Row]) -> None:
    """Two kept cells change places between two rows of one class: each column still has its values, the rows do not."""
    for first in rows:
        for second in rows:
            same_class = all(first[q] == second[q] for q in QIS)
            if same_class and first["illness"] != second["illness"] and first["cost"] != second["cost"]:
                first["illness"], second["illness"] = second["illness"], first["illness"]
                return
    raise AssertionError("the world holds no such pair")


def moved(rows: list[Row]) -> None:
    """One row is published under another class's tuple."""
    other = next(row for row in rows if [row[q] for q in QIS] != [rows[0][q] for q in QIS])
    rows[0].update({q: other[q] for q in QIS})


ALL = [finer, dropped, doubled, kept_changed, null_for_empty, swapped, swapped_inside, moved]


@pytest.mark.parametrize("tamper", ALL)
def test_a_tampered_table_has_another_fingerprint(world: World, tamper: Callable[[list[Row]], None]) -> None:
    honest, rows = grouped(world), [dict(row) for row in world.released]
    tamper(rows)
    found = grouped(world, rows)
    assert found.fingerprint != honest.fingerprint
    assert found.content != honest.content


@pytest.mark.parametrize(
    ("tamper", "caught"),
    [(finer, {"k", "multiset"}), (dropped, {"rows", "multiset"}), (swapped, {"multiset"})],
)
def test_a_tampered_table_is_refused(world: World, tamper: Callable[[list[Row]], None], caught: set[str]) -> None:
    rows = [dict(row) for row in world.released]
    tamper(rows)
    verdict = verify_release(world.table(rows), **world.arguments())
    assert caught <= failed(verdict) <= caught | {"k"}
    with pytest.raises(GuaranteeError, match="multiset") as error:
        verdict.require()
    for value in ("Bern", "nurse", "cook", "flu", "10.25"):
        assert value not in str(error.value)


def test_differing_tuples_are_counted(world: World) -> None:
    rows = [dict(row) for row in world.released]
    moved(rows)
    left, right = (group_rows(world.table(each), qi=QIS, kept=KEPT) for each in (rows, None))
    assert differing_tuples(left, right) == 2
    assert differing_tuples(right, right) == 0


def test_columns_and_suppression_are_checked(world: World) -> None:
    table = world.table().withColumn("ssn", F.lit("1"))
    verdict = verify_release(table, **world.arguments(max_suppression=0.0))
    assert world.suppressed > 0
    assert failed(verdict) == {"columns", "suppression"}
    assert "ssn" in verdict.checks[0].detail


def repacked(
    world: World, entry: Row, *, leaf: tuple[int, int] | None = None, node: tuple[int, int] | None = None
) -> Row:
    """An entry with one leaf or node code changed."""
    changed = dict(entry)
    for change, layout, prefix in ((leaf, world.evidence.layout, "key"), (node, world.evidence.node_layout, "out")):
        if change is not None:
            names = layout.names(prefix)
            codes = layout.unpack(np.array([[entry[name] for name in names]], dtype=np.int64)).copy()
            codes[0, change[0]] = change[1]
            changed |= {name: int(word) for name, word in zip(names, layout.pack(codes)[0], strict=True)}
    return changed


def lonely_class(world: World) -> int:
    """A class whose tuple no other class publishes."""
    names = ["pub0", "pub1", "pub2", "pub3"]
    entries = published.with_published(world.evidence).where("class_id >= 0").groupBy(*names)
    alone = entries.agg(F.min("class_id").alias("least"), F.max("class_id").alias("most")).where("least = most")
    return int(alone.agg(F.min("least")).collect()[0][0])


def test_a_lie_that_table_and_recoding_share_is_caught(world: World) -> None:
    """The table follows the recoding to the letter, but the recoding publishes what is not so."""
    victim = lonely_class(world)
    lie = {"label_2": "{astronaut, diver}", "label_3": "[99.0, 100.0]"}
    entries = [
        repacked(world, entry | lie, node=(0, 0)) if entry["class_id"] == victim else entry for entry in world.entries
    ]
    lying = world.with_entries(entries)
    names = ["pub0", "pub1", "pub2", "pub3"]
    before, after = (
        published.with_published(each.evidence).where(f"class_id = {victim}").select(*names).first()
        for each in (world, lying)
    )
    assert before is not None
    assert after is not None
    rows = [
        dict(row) | dict(zip(QIS, after, strict=True)) if tuple(row[q] for q in QIS) == tuple(before) else dict(row)
        for row in world.released
    ]
    verdict = verify_release(lying.table(rows), **lying.arguments())
    assert failed(verdict) == {"truth"}
    detail = next(check.detail for check in verdict.checks if check.name == "truth")
    assert all(name in detail for name in ("age", "job", "pay.rate"))
    assert "town" not in detail


def test_codes_that_are_not_the_rows_own_are_caught(world: World) -> None:
    assert count_entries(world.evidence).wrong == 0
    entries = [dict(entry) for entry in world.entries]
    changed = [repacked(world, entries[0], leaf=(2, code)) for code in (0, 4)]  # 4 is null
    entries[0] = next(entry for entry in changed if entry != entries[0])
    assert count_entries(world.with_entries(entries).evidence).wrong == 1
    other_seed = replace(world.evidence, seed=world.evidence.seed + 1)
    assert count_entries(other_seed).wrong == len(entries)


def test_suppressed_rows_published_as_stars(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    starred = make_world(spark, tmp_path_factory.mktemp("starred"), star=True)
    share = float(Decimal(starred.suppressed) / starred.rows)
    arguments = starred.arguments(suppressed_rows="star", max_suppression=share)
    verdict = verify_release(starred.table(), **arguments)
    assert failed(verdict) == set(), verdict.checks
    assert verdict.rows == starred.rows
    # The suppressed rows are no class: they cost as suppressed rows do. A released class may read `*` throughout, too.
    sizes = sizes_of(starred)
    stars = sizes.pop(("*",) * 4)
    classes = [*sizes.values(), *([stars - starred.suppressed] if stars > starred.suppressed else [])]
    assert verdict.facts.classes == len(classes)
    assert verdict.facts.sum_squares == sum(size**2 for size in classes)
    assert verdict.facts.achieved == min(stars, *sizes.values())
    # Published where they were to be dropped, they are too many.
    assert {"rows", "multiset"} <= failed(verify_release(starred.table(), **starred.arguments()))


def untrue(world: World) -> set[str]:
    evidence = world.evidence
    return set(cells.untrue_cells(evidence, published.with_published(evidence), entries=len(world.entries)))


def test_large_recodings_are_judged_in_the_workers(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way of doing the work gives the same answer."""
    entries = [entry | {"label_2": "{astronaut, diver}"} for entry in world.entries]
    lying = world.with_entries([repacked(world, entry, node=(0, 0)) for entry in entries])
    assert untrue(lying) == {"age", "job"}
    monkeypatch.setattr(pairs, "DRIVER_ENTRIES", 0)
    assert untrue(world) == set()
    assert untrue(lying) == {"age", "job"}
    monkeypatch.setattr(pairs, "DRIVER_PAIRS", 3)
    monkeypatch.setattr(cells, "TEXT_PAIRS", 3)
    monkeypatch.setattr(published, "_LITERALS", 0)
    assert untrue(world) == set()
    assert untrue(lying) == {"age", "job"}


def test_values_generalized_from_the_start(world: World, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `min_level` the raw values are held against the leaf, and the leaf against what is published."""
    qi = world.evidence.qis[1]
    early = [(town, code) for code, town in enumerate(qi.leaf_labels)]

    def judged(rows: list[tuple[str | None, int]] | None) -> set[str]:
        table = None if rows is None else spark.createDataFrame(rows, "raw string, code int")
        derived = replace(qi, by_code=True, early=table)
        qis = (world.evidence.qis[0], derived, *world.evidence.qis[2:])
        return untrue(replace(world, evidence=replace(world.evidence, qis=qis)))

    assert judged(early) == set()
    assert judged([*early, ("Bern", 1), ("Paris", 0), (None, 0)]) == {"home town"}
    with pytest.raises(InternalError):
        judged(None)
    monkeypatch.setattr(cells, "TEXT_PAIRS", 3)
    assert judged([*early, ("Bern", 1)]) == {"home town"}


def test_the_source_itself_is_read_again(world: World) -> None:
    arguments = world.arguments()
    arguments.pop("input_rows")
    honest = verify_against_source(world.table(), source=world.source, **arguments)
    assert failed(honest) == set()
    assert honest.checks[0].name == "source"
    other = world.source.withColumn("g", F.when(F.col("age") == 33, F.col("g") + 1).otherwise(F.col("g")))
    assert failed(verify_against_source(world.table(), source=other, **arguments)) == {"source"}


def test_order_and_partitions_do_not_matter(world: World, honest: Verdict) -> None:
    rows = list(world.released)
    random.Random(1).shuffle(rows)
    spread = world.table(rows).repartition(7)
    found = summarize(group_rows(spread, qi=QIS, kept=KEPT), width=4, k=4)
    assert found == grouped(world)
    assert found.content == honest.content_hash
