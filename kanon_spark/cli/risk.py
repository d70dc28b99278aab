"""`kanon risk`: how easily someone is found in a table, and in its release."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kanon_spark.cli.guard import guarded
from kanon_spark.cli.options import AsJson, Quiet, ShowValues
from kanon_spark.cli.output import emit, out_console
from kanon_spark.cli.verify import column_names, open_table
from kanon_spark.errors import GuaranteeError, RequestError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kanon_spark.config.loader import LoadedConfig
    from kanon_spark.risk.facts import RiskReport

_COMMAS = "with commas between; may be given several times."


@dataclass(frozen=True)
class Question:
    """What to look at, put together from the options and the configuration."""

    qi: tuple[str, ...]
    attack_qi: tuple[str, ...]
    sensitive: tuple[str, ...]
    unit: str | None
    k: int | None


@guarded
def risk(
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="TABLE", help="A path, or the name of a catalog table; the source of --config by default."
        ),
    ] = None,
    qi: Annotated[
        list[str] | None, typer.Option("--qi", metavar="a,b", help=f"The quasi-identifiers, {_COMMAS}")
    ] = None,
    unit: Annotated[str | None, typer.Option("--unit", help="Column of the person; counts rows without it.")] = None,
    thresholds: Annotated[
        list[float] | None,
        typer.Option(
            "--threshold", help="Count records with a higher risk; may be given several times. [0.05 and 0.2]"
        ),
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option("--sensitive", metavar="a,b", help=f"Columns that an attacker wants to learn, {_COMMAS}"),
    ] = None,
    release: Annotated[
        str | None, typer.Option("--release", metavar="TABLE", help="What was published of the table.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", help="The configuration: source, columns, hierarchies, and the release at its sink."),
    ] = None,
    population: Annotated[
        str | None,
        typer.Option("--population", metavar="TABLE", help="Everyone, with the same columns; for journalist risk."),
    ] = None,
    attack_qis: Annotated[
        list[str] | None,
        typer.Option("--attack-qis", metavar="a,b", help="What the attacker knows; all quasi-identifiers by default."),
    ] = None,
    targets: Annotated[int, typer.Option("--targets", help="Rows of the original that the attacker holds.")] = 1_000,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the draw of these rows.")] = 0,
    k: Annotated[
        int | None, typer.Option("--k", min=1, help="What the release promises; by default what it holds.")
    ] = None,
    max_risk: Annotated[
        float | None, typer.Option("--max-risk", min=0, max=1, help="End with 4 if any record's risk is higher.")
    ] = None,
    format: Annotated[
        str | None, typer.Option("--format", help="Of TABLE: parquet, orc, csv or json; by the ending otherwise.")
    ] = None,
    options: Annotated[
        list[str] | None, typer.Option("--option", metavar="name=value", help="A reader option, such as header=true.")
    ] = None,
    show_values: ShowValues = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Measure how easily someone is found in TABLE, and attack its release."""
    from kanon_spark.config.loader import load_config

    loaded = load_config(config, keys_optional=True) if config is not None else None
    asked = Question(column_names(qi or ()), column_names(attack_qis or ()), column_names(sensitive or ()), unit, k)
    question = _question(asked, loaded, table)

    from kanon_spark.config.places import needs_warehouse
    from kanon_spark.engine.session import get_spark

    spark = get_spark(warehouse=needs_warehouse(loaded.config if loaded is not None else None, table, release))
    original = _original(spark, table, loaded, format=format, options=options or ())
    published, missing = _published(spark, release, loaded)
    people = open_table(spark, population, format=None, options=()) if population is not None else None

    from kanon_spark.risk import assess, models_by_config, readings_by_config
    from kanon_spark.risk.sizes import THRESHOLDS

    types = {field.name: field.dataType for field in original.schema.fields}
    known = question.attack_qi or question.qi
    report = assess(
        original,
        published,
        qi=question.qi,
        unit=question.unit,
        sensitive=question.sensitive,
        added=_added(original, published, loaded),
        population=people,
        thresholds=tuple(thresholds or THRESHOLDS),
        k=question.k if published is not None else None,
        attack_qi=question.attack_qi or None,
        targets=targets,
        seed=seed,
        readings=readings_by_config(types, loaded) if loaded is not None and published is not None else None,
        models=models_by_config(loaded, known=known) if loaded is not None else None,
        show_values=show_values,
    )
    report = replace(report, notes=(*missing, *report.notes))
    code = GuaranteeError.exit_code if max_risk is not None and report.highest > max_risk else 0
    _show(report, code=code, max_risk=max_risk, as_json=as_json, quiet=quiet)
    raise typer.Exit(code)


