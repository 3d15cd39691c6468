"""Topic configs as they stand in a file: keys with their values and places, not yet judged."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.errors import Finding, Location
from reconciler.spec.fields import FieldError, field_error, require_value
from reconciler.spec.values import Sequence, Table, Text, Value, describe, quote, show

MOST_KEYS = 200


@dataclass(frozen=True, slots=True)
class Setting:
    """One config key and its raw value: text, a list of texts, or None where null stands."""

    key: str
    value: str | tuple[str, ...] | None
    key_where: Location
    where: Location


@dataclass(frozen=True, slots=True)
class Settings:
    """The config of one layer, in the order of the file."""

    items: tuple[Setting, ...] = ()


def read_settings(value: Value) -> Settings:
    """Read a config map. Errors: FieldError, with every finding there is."""
    require_value(value, "config")
    if not isinstance(value, Table):
        what = f"config is {describe(value)}, not a map"
        way_out = "write keys below it, one a line, without dashes: retention.ms: 7d"
        raise field_error("value-form", value.where, what, way_out)
    if len(value) > MOST_KEYS:
        what = f"config has {len(value):,} keys, and Kafka knows a few dozen"
        raise field_error("value-form", value.where, what, "keep those that the topic needs")
    findings: list[Finding] = []
    items = tuple(_read_setting(key, item, findings) for key, item in value.entries())
    if findings:
        raise FieldError(findings)
    return Settings(items)


def _read_setting(key: Text, value: Value, findings: list[Finding]) -> Setting:
    """Read one key; what is wrong with it goes to `findings`."""
    raw: str | tuple[str, ...] | None = None
    if isinstance(value, Table):
        inner = next(iter(value), "…")
        what = f"{quote(key)} is a map, and no config takes one"
        way_out = f"write dotted keys, each on a line: {show(key)}.{show(inner)}: …"
        findings.append(Finding("value-form", what, way_out, value.where))
    elif isinstance(value, Sequence):
        if all(isinstance(item, Text) and item.tag != "null" for item in value):
            raw = tuple(str(item) for item in value)
        else:
            what = f"the list of {quote(key)} holds more than plain values"
            way_out = "write plain values: [compact, delete]"
            findings.append(Finding("value-form", what, way_out, value.where))
    elif value.is_missing:
        what = f"{quote(key)} has no value"
        way_out = "write one, write null to take an inherited value away, or leave the key out"
        findings.append(Finding("value-missing", what, way_out, value.where))
    elif not value.is_null:
        raw = str(value)
    return Setting(str(key), raw, key.where, value.where)
