"""JSON Schemas of the documents, made from the declared keys and the catalogue of configs.

They serve editors: every YAML language server reads draft-07, and each key has a description. A
schema is a little more lenient than `reconciler validate`: it marks no valid document as wrong.
"""

from __future__ import annotations

from typing import Any

from reconciler.spec.catalogue import (
    LINES,
    ConfigKey,
    ConfigType,
    every_key,
    lines_that_know,
    spell_line,
)
from reconciler.spec.client_properties import PROPERTIES
from reconciler.spec.config_docs import Dimension
from reconciler.spec.configs import choose_catalogue
from reconciler.spec.declarations import Form, Forms, Key, list_keys
from reconciler.spec.fields import Kind, Schema
from reconciler.spec.forms import ClustersDocument, ExemptionForm, Override, TopicDocument
from reconciler.spec.keys import CLIENT, CONFIG
from reconciler.spec.scalars import RECORD_FORMAT, limits

_DRAFT = "http://json-schema.org/draft-07/schema#"
_NULL: Schema = {"type": "null"}
_DECIMAL = r"^\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"
_LEAST_LISTED = -9
"""Ranges from this number on list their negative numbers one by one: patterns cannot compare."""
_UNITS = {
    Dimension.DURATION: ("(ms|s|m|min|h|d|w)", ["7d", "12h", "30min"]),
    Dimension.SIZE: ("(B|KiB|MiB|GiB|TiB)", ["1GiB", "512MiB"]),
}


def build_topic_schema() -> Schema:
    """Return the schema of a topic document."""
    return build_schema(TopicDocument, "A Kafka topic")


def build_clusters_schema() -> Schema:
    """Return the schema of clusters.yaml."""
    return build_schema(ClustersDocument, "The clusters of an estate")


def build_baseline_schema() -> Schema:
    """Return the schema of an entry of policy-baseline.yaml."""
    return build_schema(ExemptionForm, "An exemption from the policy of an estate")


def build_schema(declared: type[Any], title: str) -> Schema:
    """Return a form's schema with its definitions, in the form that editors read best."""
    defs: dict[str, Schema] = {}
    root = _build_form(declared, defs)
    return {"$schema": _DRAFT, "title": title, **root, "$defs": dict(sorted(defs.items()))}


