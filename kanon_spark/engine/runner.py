"""The way of a row, from source to published release. Each step lives in its own room; this file only joins them."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kanon_spark.config.loader import LoadedConfig
from kanon_spark.config.roles import assign_roles
from kanon_spark.engine.classes import form_classes
from kanon_spark.engine.details import Details
from kanon_spark.engine.facts import failed_manifest, make_manifest, previous_release_warnings, sample_rows
from kanon_spark.engine.opened import Opened
from kanon_spark.engine.outcome import read_reports, restore_reports, write_failure, write_reports
from kanon_spark.engine.pieces import Solver
from kanon_spark.engine.pseudonyms import checked_ids, pseudonym_specs, pseudonym_warnings
from kanon_spark.engine.refuse import as_known, may_be_shown, refuse_errors, refuse_suppression, refuse_too_few
from kanon_spark.engine.rejudging import judges_of, rejudge
from kanon_spark.engine.release import Recoding, Release
from kanon_spark.engine.risks import release_risk
from kanon_spark.engine.session import get_spark
from kanon_spark.engine.solving import BLOCK_SIZE, Solved
from kanon_spark.engine.stages import Listener, RunContext
from kanon_spark.engine.unpublished import UnpublishedRelease
from kanon_spark.engine.verification import save_recoding_facts, verify_published, verify_staged
from kanon_spark.errors import (
    InternalError,
    RequestError,
    SourceChangedError,
)
from kanon_spark.io.files import local_size
from kanon_spark.io.quiet import quiet_query_errors
from kanon_spark.kernels.problem import Forest
from kanon_spark.methods.full_domain import most_suppressed
from kanon_spark.methods.registry import method_for
from kanon_spark.recoding.apply import recode, spread
from kanon_spark.recoding.columns import published_schema
from kanon_spark.recoding.pseudonyms import pseudonymize
from kanon_spark.signatures.columns import kind_of, type_of
from kanon_spark.signatures.forms import forms_of
from kanon_spark.signatures.ids import look_at_ids

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kanon_spark.io.sinks import Publisher
    from kanon_spark.releases.workdir import WorkDir
    from kanon_spark.signatures.aggregate import Signatures
    from kanon_spark.signatures.encoding import Encoding
    from kanon_spark.signatures.sensitive import Sensitive
    from kanon_spark.verify.facts import Verdict


BRIEF_BYTES = 64_000_000  # a source file up to this size is anonymized in seconds


def run(
    loaded: LoadedConfig,
    *,
    spark: "SparkSession | None" = None,
    table: "DataFrame | None" = None,
    listeners: Sequence[Listener] = (),
) -> Release:
    """Anonymize, verify, publish.

    Args:
        loaded: The configuration.
        spark: The session; the table's, the active one, or a local one by default.
        table: The rows; the configuration's `source` by default.
        listeners: Called with each `StageEvent`.

    Raises:
        KanonError: Nothing was published, the previous release stands as it was, and nothing raw is left behind.
    """
    session = spark or (table.sparkSession if table is not None else _own_session(loaded))
    job = _Job(RunContext(session, listeners=list(listeners)), loaded)
    try:
        # PySpark logs failing queries with their literals and values before anyone can catch the error.
        with quiet_query_errors():
            return job.run(table)
    except Exception as error:
        known = as_known(error, run_id=job.ctx.run_id)
        write_failure(loaded, failed_manifest(job.ctx, loaded, known), spark=session)
        if isinstance(known, InternalError):
            raise
        raise known from None


def _own_session(loaded: LoadedConfig) -> "SparkSession":
    source = loaded.config.source
    size = local_size(loaded.resolve(source.path)) if source is not None and source.path is not None else None
    brief = size is not None and size <= BRIEF_BYTES
    stitch = loaded.config.execution.stitch
    # `auto` calls GraphFrames only on what no small file can hold.
    graphs = stitch == "graphframes" or (stitch == "auto" and not brief)
    return get_spark(f"kanon {loaded.config.name}", brief=brief, graphs=graphs)


class _Job:
    """One run. The steps share a handful of facts; everything bulky is in Spark or on disk."""

    def __init__(self, ctx: RunContext, loaded: LoadedConfig) -> None:
        self.ctx = ctx
        self.loaded = loaded
        self.config = loaded.config
        self.started = datetime.now(UTC)
        self.clock = time.perf_counter()
        self.warnings: list[str] = []

    def run(self, table: "DataFrame | None") -> Release:
        with ExitStack() as stack:
            opened = self._prepare(table, stack)
            try:
                return self._anonymize(opened)
            except BaseException:
                opened.publisher.discard()
                raise

    def _prepare(self, table: "DataFrame | None", stack: ExitStack) -> Opened:
        """Open the source, look at its columns, take the lock, clear what dead runs left."""
        from kanon_spark.config.preflight import check_schema
        from kanon_spark.io.sinks import publisher_for
        from kanon_spark.io.sources import open_source
        from kanon_spark.releases.gc import collect_garbage
        from kanon_spark.releases.lock import TargetLock
        from kanon_spark.releases.workdir import WorkDir

        ctx, config, base_dir = self.ctx, self.config, self.loaded.base_dir
        with ctx.stage("prepare"):
            if table is None and config.source is None:
                raise RequestError(
                    "the configuration names no source, and no table was given",
                    where="source",
                    fix="add source.path or source.table, or call run(df)",
                )
            work = WorkDir.open(ctx.spark, config, base_dir, ctx.run_id)
            # Whatever happens, nothing raw stays but the recoding of a release that stands.
            stack.push(lambda kind, error, trace: _forget(work, failed=error is not None))
            publisher: Publisher | UnpublishedRelease
            lock = None
            if config.sink is None:
                publisher = UnpublishedRelease(ctx.spark, work)
            else:
                publisher = publisher_for(
                    ctx.spark, config.sink, base_dir=base_dir, run_id=ctx.run_id, work_root=work.root
                )
                publisher.check(None if table is not None else config.source)
                lock = stack.enter_context(
                    TargetLock(
                        publisher.lock_store, publisher.lock_path, run_id=ctx.run_id, lease=config.execution.lease
                    )
                )
            collect_garbage(ctx.spark, self.loaded, lock=lock)
            facts: dict[str, object] = {"dataframe": True}
            if table is None and config.source is not None:
                found = open_source(ctx.spark, config.source, base_dir=base_dir, work=work)
                table, facts = found.table, found.description
            assert table is not None
            refuse_errors(check_schema(table.schema, config))
            roles = assign_roles(config, table.columns)
            kinds = {name: kind_of(type_of(table, name), qi=name) for name in roles.quasi_identifiers}
            opened = Opened(table, facts, roles, publisher, work, lock, ids={}, forms=forms_of(config, kinds))
            publisher.check_schema(self._published_schema(opened))
            opened.ids = checked_ids(table, config)
        return opened

    def _published_schema(self, opened: Opened) -> Any:
        """The release's schema."""
        texts = {*opened.roles.quasi_identifiers, *opened.roles.pseudonyms}
        return published_schema(opened.source.schema, opened.own_columns, opened.forms, texts=texts)

    def _anonymize(self, opened: Opened) -> Release:
        from kanon_spark.signatures.aggregate import aggregate
        from kanon_spark.signatures.encoding import prepare_encoding
        from kanon_spark.signatures.sensitive import prepare_sensitive

        ctx, config, work = self.ctx, self.config, opened.work
        base_dir = self.loaded.base_dir
        encoding = prepare_encoding(ctx, opened.source, config, base_dir=base_dir, folder=work.path("domains"))
        source, sensitive = prepare_sensitive(
            ctx, opened.source, config, base_dir=base_dir, folder=work.path("sensitive_domains")
        )
        signatures = aggregate(
            ctx,
            source,
            encoding,
            unit=config.privacy.unit,
            kept=opened.roles.kept,
            path=work.path("signatures"),
            sensitive=None if sensitive is None else sensitive.encoding,
        )
        encoding = signatures.encoding
        refuse_too_few(config, signatures.persons)
        solved = self._solve(opened, signatures, encoding, source, sensitive)
        save_recoding_facts(work.store, work.path("recoding"), seed=encoding.seed, run_id=ctx.run_id)
        suppressed = refuse_suppression(config, solved.entries, rows=signatures.rows)
        star = config.output.suppressed_rows == "star" and may_be_shown(
            solved.entries, config, sensitive, persons=suppressed["persons"]
        )
        self._write(opened, encoding, solved, signatures, star=star)
        verdict = self._verify(opened, encoding, solved, signatures, star=star)
        return self._publish(opened, encoding, solved, signatures, verdict, suppressed=suppressed, star=star)

    def _solve(
        self,
        opened: Opened,
        signatures: "Signatures",
        encoding: "Encoding",
        source: "DataFrame",
        sensitive: "Sensitive | None",
    ) -> Solved:
        execution = self.config.execution
        suppressible = most_suppressed(self.config.privacy.max_suppression, signatures.rows)
        judged = None
        if sensitive is not None:
            with self.ctx.stage("signatures"):
                judged = sensitive.judged(signatures.table)
                sensitive.refuse_missing(source, judged)
                self.warnings += judged.refuse_impossible(suppressible=suppressible, persons=signatures.persons)
        codebook = encoding.codebook
        forest = Forest.of([column.tree for column in codebook.columns], codebook.weights, signatures.present)
        table, labels = signatures.table, 0
        target = self.config.method.target
        label = self.config.method.label or target
        if label is not None:
            from kanon_spark.signatures.labels import with_labels

            with self.ctx.stage("signatures"):
                path = opened.work.path("labels")
                where = "method.label" if target is None else "method.target"
                table, labels = with_labels(table, opened.source, encoding, label, path=path, where=where)
        solver = Solver(
            codebook,
            forest,
            method_for(self.config),
            self.config.privacy.k,
            signatures.count,
            execution.seed,
            labels,
            None if judged is None else judged.demands,
            judged,
            suppressible,
        )
        solved = form_classes(
            self.ctx,
            solver,
            table,
            count=signatures.count,
            execution=execution,
            folder=opened.work.path,
        )
        one_process = solved.stitch["way"] == "one process"
        judges = judges_of(self.loaded, source, encoding, sensitive, one_process=one_process)
        if judges:
            with self.ctx.stage("rejudge"):
                solved.entries = rejudge(
                    self.ctx,
                    solver,
                    solved.entries,
                    judges,
                    block_size=execution.block_size or BLOCK_SIZE,
                    folder=opened.work.path,
                )
        return solved

    def _write(
        self, opened: Opened, encoding: "Encoding", solved: Solved, signatures: "Signatures", *, star: bool
    ) -> None:
        with self.ctx.stage("write"):
            rows = encoding.with_identity(opened.source)
            published = recode(
                rows,
                solved.entries,
                encoding.codebook,
                columns=opened.columns,
                entry_count=signatures.count,
                star=star,
            )
            published = pseudonymize(published, pseudonym_specs(self.config), run_id=self.ctx.run_id)
            if self.config.sink is None or self.config.sink.order == "shuffled":
                published = spread(published, qis=opened.tuple_columns)
            opened.publisher.write(published)

    def _verify(
        self, opened: Opened, encoding: "Encoding", solved: Solved, signatures: "Signatures", *, star: bool
    ) -> "Verdict":
        with self.ctx.stage("verify"):
            staged = opened.publisher.read_staged(self._published_schema(opened))
            verdict = verify_staged(
                self.ctx, self.loaded, opened, encoding, solved.entries, staged=staged, star=star, rows=signatures.rows
            )
            if not verdict.passed and self._source_changed(opened, encoding, signatures):
                raise SourceChangedError(
                    "the source changed while it was being read; nothing was published",
                    where="source",
                    fix="run again when it is at rest, or set source.snapshot: copy",
                )
            verdict.require()
        return verdict

    def _source_changed(self, opened: Opened, encoding: "Encoding", signatures: "Signatures") -> bool:
        """Read the source once more: is it still what the signatures were made of?"""
        if encoding.source_hash(opened.source, opened.roles.kept) != signatures.source_hash:
            return True
        return look_at_ids(opened.source, list(opened.ids)) != opened.ids

    def _publish(
        self,
        opened: Opened,
        encoding: "Encoding",
        solved: Solved,
        signatures: "Signatures",
        verdict: "Verdict",
        *,
        suppressed: dict[str, int],
        star: bool,
    ) -> Release:
        from kanon_spark.measure.metrics import measure

        ctx, config, publisher = self.ctx, self.config, opened.publisher
        # Two small looks that leave cores idle while they are planned: let them overlap.
        with ctx.stage("measure"), ThreadPoolExecutor(max_workers=1) as pool:
            # Beside its pseudonym an id would undo it for whoever reads the report: samples show neither.
            shown = [name for name in opened.own_columns if name not in opened.roles.pseudonyms]
            sampling = pool.submit(sample_rows, opened.source, encoding, solved.entries, columns=shown)
            metrics = measure(
                solved.entries,
                encoding.codebook,
                count=signatures.count,
                facts=verdict.facts,
                k=config.privacy.k,
                bound_kind=solved.bound_kind,
            )
            samples = sampling.result()
            staged = publisher.read_staged(self._published_schema(opened))
            risk = release_risk(self.loaded, opened, signatures, verdict, release=staged)
            details = Details(self.loaded, opened, encoding, solved, signatures.count, verdict.facts.classes)
            told = details.gather(solved.entries, staged) if config.report.html else None
        manifest = make_manifest(
            ctx,
            self.loaded,
            started=self.started,
            source=opened.source_facts,
            sink=publisher.description(),
            roles=opened.roles,
            signatures=signatures,
            solved=solved,
            verdict=verdict,
            suppressed=suppressed,
            metrics=metrics,
            samples=samples,
            risk=risk,
        )
        manifest["columns"]["added"] = list(encoding.codebook.numbers.values())
        manifest["details"] = told
        manifest["warnings"] = [
            *previous_release_warnings(publisher.published(), verdict.content_hash),
            *pseudonym_warnings(config),
            *self.warnings,
        ]
        if opened.lock is not None:
            opened.lock.assert_held()
        standing = read_reports(manifest["files"], spark=ctx.spark)
        try:
            with ctx.stage("publish"):
                facts = {"k": config.privacy.k, "rows": verdict.rows, "method": manifest["method"]}
                publisher.swap({**facts, "content_hash": verdict.content_hash})
            with ctx.stage("report"):
                total = time.perf_counter() - self.clock
                manifest["seconds"] = {"total": total, "stages": dict(ctx.seconds), "kernels_cpu": solved.cpu}
                manifest["finished"] = datetime.now(UTC).isoformat()
                write_reports(self.loaded, manifest, spark=ctx.spark)
        except BaseException:
            publisher.undo()
            restore_reports(standing, spark=ctx.spark)
            raise
        publisher.finish()
        schema = self._published_schema(opened)
        released = publisher.read_published(schema)
        path = opened.work.path("recoding")

        def verify_again() -> "Verdict":
            return verify_published(self.ctx, self.loaded, publisher.read_published(schema), qi=opened.tuple_columns)

        tree = None if solved.tree is None else solved.tree.table()
        recoding = Recoding(ctx.spark.read.parquet(path), path)
        return Release(
            released, recoding, manifest, verify_again, tree, lambda: details.gather(recoding.entries, released)
        )


def _forget(work: "WorkDir", *, failed: bool) -> None:
    work.forget(keep=() if failed else ("recoding", "release"))
