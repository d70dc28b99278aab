"""The reference taxonomies: each file is a sound tree, says what its standard says, and is made again byte for byte."""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kanon_spark.config.hierarchy_specs import fix_unknown
from kanon_spark.config.models import CsvSpec, QiSpec, ReferenceSpec
from kanon_spark.config.reference_files import REFERENCES, reference_file
from kanon_spark.errors import CoverageError, HierarchyError
from kanon_spark.hierarchy.build import StaticHierarchy, build_tree, load_static
from kanon_spark.hierarchy.check import check_tree
from kanon_spark.hierarchy.csv_file import read_hierarchy_file
from kanon_spark.hierarchy.reference import reference, references
from kanon_spark.hierarchy.stems import ranked
from kanon_spark.hierarchy.tree import Domain

# Values, and levels up to the root, of every file.
SIZES = {
    "ages": (121, 4),
    "countries_alpha2": (249, 4),
    "countries_alpha3": (249, 4),
    "countries_name": (346, 5),
    "icd10": (2050, 3),
    "icd10_cm": (1918, 3),
    "isco08": (436, 4),
    "us_states_code": (56, 3),
    "us_states_name": (56, 3),
}
# What anybody can look up.
FACTS = {
    "ages": ["17 15-17 10-17 0-17", "18 18-19 18-24 18-44", "64 60-64 55-64 45-64", "120 90+ 85+ 65+"],
    "countries_alpha2": [
        "FR|Western Europe|Western Europe|Europe",
        "KE|Eastern Africa|Sub-Saharan Africa|Africa",
        "BR|South America|Latin America and the Caribbean|Americas",
        "JP|Eastern Asia|Eastern Asia|Asia",
        "NZ|Australia and New Zealand|Australia and New Zealand|Oceania",
        "AQ|Antarctica|Antarctica|Antarctica",
    ],
    "countries_alpha3": ["FRA|Western Europe|Western Europe|Europe", "USA|Northern America|Northern America|Americas"],
    "countries_name": [
        "France|France|Western Europe|Western Europe|Europe",
        "United States|United States of America|Northern America|Northern America|Americas",
        "South Korea|Republic of Korea|Eastern Asia|Eastern Asia|Asia",
        "Cote d'Ivoire|Côte d'Ivoire|Western Africa|Sub-Saharan Africa|Africa",
    ],
    "icd10": ["E11|E10-E14|chapter IV", "C50|C50-C50|chapter II", "U07|U00-U49|chapter XXII", "I10|I10-I15|chapter IX"],
    "icd10_cm": ["E11|E08-E13|chapter 4", "C4A|C43-C44|chapter 2", "Z3A|Z30-Z39|chapter 21"],
    "isco08": ["2211 221 22 2", "0110 011 01 0", "9629 962 96 9"],
    "us_states_code": ["CA|Pacific|West", "DC|South Atlantic|South", "TX|West South Central|South"],
    "us_states_name": ["California|Pacific|West", "New York|Middle Atlantic|Northeast"],
}
# Nodes of each level above the values, as the standards count them.
NODES = {
    "countries_alpha2": [24, 18, 6],  # M49: 17 sub-regions in 5 regions, and Antarctica
    "icd10": [263, 22],
    "icd10_cm": [285, 22],
    "isco08": [130, 43, 10],
    "us_states_code": [10, 5],  # 9 divisions in 4 regions, and the territories
}


def loaded(name: str) -> StaticHierarchy:
    """The file as a column with this reference would have it, longer codes aside."""
    level = 0 if REFERENCES[name].stem is None else 1
    spec = ReferenceSpec(name=name)
    return load_static(spec, qi="q", base_dir=Path("/nowhere"), numeric=name == "ages", min_level=level)


