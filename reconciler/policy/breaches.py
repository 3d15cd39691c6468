"""What breaks a policy: a finding, and the limit and the value that it is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.errors import Finding

if TYPE_CHECKING:
    from reconciler.policy.policy import Bounds, BrokenLimit


@dataclass(frozen=True, slots=True)
class Breach:
    """A limit that a topic, or all topics of an owner, break on one cluster.

    `broken` is None for what no baseline exempts. `value` is what the spec asks for, as the brokers
    spell it; empty if the limit is about no value. `bounds` is the range that the value is outside
    of; None if the limit is no range.
    """

    finding: Finding
    broken: BrokenLimit | None
    value: str = ""
    bounds: Bounds | None = None
