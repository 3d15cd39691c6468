"""Gradual lowering of retention: how far one plan may lower it, if the spec sets a limit.

There is no state between plans: the live value determines the remaining steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from reconciler.errors import Finding, Severity
from reconciler.model.cluster import TopicSpec
from reconciler.units import DURATION, SIZE, format_duration, format_size

Config = Mapping[str, str]

LOCAL_PARTS: Mapping[str, str] = MappingProxyType(
    {"retention.ms": "local.retention.ms", "retention.bytes": "local.retention.bytes"}
)
"""The limits that are lowered in steps, and the local part of each on a tiered topic.

The local part alone is lowered at once, because the remote tier has a copy of each deleted record.
"""
GRADUAL_KEYS = frozenset(LOCAL_PARTS)

_NAMED = 4


@dataclass(frozen=True, slots=True)
class Descent:
    """A desired config within the limit of one plan, with notes on the rest."""

    config: Config
    refusals: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()


def lower_gradually(
    spec: TopicSpec, overrides: Config, desired: Config, defaults: Config
) -> Descent:
    """Limit retention to its next step if a spec is gradual; other configs stay as desired.

    In: the managed overrides, live and desired, and the defaults of the brokers.
    """
    before, after = {**defaults, **overrides}, {**defaults, **desired}
    # Retention has no effect on a topic that is only compacted: its limits need no steps.
    deletes = "delete" in after.get("cleanup.policy", "delete").split(",")
    if not spec.gradual or not deletes:
        return Descent(desired)
    config, refusals, notes = dict(desired), [], []
    for key, local in LOCAL_PARTS.items():
        found, target = before.get(key), after.get(key)
        limits: tuple[int, ...] = ()
        if _is_open(found, target):
            refusals.append(_refuse_open(spec, key, found, target))
        elif found is not None and target is not None and int(target) >= 0:
            limits = list_limits(int(found), int(target), spec.gradual, key)
        if len(limits) > 1:
            config[key] = str(limits[0])
            # If remote.log.copy.disable is true, brokers require the local limit to be equal.
            if desired.get(local) == target:
                config[local] = config[key]
            notes.append(_report_steps(spec, key, int(found or 0), limits))
    return Descent(dict(sorted(config.items())), tuple(refusals), tuple(notes))


def list_limits(found: int, target: int, factor: int, key: str) -> tuple[int, ...]:
    """List the limits of all steps from `found` down to `target`, which is the last limit.

    Each limit is at least the one before divided by `factor`. The number of steps is minimal: the
    least n with found <= target * factor ** n. Among these limits, round numbers are preferred.
    """
    if found <= target:
        return ()
    scale = DURATION if key.endswith(".ms") else SIZE
    units = [scale.units[unit] for unit in scale.shown]  # largest first
    floor = max(target, 1)  # 0 cannot be reached by division
    limits = []
    while found > floor * factor:
        # The remaining steps reach the target from `highest`, and not from a higher limit. The
        # smallest unit is 1, and found / factor, rounded up, is at most `highest`: some limit fits.
        highest = floor
        while highest * factor < found:
            highest *= factor
        rounded = (-(-found // (factor * unit)) * unit for unit in units)
        found = next(limit for limit in rounded if limit <= highest)
        limits.append(found)
    return (*limits, target)


def _is_open(found: str | None, target: str | None) -> bool:
    """Return whether a limit goes down from or to a value that no step can divide.

    Such a value is unknown or unlimited.
    """
    if found == target or (target is not None and int(target) < 0):
        return False
    return found is None or target is None or int(found) < 0


def _refuse_open(spec: TopicSpec, key: str, found: str | None, target: str | None) -> Finding:
    shown, desired = (_show(key, value) for value in (found, target))
    way_out = (
        f"first write an explicit {key} with gradual: false, and apply it: later steps start "
        "there; or keep gradual: false, to change it in one step"
    )
    what = f"{key} {shown} → {desired} cannot go down in steps: there is nothing to divide"
    return Finding("gradual-needs-limit", what, way_out, spec.where(f"config.{key}"))


def _show(key: str, value: str | None) -> str:
    if value is None:
        return "(the brokers' own, not known here)"
    return "-1 (no limit)" if int(value) < 0 else _format(key, int(value))


def _format(key: str, limit: int) -> str:
    return format_duration(limit) if key.endswith(".ms") else format_size(limit)


def _report_steps(spec: TopicSpec, key: str, found: int, limits: tuple[int, ...]) -> Finding:
    """Report the step of this plan and the steps of later plans."""
    first, *later = (_format(key, limit) for limit in limits)
    named = later if len(later) <= _NAMED else [*later[: _NAMED - 2], "…", later[-1]]
    rest = "".join(f", then {limit}" for limit in named)
    what = (
        f"{key} goes from {_format(key, found)} to {later[-1]} in {len(limits)} steps: "
        f"{first} now{rest}"
    )
    way_out = "apply, then plan again for the next step"
    where = spec.where(f"config.{key}")
    return Finding("gradual-step", what, way_out, where, Severity.NOTE)
