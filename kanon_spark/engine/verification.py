"""`kanon verify --config`: a published release against its source, long after the run, with the recoding at hand."""

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from kanon_spark.config.loader import LoadedConfig
from kanon_spark.config.preflight import check_schema
from kanon_spark.config.roles import assign_roles
from kanon_spark.engine.evidence import make_evidence
from kanon_spark.engine.pseudonyms import pseudonym_facts
from kanon_spark.engine.refuse import refuse_errors
from kanon_spark.engine.stages import RunContext
from kanon_spark.errors import MissingInputError, RequestError
from kanon_spark.io.sinks import published_run_id, target_of
from kanon_spark.io.sources import open_source
from kanon_spark.releases.workdir import WorkDir, entry_name, work_dir_path
from kanon_spark.verify.standalone import verify_against_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kanon_spark.io.files import FileStore
    from kanon_spark.verify.facts import Verdict

_FACTS = "_recoding.json"  # Spark does not read files that begin with an underscore


def save_recoding_facts(store: "FileStore", path: str, *, seed: int, run_id: str) -> None:
    """Keep beside the entries what is needed to read them again."""
    store.write_text(f"{path}/{_FACTS}", json.dumps({"version": 1, "run_id": run_id, "seed": seed}), private=True)


def verify_with_config(loaded: LoadedConfig, *, table: "DataFrame", spark: "SparkSession") -> "Verdict":
    """Re-read the source and check that the table is the source, recoded, and that every cell of it is true.

    Raises:
        MissingInputError: The recoding of the published release is not in the work directory any more.
    """
    from pyspark.sql import functions as F

    from kanon_spark.signatures.encoding import prepare_encoding

    config = loaded.config
    if config.source is None or config.sink is None:
        raise RequestError(
            "the configuration must name a source and a sink to verify against", where="--config", fix="add them"
        )
    ctx = RunContext(spark)
    with WorkDir.open(spark, config, loaded.base_dir, ctx.run_id) as work:
        path, seed, run_id = _find_recoding(spark, loaded, work.store)
        source = open_source(spark, config.source, base_dir=loaded.base_dir, work=work).table
        refuse_errors(check_schema(source.schema, config))
        kept = assign_roles(config, source.columns).kept
        encoding = prepare_encoding(ctx, source, config, base_dir=loaded.base_dir, folder=work.path("domains"))
        encoding = replace(encoding, seed=seed)
        entries = spark.read.parquet(path)
        if not set(encoding.codebook.numbers) <= set(entries.columns):
            raise RequestError(
                "the release was made without the columns of numbers that the configuration now asks for",
                where="output.numeric",
                fix="verify with the configuration that the release was made with",
            )
        suppressed = entries.where(F.col("class_id") < 0).agg(F.sum("persons")).first()
        held_back = int(suppressed[0] or 0) if suppressed is not None else 0
        star = config.output.suppressed_rows == "star" and held_back >= config.privacy.k
        unit = config.privacy.unit
        return verify_against_source(
            table,
            source=encoding.identities(source, kept=kept),
            k=config.privacy.k,
            evidence=make_evidence(source, encoding, entries, config, base_dir=loaded.base_dir),
            kept=kept,
            suppressed_rows="star" if star else "drop",
            max_suppression=config.privacy.max_suppression,
            pairs=encoding.pairs(source, unit) if unit else None,
            pseudonyms=pseudonym_facts(source, encoding, config, kept=kept, run_id=run_id),
        )


def _find_recoding(spark: "SparkSession", loaded: LoadedConfig, store: "FileStore") -> tuple[str, int, str]:
    """Path and seed of the recoding of the release that stands at the configured target, and the run it is of."""
    config = loaded.config
    target = target_of(spark, config.sink, loaded.base_dir) if config.sink is not None else None
    run_id = published_run_id(spark, target) if target is not None else None
    root = work_dir_path(spark, config, loaded.base_dir)
    if run_id is not None:
        path = f"{root}/{entry_name(run_id, 'recoding')}"
        facts = f"{path}/{_FACTS}"
        if store.exists(facts):
            return path, int(json.loads(store.read_text(facts))["seed"]), run_id
    raise MissingInputError(
        f"there is no recoding of the release at {target}",
        where="execution.work_dir",
        fix=f"verify where {root} is at hand as the run left it, or verify without --config",
    )
