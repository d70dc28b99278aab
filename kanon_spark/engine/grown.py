"""What a run tells of a release that continues another: its manifest, and the loss over all its rows."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from kanon_spark.engine.facts import Totals, make_manifest
from kanon_spark.engine.growth import Growth
from kanon_spark.engine.solving import Solved
from kanon_spark.io.content import content_hash, hash_sums
from kanon_spark.releases.standing import CONTENT, LOSS, PERSON
from kanon_spark.signatures.fingerprint import fingerprint_text

if TYPE_CHECKING:
    from kanon_spark.verify.facts import Verdict


def grown_manifest(growth: Growth, verdict: "Verdict", solved: Solved | None, *, started: datetime) -> dict[str, Any]:
    """The manifest of a release that continues another. Its loss is over all rows, its bound is not known."""
    manifest = make_manifest(
        growth.ctx,
        growth.loaded,
        started=started,
        source=growth.opened.source_facts,
        sink=growth.opened.publisher.description(),
        roles=growth.opened.roles,
        signatures=_totals(growth),
        solved=Solved(growth.rows, "none") if solved is None else solved,
        verdict=verdict,
        suppressed={"rows": 0, "persons": 0},
        metrics=_metrics(growth, verdict),
        samples={"before": [], "after": []},
    )
    added = [name for name in growth.opened.tuple_columns if name not in growth.opened.roles.quasi_identifiers]
    manifest["columns"]["added"] = added
    manifest["details"] = None
    manifest["rows"] |= growth.row_facts
    manifest["incremental"] = growth.counts
    return manifest


def _totals(growth: Growth) -> Totals:
    """The whole source, arrivals or not."""
    from pyspark.sql import functions as F

    rows = growth.ctx.spark.read.parquet(growth.work.path("growth_rows"))
    persons = F.count(F.lit(1)) if growth.unit is None else F.count_distinct(PERSON)
    # One row.
    row = rows.agg(F.count(F.lit(1)), persons).collect()[0]
    content = content_hash(rows, [CONTENT])
    high, low = rows.select(content.alias("g")).agg(*hash_sums(F.col("g"))).collect()[0]
    return Totals(int(row[0]), int(row[1]), 0, fingerprint_text(int(high or 0), int(low or 0)))


def _metrics(growth: Growth, verdict: "Verdict") -> dict[str, Any]:
    """Loss over all published rows. What the best possible release would lose is not known."""
    from pyspark.sql import functions as F

    row = growth.rows.agg(F.avg(LOSS), F.count(F.lit(1))).first()
    assert row is not None
    facts = verdict.facts
    k = growth.loaded.config.privacy.k
    return {
        "gcp": float(f"{row[0] or 0.0:.12g}"),
        "gcp_bound": None,
        "gcp_gap": None,
        "bound_kind": "none",
        "dm": facts.sum_squares,
        "cavg": row[1] / (facts.classes * k) if facts.classes else None,
        "total_il": None,
        "per_qi": {},
    }
