"""The way of a row, from source to published release. Each step lives in its own room; this file only joins them."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kanon_spark.config.loader import LoadedConfig
from kanon_spark.engine.details import Details
from kanon_spark.engine.encoded import EncodedTable, require_source
from kanon_spark.engine.facts import (
    failed_manifest,
    make_manifest,
    persons_left_out,
    previous_release_warnings,
    sample_rows,
)
from kanon_spark.engine.grown import grown_manifest
from kanon_spark.engine.growth import Growth
from kanon_spark.engine.observing import ObservedRows
from kanon_spark.engine.opened import Held, Opened, hold_target, hold_work, open_table
from kanon_spark.engine.outcome import read_reports, restore_reports, write_failure, write_reports
from kanon_spark.engine.outermost import refuse_outermost
from kanon_spark.engine.own_session import own_session
from kanon_spark.engine.pseudonyms import pseudonym_specs, pseudonym_warnings
from kanon_spark.engine.refuse import as_known, count_suppressed, may_be_shown, refuse_suppression, why_not_shown
from kanon_spark.engine.release import Recoding, Release
from kanon_spark.engine.risks import release_risk
from kanon_spark.engine.scheduled import Scheduled
from kanon_spark.engine.session import carried
from kanon_spark.engine.solving import Solved
from kanon_spark.engine.stages import Listener, RunContext
from kanon_spark.engine.verification import save_recoding_facts, verify_published, verify_staged
from kanon_spark.errors import InternalError, KanonError, SourceChangedError
from kanon_spark.io.quiet import quiet_query_errors
from kanon_spark.recoding.apply import recode, spread
from kanon_spark.recoding.kept import Kept
from kanon_spark.recoding.pseudonyms import pseudonymize
from kanon_spark.signatures.ids import look_at_ids

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kanon_spark.signatures.aggregate import Signatures
    from kanon_spark.signatures.encoding import Encoding
    from kanon_spark.verify.facts import Verdict


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
    session = spark or (table.sparkSession if table is not None else own_session(loaded))
    budget = loaded.config.schedule.time_budget
    job = _Job(RunContext(session, listeners=list(listeners), time_budget=budget), loaded)
    try:
        # PySpark logs failing queries with their literals and values before anyone can catch the error.
        with quiet_query_errors():
            return job.run(table)
    except Exception as error:
        known = job.known(error)
        write_failure(loaded, failed_manifest(job.ctx, loaded, known), spark=session)
        if isinstance(known, InternalError):
            raise
        raise known from None
    finally:
        job.ctx.deadline.disarm()


class _Job:
    """One run. The steps share a handful of facts; everything bulky is in Spark or on disk."""

    def __init__(self, ctx: RunContext, loaded: LoadedConfig) -> None:
        self.ctx = ctx
        self.loaded = loaded
        self.config = loaded.config
        self.started = datetime.now(UTC)
        self.clock = time.perf_counter()
        self.warnings: list[str] = []
        self.scheduled = Scheduled(ctx, loaded)

    def run(self, table: "DataFrame | None") -> Release:
        with ExitStack() as stack:
            with self.ctx.stage("prepare"):
                held = self._hold(table, stack)
                repeated = self.scheduled.repeated(held)
                if repeated is not None:
                    return repeated
                opened = open_table(self.ctx, self.loaded, table, held)
            try:
                return self._anonymize(opened)
            except BaseException:
                opened.publisher.discard()
                raise

    def known(self, error: Exception) -> KanonError:
        """What a user is told of an error. Whatever a cancelled job says, it ran out of time."""
        if self.ctx.deadline.passed and not isinstance(error, KanonError):
            return self.ctx.deadline.error()
        return as_known(error, run_id=self.ctx.run_id)

    def _hold(self, table: "DataFrame | None", stack: ExitStack) -> Held:
        source = require_source(self.config) if table is None else None
        held = hold_work(self.ctx, self.loaded, stack)
        self.scheduled.begin(held.work, held.target)
        # Runs before the work directory forgets what was announced there.
        stack.push(lambda kind, error, trace: self._enter_failure(error))
        hold_target(self.ctx, self.loaded, held, stack, source=source)
        return held

    def _enter_failure(self, error: BaseException | None) -> None:
        if error is not None:
            known = self.known(error) if isinstance(error, Exception) else KanonError("interrupted")
            self.scheduled.enter_failure(failed_manifest(self.ctx, self.loaded, known))

    def _anonymize(self, opened: Opened) -> Release:
        ctx, config, work = self.ctx, self.config, opened.work
        growth = None
        if config.schedule.repeat == "incremental":
            with ctx.stage("arrivals"):
                growth = Growth(ctx, self.loaded, opened)
                opened.source = growth.arrivals
            if growth.standing is not None:
                return self._grow(opened, growth)
        table = EncodedTable.of(ctx, self.loaded, opened.source, kept=opened.roles.kept, folder=work.path)
        encoding, signatures, sensitive = table.encoding, table.signatures, table.sensitive
        self.scheduled.expect(signatures)
        solver, with_labels, warnings = table.solver(config)
        self.warnings += warnings
        if growth is None:  # what no class holds waits in a release that grows
            with ctx.stage("signatures"):
                refuse_outermost(solver, with_labels, rows=signatures.rows)
        solved = table.solve(self.loaded, solver, with_labels, folder=work.path)
        save_recoding_facts(work.store, work.path("recoding"), seed=encoding.seed, run_id=ctx.run_id)
        if growth is None:  # later recodings of a release that grows know its last arrivals only
            kept = Kept.of(self.loaded, encoding.codebook, run_id=ctx.run_id, target=opened.target)
            kept.write(work.store, work.path("recoding"))
        suppressed = count_suppressed(solved.entries)
        if growth is None:
            refuse_suppression(config, suppressed["rows"], rows=signatures.rows)
        asked = config.output.suppressed_rows == "star" and suppressed["rows"] > 0
        star = asked and may_be_shown(solved.entries, config, sensitive, persons=suppressed["persons"])
        if asked and not star:
            self.warnings.append(why_not_shown(sensitive))
        self._write(opened, encoding, solved, signatures, star=star, growth=growth)
        verdict = self._verify(opened, encoding, solved, signatures, star=star, growth=growth)
        return self._publish(opened, encoding, solved, signatures, verdict, suppressed=suppressed, growth=growth)

    def _grow(self, opened: Opened, growth: Growth) -> Release:
        """Publish once more what stands, and what may join it. Arrivals too few or too odd for a class wait."""
        ctx, work = self.ctx, opened.work
        found = growth.solve(self.scheduled.expect)
        if found is not None:
            table, solved = found
            save_recoding_facts(work.store, work.path("recoding"), seed=table.encoding.seed, run_id=ctx.run_id)
            self._write(opened, table.encoding, solved, table.signatures, star=False, growth=growth)
        else:
            with ctx.stage("write"):
                opened.publisher.write(self._in_order(growth.keep(None, None), opened))
        if found is not None and growth.counts["joined"]:
            verdict = self._verify(opened, table.encoding, solved, table.signatures, star=False, growth=growth)
        else:
            with ctx.stage("verify"):
                verdict = growth.verify(opened.publisher.read_staged(opened.schema))
                verdict.require()
        with ctx.stage("measure"):
            manifest = grown_manifest(growth, verdict, None if found is None else found[1], started=self.started)
        manifest["warnings"] = [*pseudonym_warnings(self.config), *self.warnings]
        self._swap(opened, manifest, verdict, cpu=None)
        return self._release(opened, manifest)

    def _in_order(self, published: "DataFrame", opened: Opened) -> "DataFrame":
        if self.config.sink is None or self.config.sink.order == "shuffled":
            return spread(published, qis=opened.tuple_columns)
        return published

    def _write(
        self,
        opened: Opened,
        encoding: "Encoding",
        solved: Solved,
        signatures: "Signatures",
        *,
        star: bool,
        growth: Growth | None,
    ) -> None:
        with self.ctx.stage("write"):
            if growth is not None:
                solved.entries = growth.within_limit(solved.entries, encoding.codebook)
            published = recode(
                encoding.with_identity(opened.source),
                solved.entries,
                encoding.codebook,
                columns=[*opened.columns, *(growth.marks if growth is not None else ())],
                entry_count=signatures.count,
                star=star,
            )
            published = pseudonymize(published, pseudonym_specs(self.config), run_id=self.ctx.run_id)
            if growth is not None:
                published = growth.keep(published, solved.entries)
                solved.entries = growth.open_entries(solved.entries)
            written = ObservedRows()
            opened.publisher.write(written.watch(self._in_order(published, opened)))
            rows = written.seen()
            if rows is not None:
                self.ctx.note(f"{rows:,} rows written")

    def _verify(
        self,
        opened: Opened,
        encoding: "Encoding",
        solved: Solved,
        signatures: "Signatures",
        *,
        star: bool,
        growth: Growth | None,
    ) -> "Verdict":
        with self.ctx.stage("verify"):
            staged = opened.publisher.read_staged(opened.schema)
            verdict = verify_staged(
                self.ctx,
                self.loaded if growth is None else growth.unlimited,
                opened,
                encoding,
                solved.entries,
                staged=staged if growth is None else growth.new_rows,
                star=star,
                rows=signatures.rows,
            )
            if growth is not None and verdict.passed:
                verdict = growth.verify(staged, arrivals=verdict)
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
        growth: Growth | None,
    ) -> Release:
        from kanon_spark.measure.metrics import measure

        ctx, config, publisher = self.ctx, self.config, opened.publisher
        # Two small looks that leave cores idle while they are planned: let them overlap.
        with ctx.stage("measure"), ThreadPoolExecutor(max_workers=1) as pool:
            # Beside its pseudonym an id would undo it for whoever reads the report: samples show neither.
            shown = [name for name in opened.own_columns if name not in opened.roles.pseudonyms]
            sampling = pool.submit(
                carried(ctx.spark, sample_rows), opened.source, encoding, solved.entries, columns=shown
            )
            metrics = measure(
                solved.entries,
                encoding.codebook,
                count=signatures.count,
                facts=verdict.facts,
                k=config.privacy.k,
                bound_kind=solved.bound_kind,
            )
            samples = sampling.result()
            left_out = self._persons_left_out(opened, encoding, solved, rows=suppressed["rows"])
            staged = publisher.read_staged(opened.schema)
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
            persons_suppressed=left_out,
        )
        manifest["columns"]["added"] = list(encoding.codebook.numbers.values())
        manifest["details"] = told
        if growth is None:
            manifest["files"]["recoding"] = opened.work.path("recoding")
        if growth is not None:
            manifest["rows"] |= growth.row_facts
            manifest["incremental"] = growth.counts
        manifest["warnings"] = [
            *previous_release_warnings(publisher, verdict.content_hash),
            *pseudonym_warnings(config),
            *self.warnings,
        ]
        self._swap(opened, manifest, verdict, cpu=solved.cpu)
        release = self._release(opened, manifest)
        tree = None if solved.tree is None else solved.tree.table()
        entries = release.recoding.entries if release.recoding is not None else solved.entries
        return replace(release, tree=tree, _details=lambda: details.gather(entries, release.table))

    def _swap(
        self, opened: Opened, manifest: dict[str, Any], verdict: "Verdict", *, cpu: dict[str, float] | None
    ) -> None:
        """Swap the verified release in, and write down what it is; if that cannot be written, swap it out again."""
        ctx, config, publisher = self.ctx, self.config, opened.publisher
        if opened.lock is not None:
            opened.lock.assert_held()
        standing = read_reports(manifest["files"], spark=ctx.spark)
        try:
            self.scheduled.publishing(manifest)
            with ctx.stage("publish"):
                facts = {"k": config.privacy.k, "rows": verdict.rows, "method": manifest["method"]}
                facts |= {"incremental": True} if config.schedule.repeat == "incremental" else {}
                publisher.swap({**facts, **self.scheduled.facts, "content_hash": verdict.content_hash})
            with ctx.stage("report"):
                total = time.perf_counter() - self.clock
                manifest["seconds"] = {
                    "total": total,
                    "predicted": self.scheduled.predicted,
                    "stages": dict(ctx.seconds),
                    "kernels_cpu": cpu,
                }
                manifest["finished"] = datetime.now(UTC).isoformat()
                write_reports(self.loaded, manifest, spark=ctx.spark)
                self.scheduled.enter(manifest)
        except BaseException:
            publisher.undo()
            restore_reports(standing, spark=ctx.spark)
            raise
        publisher.finish()

    def _release(self, opened: Opened, manifest: dict[str, Any]) -> Release:
        publisher, schema, path = opened.publisher, opened.schema, opened.work.path("recoding")

        def verify_again() -> "Verdict":
            return verify_published(self.ctx, self.loaded, publisher.read_published(schema), qi=opened.tuple_columns)

        # An incremental run without arrivals has nothing to recode.
        there = opened.work.store.exists(path)
        recoding = Recoding(self.ctx.spark.read.parquet(path), path) if there else None
        return Release(publisher.read_published(schema), recoding, manifest, verify_again)

    def _persons_left_out(self, opened: Opened, encoding: "Encoding", solved: Solved, *, rows: int) -> int | None:
        """Persons none of whose rows is released; None where rows are what is counted."""
        unit = self.config.privacy.unit
        if unit is None or rows == 0:
            return None if unit is None else 0
        return persons_left_out(opened.source, encoding, solved.entries, unit)
