"""Topic configs of one Kafka version: values are checked and normalised as its brokers do.

Brokers accept every value that passes here. Some values that they accept are refused for safety:
see `docs/reference/rules.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from reconciler.errors import Finding, Location
from reconciler.spec.catalogue import (
    LINES,
    ConfigKey,
    ConfigType,
    Line,
    choose_line,
    lines_that_know,
    load_release,
    parse_version,
    spell_line,
)
from reconciler.spec.config_docs import DOCS, Dimension
from reconciler.spec.scalars import RefusedValueError, spell_value, split_list
from reconciler.spec.values import quote
from reconciler.units import describe_value

_SWITCH = "remote.storage.enable"

LAGS = frozenset({"min.compaction.lag.ms", "max.compaction.lag.ms"})
"""The configs that are checked together on every topic."""

TIERED = frozenset(
    {
        "cleanup.policy",
        "retention.ms",
        "retention.bytes",
        "local.retention.ms",
        "local.retention.bytes",
        "remote.log.copy.disable",
    }
)
"""The further configs that are checked together on a tiered topic."""

NO_LIMIT = -1
FOLLOWS_RETENTION = -2
_EMPTY_POLICY_REFUSED: Line = (4, 1)


@dataclass(frozen=True, slots=True)
class Clash:
    """Configs that contradict each other: the rule, the message, the way out, and the keys.

    `Catalogue.check_together` places the finding at the first key.
    """

    rule: str
    what: str
    way_out: str
    keys: tuple[str, ...]


def check_lags(config: Mapping[str, str]) -> list[Clash]:
    """Check that min.compaction.lag.ms does not exceed max.compaction.lag.ms."""
    shortest, longest = "min.compaction.lag.ms", "max.compaction.lag.ms"
    if int(config[shortest]) <= int(config[longest]):
        return []
    what = f"{_show(config, shortest)} exceeds {_show(config, longest)}"
    way_out = "lower the first or raise the second"
    return [Clash("config-lag-pair", what, way_out, (shortest, longest))]


def check_tiered(config: Mapping[str, str], line: Line) -> list[Clash]:
    """Check the rules of tiered storage; without remote.storage.enable none of them applies.

    `config` holds a value for every key of the line. Only the brokers know whether tiered storage
    is enabled.
    """
    if config[_SWITCH] != "true":
        return []
    findings = _check_policy(config, line)
    for unit in ("bytes", "ms"):
        findings += _check_local_retention(config, unit)
        findings += _check_copy_lag(config, unit)
        findings += _check_copy_disabled(config, unit)
    return findings


def _show(config: Mapping[str, str], key: str) -> str:
    return f"{key} {describe_value(key, config[key])}"


def _check_policy(config: Mapping[str, str], line: Line) -> list[Clash]:
    policy = set(split_list(config["cleanup.policy"]))
    if "compact" not in policy and (policy or line != _EMPTY_POLICY_REFUSED):
        return []
    shown = config["cleanup.policy"] or "empty"
    what = f"remote.storage.enable needs cleanup.policy delete, which is {shown}"
    way_out = "set cleanup.policy to delete, or remote.storage.enable to false"
    return [Clash("tiered-needs-delete", what, way_out, ("cleanup.policy", _SWITCH))]


def _check_local_retention(config: Mapping[str, str], unit: str) -> list[Clash]:
    whole, local = f"retention.{unit}", f"local.retention.{unit}"
    limit, kept = int(config[whole]), int(config[local])
    if limit <= NO_LIMIT or kept == FOLLOWS_RETENTION or NO_LIMIT < kept <= limit:
        return []
    what = f"{_show(config, local)} keeps more than {_show(config, whole)}"
    way_out = f"use {FOLLOWS_RETENTION}, which follows {whole}, or 0 to {limit}"
    return [Clash("tiered-local-retention", what, way_out, (local, whole, _SWITCH))]


def _check_copy_lag(config: Mapping[str, str], unit: str) -> list[Clash]:
    lag = f"remote.copy.lag.{unit}"
    if lag not in config:
        return []
    local = f"local.retention.{unit}"
    source = f"retention.{unit}" if int(config[local]) == FOLLOWS_RETENTION else local
    if int(config[source]) < 0 or int(config[lag]) <= int(config[source]):
        return []
    what = f"{_show(config, lag)} exceeds {_show(config, source)}, so records go uncopied"
    return [Clash("tiered-copy-lag", what, f"use at most {config[source]}", (lag, source, _SWITCH))]


def _check_copy_disabled(config: Mapping[str, str], unit: str) -> list[Clash]:
    whole, local = f"retention.{unit}", f"local.retention.{unit}"
    follows = int(config[local]) in {FOLLOWS_RETENTION, int(config[whole])}
    if config["remote.log.copy.disable"] != "true" or follows:
        return []
    what = f"remote.log.copy.disable is true and {_show(config, local)} is not {whole}"
    way_out = f"use {FOLLOWS_RETENTION} or {config[whole]}: nothing is copied any more"
    keys = (local, "remote.log.copy.disable", whole, _SWITCH)
    return [Clash("tiered-copy-disabled", what, way_out, keys)]


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
    """The topic configs of one release line, and those of the service that runs a cluster.

    `note` is set if another version was requested; `older` is true if this one is older. `offered`
    holds the only configs that a service lets anyone set, also some that are not Kafka's; None
    means all of Kafka. `keeps_defaults`: a topic keeps an override that equals the default.
    """

    line: Line
    keys: Mapping[str, ConfigKey]
    note: str = ""
    older: bool = False
    offered: frozenset[str] | None = None
    keeps_defaults: bool = True

    @property
    def version(self) -> str:
        """The release line, such as 4.1."""
        return spell_line(self.line)

    @property
    def settable(self) -> tuple[str, ...]:
        """The configs that a spec can set, sorted: not internal, and not set by other tools."""
        return tuple(
            sorted(n for n, k in self.keys.items() if not k.internal and n not in _UNMANAGED)
        )

    def offers(self, key: str) -> bool:
        """Return whether a spec can set a config on the cluster."""
        return key in (self.keys if self.offered is None else self.offered)

    def refuse_key(self, key: str, where: Location | None) -> list[Finding]:
        """Refuse a config that no spec can name, whatever its value; nothing if one can."""
        if key in _UNMANAGED:
            what = f"{key} is not managed: it {_UNMANAGED[key]}"
            return [Finding("config-not-managed", what, "remove it from the spec", where)]
        if _is_internal(key):  # also if this version does not know it
            what = f"{key} is internal to Kafka's own tests: brokers accept it and never show it"
            return [Finding("config-internal", what, "remove it from the spec", where)]
        if key not in self.keys and not self.offers(key):
            what, way_out = self._explain_unknown(key)
            return [Finding("config-unknown", what, way_out, where)]
        return []

    def normalise(self, key: str, value: object, where: Location | None) -> str | list[Finding]:
        """Normalise a value as the broker would report it, or return every error in it.

        `value` is a YAML scalar, as text or as Python has it, or a list of them for a LIST. A value
        of a config that is not Kafka's stays as it is written, but for true and false.
        """
        if findings := self.refuse_key(key, where):
            return findings
        known = self.keys.get(key)
        try:
            text = _read_text(known or ConfigKey(key, ConfigType.STRING, None), value)
            if known is None:
                return _spell_foreign(text)
            return spell_value(known, self.dimension(key), text)
        except RefusedValueError as refused:
            return [Finding(refused.rule, refused.what, refused.way_out, where)]

    def check_together(
        self, config: Mapping[str, str], where: Callable[[str], Location | None]
    ) -> list[Finding]:
        """Check an entire normalised config for keys that contradict each other.

        `where` returns the location of a key. Absent keys have their defaults.
        """
        return [
            Finding(clash.rule, clash.what, clash.way_out, where(clash.keys[0]))
            for clash in self.find_clashes(config)
        ]

    def find_clashes(self, config: Mapping[str, str]) -> list[Clash]:
        """List the keys of an entire config that contradict each other."""
        whole = {name: key.default or "" for name, key in self.keys.items()} | dict(config)
        return [*check_lags(whole), *check_tiered(whole, self.line)]

    def default(self, key: str) -> str | None:
        """Return the value that applies if neither topic nor broker sets a key; None if unknown."""
        return self.keys[key].default if key in self.keys else None

    def is_list(self, key: str) -> bool:
        """Return whether a key holds a list. The order of a list has no meaning."""
        return key in self.keys and self.keys[key].type is ConfigType.LIST

    def same(self, key: str, a: str | None, b: str | None) -> bool:
        """Return whether two values mean the same: lists as sets, doubles as numbers.

        The type of a config that is not Kafka's is not known: only true and false have no case.
        """
        if a == b or a is None or b is None:
            return a == b
        if key not in self.keys:
            return _spell_foreign(a) == _spell_foreign(b)
        match self.keys[key].type:
            case ConfigType.LIST:
                return set(split_list(a)) == set(split_list(b))
            case ConfigType.DOUBLE:
                return float(a) == float(b)
            case _:
                return False

    def interpret(self, key: str, text: str) -> int | float | bool | str | list[str]:
        """Return a value as number, flag or list; otherwise as text."""
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
        """Return the dimension of a key; None if it has no description yet."""
        return DOCS[key][0] if key in DOCS else None

    def describe(self, key: str) -> str:
        """Return the one-line description of a key; empty if there is none yet."""
        return DOCS[key][1] if key in DOCS else ""

    def explain_left(self, key: str) -> tuple[str, str]:
        """Return why a live config is left alone, and how a spec can manage it."""
        if self.offers(key):
            return "no spec names it there", "to manage it, write a value, or null to remove it"
        if self.offered is not None:
            return (
                "it cannot be set there",
                "if it can, list it in known_configs with all the others",
            )
        why, known_to = f"Kafka {self.version} has no such topic config", lines_that_know(key)
        if known_to:
            line = spell_line(known_to[0] if known_to[0] > self.line else known_to[-1])
            return why, f'write kafka_version: "{line}" if the cluster runs that'
        return why, "to manage it, list it in known_configs with all other configs of the service"

    def _explain_unknown(self, key: str) -> tuple[str, str]:
        known_to = lines_that_know(key)
        if known_to and known_to[0] > self.line:
            what = (
                f"{key} is known from Kafka {spell_line(known_to[0])} on, and not to {self.version}"
            )
            line = spell_line(known_to[0])
            way_out = "remove it from the spec until the cluster runs that"
            return what, f'{way_out}, or write kafka_version: "{line}" if it does'
        if known_to:
            what = (
                f"{key} is known up to Kafka {spell_line(known_to[-1])}, and not to {self.version}"
            )
            line = spell_line(known_to[-1])
            way_out = f'remove it from the spec, or write kafka_version: "{line}"'
            return what, f"{way_out} if the cluster runs that"
        from difflib import get_close_matches

        what = f"Kafka {self.version} has no topic config {quote(key)}"
        # A broker config, such as log.retention.ms, has a topic config of another name.
        meant = [name for name in self.settable if key in self.keys[name].synonyms]
        plain = key.strip().lower().replace("_", ".").replace("-", ".")
        known = {*self.settable, *(self.offered or ()) - self.keys.keys()}
        meant += get_close_matches(plain, sorted(known), n=1, cutoff=0.7)
        if meant:
            return what, f"did you mean {meant[0]}?"
        return what, "remove it from the spec, or list it in known_configs if the service has it"


def _is_internal(key: str) -> bool:
    """Return whether a config is internal on the newest line that knows it."""
    for line in reversed(LINES):  # mostly the newest: the others are not even read
        if key in load_release(line).keys:
            return load_release(line).keys[key].internal
    return False


@cache
def choose_catalogue(
    kafka_version: str | None = None,
    offered: frozenset[str] | None = None,
    *,
    keeps_defaults: bool = True,
) -> Catalogue:
    """Return the catalogue for a Kafka version such as `4.1` or `4.1.2`; the newest for None.

    A version without a catalogue gets the nearest older one, or the oldest, and a note. The others:
    as in `Catalogue`. Errors: ValueError for a text that is no version.
    """
    wanted = LINES[-1] if kafka_version is None else parse_version(kafka_version)
    line = choose_line(wanted)
    note = ""
    if wanted != line:
        note = f"Kafka {spell_line(wanted)} has no catalogue here: "
        note += f"configs are checked as {spell_line(line)}'s"
    keys = load_release(line).keys
    return Catalogue(line, keys, note, wanted < line, offered, keeps_defaults)


def _spell_foreign(text: str) -> str:
    """Spell a value of a config that is not Kafka's: True and TRUE are true, as YAML has it."""
    return text.lower() if text.lower() in ("true", "false") else text


