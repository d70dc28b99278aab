"""The bench's way without Spark: the same classes, labels and losses as the engine, and the kernels' tables."""

import io

import pandas as pd
import pytest
from bench import kernels, show
from bench.adult import NUMERIC, QI5, ROW_ID, stand_in
from bench.jobs import ZIP, hierarchy_of
from bench.judge import judge
from bench.kernels import Ask, Timed, draw, measure_kernels
from bench.local import anonymize, config_of, prepare
from bench.places import HIERARCHIES
from rich.console import Console

K = 5
BY_NODES = {qi: {"hierarchy": hierarchy_of(qi)} for qi in QI5}
BY_SETS: dict[str, object] = {qi: {} for qi in QI5}


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return stand_in(1500).assign(**{ROW_ID: range(1500)})


@pytest.mark.parametrize(("qis", "method"), [(BY_NODES, "lattice"), (BY_SETS, "kmember")])
def test_the_judge_finds_the_loss_that_is_published(rows: pd.DataFrame, qis: dict[str, object], method: str) -> None:
    local = anonymize(rows, config_of(qis, k=K, method={"name": method, "effort": "fast"}))
    judged = judge(rows, local.release, qis=QI5, k=K, row_id=ROW_ID, hierarchies=HIERARCHIES, numeric=NUMERIC)
    assert judged.smallest >= K
    assert judged.suppressed == 0
    assert local.gcp == pytest.approx(judged.gcp_hierarchy if method == "lattice" else judged.gcp_set)
    assert local.signatures == rows.groupby(list(QI5)).ngroups
    kept = [name for name in rows.columns if name not in QI5]
    assert local.release[kept].equals(rows[kept])


def test_labels_are_counted_and_values_are_numbered(rows: pd.DataFrame) -> None:
    prepared = prepare(rows, config_of(BY_SETS, k=K, method={"name": "kmember", "label": "income"}))
    problem = prepared.solver.problem(prepared.frame)
    assert problem.labels is not None
    assert problem.labels.sum(axis=0).tolist() == rows["income"].value_counts().sort_index().tolist()
    assert (problem.labels.sum(axis=1) == problem.rows).all()
    first = rows.iloc[0]
    texts = [
        column.texts[code]
        for column, code in zip(
            prepared.solver.codebook.columns,
            prepared.solver.codebook.layout.unpack(
                prepared.frame[prepared.solver.codebook.layout.names()].to_numpy()[prepared.signature_of[:1]]
            )[0],
            strict=True,
        )
    ]
    assert texts == [str(first[qi]) for qi in QI5]


def test_drawn_tables_hold_the_asked_signatures_and_repeat() -> None:
    base, qis = stand_in(300), kernels.WIDTHS[9]
    table = draw(base, qis, 400, seed=1)
    assert table.groupby(list(qis)).ngroups == 400
    assert table[ZIP].str.fullmatch(r"\d{5}").all()
    assert table.equals(draw(base, qis, 400, seed=1))
    assert not table.equals(draw(base, qis, 400, seed=2))
    assert draw(base, ["sex"], 5, seed=1)["sex"].nunique() == 2  # there are no more


def test_kernels_are_timed_at_every_width_and_shown_beside_what_they_may_take() -> None:
    asks = [Ask("lattice", 300, 9), Ask("lattice", 200, 12), Ask("kmember", 300, 9, 1e-9), Ask("mst", 300, 6, 1e9)]
    told: list[str] = []
    timed = measure_kernels(stand_in(500), asks, k=K, seed=1, tell=told.append)
    assert [one.signatures for one in timed] == [300, 200, 300, 300]
    assert [one.reached for one in timed] == [None, None, False, True]
    assert all(0 < one.result <= one.signatures // K for one in timed[:3])
    assert len(told) == 4
    console = Console(width=150, file=io.StringIO())
    console.print(show.kernel_table(timed))
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert "above target" in shown
    assert "ok" in shown
    assert timed[3].to_json()["reached"] is True


def test_microseconds_are_per_signature() -> None:
    assert Timed(Ask("kmember", 10, 9), 2_000, 0.1, 1).micros == pytest.approx(50.0)