@pytest.mark.parametrize("name", SIZES)
def test_every_file_is_a_sound_tree_of_known_size(name: str) -> None:
    found = loaded(name)
    check_tree(found.tree)
    assert (len(found.lookup), found.tree.height) == SIZES[name]
    assert found.tree.labels[found.tree.root] == "*"
    for fact in FACTS[name]:
        value, *labels = fact.split("|") if "|" in fact else fact.split()
        path = found.tree.levels[1:-1, found.lookup[value]]
        assert [found.tree.labels[node] for node in path] == labels
    for level, count in enumerate(NODES.get(name, []), start=1):
        row = found.tree.levels[level][: len(found.lookup)]
        assert len({found.tree.labels[node] for node in row}) == count


def test_there_is_a_file_for_every_reference_but_rules(repo: Path) -> None:
    files = {path.stem for path in (repo / "hierarchies" / "reference").glob("*.csv")}
    assert files == set(SIZES) == {name for name, entry in REFERENCES.items() if entry.keep is None}
    readme = (repo / "hierarchies" / "README.md").read_text(encoding="utf-8")
    for name, (values, levels) in SIZES.items():
        assert f"| `{name}` | {values:,} | {levels} |" in readme.replace("  ", " "), name


def test_unit_groups_per_major_group_are_those_of_the_standard() -> None:
    rows = read_hierarchy_file(reference_file("isco08")).rows
    found = Counter(row[3] for row in rows)
    assert [found[str(major)] for major in range(10)] == [3, 31, 92, 84, 29, 40, 18, 66, 40, 33]


@pytest.fixture
def makers(repo: Path) -> Iterator[None]:
    sys.path.insert(0, str(repo))
    yield
    sys.path.remove(str(repo))


def test_files_are_made_again_byte_for_byte(makers: None, capsys: pytest.CaptureFixture[str]) -> None:
    """Those that need no package; scripts/make_hierarchies --check compares all."""
    from hierarchies.make.__main__ import FROM_FACTS, FROM_PACKAGES, main

    assert set(FROM_FACTS) | set(FROM_PACKAGES) == set(SIZES)
    assert main(["--check", "--no-downloads"]) == 0
    assert capsys.readouterr().out.count("as it was") == len(FROM_FACTS)


