"""Hierarchy files: what loads, what it means, and what is refused with which words."""

from pathlib import Path

import numpy as np
import pytest

from kanon_spark.config.models import CsvSpec
from kanon_spark.errors import HierarchyError, MissingInputError
from kanon_spark.hierarchy.build import StaticHierarchy, load_static
from kanon_spark.hierarchy.check import check_tree
from kanon_spark.hierarchy.tree import Tree


def load(
    folder: Path,
    content: str | bytes,
    *,
    numeric: bool = False,
    separator: str = ";",
    unknown: str = "error",
    min_level: int = 0,
    max_level: int | None = None,
) -> StaticHierarchy:
    path = folder / "h.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    spec = CsvSpec.model_validate({"path": "h.csv", "separator": separator, "unknown": unknown})
    found = load_static(spec, qi="q", base_dir=folder, numeric=numeric, min_level=min_level, max_level=max_level)
    check_tree(found.tree)
    return found


def node(tree: Tree, label: str) -> int:
    """The only inner node with this label."""
    (found,) = [v for v in range(tree.leaves, tree.nodes) if tree.labels[v] == label]
    return found


def path_labels(found: StaticHierarchy, value: str) -> list[str | None]:
    return [found.tree.labels[v] for v in found.tree.levels[:, found.lookup[value]]]


@pytest.fixture
def adult(repo: Path) -> Path:
    return repo / "hierarchies" / "adult"


def test_age_widths_are_those_of_the_labels(adult: Path) -> None:
    age = load_static(CsvSpec(path="age.csv"), qi="age", base_dir=adult, numeric=True)
    tree = age.tree
    check_tree(tree)
    assert path_labels(age, "17") == ["17", "[15-19]", "[10-19]", "[0-19]", "[0-39]", "*"]
    assert tree.width is not None
    assert [tree.width[node(tree, f"[{x}]")] for x in ("15-19", "10-19", "0-19", "0-39")] == [4, 9, 19, 39]
    assert np.isnan(tree.width[tree.root])
    over_data = tree.with_span(73)  # Adult's ages: 17 to 90
    assert over_data.loss[node(tree, "[15-19]")] == pytest.approx(4 / 73)
    assert over_data.loss[tree.root] == 1
    assert over_data.loss[age.lookup["17"]] == 0
    assert age.positions[age.lookup["17"]] == 17
    assert np.isnan(age.positions[tree.null_leaf])


def test_workclass_counts_leaves_and_single_children_are_free(adult: Path) -> None:
    found = load_static(CsvSpec(path="workclass.csv"), qi="workclass", base_dir=adult, numeric=False)
    tree = found.tree
    check_tree(tree)
    assert tree.leaves == 9  # eight values and null
    assert tree.loss[node(tree, "Private sector")] == 0
    assert tree.loss[node(tree, "Self-employed")] == pytest.approx(2 / 8)
    assert tree.loss[node(tree, "Non-government")] == pytest.approx(5 / 8)
    assert tree.loss[node(tree, "Government")] == pytest.approx(3 / 8)
    # The file has a non-government value after the governments; codes are in preorder all the same.
    assert (tree.lo[node(tree, "Non-government")], tree.hi[node(tree, "Non-government")]) == (0, 5)
    assert found.texts[:5] == ("Private", "Self-emp-inc", "Self-emp-not-inc", "Without-pay", "Never-worked")
    assert found.texts[tree.null_leaf] is None


@pytest.mark.parametrize("name", ["age", "education", "marital-status", "native-country", "occupation", "race", "sex"])
def test_every_adult_file_is_a_tree_over_its_lines(adult: Path, name: str) -> None:
    found = load_static(CsvSpec(path=f"{name}.csv"), qi=name, base_dir=adult, numeric=name == "age")
    check_tree(found.tree)
    for line in (adult / f"{name}.csv").read_text().splitlines():
        assert path_labels(found, line.split(";")[0]) == line.split(";")


def test_arx_features_load_unchanged(tmp_path: Path) -> None:
    content = b'\xef\xbb\xbf"a;1";"the ""A""";*\r\n\r\nb;"the ""A""";*\r\n   \r\n"c\nd";C;*'
    found = load(tmp_path, content)
    assert path_labels(found, "a;1") == ["a;1", 'the "A"', "*"]
    assert path_labels(found, "c\nd") == ["c\nd", "C", "*"]
    assert found.lookup == {"a;1": 0, "b": 1, "c\nd": 2}


def test_another_separator(tmp_path: Path) -> None:
    assert path_labels(load(tmp_path, "a,A,*\nb,A,*\n", separator=","), "b") == ["b", "A", "*"]


