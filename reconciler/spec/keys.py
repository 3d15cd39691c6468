"""The value of each key: its reader, and its JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from reconciler.model.cluster import INTERNAL_TOPICS, Assignment
from reconciler.model.moves import MoveKind
from reconciler.spec import fields
from reconciler.spec.acknowledgements import Acknowledged, build_schema, read_acknowledged
from reconciler.spec.assignment import MOST_BROKER_ID, MOST_PARTITIONS, read_assignment
from reconciler.spec.client import read_client
from reconciler.spec.fields import (
    FieldError,
    Read,
    ReadNamed,
    WrittenConfig,
    field_error,
    read_settings,
)
from reconciler.spec.names import NAME_PATTERN, check_length, check_name
from reconciler.spec.owners import OWNER_PATTERN, check_owner, check_spellings
from reconciler.spec.values import (
    YamlList,
    YamlMap,
    YamlText,
    YamlValue,
    describe_yaml,
    quote,
    show,
)
from reconciler.units import DURATION, SIZE, Scale, UnitError, name_unit, parse_duration, parse_size

MOST_REPLICAS = 32_767
MOST_CAPACITY = 1_000_000
PLACEMENTS = ("optimal", "striped")
KEY_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
CLUSTER_PATTERN = (
    rf"^(?!.*-([Pp][Ll][Aa][Nn]|[Dd][Rr][Ii][Ff][Tt])$){KEY_PATTERN.removeprefix('^')}"
)
"""The names of clusters for editors: no environment of another cluster in a workflow has them."""
MOST_DELETES = 10_000
MOST_FACTOR = 1_000
MOST_AT_ONCE = 10_000
MOST_LIMIT = 1_000_000
MOST_BYTES = 2**63 - 1
MOVE_KINDS = tuple(MoveKind)
MOST_STAGES = 5
"""The number of stages in apply.yml: jobs of GitHub depend on other jobs by name."""
UNLIMITED = "unlimited"
_PERCENT = re.compile(r"([0-9]{1,3})%")
_VERSION = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}(\.[0-9]{1,3})?")


def _read_partitions(value: YamlValue, name: str) -> int | None:
    return None if _is_null(value) else fields.read_count(value, name, 1, MOST_PARTITIONS)


def _read_replication(value: YamlValue, name: str) -> int | None:
    if isinstance(value, YamlText) and value == "-1" and not value.quoted:
        what = f"{name} -1 leaves the number to the broker"
        raise field_error("value-range", value.where, what, "write it, or leave the key out")
    return None if _is_null(value) else fields.read_count(value, name, 1, MOST_REPLICAS)


def _read_assignment(value: YamlValue) -> Assignment | None:
    return None if _is_null(value) else read_assignment(value)


def _is_null(value: YamlValue) -> bool:
    """Return whether an inherited value is removed here."""
    return isinstance(value, YamlText) and value.is_null


def _read_topic(value: YamlValue) -> YamlText:
    name = fields.read_text(value, "topic", empty=True)
    if findings := check_length(name, name.where):
        raise FieldError(findings)  # before any pattern is matched against megabytes
    return name


def _read_factor(value: YamlValue, name: str) -> int:
    """Read the largest divisor of one step: true is 2, false is 0 and means no steps."""
    if isinstance(value, YamlText) and value.tag in {"int", "float"}:
        return fields.read_count(value, name, 2, MOST_FACTOR)
    return 2 if fields.read_flag(value, name) else 0


def _read_owned(value: YamlValue) -> tuple[YamlText, ...]:
    patterns = fields.read_patterns(value, "owns")
    if not patterns:
        way_out = "write a name or a pattern, or leave the key out for all topics"
        raise field_error("value-missing", value.where, "owns names no topic", way_out)
    return patterns


def _read_owner(value: YamlValue, name: str) -> YamlText:
    text = fields.read_text(value, name)
    if findings := check_owner(text, text.where):
        raise FieldError(findings)
    return text


def _read_owners(value: YamlValue) -> tuple[YamlText, ...]:
    texts = fields.read_texts(value, "owners")
    if not texts:
        way_out = "name one, or leave the key out: then a topic may name any owner"
        raise field_error("value-missing", value.where, "owners names no owner", way_out)
    owners = tuple(fields.read_each(texts, lambda text: _read_owner(text, "owners: item")))
    if findings := list(check_spellings(owners)):
        raise FieldError(findings)
    return owners


def _read_clusters(value: YamlValue) -> tuple[YamlText, ...]:
    names = fields.read_texts(value, "clusters")
    if not names:
        way_out = "name one, or leave the key out for every cluster"
        raise field_error("cluster-none", value.where, "clusters names no cluster", way_out)
    return names


def _read_stages(value: YamlValue) -> tuple[tuple[YamlText, ...], ...]:
    """Read a list of lists of clusters. Errors: FieldError, with the findings of every stage."""
    fields.require_value(value, "stages")
    if not isinstance(value, YamlList):
        what = f"stages is {describe_yaml(value)}, not a list of lists"
        raise field_error("value-form", value.where, what, "write stages: [[one], [two, three]]")
    if not value:
        way_out = "write one, or leave the key out: then all clusters are one stage"
        raise field_error("value-missing", value.where, "stages holds no stage", way_out)
    numbered = enumerate(value, start=1)
    return tuple(fields.read_each(numbered, lambda item: _read_stage(item[1], f"stage {item[0]}")))


def _read_stage(value: YamlValue, name: str) -> tuple[YamlText, ...]:
    if isinstance(value, YamlText) and value.tag == "str":
        what = f"{name} is {describe_yaml(value)}, not a list"
        raise field_error("value-form", value.where, what, f"write [{show(value)}]")
    if not isinstance(value, YamlList):
        what = f"{name} is {describe_yaml(value)}, not a list"
        raise field_error("value-form", value.where, what, "write the clusters in it: [one, two]")
    if not value:
        what, way_out = f"{name} names no cluster", "name one, or remove the stage"
        raise field_error("value-missing", value.where, what, way_out)
    return tuple(fields.read_each(value, lambda item: fields.read_text(item, f"{name}: item")))


def _read_state(value: YamlValue) -> str:
    return fields.read_choice(value, "state", ("present", "absent"))


def _read_brokers(value: YamlValue, name: str) -> tuple[int, ...]:
    return fields.read_counts(value, name, 0, MOST_BROKER_ID)


def _read_strategy(value: YamlValue) -> str:
    return fields.read_choice(value, "strategy", PLACEMENTS)


def _read_guards_from(value: YamlValue) -> bool:
    return fields.read_choice(value, "from", ("base", "request")) == "base"


def _read_capacity(value: YamlValue) -> Mapping[int, int]:
    """Read the capacity of each broker, by id."""
    fields.require_value(value, "capacity")
    if not isinstance(value, YamlMap):
        what = f"capacity is {describe_yaml(value)}, not a map of broker ids"
        raise field_error("value-form", value.where, what, "write capacity: {7: 2}")
    read = fields.read_count
    name = "capacity of a broker"
    return {
        read(broker, "broker id", 0, MOST_BROKER_ID): read(much, name, 1, MOST_CAPACITY)
        for broker, much in value.entries()
    }


def _read_share(value: YamlValue, name: str) -> int:
    """Read a share, written as `30%`. Returns percent."""
    fields.require_value(value, name)
    found = _PERCENT.fullmatch(value) if isinstance(value, YamlText) else None
    if found is None or int(found[1]) > 100:
        what = f"{name} is {describe_yaml(value)}, not a share"
        meant = f"{value}%" if _PERCENT.fullmatch(f"{value}%") and int(str(value)) <= 100 else "30%"
        raise field_error("value-form", value.where, what, f"write {name}: {meant}")
    return int(found[1])


def _read_deletes(value: YamlValue, name: str) -> int:
    return fields.read_count(value, name, 0, MOST_DELETES)


def _read_duration(value: YamlValue, name: str) -> int:
    """Read a duration, written as `7d`. Returns milliseconds."""
    _require_unit(value, name, DURATION)
    text = fields.read_text(value, name)
    try:
        return parse_duration(text)
    except UnitError as error:
        raise field_error(
            "config-unit", text.where, f"{name}: {error.what}", error.way_out
        ) from error


def _require_unit(value: YamlValue, name: str, scale: Scale) -> None:
    if not isinstance(value, YamlText) or value.tag != "int":
        return
    what = f"{name} {quote(value)} has no unit"
    is_decimal = value.removeprefix("-").isdigit() and len(value) < 20
    way_out = name_unit(int(value) if is_decimal else 0, scale)
    raise field_error("config-unit", value.where, what, way_out)


def _read_move_kinds(value: YamlValue, name: str) -> frozenset[MoveKind]:
    """Read the kinds of moves that a cluster allows: at least one."""
    texts = fields.read_texts(value, name)
    if not texts:
        way_out = f"write {name}: [{', '.join(MOVE_KINDS)}], or leave moves out"
        raise field_error("value-missing", value.where, f"{name} names no kind of move", way_out)
    kinds = fields.read_each(texts, lambda text: fields.read_choice(text, name, MOVE_KINDS))
    return frozenset(map(MoveKind, kinds))


def _read_rate(value: YamlValue, name: str) -> int | None:
    """Read a rate, written as `30MiB`. Units: bytes per second; None is `unlimited`."""
    if isinstance(value, YamlText) and value == UNLIMITED:
        return None
    if isinstance(value, YamlText) and value.endswith("/s"):
        what = f"{name} {quote(value)} names a second, and every rate is per second"
        amount = value.removesuffix("/s")
        try:
            parse_size(amount)
        except UnitError as error:
            raise field_error("config-unit", value.where, what, error.way_out) from error
        raise field_error("config-unit", value.where, what, f"write {amount}")
    rate = _read_size(value, name)
    if rate == 0:
        what = f"{name} {value} lets no replica move"
        way_out = f"write a rate such as 30MiB, or {UNLIMITED}"
        raise field_error("value-range", value.where, what, way_out)
    return rate


def _read_size(value: YamlValue, name: str) -> int:
    """Read a size, written as `2TiB`. Returns bytes."""
    _require_unit(value, name, SIZE)
    text = fields.read_text(value, name)
    try:
        size = parse_size(text)
    except UnitError as error:
        raise field_error(
            "config-unit", text.where, f"{name}: {error.what}", error.way_out
        ) from error
    if size > MOST_BYTES:
        what = f"{name} {quote(text)} is out of range"
        raise field_error("value-range", text.where, what, "write less than 8388608TiB")
    return size


def _read_at_once(value: YamlValue, name: str) -> int:
    return fields.read_count(value, name, 1, MOST_AT_ONCE)


def _read_replicas(value: YamlValue, name: str) -> int:
    return fields.read_count(value, name, 1, MOST_REPLICAS)


def _read_limit(value: YamlValue, name: str) -> int:
    return fields.read_count(value, name, 1, MOST_LIMIT)


def _read_format(value: YamlValue) -> int:
    version = fields.read_count(value, "version", 1, 1_000)
    if version != 1:
        what = f"version {version} is of a newer reconciler than this one"
        raise field_error("value-range", value.where, what, "write version: 1, or update it")
    return version


def _read_key(value: YamlValue) -> str:
    """Read the name of a cluster or a profile, which is a key."""
    if isinstance(value, YamlText) and not re.fullmatch(KEY_PATTERN, value):
        what = f"the name {quote(value)} is more than letters, digits, '.', '_' and '-'"
        raise field_error("key-form", value.where, what, "choose another name")
    return str(value)


def _read_cluster_id(value: YamlValue) -> YamlText:
    text = fields.read_text(value, "cluster_id")
    if not text.isprintable() or any(character.isspace() for character in text):
        what = f"cluster_id {quote(text)} is not a cluster id"
        way_out = "write the id that the cluster reports, such as 5L6g3nShT-eMCtK--X86sw"
        raise field_error("cluster-id-form", text.where, what, way_out)
    return text


def _read_audit_topic(value: YamlValue) -> YamlText:
    name = fields.read_text(value, "audit_topic")
    if findings := check_name(name, name.where):
        raise FieldError(findings)
    return name


def _read_version(value: YamlValue) -> YamlText:
    fields.require_value(value, "kafka_version")
    if isinstance(value, YamlText) and _VERSION.fullmatch(value):
        if value.tag == "str":
            return value
        what = f"kafka_version {value} without quotes is a number, which makes 4.10 and 4.1 one"
        raise field_error("kafka-version-form", value.where, what, f'write "{value}"')
    shown = describe_yaml(value)
    what = f"kafka_version is {shown}, not a version"
    raise field_error("kafka-version-form", value.where, what, 'write one such as "4.1"')


_POSITIVE = {"type": "integer", "minimum": 1}
_WORDS = {"type": "string", "minLength": 1, "pattern": r"\S"}
_TEXTS = {"type": "array", "items": _WORDS, "uniqueItems": True}
_PATTERNS = {
    "type": "array",
    "items": {**_WORDS, "maxLength": fields.MOST_CHARACTERS},
    "uniqueItems": True,
}
_NAME = {"type": "string", "pattern": NAME_PATTERN, "not": {"enum": [".", "..", *INTERNAL_TOPICS]}}
_OWNER = {"type": "string", "pattern": OWNER_PATTERN}
_BROKER = {"type": "integer", "minimum": 0, "maximum": MOST_BROKER_ID}
_BROKER_KEY = (
    "^(0|[1-9][0-9]{0,8}|1[0-9]{9}|20[0-9]{8}|21[0-3][0-9]{7}|214[0-6][0-9]{6}|2147[0-3][0-9]{5}"
    "|21474[0-7][0-9]{4}|214748[0-2][0-9]{3}|2147483[0-5][0-9]{2}|21474836[0-3][0-9]"
    "|214748364[0-7])$"
)
"""Numbers up to MOST_BROKER_ID, as a key: patterns cannot compare."""
_ROW = {"type": "array", "items": _BROKER, "minItems": 1, "uniqueItems": True}
_ROWS = {
    "anyOf": [
        {"type": "array", "items": _ROW, "minItems": 1, "maxItems": MOST_PARTITIONS},
        {
            "type": "object",
            "patternProperties": {"^(0|[1-9][0-9]{0,4})$": _ROW},
            "minProperties": 1,
        },
        {"type": "null"},
    ]
}
# Filled in by json_schema, from what is known besides the models.
DEFINED_ELSEWHERE = "defined-elsewhere"
_CONFIG: dict[str, Any] = {DEFINED_ELSEWHERE: "Config"}
_CLIENT: dict[str, Any] = {DEFINED_ELSEWHERE: "Client"}

Partitions = Annotated[
    int | None,
    ReadNamed(
        _read_partitions, {"type": ["integer", "null"], "minimum": 1, "maximum": MOST_PARTITIONS}
    ),
]
Replication = Annotated[
    int | None,
    ReadNamed(
        _read_replication, {"type": ["integer", "null"], "minimum": 1, "maximum": MOST_REPLICAS}
    ),
]
Rows = Annotated[Assignment | None, Read(_read_assignment, _ROWS)]
TopicName = Annotated[
    YamlText,
    Read(_read_topic, _NAME),
]
Words = Annotated[YamlText, ReadNamed(fields.read_text, _WORDS)]
Flag = Annotated[bool, ReadNamed(fields.read_flag, {"type": "boolean"})]
Factor = Annotated[
    int,
    ReadNamed(
        _read_factor,
        {"anyOf": [{"type": "boolean"}, {"type": "integer", "minimum": 2, "maximum": MOST_FACTOR}]},
    ),
]
WordList = Annotated[tuple[YamlText, ...], ReadNamed(fields.read_texts, _TEXTS)]
Patterns = Annotated[tuple[YamlText, ...], ReadNamed(fields.read_patterns, _PATTERNS)]
Owned = Annotated[tuple[YamlText, ...], Read(_read_owned, {**_PATTERNS, "minItems": 1})]
Owner = Annotated[YamlText, ReadNamed(_read_owner, _OWNER)]
Owners = Annotated[
    tuple[YamlText, ...],
    Read(_read_owners, {"type": "array", "items": _OWNER, "minItems": 1, "uniqueItems": True}),
]
ClusterNames = Annotated[tuple[YamlText, ...], Read(_read_clusters, {**_TEXTS, "minItems": 1})]
Stages = Annotated[
    tuple[tuple[YamlText, ...], ...],
    Read(
        _read_stages,
        {
            "type": "array",
            "items": {**_TEXTS, "minItems": 1},
            "minItems": 1,
            "maxItems": MOST_STAGES,
        },
    ),
]
Risks = Annotated[tuple[Acknowledged, ...], Read(read_acknowledged, build_schema())]
State = Annotated[
    str,
    Read(_read_state, {"type": "string", "enum": ["present", "absent"]}),
]
BrokerIds = Annotated[
    tuple[int, ...],
    ReadNamed(_read_brokers, {"type": "array", "items": _BROKER, "uniqueItems": True}),
]
Strategy = Annotated[
    str,
    Read(_read_strategy, {"type": "string", "enum": list(PLACEMENTS)}),
]
GuardsFrom = Annotated[
    bool,
    Read(_read_guards_from, {"type": "string", "enum": ["base", "request"]}),
]
Capacity = Annotated[
    Mapping[int, int],
    Read(
        _read_capacity,
        {
            "type": "object",
            "patternProperties": {
                _BROKER_KEY: {"type": "integer", "minimum": 1, "maximum": MOST_CAPACITY}
            },
            "additionalProperties": False,
        },
    ),
]
ConfigMap = Annotated[WrittenConfig, Read(read_settings, _CONFIG)]
ClientMap = Annotated[Mapping[str, str], Read(read_client, _CLIENT)]
Key = Annotated[str, Read(_read_key, {"type": "string", "pattern": KEY_PATTERN})]
# The names that editors refuse are refused for an estate, not for its base: a request can rename.
ClusterKey = Annotated[str, Read(_read_key, {"type": "string", "pattern": CLUSTER_PATTERN})]
Share = Annotated[
    int,
    ReadNamed(_read_share, {"type": "string", "pattern": "^(0?[0-9]{1,2}|100)%$"}),
]
Deletes = Annotated[
    int,
    ReadNamed(_read_deletes, {"type": "integer", "minimum": 0, "maximum": MOST_DELETES}),
]
Duration = Annotated[
    int,
    ReadNamed(_read_duration, {"type": "string", "pattern": "^[0-9]+ ?(ms|s|m|min|h|d|w)$"}),
]
_SIZE = "^[0-9]+ ?(B|KiB|MiB|GiB|TiB)$"
MoveKinds = Annotated[
    frozenset[MoveKind],
    ReadNamed(
        _read_move_kinds,
        {
            "type": "array",
            "items": {"type": "string", "enum": [*MOVE_KINDS]},
            "minItems": 1,
            "uniqueItems": True,
        },
    ),
]
Rate = Annotated[
    int | None,
    ReadNamed(
        _read_rate,
        {"anyOf": [{"const": UNLIMITED}, {"type": "string", "pattern": _SIZE}]},
    ),
]
Size = Annotated[int, ReadNamed(_read_size, {"type": "string", "pattern": _SIZE})]
AtOnce = Annotated[
    int,
    ReadNamed(_read_at_once, {"type": "integer", "minimum": 1, "maximum": MOST_AT_ONCE}),
]
LeastReplicas = Annotated[
    int,
    ReadNamed(_read_replicas, {"type": "integer", "minimum": 1, "maximum": MOST_REPLICAS}),
]
Limit = Annotated[
    int,
    ReadNamed(_read_limit, {"type": "integer", "minimum": 1, "maximum": MOST_LIMIT}),
]
FormatVersion = Annotated[int, Read(_read_format, {"type": "integer", "enum": [1]})]
ClusterId = Annotated[
    YamlText,
    Read(_read_cluster_id, {"type": "string", "pattern": r"^\S+$"}),
]
AuditTopic = Annotated[YamlText, Read(_read_audit_topic, _NAME)]
KafkaVersion = Annotated[
    YamlText,
    Read(_read_version, {"type": "string", "pattern": r"^[0-9]{1,3}\.[0-9]{1,3}(\.[0-9]{1,3})?$"}),
]
