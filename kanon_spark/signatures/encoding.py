"""How rows become codes: built once per run from the configuration, the hierarchy files and the data's own values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kanon_spark.config.models import Config, QiSpec
from kanon_spark.engine.stages import RunContext
from kanon_spark.errors import InternalError
from kanon_spark.hierarchy.build import StaticHierarchy
from kanon_spark.hierarchy.tree import ORDERED, Kind
from kanon_spark.io.content import content_hash
from kanon_spark.signatures.codebook import Codebook
from kanon_spark.signatures.columns import identity_hash, kind_of, normalised, quoted, type_of
from kanon_spark.signatures.domains import Dictionaries, DomainRequest, read_domains
from kanon_spark.signatures.fit import misfit
from kanon_spark.signatures.forms import Form, form_of
from kanon_spark.signatures.lookups import HashLookup, IndexLookup, JoinLookup, Lookup, lookup_for, spelling, token
from kanon_spark.signatures.qi_columns import built_column, ident_of, load_file, rank_of, reach, static_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

ROW_HASH = "_kanon_h"
CONTENT_HASH = "_kanon_g"
SEEDS = 1 << 31  # the seed stands in plans as an int


@dataclass(frozen=True)
class Encoding:
    """Everything that turns a source row into key words and into its signature's hash.

    Attributes:
        spark: The session.
        codebook: The QIs with their trees.
        seed: Seed of the signature hash `h`.
        specs: What the configuration says of each QI.
        types: Source type of each QI column.
        lookups: How values of QIs with a hierarchy file find their code.
        dictionaries: How the values of the others do; None if there are none.
    """

    spark: "SparkSession" = field(repr=False)
    codebook: Codebook
    seed: int
    specs: tuple[QiSpec, ...]
    types: "tuple[DataType, ...]"
    lookups: Mapping[int, Lookup] = field(repr=False)
    dictionaries: Dictionaries | None = field(repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the QI columns."""
        return tuple(column.name for column in self.codebook.columns)

    @property
    def _indexes(self) -> range:
        return range(len(self.codebook.columns))

    def rows(
        self,
        source: "DataFrame",
        *,
        kept: Sequence[str],
        unit: str | None = None,
        also: "Mapping[str, Column] | None" = None,
    ) -> "DataFrame":
        """Every row in fixed width, ready to be grouped by `h`.

        Columns: `h`, a second hash `check`, the tokens `t<i>`, the content hash `g` of the kept columns, `unit` where
        one is named, and what is `also` wanted of each row. No other column stays, so that no name of the source's can
        clash with ours.
        """
        from pyspark.sql import functions as F

        extra = {"g": content_hash(source, kept), **(also or {})}
        if unit is not None:
            extra["unit"] = F.col(quoted(unit))
        values = [self._value(source, index).alias(f"v{index}") for index in self._indexes]
        wanted = [column.alias(name) for name, column in extra.items()]
        frame = self._with_row_codes(source.select(*values, *wanted), prefix="")
        frame = frame.select(self._identity("").alias("h"), *self._tokens(prefix=""), *extra)
        return frame.withColumn("check", F.xxhash64(*self.token_names))

    def row_tokens(self, source: "DataFrame", *, prefix: str) -> "dict[str, Column]":
        """Tokens of all columns by name, for rows that are grouped by something else."""
        return {
            f"{prefix}t{index}": token(self._value(source, index), column.kind)
            for index, column in enumerate(self.codebook.columns)
        }

    def with_codes(self, frame: "DataFrame", *, prefix: str) -> "DataFrame":
        """A frame with the tokens of `row_tokens`, and the codes `<prefix>c<i>` added."""
        return self._with_codes(frame, list(self._indexes), prefix=prefix)

    @property
    def token_names(self) -> list[str]:
        """Names of the token columns."""
        return [f"t{index}" for index in self._indexes]

    def key_words(self, frame: "DataFrame") -> "DataFrame":
        """A frame with the tokens `t<i>` of all QIs, and the key words added."""
        from pyspark.sql import functions as F

        looked_up = [index for index, column in enumerate(self.codebook.columns) if not column.by_code]
        frame = self._with_codes(frame, looked_up, prefix="")
        codes = [F.col(f"t{i}" if column.by_code else f"c{i}") for i, column in enumerate(self.codebook.columns)]
        return frame.select("*", *self.codebook.layout.pack_columns(codes))

    def with_identity(
        self,
        source: "DataFrame",
        kept: Sequence[str] | None = None,
        *,
        name: str = ROW_HASH,
        content: str = CONTENT_HASH,
    ) -> "DataFrame":
        """The source with its signature hash added as `name` and, where `kept` is given, its content hash as `content`.

        No join is needed unless a QI is told apart by its code and its file is too long for literals.
        """
        from pyspark.sql import functions as F

        values = {f"_kanon_v{index}": self._value(source, index) for index in self._indexes}
        frame = self._with_row_codes(source.withColumns(values), prefix="_kanon_")
        extra = [self._identity("_kanon_").alias(name)]
        if kept is not None:
            extra.append(content_hash(source, kept).alias(content))
        return frame.select(*[F.col(quoted(each)) for each in source.columns], *extra)

    def identities(
        self, source: "DataFrame", *, kept: Sequence[str] | None = None, unit: str | None = None
    ) -> "DataFrame":
        """Only `h` of every row; with `kept` also `g`, with `unit` also the unit."""
        from pyspark.sql import functions as F

        frame = self.with_identity(source, kept)
        picked = [F.col(ROW_HASH).alias("h")]
        if kept is not None:
            picked.append(F.col(CONTENT_HASH).alias("g"))
        if unit is not None:
            picked.append(F.col(quoted(unit)).alias("unit"))
        return frame.select(*picked)

    def pairs(self, source: "DataFrame", unit: str) -> "DataFrame":
        """Distinct (h, unit) of the source with their rows, for the verifier."""
        from kanon_spark.signatures.persons import pairs

        return pairs(self.identities(source, unit=unit))

    def source_hash(self, source: "DataFrame", kept: Sequence[str]) -> str:
        """What `Signatures.source_hash` is for a source that has not changed since. Reads the source once."""
        from kanon_spark.signatures.fingerprint import fingerprint, grouped_by_hash

        return fingerprint(grouped_by_hash(self.identities(source, kept=kept)))

    def idents(self, index: int) -> "DataFrame":
        """(code int, ident) of one QI: what each leaf code stands for, in the type in which it is hashed.

        A QI that is told apart by its code has the code itself as ident.
        """
        from pyspark.sql import functions as F

        column = self.codebook.columns[index]
        if column.by_code:
            codes = self.spark.range(column.tree.leaves).select(F.col("id").cast("int").alias("code"))
            return codes.select("code", F.col("code").alias("ident"))
        if not column.static:
            return self._dictionary(index)
        texts = self.spark.createDataFrame(list(enumerate(self.spelt(index))), "code int, text string")
        return texts.select("code", F.expr(f"try_cast(text AS {self.types[index].simpleString()})").alias("ident"))

    def spelt(self, index: int) -> tuple[str | None, ...]:
        """What each leaf code of a QI with a hierarchy file stands for, as text that the column's type can read."""
        column, data_type = self.codebook.columns[index], self.types[index]
        return tuple(spelling(text, data_type, column.kind) if text is not None else None for text in column.texts)

    def early(self, source: "DataFrame", index: int) -> "DataFrame | None":
        """Distinct (value as text, code int) of a QI whose leaves are not its values; None for all others."""
        from pyspark.sql import functions as F

        if not self.codebook.columns[index].by_code and self.specs[index].min_level == 0:
            return None
        raw = normalised(source, self.names[index]).cast("string")
        frame = source.select(self._value(source, index).alias(f"v{index}"), raw.alias("value")).distinct()
        return self._code_one(frame, index).select("value", F.col(f"c{index}").alias("code")).distinct()

    def codes_of(self, source: "DataFrame", index: int) -> "DataFrame":
        """(value, code int) of every row for one QI: for counting what a hierarchy misses."""
        from pyspark.sql import functions as F

        raw = normalised(source, self.names[index]).alias("value")
        frame = self._code_one(source.select(raw, self._value(source, index).alias(f"v{index}")), index)
        return frame.select("value", F.col(f"c{index}").alias("code"))

    def _code_one(self, frame: "DataFrame", index: int) -> "DataFrame":
        from pyspark.sql import functions as F

        kind = self.codebook.columns[index].kind
        return self._with_codes(frame.withColumn(f"t{index}", token(F.col(f"v{index}"), kind)), [index], prefix="")

    def _value(self, source: "DataFrame", index: int) -> "Column":
        """The value that decides the code: normalised, or its representative with `min_level` on a built hierarchy."""
        value = normalised(source, self.names[index])
        return ident_of(value, self.specs[index], self.types[index], qi=self.names[index])[0]

    def _identity(self, prefix: str) -> "Column":
        from pyspark.sql import functions as F

        idents = [
            F.col(f"{prefix}{'c' if column.by_code else 'v'}{index}")
            for index, column in enumerate(self.codebook.columns)
        ]
        return identity_hash(self.seed, idents)

    def _tokens(self, *, prefix: str) -> "list[Column]":
        """What each QI is recognised by once rows are grouped: the code where rows need it anyway, else the token."""
        from pyspark.sql import functions as F

        return [
            (F.col(f"{prefix}c{i}") if column.by_code else token(F.col(f"{prefix}v{i}"), column.kind)).alias(f"t{i}")
            for i, column in enumerate(self.codebook.columns)
        ]

    def _with_row_codes(self, frame: "DataFrame", *, prefix: str) -> "DataFrame":
        """Add `c<i>` for the QIs whose rows are told apart by their code, from `v<i>`."""
        from pyspark.sql import functions as F

        columns = {i: column for i, column in enumerate(self.codebook.columns) if column.by_code}
        if not columns:
            return frame
        tokens = {f"{prefix}t{i}": token(F.col(f"{prefix}v{i}"), column.kind) for i, column in columns.items()}
        return self._with_codes(frame.withColumns(tokens), list(columns), prefix=prefix)

    def _with_codes(self, frame: "DataFrame", indexes: Sequence[int], *, prefix: str) -> "DataFrame":
        """Add `c<i>` for each index, from the token `t<i>`, in steps so that each is computed once per row."""
        from pyspark.sql import functions as F

        folded: dict[str, Column] = {}
        slots: dict[str, Column] = {}
        codes: dict[str, Column] = {}
        for index in indexes:
            key = F.col(f"{prefix}t{index}")
            column = self.codebook.columns[index]
            lookup = self.lookups.get(index)
            match lookup:
                case IndexLookup():
                    code = lookup.code(key, column.kind, miss=column.miss)
                case HashLookup():
                    folded[f"{prefix}x{index}"] = lookup.folded(key, column.kind)
                    slots[f"{prefix}s{index}"] = lookup.slot(F.col(f"{prefix}x{index}"))
                    code = lookup.code(key, F.col(f"{prefix}s{index}"), column.kind)
                case _:
                    frame = self._joined(frame, index, lookup, prefix=prefix)
                    code = F.col(f"{prefix}j{index}")
            null = F.lit(column.tree.null_leaf if column.tree.null_leaf >= 0 else column.miss)
            codes[f"{prefix}c{index}"] = F.when(key.isNull(), null).otherwise(F.coalesce(code, F.lit(column.miss)))
        for step in (folded, slots, codes):
            frame = frame.withColumns(step) if step else frame
        return frame

    def _joined(self, frame: "DataFrame", index: int, lookup: JoinLookup | None, *, prefix: str) -> "DataFrame":
        """Add `j<i>`, the code found by a broadcast join, null where there is none."""
        from pyspark.sql import functions as F

        key, code = f"{prefix}k{index}", f"{prefix}j{index}"
        if lookup is not None:
            table = lookup.table(self.spark, key=key, code=code)
        else:
            found = token(F.col("ident"), self.codebook.columns[index].kind)
            table = self._dictionary(index).select(found.alias(key), F.col("code").alias(code))
            table = table.where(F.col(key).isNotNull())
        return frame.join(F.broadcast(table), F.col(f"{prefix}t{index}") == F.col(key), "left").drop(key)

    def _dictionary(self, index: int) -> "DataFrame":
        if self.dictionaries is None:
            raise InternalError("a dictionary is missing", where=self.names[index])
        return self.dictionaries.table(index)

    def with_spans(self, present: Sequence[NDArray[np.bool_]]) -> "Encoding":
        """The same with the losses of numeric hierarchy files taken over the range of the data that is present."""
        columns = [
            replace(column, tree=column.tree.with_span(reach(column, mask))) if column.static else column
            for column, mask in zip(self.codebook.columns, present, strict=True)
        ]
        return replace(self, codebook=Codebook(tuple(columns)))


