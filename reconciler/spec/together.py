"""Configs that only hold together: what the broker checks across the keys of one topic.

Follows LogConfig.validate of each release line. A key that the topic does not set counts with
its default; a broker whose own defaults were changed may judge otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.spec.scalars import split_list
from reconciler.units import describe_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconciler.spec.catalogue import Line

_SWITCH = "remote.storage.enable"

LAGS = frozenset({"min.compaction.lag.ms", "max.compaction.lag.ms"})
"""The configs that are judged together on every topic."""

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
"""Those that are as well where the topic is tiered."""

NO_LIMIT = -1
FOLLOWS_RETENTION = -2
_EMPTY_POLICY_REFUSED: Line = (4, 1)


@dataclass(frozen=True, slots=True)
class Clash:
    """Configs that contradict each other: the rule, what, the way out, and the keys it is about.

    The first key is the one that is blamed where nothing says who wrote which.
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

    `config` holds a value for every key of the line. Whether the brokers have tiered storage
    switched on, only they know.
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
