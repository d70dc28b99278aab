"""Random files and domains: every builder keeps the invariants, and `lca` agrees with ancestor sets."""

import csv
import tempfile
from datetime import date, timedelta
from pathlib import Path
from typing import ClassVar

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kanon_spark.config.models import CsvSpec, DateSpec, IntervalSpec, PrefixSpec
from kanon_spark.hierarchy.build import StaticHierarchy, build_tree, load_static
from kanon_spark.hierarchy.check import check_tree
from kanon_spark.hierarchy.stems import ranked
from kanon_spark.hierarchy.tree import Domain, Tree

Row = tuple[str, ...]
unhurried = settings(deadline=None)  # a busy machine is no failure


@st.composite
def files(draw: st.DrawFn, *, numeric: bool = False) -> list[Row]:
    """A random tree, written down in random order; some labels repeat the one above them, as ARX's files do."""
    height = draw(st.integers(1, 4))
    count = draw(st.integers(1, 14))
    rows: list[Row] = []
    parents: list[list[Row]] = [[("*",)]]
    for level in range(height - 1):
        names = draw(st.lists(st.integers(0, len(parents[-1]) - 1), min_size=1, max_size=6))
        repeated: set[int] = set()
        here = []
        for number, up in enumerate(names):
            # At most one child repeats its parent's label: two would be the same node twice.
            same = up not in repeated and draw(st.booleans())
            if same:
                repeated.add(up)
            label = parents[-1][up][0] if same else f'n{level};"{number}'
            here.append((label, *parents[-1][up]))
        parents.append(here)
    values = (
        draw(st.permutations([str(v) for v in range(-3, count - 3)])) if numeric else [f"v{i}" for i in range(count)]
    )
    for value in values:
        rows.append((value, *draw(st.sampled_from(parents[-1]))))
    return rows


