"""A saved recoding on another table: the same mapping, written, verified and swapped in like any release."""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kanon_spark.config.models import SinkSpec, SourceSpec
from kanon_spark.engine.applied import Applied
from kanon_spark.engine.facts import model_facts, persons_left_out, previous_release_warnings, versions
from kanon_spark.engine.holding_back import hold_back
from kanon_spark.engine.matching import Matched, as_texts, match, saved_tuples
from kanon_spark.engine.opened import Held, Opened, hold_work, open_table
from kanon_spark.engine.pseudonyms import pseudonym_specs, pseudonym_warnings
from kanon_spark.engine.refuse import as_known, count_suppressed, refuse_too_few
from kanon_spark.engine.session import is_local
from kanon_spark.engine.stages import Listener, RunContext
from kanon_spark.engine.unpublished import UnpublishedRelease
from kanon_spark.engine.verification import check_staged, verify_published
from kanon_spark.errors import (
    DataError,
    InternalError,
    RequestError,
    SourceChangedError,
    SuppressionError,
    TargetError,
    UnsupportedTypeError,
)
from kanon_spark.io.paths import name_of, parent_of, resolve
from kanon_spark.io.quiet import quiet_query_errors
from kanon_spark.methods.full_domain import most_suppressed
from kanon_spark.recoding.apply import recode, spread
from kanon_spark.recoding.kept import Kept, changed, with_unknown_at_root
from kanon_spark.recoding.pseudonyms import pseudonymize
from kanon_spark.releases.lock import TargetLock
from kanon_spark.releases.workdir import DEFAULT_NAME, split_entry
from kanon_spark.signatures.aggregate import Signatures, aggregate
from kanon_spark.signatures.encoding import ROW_HASH, Encoding, prepare_encoding
from kanon_spark.signatures.ids import look_at_ids

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kanon_spark.config.loader import LoadedConfig
    from kanon_spark.recoding.saved import Recoding
    from kanon_spark.verify.facts import Verdict

# Kept as the recoding of a run is: as long as the release stands.
HELD_BACK = "recoding_held_back"
COMPARED = (
    "This release follows the recoding of another one. Whoever has both can compare them: where persons stand in both, "
    "each is k-anonymous and the pair need not be."
)


@dataclass(frozen=True)
class Request:
    """What is asked besides the recoding and the table.

    Attributes:
        sink: Where the release goes; None keeps it in the work directory.
        source: Where the rows come from, where no table is handed over.
        work_dir: Where raw data is kept on the way; by default the work directory that holds the recoding.
        keep_held_back: Keep the rows that are not published, in the work directory.
        max_held_back: Largest share of rows that may be held back.
    """

    sink: SinkSpec | None = None
    source: SourceSpec | None = None
    work_dir: str | None = None
    keep_held_back: bool = False
    max_held_back: float = 1.0


def apply_recoding(
    recoding: "Recoding",
    request: Request,
    *,
    spark: "SparkSession",
    table: "DataFrame | None" = None,
    listeners: Sequence[Listener] = (),
) -> Applied:
    """Publish a table as a saved recoding says.

    Raises:
        KanonError: Nothing was published, and nothing raw is left behind.
    """
    ctx = RunContext(spark, listeners=list(listeners))
    try:
        with quiet_query_errors(), recoding.kept.unpacked() as loaded:
            return _Application(ctx, recoding, _asked(loaded, recoding, request), request).run(table)
    except Exception as error:
        known = as_known(error, run_id=ctx.run_id)
        if isinstance(known, InternalError):
            raise
        raise known from None