def prepare_encoding(ctx: RunContext, source: "DataFrame", config: Config, *, base_dir: Path, folder: str) -> Encoding:
    """The encoding of all QIs of a configuration; its columns must be in the table.

    Args:
        ctx: The run.
        source: The table.
        config: The configuration.
        base_dir: Folder that relative paths of hierarchy files start from.
        folder: Folder under the work folder for the dictionaries, which are raw data.
    """
    return encode_columns(
        ctx,
        source,
        config.columns.quasi_identifiers,
        form=lambda spec, kind: form_of(spec, kind, config),
        seed=config.execution.seed,
        base_dir=base_dir,
        folder=folder,
    )


def encode_columns(
    ctx: RunContext,
    source: "DataFrame",
    specs: Mapping[str, QiSpec],
    *,
    form: Callable[[QiSpec, Kind], Form],
    seed: int,
    base_dir: Path,
    folder: str,
) -> Encoding:
    """Load the hierarchy files, find the values of all other columns (stage `domains`), and build the trees.

    Raises:
        UnsupportedTypeError: A column's type cannot be generalized.
        HierarchyError: A hierarchy file is no tree, or a hierarchy does not suit its column.
        DataError: A column has too many distinct values.
    """
    from pyspark.sql import functions as F

    types = {name: type_of(source, name) for name in specs}
    static: dict[int, StaticHierarchy] = {}
    lookups: dict[int, Lookup] = {}
    requests: list[DomainRequest] = []
    for index, (name, spec) in enumerate(specs.items()):
        kind = kind_of(types[name], qi=name)
        wrong = misfit(spec.hierarchy, kind, qi=name)
        if wrong is not None:
            raise wrong
        if spec.file is not None:
            static[index] = load_file(spec, kind, qi=name, base_dir=base_dir)
            lookups[index] = lookup_for(static[index].lookup, types[name], kind, qi=name)
        else:
            ident, ident_kind = ident_of(normalised(source, name), spec, types[name], qi=name)
            by_count = spec.hierarchy is None and ident_kind not in ORDERED
            requests.append(DomainRequest(index, name, ident, ident_kind, by_count, rank_of(F.col("ident"), spec)))
    with ctx.stage("domains"):
        dictionaries = read_domains(ctx.spark, source, requests, path=folder) if requests else None
        columns = []
        for index, (name, spec) in enumerate(specs.items()):
            kind = kind_of(types[name], qi=name)
            if index in static:
                columns.append(static_column(name, spec, kind, static[index], form(spec, kind)))
            elif dictionaries is not None:
                columns.append(built_column(name, spec, dictionaries.domains[index], form(spec, kind)))
    return Encoding(
        spark=ctx.spark,
        codebook=Codebook(tuple(columns)),
        seed=seed % SEEDS,
        specs=tuple(specs.values()),
        types=tuple(types.values()),
        lookups=lookups,
        dictionaries=dictionaries,
    )


def file_encoding(
    spark: "SparkSession", source: "DataFrame", config: Config, *, base_dir: Path, names: Sequence[str]
) -> Encoding:
    """An encoding of some QIs with hierarchy files only: enough to see what the files miss, and no data is read."""
    specs = {name: _by_file(config.columns.quasi_identifiers[name]) for name in names}
    types = tuple(type_of(source, name) for name in names)
    columns = []
    lookups: dict[int, Lookup] = {}
    for index, (name, spec) in enumerate(specs.items()):
        kind = kind_of(types[index], qi=name)
        hierarchy = load_file(spec, kind, qi=name, base_dir=base_dir)
        lookups[index] = lookup_for(hierarchy.lookup, types[index], kind, qi=name)
        columns.append(static_column(name, spec, kind, hierarchy))
    return Encoding(spark, Codebook(tuple(columns)), 0, tuple(specs.values()), types, lookups, None)


def _by_file(spec: QiSpec) -> QiSpec:
    """The same from the level on at which a file names all leaves."""
    if spec.file is not None:
        return spec
    return spec.model_copy(update={"min_level": 1, "max_level": spec.max_level and max(1, spec.max_level)})
