"""The columns that classes are judged by: their values as codes, how often each occurs, and what is asked of them.

They are encoded like quasi-identifiers, by the same code: values of a hierarchy file by its leaves, all others by a
dictionary under the work folder. The column of personal wishes travels along as one more of them.

A file that misses values (`unknown: root`) makes one value of all these, which is right for the distance that it
defines and wrong for every other model: such a column travels twice, by its file and as what it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kanon_spark.config.models import Config, FileSpec, QiSpec
from kanon_spark.engine.stages import RunContext
from kanon_spark.errors import DataError, KanonError, RequestError, SourceChangedError
from kanon_spark.hierarchy.tree import ORDERED
from kanon_spark.privacy.alpha import Alpha
from kanon_spark.privacy.asked import models_of
from kanon_spark.privacy.base import Longs, Model
from kanon_spark.privacy.columns import Column
from kanon_spark.privacy.demands import Demands
from kanon_spark.privacy.feasibility import forced, impossible
from kanon_spark.privacy.histograms import Histograms
from kanon_spark.privacy.personal_k import PersonalK
from kanon_spark.privacy.t_closeness import TCloseness
from kanon_spark.signatures.aggregate import coverage_error
from kanon_spark.signatures.codebook import QiColumn
from kanon_spark.signatures.columns import quoted
from kanon_spark.signatures.coverage import find_missing
from kanon_spark.signatures.encoding import Encoding, encode_columns
from kanon_spark.signatures.forms import AS_LABELS
from kanon_spark.signatures.histograms import CODE_BITS, HISTOGRAM, pairs_of
from kanon_spark.signatures.lookups import same_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WISHES = "_kanon_personal_k"  # the wishes as a column of the source
BY_FILE = "_kanon_by_file_"  # what stands before the name of a column that travels a second time, by its file
MODEL_LIMIT = 255  # sensitive columns with models: their numbers stand above the codes


@dataclass(frozen=True)
class Sensitive:
    """What a configuration asks of classes beyond k, ready to be counted.

    Attributes:
        encoding: How the columns are encoded; its names are those of the columns, and `WISHES`.
        config: The configuration.
    """

    encoding: Encoding
    config: Config

    def judged(self, table: "DataFrame") -> "Judged":
        """What is asked, held against the distribution of these signatures or classes."""
        return Judged.of(self.config, self.encoding.codebook.columns, self.tallies(table))

    def tallies(self, table: "DataFrame") -> list[Longs]:
        """How often each value occurs in these signatures or classes, column by column; at most one row per value."""
        from pyspark.sql import functions as F

        each = table.select(F.inline(pairs_of(F.col(HISTOGRAM))))
        found = each.groupBy("key").agg(F.sum("number").alias("number")).toPandas()
        keys, numbers = found["key"].to_numpy(np.int64), found["number"].to_numpy(np.int64)
        book = self.encoding.codebook.columns
        tallies = [np.zeros(max(column.tree.leaves, column.miss + 1), np.int64) for column in book]
        for index, tally in enumerate(tallies):
            own = keys >> CODE_BITS == index
            np.add.at(tally, keys[own] & ((1 << CODE_BITS) - 1), numbers[own])
        return tallies

    @property
    def relative(self) -> bool:
        """Whether classes are held against the distribution of the release, which suppression changes."""
        specs = self.config.columns.sensitive.values()
        return any(model.relative for spec in specs for model in models_of(spec, self.config.privacy, {}))

    @property
    def limited(self) -> list[int]:
        """Numbers of the columns whose values alpha limits."""
        sensitive, privacy = self.config.columns.sensitive, self.config.privacy
        return [
            index
            for index, column in enumerate(self.encoding.codebook.columns)
            if column.name in sensitive
            and any(isinstance(model, Alpha) for model in models_of(sensitive[column.name], privacy, {}))
        ]

    def carried(self, source: "DataFrame", encoding: Encoding, unit: str) -> "DataFrame":
        """Rows of the source as `h`, `who` and the `keys` of the values that alpha limits; one for each person."""
        from pyspark.sql import functions as F

        tokens = self.encoding.row_tokens(source, prefix="s_")
        named = source.withColumns({**tokens, "_kanon_unit": F.col(quoted(unit))})
        rows = encoding.with_identity(named, name="_kanon_h")  # the users' own columns may be called h
        rows = rows.select(F.col("_kanon_h").alias("h"), "_kanon_unit", *tokens)
        rows = self.encoding.with_codes(rows, prefix="s_")
        keys = [F.lit(i << CODE_BITS) + F.col(f"s_c{i}").cast("long") for i in self.limited]
        # A row without a person is a person of its own.
        nobody = F.xxhash64(F.lit("nobody"), F.monotonically_increasing_id())
        who = F.when(F.col("_kanon_unit").isNull(), nobody).otherwise(F.xxhash64("_kanon_unit")).alias("who")
        return rows.select("h", who, F.array(*keys).alias("keys"))

    def with_people(self, judged: "Judged", source: "DataFrame", encoding: Encoding, unit: str) -> "Judged":
        """The same with what `impossible` asks of alpha where a person may stand in several signatures."""
        from pyspark.sql import functions as F

        rows = self.carried(source, encoding, unit)
        each = rows.select("who", F.explode("keys").alias("key"))
        # At most one row per value.
        found = each.groupBy("key").agg(F.count_distinct("who").alias("people")).toPandas()
        keys, people = found["key"].to_numpy(np.int64), found["people"].to_numpy(np.int64)
        columns = list(judged.columns)
        for index in self.limited:
            own = keys >> CODE_BITS == index
            counts = np.zeros(columns[index].size, np.int64)
            counts[keys[own] & ((1 << CODE_BITS) - 1)] = people[own]
            columns[index] = replace(columns[index], people=counts)
        return replace(judged, columns=tuple(columns), members=rows.select("h", "who").distinct().count())

    def refuse_missing(self, source: "DataFrame", tallies: Sequence[Longs]) -> None:
        """Stop where a hierarchy file misses values of a sensitive column."""
        book = self.encoding.codebook.columns
        lost = [
            index
            for index, (column, tally) in enumerate(zip(book, tallies, strict=True))
            if len(tally) > column.tree.leaves and tally[column.tree.leaves] > 0
        ]
        if any(not book[index].static for index in lost):
            raise SourceChangedError(
                "a sensitive value turned up that was not there when the values were listed",
                where="source",
                fix="run again when the source is at rest, or set source.snapshot: copy",
            )
        if lost:
            error = coverage_error(find_missing(source, self.encoding, lost))
            raise type(error)(error.message.replace(BY_FILE, ""), where="columns.sensitive", fix=error.fix)


@dataclass(frozen=True)
class Judged:
    """The demands against a table's own distribution.

    Attributes:
        columns: The columns as the models see them.
        models: What is asked of each.
        tallies: Persons (rows) of each code.
        repeated: Whether persons are counted once for each of their signatures: there is a unit.
        members: Pairs of a person and one of his signatures, where they were counted.
    """

    columns: tuple[Column, ...]
    models: Mapping[str, tuple[Model, ...]]
    tallies: tuple[Longs, ...]
    repeated: bool = False
    members: int | None = None

    @classmethod
    def of(cls, config: Config, book: Sequence[QiColumn], tallies: Sequence[Longs]) -> "Judged":
        """Put columns and models together."""
        columns = []
        models: dict[str, tuple[Model, ...]] = {}
        for column, tally in zip(book, tallies, strict=True):
            if column.name == WISHES:
                columns.append(_wishes(column, tally, config.privacy.k))
                models[WISHES] = (PersonalK(),)
                continue
            asked = _models_by(column.name, config, _named(column, config), [other.name for other in book])
            columns.append(_column(column, tally, hierarchy=any(map(_by_hierarchy, asked))))
            models[column.name] = asked
        return cls(tuple(columns), models, tuple(tallies), config.privacy.unit is not None)

    @property
    def demands(self) -> Demands:
        """What kernels are told."""
        return Demands.of(self.columns, self.models, repeated=self.repeated)

    @property
    def limits(self) -> "Judged":
        """Nothing but the demands of alpha."""
        only = {name: tuple(each for each in found if isinstance(each, Alpha)) for name, found in self.models.items()}
        return replace(self, models=only)

    @property
    def overlapping(self) -> bool:
        """Whether alpha counts persons who may stand in several signatures: unions of good classes may break it."""
        return self.repeated and any(self.limits.models.values())

    @property
    def relative(self) -> bool:
        """Whether anything is held against the distribution of the release, which suppression changes."""
        return any(model.relative for models in self.models.values() for model in models)

    def without(self, gone: Histograms) -> "Judged":
        """The same against the distribution of what is left when these units have gone."""
        left = [column.counts.copy() for column in self.columns]
        column_of = np.repeat(np.arange(gone.units * gone.columns) % max(1, gone.columns), np.diff(gone.start))
        for index, counts in enumerate(left):
            own = column_of == index
            np.subtract.at(counts, gone.values[own], gone.counts[own])
        columns = tuple(replace(column, counts=counts) for column, counts in zip(self.columns, left, strict=True))
        return replace(self, columns=columns)

    def refuse_impossible(self, *, suppressible: int, persons: int) -> list[str]:
        """Stop where no release can meet a demand; what leaves hardly any choice is returned as warnings."""
        found = impossible(self.columns, self.models, suppressible=suppressible, persons=persons, members=self.members)
        if found:
            raise DataError(
                "; ".join(text.replace(WISHES, "privacy.personal_k").replace(BY_FILE, "") for text in found),
                where="privacy",
                fix="ask for less, or allow more suppression (privacy.max_suppression)",
            )
        warnings = forced(self.columns, self.models, suppressible=suppressible)
        return [text.replace(BY_FILE, "") for text in warnings]


def asks_models(config: Config) -> bool:
    """Whether a configuration asks anything of the values that classes hold."""
    return bool(_judged_columns(config)) or config.privacy.personal_k is not None


def prepare_sensitive(
    ctx: RunContext, source: "DataFrame", config: Config, *, base_dir: Path, folder: str
) -> "tuple[DataFrame, Sensitive | None]":
    """The source (with the wishes as one more column, where there are any), and how its sensitive columns are encoded.

    Raises:
        UnsupportedTypeError, HierarchyError, DataError: As for quasi-identifiers.
        RequestError: The wishes are no whole numbers.
    """
    from pyspark.sql import functions as F

    specs: dict[str, QiSpec] = {}
    for name in _judged_columns(config):
        hierarchy = config.columns.sensitive[name].hierarchy
        asked = models_of(config.columns.sensitive[name], config.privacy, {})
        used = any(map(_by_hierarchy, asked))
        loses = isinstance(hierarchy, FileSpec) and hierarchy.unknown == "root" and hierarchy.stem is None
        twice = used and loses and not all(map(_by_hierarchy, asked))
        specs[name] = QiSpec(hierarchy=hierarchy if used and not twice else None)
        if twice:
            source = source.withColumn(BY_FILE + name, F.col(quoted(name)))
            specs[BY_FILE + name] = QiSpec(hierarchy=hierarchy)
    if config.privacy.personal_k is not None:
        source = with_wishes(source, config)
        specs[WISHES] = QiSpec()
    if not specs:
        return source, None
    if len(specs) > MODEL_LIMIT:
        raise RequestError(
            f"{len(specs)} sensitive columns have models, more than {MODEL_LIMIT}", where="columns.sensitive"
        )
    try:
        encoding = encode_columns(
            ctx,
            source,
            specs,
            form=lambda spec, kind: AS_LABELS,
            seed=0,
            base_dir=base_dir,
            folder=folder,
        )
    except KanonError as error:
        raise _of_sensitive(error) from None
    return source, Sensitive(encoding, config)


def with_wishes(source: "DataFrame", config: Config) -> "DataFrame":
    """The source with each row's own k as a column of longs; null where there is none."""
    from pyspark.sql import functions as F

    spec = config.privacy.personal_k
    if spec is None:
        return source
    wish = F.col(quoted(spec.column)) if spec.column is not None else F.expr(spec.rule or "NULL")
    found = source.withColumn(WISHES, wish)
    kind = found.schema[WISHES].dataType.simpleString()
    if kind not in {"tinyint", "smallint", "int", "bigint", "void"}:
        raise RequestError(
            f"each person's own k must be a whole number, this is {kind}",
            where="privacy.personal_k",
            fix="name a column of integers, or write a rule that gives some, such as CASE WHEN age < 18 THEN 20 END",
        )
    return found.withColumn(WISHES, F.col(WISHES).cast("bigint"))


