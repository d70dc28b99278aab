"""A saved recoding on other rows: the same mapping, the least loss for what is new, and nothing under k."""

import json
import random
import shutil
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from run_world import KEPT, World, has_prefix, in_interval, in_range, in_set, smallest_class, under, untrue_cells

from kanon_spark import Applied, Recoding
from kanon_spark.cli.main import invoke
from kanon_spark.config.models import CsvSpec, IntervalSpec, PrefixSpec, QiSpec
from kanon_spark.engine import matching
from kanon_spark.errors import (
    MissingInputError,
    RequestError,
    TargetError,
)
from kanon_spark.verify.truth import judge_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

JOBS = {"baker": ("craft", "*"), "smith": ("craft", "*"), "nurse": ("care", "*"), "medic": ("care", "*")}
QIS: dict[str, Any] = {
    "age": {"hierarchy": {"interval": {"widths": [10, 20]}}},
    "zip": {"hierarchy": {"prefix": {"keep": [2, 1]}}},
    "job": {"hierarchy": "jobs.csv"},
    "weight": None,
    "colour": None,
}
SCHEMA = "name string, age int, zip string, job string, weight double, colour string, n int"
K = 3
Row = tuple[Any, ...]


def first_rows() -> list[Row]:
    """Four dozen persons in a few neighbourhoods, some of them with nulls."""
    draw = random.Random(7)
    rows: list[Row] = []
    for n in range(48):
        job = draw.choice(sorted(JOBS))
        colour = draw.choice(["red", "blue"]) if n % 8 else None
        weight = float(draw.randrange(50, 60)) if n % 9 else None
        zipped = draw.choice(["1040", "1041", "8020"])
        rows.append((f"person {n}", draw.choice([31, 33, 38, 52, 57]), zipped, job, weight, colour, n))
    return rows


def other_rows() -> list[Row]:
    """Rows that the recoding knows, new combinations of values it knows, and values that it never saw."""
    draw = random.Random(8)
    rows = [(*row[:-1], 100 + row[-1]) for row in first_rows() if row[-1] % 3]
    for n in range(40):
        rows.append(
            (
                "somebody else",
                draw.choice([30, 34, 39, 55, 59, 99]),
                draw.choice(["1040", "10433", "80", "9", None]),
                draw.choice(["baker", "nurse", "pilot", None]),
                draw.choice([50.0, 54.5, 58.25, 500.0, float("nan"), None]),
                draw.choice(["red", "blue", "green", None]),
                200 + n,
            )
        )
    return rows


class Saved:
    """A release, its recoding saved elsewhere, and a table to which it was applied."""

    def __init__(self, spark: "SparkSession", folder: Path) -> None:
        self.world = World(spark, folder)
        self.world.write("jobs.csv", *(";".join([job, *path]) for job, path in JOBS.items()))
        self.first = self.table(first_rows(), "table")
        columns = {"identifiers": ["name"], "other": "keep"}
        self.release = self.world.run(self.world.job(QIS, k=K, columns=columns))
        assert self.release.recoding is not None
        self.recoding = self.release.recoding.save(folder / "safe" / "people")
        # Nothing but the folder: neither the hierarchy file nor the work directory of the run is needed.
        (folder / "jobs.csv").unlink()
        self.work = folder / "work"
        self.other = self.table(other_rows(), "other")
        self.applied = self.apply(self.other, to=str(folder / "out" / "applied"), keep_held_back=True)

    def table(self, rows: list[Row], name: str) -> "DataFrame":
        """Rows as a file: those made in Python are unpickled by every pass."""
        spark = self.world.spark
        return spark.read.parquet(str(self.world.save(spark.createDataFrame(rows, SCHEMA).coalesce(1), name)))

    def apply(self, table: "DataFrame", **options: Any) -> Applied:
        loaded = Recoding.load(self.recoding.path, spark=self.world.spark)
        return loaded.apply(table, work_dir=str(self.work), **options)


