"""The comparison from start to end: rows drawn and aggregated once, cells solved and measured, nothing left behind."""

import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kanon_spark.config.forms import plain, to_form
from kanon_spark.config.loader import LoadedConfig
from kanon_spark.config.models import Config, MethodSpec
from kanon_spark.config.privacy_specs import PersonalKSpec
from kanon_spark.config.roles import Roles
from kanon_spark.engine.encoded import EncodedTable, open_rows, require_source
from kanon_spark.engine.facts import versions
from kanon_spark.engine.own_session import own_session
from kanon_spark.engine.refuse import as_known
from kanon_spark.engine.stages import Listener, RunContext
from kanon_spark.errors import InternalError, KanonError, RequestError
from kanon_spark.explore.compare.cells import Cells
from kanon_spark.explore.compare.learning import Learning
from kanon_spark.explore.compare.request import Sample, Variant, sample_of, share_of, values_of_k, variants
from kanon_spark.explore.compare.result import Comparison, Facts, Limits
from kanon_spark.explore.compare.rows import Drawn, draw
from kanon_spark.io.quiet import quiet_query_errors
from kanon_spark.releases.workdir import WorkDir
from kanon_spark.signatures.sensitive import WISHES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def compare(
    loaded: LoadedConfig,
    *,
    methods: str | Sequence[str] | None = None,
    k: str | int | Iterable[int] | None = None,
    sample: str | int | float | None = None,
    max_gcp: float | None = None,
    max_risk: float | None = None,
    label: str | None = None,
    spark: "SparkSession | None" = None,
    table: "DataFrame | None" = None,
    listeners: Sequence[Listener] = (),
) -> Comparison:
    """Compare methods and values of k; nothing is published.

    Args:
        loaded: The configuration: source, columns, and what is asked besides k.
        methods: Their names, with options where wanted (`mst:cut=paper`); `all`, or six of them by default.
        k: The values; 2, 5, 10, 20, 50 and 100 by default.
        sample: A number of rows, a share, or `none`. By default a table of more than a million rows is sampled.
        max_gcp: Most loss that can be accepted.
        max_risk: Highest chance that somebody is found that can be accepted.
        label: Column of a class label: how well it can be predicted from each release is measured, too.
        spark: The session; the table's, the active one, or a local one by default.
        table: The rows; the configuration's `source` by default.
        listeners: Called with each `StageEvent`.

    Raises:
        KanonError: The request or the table is wrong as a whole. What a single cell cannot do stands in its `reason`.
    """
    config = loaded.config
    compared = variants(methods, config, label=label)
    ks, drawn = values_of_k(k), sample_of(sample)
    limits = Limits(share_of(max_gcp, where="max_gcp"), share_of(max_risk, where="max_risk"))
    if table is None:
        require_source(config)
    session = spark or (table.sparkSession if table is not None else own_session(loaded))
    ctx = RunContext(session, listeners=list(listeners))
    try:
        with quiet_query_errors():
            return _Job(ctx, loaded, compared, ks, limits, label).run(table, drawn)
    except Exception as error:
        known = as_known(error, run_id=ctx.run_id)
        if isinstance(known, InternalError):
            raise
        raise known from None


