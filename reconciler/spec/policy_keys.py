"""The kinds of values of a policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from typing import TypeVar

from reconciler.errors import Severity
from reconciler.policy.limits import read_limit
from reconciler.policy.patterns import PatternError, compile_pattern
from reconciler.policy.policy import BASELINED, Bounds, Limit, Subject
from reconciler.spec import fields
from reconciler.spec.assignment import MOST_PARTITIONS
from reconciler.spec.catalogue import ConfigType, every_key, lines_that_know, spell_line
from reconciler.spec.configs import Catalogue, choose_catalogue
from reconciler.spec.fields import (
    FieldError,
    Kind,
    Schema,
    choice,
    field_error,
    suggest,
    whole,
)
from reconciler.spec.labels import (
    KEY_PATTERN,
    VALUE_PATTERN,
    is_label,
    read_label_key,
    read_label_value,
)
from reconciler.spec.values import (
    YamlMap,
    YamlText,
    YamlValue,
    describe_yaml,
    quote,
    show,
)

LIMITS = (
    "policy-name",
    "policy-owner",
    "policy-description",
    "policy-partitions",
    "policy-replication",
    "policy-config",
    "policy-config-missing",
    "policy-config-value",
    "policy-label-missing",
    "policy-label-value",
    "quota-per-owner",
    "quota-per-label",
)
"""The rules of limits: each has a severity. Rules in CEL have their own."""
SPARED = (*LIMITS, "topic-expired", "topic-idle")
"""The rules from which topics can be exempt. Rules in CEL use `when` instead."""

V = TypeVar("V")

_NUMBERS = (ConfigType.INT, ConfigType.LONG, ConfigType.DOUBLE)
_WORDS: Schema = {"type": "array", "items": {"type": "string", "minLength": 1}, "uniqueItems": True}


def _map_schema(value: Schema) -> Schema:
    return {
        "type": "object",
        "patternProperties": {"^[a-z0-9._-]+$": value},
        "additionalProperties": False,
    }


def _range_schema(limit: Schema) -> Schema:
    return {
        "type": "object",
        "properties": {"min": limit, "max": limit},
        "additionalProperties": False,
    }


REQUIREMENT = choice("required", "optional").then(lambda word: word == "required")
SEVERITY = choice(*Severity).then(Severity, str)
SUBJECT = choice(*Subject).then(Subject, str)
QUOTA = whole(1, 1_000_000_000)


def _read_pattern(value: YamlValue, name: str) -> YamlText:
    text = fields.read_short_text(value, name)
    try:
        compile_pattern(str(text))
    except PatternError as error:
        rule, what = "policy-pattern", f"is not a regular expression: {error.what}"
        way_out = "fix it; a literal dot is written \\."
        if error.uses:
            rule, what = "policy-pattern-linear", f"uses {error.uses}, which RE2 does not have"
            way_out = (
                "write it without; a rule can refuse names: check: \"!spec.name.endsWith('.tmp')\""
            )
        what = f"the pattern {quote(text)} {what}"
        raise field_error(rule, text.where, what, way_out) from error
    return text


PATTERN = replace(fields.SHORT_TEXT, read=_read_pattern, says="regular expression (RE2)")
EXPRESSION = replace(fields.SHORT_TEXT, says="expression in CEL")


def _read_bounds(value: YamlValue, name: str, read: Callable[[YamlValue, str], Limit]) -> Bounds:
    """Read `{min: …, max: …}`. Either key can be omitted."""
    way_out = f"write {name}: {{max: {_show(value)}}}"
    written = fields.read_map(value, name, "a range", way_out)
    for key, _ in written.entries():
        if key not in ("min", "max"):
            way_out = suggest(key, ("min", "max")) or "the keys here are max, min"
            what = f"unknown key {quote(key)} under {name}"
            raise field_error("key-unknown", key.where, what, way_out)
    limits = {str(key): read(item, f"{name}: {key}") for key, item in written.entries()}
    least, most = limits.get("min"), limits.get("max")
    if least and most and least.number > most.number:
        what = f"{name}: min {least.shown} exceeds max {most.shown}, so no value is allowed"
        raise field_error("policy-range", value.where, what, "swap them, or correct one")
    return Bounds(least, most)


def _show(value: YamlValue) -> str:
    return show(value) if isinstance(value, YamlText) else "…"


def _read_count_limit(value: YamlValue, name: str) -> Limit:
    count = _COUNT.read(value, name)
    return Limit(count, str(count))


_COUNT = whole(1, MOST_PARTITIONS)
COUNT_BOUNDS = Kind(
    partial(_read_bounds, read=_read_count_limit),
    _range_schema(_COUNT.schema),
    "map with `min`, `max` or both",
)


def _read_by_key(
    value: YamlValue, name: str, example: str, read: Callable[[YamlText, YamlValue], V]
) -> Mapping[str, V]:
    written = fields.read_map(value, name, "a map of configs", f"write {name}: {{{example}}}")
    items = fields.read_each(written.entries(), lambda entry: (str(entry[0]), read(*entry)))
    return dict(items)


def _normalise(key: YamlText, value: YamlValue, offered: frozenset[str]) -> str:
    """Spell a value of a config as its brokers do. Errors: FieldError."""
    if not isinstance(value, YamlText):
        what = f"a value of {key} is {describe_yaml(value)}"
        raise field_error("value-form", value.where, what, "write plain values")
    normal = _catalogue_of(key, offered).normalise(key, str(value), value.where)
    if not isinstance(normal, str):
        raise FieldError(normal)
    return normal


def _catalogue_of(key: str, offered: frozenset[str]) -> Catalogue:
    """Return the newest catalogue that knows a key, so that a policy can cover older clusters."""
    known = lines_that_know(key)
    return choose_catalogue(spell_line(known[-1])) if known else choose_catalogue(None, offered)


def _read_ranges(value: YamlValue, name: str, offered: frozenset[str]) -> Mapping[str, Bounds]:
    example = "retention.ms: {max: 30d}"
    return _read_by_key(value, name, example, lambda key, item: _read_range(key, item, offered))


def _read_range(key: YamlText, value: YamlValue, offered: frozenset[str]) -> Bounds:
    known = every_key().get(key)
    if known is not None and known.type not in _NUMBERS:
        what = f"{key} is not a number, so it has no range"
        raise field_error("policy-range", key.where, what, f"name its values: values: {{{key}: …}}")

    def read(item: YamlValue, name: str) -> Limit:
        fields.require_value(item, name)
        number = read_limit(key, _normalise(key, item, offered))
        if number is None:  # of a service: what its units are is not known
            what = f"{name} is {describe_yaml(item)}, not a number"
            way_out = f"write a number as the service expects it: {key}: {{max: 3600000}}"
            raise field_error("policy-range", item.where, what, way_out)
        return Limit(number, describe_yaml(item).strip("'"))

    return _read_bounds(value, str(key), read)


RANGES = Kind(
    _read_ranges,
    _map_schema(_range_schema({"type": ["integer", "number", "string"]})),
    "map of topic configs, such as `{retention.ms: {max: 30d}}`",
    any_config=True,
)


def _read_values(
    value: YamlValue, name: str, offered: frozenset[str]
) -> Mapping[str, tuple[str, ...]]:
    example = "compression.type: [zstd, lz4]"
    return _read_by_key(value, name, example, lambda key, item: _read_allowed(key, item, offered))


def _read_allowed(key: YamlText, value: YamlValue, offered: frozenset[str]) -> tuple[str, ...]:
    way_out = f"write {key}: [{_show(value)}]"
    items: list[YamlValue] = fields.read_list(value, str(key), "a list of values", way_out)
    return tuple(fields.read_each(items, lambda item: _normalise(key, item, offered)))


VALUES = Kind(
    _read_values,
    _map_schema({"type": "array", "items": {"type": ["string", "number", "boolean"]}}),
    "map of topic configs, such as `{compression.type: [zstd, lz4]}`",
    any_config=True,
)


def _read_config_patterns(value: YamlValue, name: str, offered: frozenset[str]) -> tuple[str, ...]:
    patterns = fields.read_patterns(value, name)
    known = offered.union(every_key())
    return tuple(fields.read_each(patterns, lambda item: _check_config_pattern(item, known)))


def _check_config_pattern(pattern: YamlText, known: frozenset[str]) -> str:
    if not any(fnmatchcase(key, pattern) for key in known):
        what = f"no topic config is called {quote(pattern)}"
        way_out = suggest(pattern, sorted(known)) or (
            "write a key such as retention.ms, or retention.*; known_configs of a cluster names "
            "those of its service"
        )
        raise field_error("config-unknown", pattern.where, what, way_out)
    return str(pattern)


CONFIG_PATTERNS = Kind(
    _read_config_patterns,
    _WORDS,
    "list of topic configs, and of patterns such as `retention.*`",
    any_config=True,
)


def _read_config_keys(value: YamlValue, name: str, offered: frozenset[str]) -> tuple[str, ...]:
    keys = fields.read_texts(value, name)
    known = offered.union(every_key())
    return tuple(fields.read_each(keys, lambda item: _check_config_key(item, name, known)))


def _check_config_key(key: YamlText, name: str, known: frozenset[str]) -> str:
    if key not in known and any(fnmatchcase(each, key) for each in known):
        what = f"{quote(key)} under {name} is a pattern, and a topic must have each of them"
        raise field_error(
            "config-unknown", key.where, what, f"write each key: {name}: [retention.ms]"
        )
    return _check_config_pattern(key, known)


CONFIG_KEYS = Kind(
    _read_config_keys,
    _WORDS,
    "list of topic configs, such as `[retention.ms]`",
    any_config=True,
)


def _read_label_keys(value: YamlValue, name: str) -> tuple[str, ...]:
    keys = fields.read_texts(value, name)
    return tuple(fields.read_each(keys, lambda key: str(read_label_key(key, f"item of {name}"))))


_LABEL_KEY: Schema = {"type": "string", "pattern": KEY_PATTERN}
LABEL_KEYS = Kind(
    _read_label_keys,
    {"type": "array", "items": _LABEL_KEY, "uniqueItems": True},
    "list of labels, such as `[tier, domain]`",
)


def _read_label_values(value: YamlValue, name: str) -> Mapping[str, tuple[str, ...]]:
    written = fields.read_map(value, name, "a map of labels", f"write {name}: {{tier: [gold]}}")
    items = fields.read_each(written.entries(), lambda entry: _read_values_of_label(*entry))
    return dict(items)


def _read_values_of_label(key: YamlText, value: YamlValue) -> tuple[str, tuple[str, ...]]:
    read_label_key(key, "label")
    way_out = f"write {key}: [{_show(value)}]"
    items: list[YamlValue] = fields.read_list(value, str(key), "a list of values", way_out)
    read = fields.read_each(items, lambda item: str(read_label_value(item, f"label {key}")))
    return str(key), tuple(read)


LABEL_VALUES = Kind(
    _read_label_values,
    {
        "type": "object",
        "patternProperties": {
            KEY_PATTERN: {"type": "array", "items": {"type": "string", "pattern": VALUE_PATTERN}}
        },
        "additionalProperties": False,
    },
    "map of labels, such as `{tier: [gold, silver]}`",
)


def _read_label_choice(value: YamlValue, name: str) -> str:
    """Read a label, which is each of its values, or a label and one value: tier=gold."""
    key, _, wanted = str(value).partition("=")
    if isinstance(value, YamlText) and not is_label(key, wanted):
        what = f"{quote(value)} under {name} is neither a label nor a label and its value"
        raise field_error("label-form", value.where, what, "write tier, or tier=gold")
    return str(value)


LABEL_CHOICE = Kind(
    _read_label_choice,
    {"type": "string", "pattern": f"{KEY_PATTERN[:-1]}(={VALUE_PATTERN[1:-1]})?$"},
    "a label, or a label and its value",
)


def _read_exemptions(value: YamlValue, name: str) -> Mapping[str, tuple[str, ...]]:
    return _read_by_key(value, name, "policy-name: [legacy.*]", _read_exemption)


def _read_exemption(rule: YamlText, value: YamlValue) -> tuple[str, ...]:
    if rule not in SPARED:
        way_out = suggest(rule, SPARED) or f"the rules here are {', '.join(SPARED)}"
        what = f"no topic can be exempt from {quote(rule)}"
        raise field_error("key-unknown", rule.where, what, way_out)
    return tuple(map(str, fields.read_patterns(value, str(rule))))


QUOTAS = ("topics", "partitions", "replicas")


def _read_severities(
    value: YamlValue, name: str, offered: frozenset[str]
) -> Mapping[tuple[str, str], Severity]:
    way_out = f"write {name}: {{policy-partitions: warning}}"
    written = fields.read_map(value, name, "a map of rules", way_out)
    read = fields.read_each(written.entries(), lambda entry: _read_severity(*entry, offered))
    return {key: severity for each in read for key, severity in each.items()}


def _read_severity(
    rule: YamlText, value: YamlValue, offered: frozenset[str]
) -> Mapping[tuple[str, str], Severity]:
    """Read the severity of a rule, or of some of its limits: configs, or counts of a quota."""
    if rule not in LIMITS:
        way_out = suggest(rule, LIMITS) or f"the rules here are {', '.join(LIMITS)}"
        if rule == "policy-rule":
            way_out = "a rule in CEL has its own: rules: {NAME: {severity: warning}}"
        what = f"no limit has the rule {quote(rule)}"
        raise field_error("key-unknown", rule.where, what, way_out)
    if isinstance(value, YamlMap) and rule not in PARTED:
        raise fields.refuse_form(value, rule, "a severity", f"write {rule}: warning")
    if not isinstance(value, YamlMap):
        return {(str(rule), ""): SEVERITY.read(value, str(rule))}
    read = {}
    for limit, item in value.entries():
        if not rule.startswith("quota-"):
            _check_config_pattern(limit, offered.union(every_key()))
        elif limit not in QUOTAS:
            way_out = suggest(limit, QUOTAS) or f"the keys here are {', '.join(QUOTAS)}"
            what = f"unknown key {quote(limit)} under {rule}"
            raise field_error("key-unknown", limit.where, what, way_out)
        read[str(rule), str(limit)] = SEVERITY.read(item, str(limit))
    return read


PARTED = (
    *("policy-config", "policy-config-missing", "policy-config-value"),
    *("quota-per-owner", "quota-per-label"),
)
"""The rules with several limits."""
SEVERITIES = Kind(
    _read_severities,
    {
        "type": "object",
        "properties": {
            rule: SEVERITY.schema
            if rule not in PARTED
            else {"anyOf": [SEVERITY.schema, _map_schema(SEVERITY.schema)]}
            for rule in LIMITS
        },
        "additionalProperties": False,
    },
    "map of rules to `error`, `warning` or `note`, such as `{policy-name: warning}`; of "
    f"{', '.join(f'`{rule}`' for rule in PARTED)} also to a map of configs or counts",
    any_config=True,
)
EXEMPTIONS = Kind(
    _read_exemptions,
    {
        "type": "object",
        "properties": dict.fromkeys(SPARED, _WORDS),
        "additionalProperties": False,
    },
    "map of rules to names and patterns, such as `{policy-name: [legacy.*]}`",
)

BASELINED_RULE = choice(*BASELINED, "policy-rule")


def _read_known_value(value: YamlValue, name: str) -> YamlText:
    """Read the value that broke a limit: any text, number or flag."""
    if isinstance(value, YamlText) and value.tag != "null":
        return value
    raise fields.refuse_form(value, name, "one value", f"write {name}: 60")


KNOWN_VALUE = Kind(
    _read_known_value, {"type": ["string", "number", "boolean"]}, "text, number or flag"
)
REASON = Kind(partial(fields.read_text, empty=True), {"type": "string"}, "text")
