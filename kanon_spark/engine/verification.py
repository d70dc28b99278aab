"""A release against its source: before it is published, and long after by the recoding (`kanon verify --config`)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from kanon_spark.config.loader import LoadedConfig
from kanon_spark.config.preflight import check_schema
from kanon_spark.config.privacy_specs import PersonalKSpec
from kanon_spark.config.roles import assign_roles
from kanon_spark.engine.evidence import carriers_of, make_evidence
from kanon_spark.engine.population import asked_of
from kanon_spark.engine.pseudonyms import pseudonym_facts
from kanon_spark.engine.refuse import refuse_errors
from kanon_spark.engine.stages import RunContext, new_run_id
from kanon_spark.errors import MissingInputError, RequestError
from kanon_spark.io.files import store_for
from kanon_spark.io.sinks import standing_run_id, target_of
from kanon_spark.io.sources import open_source
from kanon_spark.releases.workdir import WorkDir, entry_name, work_dir_path
from kanon_spark.signatures.columns import quoted
from kanon_spark.signatures.encoding import ROW_HASH
from kanon_spark.verify.asked import Asked, Found, published_names
from kanon_spark.verify.groups import tuple_columns
from kanon_spark.verify.models import check_columns, find_models
from kanon_spark.verify.population import fitting_population, judges_by_form
from kanon_spark.verify.published import with_published
from kanon_spark.verify.released_models import released_models
from kanon_spark.verify.standalone import verify_against_source
from kanon_spark.verify.table import verify_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kanon_spark.config.models import Config
    from kanon_spark.engine.opened import Opened
    from kanon_spark.io.files import FileStore
    from kanon_spark.signatures.encoding import Encoding
    from kanon_spark.verify.facts import Check, Evidence, Verdict

_FACTS = "_recoding.json"  # Spark does not read files that begin with an underscore
_PERSON, _HASH = "_kanon_person", "_kanon_entry"


@dataclass(frozen=True)
class Further:
    """What is asked of a release beyond its configuration, of the persons that the configuration names.

    Attributes:
        qi: Other columns to group its rows by; none: those of the configuration.
        k: Least size of a class, or of such a group; None: the configuration's.
        asked: Privacy models.
    """

    qi: tuple[str, ...] = ()
    k: int | None = None
    asked: Asked = field(default_factory=Asked)


def save_recoding_facts(store: "FileStore", path: str, *, seed: int, run_id: str, star: bool | None = None) -> None:
    """Keep beside the entries what is needed to read them again; `star`: suppressed rows were published as `*`."""
    facts = {"version": 1, "run_id": run_id, "seed": seed, "star": star}
    store.write_text(f"{path}/{_FACTS}", json.dumps(facts), private=True)


def verify_staged(
    ctx: RunContext,
    loaded: LoadedConfig,
    opened: "Opened",
    encoding: "Encoding",
    entries: "DataFrame",
    *,
    staged: "DataFrame",
    star: bool,
    rows: int,
) -> "Verdict":
    """Everything that a run proves on what it has written, before it is published."""
    work = opened.work
    save_recoding_facts(work.store, work.path("recoding"), seed=encoding.seed, run_id=ctx.run_id, star=star)
    return check_staged(ctx, loaded, opened, encoding, entries, staged=staged, star=star, rows=rows)


def check_staged(
    ctx: RunContext,
    loaded: LoadedConfig,
    opened: "Opened",
    encoding: "Encoding",
    entries: "DataFrame",
    *,
    staged: "DataFrame",
    star: bool,
    rows: int,
) -> "Verdict":
    """The same where nothing is kept of it."""
    from kanon_spark.verify.release import verify_release

    config, source = loaded.config, opened.source
    asked = asked_of(ctx.spark, loaded)
    return verify_release(
        staged,
        k=config.privacy.k,
        evidence=make_evidence(source, encoding, entries, config, base_dir=loaded.base_dir),
        kept=opened.roles.kept,
        pairs=encoding.pairs(source, config.privacy.unit) if config.privacy.unit else None,
        suppressed_rows="star" if star else "drop",
        max_suppression=config.privacy.max_suppression,
        input_rows=rows,
        pseudonyms=pseudonym_facts(source, encoding, config, kept=opened.roles.kept, run_id=ctx.run_id),
        asked=asked,
        carriers=carriers_of(source, encoding, config, asked),
    )


def verify_published(ctx: RunContext, loaded: LoadedConfig, table: "DataFrame", *, qi: Sequence[str]) -> "Verdict":
    """What a published table shows by itself: k, and without a unit the models beyond it, by its rows.

    With a unit models speak of persons, whom the table does not name: `kanon verify --config` counts them.
    """
    privacy = loaded.config.privacy
    if privacy.unit is not None:
        return verify_table(table, qi=qi, k=privacy.k)
    asked = replace(asked_of(ctx.spark, loaded), personal_k=None)
    verdict = verify_table(table, qi=qi, k=privacy.k, asked=replace(asked, population=None))
    found = found_in_population(loaded, table, asked)
    checks = (*verdict.checks, *(each.check for each in found))
    return replace(verdict, checks=checks, models=(*verdict.models, *found))


def found_in_population(loaded: LoadedConfig, table: "DataFrame", asked: Asked) -> tuple[Found, ...]:
    """How a release stands to the population that is asked for, if one is; labels as the configuration forms them."""
    population, config = asked.population, loaded.config
    if population is None:
        return ()
    qi = list(config.columns.quasi_identifiers)  # of the numbers beside labels no population knows
    judges = judges_by_form(config, table, population, base_dir=loaded.base_dir)
    unit = config.privacy.unit
    return (fitting_population(table, qi=qi, unit=unit, population=population, base_dir=asked.base_dir, judges=judges),)


def verify_with_config(
    loaded: LoadedConfig, *, table: "DataFrame", spark: "SparkSession", further: Further | None = None
) -> "Verdict":
    """Re-read the source and check that the table is the source, recoded, and that every cell of it is true.

    Args:
        loaded: The configuration that the release was made with.
        table: The release.
        spark: The session.
        further: What to check beyond the configuration: checks of their own, but for a larger k on the same columns.

    Raises:
        MissingInputError: The recoding of the published release is not in the work directory any more.
    """
    from pyspark.sql import functions as F

    from kanon_spark.signatures.encoding import prepare_encoding

    config, further = loaded.config, further or Further()
    if config.source is None or config.sink is None:
        raise RequestError(
            "the configuration must name a source and a sink to verify against", where="--config", fix="add them"
        )
    if config.schedule.repeat == "incremental":
        return _verify_grown(loaded, table=table, spark=spark, further=further)
    ctx = RunContext(spark)
    with WorkDir.open(spark, config, loaded.base_dir, ctx.run_id) as work:
        path, facts = _find_recoding(spark, loaded, work.store)
        run_id = str(facts["run_id"])
        part = config.schedule.partition
        source = open_source(spark, config.source, base_dir=loaded.base_dir, work=work, partition=part).table
        refuse_errors(check_schema(source.schema, config))
        kept = assign_roles(config, source.columns).kept
        encoding = prepare_encoding(ctx, source, config, base_dir=loaded.base_dir, folder=work.path("domains"))
        encoding = replace(encoding, seed=int(facts["seed"]))
        entries = spark.read.parquet(path)
        if not set(encoding.codebook.numbers) <= set(entries.columns):
            raise RequestError(
                "the release was made without the columns of numbers that the configuration now asks for",
                where="output.numeric",
                fix="verify with the configuration that the release was made with",
            )
        star, unit = facts.get("star"), config.privacy.unit
        if star is None:  # a run that did not write it down
            suppressed = entries.where(F.col("class_id") < 0).agg(F.sum("persons")).first()
            held_back = int(suppressed[0] or 0) if suppressed is not None else 0
            star = config.output.suppressed_rows == "star" and held_back >= config.privacy.k
        asked = asked_of(spark, loaded)
        evidence = make_evidence(source, encoding, entries, config, base_dir=loaded.base_dir)
        k = config.privacy.k if further.qi else max(config.privacy.k, further.k or 0)
        verdict = verify_against_source(
            table,
            source=encoding.identities(source, kept=kept),
            k=k,
            evidence=evidence,
            kept=kept,
            suppressed_rows="star" if star else "drop",
            max_suppression=config.privacy.max_suppression,
            pairs=encoding.pairs(source, unit) if unit else None,
            pseudonyms=pseudonym_facts(source, encoding, config, kept=kept, run_id=run_id),
            asked=asked,
            carriers=carriers_of(source, encoding, config, asked),
        )
        if not all(check.passed for check in verdict.checks if check.name == "columns"):
            return verdict  # nothing else can be looked at
        more = _further_checks(further, table, source, encoding, evidence, config, k=k, star=star)
        return replace(verdict, checks=(*verdict.checks, *more))


def _further_checks(
    further: Further,
    table: "DataFrame",
    source: "DataFrame",
    encoding: "Encoding",
    evidence: "Evidence",
    config: "Config",
    *,
    k: int,
    star: bool,
) -> "list[Check]":
    """What is asked beyond the configuration: with a unit of persons, who come from the source by the recoding."""
    checks: list[Check] = []
    published, unit = with_published(evidence), config.privacy.unit
    if further.qi:
        rows = table
        if unit is not None:
            released = published if star else published.where("class_id >= 0")
            rows = _with_persons(table, source, encoding, evidence, released, unit)
        person = None if unit is None else _PERSON
        checks.append(_k_as_asked(rows, qi=further.qi, k=further.k or k, unit=person))
    asked = further.asked
    if asked:
        check_columns(source, evidence.columns, asked)
        wishes = None if asked.personal_k is None else PersonalKSpec(column=asked.personal_k)
        config = config.model_copy(update={"privacy": config.privacy.model_copy(update={"personal_k": wishes})})
        if asked.population is not None:
            asked = replace(asked, population=replace(asked.population, unit=unit))
        carriers = carriers_of(source, encoding, config, asked)
        found = released_models(table, published, evidence=evidence, asked=asked, carriers=carriers, k=k, star=star)
        checks += [each.check for each in found]
    return checks


def _with_persons(
    table: "DataFrame",
    source: "DataFrame",
    encoding: "Encoding",
    evidence: "Evidence",
    released: "DataFrame",
    unit: str,
) -> "DataFrame":
    """The rows of the release with their persons: the source's own, with the tuples that the recoding publishes.

    That these are the rows of the table is what the check `multiset` proves.
    """
    from pyspark.sql import functions as F

    names = evidence.columns
    kept = [name for name in table.columns if name in source.columns and name not in names]
    hidden = zip(tuple_columns(len(names)), names, strict=True)
    tuples = released.select(F.col("h").alias(_HASH), *[F.col(name).alias(own) for name, own in hidden])
    persons = F.col(quoted(unit)).alias(_PERSON)
    rows = encoding.with_identity(source).select(ROW_HASH, persons, *[F.col(quoted(name)) for name in kept])
    return rows.join(tuples, F.col(ROW_HASH) == F.col(_HASH)).drop(ROW_HASH, _HASH)


def _k_as_asked(rows: "DataFrame", *, qi: Sequence[str], k: int, unit: str | None) -> "Check":
    (check, *_) = verify_table(rows, qi=qi, k=k, unit=unit).checks
    return replace(check, name="k as asked")


def _verify_grown(loaded: LoadedConfig, *, table: "DataFrame", spark: "SparkSession", further: Further) -> "Verdict":
    """An incremental release against its record: the source has moved on since, and may have."""
    from kanon_spark.io.sinks import publisher_for
    from kanon_spark.releases.standing import COHORT, PERSON, WISH, find_standing
    from kanon_spark.verify.difference import Record, verify_growth

    config = loaded.config
    root = work_dir_path(spark, config, loaded.base_dir)
    assert config.sink is not None
    publisher = publisher_for(spark, config.sink, base_dir=loaded.base_dir, run_id=new_run_id(), work_root=root)
    facts = publisher.published()
    standing = find_standing(spark, loaded, facts, store=store_for(spark, root), root=root)
    if facts is None or standing is None:
        raise MissingInputError(
            "no release stands at the target",
            where="sink",
            fix="name the configuration of a release that was published",
        )
    asked = asked_of(spark, loaded)
    asked = replace(asked, personal_k=WISH if asked.personal_k is not None else None)
    person = PERSON if config.privacy.unit is not None else None
    names = published_names(config, standing.columns)
    record = Record(standing.rows, COHORT, str(facts["run_id"]), person)
    alone = replace(asked, population=None)
    verdict = verify_growth(table, record, previous=None, qi=names, k=config.privacy.k, asked=alone or None)
    k = config.privacy.k if further.qi else max(config.privacy.k, further.k or 0)
    checks = [each.check for each in found_in_population(loaded, table, asked)]
    if further.qi or k > config.privacy.k:  # of the whole: what each run added need not have more than was promised
        checks.append(_k_as_asked(standing.rows, qi=further.qi or names, k=further.k or k, unit=person))
    own = replace(further.asked, population=None)
    if own:
        checks += [each.check for each in find_models(standing.rows, qi=names, k=k, asked=own, unit=person)]
    checks += [each.check for each in found_in_population(loaded, table, further.asked)]
    return replace(verdict, checks=(*verdict.checks, *checks))


def _find_recoding(spark: "SparkSession", loaded: LoadedConfig, store: "FileStore") -> tuple[str, dict[str, Any]]:
    """Path of the recoding of the release that stands at the configured target, and what is known of it."""
    config = loaded.config
    target = target_of(spark, config.sink, loaded.base_dir) if config.sink is not None else None
    run_id = standing_run_id(spark, config.sink, loaded.base_dir) if config.sink is not None else None
    root = work_dir_path(spark, config, loaded.base_dir)
    if run_id is not None:
        path = f"{root}/{entry_name(run_id, 'recoding')}"
        facts = f"{path}/{_FACTS}"
        if store.exists(facts):
            return path, {**json.loads(store.read_text(facts)), "run_id": run_id}
    raise MissingInputError(
        f"there is no recoding of the release at {target}",
        where="execution.work_dir",
        fix=f"verify where {root} is at hand as the run left it, or verify without --config",
    )
