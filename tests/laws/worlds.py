"""Generated worlds: a cluster as it may be found, and specs that may ask anything of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st
from shorthand import CATALOGUE, HERE, NONE, NOW_MS

from reconciler.changes.build import assemble_plan
from reconciler.changes.topics import TopicDiff, diff_topics
from reconciler.diff.fields import NOT_MANAGED_KEYS
from reconciler.model.cluster import (
    Broker,
    ClusterState,
    Guards,
    Replicas,
    TopicSpec,
    TopicState,
    TopicUsage,
)
from reconciler.model.plan import Plan
from reconciler.model.steps import is_deletion, steps_of

NAMES = ("a", "b", "c.d", "c_d", "e", "f.g.h", "f_g.h", "i")
VALUES = {
    "cleanup.policy": ("delete", "compact", "compact,delete", "delete,compact"),
    "flush.ms": ("1", "2"),
    "min.cleanable.dirty.ratio": ("0.5", "0.25"),
    "min.insync.replicas": ("1", "2", "3"),
    "retention.bytes": ("-1", "1024", "2048"),
    "retention.ms": ("-1", "1000", "604800000"),
    "unclean.leader.election.enable": ("true", "false"),
}
RACKS = st.sampled_from((None, "a", "b", "c"))
configs = st.dictionaries(st.sampled_from(sorted(VALUES)), st.integers(0, 11), max_size=4).map(
    lambda drawn: {key: VALUES[key][pick % len(VALUES[key])] for key, pick in drawn.items()}
)
left_alone = st.dictionaries(
    st.sampled_from(sorted(NOT_MANAGED_KEYS)), st.just("0:1"), max_size=1
) | st.just({"old.key": None})


def seldom(one_in: int) -> st.SearchStrategy[bool]:
    """Draw True about once in so many times."""
    return st.integers(1, one_in).map(lambda drawn: drawn == one_in // 2 + 1)


@dataclass(frozen=True)
class World:
    """What a run finds and is asked for."""

    state: ClusterState
    specs: tuple[TopicSpec, ...]
    excluded: frozenset[int]
    guards: Guards = NONE

    def diffs(self) -> tuple[TopicDiff, ...]:
        return diff_topics(self.specs, self.state, CATALOGUE, self.excluded, self.guards)

    def plan(self) -> Plan:
        return assemble_plan("prod", self.diffs(), self.state, excluded=self.excluded, files=1)

    def applied(self) -> World:
        """Return the world once all steps of its plan are done."""
        topics = dict(self.state.topics)
        for planned in self.plan().topics:
            if is_deletion(planned):
                del topics[planned.name]
            elif steps_of(planned):
                assert planned.after is not None
                old = topics.get(planned.name, TopicState(planned.name, "new", ()))
                kept = {k: v for k, v in old.config.items() if v is None or k in NOT_MANAGED_KEYS}
                topics[planned.name] = replace(
                    old,
                    assignment=planned.after.assignment,
                    config={**kept, **planned.after.config},
                )
        return replace(self, state=replace(self.state, topics=topics))


@st.composite
def broker_lists(draw: st.DrawFn, least: int = 1) -> tuple[Broker, ...]:
    """Draw brokers: racks missing, unequal or none, most of them alive."""
    ids = draw(st.lists(st.integers(0, 9), min_size=least, max_size=7, unique=True))
    racks = draw(st.sampled_from((st.none(), st.sampled_from("abc"), RACKS)))
    return tuple(
        Broker(broker, draw(racks), alive=not draw(seldom(12)), cordoned=draw(seldom(12)))
        for broker in ids
    )


@st.composite
def rows_on(
    draw: st.DrawFn, ids: Sequence[int], replication: int, most: int = 6
) -> tuple[Replicas, ...]:
    """Draw partitions of so many distinct brokers each."""
    row = st.permutations(list(ids)).map(lambda drawn: tuple(drawn[:replication]))
    return tuple(draw(st.lists(row, min_size=1, max_size=most)))


@st.composite
def live_topics(draw: st.DrawFn, name: str, ids: Sequence[int]) -> TopicState:
    """Draw a topic as it may be found: uneven, of mixed replication, under reassignment."""
    replication = draw(st.integers(1, min(3, len(ids))))
    assignment = draw(rows_on(ids, replication))
    if draw(seldom(10)):
        assignment += draw(rows_on(ids, draw(st.integers(1, len(ids))), most=1))
    moving = frozenset({0}) if draw(seldom(10)) else frozenset()
    config = draw(configs) | (draw(left_alone) if draw(seldom(5)) else {})
    return TopicState(name, f"id-{name}", assignment, config, reassigning=moving)


@st.composite
def topic_specs(draw: st.DrawFn, name: str, ids: Sequence[int]) -> TopicSpec:
    """Draw a spec: plain, by hand, of an absent topic, possible or not."""
    wished: dict[str, Any] = {
        "partitions": draw(st.none() | st.integers(1, 9)),
        "replication_factor": draw(st.none() | st.integers(1, 4)),
        "config": draw(configs),
        "rack_aware": draw(st.booleans()),
        "acknowledge": frozenset(draw(st.sets(st.sampled_from(("ordering", "data-loss"))))),
        "absent": draw(seldom(8)),
    }
    if draw(seldom(3)):
        wished["assignment"] = draw(rows_on([*ids, 99], draw(st.integers(1, min(3, len(ids))))))
    return TopicSpec(name, HERE, **wished)


@st.composite
def usages(draw: st.DrawFn, topic: TopicState) -> TopicUsage:
    """Draw how a topic is used: not at all for the most part."""
    ends = tuple(draw(st.integers(0, 9)) for _ in topic.assignment)
    records = sum(ends) if draw(st.booleans()) else 0
    return TopicUsage(
        NOW_MS,
        groups=("g",) if draw(seldom(6)) else (),
        ends=ends,
        records=records,
        emptied=not records and any(ends),
        newest_ms=NOW_MS - draw(st.integers(1, 30)) * 86_400_000 if records else None,
        unseen="no rights" if draw(seldom(9)) else "",
    )


BOTH = frozenset({"ordering", "data-loss"})


@st.composite
def specs_to_create(draw: st.DrawFn, name: str, ids: Sequence[int]) -> TopicSpec:
    """Draw a spec that a healthy cluster satisfies: counts, or rows by hand."""
    replication = draw(st.integers(1, min(3, len(ids))))
    config = draw(configs) | {"min.insync.replicas": "1"}
    if draw(seldom(4)):
        return TopicSpec(name, HERE, config=config, assignment=draw(rows_on(ids, replication)))
    partitions, rack_aware = draw(st.integers(1, 9)), draw(st.booleans())
    return TopicSpec(name, HERE, partitions, replication, config, rack_aware=rack_aware)


@st.composite
def specs_to_alter(draw: st.DrawFn, topic: TopicState) -> TopicSpec:
    """Draw a spec that starts from what is there and asks for a little more."""
    known = {key: value for key, value in topic.config.items() if value and key in VALUES}
    config = (known | draw(configs)) if draw(st.booleans()) else draw(configs)
    return TopicSpec(
        topic.name,
        HERE,
        partitions=len(topic.assignment) + draw(st.integers(0, 3)),
        config=config | {"min.insync.replicas": known.get("min.insync.replicas", "1")},
        acknowledge=frozenset() if draw(seldom(4)) else BOTH,
        rack_aware=draw(seldom(3)),
    )


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Draw a cluster and an estate: most of it can be done, the rest asks for anything."""
    nodes = draw(broker_lists())
    ids = sorted(broker.id for broker in nodes)
    names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=6, unique=True)
    topics = {name: draw(live_topics(name, ids)) for name in sorted(draw(names))}
    specs = []
    for name in sorted(draw(names)):
        if draw(seldom(6)):
            specs.append(TopicSpec(name, HERE, absent=True))
        elif draw(seldom(4)):
            specs.append(draw(topic_specs(name, ids)))
        elif name in topics:
            specs.append(draw(specs_to_alter(topics[name])))
        else:
            specs.append(draw(specs_to_create(name, ids)))
    excluded = frozenset({draw(st.sampled_from(ids))} if draw(seldom(4)) else ())
    usage = {name: draw(usages(topics[name])) for name in sorted(topics) if not draw(seldom(9))}
    state = ClusterState("cluster-1", nodes, topics, draw(configs), usage=usage)
    return World(state, tuple(specs), excluded, Guards(max_deletes=draw(st.integers(0, 3))))
