"""Topic configs as one Kafka version takes them: each value checked and spelled as by its broker.

A value that passes here passes the broker; what the broker would refuse is a finding, with the
way out. Stricter than the broker where that protects: see `docs/rules.md`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from reconciler.errors import Finding
from reconciler.spec.catalogue import (
    LINES,
    ConfigType,
    choose_line,
    lines_that_know,
    load_release,
    parse_version,
    spell,
)
from reconciler.spec.config_docs import DOCS, Dimension
from reconciler.spec.scalars import RefusedValueError, spell_value, split_list
from reconciler.spec.together import check_lags, check_tiered
from reconciler.spec.values import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from reconciler.errors import Location
    from reconciler.spec.catalogue import ConfigKey, Line
    from reconciler.spec.together import Clash

MAX_VALUE_BYTES = 32_767
"""A longer value reaches the broker as null, or cuts the connection."""

_UNMANAGED = MappingProxyType(
    {
        name: "belongs to the tools that move partitions, which set and clear it"
        for name, (dimension, _) in DOCS.items()
        if dimension is Dimension.REPLICAS
    }
)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The topic configs of one release line.

    `note` says so where another one was asked for, and `older`, whether that is an older one.
    """

    line: Line
    keys: Mapping[str, ConfigKey]
    note: str = ""
    older: bool = False

    @property
    def version(self) -> str:
        """The release line as people write it: 4.1."""
        return spell(self.line)

    @property
    def settable(self) -> tuple[str, ...]:
        """The configs that a spec can set, sorted: neither internal nor left to other tools."""
        return tuple(
            sorted(n for n, k in self.keys.items() if not k.internal and n not in _UNMANAGED)
        )

    def normalise(self, key: str, value: object, where: Location | None) -> str | list[Finding]:
        """Spell a value as the broker would report it, or say everything that is wrong with it.

        `value` is a YAML scalar, as text or as Python has it, or a list of them for a LIST.
        """
        refusal = self._refuse_key(key, where)
        if refusal:
            return [refusal]
        try:
            text = _read_text(self.keys[key], value)
            return spell_value(self.keys[key], self.dimension(key), text)
        except RefusedValueError as refused:
            return [Finding(refused.rule, refused.what, refused.way_out, where)]

    def check_together(
        self, config: Mapping[str, str], where: Callable[[str], Location | None]
    ) -> list[Finding]:
        """Check a topic's whole config, already normalised, for keys that contradict each other.

        `where` tells where a key was written. Keys that are absent count with their defaults.
        """
        return [
            Finding(clash.rule, clash.what, clash.way_out, where(clash.keys[0]))
            for clash in self.find_clashes(config)
        ]

    def find_clashes(self, config: Mapping[str, str]) -> list[Clash]:
        """List the keys of a whole config that contradict each other."""
        whole = {name: key.default or "" for name, key in self.keys.items()} | dict(config)
        return [*check_lags(whole), *check_tiered(whole, self.line)]

    def default(self, key: str) -> str | None:
        """Return what brokers use where neither topic nor broker sets a key; None if unknown."""
        return self.keys[key].default if key in self.keys else None

    def is_list(self, key: str) -> bool:
        """Tell whether a key holds a list, whose order means nothing."""
        return key in self.keys and self.keys[key].type is ConfigType.LIST

    def same(self, key: str, a: str | None, b: str | None) -> bool:
        """Tell whether two values mean the same: lists as sets, doubles as numbers."""
        if a == b or a is None or b is None or key not in self.keys:
            return a == b
        match self.keys[key].type:
            case ConfigType.LIST:
                return set(split_list(a)) == set(split_list(b))
            case ConfigType.DOUBLE:
                return float(a) == float(b)
            case _:
                return False

    def interpret(self, key: str, text: str) -> int | float | bool | str | list[str]:
        """Return what a value is: a number, a flag, a list; or text, such as what is no number."""
        match self.keys[key].type if key in self.keys else ConfigType.STRING:
            case ConfigType.INT | ConfigType.LONG | ConfigType.DOUBLE as kind:
                with suppress(ValueError):
                    return float(text) if kind is ConfigType.DOUBLE else int(text)
            case ConfigType.BOOLEAN:
                return text == "true"
            case ConfigType.LIST:
                return list(split_list(text))
            case ConfigType.STRING:
                pass
        return text

    def dimension(self, key: str) -> Dimension | None:
        """Return what a key measures; None for one that has no description yet."""
        return DOCS[key][0] if key in DOCS else None

    def describe(self, key: str) -> str:
        """Say in one line what a key is for; nothing for one that has no description yet."""
        return DOCS[key][1] if key in DOCS else ""

    def _refuse_key(self, key: str, where: Location | None) -> Finding | None:
        if key in _UNMANAGED:
            what = f"{key} is not managed: it {_UNMANAGED[key]}"
            return Finding("config-not-managed", what, "take it out of the spec", where)
        if key not in self.keys and not _is_internal(key):
            what, way_out = self._explain_unknown(key)
            return Finding("config-unknown", what, way_out, where)
        if _is_internal(key):
            what = f"{key} is internal to Kafka's own tests: brokers take it and never show it"
            return Finding("config-internal", what, "take it out of the spec", where)
        return None

    def _explain_unknown(self, key: str) -> tuple[str, str]:
        known_to = lines_that_know(key)
        if known_to and known_to[0] > self.line:
            what = f"{key} is known from Kafka {spell(known_to[0])} on, and not to {self.version}"
            return what, "take it out of the spec until the cluster runs that"
        if known_to:
            what = f"{key} is known up to Kafka {spell(known_to[-1])}, and not to {self.version}"
            return what, "take it out of the spec"
        what = f"Kafka {self.version} has no topic config {quote(key)}"
        meant = self._find_meant(key)
        return what, f"did you mean {meant}?" if meant else "take it out of the spec"

    def _find_meant(self, key: str) -> str | None:
        for name in self.settable:
            if key in self.keys[name].synonyms:
                return name
        plain = key.strip().lower().replace("_", ".").replace("-", ".")
        found = get_close_matches(plain, self.settable, n=1, cutoff=0.7)
        return found[0] if found else None


