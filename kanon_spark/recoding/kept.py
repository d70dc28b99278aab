"""What stands beside a recoding's entries, so that they can be applied to other rows with nothing but their folder.

One JSON file, `_codebook.json`: how the quasi-identifiers were encoded (values, labels, losses), what the run was asked
for (roles, k, models, method, forms), and the hierarchy files as they were. It holds every value of the quasi-
identifiers, so it is as confidential as the entries. Keys of pseudonyms are secrets of another kind and are never
written: of a key that stands in the environment, the name of its variable is.
"""

import copy
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kanon_spark.config.loader import LoadedConfig, check_raw, literal
from kanon_spark.config.models import Config, CsvSpec, HierarchySpec, QiSpec, ReferenceSpec, SensitiveSpec
from kanon_spark.config.pseudonyms import KEYS_OPTIONAL
from kanon_spark.errors import ConfigError, MissingInputError, RequestError
from kanon_spark.hierarchy.tree import Kind
from kanon_spark.io.files import FileStore
from kanon_spark.io.paths import join, resolve
from kanon_spark.signatures.codebook import Codebook, Publish, QiColumn
from kanon_spark.signatures.forms import Form
from kanon_spark.signatures.layout import Layout

if TYPE_CHECKING:
    from collections.abc import Callable

FILE = "_codebook.json"  # Spark does not read files that begin with an underscore
VERSION = 1
_SECTIONS = ("version", "name", "columns", "privacy", "method", "output")
_VARIABLE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")


@dataclass(frozen=True)
class KeptColumn:
    """One quasi-identifier, as it was encoded and published.

    Attributes:
        name: Column name.
        kind: What its values are.
        publish: Whether entries publish nodes, ranges or sets.
        weight: Weight of its loss.
        codes: How many leaf codes the key words have room for.
        texts: Text of each leaf; None for null.
        labels: Label of each node, leaves first, the root last.
        losses: Loss of each node.
        null, unknown: Codes of these leaves, -1 for none.
        static: Whether the leaves are the lines of a hierarchy file.
        form: In which form it was published.
    """

    name: str
    kind: Kind
    publish: Publish
    weight: float
    codes: int
    texts: tuple[str | None, ...]
    labels: tuple[str | None, ...]
    losses: tuple[float, ...]
    null: int
    unknown: int
    static: bool
    form: Form

    @classmethod
    def of(cls, column: QiColumn) -> "KeptColumn":
        """What is kept of an encoded column."""
        tree = column.tree
        return cls(
            name=column.name,
            kind=column.kind,
            publish=column.publish,
            weight=column.weight,
            codes=max(tree.leaves, column.miss + 1),
            texts=column.texts,
            labels=tree.labels,
            # What may not be published can only be a suppressed cell.
            losses=tuple(np.where(np.isfinite(tree.loss), tree.loss, 1.0).tolist()),
            null=tree.null_leaf,
            unknown=tree.unknown_leaf,
            static=column.static,
            form=column.form,
        )

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "KeptColumn":
        """Read back what `asdict` gave."""
        form = {**found["form"], "numbers": tuple(found["form"]["numbers"])}
        lists = {name: tuple(found[name]) for name in ("texts", "labels", "losses")}
        return cls(**{**found, **lists, "form": Form(**form)})

    def same_codes(self, column: QiColumn) -> NDArray[np.int32]:
        """The code that each leaf has in another encoding of the same quasi-identifier; -1 where it has none."""
        same = np.full(self.codes, -1, dtype=np.int32)
        texts = column.texts
        if self.static and column.static:
            # Lines of the same file in the same order; their labels need not differ.
            own = [code for code in range(len(self.texts)) if code not in (self.null, self.unknown)]
            same[own] = own
        else:
            known = {text: code for code, text in enumerate(texts)}
            for code, text in enumerate(self.texts):
                same[code] = known.get(text, -1) if text is not None else -1
        for here, there in ((self.null, column.tree.null_leaf), (self.unknown, column.tree.unknown_leaf)):
            if here >= 0:
                same[here] = there
        return same


