"""What a scheduled run does beside anonymizing: the look for a run of the same key, its time budget, its ledger row."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kanon_spark.engine.forecast import expected_seconds, planned_blocks
from kanon_spark.engine.release import Recoding, Release
from kanon_spark.engine.session import cores
from kanon_spark.engine.verification import verify_published
from kanon_spark.errors import KanonError
from kanon_spark.io.files import store_for
from kanon_spark.io.paths import join
from kanon_spark.io.released import open_published
from kanon_spark.logs import logger
from kanon_spark.releases.ledger import REPEATED, Ledger, LedgerRow, announce
from kanon_spark.releases.manifest import read_manifest
from kanon_spark.releases.workdir import entry_name

if TYPE_CHECKING:
    from kanon_spark.config.loader import LoadedConfig
    from kanon_spark.engine.opened import Held
    from kanon_spark.engine.stages import RunContext
    from kanon_spark.releases.workdir import WorkDir
    from kanon_spark.signatures.aggregate import Signatures


class Scheduled:
    """The schedule of one run. Without keys under `schedule` it does next to nothing."""

    def __init__(self, ctx: "RunContext", loaded: "LoadedConfig") -> None:
        self._ctx = ctx
        self._loaded = loaded
        self._spec = loaded.config.schedule
        self._ledger: Ledger | None = None
        self._row: LedgerRow | None = None
        self._work: WorkDir | None = None
        self.predicted: float | None = None

    def begin(self, work: "WorkDir", target: str | None) -> None:
        """Announce the run, so that it is entered even if it dies."""
        if self._spec.ledger is None:
            return
        self._work = work
        self._ledger = Ledger.of(
            self._ctx.spark, self._spec.ledger, base_dir=self._loaded.base_dir, lock_root=work.root
        )
        self._ledger.check()
        self._row = LedgerRow.begun(self._loaded, run_id=self._ctx.run_id, target=target)
        announce(self._ledger, self._row, work)

    def repeated(self, held: "Held") -> Release | None:
        """The release that a run of the same key and configuration has published; None if none has."""
        key, target = self._spec.run_key, held.target
        if key is None or target is None:
            return None
        facts = held.publisher.published()
        if facts is not None and (facts.get("run_key"), facts.get("config_sha256")) == (key, self._loaded.sha256):
            return self._standing(str(facts["run_id"]), held.work.root)
        if self._ledger is None:
            return None
        row = self._ledger.published(run_key=key, config_sha256=self._loaded.sha256, target=target)
        return None if row is None else self._standing(row.run_id, held.work.root)

    def expect(self, signatures: "Signatures") -> None:
        """Tell what is coming, before the dear part begins."""
        config, execution = self._loaded.config, self._loaded.config.execution
        blocks = planned_blocks(signatures.count, block_size=execution.block_size, local_limit=execution.local_limit)
        method = config.resolved_method
        pace = self._ledger.pace(config.name, method) if self._ledger is not None else None
        self.predicted = (
            pace * signatures.rows
            if pace is not None
            else expected_seconds(
                method=method,
                effort=config.method.effort,
                rows=signatures.rows,
                signatures=signatures.count,
                blocks=blocks,
                cores=cores(self._ctx.spark),
            )
        )
        self._ctx.note(
            f"{signatures.rows:,} rows, {signatures.count:,} signatures, {blocks:,} block{'s' if blocks > 1 else ''}: "
            f"about {max(1, round(self.predicted)):,} s in all"
        )

    @property
    def facts(self) -> dict[str, object]:
        """What a release must carry so that a repeated run recognizes it."""
        key = self._spec.run_key
        return {} if key is None else {"run_key": key, "config_sha256": self._loaded.sha256}

    def publishing(self, manifest: Mapping[str, Any]) -> None:
        """From here on the release may stand: should this run die, it is entered as published if it does."""
        self._ctx.deadline.disarm()
        if self._ledger is not None and self._row is not None and self._work is not None:
            announce(self._ledger, self._row.ended(manifest), self._work)

    def enter(self, manifest: Mapping[str, Any]) -> None:
        """Write the ledger's row of this run."""
        if self._ledger is not None and self._row is not None:
            self._ledger.enter(self._row.ended(manifest))

    def enter_failure(self, manifest: Mapping[str, Any]) -> None:
        """The same for a run that published nothing: why is told already, so a ledger that fails too only warns."""
        try:
            self.enter(manifest)
        except KanonError as error:
            logger.warning("[%s] %s", self._ctx.run_id, error.message)

    def _standing(self, run_id: str, root: str) -> Release:
        ctx, loaded = self._ctx, self._loaded
        manifest = self._manifest_of(run_id) or {"run_id": run_id, "name": loaded.config.name, "metrics": {}}
        manifest |= {"outcome": REPEATED, "repeated_by": ctx.run_id, "run_key": self._spec.run_key}
        ctx.note(f"run {run_id} has published this key already: nothing to do")
        self.enter({"outcome": REPEATED, "seconds": {"total": sum(ctx.seconds.values())}})
        assert loaded.config.sink is not None  # or there would be no target
        table = open_published(ctx.spark, loaded.config.sink, base_dir=loaded.base_dir)
        path = join(root, entry_name(run_id, "recoding"))
        recoding = Recoding(ctx.spark.read.parquet(path), path) if store_for(ctx.spark, path).exists(path) else None
        qis = list(loaded.config.columns.quasi_identifiers)
        return Release(table, recoding, manifest, lambda: verify_published(ctx, loaded, table, qi=qis))

    def _manifest_of(self, run_id: str) -> dict[str, Any] | None:
        named = self._loaded.config.report.manifest
        if named is None:
            return None
        try:
            found = read_manifest(self._loaded.resolve(named), spark=self._ctx.spark)
        except KanonError:
            return None  # it is a copy for people; the release itself says what counts
        return found if found["run_id"] == run_id else None