@pytest.fixture(scope="module")
def saved(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Iterator[Saved]:
    yield Saved(spark, tmp_path_factory.mktemp("apply"))


def by_key(table: "DataFrame") -> dict[int, dict[str, Any]]:
    return {row["n"]: row.asDict() for row in table.collect()}


def published(table: "DataFrame") -> dict[int, tuple[Any, ...]]:
    return {row["n"]: tuple(row[name] for name in QIS) for row in table.collect()}


def test_the_release_is_k_anonymous_and_true(saved: Saved) -> None:
    table = saved.applied.table
    assert table.columns == [name for name in saved.other.columns if name != "name"]
    assert smallest_class(table, list(QIS)) >= K
    assert saved.applied.verify().passed
    paths = {**JOBS, "pilot": ("*",)}
    truths = {"age": in_interval, "zip": _begins, "job": under(paths), "weight": in_range, "colour": in_set}
    released = by_key(table)
    assert released
    assert not untrue_cells(by_key(saved.other), released, truths)
    checks = {check["name"]: check["passed"] for check in saved.applied.manifest["checks"]}
    assert checks["mapping"] and checks["truth"] and checks["multiset"] and all(checks.values())


def _begins(raw: Any, label: str) -> bool:
    """As long as the recoding's own table had it: longer values may stand under fewer stars."""
    return raw == label or (label.endswith("*") and str(raw).startswith(label.rstrip("*"))) or has_prefix(raw, label)


def test_every_row_goes_where_a_search_by_hand_sends_it(saved: Saved) -> None:
    """Known tuples as before, others to the covering tuple of least loss; classes under k are held back."""
    first, labels = by_key(saved.first), published(saved.release.table)
    known = {tuple(first[n][name] for name in QIS): labels[n] for n in labels}
    specs = {
        "age": QiSpec(hierarchy=IntervalSpec(widths=(10, 20))),
        "zip": QiSpec(hierarchy=PrefixSpec(keep=(2, 1))),
        "job": QiSpec(hierarchy=CsvSpec(path="jobs.csv")),
        "weight": QiSpec(),
        "colour": QiSpec(),
    }
    csv = saved.world.folder / "jobs.csv"
    csv.write_text("\n".join(";".join([job, *path]) for job, path in JOBS.items()))
    kinds = {"age": "integer", "zip": "text", "job": "text", "weight": "real", "colour": "text"}
    judges = [judge_for(specs[name], kind=kinds[name], csv_path=csv if name == "job" else None) for name in QIS]
    csv.unlink()
    losses = _losses(saved)

    def text(value: Any) -> str | None:
        return None if value is None or value != value else str(value)

    expected: dict[int, tuple[Any, ...]] = {}
    for n, row in by_key(saved.other).items():
        raw = tuple(row[name] for name in QIS)
        if raw in known:
            expected[n] = known[raw]
            continue
        fits = [
            tuple_
            for tuple_ in losses
            if all(judge.covers(text(value), label) for judge, value, label in zip(judges, raw, tuple_, strict=True))
        ]
        if fits:
            expected[n] = min(fits, key=lambda each: (losses[each], [(x is not None, x or "") for x in each]))
    sizes = Counter(expected.values())
    stays = {n: tuple_ for n, tuple_ in expected.items() if sizes[tuple_] >= K}
    assert published(saved.applied.table) == stays
    rows = len(other_rows())
    assert saved.applied.counts == {
        "input": rows,
        "released": len(stays),
        "held_back": rows - len(stays),
        "not_covered": rows - len(expected),
        "failing": len(expected) - len(stays),
    }
    counts = saved.applied.manifest["signatures"]
    assert counts["known"] and counts["covered"] and counts["not_covered"]
    assert counts["all"] == counts["known"] + counts["covered"] + counts["not_covered"]


def _losses(saved: Saved) -> dict[tuple[Any, ...], float]:
    """The loss of each published tuple, from the recoding as it was written."""
    kept, entries = saved.recoding.kept, saved.recoding.entries.toPandas()
    found = {}
    nodes = kept.node_layout.unpack(entries[kept.node_layout.names("out")].to_numpy())
    for at, entry in entries.iterrows():
        if entry["class_id"] < 0:
            continue
        tuple_, loss = [], 0.0
        for index, column in enumerate(kept.columns):
            node = int(nodes[at, index])
            own = column.publish != "node"
            tuple_.append(entry[f"label_{index}"] if own else column.labels[node])
            loss += entry[f"loss_{index}"] if own else column.losses[node]
        found[tuple(tuple_)] = round(loss / len(kept.columns), 12)
    return found


def test_what_is_held_back_is_kept_on_request_and_nothing_else_is(saved: Saved) -> None:
    held = saved.applied.held_back
    assert held is not None
    keys = {row["n"] for row in held.collect()}
    assert keys | set(by_key(saved.applied.table)) == set(by_key(saved.other))
    assert len(keys) == saved.applied.counts["held_back"]
    left = sorted(path.name.split("_", 4)[-1] for path in saved.work.iterdir())
    assert left == ["owner.json", "recoding_held_back"]
    assert stat.S_IMODE(saved.work.stat().st_mode) == 0o700
    assert stat.S_IMODE(Path(saved.recoding.path).stat().st_mode) == 0o700
    assert saved.world.left_in_work() == KEPT
    assert saved.world.left_beside() == ["applied"]


def test_no_value_is_told(saved: Saved) -> None:
    told = json.dumps({key: value for key, value in saved.applied.manifest.items() if key not in {"sink", "recoding"}})
    assert not any(value in told for value in ("person 1", "1040", "baker", "pilot", "54.5", "craft"))


def test_the_command_says_the_same_by_slices_of_classes(
    saved: Saved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(matching, "SLICE", 8)
    saved.other.write.parquet(str(tmp_path / "new.parquet"))
    asked = ["apply", saved.recoding.path, "new.parquet", "--to", "out/new.csv", "--work-dir", str(saved.work)]
    assert invoke([*asked, "--json"]) == 0
    outcome = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert outcome["exit_code"] == 0
    assert outcome["manifest"]["rows"] == saved.applied.counts
    assert outcome["manifest"]["content_hash"] == saved.applied.manifest["content_hash"]
    assert outcome["manifest"]["sink"]["format"] == "csv"
    assert (tmp_path / "out" / "new.csv" / "_kanon.json").exists()


def test_the_command_refuses(
    saved: Saved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke(["recoding", "export", saved.recoding.path, "--to", "mapping", "--quiet"]) == 2
    assert "lattice" in capsys.readouterr().err
    assert not Path("mapping").exists()
    assert invoke(["apply", "nothing/here", "new.parquet", "--to", "out/x", "--quiet"]) == 2
    there = ["apply", saved.recoding.path, "nothing.parquet", "--to", "out/x", "--work-dir", str(saved.work)]
    assert invoke([*there, "--quiet"]) == 2


def test_its_own_release_is_not_replaced(saved: Saved) -> None:
    with pytest.raises(TargetError, match="belongs to"):
        saved.apply(saved.other, to=str(saved.world.sink))
    assert saved.world.left_beside() == ["applied"]


def test_what_cannot_be_loaded_or_saved(saved: Saved, tmp_path: Path) -> None:
    spark = saved.world.spark
    with pytest.raises(MissingInputError, match="no such recoding"):
        Recoding.load(tmp_path / "nothing", spark=spark)
    with pytest.raises(MissingInputError, match="is no recoding"):
        Recoding.load(tmp_path, spark=spark)
    with pytest.raises(TargetError, match="already"):
        saved.recoding.save(tmp_path)
    other = tmp_path / "other"
    shutil.copytree(saved.recoding.path, other)
    text = (other / "_codebook.json").read_text(encoding="utf-8")
    (other / "_codebook.json").write_text(text.replace('"version": 1', '"version": 99', 1), encoding="utf-8")
    with pytest.raises(RequestError, match="another version"):
        Recoding.load(other, spark=spark)
