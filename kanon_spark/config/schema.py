"""The JSON Schema of a configuration file, for editors: the models' own schema and the short forms of YAML."""

from typing import Any

from kanon_spark.config.hierarchy_specs import BUILDERS
from kanon_spark.config.models import Config
from kanon_spark.config.reference_files import REFERENCES

# Models that a bare number may stand for, as in `l_diversity: 3`.
_NUMBER_FORMS = ("LDiversitySpec", "TClosenessSpec", "AlphaSpec", "BetaSpec")
# And those that a bare text may stand for, as in `personal_k: wish`.
_TEXT_FORMS = ("PersonalKSpec",)


def config_schema() -> dict[str, Any]:
    """The schema, ready for `json.dumps`.

    >>> config_schema()["title"]
    'kanon_spark configuration'
    """
    schema = Config.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "kanon_spark configuration"
    definitions = schema["$defs"]
    for name in ("QiSpec", "SensitiveSpec"):
        definitions[name]["properties"]["hierarchy"] = {"$ref": "#/$defs/Hierarchy"}
    for name in ("source", "sink"):
        schema["properties"][name]["anyOf"].insert(0, {"type": "string", "description": "the path alone"})
    schema["properties"]["method"] = {
        "anyOf": [definitions["MethodSpec"]["properties"]["name"], {"$ref": "#/$defs/MethodSpec"}],
        "default": "auto",
    }
    columns = definitions["ColumnsSpec"]["properties"]
    for role, model in (
        ("identifiers", "IdentifierSpec"),
        ("quasi_identifiers", "QiSpec"),
        ("sensitive", "SensitiveSpec"),
    ):
        columns[role] = {"anyOf": [_name_list(), _by_name(model, path_alone=role == "quasi_identifiers")]}
    for name in _NUMBER_FORMS:
        definitions[name] = {"anyOf": [{"type": "number"}, definitions[name]]}
    for name in _TEXT_FORMS:
        definitions[name] = {"anyOf": [{"type": "string", "minLength": 1}, definitions[name]]}
    for name in ("SourceSpec", "JdbcSpec"):
        values = {"type": ["string", "number", "boolean"]}
        definitions[name]["properties"]["options"]["additionalProperties"] = values
    definitions["Hierarchy"] = _hierarchy()
    return schema


def _name_list() -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string", "minLength": 1}, "uniqueItems": True}


def _by_name(model: str, *, path_alone: bool) -> dict[str, Any]:
    forms: list[dict[str, Any]] = [{"$ref": f"#/$defs/{model}"}, {"type": "null"}]
    if path_alone:
        forms.append({"type": "string", "description": "the hierarchy alone: path of a CSV file, or flat"})
    return {"type": "object", "additionalProperties": {"anyOf": forms}}


def _hierarchy() -> dict[str, Any]:
    builders: dict[str, Any] = {name: {"$ref": f"#/$defs/{model.__name__}"} for name, model in BUILDERS.items()}
    builders["csv"] = {"anyOf": [{"type": "string"}, builders["csv"]]}
    names = {"type": "string", "enum": sorted(REFERENCES)}
    builders["reference"] = {"anyOf": [names, builders["reference"]]}
    builders["flat"] = {"anyOf": [builders["flat"], {"type": "null"}]}
    return {
        "description": "path of a CSV file (leaf;level1;…;*), flat, or one builder with its settings",
        "anyOf": [
            {"type": "null"},
            {"type": "string", "minLength": 1},
            {
                "type": "object",
                "properties": builders,
                "minProperties": 1,
                "maxProperties": 1,
                "additionalProperties": False,
            },
        ],
    }
