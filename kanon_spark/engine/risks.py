"""How easily someone is found, before and after: what a run tells of it in manifest and report (`report.risk`).

What follows from the sizes of classes costs one small look at the signatures, whose counts are the classes of the
source; those of the release are known from its verification. An attack that is carried out takes several passes over
source and release, and is made only on request.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kanon_spark.config.loader import LoadedConfig
from kanon_spark.risk.sizes import Sizes, class_risk

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kanon_spark.engine.opened import Opened
    from kanon_spark.signatures.aggregate import Signatures
    from kanon_spark.verify.facts import Verdict


def release_risk(
    loaded: LoadedConfig, opened: "Opened", signatures: "Signatures", verdict: "Verdict", *, release: "DataFrame"
) -> dict[str, Any] | None:
    """The manifest's part `risk`: None where none is asked for; holds no value of the data.

    Args:
        loaded: The configuration.
        opened: The source.
        signatures: Its signatures.
        verdict: What verification found on the release.
        release: The staged release.
    """
    config = loaded.config
    mode = config.report.risk
    if mode == "none":
        return None
    if mode == "full" and verdict.rows:
        return {"mode": mode, **_attacked(loaded, opened, release)}
    found = {
        "mode": "auto",
        "before": {"sizes": _sizes(_source_sizes(signatures.table))},
        "after": {"sizes": _sizes(verdict.sizes)} if verdict.sizes else None,
        "attack": None,
    }
    notes = []
    if config.privacy.unit is not None:
        notes.append("counted in rows, though a person may have several; report.risk: full counts persons before")
    early = [name for name, spec in config.columns.quasi_identifiers.items() if spec.min_level > 0]
    if early:
        notes.append(f"before: {', '.join(early)} as generalized from the start (min_level)")
    return {**found, "notes": notes}


def _source_sizes(signatures: "DataFrame") -> dict[int, int]:
    """Rows of a signature → how many signatures have so many. Bounded: n rows have at most √(2n) different counts."""
    return {int(row["rows"]): int(row["count"]) for row in signatures.groupBy("rows").count().collect()}


def _sizes(classes: Mapping[int, int]) -> dict[str, Any]:
    rows = sum(size * many for size, many in classes.items())
    unique = classes.get(1, 0)
    return asdict(class_risk(Sizes(rows, "rows", dict(sorted(classes.items())), unique, rows)))


def _attacked(loaded: LoadedConfig, opened: "Opened", release: "DataFrame") -> dict[str, Any]:
    """Everything that `kanon risk` tells, with an attacker who knows all quasi-identifiers."""
    from kanon_spark.risk import assess, models_by_config, readings_by_config

    config = loaded.config
    types = {field.name: field.dataType for field in opened.source.schema.fields}
    report = assess(
        opened.source,
        release,
        qi=opened.roles.quasi_identifiers,
        unit=config.privacy.unit,
        sensitive=list(config.columns.sensitive),
        added=[name for name in opened.tuple_columns if name not in opened.roles.quasi_identifiers],
        k=config.privacy.k,
        seed=config.execution.seed,
        readings=readings_by_config(types, loaded),
        models=models_by_config(loaded, known=opened.roles.quasi_identifiers),
    )
    return report.to_json()
