"""`compare` on a small table: the figures of a cell are those of a run, rows are aggregated once, nothing is left."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from run_world import KEPT, World
from test_run_report import browse

from kanon_spark import Anonymizer
from kanon_spark.config.loader import load_config
from kanon_spark.engine import encoded
from kanon_spark.errors import InternalError, RequestError
from kanon_spark.explore.compare import Cell, Comparison, compare
from kanon_spark.explore.compare.request import Sample
from kanon_spark.explore.compare.rows import draw
from kanon_spark.measure import published_sizes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QIS: dict[str, Any] = {
    "age": {"hierarchy": {"interval": {"widths": [5, 10, 20]}}},
    "sex": "flat",
    "job": None,  # no hierarchy: sets
}
METHODS = "lattice,mondrian,kactus"


def rows_of(spark: "SparkSession") -> "DataFrame":
    """150 rows of 110 persons, three of whom nobody knows; two quasi-identifiers have nulls."""
    rows = [
        (
            None if n % 31 == 7 else 20 + n * 7 % 37,
            "mf"[n % 5 > 1],
            None if n % 29 == 3 else "abcde"[n * n % 5],
            "yes" if (n * 7 % 37 > 18) != (n % 11 == 0) else "no",
            None if n % 50 == 49 else f"p{n % 110}",
        )
        for n in range(150)
    ]
    return spark.createDataFrame(rows, "age int, sex string, job string, ill string, who string")


@pytest.fixture(scope="module")
def world(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> "Iterator[World]":
    world = World(spark, tmp_path_factory.mktemp("compared"))
    world.save(rows_of(spark))
    yield world


class Watched:
    """A comparison, and what happened meanwhile."""

    def __init__(self, world: World, **sections: Any) -> None:
        columns = {"sensitive": ["ill"], "identifiers": ["who"]}
        self.file = world.config_file(QIS, name="compared", columns=columns, **sections)
        self.loaded = load_config(self.file)
        self.events: list[tuple[str, str, str]] = []
        self.aggregations = 0
        self.found: Comparison

    def run(self, world: World, **asked: Any) -> "Watched":
        kept = encoded.aggregate
        patch = pytest.MonkeyPatch()

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.aggregations += 1
            return kept(*args, **kwargs)

        patch.setattr(encoded, "aggregate", counted)
        try:
            hear = lambda event: self.events.append((event.stage, event.state, event.text))  # noqa: E731
            self.found = compare(self.loaded, spark=world.spark, listeners=[hear], **asked)
        finally:
            patch.undo()
        return self


@pytest.fixture(scope="module")
def plain(world: World) -> Watched:
    return Watched(world).run(world, methods=METHODS, k=[3, 8], label="ill", max_risk=0.2)


def same_figures(cell: Cell, manifest: dict[str, Any]) -> None:
    """A cell says what the manifest of a run says."""
    metrics = manifest["metrics"]
    assert cell.gcp == metrics["gcp"]
    assert cell.gcp_bound == metrics["gcp_bound"]
    assert cell.gcp_gap == metrics["gcp_gap"]
    assert cell.bound_kind == metrics["bound_kind"]
    assert (cell.dm, cell.cavg) == (metrics["dm"], metrics["cavg"])
    assert cell.classes == manifest["classes"]
    assert cell.smallest == manifest["privacy"]["k"]["achieved"]
    assert cell.suppressed == manifest["rows"]["suppressed"]
    assert cell.risk == 1 / manifest["privacy"]["k"]["achieved"]


def test_every_cell_has_figures_or_a_reason(plain: Watched) -> None:
    found = plain.found
    assert [(cell.k, cell.method) for cell in found.cells] == [(k, m) for k in (3, 8) for m in METHODS.split(",")]
    assert all(cell.measured for cell in found.cells), "with a label kactus has what to predict"
    for cell in found.cells:
        assert cell.gcp_bound is not None and cell.gcp is not None and cell.cpu_seconds is not None
        assert 0 < cell.gcp_bound <= cell.gcp < 1
        assert cell.tree_accuracy is not None and 0 < cell.tree_accuracy <= 1
        assert cell.risk is not None and cell.average_risk is not None
        assert cell.average_risk <= cell.risk <= 1 / cell.k
    bounds = {k: {cell.gcp_bound for cell in found.cells if cell.k == k} for k in (3, 8)}
    assert all(len(each) == 1 for each in bounds.values())
    assert (found.facts.rows, found.facts.persons, found.facts.share) == (150, 150, None)
    assert found.facts.learnt is not None
    assert found.facts.learnt.tree > found.facts.learnt.majority - 0.2


def test_rows_are_aggregated_once_and_nothing_is_left(plain: Watched, world: World) -> None:
    assert plain.aggregations == 1
    notes = [text for _, state, text in plain.events if state == "note"]
    assert len([text for text in notes if text.startswith("150 rows,")]) == 1
    assert [text for text in notes if "lattice" in text] == ["1 of 6: lattice, k = 3", "4 of 6: lattice, k = 8"]
    assert {stage for stage, _, _ in plain.events} <= {
        "prepare",
        "domains",
        "signatures",
        "solve",
        "measure",
    }, "nothing is written, verified or published"
    assert world.left_in_work() == []
    assert not world.sink.exists()


def test_the_chosen_configuration_runs_from_elsewhere_and_gives_the_same_figures(
    plain: Watched, world: World, tmp_path: Path
) -> None:
    best = plain.found.best
    assert best is not None
    assert best.gcp == min(cell.gcp for cell in plain.found.cells if cell.gcp is not None and cell.k == 8)
    path = plain.found.write_config(tmp_path / "deep" / "choice.yaml")
    release = world.run(load_config(path))
    assert release.manifest["method"] == best.method
    same_figures(best, release.manifest)
    assert world.sink.exists(), "paths are told from where the file stands now"
    assert world.left_in_work() == KEPT


def test_a_browser_shows_the_page_without_a_complaint(plain: Watched, tmp_path: Path) -> None:
    logged, page, asked = browse(plain.found.page(tmp_path / "compare.html"), tmp_path, width=390)
    assert "CONSOLE" not in logged
    assert asked == set()
    assert "What protection costs" in page
    assert "lattice" in page


def test_persons_and_models_over_blocks(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published_sizes, "DRIVER_ENTRIES", 0)
    privacy = {"unit": "who", "l_diversity": 2, "max_suppression": 0.2}
    blocks = {"local_limit": 0, "block_size": 20}
    watched = Watched(world, privacy=privacy, execution=blocks).run(world, methods="lattice,kactus", k=4)
    cell, without = watched.found.cells
    assert watched.aggregations == 1
    assert without.reason.startswith("method.target: kactus needs the column")
    assert (without.exit_code, without.measured, watched.found.exit_code) == (2, False, 0)
    assert world.left_in_work() in ([], KEPT)
    release = world.run(load_config(watched.file, overrides=["privacy.k=4", "method.name=lattice"]))
    manifest = release.manifest
    same = (cell.gcp, cell.dm, cell.cavg, cell.classes, cell.smallest, cell.suppressed)
    metrics = manifest["metrics"]
    expected = (metrics["gcp"], metrics["dm"], metrics["cavg"], manifest["classes"])
    assert same == (*expected, manifest["privacy"]["k"]["achieved"], manifest["rows"]["suppressed"])
    assert cell.bound_kind == "simple per block"
    assert cell.gcp_bound is not None and cell.gcp is not None
    assert 0 < cell.gcp_bound <= cell.gcp
    assert watched.found.facts.persons == manifest["persons"]
    assert watched.found.facts.demands == ("max_suppression: 0.2", "l_diversity: l 2")


def test_what_no_release_can_be_is_a_reason(world: World) -> None:
    watched = Watched(world, privacy={"personal_k": {"rule": "CASE WHEN age < 30 THEN 5 END"}})
    found = watched.run(world, methods="mondrian", k="4,1000").found
    small, none = found.cells
    assert small.smallest is not None and small.smallest >= 4
    assert "fewer than k = 1000" in none.reason
    assert (none.exit_code, found.exit_code) == (3, 0)


def test_wrong_columns_are_refused(world: World) -> None:
    loaded = Watched(world).loaded
    for label in ("nowhere", "age", "who"):
        with pytest.raises(RequestError):
            compare(loaded, spark=world.spark, methods="lattice", k=3, label=label)
    with pytest.raises(RequestError, match="no column 'nowhere'"):
        compare(loaded, spark=world.spark, methods="kactus:target=nowhere", k=3)
    assert world.left_in_work() in ([], KEPT)


def test_a_failure_leaves_nothing(spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KANON_FAIL_AT", "measure")
    with pytest.raises(InternalError, match="failpoint"):
        Anonymizer(quasi_identifiers=QIS, other="drop", unit="who").compare(rows_of(spark), methods="mondrian", k=3)
    assert list((tmp_path / ".kanon").iterdir()) == []


def test_a_sample_takes_whole_persons_and_is_told(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    job = Anonymizer(quasi_identifiers=QIS, sensitive=["ill"], other="drop", unit="who")
    found = job.compare(rows_of(spark), methods=["mondrian"], k=[2], sample=0.4)
    facts = found.facts
    assert facts.whole == 150
    assert 30 < facts.rows < 90
    assert facts.notes[0].startswith(f"All figures are of a sample: {facts.rows} of 150 rows, as asked for.")
    assert facts.notes[0] in found._repr_html_()
    assert "Measured on a sample of" in found.config_text(cell=found.cells[0])


def test_a_sample_depends_on_content_and_seed_alone(spark: "SparkSession", tmp_path: Path) -> None:
    rows = rows_of(spark).unionByName(rows_of(spark).limit(60))
    config = load_config({"columns": {"quasi_identifiers": QIS}, "privacy": {"unit": "who"}}).config
    without = load_config({"columns": {"quasi_identifiers": QIS}}).config

    def drawn(table: "DataFrame", config: Any, seed: int = 0, sample: Sample | None = None) -> Counter[Any]:
        path = str(tmp_path / "drawn")
        asked = sample or Sample(share=0.5)
        found = draw(table, config, labels=["ill"], asked=asked, seed=seed, path=path)
        return Counter(tuple(row) for row in found.table.collect())

    for each in (config, without):
        first = drawn(rows, each)
        assert first == drawn(rows.repartition(7, "age").orderBy("ill"), each)
        assert first != drawn(rows, each, seed=1)
        assert 60 < sum(first.values()) < 150
    whole = drawn(rows, config, sample=Sample())
    assert sum(whole.values()) == 210
    taken = drawn(rows, config)
    persons = {row[-2] for row in taken} - {None}
    assert all(taken[row] == whole[row] for row in whole if row[-2] in persons), "all rows of a person, or none"
    alike = drawn(rows, without)
    pairs = drawn(rows, without, sample=Sample())
    assert all(abs(alike[row] - many / 2) < 1 for row, many in pairs.items()), "of each kind its share, rounded"
