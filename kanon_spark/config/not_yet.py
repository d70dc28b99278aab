"""The one list of known keys whose features are not built yet. Remove a line, and the feature is allowed."""

from collections.abc import Iterator, Mapping

from kanon_spark.config.models import Config
from kanon_spark.config.problems import Location, Problem, path_text

_ANY: frozenset[str] = frozenset()

# Path (`*`: any column), the values that are refused (none named: any), and what the feature is.
NOT_YET: tuple[tuple[str, frozenset[str], str], ...] = (
    ("source.jdbc", _ANY, "reading over JDBC"),
    ("source.format", frozenset({"delta", "iceberg"}), "Delta and Iceberg sources"),
    ("sink.jdbc", _ANY, "writing over JDBC"),
    ("sink.format", frozenset({"delta", "iceberg"}), "Delta and Iceberg releases"),
    ("schedule.run_key", _ANY, "run keys"),
    ("schedule.partition", _ANY, "partitioned sources"),
    ("schedule.ledger", _ANY, "the ledger"),
    ("schedule.repeat", frozenset({"incremental"}), "incremental releases"),
    ("schedule.time_budget", _ANY, "time budgets"),
)


def not_yet_problems(config: Config) -> list[Problem]:
    """A problem for each key that asks for a feature which is not there yet."""
    form = config.to_dict()  # holds only what differs from the defaults
    problems = []
    for path, values, feature in NOT_YET:
        for location, value in _matches(form, path.split(".")):
            if not values or value in values:
                what = f"'{value}': " if values else ""
                message = f"not yet: {what}{feature} cannot be used yet"
                problems.append(Problem(path_text(location), message, not_yet=True))
    return problems


def _matches(node: object, parts: list[str], above: Location = ()) -> Iterator[tuple[Location, object]]:
    if not parts:
        yield above, node
    elif isinstance(node, Mapping):
        for key, value in node.items():
            if parts[0] in {"*", key}:
                yield from _matches(value, parts[1:], (*above, key))
