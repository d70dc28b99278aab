"""Pseudonyms in the configuration: the key, and what is said about a release that carries them."""

from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo, WithJsonSchema

from kanon_spark.config.base import Spec, refuse

LEAST_KEY_BYTES = 16
KEYS_OPTIONAL = "keys optional"  # in the validation context: a key may be empty, which means that it is not known


def _long_enough(value: str, info: ValidationInfo) -> str:
    if not value and info.context and info.context.get(KEYS_OPTIONAL):
        return value
    try:
        size = len(value.encode("utf-8"))
    except UnicodeEncodeError:
        refuse("the key must be text in UTF-8")
    if size < LEAST_KEY_BYTES:
        refuse(
            f"the key has {size} bytes and needs at least {LEAST_KEY_BYTES}: whoever guesses it can undo every "
            "pseudonym; make one with `openssl rand -hex 32`"
        )
    return value


# The length of a key is that of its value, and an editor sees "${NAME}" only: the schema asks for some text.
_SCHEMA = WithJsonSchema({"type": "string", "minLength": 1})
Key = Annotated[str, AfterValidator(_long_enough), _SCHEMA, Field(repr=False)]


class PseudonymSpec(Spec):
    """A keyed pseudonym in place of an identifier."""

    key: Key
    stable: bool = False

    @property
    def key_bytes(self) -> bytes | None:
        """The key; None where a configuration was loaded without it."""
        return self.key.encode("utf-8") if self.key else None

    def salt(self, run_id: str) -> str:
        """What makes the pseudonyms of one run differ from those of the next; nothing where they are stable."""
        return "" if self.stable else run_id


def stable_warning(name: str) -> str:
    """What a stable pseudonym means for its readers."""
    return (
        f"The pseudonym of '{name}' is stable: releases with the same key can be linked by it, person by person, and "
        "what is k-anonymous in each need not be in all of them together."
    )


def repeated_text(name: str, repeated: int) -> tuple[str, str]:
    """What is wrong where ids repeat, and what to do about it."""
    return (
        f"{repeated:,} ids of '{name}' stand in several rows: one pseudonym would link the rows of a person, and what "
        "is k-anonymous row by row is not when rows can be put together",
        f"drop '{name}' (write it without a pseudonym), publish one row per person, or pseudonymize a column that "
        "differs in every row; a value that means 'unknown' must be null",
    )
