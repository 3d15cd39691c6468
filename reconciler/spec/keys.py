"""The kinds of values of topics and of clusters.yaml that no other file has."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from functools import partial
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from reconciler.model.cluster import INTERNAL_TOPICS
from reconciler.model.hours import DAYS
from reconciler.model.moves import LoadKind, MoveKind
from reconciler.model.rates import Rate
from reconciler.rulebook import MUTABLE, RULES
from reconciler.spec import fields
from reconciler.spec.acknowledgements import build_schema, read_acknowledged
from reconciler.spec.assignment import MOST_BROKER_ID, MOST_PARTITIONS, read_assignment
from reconciler.spec.client import read_client
from reconciler.spec.fields import (
    FieldError,
    Kind,
    Schema,
    choice,
    field_error,
    not_empty,
    or_null,
    read_settings,
    whole,
)
from reconciler.spec.names import (
    NAME_PATTERN,
    OWNER_PATTERN,
    check_length,
    check_name,
    check_owner,
    check_spellings,
)
from reconciler.spec.services import SERVICES, Placement
from reconciler.spec.values import (
    YamlList,
    YamlText,
    YamlValue,
    describe_yaml,
    quote,
    show,
)
from reconciler.units import (
    DAY,
    DURATION,
    SECOND,
    SIZE,
    Scale,
    UnitError,
    format_duration,
    format_size,
    name_unit,
    parse_duration,
    parse_size,
)

MOST_REPLICAS = 32_767
PLACEMENTS = ("optimal", "striped")
KEY_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
CLUSTER_PATTERN = (
    rf"^(?!.*-([Pp][Ll][Aa][Nn]|[Dd][Rr][Ii][Ff][Tt])$){KEY_PATTERN.removeprefix('^')}"
)
"""The names of clusters for editors: no environment of another cluster in a workflow has them."""
_MOST_FACTOR = 1_000
_MOST_BYTES = 2**63 - 1
MOST_STAGES = 5
"""The number of stages in apply.yml: jobs of GitHub depend on other jobs by name."""
UNLIMITED = "unlimited"
_PERCENT = re.compile(r"([0-9]{1,3})%")
_VERSION = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}(\.[0-9]{1,3})?")


def _read_replication(value: YamlValue, name: str) -> int:
    if isinstance(value, YamlText) and value == "-1" and not value.quoted:
        what = f"{name} -1 leaves the number to the broker"
        raise field_error("value-range", value.where, what, "write it, or leave the key out")
    return REPLICAS.read(value, name)


REPLICAS = whole(1, MOST_REPLICAS)
PARTITIONS = or_null(whole(1, MOST_PARTITIONS))
REPLICATION = or_null(replace(REPLICAS, read=_read_replication))


def _read_factor(value: YamlValue, name: str) -> int:
    """Read the largest divisor of one step: true is 2, false is 0 and means no steps."""
    if isinstance(value, YamlText) and value.tag in {"int", "float"}:
        return fields.read_count(value, name, 2, _MOST_FACTOR)
    return 2 if fields.read_flag(value, name) else 0


FACTOR = Kind(
    _read_factor,
    {"anyOf": [{"type": "boolean"}, {"type": "integer", "minimum": 2, "maximum": _MOST_FACTOR}]},
    f"`true`, `false`, or whole number from 2 to {_MOST_FACTOR:,}",
    lambda factor: factor or False,
)

_BROKER: Schema = {"type": "integer", "minimum": 0, "maximum": MOST_BROKER_ID}
_BROKER_KEY = (
    "^(0|[1-9][0-9]{0,8}|1[0-9]{9}|20[0-9]{8}|21[0-3][0-9]{7}|214[0-6][0-9]{6}|2147[0-3][0-9]{5}"
    "|21474[0-7][0-9]{4}|214748[0-2][0-9]{3}|2147483[0-5][0-9]{2}|21474836[0-3][0-9]"
    "|214748364[0-7])$"
)
"""Numbers up to MOST_BROKER_ID, as a key: patterns cannot compare."""
BROKER_IDS = Kind(
    partial(fields.read_counts, least=0, most=MOST_BROKER_ID),
    {"type": "array", "items": _BROKER, "uniqueItems": True},
    "list of broker ids",
)

_ROW: Schema = {"type": "array", "items": _BROKER, "minItems": 1, "uniqueItems": True}
ROWS = or_null(
    Kind(
        lambda value, _: read_assignment(value),
        {
            "anyOf": [
                {"type": "array", "items": _ROW, "minItems": 1, "maxItems": MOST_PARTITIONS},
                {
                    "type": "object",
                    "patternProperties": {"^(0|[1-9][0-9]{0,4})$": _ROW},
                    "additionalProperties": False,
                    "minProperties": 1,
                },
            ]
        },
        "list of lists of broker ids, such as `[[1, 2], [2, 3]]`",
    )
)


def _read_capacity(value: YamlValue, name: str) -> Mapping[int, int]:
    """Read the capacity of each broker, by id."""
    written = fields.read_map(value, name, "a map of broker ids", f"write {name}: {{7: 2}}")
    return {
        fields.read_count(broker, "broker id", 0, MOST_BROKER_ID): _CAPACITY.read(
            much, "capacity of a broker"
        )
        for broker, much in written.entries()
    }


_CAPACITY = whole(1, 1_000_000)
CAPACITIES = Kind(
    _read_capacity,
    {
        "type": "object",
        "patternProperties": {_BROKER_KEY: _CAPACITY.schema},
        "additionalProperties": False,
    },
    "map of broker ids to whole numbers, such as `{7: 2}`",
)


def _read_topic(value: YamlValue, name: str) -> YamlText:
    text = fields.read_text(value, name, empty=True)
    if findings := check_length(text, text.where):
        raise FieldError(findings)  # before any pattern is matched against megabytes
    return text


def _read_existing_topic(value: YamlValue, name: str) -> str:
    text = fields.read_text(value, name)
    if findings := check_name(text, text.where):
        raise FieldError(findings)
    return str(text)


_NAME: Schema = {
    "type": "string",
    "pattern": NAME_PATTERN,
    "not": {"enum": [".", "..", *INTERNAL_TOPICS]},
}
TOPIC_NAME = Kind(_read_topic, _NAME, "name of a topic")
EXISTING_TOPIC = Kind(_read_existing_topic, _NAME, "name of a topic")


def _read_owner(value: YamlValue, name: str) -> YamlText:
    text = fields.read_text(value, name)
    if findings := check_owner(text, text.where):
        raise FieldError(findings)
    return text


def _read_owners(value: YamlValue, name: str) -> tuple[str, ...]:
    texts = fields.read_texts(value, name)
    owners = tuple(fields.read_each(texts, lambda text: _read_owner(text, f"{name}: item")))
    if findings := list(check_spellings(owners)):
        raise FieldError(findings)
    return tuple(map(str, owners))


OWNER = Kind(_read_owner, {"type": "string", "pattern": OWNER_PATTERN}, "name of an owner")
OWNERS = not_empty(
    Kind(
        _read_owners,
        {"type": "array", "items": OWNER.schema, "uniqueItems": True},
        "list of owners",
    ),
    "names no owner",
    "name one, or remove the key to allow any owner",
)
OWNED = not_empty(
    fields.PATTERNS,
    "names no topic",
    "write a name or a pattern, or leave the key out for all topics",
)
CLUSTER_NAMES = not_empty(
    fields.TEXTS,
    "names no cluster",
    "name one, or leave the key out for every cluster",
    rule="cluster-none",
)


def _read_stages(value: YamlValue, name: str) -> tuple[tuple[YamlText, ...], ...]:
    """Read a list of lists of clusters. Errors: FieldError, with the findings of every stage."""
    way_out = f"write {name}: [[one], [two, three]]"
    numbered = enumerate(fields.read_list(value, name, "a list of lists", way_out), start=1)
    return tuple(fields.read_each(numbered, lambda item: _read_stage(item[1], f"stage {item[0]}")))


def _read_stage(value: YamlValue, name: str) -> tuple[YamlText, ...]:
    if not isinstance(value, YamlList):
        way_out = "write the clusters in it: [one, two]"
        if isinstance(value, YamlText) and value.tag == "str":
            way_out = f"write [{show(value)}]"
        raise fields.refuse_form(value, name, "a list", way_out)
    if not value:
        what, way_out = f"{name} names no cluster", "name one, or remove the stage"
        raise field_error("value-missing", value.where, what, way_out)
    return tuple(fields.read_each(value, lambda item: fields.read_text(item, f"{name}: item")))


STAGES = not_empty(
    Kind(
        _read_stages,
        {
            "type": "array",
            "items": {**fields.TEXTS.schema, "minItems": 1},
            "maxItems": MOST_STAGES,
        },
        f"list of at most {MOST_STAGES} lists of clusters, such as `[[dev], [prod-eu, prod-us]]`",
    ),
    "holds no stage",
    "write one, or leave the key out: then all clusters are one stage",
)


def _read_share(value: YamlValue, name: str) -> int:
    """Read a share, written as `30%`. Returns percent."""
    fields.require_value(value, name)
    found = _PERCENT.fullmatch(value) if isinstance(value, YamlText) else None
    if found is None or int(found[1]) > 100:
        meant = f"{value}%" if _PERCENT.fullmatch(f"{value}%") and int(str(value)) <= 100 else "30%"
        raise fields.refuse_form(value, name, "a share", f"write {name}: {meant}")
    return int(found[1])


SHARE = Kind(
    _read_share,
    {"type": "string", "pattern": "^(0?[0-9]{1,2}|100)%$"},
    "share from `0%` to `100%`",
    "{}%".format,
)


def _read_amount(value: YamlValue, name: str, scale: Scale, parse: Callable[[str], int]) -> int:
    if isinstance(value, YamlText) and value.tag == "int":
        what = f"{name} {quote(value)} has no unit"
        is_decimal = value.removeprefix("-").isdigit() and len(value) < 20
        way_out = name_unit(int(value) if is_decimal else 0, scale)
        raise field_error("config-unit", value.where, what, way_out)
    text = fields.read_text(value, name)
    try:
        return parse(text)
    except UnitError as error:
        what = f"{name}: {error.what}"
        raise field_error("config-unit", text.where, what, error.way_out) from error


DURATION_MS = Kind(
    partial(_read_amount, scale=DURATION, parse=parse_duration),
    {"type": "string", "pattern": f"^[0-9]+ ?({'|'.join(DURATION.units)})$"},
    "duration such as `7d`",
    format_duration,
)


def _read_date(value: YamlValue, name: str) -> str:
    """Read a date, written as 2027-03-31."""
    text = fields.read_text(value, name)
    try:
        if re.fullmatch(_DATE, text):
            return date.fromisoformat(text).isoformat()
    except ValueError:  # such as 2027-02-30
        pass
    what = f"{name} {quote(text)} is not a date"
    raise field_error("value-form", text.where, what, "write one such as 2027-03-31")


_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
DATE = Kind(_read_date, {"type": "string", "pattern": f"^{_DATE}$"}, "date such as `2027-03-31`")


def _read_minutes(value: YamlValue, name: str) -> int:
    """Read a time of day, written as 22:00. Returns minutes after midnight."""
    fields.require_value(value, name)
    found = _TIME.fullmatch(value) if isinstance(value, YamlText) else None
    if found is None:
        raise fields.refuse_form(value, name, "a time of day", f'write {name}: "22:00"')
    return int(found[1]) * 60 + int(found[2])


_TIME = re.compile("([01][0-9]|2[0-3]|24(?=:00)):([0-5][0-9])")
TIME_OF_DAY = Kind(
    _read_minutes,
    {"type": "string", "pattern": "^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$"},
    'time of day such as `"22:00"`',
)


def _read_zone(value: YamlValue, name: str) -> str:
    """Read the name of a time zone that this machine knows."""
    text = fields.read_text(value, name)
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        known = available_timezones()
        way_out = fields.suggest(text, known) or "write one such as Europe/Berlin, or UTC"
        if not known:
            way_out = "install the package tzdata: this machine has no time zones"
        what = f"there is no time zone {quote(text)}"
        raise field_error("value-choice", text.where, what, way_out) from error
    return str(text)


ZONE = Kind(_read_zone, {"type": "string", "minLength": 1}, "time zone such as `Europe/Berlin`")


def _read_days(value: YamlValue, name: str) -> frozenset[int]:
    texts = fields.read_texts(value, name)
    if not texts:
        way_out = f"write {name}: [sat, sun], or leave it out"
        raise field_error("value-missing", value.where, f"{name} names no day", way_out)
    return frozenset(fields.read_each(texts, lambda text: DAYS.index(_DAY.read(text, name))))


_DAY = choice(*DAYS)
WEEK_DAYS = Kind(
    _read_days,
    {"type": "array", "items": _DAY.schema, "minItems": 1, "uniqueItems": True},
    f"list of {', '.join(f'`{day}`' for day in DAYS)}",
)


def _read_size(value: YamlValue, name: str) -> int:
    size = _read_amount(value, name, SIZE, parse_size)
    if size > _MOST_BYTES:
        what = f"{name} {quote(str(value))} is out of range"
        raise field_error("value-range", value.where, what, "write less than 8388608TiB")
    return size


SIZE_BYTES = Kind(
    _read_size,
    {"type": "string", "pattern": f"^[0-9]+ ?({'|'.join(SIZE.units)})$"},
    "size such as `2TiB`",
    format_size,
)


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
        what = f"{name} {value} is too low: no replica can move"
        way_out = f"write a rate such as 30MiB, or {UNLIMITED}"
        raise field_error("value-range", value.where, what, way_out)
    return rate


RATE = Kind(
    _read_rate,
    {"anyOf": [{"const": UNLIMITED}, SIZE_BYTES.schema]},
    f"size such as `30MiB`, or `{UNLIMITED}`",
)


def _read_count_rate(value: YamlValue, name: str) -> Rate:
    """Read a rate of things that are counted, written as `250/5min`."""
    way_out = f"write {name}: 250/5min"
    fields.require_value(value, name)
    if not isinstance(value, YamlText):
        raise fields.refuse_form(value, name, "a rate", way_out)
    found = _COUNT_RATE.fullmatch(value)
    window_ms = int(found[2] or 1) * DURATION.units[found[3]] if found else 0
    if found is None or not window_ms:
        what = f"{name} {quote(value)} is not a number per time"
        raise field_error("value-form", value.where, what, way_out)
    if window_ms > DAY:
        what = f"{name} {quote(value)} is a rate over more than a day"
        raise field_error("value-range", value.where, what, "write one over 1d or less")
    return Rate(int(found[1]), window_ms / SECOND)


_COUNT_RATE = re.compile(f"([1-9][0-9]{{0,8}})/([0-9]{{1,8}})?({'|'.join(DURATION.units)})")
COUNT_RATE = Kind(
    _read_count_rate,
    {"type": "string", "pattern": f"^{_COUNT_RATE.pattern}$"},
    "number and time such as `250/5min` or `2/s`",
)


def _read_move_kinds(value: YamlValue, name: str) -> frozenset[MoveKind]:
    """Read the kinds of moves that a cluster allows: at least one."""
    texts = fields.read_texts(value, name)
    if not texts:
        way_out = f"write {name}: [{', '.join(MoveKind)}], or leave moves out"
        raise field_error("value-missing", value.where, f"{name} names no kind of move", way_out)
    return frozenset(fields.read_each(texts, lambda text: MoveKind(_MOVE.read(text, name))))


_MOVE = choice(*MoveKind)
MOVE_KINDS = Kind(
    _read_move_kinds,
    {"type": "array", "items": _MOVE.schema, "minItems": 1, "uniqueItems": True},
    f"list of {', '.join(f'`{kind}`' for kind in MoveKind)}",
)


def _read_load_kinds(value: YamlValue, name: str) -> tuple[LoadKind, ...]:
    """Read what brokers are balanced by: at least one load."""
    texts = fields.read_texts(value, name)
    if not texts:
        way_out = f"write {name}: [{', '.join(LoadKind)}], or leave it out"
        raise field_error("value-missing", value.where, f"{name} names no load", way_out)
    return tuple(fields.read_each(texts, lambda text: LoadKind(_LOAD.read(text, name))))


_LOAD = choice(*LoadKind)
LOAD_KINDS = Kind(
    _read_load_kinds,
    {"type": "array", "items": _LOAD.schema, "minItems": 1, "uniqueItems": True},
    f"list of {', '.join(f'`{kind}`' for kind in LoadKind)}",
)


def _read_muted(value: YamlValue, name: str) -> frozenset[str]:
    """Read the rules whose notes a plan leaves out: no error, no warning, no refusal."""
    texts = fields.read_texts(value, name)
    return frozenset(fields.read_each(texts, lambda text: _read_mutable(text, name)))


def _read_mutable(rule: YamlText, name: str) -> str:
    if rule in MUTABLE:
        return str(rule)
    what, allowed = f"{name} {quote(rule)} is unknown", f"write one of {', '.join(MUTABLE)}"
    if rule in RULES:
        what = f"{rule} cannot be muted, only notes that repeat in every plan of a cluster can"
        raise field_error("value-choice", rule.where, what, f"remove it, or {allowed}")
    raise field_error("value-choice", rule.where, what, fields.suggest(rule, MUTABLE) or allowed)


MUTED = Kind(
    _read_muted,
    {"type": "array", "items": choice(*MUTABLE).schema, "uniqueItems": True},
    f"list of {', '.join(f'`{rule}`' for rule in MUTABLE)}",
)


def _read_format(value: YamlValue, name: str) -> int:
    version = fields.read_count(value, name, 1, 1_000)
    if version != 1:
        what = f"version {version} needs a newer reconciler"
        raise field_error(
            "value-range", value.where, what, "write version: 1, or update reconciler"
        )
    return version


FORMAT_VERSION = Kind(_read_format, {"type": "integer", "enum": [1]}, "`1`")


def _read_key(value: YamlValue, _: str) -> str:
    """Read the name of a cluster or a profile, which is a key."""
    if isinstance(value, YamlText) and not re.fullmatch(KEY_PATTERN, value):
        what = (
            f"the name {quote(value)} has other characters than letters, digits, '.', '_' and '-'"
        )
        raise field_error("key-form", value.where, what, "choose another name")
    return str(value)


KEY = Kind(_read_key, {"type": "string", "pattern": KEY_PATTERN}, "name")
# The names that editors refuse are refused for an estate, not for its base: a request can rename.
CLUSTER_KEY = replace(KEY, schema={"type": "string", "pattern": CLUSTER_PATTERN})


def _read_cluster_id(value: YamlValue, name: str) -> str:
    text = fields.read_text(value, name)
    if not text.isprintable() or any(character.isspace() for character in text):
        what = f"cluster_id {quote(text)} is not a cluster id"
        way_out = "write the id that the cluster reports, such as 5L6g3nShT-eMCtK--X86sw"
        raise field_error("cluster-id-form", text.where, what, way_out)
    return str(text)


CLUSTER_ID = Kind(
    _read_cluster_id, {"type": "string", "pattern": r"^\S+$"}, "id such as `5L6g3nShT-eMCtK--X86sw`"
)


def _read_version(value: YamlValue, name: str) -> YamlText:
    fields.require_value(value, name)
    if isinstance(value, YamlText) and _VERSION.fullmatch(value):
        if value.tag == "str":
            return value
        what = f"kafka_version {value} without quotes is a number, which makes 4.10 equal to 4.1"
        raise field_error("kafka-version-form", value.where, what, f'write "{value}"')
    shown = describe_yaml(value)
    what = f"kafka_version is {shown}, not a version"
    raise field_error("kafka-version-form", value.where, what, 'write one such as "4.1"')


KAFKA_VERSION = Kind(
    _read_version, {"type": "string", "pattern": f"^{_VERSION.pattern}$"}, 'version such as `"4.1"`'
)

RISKS = Kind(
    lambda value, _: read_acknowledged(value), build_schema(), "list of risks, such as `data-loss`"
)
STATE = choice("present", "absent")
PLACEMENT = choice(*Placement).then(Placement)
STRATEGY = choice(*PLACEMENTS)
SERVICE = choice(*SERVICES)
GUARDS_FROM = choice("base", "request").then(
    lambda word: word == "base", lambda of_base: "base" if of_base else "request"
)

# json_schema defines both, from what is known besides the keys.
CONFIG = Kind(
    lambda value, _: read_settings(value), {"$ref": "#/$defs/Config"}, "map of topic configs"
)
CLIENT = Kind(
    lambda value, _: read_client(value), {"$ref": "#/$defs/Client"}, "map of client properties"
)
