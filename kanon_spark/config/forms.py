"""Models back to the forms a person would write in YAML: defaults left out, short forms where nothing is lost."""

from pathlib import PurePath

from pydantic import BaseModel

from kanon_spark.config.hierarchy_specs import BUILDERS, CsvSpec, FlatSpec, ReferenceSpec, builder_name
from kanon_spark.config.models import IdentifierSpec, SensitiveSpec, SourceSpec, format_of


def to_form(spec: BaseModel) -> dict[str, object]:
    """A model as a mapping of the keys that differ from their defaults."""
    form: dict[str, object] = {}
    for name, field in type(spec).model_fields.items():
        value = getattr(spec, name)
        if value != field.get_default(call_default_factory=True):
            form[name] = plain(value)
    if isinstance(spec, SourceSpec) and spec.path is not None and spec.format == format_of(spec.path):
        del form["format"]
    return form


def plain(value: object) -> object:
    """Any value that may stand in a configuration, as YAML would give it."""
    if isinstance(value, BaseModel):
        return _hierarchy(value) if type(value) in BUILDERS.values() else to_form(value)
    if isinstance(value, dict):
        specs = [item for item in value.values() if isinstance(item, IdentifierSpec | SensitiveSpec)]
        if specs and len(specs) == len(value) and not any(to_form(item) for item in specs):
            return list(value)
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def _hierarchy(spec: BaseModel) -> object:
    form = to_form(spec)
    if isinstance(spec, FlatSpec):
        return "flat"
    if isinstance(spec, CsvSpec) and list(form) == ["path"] and spec.path != "flat":
        return spec.path
    if isinstance(spec, ReferenceSpec) and list(form) == ["name"]:
        return {"reference": spec.name}
    return {builder_name(spec): form}  # type: ignore[arg-type]
