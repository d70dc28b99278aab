"""What a run gives back: the verified table, how it was made, and how good it is."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kanon_spark.recoding.saved import Recoding

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kanon_spark.verify.facts import Verdict


__all__ = ["Recoding", "Release"]


@dataclass(frozen=True)
class Release:
    """A published, verified release.

    Attributes:
        table: The release, read from where it was published.
        recoding: How it was made; confidential. None where a repeated run found its key published and no recoding.
        manifest: Everything that is known about the run (internal: it holds a few sample rows).
        tree: The spanning tree behind a release of the method `mst`: signatures `a` and `b` (column `h` of the
            recoding), whole-number `weight` and the paper's `distance`; None for other methods. Confidential.
    """

    table: "DataFrame"
    recoding: Recoding | None
    manifest: dict[str, Any]
    _verify: "Callable[[], Verdict]" = field(repr=False)
    tree: "DataFrame | None" = field(default=None, repr=False)
    _details: "Callable[[], dict[str, Any]] | None" = field(default=None, repr=False)

    @property
    def metrics(self) -> dict[str, Any]:
        """Loss, bound, and what else was measured."""
        return dict(self.manifest["metrics"])

    def verify(self) -> "Verdict":
        """Check the published table again, as it stands now."""
        return self._verify()

    def report(self, path: str | Path, *, edition: Literal["internal", "external"] = "internal") -> Path:
        """Write the HTML report to `path`.

        Args:
            path: A local file.
            edition: `internal`, with sample rows, counts and the configuration; `external` may travel with the release.
        """
        from kanon_spark.report.html import render_html

        if self.manifest.get("details") is None and self._details is not None:
            self.manifest["details"] = self._details()
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(render_html(self.manifest, edition=edition), encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        from kanon_spark.report.notebook import render_card

        return render_card(self.manifest)
