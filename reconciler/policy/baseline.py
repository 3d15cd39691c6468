"""The baseline of a policy: it exempts what broke a limit before, as long as it gets no worse."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from reconciler.errors import Finding
from reconciler.policy.breaches import Breach
from reconciler.policy.limits import read_limit
from reconciler.policy.policy import Bounds, Policy
from reconciler.units import describe_value


class Settled(NamedTuple):
    """The findings of breaches that nothing exempts, and the breaches that the baseline exempts."""

    findings: tuple[Finding, ...]
    exempt: tuple[Breach, ...]


def settle(breaches: Iterable[Breach], policy: Policy) -> Settled:
    """Sort breaches by whether the baseline exempts them."""
    findings, exempt = [], []
    for breach in breaches:
        broken, baseline = breach.broken, policy.baseline
        known = None if baseline is None or broken is None else baseline.values.get(broken)
        if broken is not None and baseline is not None and baseline.everything:
            exempt.append(breach)
        elif broken is None or known is None:
            findings.append(breach.finding)
        elif is_worse(broken.limit, breach.value, known, breach.bounds):
            shown = describe_value(broken.limit, known) if known else "another value"
            what = f"{breach.finding.what} (the baseline exempts {shown})"
            findings.append(replace(breach.finding, what=what))
        else:
            exempt.append(breach)
    return Settled(tuple(findings), tuple(exempt))


def is_worse(limit: str, value: str, known: str, bounds: Bounds | None) -> bool:
    """Return whether a value breaks a limit more than a known one; without a range, otherwise.

    In: the config or count that is limited. A value on the other side of a range is worse.
    """
    before = measure_excess(limit, known, bounds) if bounds else None
    now = measure_excess(limit, value, bounds) if bounds else None
    if before is None or now is None:
        return _split(value) != _split(known)
    return before[0] != now[0] or now[1] > before[1]


def measure_excess(limit: str, value: str, bounds: Bounds) -> tuple[str, float] | None:
    """Return the end of a range that a value is beyond, and how far; None for no number."""
    number = read_limit(limit, value)
    if number is None:
        return None
    if bounds.most is not None and number > bounds.most.number:
        return "max", number - bounds.most.number
    if bounds.least is not None and number < bounds.least.number:
        return "min", bounds.least.number - number
    return "", 0.0


def _split(value: str) -> frozenset[str]:
    """Return the items of a list, whose order does not matter."""
    return frozenset(value.split(","))