def _asked(loaded: "LoadedConfig", recoding: "Recoding", request: Request) -> "LoadedConfig":
    """The configuration of the recoding's run, for this table and target.

    Rows that no class covers are held back and counted, so values that a hierarchy misses are no error, and the share
    that the run might suppress says nothing here.
    """
    config = with_unknown_at_root(loaded.config)
    source = request.source
    if source is not None and source.path is not None:
        # Relative to where the request was made, not to where the recoding is unpacked.
        source = source.model_copy(update={"path": resolve(source.path, Path.cwd())})
    if any(column.form.mean or "mean" in column.form.numbers for column in recoding.kept.columns):
        raise RequestError(
            "the release publishes means, which are those of its own rows and no mapping for others",
            where="recoding",
            fix="run the job with labels or bounds (output.numeric, method.numeric) and apply that recoding",
        )
    return changed(
        loaded,
        columns=config.columns,
        source=source,
        sink=request.sink,
        privacy=config.privacy.model_copy(update={"max_suppression": request.max_held_back}),
        output=config.output.model_copy(update={"suppressed_rows": "drop"}),
        execution=config.execution.model_copy(update={"work_dir": _work_dir(recoding, request)}),
    )


def _work_dir(recoding: "Recoding", request: Request) -> str | None:
    """Where raw data is kept: where it was asked for, where the recoding is, or `.kanon` here (on local Spark)."""
    named = request.work_dir or home_of(recoding.path)
    if named is None and is_local(recoding.entries.sparkSession):
        named = DEFAULT_NAME
    return None if named is None else resolve(named, Path.cwd())


def home_of(path: str) -> str | None:
    """The work directory that holds a recoding; None for one that was saved elsewhere.

    >>> home_of("/jobs/.kanon/_kanon_20250102T030405_0a1b2c3d_recoding"), home_of("/safe/patients")
    ('/jobs/.kanon', None)
    """
    return parent_of(path) if split_entry(name_of(path)) is not None else None


def refuse_much(held: int, *, rows: int, k: int, allowed: float) -> None:
    """Stop where nothing is left to publish, or less than is asked."""
    if held == rows:
        raise DataError(
            f"none of the {rows:,} rows can be published: no class of the recoding covers them, or those that do have "
            f"fewer than k = {k} here or break a model",
            where="table",
            fix="apply the recoding to more rows, or anonymize the table by a run of its own",
        )
    if held > most_suppressed(allowed, rows):
        raise SuppressionError(
            f"{held:,} of {rows:,} rows would be held back, more than the share of {allowed:g} that is allowed; "
            "nothing was published",
            where="--max-held-back",
            fix="allow more, or anonymize the table by a run of its own",
        )