def test_a_changed_file_is_noticed_and_mended(
    makers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from hierarchies.make import __main__ as make

    monkeypatch.setattr(make, "FOLDER", tmp_path)
    (tmp_path / "ages.csv").write_text("1;*\n")
    assert make.main(["--check", "ages"]) == 1
    assert (tmp_path / "ages.csv").read_text() == "1;*\n"
    assert make.main(["ages"]) == 0
    assert make.main(["--check", "ages"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.rpartition(", ")[2] for line in said] == ["differs", "written", "as it was"]


def test_what_a_reference_knows() -> None:
    names = [each.name for each in references()]
    assert names == sorted(REFERENCES)
    for each in references():
        assert QiSpec.model_validate({"hierarchy": each.spec}).hierarchy is not None
        assert each.title
        assert each.words
        assert each.kind == ("number" if each.name == "ages" else "text")
    assert len(reference("countries_alpha2").values) == 249
    assert reference("countries_alpha2").coverage(["FR", "DE", "XX", "fr", "FR"]) == 0.5
    assert reference("icd10").coverage(["E11.9", "E119", "E11", "E1", "e11"]) == 0.6
    assert reference("us_zip").coverage(["10001", "1001", "1000a", "94110"]) == 0.5
    assert reference("ages").coverage([]) == 0.0
    assert reference("us_zip").values == frozenset()
    with pytest.raises(KeyError):
        reference("planets")


def test_the_way_to_mend_unknown_values_names_the_reference() -> None:
    strict, lenient = ReferenceSpec(name="isco08"), ReferenceSpec(name="isco08", unknown="root")
    assert "{reference: {name: isco08, unknown: root}}" in fix_unknown(strict)
    assert fix_unknown(lenient) == "correct them"
    assert "{csv: {path: …, unknown: root}}" in fix_unknown(CsvSpec(path="a.csv"))


# Codes that are longer than those of the file


def domain(texts: list[str], spec: ReferenceSpec, *, has_null: bool = False) -> Domain:
    ordered = tuple(texts[i] for i in ranked(tuple(texts), spec))
    return Domain("text", ordered, np.full(len(texts), np.nan), np.full(len(texts), 2), has_null)


def test_longer_codes_stand_under_their_category() -> None:
    spec = ReferenceSpec(name="icd10_cm")
    codes = ["C80.1", "C7A.1", "E11.9", "E119", "E13.9", "E11", "C79.9", "C44.0", "C4A.0", "C50.1"]
    tree = build_tree(spec, domain(codes, spec, has_null=True), qi="icd")
    check_tree(tree)
    paths = {tree.labels[leaf]: [tree.labels[v] for v in tree.levels[1:, leaf]] for leaf in range(tree.leaves - 1)}
    assert paths["E11.9"] == paths["E119"] == paths["E11"] == ["E11", "E08-E13", "chapter 4", "*"]
    assert paths["C4A.0"] == ["C4A", "C43-C44", "chapter 2", "*"]
    assert paths["C50.1"] == ["C50", "C50", "chapter 2", "*"]
    at = {tree.labels[leaf]: leaf for leaf in range(tree.leaves)}
    left, right = ["E11.9", "E11.9", "C4A.0"], ["E119", "E13.9", "C44.0"]
    meet = tree.lca(np.array([at[x] for x in left], np.int32), np.array([at[x] for x in right], np.int32))
    assert [tree.labels[node] for node in meet] == ["E11", "E08-E13", "C43-C44"]
    assert tree.loss[meet].tolist() == [0.3, 0.4, 0.2]  # of the ten values there are
    assert tree.null_leaf == tree.leaves - 1


def test_values_under_no_category_are_refused_or_published_as_the_root() -> None:
    codes = ["E11.9", "E11.2", "ZZ9", "", "e11"]
    strict, lenient = ReferenceSpec(name="icd10"), ReferenceSpec(name="icd10", unknown="root")
    with pytest.raises(CoverageError, match="3 distinct values in 6 rows") as refused:
        build_tree(strict, domain(codes, strict), qi="icd")
    assert refused.value.where == "columns.quasi_identifiers.icd"
    assert "{reference: {name: icd10, unknown: root}}" in refused.value.fix
    for code in codes:
        assert not code or code not in str(refused.value)
    for top in (None, 2):
        tree = build_tree(lenient, domain(codes, lenient), qi="icd", max_level=top)
        check_tree(tree)
        assert tree.labels[:5] == ("E11.2", "E11.9", "*", "*", "*")
        assert tree.loss[2:5].tolist() == [tree.loss[tree.root]] * 3
        assert tree.parent[2:5].tolist() == [tree.root] * 3
        assert tree.loss[tree.root] == (1.0 if top is None else np.inf)
    assert (tree.loss[tree.levels[1, 0]], tree.labels[tree.levels[1, 0]]) == (1.0, "E11")  # all values that are known


def test_levels_of_longer_codes_are_counted_from_the_values() -> None:
    spec = ReferenceSpec(name="icd10")
    with pytest.raises(HierarchyError, match="levels from min_level to '\\*' are 0 to 4"):
        build_tree(spec, domain(["E11.9"], spec), qi="icd", max_level=5)
    with pytest.raises(HierarchyError, match="level 4 is already"):
        load_static(spec, qi="icd", base_dir=Path(), numeric=False, min_level=4)
    blocks = load_static(spec, qi="icd", base_dir=Path(), numeric=False, min_level=2, max_level=3)
    assert blocks.texts[blocks.lookup["E11"]] == "E10-E14"
    assert np.isinf(blocks.tree.loss[blocks.tree.root])
    assert QiSpec(hierarchy=spec).file is None
    assert QiSpec(hierarchy=spec, min_level=1).file == spec