def _read_text(key: ConfigKey, value: object) -> str:
    """Turn a YAML value into the text that a client sends to a broker."""
    text = _read_items(key, value) if isinstance(value, list | tuple) else _read_scalar(key, value)
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_VALUE_BYTES:
        what = f"{key.name} has a value of {size} bytes, and brokers read {MAX_VALUE_BYTES}"
        raise RefusedValueError("config-too-long", what, "shorten it")
    return text


def _read_items(key: ConfigKey, items: Iterable[object]) -> str:
    if key.type is not ConfigType.LIST:
        raise RefusedValueError(
            "config-type", f"{key.name} needs one value, not a list", "write one"
        )
    texts = [_read_scalar(key, item) for item in items]
    for text in texts:
        if "," in text or not text:
            what = f"{key.name} has an item {quote(text)} that is empty or contains a comma"
            raise RefusedValueError("config-type", what, "write each item separately")
    return ",".join(texts)


def _read_scalar(key: ConfigKey, value: object) -> str:
    match value:
        case None:
            what = f"{key.name} has no value, and Kafka does not accept an empty one"
            raise RefusedValueError("config-null", what, "write a value, or remove the key")
        case bool():
            return "true" if value else "false"
        case str() | int() | float():
            return str(value)
        case _:
            shape = "a map" if isinstance(value, dict) else "a list"
            what = f"{key.name} needs a plain value, not {shape}"
            raise RefusedValueError("config-type", what, "write one value")