class _Job:
    """One comparison."""

    def __init__(
        self,
        ctx: RunContext,
        loaded: LoadedConfig,
        compared: Sequence[Variant],
        ks: Sequence[int],
        limits: Limits,
        label: str | None,
    ) -> None:
        self.ctx, self.loaded, self.label = ctx, loaded, label
        self.compared, self.ks, self.limits = compared, ks, limits
        self.notes: list[str] = []

    def run(self, table: "DataFrame | None", asked: Sample | None) -> Comparison:
        begin = time.perf_counter()
        with ExitStack() as stack:
            work = WorkDir.open(self.ctx.spark, self.loaded.config, self.loaded.base_dir, self.ctx.run_id)
            stack.callback(work.forget, keep=())  # whatever happens, nothing raw stays
            drawn = self._drawn(table, asked, work)
            neutral = self._neutral()
            encoded = EncodedTable.of(self.ctx, neutral, drawn.table, kept=(), folder=work.path)
            learning = self._learning(encoded, neutral)
            cells = tuple(Cells(neutral, encoded, work, learning).all(self.compared, self.ks))
        if drawn.share is not None:
            self.notes.insert(0, _sampled(drawn, encoded.signatures.rows))
        facts = Facts(
            name=self.loaded.config.name,
            rows=encoded.signatures.rows,
            persons=encoded.signatures.persons,
            unit=self.loaded.config.privacy.unit,
            signatures=encoded.signatures.count,
            quasi_identifiers=tuple(self.loaded.config.columns.quasi_identifiers),
            demands=demands_of(self.loaded.config),
            whole=drawn.whole if drawn.share is not None else None,
            share=drawn.share,
            by_itself=drawn.by_itself,
            learnt=None if learning is None else learning.learnt,
            notes=tuple(self.notes),
            seconds={"total": time.perf_counter() - begin, "aggregation": self.ctx.seconds["signatures"]},
            versions=versions(self.ctx),
            made=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        return Comparison(cells, self.limits, facts, tuple(self.compared), self.loaded)

    def _drawn(self, table: "DataFrame | None", asked: Sample | None, work: WorkDir) -> Drawn:
        config = self.loaded.config
        with self.ctx.stage("prepare"):
            opened = open_rows(self.ctx, self.loaded, table, work=work, copied=False)
            labels = self._labels(opened.table, opened.roles)
            drawn = draw(
                opened.table,
                config,
                labels=labels,
                asked=asked,
                seed=config.execution.seed,
                path=work.path("rows"),
            )
            if drawn.share is not None:
                self.ctx.note(f"a sample of {drawn.share:.4g} of {drawn.whole} rows")
        return drawn

    def _labels(self, rows: "DataFrame", roles: Roles) -> list[str]:
        """Columns of labels that the rows must keep; those that do not exist or cannot be learnt are refused."""
        guarded = [name for each in self.compared for name in (each.spec.label, each.spec.target) if name is not None]
        if self.label is not None and self.label in rows.columns and self.label not in roles.kept:
            fix = "name a column that is, or put this one under columns.sensitive"
            raise RequestError(f"'{self.label}' is not published as it is", where="label", fix=fix)
        if self.label is None:
            self.label = next((name for name in guarded if name in roles.kept), None)
        named = list(dict.fromkeys([*([self.label] if self.label is not None else []), *guarded]))
        for name in named:
            if name not in rows.columns:
                raise RequestError(f"the table has no column '{name}'", where="label", fix="name one that it has")
        return named

    def _neutral(self) -> LoadedConfig:
        """The configuration as no method changes it, over the columns of the copy."""
        config = self.loaded.config
        changed: dict[str, object] = {"method": MethodSpec(name="lattice", effort=config.method.effort)}
        if config.privacy.personal_k is not None:
            # The copy holds what the rule gave, not what the rule was made of.
            wishes = PersonalKSpec(column=WISHES)
            changed["privacy"] = config.privacy.model_copy(update={"personal_k": wishes})
        return replace(self.loaded, config=config.model_copy(update=changed))

    def _learning(self, encoded: EncodedTable, loaded: LoadedConfig) -> Learning | None:
        if self.label is None:
            return None
        with self.ctx.stage("measure"):
            try:
                return Learning.of(encoded, loaded, self.label)
            except KanonError as error:
                self.notes.append(f"What classifiers learn was not measured: {error.message}.")
                return None


def _sampled(drawn: Drawn, rows: int) -> str:
    """What must be said wherever figures of a sample are shown."""
    why = "drawn because the table is large" if drawn.by_itself else "as asked for"
    return (
        f"All figures are of a sample: {rows:,} of {drawn.whole:,} rows, {why}. Among fewer rows it takes coarser "
        "values to find k alike: the loss of the whole table is less than shown here."
    )


def demands_of(config: Config) -> tuple[str, ...]:
    """What a configuration asks of every release besides k, one line for each demand."""
    privacy = {name: value for name, value in to_form(config.privacy).items() if name not in {"k", "unit"}}
    own = {name: to_form(spec) for name, spec in config.columns.sensitive.items()}
    asked = {f"{column}.{model}": form for column, models in own.items() for model, form in models.items()}
    asked = {name: form for name, form in asked.items() if not name.endswith(".hierarchy")}
    return tuple(f"{name}: {_short(form)}" for name, form in {**privacy, **asked}.items())


def _short(form: object) -> str:
    value = plain(form)
    if isinstance(value, dict):
        return ", ".join(f"{key} {_short(part)}" for key, part in value.items())
    return str(value)