def _judged_columns(config: Config) -> list[str]:
    """Sensitive columns that a model speaks of."""
    return [name for name, spec in config.columns.sensitive.items() if models_of(spec, config.privacy, {})]


def _by_hierarchy(model: Model) -> bool:
    return isinstance(model, TCloseness) and model.distance == "hierarchical"


def _models_by(column: str, config: Config, codes: Mapping[str, int], columns: Sequence[str]) -> tuple[Model, ...]:
    """What is asked of a column; where it travels twice, each time only what it travels for."""
    own = column.removeprefix(BY_FILE)
    asked = models_of(config.columns.sensitive[own], config.privacy, codes)
    if BY_FILE + own not in columns:
        return asked
    return tuple(model for model in asked if _by_hierarchy(model) == (own != column))


def _named(column: QiColumn, config: Config) -> dict[str, int]:
    """Codes of the values that `alpha` names, however a hierarchy file spells them."""
    own = config.columns.sensitive[column.name.removeprefix(BY_FILE)]
    alpha = own.alpha or config.privacy.alpha
    codes = {same_text(text, column.kind): code for code, text in enumerate(column.texts) if text is not None}
    names = (alpha.values if alpha is not None else None) or ()
    return {name: codes[form] for name in names if (form := same_text(name, column.kind)) in codes}


def _column(column: QiColumn, tally: Longs, *, hierarchy: bool) -> Column:
    tree = column.tree
    counts = tally[: tree.leaves]
    null = tree.null_leaf
    known = np.delete(column.positions[: tree.leaves], null) if null >= 0 else column.positions[: tree.leaves]
    ordered = column.kind in ORDERED and bool((np.diff(known) >= 0).all())
    return Column(column.name, counts, null=null, ordered=ordered, levels=tree.levels if hierarchy else None)


def _wishes(column: QiColumn, tally: Longs, k: int) -> Column:
    """Null asks for nothing of its own; and nobody can ask for less than k."""
    amounts = np.array([k if text is None else max(k, int(text)) for text in column.texts], np.int64)
    return Column.personal(WISHES, amounts, tally[: len(amounts)])


def _of_sensitive(error: KanonError) -> KanonError:
    """The same error, speaking of a sensitive column."""
    where = error.where.replace("columns.quasi_identifiers", "columns.sensitive")
    where = where.replace(f"columns.sensitive.{WISHES}", "privacy.personal_k").replace(BY_FILE, "")
    message = error.message.replace("a quasi-identifier", "judged by a privacy model")
    fixed = type(error)(message, where=where, fix=error.fix)
    return fixed