def _question(asked: Question, loaded: "LoadedConfig | None", table: str | None) -> Question:
    """Fill what was not said from the configuration."""
    if loaded is not None:
        config = loaded.config
        asked = replace(
            asked,
            qi=asked.qi or tuple(config.columns.quasi_identifiers),
            sensitive=asked.sensitive or tuple(config.columns.sensitive),
            unit=asked.unit or config.privacy.unit,
            k=asked.k or config.privacy.k,
        )
    if table is None and (loaded is None or loaded.config.source is None):
        fix = "name a path or a catalog table, or a --config with a source"
        raise RequestError("no table is named", where="risk", fix=fix)
    if not asked.qi:
        raise RequestError("--qi must be given", where="risk", fix="or name a --config that says it")
    return asked


def _original(
    spark: "SparkSession",
    table: str | None,
    loaded: "LoadedConfig | None",
    *,
    format: str | None,
    options: Sequence[str],
) -> "DataFrame":
    if table is not None:
        return open_table(spark, table, format=format, options=options)
    from kanon_spark.io.sources import open_source

    if loaded is None or loaded.config.source is None:
        raise RequestError("no table is named", where="risk", fix="name a path or a catalog table")
    # A snapshot is for runs: a look does not copy the table.
    source = loaded.config.source.model_copy(update={"snapshot": "none"})
    return open_source(spark, source, base_dir=loaded.base_dir, partition=loaded.config.schedule.partition).table


def _published(
    spark: "SparkSession", release: str | None, loaded: "LoadedConfig | None"
) -> "tuple[DataFrame | None, tuple[str, ...]]":
    """The release, and what to say where none stands."""
    if release is not None:
        return open_table(spark, release, format=None, options=()), ()
    if loaded is None or loaded.config.sink is None:
        return None, ()
    from kanon_spark.io.released import open_published
    from kanon_spark.io.sinks import standing_run_id, target_of

    sink = loaded.config.sink
    if standing_run_id(spark, sink, loaded.base_dir) is None:
        target = target_of(spark, sink, loaded.base_dir)
        return None, (f"no release stands at {target} yet: only the source was looked at",)
    return open_published(spark, sink, base_dir=loaded.base_dir), ()


def _added(original: "DataFrame", published: "DataFrame | None", loaded: "LoadedConfig | None") -> tuple[str, ...]:
    """Number columns that the configuration put beside quasi-identifiers: they tell rows apart too."""
    if loaded is None or published is None:
        return ()
    from kanon_spark.signatures.columns import kind_of
    from kanon_spark.signatures.forms import forms_of

    named = loaded.config.columns.quasi_identifiers
    kinds = {
        field.name: kind_of(field.dataType, qi=field.name) for field in original.schema.fields if field.name in named
    }
    added = [name for qi, form in forms_of(loaded.config, kinds).items() for name in form.added(qi)]
    return tuple(name for name in added if name in published.columns)


def _show(report: "RiskReport", *, code: int, max_risk: float | None, as_json: bool, quiet: bool) -> None:
    if as_json:
        outcome = "failed" if code else "passed"
        emit({"event": "outcome", "outcome": outcome, "exit_code": code, **report.to_json()})
        return
    if quiet and not code:
        return
    from kanon_spark.report.facts import percent
    from kanon_spark.risk.console import render_risk

    console = out_console()
    render_risk(report, console)
    if max_risk is not None:
        found = f"the highest risk is {percent(report.highest)}, {percent(max_risk)} is allowed"
        console.print()
        console.print(found, markup=False, style="bold red" if code else "green", soft_wrap=True)
