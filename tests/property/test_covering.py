"""The class of least loss that covers a tuple, against a search by hand with the verifier's own judges."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kanon_spark.config.models import CsvSpec, DateSpec, FlatSpec, IntervalSpec, PrefixSpec, QiSpec
from kanon_spark.hierarchy.tree import ORDERED, Domain, Kind
from kanon_spark.recoding import covering
from kanon_spark.recoding.classes import Classes
from kanon_spark.recoding.covering import Label, cover_of
from kanon_spark.recoding.kept import Kept, KeptColumn
from kanon_spark.recoding.publish import set_label
from kanon_spark.signatures.codebook import QiColumn
from kanon_spark.signatures.qi_columns import built_column, load_file, static_column
from kanon_spark.verify.truth import judge_for

FILE = "baker;craft;*\nsmith;craft;*\nnurse;care;*\n"


class Case:
    """One kind of quasi-identifier: values that tables may hold, and labels that a recoding may have published."""

    def __init__(self, spec: QiSpec, kind: Kind, values: list[str], labels: list[Label]) -> None:
        self.spec, self.kind, self.values = spec, kind, values
        self.labels: list[Label] = [*labels, None, "*"]

    def column(self, held: list[Label], folder: Path) -> QiColumn:
        """The column of a table that holds these values (a file's own whatever it holds)."""
        if isinstance(self.spec.hierarchy, CsvSpec):
            hierarchy = load_file(self.spec, self.kind, qi="q", base_dir=folder)
            return static_column("q", self.spec, self.kind, hierarchy)
        known = sorted({value for value in held if value is not None}, key=self._key)
        places = np.array([self._key(text) if self.kind in ORDERED else np.nan for text in known], dtype=float)
        domain = Domain(self.kind, tuple(known), places, np.ones(len(known), np.int64), has_null=None in held)
        return built_column("q", self.spec, domain)

    def _key(self, text: str) -> Any:
        if self.kind in {"integer", "real"}:
            return float(text)
        return float(np.datetime64(text, "D").astype(int)) if self.kind == "date" else text

    def code(self, column: QiColumn, value: Label) -> int:
        if value is None:
            return column.tree.null_leaf
        return column.texts.index(value) if value in column.texts else column.tree.unknown_leaf


def _ranges(values: list[str]) -> list[Label]:
    return [*values, *(f"[{low}, {high}]" for at, low in enumerate(values) for high in values[at + 1 :])]


NUMBERS = ["-3", "0", "7", "12", "25"]
REALS = ["-0.5", "0.1", "0.25", "1.0E10", "9007199254740993", "9007199254740992"]
DAYS = ["1969-12-31", "2021-03-01", "2021-05-09", "2021-06-01"]
TEXTS = ["a", "b", "c, d", "{e", " f"]
SETS: list[Label] = [*TEXTS, *(set_label([x, y]) for x in TEXTS for y in TEXTS if x < y), set_label(TEXTS)]
CASES = [
    Case(QiSpec(), "integer", NUMBERS, _ranges(NUMBERS)),
    Case(QiSpec(), "real", REALS, _ranges(["-0.5", "0.1", "1.0E10", "9007199254740992"])),
    Case(QiSpec(), "date", DAYS, _ranges(DAYS[:3])),
    Case(QiSpec(), "text", TEXTS, SETS),
    Case(
        QiSpec(hierarchy=IntervalSpec(widths=(5, 10), bottom=0)),
        "integer",
        NUMBERS,
        ["7", "< 0", "[0, 4]", "[5, 9]", "[0, 9]", "[10, 19]"],
    ),
    Case(
        QiSpec(hierarchy=PrefixSpec(keep=(3, 1))),
        "text",
        ["1040", "1041", "104", "10", "1", "2x"],
        ["1040", "104", "104*", "104**", "1***", "2*", "10"],
    ),
    Case(QiSpec(hierarchy=DateSpec(levels=("month", "year"))), "date", DAYS, ["2021-03", "2021", "1969-12", *DAYS]),
    Case(QiSpec(hierarchy=FlatSpec()), "text", TEXTS[:3], ["a", "b"]),
    Case(
        QiSpec(hierarchy=CsvSpec(path="jobs.csv", unknown="root")),
        "text",
        ["baker", "smith", "nurse", "pilot"],
        ["baker", "craft", "care", "nurse"],
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("jobs")
    (place / "jobs.csv").write_text(FILE, encoding="utf-8")
    return place


def judge(case: Case, folder: Path) -> Any:
    return judge_for(case.spec, kind=case.kind, csv_path=folder / "jobs.csv")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind} {type(case.spec.hierarchy).__name__}")
def test_every_label_covers_what_the_judge_says(case: Case, folder: Path) -> None:
    column = case.column([*case.values, None], folder)
    cover = cover_of(column, case.spec, case.labels, root="*")
    codes = np.array([case.code(column, value) for value in [*case.values, None]], dtype=np.int32)
    found = cover.covers(codes, np.arange(len(case.labels), dtype=np.int32))
    said = judge(case, folder)
    for row, value in zip(found.tolist(), [*case.values, None], strict=True):
        for covers, label in zip(row, case.labels, strict=True):
            assert covers == said.covers(value, label), (value, label)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_least_loss_that_covers(folder: Path, data: st.DataObject) -> None:
    picked = data.draw(st.lists(st.sampled_from(range(len(CASES))), min_size=1, max_size=3))
    cases = [CASES[index] for index in picked]
    tuples = data.draw(
        st.lists(st.tuples(*(st.sampled_from([*case.values, None]) for case in cases)), min_size=1, max_size=12)
    )
    tuple_of_labels = st.tuples(*(st.sampled_from(case.labels) for case in cases))
    published = data.draw(st.lists(tuple_of_labels, max_size=20, unique=True))
    quarter = st.integers(0, 4).map(lambda number: number / 4)  # many equal losses
    losses = [data.draw(st.tuples(*(quarter for _ in cases))) for _ in published]
    columns = [case.column([each[at] for each in tuples], folder) for at, case in enumerate(cases)]

    kept = _kept(columns)
    frame = pd.DataFrame(
        {
            "out0": np.zeros(len(published), np.int64),
            **{f"label_{at}": pd.Series([each[at] for each in published], dtype=object) for at in range(len(cases))},
            **{f"loss_{at}": [each[at] for each in losses] for at in range(len(cases))},
        }
    )
    for name in kept.node_layout.names("out"):
        frame[name] = 0
    classes = Classes.of(frame, kept, numbers=[])
    covers = [
        cover_of(column, case.spec, texts, root="*")
        for column, case, texts in zip(columns, cases, classes.texts, strict=True)
    ]
    codes = np.array(
        [[case.code(columns[at], each[at]) for at, case in enumerate(cases)] for each in tuples], dtype=np.int32
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(covering, "STEP_CLASSES", data.draw(st.sampled_from([1, 3, 8192])))
        patch.setattr(covering, "STEP_TUPLES", data.draw(st.sampled_from([1, 5, 4096])))
        numbers = classes.match(codes, covers)
    cells = classes.cells(np.maximum(numbers, 0)) if len(classes) else None

    judges = [judge(case, folder) for case in cases]
    for at, each in enumerate(tuples):
        fits = [
            (round(sum(loss) / len(loss), 12), [(label is not None, label or "") for label in labels], labels)
            for labels, loss in zip(published, losses, strict=True)
            if all(said.covers(value, label) for said, value, label in zip(judges, each, labels, strict=True))
        ]
        if not fits:
            assert numbers[at] == -1
            continue
        assert numbers[at] >= 0 and cells is not None
        best = min(fits)[2]
        assert tuple(cells.loc[at, f"label_{index}"] for index in range(len(cases))) == best


def _kept(columns: list[QiColumn]) -> Kept:
    """A recoding whose labels all stand in its entries as texts."""
    as_texts = tuple(replace(KeptColumn.of(column), publish="set") for column in columns)
    return Kept("run", None, as_texts, {}, {}, {})
