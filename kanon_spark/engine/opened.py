"""What a run has in hand before it begins to compute: the work directory, the lock on its target, the open source."""

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kanon_spark.config.roles import Roles
from kanon_spark.engine.encoded import open_rows
from kanon_spark.engine.pseudonyms import checked_ids
from kanon_spark.engine.unpublished import UnpublishedRelease
from kanon_spark.recoding.columns import published_schema, with_added
from kanon_spark.signatures.columns import kind_of, type_of
from kanon_spark.signatures.forms import forms_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from kanon_spark.config.loader import LoadedConfig
    from kanon_spark.config.models import SourceSpec
    from kanon_spark.engine.stages import RunContext
    from kanon_spark.io.sinks import Publisher
    from kanon_spark.releases.lock import TargetLock
    from kanon_spark.releases.workdir import WorkDir
    from kanon_spark.signatures.forms import Form
    from kanon_spark.signatures.ids import IdFacts


@dataclass
class Held:
    """A run's part of the work directory, and its target. The lock is there once `hold_target` has taken it."""

    work: "WorkDir"
    publisher: "Publisher | UnpublishedRelease"
    lock: "TargetLock | None" = None

    @property
    def target(self) -> str | None:
        """The target's full name."""
        return None if isinstance(self.publisher, UnpublishedRelease) else self.publisher.target


def hold_work(ctx: "RunContext", loaded: "LoadedConfig", stack: ExitStack) -> Held:
    """Announce the run in the work directory. Whatever happens, nothing raw stays but the recoding of a release."""
    from kanon_spark.io.sinks import publisher_for
    from kanon_spark.releases.workdir import WorkDir

    config, base_dir = loaded.config, loaded.base_dir
    work = WorkDir.open(ctx.spark, config, base_dir, ctx.run_id)

    def forget(kind: object, error: object, trace: object) -> None:
        work.forget(keep=() if error is not None else ("recoding", "release", "state"))

    stack.push(forget)
    if config.sink is None:
        return Held(work, UnpublishedRelease(ctx.spark, work))
    publisher = publisher_for(ctx.spark, config.sink, base_dir=base_dir, run_id=ctx.run_id, work_root=work.root)
    return Held(work, publisher)


def hold_target(
    ctx: "RunContext", loaded: "LoadedConfig", held: Held, stack: ExitStack, *, source: "SourceSpec | None"
) -> None:
    """Take the lock on the target, and clear what dead runs left."""
    from kanon_spark.releases.gc import collect_garbage
    from kanon_spark.releases.lock import TargetLock

    publisher = held.publisher
    if not isinstance(publisher, UnpublishedRelease):
        publisher.check(source)
        lease = loaded.config.execution.lease
        lock = TargetLock(publisher.lock_store, publisher.lock_path, run_id=ctx.run_id, lease=lease)
        held.lock = stack.enter_context(lock)
    collect_garbage(ctx.spark, loaded, lock=held.lock)


@dataclass
class Opened:
    """What stands ready once the source is open and the target locked."""

    source: "DataFrame"
    source_facts: dict[str, object]
    roles: Roles
    publisher: "Publisher | UnpublishedRelease"
    work: "WorkDir"
    lock: "TargetLock | None"
    ids: "dict[str, IdFacts]"  # of the identifiers that become pseudonyms
    forms: "dict[str, Form]"  # of the quasi-identifiers

    @property
    def target(self) -> str | None:
        """The target's full name; None where nothing is published."""
        return None if isinstance(self.publisher, UnpublishedRelease) else self.publisher.target

    @property
    def own_columns(self) -> list[str]:
        """The published columns that the source has, in its order."""
        published = {*self.roles.quasi_identifiers, *self.roles.kept, *self.roles.pseudonyms}
        return [name for name in self.source.columns if name in published]

    @property
    def columns(self) -> list[str]:
        """The published columns: the source's, and the numbers beside quasi-identifiers."""
        return with_added(self.own_columns, self.forms)

    @property
    def tuple_columns(self) -> list[str]:
        """The columns by which published rows are told apart: k must hold for all of them together."""
        return with_added(self.roles.quasi_identifiers, self.forms)

    @property
    def schema(self) -> "StructType":
        """The release's schema."""
        texts = {*self.roles.quasi_identifiers, *self.roles.pseudonyms}
        return published_schema(self.source.schema, self.own_columns, self.forms, texts=texts)


def open_table(ctx: "RunContext", loaded: "LoadedConfig", table: "DataFrame | None", held: Held) -> Opened:
    """Open the source, unless a table is given, and look at its columns."""
    rows = open_rows(ctx, loaded, table, work=held.work)
    kinds = {name: kind_of(type_of(rows.table, name), qi=name) for name in rows.roles.quasi_identifiers}
    forms = forms_of(loaded.config, kinds)
    opened = Opened(rows.table, rows.facts, rows.roles, held.publisher, held.work, held.lock, ids={}, forms=forms)
    held.publisher.check_schema(opened.schema)
    opened.ids = checked_ids(rows.table, loaded.config)
    return opened
