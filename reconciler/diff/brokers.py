"""Brokers: which are eligible for new replicas, and refusals if these are too few or unfit."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from reconciler.diff.refusals import Allows, allow_all, join_ways, list_factors, name_allowed
from reconciler.errors import Finding
from reconciler.model.cluster import Assignment, Broker, TopicSpec
from reconciler.units import count, name_each

NAMED = 3
"""The number of ineligible brokers named with their reason; the others are counted."""


def eligible_brokers(
    brokers: Iterable[Broker], excluded: Collection[int] = ()
) -> tuple[Broker, ...]:
    """Return the eligible brokers by id: alive, not cordoned, not excluded."""
    return tuple(sorted(b for b in brokers if b.alive and not b.cordoned and b.id not in excluded))


class PlacementBrokers:
    """The brokers of one cluster: refuses specs that they cannot hold."""

    def __init__(
        self, brokers: Iterable[Broker], excluded: Collection[int], allows: Allows = allow_all
    ) -> None:
        self.brokers = {broker.id: broker for broker in brokers}
        self.eligible = eligible_brokers(self.brokers.values(), excluded)
        self.excluded = excluded
        self.allows = allows

    def refuse_placement(
        self,
        spec: TopicSpec,
        manual: Assignment | None,
        replication: int,
        *,
        fixed: bool = False,
    ) -> Iterator[Finding]:
        """Refuse new partitions that the eligible brokers cannot hold.

        `manual` holds the rows of these partitions if the spec lists them. `fixed`: the topic
        exists, and its replication factor cannot change.
        """
        able = len(self.eligible)
        unracked = [broker.id for broker in self.eligible if broker.rack is None]
        if manual is not None:
            yield from self._refuse_rows(spec, manual)
        elif replication > able:
            edits = () if fixed or not able else list_factors(spec, able, f"use at most {able}")
            lower = name_allowed(edits, self.allows)
            yield Finding(
                "rf-le-brokers",
                f"replication_factor {replication} exceeds the {count(able, 'broker')} "
                f"that can take replicas{self._name_others()}",
                join_ways(lower, "add brokers"),
                spec.where("replication_factor"),
            )
        elif spec.rack_aware and 0 < len(unracked) < able:
            # A cluster without any rack is fine: there, the spread over racks has no meaning.
            who, there = f"{name_each('broker', unracked)} report", "them"
            if len(unracked) == 1:
                who, there = f"{who}s", "it"
            edit = ("write rack_aware: false in the spec", replace(spec, rack_aware=False))
            yield Finding(
                "racks-known",
                f"{who} no rack while others do, so spreading over racks cannot be promised",
                join_ways(f"set broker.rack on {there}", name_allowed([edit], self.allows)),
                spec.location,
            )

    def _name_others(self) -> str:
        """Return why the other brokers are ineligible, for a few of them."""
        able = {broker.id for broker in self.eligible}
        troubles = [
            f"not {broker_id}, {trouble[1]}"
            for broker_id in sorted(self.brokers.keys() - able)
            if (trouble := self._trouble_with(broker_id))
        ]
        beyond = [f"nor {len(troubles) - NAMED} more"] if len(troubles) > NAMED else []
        return f" ({'; '.join([*troubles[:NAMED], *beyond])})" if troubles else ""

    def _refuse_rows(self, spec: TopicSpec, rows: Assignment) -> Iterator[Finding]:
        """Refuse every ineligible broker in manual rows, which are the last rows of the spec."""
        start = len(spec.assignment or ()) - len(rows)
        for partition, replicas in enumerate(rows, start):
            yield from self.refuse_brokers(spec, partition, replicas)

    def refuse_brokers(
        self, spec: TopicSpec, partition: int, brokers: Iterable[int]
    ) -> Iterator[Finding]:
        """Refuse every ineligible broker that a manual row puts a replica on."""
        for broker_id in brokers:
            trouble = self._trouble_with(broker_id)
            if trouble:
                rule, what, way_out = trouble
                where = spec.where(f"assignment.{partition}")
                said = f"partition {partition} is assigned to broker {broker_id}, {what}"
                yield Finding(rule, said, way_out, where)

    def _trouble_with(self, broker_id: int) -> tuple[str, str, str] | None:
        """Return the rule, the reason and the way out for an ineligible broker."""
        broker = self.brokers.get(broker_id)
        others = ", ".join(str(b.id) for b in self.eligible) or "none"
        way_out = f"brokers that can take replicas: {others}"
        if broker is None:
            return ("broker-unknown", "which the cluster does not have", way_out)
        if not broker.alive:
            return ("broker-dead", "which is not alive", f"start it first; {way_out}")
        if broker.cordoned:
            return ("broker-cordoned", "whose log directories are all cordoned", way_out)
        if broker_id in self.excluded:
            return ("broker-excluded", "which exclude_brokers or drain_brokers keeps out", way_out)
        return None
