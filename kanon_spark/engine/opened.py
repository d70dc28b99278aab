"""What a run has in hand before it begins to compute."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kanon_spark.config.roles import Roles
from kanon_spark.recoding.columns import with_added

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kanon_spark.engine.unpublished import UnpublishedRelease
    from kanon_spark.io.sinks import Publisher
    from kanon_spark.releases.lock import TargetLock
    from kanon_spark.releases.workdir import WorkDir
    from kanon_spark.signatures.forms import Form
    from kanon_spark.signatures.ids import IdFacts


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
