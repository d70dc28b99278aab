"""What applying a recoding gives back: the verified table, and what became of every row."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kanon_spark.verify.facts import Verdict


@dataclass(frozen=True)
class Applied:
    """A release that follows a saved recoding, verified like any other.

    Attributes:
        table: The release, read from where it was published.
        manifest: Everything that is known about it; counts and names, no values.
    """

    table: "DataFrame"
    manifest: dict[str, Any]
    _verify: "Callable[[], Verdict]" = field(repr=False)
    _held_back: "DataFrame | None" = field(default=None, repr=False)

    @property
    def counts(self) -> dict[str, int]:
        """Rows: `input`, `released`, `held_back`, and of these `not_covered` and `failing` (under k, or a model)."""
        return dict(self.manifest["rows"])

    @property
    def metrics(self) -> dict[str, Any]:
        """The loss, by what the recoding's own run counted; a row that is held back loses everything."""
        return dict(self.manifest["metrics"])

    @property
    def held_back(self) -> "DataFrame | None":
        """The rows that are not published, as they are: raw data. None unless they were asked to be kept."""
        return self._held_back

    def verify(self) -> "Verdict":
        """Check the published table again, as it stands now."""
        return self._verify()
