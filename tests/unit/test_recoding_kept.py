"""What stands beside a recoding: read back as it was, without secrets; and the mapping that may be exported."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from kanon_spark.config.loader import LoadedConfig, load_config
from kanon_spark.config.models import CsvSpec, QiSpec
from kanon_spark.engine.applying import refuse_much
from kanon_spark.errors import ConfigError, DataError, MissingInputError, RequestError, SuppressionError
from kanon_spark.hierarchy.tree import Domain
from kanon_spark.io.files import LocalStore
from kanon_spark.recoding.export import csv_text, pair_persons
from kanon_spark.recoding.kept import Kept, KeptColumn, with_unknown_at_root
from kanon_spark.recoding.publish import set_label, set_members
from kanon_spark.signatures.codebook import Codebook, QiColumn
from kanon_spark.signatures.qi_columns import built_column, load_file, static_column

ROOT = Path(__file__).resolve().parents[2]
FILE = "baker;craft;*\nsmith;craft;*\nnurse;care;*\n"
KEY = "a key of enough bytes"


def job(folder: Path, **sections: Any) -> LoadedConfig:
    """A job with a hierarchy file, a reference and what else is asked for."""
    (folder / "jobs.csv").write_text(FILE, encoding="utf-8")
    quasi_identifiers = {"job": "jobs.csv", "land": {"hierarchy": {"reference": "countries_alpha2"}}, "age": None}
    columns = {"quasi_identifiers": quasi_identifiers, **sections.pop("columns", {})}
    path = folder / "job.yaml"
    path.write_text(json.dumps({"columns": columns, **sections}), encoding="utf-8")
    return load_config(path, env={"KANON_KEY": KEY})


def texts(*values: str, null: bool = False, spec: QiSpec | None = None) -> QiColumn:
    """A column of texts."""
    domain = Domain("text", values, np.full(len(values), np.nan), np.ones(len(values), np.int64), has_null=null)
    return built_column("colour", spec or QiSpec(), domain)


def test_it_is_read_back_as_it_was(tmp_path: Path) -> None:
    loaded = job(tmp_path, privacy={"k": 7, "unit": "who"}, sink={"path": "out"}, source={"path": "${KANON_KEY}"})
    kept = Kept.of(loaded, Codebook((texts("red", "blue", null=True),)), run_id="run", target="/out")
    (tmp_path / "folder").mkdir()
    kept.write(LocalStore(), str(tmp_path / "folder"))
    again = Kept.read(LocalStore(), str(tmp_path / "folder"))
    assert again == kept
    assert (tmp_path / "folder" / "_codebook.json").stat().st_mode & 0o077 == 0
    assert again.method == "lattice"
    assert again.asked.source is None and again.asked.sink is None
    (tmp_path / "jobs.csv").unlink()
    with again.unpacked() as unpacked:
        assert unpacked.config.privacy == loaded.config.privacy
        spec = unpacked.config.columns.quasi_identifiers["job"].hierarchy
        assert isinstance(spec, CsvSpec)
        place = unpacked.base_dir / spec.path
        assert place.read_text(encoding="utf-8") == FILE
    assert not place.exists()


@pytest.mark.parametrize("path", sorted((ROOT / "conf").rglob("*.yaml")), ids=lambda path: path.stem)
@pytest.mark.usefixtures("example_environment")
def test_every_example_can_be_kept(path: Path) -> None:
    loaded = load_config(path, keys_optional=True)
    kept = Kept.of(loaded, Codebook((texts("red"),)), run_id="run", target=None)
    with kept.unpacked() as unpacked:
        assert unpacked.config.privacy == loaded.config.privacy
        assert unpacked.config.output == loaded.config.output
        assert list(unpacked.config.columns.quasi_identifiers) == list(loaded.config.columns.quasi_identifiers)
        assert unpacked.config.resolved_method == loaded.config.resolved_method == kept.method


def test_models_with_files_and_populations_are_kept(tmp_path: Path) -> None:
    near = {"t_closeness": {"t": 0.2, "distance": "hierarchical"}, "hierarchy": "jobs.csv"}
    privacy = {"k": 3, "k_map": {"k": 5, "path": "people.parquet"}, "personal_k": "wish"}
    loaded = job(tmp_path, columns={"sensitive": {"trade": near}}, privacy=privacy)
    kept = Kept.of(loaded, Codebook((texts("red"),)), run_id="run", target=None)
    assert len(kept.files) == 1
    with kept.unpacked() as unpacked:
        found = unpacked.config
        assert found.privacy.k_map is not None and found.privacy.k_map.path == str(tmp_path / "people.parquet")
        spec = found.columns.sensitive["trade"].hierarchy
        assert isinstance(spec, CsvSpec) and (unpacked.base_dir / spec.path).exists()


def test_too_much_or_all_held_back() -> None:
    refuse_much(3, rows=10, k=2, allowed=0.3)
    with pytest.raises(SuppressionError, match="4 of 10 rows") as much:
        refuse_much(4, rows=10, k=2, allowed=0.3)
    with pytest.raises(DataError, match="none of the 10 rows") as nothing:
        refuse_much(10, rows=10, k=2, allowed=1.0)
    assert (much.value.exit_code, nothing.value.exit_code) == (4, 3)


def test_another_reference_is_refused(tmp_path: Path) -> None:
    kept = Kept.of(job(tmp_path), Codebook((texts("red"),)), run_id="run", target=None)
    assert list(kept.references) == ["countries_alpha2"]
    kept.references["countries_alpha2"] = "another"
    with pytest.raises(RequestError, match="countries_alpha2 has changed"), kept.unpacked():
        pass


@pytest.mark.parametrize("written", ["${KANON_KEY}", KEY])
def test_keys_are_never_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str) -> None:
    loaded = job(tmp_path, columns={"identifiers": {"who": {"pseudonym": {"key": written}}}})
    kept = Kept.of(loaded, Codebook((texts("red"),)), run_id="run", target=None)
    kept.write(LocalStore(), str(tmp_path))
    assert KEY not in (tmp_path / "_codebook.json").read_text(encoding="utf-8")
    monkeypatch.delenv("KANON_KEY", raising=False)
    with pytest.raises(ConfigError, match="key of the pseudonym is not at hand"), kept.unpacked():
        pass
    if written != KEY:
        monkeypatch.setenv("KANON_KEY", KEY)
        with kept.unpacked() as unpacked:
            spec = unpacked.config.columns.identifiers["who"].pseudonym
            assert spec is not None and spec.key == KEY


def test_what_is_not_there_or_not_readable(tmp_path: Path) -> None:
    store = LocalStore()
    with pytest.raises(MissingInputError, match="no such recoding"):
        Kept.read(store, str(tmp_path / "nothing"))
    with pytest.raises(MissingInputError, match="is no recoding"):
        Kept.read(store, str(tmp_path))
    for text, told in [("{", "cannot be read"), ('{"version": 1}', "cannot be read"), ("[]", "another version")]:
        (tmp_path / "_codebook.json").write_text(text, encoding="utf-8")
        with pytest.raises(RequestError, match=told):
            Kept.read(store, str(tmp_path))


def test_codes_in_another_table() -> None:
    kept = KeptColumn.of(texts("red", "blue", "green", null=True))
    assert kept.same_codes(texts("blue", "red", null=True)).tolist()[:4] == [1, 0, -1, 2]
    assert kept.same_codes(texts("blue")).tolist()[:4] == [-1, 0, -1, -1]


def test_codes_of_a_hierarchy_file(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(FILE, encoding="utf-8")

    def column(unknown: str) -> QiColumn:
        spec = QiSpec.model_validate({"hierarchy": {"csv": {"path": "jobs.csv", "unknown": unknown}}})
        return static_column("job", spec, "text", load_file(spec, "text", qi="job", base_dir=tmp_path))

    strict, lenient = column("error"), column("root")
    assert KeptColumn.of(strict).same_codes(lenient).tolist() == [0, 1, 2, 4, -1]
    assert KeptColumn.of(lenient).same_codes(lenient).tolist() == [0, 1, 2, 3, 4]


def test_unknown_values_are_no_error_where_a_recoding_is_applied(tmp_path: Path) -> None:
    specs = with_unknown_at_root(job(tmp_path).config).columns.quasi_identifiers
    assert [getattr(spec.hierarchy, "unknown", None) for spec in specs.values()] == ["root", "root", None]


@pytest.mark.parametrize("values", [["a", "b"], ["x, y", "z"], ['say "a"', "{", "}", ""], [" a", "b "]])
def test_sets_are_read_as_they_were_written(values: list[str]) -> None:
    assert set_members(set_label(values)) == sorted(values)


@pytest.mark.parametrize("label", ["a", "{a", '{"a', '{"a"b}'])
def test_what_is_no_set_has_no_members(label: str) -> None:
    assert set_members(label) == []


def test_persons_of_each_value_and_label(tmp_path: Path) -> None:
    column = texts("red", "blue", null=True, spec=QiSpec.model_validate({"hierarchy": "flat"}))
    kept = Kept.of(job(tmp_path), Codebook((column,)), run_id="run", target=None)
    codes = np.array([[0], [0], [1], [2]])
    nodes = np.array([[0], [0], [3], [2]])
    entries = pd.DataFrame({"key0": kept.layout.pack(codes)[:, 0], "out0": kept.node_layout.pack(nodes)[:, 0]})
    entries["persons"] = [2, 3, 4, 1]
    found = pair_persons(entries, kept)
    rows = [
        (int(code), label if label == label else None, int(n)) for _, code, label, n in found.itertuples(index=False)
    ]
    assert sorted(rows, key=str) == sorted([(0, "red", 5), (1, "*", 4), (2, None, 1)], key=str)


def test_csv_tells_null_from_nothing() -> None:
    table = pd.DataFrame({"value": ['a "b", c', "", None], "label": ["*", "*", None]}, dtype=object)
    assert csv_text(table) == 'value,label\n"a ""b"", c","*"\n"","*"\n,\n'
