"""The door: a table in, a draft of a configuration out."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kanon_spark.config.loader import check_raw
from kanon_spark.errors import DataError, RequestError, TooFewPersonsError
from kanon_spark.explore.suggest.hierarchies import Drafted, draft_hierarchy
from kanon_spark.explore.suggest.places import places_of
from kanon_spark.explore.suggest.profiling import LOOKED_AT, count_persons, profile_table
from kanon_spark.explore.suggest.roles import Verdict, decide_roles, unit_candidates
from kanon_spark.explore.suggest.suggestion import Places, Suggestion
from kanon_spark.explore.suggest.uniqueness import measure_uniqueness

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CANDIDATES = 3  # ids whose persons are counted exactly


def suggest(
    table: "DataFrame | str | Path",
    *,
    k: int = 5,
    format: str | None = None,
    options: Mapping[str, str] | None = None,
    name: str | None = None,
    sink: str | None = None,
    show_values: bool = False,
    spark: "SparkSession | None" = None,
    looked_at: int = LOOKED_AT,
    tell: Callable[[str], None] = lambda text: None,
) -> Suggestion:
    """Look at a table and draft a configuration that anonymizes it.

    Args:
        table: A DataFrame, a path or the name of a catalog table.
        k: Least number of persons that are to share a combination of quasi-identifiers.
        format: Of a path; by its ending otherwise.
        options: Spark reader options of a path.
        name: What the job is to be called; as the table by default.
        sink: Where the release is to go; `out/` beside the configuration by default.
        show_values: The reasons may show raw values.
        spark: The session; the active one by default, else a local one is started.
        looked_at: About how many rows are looked at closely; of larger tables a part, chosen by content.
        tell: Called with each step, for progress.

    Returns:
        The draft: `.yaml` to read and keep, `.config` for `Anonymizer.from_dict`, `.roles` and `.verdicts` for the
        reasons.

    Raises:
        MissingInputError: There is no such table.
        DataError: It is empty, has fewer than k persons, or nothing in it tells people apart.

    Example:
        ```python
        draft = suggest(patients)
        draft.yaml  # the file, as text
        release = Anonymizer.from_dict(draft.config).run(patients)
        ```
    """
    if k < 2:
        raise RequestError("k must be 2 or more", where="k", fix="5 is usual")
    frame, places = _opened(table, format=format, options=options or {}, name=name, sink=sink, spark=spark)
    tell("look at every column")
    profile = profile_table(frame, looked_at=looked_at)
    _enough("rows", profile.rows, k)
    verdicts, drafts = _with_hierarchies(decide_roles(profile, k=k))
    tell("count persons, and who is alone")
    unit = _unit(frame, verdicts, profile.rows, k)
    if not drafts:
        raise _nothing_identifies(verdicts)
    uniqueness = measure_uniqueness(frame, list(drafts), unit=unit, k=k)
    draft = Suggestion(verdicts, drafts, unit, k, profile, uniqueness, places, show_values)
    check_raw(draft.config, base_dir=Path.cwd(), origin="suggest")  # it must load as it stands
    return draft


def _opened(
    table: "DataFrame | str | Path",
    *,
    format: str | None,
    options: Mapping[str, str],
    name: str | None,
    sink: str | None,
    spark: "SparkSession | None",
) -> "tuple[DataFrame, Places]":
    if not isinstance(table, str | Path):
        called = name or "release"
        if sink is None:
            return table, Places(called)
        return table, replace(places_of({"table": called}, base_dir=Path.cwd(), name=name, sink=sink), source=None)
    from kanon_spark.config.places import needs_warehouse, source_of
    from kanon_spark.engine.session import get_spark
    from kanon_spark.io.sources import open_source

    base_dir = Path.cwd()
    source = source_of(str(table), format=format, options=options, origin="suggest")
    section: dict[str, Any] = {"path": source.path} if source.path is not None else {"table": source.table}
    if format is not None:
        section["format"] = format
    if options:
        section["options"] = dict(options)
    places = places_of(section, base_dir=base_dir, name=name, sink=sink)
    session = spark or get_spark(warehouse=needs_warehouse(None, source.path))
    return open_source(session, source, base_dir=base_dir).table, places


def _enough(counted: str, found: int, k: int) -> None:
    if found < k:
        raise TooFewPersonsError(
            f"the table has {found} {counted}, fewer than k = {k}", where="k", fix=f"lower k to {max(2, found)} or less"
        )


def _with_hierarchies(verdicts: tuple[Verdict, ...]) -> tuple[tuple[Verdict, ...], dict[str, Drafted]]:
    """The drafts of all quasi-identifiers; one that has too many values for any hierarchy is dropped."""
    kept, drafts = [], {}
    for verdict in verdicts:
        drafted = draft_hierarchy(verdict) if verdict.role == "quasi-identifier" else None
        if drafted is not None:
            drafts[verdict.column] = drafted
        elif verdict.role == "quasi-identifier":
            reason = f"{verdict.reason}: too many to generalize without levels"
            verdict = replace(verdict, role="drop", rule="too many values", reason=reason, unsure=True)
        kept.append(verdict)
    return tuple(kept), drafts


def _unit(frame: "DataFrame", verdicts: tuple[Verdict, ...], rows: int, k: int) -> str | None:
    """The likeliest id of a person that stands in several rows."""
    candidates = unit_candidates(verdicts, k=k)[:_CANDIDATES]
    persons = count_persons(frame, candidates)
    for name in candidates:
        if persons[name] < rows:
            _enough(f"persons by '{name}'", persons[name], k)
            return name
    return None


def _nothing_identifies(verdicts: tuple[Verdict, ...]) -> DataError:
    identifiers = sum(verdict.role == "identifier" for verdict in verdicts)
    what = f"{identifiers} of its {len(verdicts)} columns are identifiers, the others are nothing that a rule knows"
    return DataError(
        f"no column was found by which others could recognize a person: {what}. A job needs a quasi-identifier",
        where="columns",
        fix="if others can know one of the columns, name it under columns.quasi_identifiers (conf/README.md); "
        "if not, the table without its identifiers needs no generalization",
    )
