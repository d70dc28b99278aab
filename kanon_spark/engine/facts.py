"""The manifest: everything a run knows about itself when it ends."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from kanon_spark import __version__
from kanon_spark.config.loader import LoadedConfig
from kanon_spark.config.roles import Roles
from kanon_spark.engine.pseudonyms import pseudonym_columns
from kanon_spark.engine.solving import Solved
from kanon_spark.engine.stages import RunContext
from kanon_spark.errors import KanonError
from kanon_spark.recoding.texts import published_texts
from kanon_spark.signatures.codebook import Codebook
from kanon_spark.signatures.columns import quoted
from kanon_spark.signatures.encoding import ROW_HASH

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kanon_spark.engine.unpublished import UnpublishedRelease
    from kanon_spark.io.sinks import Publisher
    from kanon_spark.signatures.aggregate import Signatures
    from kanon_spark.signatures.encoding import Encoding
    from kanon_spark.verify.asked import Found
    from kanon_spark.verify.facts import Verdict

SAMPLES = 8
_LOOKED_AT = 400  # rows from which the samples are picked


@dataclass(frozen=True)
class Totals:
    """Rows, persons and signatures of a source, and its fingerprint, where no `Signatures` tell them."""

    rows: int
    persons: int
    count: int
    source_hash: str


def make_manifest(
    ctx: RunContext,
    loaded: LoadedConfig,
    *,
    started: datetime,
    source: Mapping[str, object],
    sink: Mapping[str, object],
    roles: Roles,
    signatures: "Signatures | Totals",
    solved: Solved,
    verdict: "Verdict",
    suppressed: Mapping[str, int],
    metrics: Mapping[str, Any],
    samples: Mapping[str, Any],
    risk: Mapping[str, Any] | None = None,
    persons_suppressed: int | None = None,
) -> dict[str, Any]:
    """All facts of a successful run; `seconds` and `finished` are added at its end."""
    config = loaded.config
    report = config.report
    return {
        "run_id": ctx.run_id,
        "name": config.name,
        "outcome": "published" if config.sink is not None else "released",
        "started": started.isoformat(),
        "config_sha256": loaded.sha256,
        "method": config.resolved_method,
        "effort": config.method.effort,
        "source": dict(source),
        "sink": dict(sink),
        "files": {
            "release": sink.get("path") or sink.get("table"),
            "manifest": loaded.resolve(report.manifest) if report.manifest else None,
            "report": loaded.resolve(report.html) if report.html else None,
        },
        "columns": {
            "qi": list(roles.quasi_identifiers),
            "sensitive": list(config.columns.sensitive),
            "kept": list(roles.kept),
            "pseudonyms": pseudonym_columns(config),
            "dropped": list(roles.dropped),
        },
        "rows": {
            "input": signatures.rows,
            "released": signatures.rows - suppressed["rows"],
            "suppressed": suppressed["rows"],
            "published": verdict.rows,
        },
        "persons": signatures.persons,
        "persons_suppressed": suppressed["rows"] if persons_suppressed is None else persons_suppressed,
        "signatures": signatures.count,
        "blocks": solved.blocks,
        "cuts": solved.cuts,
        "classes": verdict.facts.classes,
        "class_sizes": {
            "smallest": verdict.facts.smallest,
            "largest": verdict.facts.largest,
            "histogram": dict(verdict.facts.histogram),
        },
        "privacy": {
            "k": {"asked": config.privacy.k, "achieved": verdict.facts.achieved},
            "unit": config.privacy.unit,
            "max_suppression": config.privacy.max_suppression,
            **{model.name: model_facts(model) for model in verdict.models},
        },
        "metrics": dict(metrics),
        "stitch": solved.stitch,
        "trace": [dict(step) for step in solved.trace],
        "tree": None if solved.tree is None else dict(solved.tree.facts),
        "checks": [{"name": c.name, "passed": c.passed, "detail": c.detail} for c in verdict.checks],
        "content_hash": verdict.content_hash,
        "source_hash": signatures.source_hash,
        "versions": versions(ctx),
        "risk": risk,
        "samples": dict(samples),
    }


def persons_left_out(source: "DataFrame", encoding: "Encoding", entries: "DataFrame", unit: str) -> int:
    """Persons all of whose rows are suppressed."""
    from pyspark.sql import functions as F

    gone = entries.where(F.col("class_id") < 0).select("h", F.lit(True).alias("gone"))
    pairs = encoding.pairs(source, unit).join(gone, "h", "left").withColumn("kept", F.col("gone").isNull())
    known = pairs.where(F.col("unit").isNotNull()).groupBy("unit").agg(F.max("kept").alias("kept"))
    # One row each. A row without a person is a person of its own.
    nobody = pairs.where(F.col("unit").isNull() & ~F.col("kept")).agg(F.coalesce(F.sum("rows"), F.lit(0))).first()
    return known.where(~F.col("kept")).count() + (int(nobody[0]) if nobody is not None else 0)


def model_facts(found: "Found") -> dict[str, Any]:
    """One privacy model beyond k: what was asked, in the form of a configuration and in words, and the worst class."""
    return {
        "model": found.model,
        "column": found.column,
        "asked": found.form,
        "words": found.asked,
        "achieved": found.worst,
        "passed": found.check.passed,
    }


def failed_manifest(ctx: RunContext, loaded: LoadedConfig, error: KanonError) -> dict[str, Any]:
    """What is known of a run that published nothing."""
    return {
        "run_id": ctx.run_id,
        "name": loaded.config.name,
        "outcome": "failed",
        "finished": datetime.now(UTC).isoformat(),
        "config_sha256": loaded.sha256,
        "method": loaded.config.resolved_method,
        "error": {"code": error.code, "exit_code": error.exit_code, "where": error.where, "message": error.message},
        "stage": ctx.current,
        "seconds": {"total": sum(ctx.seconds.values()), "stages": dict(ctx.seconds)},
        "versions": versions(ctx),
    }


def previous_release_warnings(publisher: "Publisher | UnpublishedRelease", content_hash: str) -> list[str]:
    """What there is to say when a release of other data already stands at the target."""
    previous = publisher.published()
    if previous is None or previous.get("content_hash") == content_hash:
        return []
    stays = publisher.earlier_stays()
    kept = f" It stays readable as {stays}." if stays is not None else ""
    return [
        f"Another release stood at the target and is replaced.{kept} Whoever kept it can compare both: each is "
        "k-anonymous, the pair need not be. `schedule.repeat: incremental` is meant for tables that grow."
    ]


def versions(ctx: RunContext) -> dict[str, str]:
    """Versions of everything that could change a result."""
    found = {"kanon_spark": __version__, "python": platform.python_version(), "spark": ctx.spark.version}
    for name in ("numpy", "pandas", "pyarrow", "numba"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "?"
    return found


def sample_rows(
    source: "DataFrame", encoding: "Encoding", entries: "DataFrame", *, columns: Sequence[str]
) -> dict[str, list[dict[str, Any]]]:
    """A few rows before and after, side by side. Raw values: for the manifest and the internal report only."""
    from pyspark.sql import functions as F

    rows = encoding.with_identity(source).limit(_LOOKED_AT)
    shown = [F.col(quoted(name)).cast("string").alias(f"c{i}") for i, name in enumerate(columns)]
    looked = rows.select(F.col(ROW_HASH).alias("h"), *shown).toPandas().drop_duplicates("h")
    step = max(1, len(looked) // SAMPLES)
    picked = looked.iloc[::step].head(SAMPLES)
    # Literals here are hashes, not values; at most SAMPLES of them.
    published = entries.where(F.col("h").isin([int(h) for h in picked["h"]])).toPandas().set_index("h")
    labels = published_texts(published, encoding.codebook).to_dict("index")
    before, after = [], []
    for _, row in picked.iterrows():
        raw = {name: _plain(row[f"c{i}"]) for i, name in enumerate(columns)}
        if row["h"] not in published.index:
            continue
        before.append(raw)
        after.append(_after(raw, published.loc[row["h"]], labels[row["h"]], encoding.codebook))
    return {"before": before, "after": after}


def _after(
    raw: Mapping[str, str | None], entry: "pd.Series[Any]", labels: Mapping[Any, Any], codebook: Codebook
) -> dict[str, str | None]:
    """A raw row as it is published, the numbers beside a quasi-identifier behind it."""
    added = {column.name: column.form.added(column.name) for column in codebook.columns}
    own = {added: _plain(entry[name]) if entry["class_id"] >= 0 else None for name, added in codebook.numbers.items()}
    shown: dict[str, str | None] = {}
    for name, value in raw.items():
        shown[name] = labels.get(name, value)
        shown |= {each: own[each] for each in added.get(name, ())}
    return shown


def _plain(value: Any) -> str | None:
    return None if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)) else str(value)
