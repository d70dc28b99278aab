"""The privacy models that `kanon verify` is asked for, by its options or a manifest, in the words of a configuration.

A model holds for every `--sensitive` column, or for one of them: `--l-diversity 3 --l-diversity disease=entropy:4`.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kanon_spark.config.models import CsvSpec, SensitiveSpec
from kanon_spark.config.privacy_specs import MODEL_KEYS
from kanon_spark.errors import RequestError
from kanon_spark.verify.asked import own_models


def sensitive_columns(
    names: Sequence[str],
    *,
    l_diversity: Sequence[str] = (),
    t_closeness: Sequence[str] = (),
    alpha: Sequence[str] = (),
    beta: Sequence[str] = (),
    delta: Sequence[str] = (),
    hierarchies: Mapping[str, CsvSpec] | None = None,
) -> dict[str, SensitiveSpec]:
    """The models of each sensitive column; a column that an option names is one.

    >>> sensitive_columns(["ill"], l_diversity=["recursive:2:3"])["ill"].l_diversity
    LDiversitySpec(l=3.0, kind='recursive', c=2.0)
    """
    readers: dict[str, tuple[str, Sequence[str], Callable[[str], object]]] = {
        "l_diversity": ("--l-diversity", l_diversity, _diversity),
        "t_closeness": ("--t-closeness", t_closeness, lambda text: _number_and(text, "t", "distance")),
        "alpha": ("--alpha", alpha, _alpha),
        "beta_likeness": ("--beta", beta, lambda text: _number_and(text, "beta", "kind")),
        "delta_disclosure": ("--delta", delta, float),
    }
    general: dict[str, object] = {}
    own: dict[str, dict[str, object]] = {name: {} for name in names}
    for key, (option, given, read) in readers.items():
        for text in given:
            column, words = _column_and_words(text)
            if column is None and not names:
                raise RequestError(
                    "says nothing without a sensitive column",
                    where=option,
                    fix=f"name it: {option} COLUMN={text}, or --sensitive COLUMN",
                )
            target = general if column is None else own.setdefault(column, {})
            target[key] = _read(read, words, key=key, option=option)
    files = hierarchies or {}
    shared = SensitiveSpec.model_validate(general)
    return {
        name: own_models(SensitiveSpec.model_validate({**own[name], "hierarchy": files.get(name)}), shared)
        for name in own
    }


def _column_and_words(text: str) -> tuple[str | None, str]:
    """`disease=3` names its column, `0.3:a=b` does not: what is asked begins with a number or a kind.

    >>> _column_and_words("disease=entropy:3"), _column_and_words("0.3:a=b"), _column_and_words("3")
    (('disease', 'entropy:3'), (None, '0.3:a=b'), (None, '3'))
    """
    column, sign, rest = text.partition("=")
    return (column, rest) if sign and ":" not in column else (None, text)


def manifest_columns(manifest: Mapping[str, Any]) -> dict[str, SensitiveSpec]:
    """The models that a release was verified for, as far as its own rows show them.

    Not those that count persons (the release does not name them) and not those that need other files: hierarchies and
    populations. That a release still is the one that was verified shows in its content.
    """
    privacy = manifest.get("privacy", {})
    if privacy.get("unit") is not None:
        return {}
    found: dict[str, dict[str, Any]] = {}
    for facts in privacy.values():
        if not isinstance(facts, Mapping) or facts.get("column") is None or facts.get("model") not in MODEL_KEYS:
            continue
        asked = facts.get("asked")
        if not isinstance(asked, Mapping) or asked.get("distance") != "hierarchical":
            found.setdefault(facts["column"], {})[facts["model"]] = asked
    try:
        return {column: SensitiveSpec.model_validate(models) for column, models in found.items()}
    except ValidationError:
        raise RequestError(
            "its privacy models cannot be read", where="--manifest", fix="take the manifest that the run wrote"
        ) from None


def with_more(known: Mapping[str, SensitiveSpec], asked: Mapping[str, SensitiveSpec]) -> dict[str, SensitiveSpec]:
    """What is known to be asked of each column, and what is asked now: a model that both name is the one asked now.

    >>> found = with_more({"ill": SensitiveSpec(l_diversity=2, alpha=0.5)}, {"ill": SensitiveSpec(alpha=0.3)})
    >>> found["ill"].l_diversity.l, found["ill"].alpha.alpha
    (2.0, 0.3)
    """
    merged = dict(known)
    for name, spec in asked.items():
        own = {key: getattr(spec, key) for key in type(spec).model_fields if getattr(spec, key) is not None}
        merged[name] = known[name].model_copy(update=own) if name in known else spec
    return merged


def hierarchy_files(given: Sequence[str]) -> dict[str, CsvSpec]:
    """`COLUMN=FILE`, once per column."""
    files = {}
    for text in given:
        column, sign, path = text.partition("=")
        if not sign or not path:
            raise RequestError("must be written as COLUMN=FILE", where="--hierarchy", fix="--hierarchy disease=icd.csv")
        files[column] = CsvSpec(path=str(Path(path).expanduser().absolute()))
    return files


def _read(read: Callable[[str], object], text: str, *, key: str, option: str) -> object:
    """One option, checked as the configuration would check it."""
    try:
        value = read(text)
        SensitiveSpec.model_validate({key: value})
    except ValidationError as problem:
        first: Any = problem.errors()[0]
        raise RequestError(f"cannot be read: {first['msg']}", where=option, fix=_FORMS[key]) from None
    except ValueError:
        raise RequestError("cannot be read", where=option, fix=_FORMS[key]) from None
    return value


_FORMS = {
    "l_diversity": "3, entropy:3 or recursive:c:l, such as recursive:2:3",
    "t_closeness": "0.2, 0.2:ordered or 0.2:hierarchical",
    "alpha": "0.5, or 0.3:HIV,cancer for some values alone",
    "beta_likeness": "1, or 1:enhanced",
    "delta_disclosure": "a number above 0",
}


def _diversity(text: str) -> dict[str, object]:
    kind, *numbers = text.split(":")
    if not numbers:
        return {"l": float(kind)}
    if kind == "recursive" and len(numbers) == 2:
        return {"kind": kind, "c": float(numbers[0]), "l": float(numbers[1])}
    if kind == "recursive" or len(numbers) > 1:
        raise ValueError
    return {"kind": kind, "l": float(numbers[0])}


def _number_and(text: str, number: str, word: str) -> dict[str, object]:
    amount, sign, rest = text.partition(":")
    return {number: float(amount), **({word: rest} if sign else {})}


def _alpha(text: str) -> dict[str, object]:
    amount, sign, names = text.partition(":")
    values = tuple(name.strip() for name in names.split(",") if name.strip())
    if sign and not values:
        raise ValueError
    return {"alpha": float(amount), **({"values": values} if sign else {})}
