"""What all configuration models share: frozen, no unknown keys, and number types that refuse YAML's booleans."""

from typing import Annotated, NoReturn

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

# Why a text that was meant may not be one.
QUOTES = "put it in quotes (YAML reads no, yes, 1, 2020-01-01 as other things)"


class Spec(BaseModel):
    """Base of all models: what was read cannot be changed, and a misspelt key is an error, never ignored."""

    # Inputs may be secrets, and pydantic would show them in its errors.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, hide_input_in_errors=True)


def refuse(message: str) -> NoReturn:
    """Reject the value under validation. The message must not hold values: they are shown as they stand in the file."""
    # Braces would be read as placeholders by pydantic.
    raise PydanticCustomError("rule", "{text}", {"text": message})


def _no_boolean(value: object) -> object:
    if isinstance(value, bool):
        refuse("a number is expected, not true or false")
    return value


def short_form(key: str, *kinds: type) -> BeforeValidator:
    """Let a bare value of the given kinds stand for a mapping with that one key, as in `method: lattice`."""

    def widen(value: object) -> object:
        return {key: value} if isinstance(value, kinds) and not isinstance(value, bool) else value

    return BeforeValidator(widen)


def named(kind: str) -> BeforeValidator:
    """Let a list of column names stand for a mapping of names to empty specifications."""

    def widen(value: object) -> object:
        if isinstance(value, list | tuple):
            for item in value:
                if not isinstance(item, str):
                    refuse(f"each {kind} must be a column's name as text; {QUOTES}")
            if len(set(value)) < len(value):
                refuse("a column stands here twice")
            return {item: {} for item in value}
        if isinstance(value, dict):
            return {name: {} if spec is None else spec for name, spec in value.items()}
        refuse("a list or a mapping of column names is expected")

    return BeforeValidator(widen)


def option_text(value: object) -> object:
    """Spark takes options as text; YAML gives booleans and numbers."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


ColumnName = Annotated[str, Field(min_length=1)]
Text = Annotated[str, Field(min_length=1)]
# Stands last in an annotation: bounds that came after it would be missing from the JSON Schema.
NO_BOOLEAN = BeforeValidator(_no_boolean)
Whole = Annotated[int, NO_BOOLEAN]
Number = Annotated[float, NO_BOOLEAN]
Share = Annotated[float, Field(ge=0, le=1), NO_BOOLEAN]
OptionText = Annotated[str, BeforeValidator(option_text)]
