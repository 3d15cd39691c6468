"""Specs planned and applied to a real cluster, as the five calls of the package do it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from confluent_kafka.admin import AdminClient
from shorthand import CATALOGUE

from reconciler.apply.engine import run_plan
from reconciler.changes.build import assemble_plan
from reconciler.changes.topics import diff_topics
from reconciler.errors import Location
from reconciler.kafka.connection import connect
from reconciler.kafka.reader import KafkaReader
from reconciler.kafka.writer import KafkaWriter
from reconciler.model.cluster import ClusterState, Guards, TopicSpec, TopicState
from reconciler.model.plan import Plan
from reconciler.run.ending import Applied
from reconciler.sandbox.cluster import Cluster
from reconciler.spec.entry import ClusterEntry

NO_GUARDS = Guards()
ENTRY = ClusterEntry("lab", Location("topics/clusters.yaml", 3))


class Workbench:
    """A cluster and what is done to it, through brokers or through proxies before them."""

    def __init__(self, cluster: Cluster, servers: str | None = None) -> None:
        self.connection = connect(ENTRY, bootstrap_servers=servers or cluster.bootstrap_servers)
        self.reader = KafkaReader(self.connection)
        self.writer = KafkaWriter(self.connection)
        # What others do to the cluster meanwhile takes the straight way.
        self.others = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})

    def read(self, names: Iterable[str]) -> ClusterState:
        """Read a cluster and what identifies some of its topics."""
        names = list(names)
        state = self.reader.read_cluster(config_of=names)
        ids = self.reader.read_topic_ids([name for name in names if name in state.topics])
        named = {name: replace(state.topics[name], topic_id=ids[name]) for name in ids}
        return replace(state, topics={**state.topics, **named})

    def topics(self, *names: str) -> Mapping[str, TopicState]:
        """Read some topics, ids and overrides included."""
        topics = self.read(names).topics
        return {name: topics[name] for name in names if name in topics}

    def plan(self, *specs: TopicSpec, guards: Guards = NO_GUARDS, **found: Any) -> Plan:
        """Plan on the cluster as it is, but for what is said to be `found`."""
        state = replace(self.read(spec.name for spec in specs), **found)
        doomed = [spec.name for spec in specs if spec.absent and spec.name in state.topics]
        state = replace(state, usage=self.reader.read_usage(doomed))
        return assemble_plan("lab", diff_topics(specs, state, CATALOGUE, guards=guards), state)

    def apply(self, plan: Plan, **more: Any) -> Applied:
        more.setdefault("patience_s", 30.0)  # nothing here takes longer
        return run_plan(plan, self.reader, self.writer, time, **more)

    def bring(self, *specs: TopicSpec) -> Plan:
        """Make a cluster as specs say. Returns the plan that did it."""
        plan = self.plan(*specs)
        applied = self.apply(plan)
        assert applied.succeeded, applied
        return plan


def outcomes(applied: Applied) -> dict[str, str]:
    """Return what became of each topic, in a word."""
    return {outcome.topic: str(outcome.kind) for outcome in applied.outcomes}


def texts(applied: Applied) -> dict[str, str]:
    """Return what is said of each topic."""
    return {outcome.topic: outcome.text for outcome in applied.outcomes}


def assert_landed(bench: Workbench, plan: Plan) -> None:
    """Check that each topic is what its plan says, to the last replica and override."""
    found = bench.topics(*(topic.name for topic in plan.topics))
    for topic in plan.topics:
        assert topic.after is not None
        assert found[topic.name].assignment == topic.after.assignment
        assert found[topic.name].config == topic.after.config


def remove(bench: Workbench, names: Iterable[str]) -> None:
    """Delete topics, and wait until no broker shows one: the next reading must not show half."""
    there = list(bench.topics(*names))
    for answer in bench.others.delete_topics(there).values() if there else ():
        answer.result(15)
    while any(view for view in bench.reader.read_views(there).values()):
        pass
