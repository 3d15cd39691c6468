"""Configs that only hold together: what the broker checks across the keys of one topic.

Follows LogConfig.validate of each release line. A key that the topic does not set counts with
its default; a broker whose own defaults were changed may judge otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.errors import Finding
from reconciler.spec.scalars import split_list
from reconciler.units import describe_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reconciler.errors import Location
    from reconciler.spec.catalogue import Line

    Where = Callable[[str], Location | None]

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


def check_lags(config: Mapping[str, str], where: Where) -> list[Finding]:
    """Check that min.compaction.lag.ms does not exceed max.compaction.lag.ms."""
    shortest, longest = "min.compaction.lag.ms", "max.compaction.lag.ms"
    if int(config[shortest]) <= int(config[longest]):
        return []
    what = f"{_show(config, shortest)} exceeds {_show(config, longest)}"
    return [
        Finding("config-lag-pair", what, "lower the first or raise the second", where(shortest))
    ]


def check_tiered(config: Mapping[str, str], line: Line, where: Where) -> list[Finding]:
    """Check the rules of tiered storage; without remote.storage.enable none of them applies.

    `config` holds a value for every key of the line. Whether the brokers have tiered storage
    switched on, only they know.
    """
    if config["remote.storage.enable"] != "true":
        return []
    findings = _check_policy(config, line, where)
    for unit in ("bytes", "ms"):
        findings += _check_local_retention(config, unit, where)
        findings += _check_copy_lag(config, unit, where)
        findings += _check_copy_disabled(config, unit, where)
    return findings


def _show(config: Mapping[str, str], key: str) -> str:
    return f"{key} {describe_value(key, config[key])}"


def _check_policy(config: Mapping[str, str], line: Line, where: Where) -> list[Finding]:
    policy = set(split_list(config["cleanup.policy"]))
    if "compact" not in policy and (policy or line != _EMPTY_POLICY_REFUSED):
        return []
    shown = config["cleanup.policy"] or "empty"
    what = f"remote.storage.enable needs cleanup.policy delete, which is {shown}"
    way_out = "set cleanup.policy to delete, or remote.storage.enable to false"
    return [Finding("tiered-needs-delete", what, way_out, where("cleanup.policy"))]


def _check_local_retention(config: Mapping[str, str], unit: str, where: Where) -> list[Finding]:
    whole, local = f"retention.{unit}", f"local.retention.{unit}"
    limit, kept = int(config[whole]), int(config[local])
    if limit <= NO_LIMIT or kept == FOLLOWS_RETENTION or NO_LIMIT < kept <= limit:
        return []
    what = f"{_show(config, local)} keeps more than {_show(config, whole)}"
    way_out = f"use {FOLLOWS_RETENTION}, which follows {whole}, or 0 to {limit}"
    return [Finding("tiered-local-retention", what, way_out, where(local))]


def _check_copy_lag(config: Mapping[str, str], unit: str, where: Where) -> list[Finding]:
    lag = f"remote.copy.lag.{unit}"
    if lag not in config:
        return []
    local = f"local.retention.{unit}"
    source = f"retention.{unit}" if int(config[local]) == FOLLOWS_RETENTION else local
    if int(config[source]) < 0 or int(config[lag]) <= int(config[source]):
        return []
    what = f"{_show(config, lag)} exceeds {_show(config, source)}, so records go uncopied"
    return [Finding("tiered-copy-lag", what, f"use at most {config[source]}", where(lag))]


def _check_copy_disabled(config: Mapping[str, str], unit: str, where: Where) -> list[Finding]:
    whole, local = f"retention.{unit}", f"local.retention.{unit}"
    follows = int(config[local]) in {FOLLOWS_RETENTION, int(config[whole])}
    if config["remote.log.copy.disable"] != "true" or follows:
        return []
    what = f"remote.log.copy.disable is true and {_show(config, local)} is not {whole}"
    way_out = f"use {FOLLOWS_RETENTION} or {config[whole]}: nothing is copied any more"
    return [Finding("tiered-copy-disabled", what, way_out, where(local))]
