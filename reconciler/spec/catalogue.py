"""The topic configs of each Kafka release line: names, types, ranges and defaults, as data.

The files under catalogues/ come from real brokers; `python schemas/catalogue.py`
writes them, and a test compares them with a running broker.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from pkgutil import get_data
from types import MappingProxyType
from typing import Any

Line = tuple[int, int]
"""A release line: (4, 1) for 4.1.0, 4.1.1 and so on."""

LINES: tuple[Line, ...] = ((3, 9), (4, 0), (4, 1), (4, 2), (4, 3), (4, 4))
"""The release lines with a catalogue, oldest first."""


class ConfigType(StrEnum):
    """The types of topic configs, from Kafka's ConfigDef."""

    BOOLEAN = "BOOLEAN"
    DOUBLE = "DOUBLE"
    INT = "INT"
    LIST = "LIST"
    LONG = "LONG"
    STRING = "STRING"


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """A topic config of one release, from the broker's ConfigDef.

    `minimum` and `maximum` are inclusive; `also` holds allowed numbers outside this range.
    `choices` are the only values, or the only items of a LIST. `synonyms` are the broker configs
    that apply without it. `internal`: the broker accepts it and never reports it.
    """

    name: str
    type: ConfigType
    default: str | None
    minimum: int | None = None
    maximum: int | None = None
    also: tuple[int, ...] = ()
    choices: tuple[str, ...] = ()
    synonyms: tuple[str, ...] = ()
    internal: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    """The configs that one release of Kafka knows, by name."""

    version: str
    keys: Mapping[str, ConfigKey]


def parse_version(kafka_version: str) -> Line:
    """Read `4.1` or `4.1.2`. Errors: ValueError, with the correct form."""
    match = re.fullmatch(r"([0-9]{1,3})\.([0-9]{1,3})(?:\.[0-9]{1,3})?", kafka_version)
    if match is None:
        raise ValueError(
            f"'{kafka_version}' is not a Kafka version such as {spell_line(LINES[-1])}"
        )
    return int(match[1]), int(match[2])


def spell_line(line: Line) -> str:
    """Format a release line: 4.1."""
    return f"{line[0]}.{line[1]}"


def choose_line(wanted: Line) -> Line:
    """Return the newest line that is not newer than the wanted one, else the oldest."""
    return max((line for line in LINES if line <= wanted), default=LINES[0])


@cache
def load_release(line: Line) -> Release:
    """Read the catalogue of a release line. Errors: FileNotFoundError for a line without one."""
    content = get_data("reconciler.spec", f"catalogues/{spell_line(line)}.json")
    return decode_release(json.loads(content or b""))


def lines_that_know(name: str) -> tuple[Line, ...]:
    """Return the release lines whose brokers know a config, oldest first."""
    return tuple(line for line in LINES if name in load_release(line).keys)


def recognise_line(shown: Collection[str]) -> Line | None:
    """Return the only release line whose brokers show exactly these topic configs, if there is one.

    Brokers show every config that they know, so 3.9 and 4.4 are recognised; those between show the
    same ones. Configs that are not Kafka's do not count.
    """
    known = every_key().keys() & set(shown)
    showing = [
        line
        for line in LINES
        if known == {name for name, key in load_release(line).keys.items() if not key.internal}
    ]
    return showing[0] if len(showing) == 1 else None


@cache
def every_key() -> Mapping[str, ConfigKey]:
    """Return each config that any line knows, from its newest line, with its widest range."""
    found: dict[str, ConfigKey] = {}
    for line in reversed(LINES):
        for name, key in load_release(line).keys.items():
            found[name] = _widen(found[name], key) if name in found else key
    return MappingProxyType(dict(sorted(found.items())))


def _widen(key: ConfigKey, other: ConfigKey) -> ConfigKey:
    least = [key.minimum, other.minimum]
    most = [key.maximum, other.maximum]
    return replace(
        key,
        minimum=None if None in least else min(n for n in least if n is not None),
        maximum=None if None in most else max(n for n in most if n is not None),
        choices=tuple(dict.fromkeys(key.choices + other.choices)),
    )


def decode_release(stored: Mapping[str, Any]) -> Release:
    """Turn a catalogue's JSON into a Release."""
    keys = {
        name: ConfigKey(
            name=name,
            type=ConfigType(entry["type"]),
            default=entry["default"],
            minimum=entry.get("minimum"),
            maximum=entry.get("maximum"),
            also=tuple(entry.get("also", ())),
            choices=tuple(entry.get("choices", ())),
            synonyms=tuple(entry.get("synonyms", ())),
            internal=entry.get("internal", False),
        )
        for name, entry in stored["keys"].items()
    }
    return Release(stored["release"], MappingProxyType(keys))
