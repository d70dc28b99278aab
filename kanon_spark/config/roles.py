"""Which column of a table plays which role."""

from collections.abc import Sequence
from dataclasses import dataclass

from kanon_spark.config.models import Config


@dataclass(frozen=True)
class Roles:
    """The columns of one table by role, each in the table's order (quasi-identifiers in the configuration's).

    Attributes:
        quasi_identifiers: Generalized.
        kept: Published unchanged: sensitive columns, and the others where `other: keep`.
        pseudonyms: Identifiers that are published as pseudonyms (the unit may be one of them).
        dropped: Other identifiers, the unit, the column of each person's own k unless it has another role, and the
            others where `other: drop`.
        missing: Named in the configuration, but not in the table.
        without_role: Neither named nor covered by `other`; a run refuses them.
    """

    quasi_identifiers: tuple[str, ...]
    kept: tuple[str, ...]
    pseudonyms: tuple[str, ...]
    dropped: tuple[str, ...]
    missing: tuple[str, ...]
    without_role: tuple[str, ...]


def assign_roles(config: Config, columns: Sequence[str]) -> Roles:
    """Give each column of a table its role.

    >>> columns = {"quasi_identifiers": ["age"], "sensitive": ["ill"], "other": "drop"}
    >>> config = Config.model_validate({"columns": columns})
    >>> assign_roles(config, ["ill", "age", "note"]).dropped
    ('note',)
    """
    named = config.columns
    unit = config.privacy.unit
    wishes = config.privacy.personal_k.column if config.privacy.personal_k is not None else None
    hidden = {*named.identifiers, *filter(None, [unit])}
    if wishes is not None and wishes not in {*named.quasi_identifiers, *named.sensitive}:
        hidden.add(wishes)
    others = [name for name in columns if name not in {*hidden, *named.quasi_identifiers, *named.sensitive}]
    kept = {*named.sensitive, *(others if named.other == "keep" else ())}
    pseudonyms = {name for name, spec in named.identifiers.items() if spec.pseudonym is not None}
    dropped = {*hidden, *(others if named.other == "drop" else ())} - pseudonyms
    wanted = dict.fromkeys(
        [
            *named.identifiers,
            *named.quasi_identifiers,
            *named.sensitive,
            *filter(None, [unit, wishes, config.method.label, config.method.target]),
        ]
    )
    return Roles(
        quasi_identifiers=tuple(named.quasi_identifiers),
        kept=tuple(name for name in columns if name in kept),
        pseudonyms=tuple(name for name in columns if name in pseudonyms),
        dropped=tuple(name for name in columns if name in dropped),
        missing=tuple(name for name in wanted if name not in columns),
        without_role=tuple(others) if named.other == "error" else (),
    )