def _build_form(declared: type[Any], defs: dict[str, Schema]) -> Schema:
    """Return the schema of a form; the schemas of the forms below it go into `defs`."""
    keys = {name: key for name, (_, key) in list_keys(declared).items()}
    properties = {name: _build_key(key, defs) for name, key in keys.items()}
    required = [name for name, key in keys.items() if key.required]
    return {
        "type": "object",
        "description": declared.__doc__,
        "properties": properties,
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def _build_key(key: Key, defs: dict[str, Schema]) -> Schema:
    default = {} if key.default is None else {"default": key.default}
    return {"description": key.says, **_build_value(key.value, defs), **default}


def _build_value(value: Kind[Any] | Form | Forms, defs: dict[str, Schema]) -> Schema:
    match value:
        case Kind(schema={"$ref": reference}):
            defs[reference.rpartition("/")[2]] = _SHARED[reference]()
            return {"allOf": [{"$ref": reference}]}
        case Kind():
            return value.schema
        case Form(declared):  # a draft-07 reader ignores all keys next to $ref
            return {"allOf": [_refer(declared, defs)]}
        case Forms(names, declared):
            below = {names.schema["pattern"]: _refer(declared, defs)}
            return {"type": "object", "patternProperties": below, "additionalProperties": False}


def _refer(declared: type[Any], defs: dict[str, Schema]) -> Schema:
    name = declared.__name__
    if name not in defs:
        defs[name] = _build_form(declared, defs)
        if declared is Override:
            defs[name]["minProperties"] = 1
    return {"$ref": f"#/$defs/{name}"}


def _build_config() -> Schema:
    newest = choose_catalogue(None)
    # A key is offered if any release line lets a spec set it.
    settable = {n for line in LINES for n in choose_catalogue(spell_line(line)).settable}
    keys = {name: key for name, key in every_key().items() if name in settable}
    # A config of a service mostly begins with a word of its own: redpanda.remote.read. A name that
    # begins like one of Kafka's, or goes on like one, is more likely a typo, which editors are to
    # show: retention.mss, retenton.ms.
    words = [name.replace(".", r"\.").partition(r"\.") for name in keys if "." in name]
    begun = "|".join(sorted({first for first, _, _ in words}))
    ended = "|".join(sorted({others for _, _, others in words}))
    return {
        "type": "object",
        "description": "Topic configs. null removes an inherited key, and a key of a service from "
        "the topic.",
        "properties": {
            name: {
                "description": _describe(key),
                **_build_config_value(key, newest.dimension(name)),
            }
            for name, key in keys.items()
        },
        "patternProperties": {
            rf"^(?!(?:{begun})\.)[a-z0-9_-]+\.(?!(?:{ended})$)": {
                "type": ["string", "number", "boolean", "null"],
                "description": "A config of a service, as known_configs of its clusters lists it.",
            }
        },
        "additionalProperties": False,
    }


def _describe(key: ConfigKey) -> str:
    """Return the description of a config, its default, and the releases that know it."""
    said = [choose_catalogue(None).describe(key.name)]
    if key.default is not None:
        said.append(f"Default: {key.default or 'empty'}.")
    known = lines_that_know(key.name)
    if known[0] > LINES[0]:
        said.append(f"From Kafka {spell_line(known[0])} on.")
    if known[-1] < LINES[-1]:
        said.append(f"Up to Kafka {spell_line(known[-1])}.")
    return " ".join(filter(None, said))


def _build_config_value(key: ConfigKey, dimension: Dimension | None) -> Schema:
    """Return the schema of a config value: plain, quoted, or null."""
    match key.type:
        case ConfigType.BOOLEAN:
            return {"enum": [True, False, "true", "false", None]}
        case ConfigType.STRING if key.name == RECORD_FORMAT:
            release = {"type": ["string", "number"], "pattern": r"^[0-9]+\.[0-9]"}
            return {"anyOf": [{"enum": [*key.choices, None]}, release]}
        case ConfigType.STRING if key.choices:
            return {"enum": [*key.choices, None]}
        case ConfigType.LIST if key.choices:
            return _build_list(key.choices)
        case ConfigType.INT | ConfigType.LONG:
            return _build_number(key, dimension)
        case ConfigType.DOUBLE:
            numbers = {"type": "number", "minimum": key.minimum, "maximum": key.maximum}
            return {"anyOf": [numbers, {"type": "string", "pattern": _DECIMAL}, _NULL]}
        case _:
            return {"type": ["string", "null"]}


def _build_list(choices: tuple[str, ...]) -> Schema:
    word = f"({'|'.join(choices)})"
    return {
        "anyOf": [
            {"enum": [*choices, None]},
            {"type": "array", "items": {"enum": list(choices)}},
            {"type": "string", "pattern": rf"^\s*({word}(\s*,\s*{word})*)?\s*$"},
        ]
    }


def _build_number(key: ConfigKey, dimension: Dimension | None) -> Schema:
    least, most = limits(key)
    branches: list[Schema] = [{"type": "integer", "minimum": least, "maximum": most}]
    if key.also:
        branches.append({"enum": list(key.also)})
    unit, examples = _UNITS.get(dimension, ("", [])) if dimension else ("", [])
    suffix = rf"(\s*{unit})?" if unit else ""
    below = [*range(least, 0), *key.also] if least >= _LEAST_LISTED else [r"-[0-9]{1,19}"]
    forms = "|".join([rf"[0-9]{{1,{len(str(most))}}}{suffix}", *map(str, below)])
    branches.append({"type": "string", "pattern": f"^({forms})$"})
    schema: Schema = {"anyOf": [*branches, _NULL]}
    return {**schema, "examples": examples} if examples else schema


def _build_client() -> Schema:
    return {
        "type": "object",
        "description": "Properties of librdkafka, and aws.* for Amazon MSK; "
        "secrets as ${env:NAME} or ${file:/path}.",
        "properties": {name: values.schema for name, values in sorted(PROPERTIES.items())},
        "additionalProperties": False,
    }


_SHARED = {CONFIG.schema["$ref"]: _build_config, CLIENT.schema["$ref"]: _build_client}