def test_a_list_of_values_is_flat(tmp_path: Path) -> None:
    tree = load(tmp_path, "a\nb\n").tree
    assert (tree.labels, tree.height) == (("a", "b", None, "*"), 1)


def test_the_last_column_names_the_root(tmp_path: Path) -> None:
    found = load(tmp_path, "a;A;Anybody\nb;B;Anybody\n")
    assert found.tree.labels[found.tree.root] == "Anybody"


def test_equal_labels_along_a_path_are_one_node(tmp_path: Path) -> None:
    # a leaves its branch early (*;*), X stands at levels 1 and 2, the leaf Y is called like its parent.
    found = load(tmp_path, "a;*;*;*\nb;X;X;*\nc;Z;X;*\nY;Y;Y;*\nd;Y;Y;*\n")
    tree = found.tree
    assert tree.parent[found.lookup["a"]] == tree.root
    x = node(tree, "X")
    assert (tree.lo[x], tree.hi[x]) == (found.lookup["b"], found.lookup["c"] + 1)
    assert tree.parent[found.lookup["b"]] == x == tree.parent[node(tree, "Z")]
    assert path_labels(found, "c") == ["c", "Z", "X", "*"]
    y = node(tree, "Y")
    assert tree.parent[found.lookup["Y"]] == y
    assert tree.loss[y] == pytest.approx(2 / 5)
    assert tree.loss[found.lookup["Y"]] == 0


def test_one_label_at_different_levels_of_different_paths_is_two_nodes(tmp_path: Path) -> None:
    tree = load(tmp_path, "a;X;P;*\nb;Q;X;*\n").tree
    assert tree.labels.count("X") == 2


def test_lca_of_a_node_and_its_only_child_is_the_node(tmp_path: Path) -> None:
    found = load(tmp_path, "a;A;*\nb;B;*\n")
    leaf, only = np.array([found.lookup["a"]], np.int32), np.array([node(found.tree, "A")], np.int32)
    assert found.tree.lca(leaf, only).tolist() == only.tolist() == found.tree.lca(only, leaf).tolist()


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        ("a;X;P;*\nb;Y;P;*\nc;X;Q;*\n", 3, ["not a tree", "'X'", "level 1", "'P'", "'Q'", "line 1"]),
        ("a;X;X;*\nb;X;Y;*\n", 2, ["not a tree", "'X'"]),
        ("a;X;Y;*\nb;X;X;*\n", 2, ["not a tree", "'X'"]),
        ("a;X;Y;X;*\n", 1, ["not a tree", "comes back"]),
        ("a;A;*\n\nb;*\n", 3, ["ragged", "2 labels", "line 1 has 3"]),
        ("a;A;*\nb;B;*\na;A;*\n", 3, ["duplicate leaves", "line 1"]),
        ("a;A\nb;B\n", 2, ["no single root", "add a last column '*'"]),
        ("a;;*\n", 1, ["empty label", "level 1"]),
        ("a;A;*;\n", 1, ["empty label", "level 3"]),
        ('a;A;*\nb;"B;*\n', 2, ["not valid CSV"]),
        ("a,A,*\nb,B,*\n", 1, ["separated by ','", 'separator: ","']),
    ],
)
def test_broken_files_name_line_rule_and_fix(tmp_path: Path, content: str, line: int, words: list[str]) -> None:
    with pytest.raises(HierarchyError) as caught:
        load(tmp_path, content)
    assert caught.value.where == f"{tmp_path / 'h.csv'}:{line}"
    assert caught.value.fix
    for word in words:
        assert word in str(caught.value)


def test_empty_missing_and_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(HierarchyError, match="empty"):
        load(tmp_path, "\n \n")
    with pytest.raises(HierarchyError, match="UTF-8"):
        load(tmp_path, "é;*\n".encode("latin-1"))
    for gone in ("gone.csv", "."):
        with pytest.raises(MissingInputError) as caught:
            load_static(CsvSpec(path=gone), qi="q", base_dir=tmp_path, numeric=False)
        assert caught.value.fix


def test_leaves_are_not_told_in_errors(tmp_path: Path) -> None:
    with pytest.raises(HierarchyError) as caught:
        load(tmp_path, "secret;A;*\nsecret;A;*\n")
    assert "secret" not in str(caught.value)


def test_numeric_widths_from_labels_or_values(tmp_path: Path) -> None:
    rows = [
        "1;low;[0, 10);*",
        "4;low;[0, 10);*",
        "12;]10;20];wide;*".replace("]10;20]", '"]10;20]"'),
        "13;25-29;wide;*",
    ]
    tree = load(tmp_path, "\n".join(rows), numeric=True).tree
    assert tree.width is not None
    assert tree.width[node(tree, "low")] == 3  # no interval: the range of its values
    assert tree.width[node(tree, "[0, 10)")] == 10
    assert tree.width[node(tree, "]10;20]")] == 10
    assert tree.width[node(tree, "25-29")] == 0  # does not hold 13, so it is only a text
    assert tree.width[node(tree, "wide")] == 10  # never less than its children
    assert tree.loss[node(tree, "low")] == pytest.approx(3 / 12)