class _Application:
    """One application of a recoding; its steps share a handful of facts."""

    def __init__(self, ctx: RunContext, recoding: "Recoding", loaded: "LoadedConfig", request: Request) -> None:
        self.ctx, self.recoding, self.loaded, self.request = ctx, recoding, loaded, request
        self.kept: Kept = recoding.kept
        self.config = loaded.config
        self.started, self.clock = datetime.now(UTC), time.perf_counter()

    def run(self, table: "DataFrame | None") -> Applied:
        with ExitStack() as stack:
            with self.ctx.stage("prepare"):
                if table is None and self.config.source is None:
                    raise RequestError("no table was given", where="apply", fix="hand over a DataFrame or name one")
                opened = open_table(self.ctx, self.loaded, table, self._hold(stack))
            try:
                return self._apply(opened)
            except BaseException:
                opened.publisher.discard()
                raise

    def _hold(self, stack: ExitStack) -> Held:
        """The work directory and the lock. Other runs' leftovers stay: the recoding itself may look like one."""
        held = hold_work(self.ctx, self.loaded, stack)
        publisher = held.publisher
        if not isinstance(publisher, UnpublishedRelease):
            if publisher.target == self.kept.target:
                raise TargetError(
                    "the release that the recoding belongs to stands there, and the recoding would go with it",
                    where="--to",
                    fix="name another target",
                )
            publisher.check(self.config.source)
            lease = self.config.execution.lease
            lock = TargetLock(publisher.lock_store, publisher.lock_path, run_id=self.ctx.run_id, lease=lease)
            held.lock = stack.enter_context(lock)
            publisher.recover()
        return held

    def _apply(self, opened: Opened) -> Applied:
        ctx, config, work = self.ctx, self.config, opened.work
        fresh = prepare_encoding(ctx, opened.source, config, base_dir=self.loaded.base_dir, folder=work.path("domains"))
        self._refuse_other_kinds(fresh)
        signatures = aggregate(
            ctx,
            opened.source,
            fresh,
            unit=config.privacy.unit,
            kept=opened.roles.kept,
            path=work.path("signatures"),
        )
        refuse_too_few(config, signatures.persons)
        matched = match(ctx, signatures, self.recoding.entries, self.kept, config, folder=work.path("matched"))
        encoding = replace(signatures.encoding, codebook=as_texts(signatures.codebook))
        not_covered = count_suppressed(matched.entries)["rows"]
        entries = hold_back(ctx, self.loaded, opened, encoding, matched.entries, count=signatures.count)
        held = count_suppressed(entries)["rows"]
        refuse_much(held, rows=signatures.rows, k=config.privacy.k, allowed=self.request.max_held_back)
        with ctx.stage("write"):
            self._write(opened, encoding, entries, count=signatures.count)
        verdict = self._verify(opened, encoding, entries, signatures)
        counts = {
            "input": signatures.rows,
            "released": signatures.rows - held,
            "held_back": held,
            "not_covered": not_covered,
            "failing": held - not_covered,
        }
        manifest = self._manifest(opened, encoding, entries, signatures, matched, verdict, counts)
        self._swap(opened, manifest, verdict)
        return self._applied(opened, manifest)

    def _refuse_other_kinds(self, encoding: Encoding) -> None:
        """A column must hold the same kind of values as before: what is compared must be comparable."""
        for column, before in zip(encoding.codebook.columns, self.kept.columns, strict=True):
            if column.kind != before.kind:
                raise UnsupportedTypeError(
                    f"the column is {column.kind}, the recoding was made from {before.kind}",
                    where=f"columns.quasi_identifiers.{column.name}",
                    fix="cast it to the type that it had",
                )

    def _write(self, opened: Opened, encoding: Encoding, entries: "DataFrame", *, count: int) -> None:
        from pyspark.sql import functions as F

        rows = encoding.with_identity(opened.source)
        published = recode(rows, entries, encoding.codebook, columns=opened.columns, entry_count=count, star=False)
        published = pseudonymize(published, pseudonym_specs(self.config), run_id=self.ctx.run_id)
        opened.publisher.write(spread(published, qis=opened.tuple_columns))
        if self.request.keep_held_back:
            gone = entries.where(F.col("class_id") < 0).select(F.col("h").alias(ROW_HASH))
            rows.join(gone, ROW_HASH, "left_semi").drop(ROW_HASH).write.parquet(opened.work.path(HELD_BACK))

    def _verify(self, opened: Opened, encoding: Encoding, entries: "DataFrame", signatures: Signatures) -> "Verdict":
        from kanon_spark.verify.mapping import mapping_check

        with self.ctx.stage("verify"):
            staged = opened.publisher.read_staged(opened.schema)
            verdict = check_staged(
                self.ctx, self.loaded, opened, encoding, entries, staged=staged, star=False, rows=signatures.rows
            )
            known = saved_tuples(self.recoding.entries, self.kept)
            mapping = mapping_check(staged, known, qi=opened.tuple_columns)
            verdict = replace(verdict, checks=(*verdict.checks, mapping))
            if not verdict.passed and self._source_changed(opened, signatures):
                raise SourceChangedError(
                    "the table changed while it was being read; nothing was published",
                    where="table",
                    fix="apply the recoding again when it is at rest",
                )
            verdict.require()
        return verdict

    def _source_changed(self, opened: Opened, signatures: Signatures) -> bool:
        if signatures.encoding.source_hash(opened.source, opened.roles.kept) != signatures.source_hash:
            return True
        return look_at_ids(opened.source, list(opened.ids)) != opened.ids

    def _manifest(
        self,
        opened: Opened,
        encoding: Encoding,
        entries: "DataFrame",
        signatures: Signatures,
        matched: Matched,
        verdict: "Verdict",
        counts: Mapping[str, int],
    ) -> dict[str, Any]:
        from kanon_spark.measure.metrics import measure

        config, publisher = self.config, opened.publisher
        unit = config.privacy.unit
        with self.ctx.stage("measure"):
            metrics = measure(
                entries, encoding.codebook, count=signatures.count, facts=verdict.facts, k=config.privacy.k
            )
            left_out = None if unit is None else persons_left_out(opened.source, encoding, entries, unit)
        return {
            "run_id": self.ctx.run_id,
            "name": config.name,
            "outcome": "published" if config.sink is not None else "released",
            "started": self.started.isoformat(),
            "recoding": {"run_id": self.kept.run_id, "path": self.recoding.path, "method": self.kept.method},
            "method": self.kept.method,
            "source": dict(opened.source_facts),
            "sink": dict(publisher.description()),
            "columns": {
                "qi": list(opened.roles.quasi_identifiers),
                "added": list(encoding.codebook.numbers.values()),
                "sensitive": list(config.columns.sensitive),
                "kept": list(opened.roles.kept),
                "dropped": list(opened.roles.dropped),
            },
            "rows": dict(counts),
            "persons": signatures.persons,
            "persons_held_back": counts["held_back"] if left_out is None else left_out,
            "signatures": {
                "all": signatures.count,
                "known": matched.known,
                "covered": matched.covered,
                "not_covered": matched.open,
            },
            "held_back": opened.work.path(HELD_BACK) if self.request.keep_held_back else None,
            "classes": verdict.facts.classes,
            "privacy": {
                "k": {"asked": config.privacy.k, "achieved": verdict.facts.achieved},
                "unit": unit,
                **{model.name: model_facts(model) for model in verdict.models},
            },
            "metrics": {
                "gcp": metrics["gcp"],
                "dm": metrics["dm"],
                "cavg": metrics["cavg"],
                "per_qi": {name: {"ncp": each["ncp"]} for name, each in metrics["per_qi"].items()},
            },
            "checks": [{"name": c.name, "passed": c.passed, "detail": c.detail} for c in verdict.checks],
            "content_hash": verdict.content_hash,
            "versions": versions(self.ctx),
            "warnings": [
                COMPARED,
                *previous_release_warnings(publisher, verdict.content_hash),
                *pseudonym_warnings(config),
            ],
        }

    def _swap(self, opened: Opened, manifest: dict[str, Any], verdict: "Verdict") -> None:
        ctx, publisher = self.ctx, opened.publisher
        if opened.lock is not None:
            opened.lock.assert_held()
        facts = {
            "k": self.config.privacy.k,
            "rows": verdict.rows,
            "method": self.kept.method,
            "recoding": self.kept.run_id,
            "content_hash": verdict.content_hash,
        }
        try:
            with ctx.stage("publish"):
                publisher.swap(facts)
        except BaseException:
            publisher.undo()
            raise
        publisher.finish()
        manifest["seconds"] = {"total": time.perf_counter() - self.clock, "stages": dict(ctx.seconds)}
        manifest["finished"] = datetime.now(UTC).isoformat()

    def _applied(self, opened: Opened, manifest: dict[str, Any]) -> Applied:
        publisher, schema, qi = opened.publisher, opened.schema, opened.tuple_columns
        kept, ctx = self.kept, self.ctx

        def verify_again() -> "Verdict":
            with kept.unpacked() as loaded:
                return verify_published(ctx, loaded, publisher.read_published(schema), qi=qi)

        held = None
        if self.request.keep_held_back:
            held = ctx.spark.read.schema(opened.source.schema).parquet(opened.work.path(HELD_BACK))
        return Applied(publisher.read_published(schema), manifest, verify_again, held)