@dataclass(frozen=True)
class Kept:
    """All that is kept beside the entries.

    Attributes:
        run_id: The run that made the recoding.
        target: Where its release was published; None for nowhere.
        columns: The quasi-identifiers.
        config: What was asked, in the form of a configuration; hierarchy files are named by `files`.
        files: The hierarchy files, by name.
        references: Hashes of the reference taxonomies that were used.
    """

    run_id: str
    target: str | None
    columns: tuple[KeptColumn, ...]
    config: dict[str, Any]
    files: dict[str, str]
    references: dict[str, str]

    @classmethod
    def of(cls, loaded: LoadedConfig, codebook: Codebook, *, run_id: str, target: str | None) -> "Kept":
        """What a run keeps."""
        files = _Files(loaded)
        config = _with_hierarchies(loaded.config, files.keep)
        if config.privacy.k_map is not None and config.privacy.k_map.path is not None:
            there = config.privacy.k_map.model_copy(update={"path": loaded.resolve(config.privacy.k_map.path)})
            config = config.model_copy(update={"privacy": config.privacy.model_copy(update={"k_map": there})})
        form = {name: _literal(value) for name, value in config.to_dict().items() if name in _SECTIONS}
        _hide_keys(form, loaded.raw)
        columns = tuple(map(KeptColumn.of, codebook.columns))
        return cls(run_id, target, columns, form, files.texts, files.references)

    def write(self, store: FileStore, folder: str) -> None:
        """Write it beside the entries in `folder`."""
        body = {"version": VERSION, **asdict(self)}
        store.write_text(join(folder, FILE), json.dumps(body, ensure_ascii=False), private=True)

    @classmethod
    def read(cls, store: FileStore, folder: str) -> "Kept":
        """Read what stands beside the entries in `folder`.

        Raises:
            MissingInputError: There is no recoding, or one that was not kept to be applied.
            RequestError: It was written by another version.
        """
        fix = "name a folder …_recoding of the work directory of a run, or one that Recoding.save has written"
        try:
            found = json.loads(store.read_text(join(folder, FILE)))
        except (FileNotFoundError, NotADirectoryError):
            if store.exists(folder):
                raise MissingInputError(
                    "is no recoding that can be applied", where=folder, fix=f"{fix} (incremental releases have none)"
                ) from None
            raise MissingInputError("there is no such recoding", where=folder, fix=fix) from None
        except (OSError, ValueError):
            raise _unreadable(folder) from None
        if not isinstance(found, dict) or found.pop("version", None) != VERSION:
            raise RequestError(
                "the recoding was written by another version of kanon_spark", where=folder, fix="run the job again"
            )
        try:
            return cls(**{**found, "columns": tuple(map(KeptColumn.from_json, found["columns"]))})
        except (KeyError, TypeError):
            raise _unreadable(folder) from None

    @property
    def layout(self) -> Layout:
        """How leaf codes are packed into the entries' key words."""
        return Layout.of([column.codes for column in self.columns])

    @property
    def node_layout(self) -> Layout:
        """How node ids are packed into the entries' out words."""
        return Layout.of([len(column.labels) for column in self.columns])

    @property
    def numbers(self) -> dict[str, str]:
        """The entries' columns of numbers, and the name that each has in a release."""
        return {
            f"{part}_{index}": name
            for index, column in enumerate(self.columns)
            for part, name in zip(column.form.numbers, column.form.added(column.name), strict=True)
        }

    @property
    def method(self) -> str:
        """The method that formed the classes."""
        return self.asked.resolved_method

    @property
    def asked(self) -> Config:
        """What the run was asked for, to be looked at: hierarchy files are not at hand, and keys are empty."""
        form = copy.deepcopy(self.config)
        _hide_keys(form, {})  # the name of a variable is no key
        return Config.model_validate(form, context={KEYS_OPTIONAL: True})

    @contextmanager
    def unpacked(self) -> Iterator[LoadedConfig]:
        """The configuration of the run, its hierarchy files in a folder of their own as long as the body runs.

        Raises:
            RequestError: A reference taxonomy is another one by now.
            ConfigError: The key of a pseudonym is not at hand.
        """
        for name, digest in self.references.items():
            if _digest(Path(ReferenceSpec(name=name).path).read_text(encoding="utf-8")) != digest:
                raise RequestError(
                    f"the reference taxonomy {name} has changed since the recoding was made",
                    where="recoding",
                    fix="use the version of kanon_spark that made it, or run the job again",
                )
        with TemporaryDirectory(prefix="kanon_recoding_") as folder:  # readable by its owner only
            for name, text in self.files.items():
                (Path(folder) / name).write_text(text, encoding="utf-8")
            loaded = check_raw(self.config, base_dir=Path(folder), origin="recoding", keys_optional=True)
            _require_keys(loaded)
            yield loaded


