"""What an incremental release stands on: every published row with its key, kept in the work directory.

The rows live in `_kanon_<run_id>_state` of the run that published them, and the release at the target says which run
that was. So there is no pointer that could be wrong: a run that dies before its swap leaves a state that nobody asks
for, and a run that dies after it leaves the one that counts.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kanon_spark.errors import MissingInputError, RequestError
from kanon_spark.io.paths import join
from kanon_spark.releases.workdir import entry_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kanon_spark.config.loader import LoadedConfig
    from kanon_spark.io.files import FileStore
    from kanon_spark.releases.workdir import WorkDir

STATE = "state"
RETIRED, WAITING, FACTS = "state_retired", "state_waiting", "state.json"
# Columns beside the published ones: the row's key, its person, the run that published it, a hash of what it was made
# of, its loss, and how many persons it asks for.
KEY, PERSON, COHORT = "_kanon_key", "_kanon_person", "_kanon_cohort"
CONTENT, LOSS, WISH = "_kanon_content", "_kanon_loss", "_kanon_personal_k"
MARKS = (KEY, PERSON, CONTENT, WISH)


@dataclass(frozen=True)
class Standing:
    """The published rows of an incremental release, and who is not published.

    Attributes:
        rows: One row per published row: its published columns and those above.
        retired: Keys that were published once and were withdrawn; they are not published again.
        waiting: Keys that wait for company, with the run since which they do (`since`).
        limit: The largest loss per row of a new class.
        releases: How many releases there have been.
        columns: The published columns, in order.
    """

    rows: "DataFrame"
    retired: "DataFrame"
    waiting: "DataFrame"
    limit: float
    releases: int
    columns: tuple[str, ...]


def find_standing(
    spark: "SparkSession", loaded: "LoadedConfig", published: "dict[str, Any] | None", *, store: "FileStore", root: str
) -> Standing | None:
    """The state of the release that stands at the target; None if there is no release yet.

    Args:
        spark: The session.
        loaded: The configuration.
        published: What the release says of itself.
        store: Where the work directory is.
        root: The work directory.

    Raises:
        MissingInputError: A release stands there, but not its state.
        RequestError: It was made with other columns or another demand.
    """
    if published is None:
        return None
    run_id = str(published["run_id"])

    def path(what: str) -> str:
        return join(root, entry_name(run_id, what))

    try:
        facts = json.loads(store.read_text(path(FACTS)))
    except FileNotFoundError:
        raise MissingInputError(
            f"a release (run {run_id}) stands at the target, but the work directory has no record of its rows",
            where="schedule.repeat",
            fix="bring back the work directory of that run, or publish to a new target: what is there was not made to "
            "be continued",
        ) from None
    if facts["shape"] != shape_of(loaded):
        raise RequestError(
            "columns, k, models, keys or the form of the output have changed since the release at the target was made",
            where="schedule.repeat",
            fix="continue with the configuration it was made with, or publish to a new target",
        )
    return Standing(
        rows=spark.read.parquet(path(STATE)),
        retired=spark.read.parquet(path(RETIRED)),
        waiting=spark.read.parquet(path(WAITING)),
        limit=float(facts["limit"]),
        releases=int(facts["releases"]),
        columns=tuple(facts["columns"]),
    )


def save_facts(
    work: "WorkDir", loaded: "LoadedConfig", *, limit: float, releases: int, columns: tuple[str, ...]
) -> None:
    """Write down what the next run must know beside the rows."""
    facts = {
        "version": 1,
        "shape": shape_of(loaded),
        "limit": limit,
        "releases": releases,
        "columns": list(columns),
    }
    work.store.write_text(work.path(FACTS), json.dumps(facts), private=True)


def shape_of(loaded: "LoadedConfig") -> str:
    """A hash of everything that must not change between releases of one table."""
    form = loaded.config.to_dict()
    # Keys of pseudonyms come from the environment and may be filled in; they are not part of the shape.
    shape = {name: form.get(name) for name in ("columns", "privacy", "output")}
    shape["key"] = loaded.config.schedule.key
    return hashlib.sha256(json.dumps(shape, sort_keys=True, default=str).encode()).hexdigest()
