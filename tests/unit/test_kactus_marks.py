"""How `kactus` writes what it suppresses, and means in place of ranges: forms, labels, and their judges."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kanon_spark.config.models import Config, CsvSpec, FlatSpec, PrefixSpec, QiSpec
from kanon_spark.hierarchy.tree import Domain, Kind
from kanon_spark.recoding.publish import mean_label
from kanon_spark.signatures.forms import form_of
from kanon_spark.signatures.qi_columns import built_column, load_file, static_column
from kanon_spark.verify.means import MeanJudge
from kanon_spark.verify.truth import judge_for


def config(**method: Any) -> Config:
    return Config.model_validate({"columns": {"quasi_identifiers": ["age"]}, "method": method})


KACTUS = config(name="kactus", target="ill")
MEANS = config(name="kactus", target="ill", numeric="mean")


@pytest.mark.parametrize(
    ("spec", "kind", "mean"),
    [
        (QiSpec(), "integer", True),
        (QiSpec(), "real", True),
        (QiSpec(), "date", False),
        (QiSpec(), "text", False),
        (QiSpec(hierarchy=FlatSpec()), "integer", False),
    ],
)
def test_only_numbers_without_a_hierarchy_become_means(spec: QiSpec, kind: Kind, mean: bool) -> None:
    assert form_of(spec, kind, MEANS).mean is mean
    assert not form_of(spec, kind, KACTUS).mean
    assert not form_of(spec, kind, config(name="lattice")).mean


def test_the_root_reads_as_the_method_writes_suppressed_cells(tmp_path: Path) -> None:
    (tmp_path / "sex.csv").write_text("F;Person\nM;Person\n", encoding="utf-8")
    spec = QiSpec(hierarchy=CsvSpec(path="sex.csv", unknown="root"))
    file = load_file(spec, "text", qi="sex", base_dir=tmp_path)
    domain = Domain("text", ("121", "122"), np.full(2, np.nan), np.ones(2, np.int64))
    prefix = QiSpec(hierarchy=PrefixSpec(keep=[2]))
    for job, root, mark in ((KACTUS, "?", "?"), (config(name="lattice"), "Person", "*")):
        tree = static_column("sex", spec, "text", file, form_of(spec, "text", job)).tree
        assert (tree.labels[tree.root], tree.labels[tree.unknown_leaf]) == (root, mark)
        assert {"F", "M"} <= set(tree.labels)
        built = built_column("zip", prefix, domain, form_of(prefix, "text", job)).tree
        assert built.labels[built.root] == mark


@pytest.mark.parametrize("spec", [QiSpec(), QiSpec(hierarchy=FlatSpec()), QiSpec(hierarchy=PrefixSpec(keep=[1]))])
def test_a_question_mark_is_a_suppressed_cell_in_a_kactus_run_only(spec: QiSpec) -> None:
    plain, marked = judge_for(spec, kind="text"), judge_for(spec, kind="text", suppressed="?")
    for raw in ("a", None):
        assert marked.covers(raw, "?")
        assert not plain.covers(raw, "?")
    assert not judge_for(QiSpec(), kind="text", suppressed="?").covers("a", "*")
    arrays = judge_for(QiSpec(), kind="text", members=True, suppressed="?")
    assert arrays.covers("a", '["?"]') and arrays.covers(None, '["?"]') and not arrays.covers("a", '["*"]')


def test_a_mean_may_be_any_number_but_nothing_else() -> None:
    judge = MeanJudge("?")
    assert all(judge.covers("30", label) for label in ("30", "31.5", "-2.0", "1e+22", "inf", "?"))
    assert not any(judge.covers("30", label) for label in ("[30, 40]", "*", "nan", "", None))
    assert judge.covers(None, None) and judge.covers(None, "?") and not judge.covers(None, "30.0")


@pytest.mark.parametrize(
    ("positions", "rows", "label"),
    [
        ([20.0, 30.0], [1, 1], "25.0"),
        ([20.0, 30.0], [3, 1], "22.5"),
        ([0.1, 0.2, 0.3], [1, 1, 1], "0.19999999999999998"),
        ([-1.0, 1.0], [2, 2], "0.0"),
        ([1.0, np.inf], [1, 1], "inf"),
        ([-np.inf, np.inf], [1, 1], "?"),
    ],
)
def test_means_are_written_as_numbers(positions: list[float], rows: list[int], label: str) -> None:
    domain = Domain("real", tuple(map(str, positions)), np.array(positions), np.ones(len(rows), np.int64))
    column = built_column("x", QiSpec(), domain, form_of(QiSpec(), "real", MEANS))
    assert mean_label(column, np.arange(len(rows), dtype=np.int32), np.array(rows)) == label