class _Files:
    """Hierarchy files, collected from a configuration."""

    def __init__(self, loaded: LoadedConfig) -> None:
        self._base_dir = loaded.base_dir
        self._names: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        self.references: dict[str, str] = {}

    def keep(self, spec: HierarchySpec | None) -> HierarchySpec | None:
        """The same hierarchy, by the name under which its file is kept."""
        if isinstance(spec, ReferenceSpec):
            self.references[spec.name] = _digest(Path(spec.path).read_text(encoding="utf-8"))
        if not isinstance(spec, CsvSpec):
            return spec
        path = resolve(spec.path, self._base_dir)
        if path not in self._names:
            self._names[path] = f"hierarchy_{len(self._names)}.csv"
            self.texts[self._names[path]] = Path(path).read_text(encoding="utf-8-sig")
        return spec.model_copy(update={"path": self._names[path]})


def with_unknown_at_root(config: Config) -> Config:
    """The same where a value that a hierarchy file of a quasi-identifier misses is no error: only `*` covers it."""

    def lenient(name: str, spec: QiSpec) -> QiSpec:
        hierarchy = spec.hierarchy
        if not isinstance(hierarchy, CsvSpec | ReferenceSpec):
            return spec
        return spec.model_copy(update={"hierarchy": hierarchy.model_copy(update={"unknown": "root"})})

    specs = {name: lenient(name, spec) for name, spec in config.columns.quasi_identifiers.items()}
    return config.model_copy(update={"columns": config.columns.model_copy(update={"quasi_identifiers": specs})})


def _with_hierarchies(config: Config, change: "Callable[[HierarchySpec | None], HierarchySpec | None]") -> Config:
    def changed(specs: Mapping[str, QiSpec | SensitiveSpec]) -> dict[str, QiSpec | SensitiveSpec]:
        return {name: spec.model_copy(update={"hierarchy": change(spec.hierarchy)}) for name, spec in specs.items()}

    named = config.columns
    update = {"quasi_identifiers": changed(named.quasi_identifiers), "sensitive": changed(named.sensitive)}
    return config.model_copy(update={"columns": named.model_copy(update=update)})


def _literal(node: Any) -> Any:
    """Plain values in which nothing is filled in when they are loaded."""
    if isinstance(node, dict):
        return {key: _literal(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_literal(value) for value in node]
    return literal(node) if isinstance(node, str) else node


def _hide_keys(form: dict[str, Any], raw: Mapping[str, Any]) -> None:
    """Take the keys of pseudonyms out; a key that was written as `${NAME}` stays so."""
    identifiers = form["columns"].get("identifiers", {})
    if not isinstance(identifiers, dict):
        return
    for name, spec in identifiers.items():
        if not spec or "pseudonym" not in spec:
            continue
        try:
            written = raw["columns"]["identifiers"][name]["pseudonym"]["key"]
        except (KeyError, TypeError):
            written = ""
        named = isinstance(written, str) and _VARIABLE.fullmatch(written) is not None
        spec["pseudonym"]["key"] = written if named else ""


def _require_keys(loaded: LoadedConfig) -> None:
    for name, spec in loaded.config.columns.identifiers.items():
        if spec.pseudonym is not None and spec.pseudonym.key_bytes is None:
            raise ConfigError(
                "the key of the pseudonym is not at hand: it is never kept with a recoding",
                where=f"columns.identifiers.{name}.pseudonym.key",
                fix='set the variable that the job names, or name one ("${KANON_KEY}") and run the job again',
            )


def _unreadable(folder: str) -> RequestError:
    return RequestError(
        "the recoding cannot be read", where=folder, fix="take another copy of it, or run the job again"
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def changed(loaded: LoadedConfig, **sections: Any) -> LoadedConfig:
    """The configuration with some sections replaced."""
    return replace(loaded, config=loaded.config.model_copy(update=sections))