def _is_internal(key: str) -> bool:
    """Tell whether a config is internal on a line that knows it, so that none is waited for."""
    known_to = lines_that_know(key)
    return bool(known_to) and load_release(known_to[-1]).keys[key].internal


@cache
def catalogue(kafka_version: str | None = None) -> Catalogue:
    """Return the catalogue for a Kafka version such as `4.1` or `4.1.2`; the newest for None.

    A version without a catalogue gets the nearest older one, or the oldest, and a note.
    Errors: ValueError for a text that is no version.
    """
    wanted = LINES[-1] if kafka_version is None else parse_version(kafka_version)
    line = choose_line(wanted)
    note = ""
    if wanted != line:
        note = (
            f"Kafka {spell(wanted)} has no catalogue here: configs are checked as {spell(line)}'s"
        )
    return Catalogue(line, load_release(line).keys, note, wanted < line)


def _read_text(key: ConfigKey, value: object) -> str:
    """Turn a YAML value into the text that a broker would be sent."""
    text = _read_items(key, value) if isinstance(value, list | tuple) else _read_scalar(key, value)
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_VALUE_BYTES:
        what = f"{key.name} has a value of {size} bytes, and brokers read {MAX_VALUE_BYTES}"
        raise RefusedValueError("config-too-long", what, "shorten it")
    return text


def _read_items(key: ConfigKey, items: Iterable[object]) -> str:
    if key.type is not ConfigType.LIST:
        raise RefusedValueError(
            "config-type", f"{key.name} takes one value, not a list", "write one"
        )
    texts = [_read_scalar(key, item) for item in items]
    for text in texts:
        if "," in text or not text:
            what = f"{key.name} has an item {quote(text)} that is not one item"
            raise RefusedValueError("config-type", what, "write each item by itself")
    return ",".join(texts)


def _read_scalar(key: ConfigKey, value: object) -> str:
    match value:
        case None:
            what = f"{key.name} has no value, and Kafka takes none for one"
            raise RefusedValueError("config-null", what, "write a value, or take the key out")
        case bool():
            return "true" if value else "false"
        case str() | int() | float():
            return str(value)
        case _:
            shape = "a map" if isinstance(value, dict) else "a list"
            what = f"{key.name} takes a plain value, not {shape}"
            raise RefusedValueError("config-type", what, "write one value")
