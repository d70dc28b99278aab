"""A source's rows as signatures, ready to be solved by any method at any k: what runs and comparisons share.

The rows are read and aggregated once. What depends on the method (the labels it guards, the form of what it publishes)
and on k (what classes are judged by) is put together for each configuration that is solved.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from kanon_spark.config.loader import LoadedConfig
from kanon_spark.config.models import Config, ExecutionSpec, SourceSpec
from kanon_spark.config.roles import Roles, assign_roles
from kanon_spark.engine.classes import form_classes, in_one_process
from kanon_spark.engine.pieces import Solver
from kanon_spark.engine.population import open_population, refuse_small_population
from kanon_spark.engine.refuse import refuse_errors, refuse_too_few
from kanon_spark.engine.rejudging import Judge, judges_of, rejudge
from kanon_spark.engine.solving import BLOCK_SIZE, Solved
from kanon_spark.engine.stages import RunContext
from kanon_spark.errors import RequestError
from kanon_spark.kernels.problem import Forest
from kanon_spark.methods.full_domain import most_suppressed
from kanon_spark.methods.registry import method_for
from kanon_spark.privacy.base import Longs
from kanon_spark.signatures.aggregate import Signatures, aggregate
from kanon_spark.signatures.codebook import Codebook
from kanon_spark.signatures.columns import kind_of
from kanon_spark.signatures.encoding import Encoding, prepare_encoding
from kanon_spark.signatures.forms import form_of
from kanon_spark.signatures.labels import with_labels
from kanon_spark.signatures.qi_columns import in_form
from kanon_spark.signatures.sensitive import Judged, Sensitive, prepare_sensitive

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kanon_spark.releases.workdir import WorkDir

Folder = Callable[[str], str]


@dataclass(frozen=True)
class OpenedRows:
    """The rows of a job, looked at: every column has its role.

    Attributes:
        table: The rows.
        facts: What the manifest tells of where they came from.
        roles: Which column is what.
    """

    table: "DataFrame"
    facts: dict[str, object]
    roles: Roles


def require_source(config: Config) -> SourceSpec:
    """Where the rows come from, if no table is handed over."""
    if config.source is None:
        raise RequestError(
            "the configuration names no source, and no table was given",
            where="source",
            fix="add source.path or source.table, or hand over a DataFrame",
        )
    return config.source


def open_rows(
    ctx: RunContext, loaded: LoadedConfig, table: "DataFrame | None", *, work: "WorkDir", copied: bool = True
) -> OpenedRows:
    """Open what the configuration names, unless a table was handed over, and refuse what does not fit it.

    Args:
        ctx: The run.
        loaded: The configuration.
        table: The rows; the configuration's `source` where it is None.
        work: Where a snapshot of the source is kept.
        copied: Whether `source.snapshot: copy` is carried out; False where the caller keeps the rows itself.
    """
    from kanon_spark.config.preflight import check_schema
    from kanon_spark.io.sources import open_source

    config = loaded.config
    facts: dict[str, object] = {"dataframe": True}
    if table is None:
        spec = require_source(config)
        if not copied:
            spec = spec.model_copy(update={"snapshot": "none"})
        part = config.schedule.partition
        found = open_source(ctx.spark, spec, base_dir=loaded.base_dir, work=work, partition=part)
        table, facts = found.table, found.description
    refuse_errors(check_schema(table.schema, config))
    return OpenedRows(table, facts, assign_roles(config, table.columns))


@dataclass(frozen=True)
class EncodedTable:
    """Signatures, and how rows became them.

    Attributes:
        ctx: The run.
        source: The rows, with the wishes (`personal_k`) as a column where there are any.
        encoding: How their quasi-identifiers are encoded.
        sensitive: How the values are encoded that classes are judged by; None where none are.
        signatures: The aggregated table.
        folder: Gives a path under the work folder for a name.
        population: That of `privacy.k_map`, where one is named.
    """

    ctx: RunContext
    source: "DataFrame"
    encoding: Encoding
    sensitive: Sensitive | None
    signatures: Signatures
    folder: Folder
    population: "DataFrame | None" = None
    _labelled: dict[str, "tuple[DataFrame, int]"] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, ctx: RunContext, loaded: LoadedConfig, rows: "DataFrame", *, kept: tuple[str, ...], folder: Folder
    ) -> "EncodedTable":
        """Encode and aggregate the rows of a job (stages `domains` and `signatures`).

        Args:
            ctx: The run.
            loaded: The configuration.
            rows: The rows.
            kept: Columns whose content is hashed along, because they are published as they are.
            folder: Gives a path under the work folder for a name.
        """
        config, base_dir = loaded.config, loaded.base_dir
        population = open_population(ctx.spark, loaded)
        if population is not None and config.privacy.k_map is not None:
            refuse_small_population(population, k=config.privacy.k_map.k, unit=config.privacy.unit)
        encoding = prepare_encoding(ctx, rows, config, base_dir=base_dir, folder=folder("domains"))
        source, sensitive = prepare_sensitive(ctx, rows, config, base_dir=base_dir, folder=folder("sensitive_domains"))
        signatures = aggregate(
            ctx,
            source,
            encoding,
            unit=config.privacy.unit,
            kept=kept,
            path=folder("signatures"),
            sensitive=None if sensitive is None else sensitive.encoding,
        )
        return cls(ctx, source, signatures.encoding, sensitive, signatures, folder, population)

    def solver(self, config: Config) -> "tuple[Solver, DataFrame, list[str]]":
        """What solves the table as `config` asks, the signatures with what its method needs of them, and warnings.

        Raises:
            TooFewPersonsError, DataError: No release of this table can be what is asked.
        """
        refuse_too_few(config, self.signatures.persons)
        suppressible = most_suppressed(config.privacy.max_suppression, self.signatures.rows)
        judged, warnings = self._judged(config, suppressible)
        codebook = self._codebook(config)
        forest = Forest.of([column.tree for column in codebook.columns], codebook.weights, self.signatures.present)
        table, labels = self._with_labels(config)
        solver = Solver(
            codebook,
            forest,
            method_for(config),
            config.privacy.k,
            self.signatures.count,
            config.execution.seed,
            labels,
            None if judged is None else judged.demands,
            judged,
            suppressible,
        )
        return solver, table, warnings

    def solve(self, loaded: LoadedConfig, solver: Solver, table: "DataFrame", *, folder: Folder) -> Solved:
        """Form classes as the configuration asks, judge them as a whole release, and write the recoding."""
        execution = loaded.config.execution
        count = self.signatures.count
        solved = form_classes(self.ctx, solver, table, count=count, execution=execution, folder=folder)
        judges = self.judges(loaded, solver)
        over_blocks = not self.fits_one_process(solver, execution)
        if judges or (over_blocks and solver.demands is not None):
            with self.ctx.stage("rejudge"):
                solved.entries, solved.broken = rejudge(
                    self.ctx,
                    solver,
                    solved.entries,
                    judges,
                    block_size=execution.block_size or BLOCK_SIZE,
                    folder=folder,
                    over_blocks=over_blocks,
                )
        return solved

    def judges(self, loaded: LoadedConfig, solver: Solver) -> list[Judge]:
        """Who has to look at the classes once more when all are formed; nobody, where kernels know everything."""
        sensitive = None if self.sensitive is None else replace(self.sensitive, config=loaded.config)
        one_process = self.fits_one_process(solver, loaded.config.execution)
        return judges_of(
            loaded.config,
            self.source,
            self.encoding,
            sensitive,
            population=self.population,
            one_process=one_process,
        )

    def fits_one_process(self, solver: Solver, execution: ExecutionSpec) -> bool:
        """Whether one process forms all classes."""
        return in_one_process(solver.method, self.signatures.count, execution)

    def _judged(self, config: Config, suppressible: int) -> tuple[Judged | None, list[str]]:
        if self.sensitive is None:
            return None, []
        judged = Judged.of(config, self.sensitive.encoding.codebook.columns, self._tallies)
        unit, sensitive = config.privacy.unit, replace(self.sensitive, config=config)
        if unit is not None and sensitive.limited:
            with self.ctx.stage("signatures"):
                judged = sensitive.with_people(judged, self.source, self.encoding, unit)
        return judged, judged.refuse_impossible(suppressible=suppressible, persons=self.signatures.persons)

    @cached_property
    def _tallies(self) -> list[Longs]:
        """Persons (rows) of each value that classes are judged by."""
        assert self.sensitive is not None
        with self.ctx.stage("signatures"):
            tallies = self.sensitive.tallies(self.signatures.table)
            self.sensitive.refuse_missing(self.source, tallies)
            return tallies

    def _codebook(self, config: Config) -> Codebook:
        """The quasi-identifiers in the form that this configuration publishes."""
        specs = config.columns.quasi_identifiers
        columns = []
        for column, data_type in zip(self.encoding.codebook.columns, self.encoding.types, strict=True):
            kind = kind_of(data_type, qi=column.name)
            columns.append(in_form(column, form_of(specs[column.name], kind, config)))
        return Codebook(tuple(columns))

    def _with_labels(self, config: Config) -> "tuple[DataFrame, int]":
        """The signatures, with rows per class label where the method guards some; counted once for each column."""
        target = config.method.target
        label = config.method.label or target
        if label is None:
            return self.signatures.table, 0
        if label not in self._labelled:
            with self.ctx.stage("signatures"):
                self._labelled[label] = with_labels(
                    self.signatures.table,
                    self.source,
                    self.encoding,
                    label,
                    path=self.folder(f"labels_{len(self._labelled)}"),
                    where="method.label" if target is None else "method.target",
                )
        return self._labelled[label]
