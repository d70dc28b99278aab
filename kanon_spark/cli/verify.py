"""`kanon verify`: is a table what it claims to be?"""

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kanon_spark.cli.guard import guarded
from kanon_spark.cli.options import AsJson, Quiet
from kanon_spark.cli.output import emit, out_console
from kanon_spark.errors import GuaranteeError, KanonError, RequestError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kanon_spark.config.loader import LoadedConfig
    from kanon_spark.engine.verification import Further
    from kanon_spark.verify.asked import Asked
    from kanon_spark.verify.facts import Verdict


_MODELS = "Privacy models (each for all sensitive columns, or for one: COLUMN=…)"


@dataclass(frozen=True)
class Question:
    """What to check, put together from the options, the manifest and the configuration."""

    qi: tuple[str, ...] = ()
    k: int | None = None
    unit: str | None = None


@guarded
def verify(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A path, or the name of a catalog table.")],
    qi: Annotated[
        list[str] | None,
        typer.Option(
            "--qi", metavar="a,b", help="The quasi-identifiers, with commas between; may be given several times."
        ),
    ] = None,
    k: Annotated[int | None, typer.Option("--k", min=1, help="Least size of a class.")] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            "--unit", help="Column of the protected person; counts rows without it. A --config says it itself."
        ),
    ] = None,
    manifest: Annotated[
        Path | None,
        typer.Option("--manifest", help="The manifest: what was promised, the row count and the content hash."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="The configuration: reads the source again and proves every cell.")
    ] = None,
    format: Annotated[
        str | None, typer.Option("--format", help="parquet, orc, csv or json; by the ending otherwise.")
    ] = None,
    options: Annotated[
        list[str] | None, typer.Option("--option", metavar="name=value", help="A reader option, such as header=true.")
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option("--sensitive", metavar="a,b", help="The sensitive columns.", rich_help_panel=_MODELS),
    ] = None,
    l_diversity: Annotated[
        list[str] | None,
        typer.Option(metavar="L", help="3, entropy:3 or recursive:c:l.", rich_help_panel=_MODELS),
    ] = None,
    t_closeness: Annotated[
        list[str] | None,
        typer.Option(metavar="T", help="0.2, 0.2:ordered or 0.2:hierarchical.", rich_help_panel=_MODELS),
    ] = None,
    alpha: Annotated[
        list[str] | None,
        typer.Option(metavar="A", help="0.5, or 0.3:HIV,cancer for some values alone.", rich_help_panel=_MODELS),
    ] = None,
    beta: Annotated[
        list[str] | None, typer.Option(metavar="B", help="1, or 1:enhanced.", rich_help_panel=_MODELS)
    ] = None,
    delta: Annotated[
        list[str] | None, typer.Option(metavar="D", help="delta-disclosure privacy.", rich_help_panel=_MODELS)
    ] = None,
    hierarchy: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=FILE", help="A hierarchy file of a column.", rich_help_panel=_MODELS),
    ] = None,
    personal_k: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column with each person's own k.", rich_help_panel=_MODELS),
    ] = None,
    k_map: Annotated[
        int | None,
        typer.Option(min=2, help="Persons of the population that each tuple must fit.", rich_help_panel=_MODELS),
    ] = None,
    population: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="The population of --k-map.", rich_help_panel=_MODELS),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Check a table that claims to be k-anonymous, with code that shares nothing with the methods."""
    from kanon_spark.cli.asked import hierarchy_files, manifest_columns, sensitive_columns, with_more
    from kanon_spark.config.loader import load_config
    from kanon_spark.releases.manifest import read_manifest

    known = read_manifest(str(manifest)) if manifest is not None else None
    # Who checks a release need not hold the keys of its pseudonyms.
    loaded = load_config(config, keys_optional=True) if config is not None else None
    question = _question(Question(column_names(qi or ()), k, unit), known, loaded)
    files = hierarchy_files(hierarchy or ())
    columns = sensitive_columns(
        column_names(sensitive or ()),
        l_diversity=l_diversity or (),
        t_closeness=t_closeness or (),
        alpha=alpha or (),
        beta=beta or (),
        delta=delta or (),
        hierarchies=files,
    )
    if known is not None and loaded is None:
        columns = with_more(manifest_columns(known), columns)
    if (k_map is None) != (population is None):
        raise RequestError("--k-map and --population belong together", where="verify", fix="give both, or neither")

    from kanon_spark.config.places import needs_warehouse
    from kanon_spark.engine.session import get_spark
    from kanon_spark.verify.asked import Asked, Population

    spark = get_spark(warehouse=needs_warehouse(loaded.config if loaded is not None else None, table))
    people = None
    if population is not None and k_map is not None:
        people = Population(open_table(spark, population, format=None, options=()), k_map, files)
    asked = Asked(columns, personal_k, people)
    with unreadable_is_told(table):
        frame = open_table(spark, table, format=format, options=options or (), untouched=True)
        verdict = _judge(spark, frame, question, known, loaded, asked)
    _show(verdict, as_json=as_json, quiet=quiet)
    raise typer.Exit(0 if verdict.passed else GuaranteeError.exit_code)


def column_names(given: Sequence[str]) -> tuple[str, ...]:
    """Column names; one with a comma in it stands in double quotes."""
    return tuple(name.strip() for row in csv.reader(given, skipinitialspace=True) for name in row if name.strip())


def _question(asked: Question, manifest: dict[str, Any] | None, loaded: "LoadedConfig | None") -> Question:
    """Fill what was not said from the configuration, then from the manifest."""
    if loaded is not None:
        config = loaded.config
        if asked.unit is not None and asked.unit != config.privacy.unit:
            raise RequestError(
                "whose rows are counted is said by the configuration (privacy.unit)",
                where="--unit",
                fix="leave it out, or verify without --config",
            )
        asked = replace(asked, qi=asked.qi or tuple(config.columns.quasi_identifiers), k=asked.k or config.privacy.k)
    if manifest is not None:
        columns = manifest.get("columns", {})
        qi = (*columns.get("qi", ()), *columns.get("added", ()))  # the numbers beside a label tell rows apart too
        asked = replace(asked, qi=asked.qi or qi, k=asked.k or manifest.get("privacy", {}).get("k", {}).get("asked"))
    if not asked.qi or asked.k is None:
        missing = "--k" if asked.qi else "--qi" if asked.k is not None else "--qi and --k"
        raise RequestError(
            f"{missing} must be given", where="verify", fix="or name a --manifest or --config that says it"
        )
    return asked


@contextmanager
def unreadable_is_told(table: str) -> Iterator[None]:
    """Files that are damaged, cut off, or of other types than they say, are no release: tell it in a sentence."""
    from kanon_spark.io.paths import resolve
    from kanon_spark.io.quiet import is_unreadable, quiet_query_errors

    try:
        with quiet_query_errors():
            yield
    except KanonError:
        raise
    except Exception as error:
        if not is_unreadable(error, resolve(table, Path.cwd())):
            raise
        raise GuaranteeError(
            "its files cannot be read as what they are said to be: damaged, cut off, or written anew",
            where=table,
            fix="publish the release again, or verify an untouched copy",
        ) from error


def open_table(
    spark: "SparkSession", table: str, *, format: str | None, options: Sequence[str], untouched: bool = False
) -> "DataFrame":
    """The table: a path where it looks like one, else a catalog table.

    Args:
        spark: The session.
        table: The path or name.
        format: Format of the files; by the ending where it is None.
        options: Reader options, as `name=value`.
        untouched: Refuse a release of ours whose files hold other columns than it says.
    """
    from kanon_spark.config.places import is_path, source_of
    from kanon_spark.io.sources import open_source

    if is_path(table, format=format) and format is None and not options:
        released = _open_release(spark, table, untouched=untouched)
        if released is not None:
            return released
    source = source_of(table, format=format, options=reader_options(options), origin="verify")
    return open_source(spark, source, base_dir=Path.cwd()).table


def _open_release(spark: "SparkSession", path: str, *, untouched: bool) -> "DataFrame | None":
    """A release of ours says how it was written; without that, text in csv and json would not get its types back."""
    from kanon_spark.io.paths import resolve
    from kanon_spark.io.released import path_release

    found = path_release(spark, resolve(path, Path.cwd()))
    if found is not None and untouched:
        found.refuse_other_columns(spark)
    return None if found is None else found.read(spark)


def reader_options(given: Sequence[str]) -> dict[str, str]:
    """`name=value`, once per option."""
    pairs = [text.partition("=") for text in given]
    if not all(sign for _, sign, _ in pairs):
        raise RequestError("must be written as name=value", where="--option", fix="for example --option header=true")
    return {name: value for name, _, value in pairs}


def _judge(
    spark: "SparkSession",
    table: "DataFrame",
    question: Question,
    manifest: dict[str, Any] | None,
    loaded: "LoadedConfig | None",
    asked: "Asked",
) -> "Verdict":
    if loaded is not None:
        from kanon_spark.engine.verification import verify_with_config

        further = _further(question, loaded, asked)
        more = {} if further is None else {"further": further}
        verdict = verify_with_config(loaded, table=table, spark=spark, **more)
    else:
        from kanon_spark.verify.table import verify_table

        models = {"asked": asked} if asked else {}
        verdict = verify_table(table, qi=question.qi, k=question.k or 0, unit=question.unit, **models)
    return verdict if manifest is None else _against_manifest(verdict, manifest)


def _further(question: Question, loaded: "LoadedConfig", asked: "Asked") -> "Further | None":
    """What the options ask beyond the configuration; None if that is nothing."""
    from kanon_spark.engine.verification import Further

    config = loaded.config
    other = set(question.qi) != set(config.columns.quasi_identifiers)
    if not (other or asked or (question.k or 0) > config.privacy.k):
        return None
    return Further(question.qi if other else (), question.k, asked)


def _against_manifest(verdict: "Verdict", manifest: dict[str, Any]) -> "Verdict":
    """Add the two checks that tie a table to the run that published it."""
    from kanon_spark.verify.facts import Check

    counts = manifest.get("rows", {})
    rows = counts.get("published", counts.get("released"))  # published: with the rows of stars, where there are any
    same_hash = verdict.content_hash == manifest.get("content_hash")
    checks = (
        Check("manifest rows", verdict.rows == rows, f"the table has {verdict.rows:,} rows, the manifest says {rows}"),
        Check(
            "manifest content",
            same_hash,
            "the content is what was published" if same_hash else "the content differs from what was published",
        ),
    )
    return replace(verdict, checks=(*verdict.checks, *checks))


def _show(verdict: "Verdict", *, as_json: bool, quiet: bool) -> None:
    if as_json:
        emit(
            {
                "event": "outcome",
                "outcome": "passed" if verdict.passed else "failed",
                "exit_code": 0 if verdict.passed else GuaranteeError.exit_code,
                "checks": [{"name": c.name, "passed": c.passed, "detail": c.detail} for c in verdict.checks],
                "rows": verdict.rows,
                "classes": verdict.facts.classes,
                "smallest": verdict.facts.smallest,
                "content_hash": verdict.content_hash,
            }
        )
    elif not quiet or not verdict.passed:
        from rich.text import Text

        console = out_console()
        for check in verdict.checks:
            mark = Text("passed  ", style="green") if check.passed else Text("FAILED  ", style="bold red")
            console.print(mark.append(f"{check.name}: {check.detail}", style="not bold default"), soft_wrap=True)
        facts = verdict.facts
        console.print(
            f"{verdict.rows:,} rows in {facts.classes:,} classes of {facts.smallest:,} to {facts.largest:,} rows",
            markup=False,
            soft_wrap=True,
        )
