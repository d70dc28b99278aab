"""Rules about privacy models that span several sections: what each needs of the columns it speaks of."""

from collections.abc import Iterator

from kanon_spark.config.hierarchy_specs import DateSpec, IntervalSpec
from kanon_spark.config.models import Config
from kanon_spark.config.privacy_specs import MODEL_KEYS, TClosenessSpec
from kanon_spark.config.problems import Problem, path_text


def privacy_problems(config: Config) -> Iterator[Problem]:
    """Every broken rule."""
    yield from _without_column(config)
    yield from _hierarchical(config)
    yield from _personal_k(config)
    yield from _k_map(config)


def _without_column(config: Config) -> Iterator[Problem]:
    if config.columns.sensitive:
        return
    for key in MODEL_KEYS:
        if getattr(config.privacy, key) is not None:
            message = "no sensitive column is named, so that there is nothing to protect; name it in columns.sensitive"
            yield Problem(f"privacy.{key}", message)


def _hierarchical(config: Config) -> Iterator[Problem]:
    """Distances by a hierarchy need one, of words or codes: numbers and dates have an order."""
    for name, spec in config.columns.sensitive.items():
        own: TClosenessSpec | None = spec.t_closeness
        asked = own or config.privacy.t_closeness
        if asked is None or asked.distance != "hierarchical":
            continue
        where = ("columns", "sensitive", name)
        if spec.hierarchy is None:
            if own is not None:
                path, what = path_text((*where, "t_closeness")), "the column"
            else:
                path, what = "privacy.t_closeness", f"the sensitive column '{name}'"
            message = (
                f"the hierarchical distance needs a hierarchy, and {what} has none; give it one, or another distance"
            )
            yield Problem(path, message)
        elif isinstance(spec.hierarchy, IntervalSpec | DateSpec):
            message = "the hierarchical distance is for words and codes; numbers and dates have distance: ordered"
            yield Problem(path_text((*where, "hierarchy")), message)


def _personal_k(config: Config) -> Iterator[Problem]:
    spec = config.privacy.personal_k
    if spec is None or spec.column is None:
        return
    if spec.column == config.privacy.unit:
        yield Problem("privacy.personal_k", "the column of the person cannot say the person's k as well")
    if spec.column in (config.sink.partition_by if config.sink else ()):
        yield Problem("privacy.personal_k", "the column is not published, so that it cannot partition the release")


def _k_map(config: Config) -> Iterator[Problem]:
    if config.privacy.k_map is not None and config.method.numeric == "mean":
        message = "a mean fits nobody of a population; publish ranges (method.numeric: range), or leave k_map out"
        yield Problem("privacy.k_map", message)