def load(
    rows: list[Row], *, numeric: bool = False, min_level: int = 0, max_level: int | None = None
) -> StaticHierarchy:
    with tempfile.TemporaryDirectory() as folder:
        with (Path(folder) / "h.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, delimiter=";").writerows(rows)
        return load_static(
            CsvSpec(path="h.csv"),
            qi="q",
            base_dir=Path(folder),
            numeric=numeric,
            min_level=min_level,
            max_level=max_level,
        )


def ancestors(tree: Tree, node: int) -> list[int]:
    path = [node]
    while tree.parent[path[-1]] >= 0:
        path.append(int(tree.parent[path[-1]]))
    return path


@unhurried
@given(files())
def test_files_come_back_as_they_were_written(rows: list[Row]) -> None:
    found = load(rows)
    check_tree(found.tree)
    assert len(found.lookup) == len(rows)
    for row in rows:
        labels = tuple(found.tree.labels[v] for v in found.tree.levels[:, found.lookup[row[0]]])
        assert labels == row
        assert found.texts[found.lookup[row[0]]] == row[0]


@unhurried
@given(files())
def test_loss_is_the_share_of_lines_that_name_the_label(rows: list[Row]) -> None:
    tree = load(rows).tree
    for v in range(tree.leaves, tree.root):
        under = int(tree.hi[v] - tree.lo[v])
        assert tree.loss[v] == (under / len(rows) if under > 1 else 0)


@unhurried
@given(files(), st.data())
def test_lca_is_the_first_common_ancestor(rows: list[Row], data: st.DataObject) -> None:
    tree = load(rows).tree
    nodes = st.integers(0, tree.root)
    pairs = data.draw(st.lists(st.tuples(nodes, nodes), min_size=1, max_size=20))
    left, right = (np.array(side, dtype=np.int32) for side in zip(*pairs, strict=True))
    for found, (a, b) in zip(tree.lca(left, right).tolist(), pairs, strict=True):
        common = set(ancestors(tree, b))
        assert found == next(v for v in ancestors(tree, a) if v in common)


@unhurried
@given(files(numeric=True), st.integers(0, 3), st.integers(0, 4), st.booleans())
def test_levels_cut_files_at_both_ends(rows: list[Row], low: int, high: int, numeric: bool) -> None:
    height = len(rows[0]) - 1
    low, high = min(low, height - 1), min(max(low, high), height)
    high = max(low, high)
    whole = load(rows, numeric=numeric)
    cut = load(rows, numeric=numeric, min_level=low, max_level=high)
    check_tree(whole.tree)
    check_tree(cut.tree)
    for row in rows:
        path = cut.tree.levels[:, cut.lookup[row[0]]]
        original = whole.tree.levels[low:, whole.lookup[row[0]]]
        assert [cut.tree.labels[v] for v in path] == list(row[low:])
        for v, w in zip(path, original, strict=True):
            assert np.isinf(cut.tree.loss[v]) or np.isclose(cut.tree.loss[v], whole.tree.loss[w])
    for v in range(cut.tree.nodes):
        under = [u for u in range(cut.tree.nodes) if v in ancestors(cut.tree, u)]
        lowest = max(int(np.argmax((cut.tree.levels == u).any(axis=1))) for u in under)
        assert np.isfinite(cut.tree.loss[v]) == (lowest <= high - low)


finite = st.floats(-1e6, 1e6, allow_nan=False).map(lambda x: round(x, 3) + 0.0)


@st.composite
def number_domains(draw: st.DrawFn) -> Domain:
    integer = draw(st.booleans())
    values = sorted(draw(st.sets(st.integers(-500, 500) if integer else finite, min_size=1, max_size=30)))
    counts = draw(st.lists(st.integers(1, 10**6), min_size=len(values), max_size=len(values)))
    return Domain(
        "integer" if integer else "real",
        tuple(str(v) for v in values),
        np.array(values, dtype=float),
        np.array(counts, dtype=np.int64),
        draw(st.booleans()),
    )


@st.composite
def interval_specs(draw: st.DrawFn) -> IntervalSpec:
    widths = [draw(st.sampled_from([0.1, 0.25, 1, 3, 5, 7.5]))]
    for factor in draw(st.lists(st.integers(2, 5), max_size=3)):
        widths.append(round(widths[-1] * factor, 6))
    bottom, top = sorted(draw(st.sets(st.integers(-600, 600), min_size=2, max_size=2)))
    return IntervalSpec(
        widths=tuple(widths),
        origin=draw(st.sampled_from([0, -7, 0.1, 2.5])),
        bottom=bottom if draw(st.booleans()) else None,
        top=top if draw(st.booleans()) else None,
    )


def holds(label: str, value: float) -> bool:
    """Read an interval label with code of its own."""
    if label.startswith("< "):
        return value < float(label[2:])
    if label.startswith(">= "):
        return value >= float(label[3:])
    if not label.startswith("["):
        return float(label) == value
    low, high = label[1:-1].split(", ")
    return float(low) <= value and (value <= float(high) if label.endswith("]") else value < float(high))


@unhurried
@given(interval_specs(), number_domains())
def test_interval_labels_are_true(spec: IntervalSpec, domain: Domain) -> None:
    tree = build_tree(spec, domain, qi="q")
    check_tree(tree)
    assert tree.height == len(spec.widths) + 1
    for code, value in enumerate(domain.positions.tolist()):
        for node in tree.levels[1:-1, code]:
            assert holds(str(tree.labels[node]), value)
    inner = [label for label in tree.labels[tree.leaves : -1] if str(label)[0] in "<>"]
    assert len(inner) == len(set(inner))  # an open end is one node


@unhurried
@given(interval_specs(), number_domains(), st.data())
def test_interval_representatives_carry_the_label_of_their_level(
    spec: IntervalSpec, domain: Domain, data: st.DataObject
) -> None:
    level = data.draw(st.integers(1, len(spec.widths)))
    whole = build_tree(spec, domain, qi="q")
    wanted = list(dict.fromkeys(str(whole.labels[v]) for v in whole.levels[level, : len(domain.texts)]))
    lows = [
        float(domain.positions[whole.lo[v]]) for v in dict.fromkeys(whole.levels[level, : len(domain.texts)].tolist())
    ]
    ends = [label[1:].split(",")[0] if label[0] == "[" else None for label in wanted]
    points = np.array([low if end is None else float(end) for low, end in zip(lows, ends, strict=True)])
    base = Domain(domain.kind, tuple(map(str, points)), points, np.ones(len(points), dtype=np.int64))
    tree = build_tree(spec, base, qi="q", min_level=level)
    check_tree(tree)
    assert list(tree.labels[: tree.leaves]) == wanted


@unhurried
@given(number_domains())
def test_search_trees_of_numbers(domain: Domain) -> None:
    tree = build_tree(None, domain, qi="q")
    check_tree(tree)
    assert tree.labels[: len(domain.texts)] == domain.texts
    for v in range(tree.leaves, tree.root):
        inside = domain.positions[tree.lo[v] : tree.hi[v]]
        assert np.isclose(tree.loss[v], (inside.max() - inside.min()) / domain.span)
    children = np.bincount(tree.parent[: tree.root], minlength=tree.nodes)[tree.leaves : tree.root]
    assert (children == 2).all()


@unhurried
@given(st.sets(st.text("0123456789é", max_size=6), min_size=1, max_size=30), st.sets(st.integers(1, 6), min_size=1))
def test_prefix_labels(values: set[str], keep: set[int]) -> None:
    texts = tuple(sorted(values))
    spec = PrefixSpec(keep=tuple(sorted(keep, reverse=True)))
    tree = build_tree(
        spec, Domain("text", texts, np.full(len(texts), np.nan), np.ones(len(texts), dtype=np.int64)), qi="q"
    )
    check_tree(tree)
    longest = max(map(len, texts))
    for code, text in enumerate(texts):
        for kept, node in zip(spec.keep, tree.levels[1:, code], strict=False):
            label = tree.labels[node]
            assert label == (text if len(text) < kept else text[:kept].ljust(longest, "*"))
    search = build_tree(
        None, Domain("text", texts, np.full(len(texts), np.nan), np.ones(len(texts), dtype=np.int64)), qi="q"
    )
    check_tree(search)


@unhurried
@given(
    st.sets(st.dates(date(1850, 1, 1), date(2150, 1, 1)), min_size=1, max_size=30),
    st.sets(st.sampled_from(["day", "month", "quarter", "year", "decade"]), min_size=1),
    st.booleans(),
)
def test_date_labels(values: set[date], chosen: set[str], clock: bool) -> None:
    order = ["day", "month", "quarter", "year", "decade"]
    levels = sorted(chosen, key=order.index)
    moments = sorted(values)
    positions = np.array([(day - date(1970, 1, 1)) / timedelta(days=1) for day in moments])
    domain = Domain(
        "timestamp" if clock else "date",
        tuple(f"{day.isoformat()} 23:59:59" if clock else day.isoformat() for day in moments),
        positions * 86_400 + 86_399 if clock else positions,
        np.ones(len(moments), dtype=np.int64),
        True,
    )
    tree = build_tree(DateSpec.model_validate({"levels": levels}), domain, qi="q")
    check_tree(tree)
    for code, day in enumerate(moments):
        wanted = {
            "day": day.isoformat(),
            "month": f"{day:%Y-%m}",
            "quarter": f"{day.year}-Q{(day.month + 2) // 3}",
            "year": str(day.year),
            "decade": f"{str(day.year)[:3]}0s",
        }
        assert [tree.labels[v] for v in tree.levels[1:-1, code]] == [wanted[level] for level in levels]


class Stemmed(CsvSpec):
    """A file under whose values longer ones stand."""

    stem: ClassVar[int | None] = 3


@unhurried
@given(files(), st.lists(st.text("0123456789.", max_size=4), max_size=20, unique=True))
def test_longer_codes_have_the_path_of_their_stem(rows: list[Row], endings: list[str]) -> None:
    """The file's values are filled up to three characters and get endings; `w__` is a stem that no file has."""
    named = {f"{row[0]:_<3}": row[1:] for row in rows}
    texts = sorted({f"{stem}{ending}" for ending in endings for stem in [*named, "w__"]})
    known = [text for text in texts if text[:3] in named]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "h.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, delimiter=";").writerows((stem, *labels) for stem, labels in named.items())
        spec = Stemmed(path=str(path), unknown="root")
        ordered = tuple(texts[i] for i in ranked(tuple(texts), spec))
        domain = Domain("text", ordered, np.full(len(texts), np.nan), np.ones(len(texts), np.int64), has_null=True)
        tree = build_tree(spec, domain, qi="q")
    check_tree(tree)
    for leaf, text in enumerate(ordered):
        path_up = tuple(tree.labels[v] for v in tree.levels[:, leaf])
        wanted = (text, text[:3], *named[text[:3]]) if text in known else ("*",) * tree.levels.shape[0]
        assert path_up == wanted
        for node in ancestors(tree, leaf)[1:]:
            under = [x for x in ordered[int(tree.lo[node]) : int(tree.hi[node])] if x[:3] in named]
            if node != tree.root:
                assert tree.loss[node] == (len(under) / len(known) if len(under) > 1 else 0.0)
