"""Reading a configuration from YAML, a dict, keyword arguments or a `Config`, with every problem reported at once."""

import copy
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kanon_spark.config.forms import plain
from kanon_spark.config.models import Config
from kanon_spark.config.overrides import apply_override
from kanon_spark.config.problems import Location, Problem, format_problems, path_text, problem_from
from kanon_spark.config.pseudonyms import KEYS_OPTIONAL
from kanon_spark.config.rules import rule_problems
from kanon_spark.config.shown import shown_text
from kanon_spark.config.yaml_text import parse_yaml
from kanon_spark.errors import ConfigError, MissingInputError

_VARIABLE = re.compile(r"\$(\$?)\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True)
class LoadedConfig:
    """A checked configuration and where it came from.

    Attributes:
        config: The configuration, `${NAME}` filled in.
        base_dir: The folder that relative paths start from: the file's own, else the current one.
        sha256: Hash of the configuration before `${NAME}` was filled in, overrides included.
        origin: What to call it in messages.
        text: The configuration as YAML before `${NAME}` was filled in, secrets left out; for reports.
        raw: The same as plain values, nothing left out: to write it down once more, for its owner.
    """

    config: Config
    base_dir: Path
    sha256: str
    origin: str = "configuration"
    text: str = field(default="", repr=False)
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def resolve(self, path: str) -> str:
        """A path of the configuration, made absolute; one with a scheme (`s3a://…`) stays as it is.

        >>> load_config({"columns": {"quasi_identifiers": ["age"]}}).resolve("s3a://bucket/x")
        's3a://bucket/x'
        """
        from kanon_spark.io.paths import resolve

        return resolve(path, self.base_dir)


def load_config(
    source: str | Path | Mapping[str, Any] | Config,
    *,
    overrides: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    keys_optional: bool = False,
) -> LoadedConfig:
    """Read and check a configuration.

    Args:
        source: Path of a YAML file, a dict of the same form, or a `Config`.
        overrides: Changes such as `"privacy.k=10"`, as the command line's `--set`.
        env: Where `${NAME}` is looked up; the process environment by default.
        keys_optional: Keys of pseudonyms whose `${NAME}` is not set may be missing: to look at a release, not to run.

    Raises:
        MissingInputError: The file is not there.
        ConfigError: The configuration is wrong; the message lists every problem.

    >>> loaded = load_config({"columns": {"quasi_identifiers": ["age", "zip"]}}, overrides=["privacy.k=10"])
    >>> loaded.config.privacy.k
    10
    """
    base_dir, origin, problems = Path.cwd(), "configuration", list[Problem]()
    if isinstance(source, Config):
        raw: Any = source.to_dict()
    elif isinstance(source, Mapping):
        raw = plain(dict(source))
    else:
        base_dir, origin = Path(source).absolute().parent, str(source)
        raw, problems = parse_yaml(_read(Path(source)), origin=origin)
    return check_raw(
        raw,
        base_dir=base_dir,
        origin=origin,
        overrides=overrides,
        env=env,
        problems=problems,
        keys_optional=keys_optional,
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        near = sorted(str(file) for file in path.parent.glob("*.y*ml"))[:5]
        fix = f"check the path; beside it there is {', '.join(near)}" if near else "check the path"
        raise MissingInputError("there is no such configuration file", where=str(path), fix=fix) from None
    except IsADirectoryError:
        raise MissingInputError("is a folder, not a configuration file", where=str(path), fix="name the file") from None
    except UnicodeDecodeError:
        raise ConfigError("is not UTF-8 text", where=str(path), fix="save the file as UTF-8") from None
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise MissingInputError(f"cannot be read: {reason}", where=str(path), fix="check its permissions") from None


def check_raw(
    raw: Any,
    *,
    base_dir: Path,
    origin: str,
    overrides: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    problems: Iterable[Problem] = (),
    keys_optional: bool = False,
) -> LoadedConfig:
    """Check plain values: overrides, then the hash, then `${NAME}`, then the models and all rules."""
    found = list(problems)
    if not isinstance(raw, dict):
        what = "is empty" if raw is None else "must be a mapping of keys such as columns and privacy"
        raise ConfigError(format_problems([*found, Problem("(the whole)", what)], origin=origin))
    raw = copy.deepcopy(raw)
    found += [problem for text in overrides if (problem := apply_override(raw, text))]
    found += _keys_that_are_no_text(raw)
    sha256 = _hash(raw) if not found else ""
    filled: dict[str, str] = {}
    data = _expand(raw, os.environ if env is None else env, filled, found, keys_optional=keys_optional)
    unset = {problem.path for problem in found}
    later: list[Problem] = []
    config = _validate(data, raw, later, keys_optional=keys_optional)
    found += [problem for problem in later if problem.path not in unset]
    if found or config is None:
        found = [_without_secrets(problem, filled) for problem in found]
        raise ConfigError(format_problems(found, origin=origin))
    return LoadedConfig(config, base_dir, sha256, origin, shown_text(raw), raw)


def _hash(raw: dict[str, Any]) -> str:
    """Hash of a configuration. Keys and passwords are left out: a hash would let others test guesses at a weak one."""
    text = json.dumps(_without_keys(raw), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _without_keys(node: Any, above: Location = ()) -> Any:
    if isinstance(node, dict):
        return {key: _without_keys(value, (*above, key)) for key, value in node.items()}
    secret = _is_pseudonym_key(above) or _is_password(above)
    return "" if secret and not _names_a_variable(node) else node


def _names_a_variable(value: object) -> bool:
    return isinstance(value, str) and _VARIABLE.fullmatch(value) is not None


def _is_pseudonym_key(location: Location) -> bool:
    """Whether this is the place of a key: `columns.identifiers.<name>.pseudonym.key`."""
    return len(location) == 5 and location[:2] == ("columns", "identifiers") and location[3:] == ("pseudonym", "key")


def _is_password(location: Location) -> bool:
    """Whether this is the place of a database's password."""
    return len(location) == 3 and location[0] in {"source", "sink"} and location[1:] == ("jdbc", "password")


def _keys_that_are_no_text(node: Any, above: Location = ()) -> list[Problem]:
    if isinstance(node, list):
        return [problem for i, item in enumerate(node) for problem in _keys_that_are_no_text(item, (*above, i))]
    problems = []
    if isinstance(node, dict):
        for key in list(node):
            if isinstance(key, str):
                problems += _keys_that_are_no_text(node[key], (*above, key))
            else:
                text = str(key).lower() if isinstance(key, bool) else str(key)
                message = f"YAML reads the key {text} as a {type(key).__name__}, not as text; put it in quotes"
                problems.append(Problem(path_text(above), message))
                del node[key]
    return problems


def _expand(
    node: Any,
    env: Mapping[str, str],
    filled: dict[str, str],
    problems: list[Problem],
    above: Location = (),
    *,
    keys_optional: bool = False,
) -> Any:
    """Fill in `${NAME}` in text values (never in keys); `$${NAME}` stays as the text `${NAME}`."""

    def inner(value: Any, part: str | int) -> Any:
        return _expand(value, env, filled, problems, (*above, part), keys_optional=keys_optional)

    if isinstance(node, dict):
        return {key: inner(value, key) for key, value in node.items()}
    if isinstance(node, list):
        return [inner(value, index) for index, value in enumerate(node)]
    if not isinstance(node, str):
        return node
    unset = [name for escaped, name in _VARIABLE.findall(node) if not escaped and name not in env]
    if unset and keys_optional and _is_pseudonym_key(above):
        return ""  # the key is not known here

    def fill(match: re.Match[str]) -> str:
        escaped, name = match.groups()
        if escaped:
            return match.group()[1:]
        if name not in env:
            problems.append(Problem(path_text(above), f"the environment variable {name} is not set"))
            return "unset"
        return env[name]

    text = _VARIABLE.sub(fill, node)
    if text != node:
        filled[text] = node
    return text


def literal(text: str) -> str:
    """A text for a configuration in which nothing is filled in: it reads as it stands, `${NAME}` and all.

    >>> literal("data/${x}")
    'data/$${x}'
    """
    return _VARIABLE.sub(lambda match: "$" + match.group(), text)


def _without_secrets(problem: Problem, filled: Mapping[str, str]) -> Problem:
    """Put `${NAME}` back where its value found its way into a path or message (a column's name, say)."""
    path, message = problem.path, problem.message
    for value, text in filled.items():
        if len(value) > 3:  # shorter ones are no secrets, and occur by chance
            path, message = path.replace(value, text), message.replace(value, text)
    return replace(problem, path=path, message=message)


def _validate(
    data: dict[str, Any], raw: dict[str, Any], problems: list[Problem], *, keys_optional: bool
) -> Config | None:
    """The configuration, or None; all problems are added to the list.

    Rules that span sections need a well-formed configuration. So that one misspelt key does not hide them, whatever the
    models refuse is cut out, and the rules are checked on the rest.
    """
    broken: list[Location] = []
    rest: Any = copy.deepcopy(data)
    while True:
        try:
            config = Config.model_validate(rest, context={KEYS_OPTIONAL: keys_optional})
            break
        except ValidationError as invalid:
            errors = invalid.errors(include_url=False, include_input=False)
            fresh = [error for error in errors if not _known(error["loc"], broken)]
            problems += [problem_from(error, raw, Config) for error in fresh]
            broken += [error["loc"] for error in fresh]
            if not all([_cut(rest, error["loc"]) for error in errors]):
                return None
    said = [path_text(location) for location in broken]
    for problem in rule_problems(config):
        if not any(problem.path == path or problem.path.startswith((f"{path}.", f"{path}[")) for path in said):
            problems.append(problem)
    return config if not broken else None


def _known(location: Location, broken: list[Location]) -> bool:
    """Whether an error only follows from an earlier cut at or below its place."""
    return any(earlier[: len(location)] == location for earlier in broken)


def _cut(node: Any, location: Location) -> bool:
    """Remove what stands deepest on the way to a location; False where nothing does."""
    holder, key = None, None
    for part in location:
        inside = isinstance(node, dict) and part in node
        if not inside and not (isinstance(node, list) and isinstance(part, int) and part < len(node)):
            break
        holder, key, node = node, part, node[part]
    if holder is None:
        return False
    del holder[key]
    return True


def config_from_kwargs(**kwargs: Any) -> LoadedConfig:
    """The configuration that keyword arguments describe (see `kanon_spark.config.kwargs`)."""
    from kanon_spark.config.kwargs import config_from_kwargs as build

    return build(**kwargs)