def test_numeric_leaves_must_be_numbers(tmp_path: Path) -> None:
    with pytest.raises(HierarchyError, match="not a number") as caught:
        load(tmp_path, "1;*\nx;*\n", numeric=True)
    assert caught.value.where.endswith("h.csv:2")
    with pytest.raises(HierarchyError, match="duplicate leaves") as caught:
        load(tmp_path, "1;*\n1.0;*\n", numeric=True)
    assert caught.value.where.endswith("h.csv:2")


def test_min_level_makes_groups_the_leaves_and_keeps_counting_values(tmp_path: Path) -> None:
    found = load(tmp_path, "a;A;P;*\nb;A;P;*\nc;C;P;*\nd;D;Q;*\n", min_level=1)
    tree = found.tree
    assert found.texts == ("A", "C", "D", None)
    assert found.lookup == {"a": 0, "b": 0, "c": 1, "d": 2}
    assert tree.height == 2
    assert tree.loss[:4].tolist() == [2 / 4, 0, 0, 0]
    assert tree.loss[node(tree, "P")] == 3 / 4


def test_min_level_of_numbers_keeps_widths(adult: Path) -> None:
    age = load_static(CsvSpec(path="age.csv"), qi="age", base_dir=adult, numeric=True, min_level=2)
    tree = age.tree
    check_tree(tree)
    assert age.texts[age.lookup["17"]] == "[10-19]"
    assert tree.width is not None
    assert tree.width[age.lookup["17"]] == 9
    assert tree.width[node(tree, "[0-39]")] == 39
    assert tree.with_span(73).loss[age.lookup["17"]] == pytest.approx(9 / 73)
    assert age.positions[age.lookup["17"]] == 15  # the least value of the file under it


def test_max_level_forbids_what_is_above_its_lowest_level(tmp_path: Path) -> None:
    tree = load(tmp_path, "a;A;P;*\nb;A;P;*\nc;P;P;*\nd;D;Q;*\n", max_level=1).tree
    assert tree.max_level == 1
    assert tree.loss[node(tree, "A")] == 2 / 4
    assert tree.loss[node(tree, "P")] == 3 / 4  # reached at level 1 by c
    assert np.isinf(tree.loss[[node(tree, "Q"), tree.root]]).all()
    assert tree.loss[tree.null_leaf] == 0
    assert np.isinf(tree.with_span(7).loss[tree.root])


def test_a_short_branch_does_not_open_the_root_to_the_others(tmp_path: Path) -> None:
    tree = load(tmp_path, "a;A;P;*\nb;A;P;*\nc;*;*;*\n", max_level=1).tree
    assert np.isinf(tree.loss[[node(tree, "P"), tree.root]]).all()


def test_min_level_of_a_branch_that_ended_in_the_root(tmp_path: Path) -> None:
    found = load(tmp_path, "a;*;*\nb;B;*\n", min_level=1)
    assert found.texts == ("*", "B", None)
    assert found.tree.loss[:2].tolist() == [1, 0]


def test_max_level_counts_from_the_file(tmp_path: Path) -> None:
    tree = load(tmp_path, "a;A;P;*\nb;A;P;*\n", min_level=1, max_level=2).tree
    assert tree.max_level == 1
    assert tree.loss[node(tree, "P")] == 1
    assert np.isinf(tree.loss[tree.root])


def test_unknown_values_have_a_leaf_that_reads_as_the_root(tmp_path: Path) -> None:
    found = load(tmp_path, "1;A;*\n2;A;*\n", unknown="root", numeric=True)
    tree = found.tree
    assert (tree.unknown_leaf, tree.null_leaf) == (2, 3)
    assert found.texts == ("1", "2", "*", None)
    assert tree.with_span(100).loss[tree.unknown_leaf] == 1
    assert np.isinf(load(tmp_path, "1;A;*\n", unknown="root", max_level=1).tree.loss[1])


@pytest.mark.parametrize(("low", "high", "word"), [(2, None, "min_level"), (0, 3, "max_level"), (1, 0, "max_level")])
def test_levels_that_are_not_there(tmp_path: Path, low: int, high: int | None, word: str) -> None:
    with pytest.raises(HierarchyError, match=word) as caught:
        load(tmp_path, "a;A;*\n", min_level=low, max_level=high)
    assert caught.value.where == "columns.quasi_identifiers.q"
