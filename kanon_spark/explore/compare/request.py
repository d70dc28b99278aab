"""What is to be compared: methods with their options, values of k, a sample; and what of it is no request at all."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import ValidationError

from kanon_spark.config.forms import to_form
from kanon_spark.config.models import Config, MethodName, MethodSpec
from kanon_spark.config.rules import OPTIONS
from kanon_spark.config.words import did_you_mean
from kanon_spark.config.yaml_text import parse_yaml
from kanon_spark.errors import ConfigError, RequestError

ALL = "all"
METHODS: tuple[str, ...] = tuple(name for name in get_args(MethodName) if name != "auto")
DEFAULT_METHODS = ("lattice", "mst", "kmember", "mondrian", "prgain", "datafly")
DEFAULT_KS = (2, 5, 10, 20, 50, 100)
SAMPLE_ROWS = 1_000_000  # beyond so many rows a comparison draws about so many first, unless told otherwise


@dataclass(frozen=True)
class Variant:
    """A method with its options, under the name that it was asked for by: `mst`, `mst:cut=paper`."""

    name: str
    spec: MethodSpec


@dataclass(frozen=True)
class Sample:
    """How many rows to compare on: about so many, a share, or (both None) all of them."""

    rows: int | None = None
    share: float | None = None


def variants(asked: str | Sequence[str] | None, config: Config, *, label: str | None = None) -> tuple[Variant, ...]:
    """The methods to compare, in the order asked for.

    The configuration's own method keeps its options, and its `effort` holds for all; options behind a colon win:
    `mst:cut=paper`. `kactus` predicts `label` where nothing else is said.

    >>> method = {"name": "mst", "cut": "paper"}
    >>> job = Config.model_validate({"columns": {"quasi_identifiers": ["age"]}, "method": method})
    >>> [variant.spec.cut for variant in variants("mst,mst:cut=loss", job)]
    ['paper', 'loss']

    Raises:
        RequestError: There is no such method, or it has no such option.
    """
    texts = _listed(DEFAULT_METHODS if asked is None else asked)
    if ALL in texts:
        texts = [each for text in texts for each in (METHODS if text == ALL else (text,))]
    if not texts:
        raise RequestError("no method is named", where="methods", fix=f"name some of {', '.join(METHODS)}, or {ALL}")
    return tuple(_variant(text, config, label) for text in dict.fromkeys(texts))


def _variant(text: str, config: Config, label: str | None) -> Variant:
    name, *options = (part.strip() for part in text.split(":"))
    if name == "auto":
        name = config.model_copy(update={"method": MethodSpec()}).resolved_method
    if name not in METHODS:
        raise RequestError(
            f"there is no method '{name}'{did_you_mean(name, METHODS)}",
            where="methods",
            fix=f"there are {', '.join(METHODS)}, and {ALL}",
        )
    given: dict[str, Any] = {"effort": config.method.effort}
    if name == config.resolved_method:
        given |= to_form(config.method)
    given |= dict(_option(option, name, text) for option in options)
    given["name"] = name
    if name == "kactus" and label is not None:
        given.setdefault("target", label)
    try:
        spec = MethodSpec.model_validate(given)
    except ValidationError as invalid:
        first = invalid.errors(include_url=False, include_input=False)[0]
        raise RequestError(
            f"'{text}': {'.'.join(map(str, first['loc']))}: {first['msg']}",
            where="methods",
            fix="conf/README.md names the options of each method and their values",
        ) from None
    return Variant(":".join([name, *options]), spec)


def _option(text: str, method: str, whole: str) -> tuple[str, Any]:
    own = ["effort", *(option for option, methods in OPTIONS.items() if method in methods)]
    key, equals, value = (part.strip() for part in text.partition("="))
    if not equals or key not in own:
        raise RequestError(
            f"'{whole}': {method} has no option '{key}'{did_you_mean(key, own)}"
            if equals
            else f"'{whole}': '{text}' is no option",
            where="methods",
            fix=f"write {method}:option=value; the options of {method} are {', '.join(own)}",
        )
    try:
        return key, parse_yaml(value, origin="methods")[0]
    except ConfigError as error:
        raise RequestError(f"'{whole}': {error.message}", where="methods", fix=error.fix) from None


def values_of_k(asked: str | int | Iterable[int] | None) -> tuple[int, ...]:
    """The values of k, ascending.

    >>> values_of_k("10, 2,5,2")
    (2, 5, 10)

    Raises:
        RequestError: One is no whole number from 2 on.
    """
    if asked is None:
        return DEFAULT_KS
    parts: list[Any] = _listed(asked) if isinstance(asked, str) else [asked] if isinstance(asked, int) else list(asked)
    found = set()
    for part in parts:
        if isinstance(part, bool) or not str(part).strip().isdecimal() or int(part) < 2:
            raise RequestError(
                f"'{part}' is no k", where="k", fix="name whole numbers from 2 on, such as 2,5,10,20,50,100"
            )
        found.add(int(part))
    if not found:
        raise RequestError("no k is named", where="k", fix="name some, such as 2,5,10,20,50,100")
    return tuple(sorted(found))


def sample_of(asked: str | int | float | None) -> Sample | None:
    """What `--sample` says: a number of rows, a share, or `none`; None where nothing is said.

    >>> sample_of("20000"), sample_of("0.1"), sample_of("none")
    (Sample(rows=20000, share=None), Sample(rows=None, share=0.1), Sample(rows=None, share=None))

    Raises:
        RequestError: It is none of these.
    """
    if asked is None:
        return None
    text = str(asked).strip().replace("_", "").lower()
    if text in {"none", "all"}:
        return Sample()
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if text.isdecimal() and number >= 2:
        return Sample(rows=int(text))
    if 0 < number < 1 and not text.isdecimal():
        return Sample(share=number)
    raise RequestError(
        f"'{asked}' is no sample",
        where="sample",
        fix="name a number of rows (100000), a share (0.1 or 10%), or none for all rows",
    )


def share_of(asked: float | None, *, where: str) -> float | None:
    """A limit between 0 and 1, as it was asked for.

    Raises:
        RequestError: It is no share.
    """
    if asked is None or (not isinstance(asked, bool) and 0 <= asked <= 1):
        return asked
    raise RequestError(f"{asked} is no share", where=where, fix="name a number from 0 to 1, such as 0.1 for 10%")


def _listed(asked: str | Sequence[str]) -> list[str]:
    parts = asked.split(",") if isinstance(asked, str) else asked
    return [part.strip() for part in parts if part.strip()]
