"""Rules that span several sections of a configuration."""

import posixpath
from collections.abc import Iterable, Iterator

from kanon_spark.config.models import Config
from kanon_spark.config.privacy_rules import privacy_problems
from kanon_spark.config.problems import Problem, path_text


def rule_problems(config: Config) -> list[Problem]:
    """Every broken rule of a well-formed configuration."""
    return [
        *_roles(config),
        *_unit(config),
        *privacy_problems(config),
        *_partitions(config),
        *_label(config),
        *_places(config),
        *_options(config),
        *_schedule(config),
    ]


# Methods that each option of `method` belongs to.
OPTIONS: dict[str, tuple[str, ...]] = {
    "cut": ("mst",),
    "order": ("kmember",),
    "label": ("kmember",),
    "penalty": ("kmember",),
    "leftover": ("sbca", "kactus", "prgain"),
    "target": ("kactus",),
    "dimension": ("kactus",),
    "numeric": ("kactus",),
    "criterion": ("kactus",),
    "beam": ("prgain",),
}


def _options(config: Config) -> Iterator[Problem]:
    for option, methods in OPTIONS.items():
        if getattr(config.method, option) is not None and config.resolved_method not in methods:
            wanted = " or ".join(f"method.name: {method}" for method in methods)
            message = f"not an option of the method {config.resolved_method}; set {wanted}, or leave it out"
            yield Problem(f"method.{option}", message)


def _roles(config: Config) -> Iterator[Problem]:
    columns = config.columns
    roles: dict[str, Iterable[str]] = {
        "identifiers": columns.identifiers,
        "quasi_identifiers": columns.quasi_identifiers,
        "sensitive": columns.sensitive,
    }
    first: dict[str, str] = {}
    for role, names in roles.items():
        for name in names:
            if name in first:
                message = f"the column already stands in columns.{first[name]}; a column has one role"
                yield Problem(path_text(("columns", role, name)), message)
            else:
                first[name] = role


def _unit(config: Config) -> Iterator[Problem]:
    unit = config.privacy.unit
    if unit is None:
        return
    if unit in config.columns.quasi_identifiers:
        yield Problem("privacy.unit", "the person's column cannot be a quasi-identifier; make it an identifier")
    if unit in config.columns.sensitive:
        yield Problem("privacy.unit", "the person's column cannot be sensitive; make it an identifier")


def _partitions(config: Config) -> Iterator[Problem]:
    for index, name in enumerate(config.sink.partition_by if config.sink else ()):
        path = path_text(("sink", "partition_by", index))
        if name in config.columns.quasi_identifiers:
            yield Problem(path, "a quasi-identifier is generalized and cannot partition the release; use a kept column")
        elif name in config.columns.identifiers:
            yield Problem(path, "an identifier cannot partition the release; use a kept column")


def _label(config: Config) -> Iterator[Problem]:
    spec = config.method
    if spec.penalty is not None and spec.label is None:
        yield Problem("method.penalty", "a penalty needs the column of the class label: method.label")
    if spec.label in config.columns.quasi_identifiers:
        yield Problem("method.label", "a quasi-identifier is generalized; the class label must be another column")
    if spec.target in config.columns.quasi_identifiers:
        yield Problem("method.target", "a quasi-identifier is generalized; the target must be another column")
    if config.resolved_method == "kactus" and spec.target is None:
        yield Problem("method.target", "kactus needs the column that classifiers are to predict")
    if spec.numeric == "mean" and config.output.numeric != "label":
        message = "with method.numeric: mean a label is a mean, beside which no other number may stand; set it to label"
        yield Problem("output.numeric", message)


def _places(config: Config) -> Iterator[Problem]:
    sink = config.sink
    if sink is None:
        return
    if config.source is not None and config.source.table is not None and config.source.table == sink.table:
        yield Problem("sink.table", "the release would replace its own source; give it another name")
    if sink.path is None:
        return
    inside = {
        "execution.work_dir": (config.execution.work_dir, "it holds raw data and must not be under the release"),
        "report.html": (config.report.html, "the report is internal and must not be under the release"),
        "report.manifest": (config.report.manifest, "the manifest is internal and must not be under the release"),
    }
    for path, (place, message) in inside.items():
        if place is not None and _under(place, sink.path):
            yield Problem(path, message)
    if config.source is not None and config.source.path is not None:
        if _under(config.source.path, sink.path):
            yield Problem("sink.path", "the release would replace its own source; give it another path")
        elif _under(sink.path, config.source.path):
            yield Problem("sink.path", "the release would stand inside its own source; give it another path")
    if config.execution.work_dir is not None and _under(sink.path, config.execution.work_dir):
        yield Problem("sink.path", "the release must not stand under the work folder, which holds raw data")


def _schedule(config: Config) -> Iterator[Problem]:
    spec, sink = config.schedule, config.sink
    if spec.run_key is not None and sink is None:
        yield Problem("schedule.run_key", "a key is recognized by the release that stands; name a sink")
    if spec.partition is not None and config.source is None:
        yield Problem("schedule.partition", "there is no source to take a partition of; name it")
    if spec.repeat == "incremental":
        yield from _incremental(config)
    elif spec.key is not None or spec.max_loss is not None:
        name = "key" if spec.key is not None else "max_loss"
        yield Problem(f"schedule.{name}", "it belongs to schedule.repeat: incremental; set that, or leave it out")
    if spec.ledger is not None and sink is not None:
        if sink.path is not None and "/" in spec.ledger and _under(spec.ledger, sink.path):
            yield Problem("schedule.ledger", "the ledger is internal and must not be under the release")
        if sink.table is not None and spec.ledger == sink.table:
            yield Problem("schedule.ledger", "the release would replace its ledger; give it another name")


def _incremental(config: Config) -> Iterator[Problem]:
    spec = config.schedule
    if spec.key is None:
        yield Problem("schedule.key", "repeat: incremental needs a column that tells rows apart and never changes")
    elif spec.key in config.columns.quasi_identifiers or spec.key in config.columns.sensitive:
        yield Problem("schedule.key", "a key tells every row apart; it cannot be published: make it an identifier")
    if config.sink is None:
        yield Problem("schedule.repeat", "an incremental release continues the one that stands; name a sink")
    if spec.partition is not None:
        yield Problem("schedule.partition", "rows of other partitions would count as deleted; leave it out")
    if config.output.suppressed_rows == "star":
        yield Problem(
            "output.suppressed_rows", "rows that are not published yet wait; an incremental release drops them"
        )


def _under(path: str, folder: str) -> bool:
    path, folder = posixpath.normpath(path), posixpath.normpath(folder)
    return path == folder or path.startswith(folder + "/")
